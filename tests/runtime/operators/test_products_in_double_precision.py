"""In which order products of float64, and products that are added to a matrix, are summed: bits of releases with ``MKL_CBWR=AVX2``."""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._double_kernels import double_dot_product, double_product, fused
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

Array = np.ndarray[Any, Any]
RELEASES = ("1.6.0", "1.13.1", "2.4.1", "2.15.0")
"""The last release of each period."""
DIGESTS = [
    ("mm", "float64", (3, 7, 5), "NN", "faff8e8a c814b6fd faff8e8a faff8e8a"),
    ("mm", "float64", (7, 9, 13), "NN", "70669b1b 20e647a8 70669b1b 70669b1b"),
    ("mm", "float64", (2, 9, 3), "NT", "113a366e 13ec4231 113a366e 113a366e"),
    ("mm", "float64", (4, 11, 4), "TN", "a6def553 2df42cc8 a6def553 a6def553"),
    ("mm", "float64", (5, 4, 7), "NT", "43b8e097 5086276d 43b8e097 43b8e097"),
    ("mm", "float64", (1, 13, 6), "NT", "9182496d 49ba6ac7 9182496d 50f0596a"),
    ("mm", "float64", (74, 5, 6), "NN", "03739165 354d1fea 03739165 03739165"),
    ("mv", "float64", (5, 11, 1), "NN", "4c75752f 6f1d06be 4c75752f cd501008"),
    ("mv", "float64", (4, 20, 1), "TN", "482e1b8a e0c3ca5f e0c3ca5f e0c3ca5f"),
    ("mv", "float64", (3, 20, 1), "NN", "005530db 87f515b8 005530db ae3da14a"),
    ("mv", "float64", (2, 17, 1), "NN", "c69c5072 c69c5072 c69c5072 ef54e480"),
    ("dot", "float64", (1, 13, 1), "NN", "58208fc6 948a8f58 58208fc6 58208fc6"),
    ("dot", "float64", (1, 25, 1), "NN", "729ec923 729ec923 729ec923 729ec923"),
    ("addmm", "float64", (1, 9, 4), "NN", "c1de597f c1de597f c1de597f c1de597f"),
    ("addmm", "float64", (2, 8, 4), "NN", "f437b972 ec945b79 f437b972 f437b972"),
    ("addmm", "float64", (4, 5, 1), "TN", "5f6ec3d8 5f6ec3d8 5f6ec3d8 5f6ec3d8"),
    ("addmm", "float64", (3, 1, 4), "NN", "a3e48bae a3e48bae a3e48bae a3e48bae"),
    ("addmv", "float64", (3, 12, 1), "NN", "b8b40ab0 7e11c285 b8b40ab0 7e11c285"),
    ("addmv", "float64", (4, 12, 1), "TN", "7bb9e329 5d948b64 5d948b64 5d948b64"),
    ("baddbmm", "float64", (3, 4, 5), "NN", "acee68f6 acee68f6 b8ed1d7c b8ed1d7c"),
    ("baddbmm", "float64", (8, 9, 8), "NN", "0d7c90c9 dfa01fc0 0d7c90c9 0d7c90c9"),
    ("mv", "float32", (5, 11, 1), "NN", "49223777 f5d345e7 49223777 49223777"),
    ("mv", "float32", (4, 20, 1), "TN", "c5885578 03edab7e 03edab7e 03edab7e"),
    ("mv", "float32", (3, 20, 1), "NN", "a8e9b723 51f86230 a8e9b723 a8e9b723"),
    ("mv", "float32", (2, 17, 1), "NN", "802be3b5 8294ad65 802be3b5 802be3b5"),
    ("addmm", "float32", (1, 9, 4), "NN", "fa02ac70 fa02ac70 fa02ac70 fa02ac70"),
    ("addmm", "float32", (2, 8, 4), "NN", "436338b8 01743591 436338b8 436338b8"),
    ("addmm", "float32", (4, 5, 1), "TN", "54267105 54267105 54267105 54267105"),
    ("addmm", "float32", (3, 1, 4), "NN", "afe17ed7 afe17ed7 afe17ed7 afe17ed7"),
    ("addmv", "float32", (3, 12, 1), "NN", "18aad2df f0861d29 18aad2df 18aad2df"),
    ("addmv", "float32", (4, 12, 1), "TN", "685a77c8 e6d5702b e6d5702b e6d5702b"),
    ("baddbmm", "float32", (3, 4, 5), "NN", "18508038 18508038 a0a836eb a0a836eb"),
    ("baddbmm", "float32", (8, 9, 8), "NN", "6b9adf68 9bd7b3ed 6b9adf68 6b9adf68"),
]
"""Operator, dtype, sizes and layouts of two matrices (N row-major, T transposed), and the CRC-32 of the bits in each of the releases."""


def numbers(rows: int, columns: int, start: int, dtype: str) -> Array:
    values = np.arange(rows * columns, dtype=np.int64) + start
    return (((values * 7919) % 1009).astype(float) / 1009 - 0.5).astype(dtype).reshape(rows, columns)


def laid_out(array: Array, layout: str) -> Array:
    return np.ascontiguousarray(array.T).T if layout == "T" else array


def arguments(name: str, a: Array, b: Array, c: Array) -> list[Array]:
    """The arguments of the operator with matrices of these numbers."""
    if name == "dot":
        return [a[0], b[:, 0].copy()]
    if name in {"mv", "addmv"}:
        return [*([c[:, 0].copy()] if name == "addmv" else []), a, b[:, 0].copy()]
    if name == "baddbmm":
        return [np.stack([item, item]) for item in (c, a, b)]
    return [c, a, b] if name == "addmm" else [a, b]


@pytest.mark.parametrize(("name", "dtype", "sizes", "layouts", "digests"), DIGESTS)
def test_bits_of_each_release(name: str, dtype: str, sizes: tuple[int, int, int], layouts: str, digests: str) -> None:
    rows, steps, columns = sizes
    a, b = laid_out(numbers(rows, steps, 1, dtype), layouts[0]), laid_out(numbers(steps, columns, 5, dtype), layouts[1])
    given = [Tensor(item) for item in arguments(name, a, b, numbers(rows, columns, 9, dtype))]
    results = [resolve(f"aten::{name}", Release(release))(*given).array for release in RELEASES]
    assert [f"{zlib.crc32(np.ascontiguousarray(item).tobytes()):08x}" for item in results] == digests.split()


def test_fused_multiply_add_is_rounded_once() -> None:
    """Compared with exact arithmetic, including sums that lie next to the middle between two doubles."""
    random = np.random.default_rng(5)
    a, b = random.standard_normal(3000), random.standard_normal(3000)
    total = np.concatenate([random.standard_normal(1000), -(a * b)[1000:2000], random.standard_normal(1000) * 2.0**52])
    exact = [
        float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a.tolist(), b.tolist(), total.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(fused(a, b, total), exact)


def test_fused_multiply_add_of_numbers_that_are_not_finite() -> None:
    a, b, total = np.array([np.inf, 1e300, 2.0, np.nan]), np.array([1.0, 1e300, 3.0, 1.0]), np.array([1.0, 1.0, -np.inf, 1.0])
    np.testing.assert_array_equal(fused(a, b, total), [np.inf, np.inf, -np.inf, np.nan])


def test_orders_that_are_not_known_are_not_guessed() -> None:
    a = np.ones((70, 70))
    assert double_product(a, a, 3) is None
    assert double_dot_product(a[0], a[0], 3) is None
