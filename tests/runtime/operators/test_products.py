"""The summation order of matrix products: the bits of releases on an Intel processor with ``MKL_CBWR=AVX2`` and one thread."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._matrix_kernels import matrix_product
from torch_compat.runtime.operators._products import accumulated
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

F32 = np.float32
Array = np.ndarray[Any, Any]
RELEASES = ("1.6.0", "1.13.1", "2.4.1", "2.15.0")
"""The last release of each period."""
DIGESTS = [
    ((3, 7, 5), "NN", "9f3001bf e78d826f 9f3001bf 9f3001bf"),
    ((3, 7, 5), "NT", "9f3001bf e78d826f 9f3001bf 9f3001bf"),
    ((3, 7, 5), "TN", "9f3001bf e78d826f 9f3001bf 9f3001bf"),
    ((2, 9, 33), "NN", "3a43b105 f9abb9ef 3a43b105 3a43b105"),
    ((2, 9, 33), "NT", "3a43b105 f9abb9ef 3a43b105 3a43b105"),
    ((2, 9, 33), "TN", "3a43b105 f9abb9ef 3a43b105 3a43b105"),
    ((7, 10, 24), "NN", "5d61a553 913c2972 5d61a553 5d61a553"),
    ((7, 10, 24), "NT", "5d61a553 913c2972 5d61a553 5d61a553"),
    ((7, 10, 24), "TN", "5d61a553 913c2972 5d61a553 5d61a553"),
    ((9, 64, 16), "NN", "7a29c4f9 3f12847f 7a29c4f9 7a29c4f9"),
    ((9, 64, 16), "NT", "7a29c4f9 3f12847f 7a29c4f9 7a29c4f9"),
    ((9, 64, 16), "TN", "7a29c4f9 3f12847f 7a29c4f9 7a29c4f9"),
    ((4, 300, 20), "NN", "353a5629 59d34d95 353a5629 353a5629"),
    ((3, 40, 2), "NN", "a60b4eae 8a3a30f2 a60b4eae a60b4eae"),
    ((3, 40, 2), "NT", "a60b4eae 8a3a30f2 d55d13b4 d55d13b4"),
    ((3, 40, 2), "TN", "a60b4eae 8a3a30f2 a60b4eae a60b4eae"),
    ((4, 6, 9), "NN", "36d96f75 36d96f75 36d96f75 36d96f75"),
    ((4, 6, 9), "NT", "36d96f75 b9c256b8 36d96f75 36d96f75"),
    ((4, 6, 9), "TN", "36d96f75 36d96f75 36d96f75 36d96f75"),
    ((1, 20, 19), "NN", "4cef4592 5ba466e8 4cef4592 4cef4592"),
    ((1, 20, 19), "NT", "179c9af9 1b1e3711 179c9af9 e482dc1c"),
    ((1, 20, 19), "TN", "4cef4592 5ba466e8 4cef4592 4cef4592"),
    ((1, 47, 7), "NN", "8b6a52cc 8b6a52cc 8b6a52cc 8b6a52cc"),
    ((1, 47, 7), "NT", "0714e3f6 dd08361e 0714e3f6 0586070c"),
    ((1, 47, 7), "TN", "8b6a52cc 8b6a52cc 8b6a52cc 8b6a52cc"),
    ((7, 45, 1), "NN", "12dca68a db385241 12dca68a 4ac20fa2"),
    ((7, 45, 1), "NT", "12dca68a db385241 12dca68a 4ac20fa2"),
    ((7, 45, 1), "TN", "510b170f 510b170f 510b170f 510b170f"),
    ((74, 7, 6), "NN", "5d66b347 3715c041 5d66b347 5d66b347"),
    ((80, 5, 6), "TN", "125a11c8 098e3d73 125a11c8 125a11c8"),
    ((98, 5, 20), "NN", "f812098b 31ab08d6 f812098b f812098b"),
    ((122, 4, 7), "NT", "81088ef5 37cee417 81088ef5 81088ef5"),
    ((148, 3, 9), "NT", "a7de0de6 4365961c a7de0de6 a7de0de6"),
    ((230, 3, 6), "NN", "aff30ea2 e06b1b1f aff30ea2 aff30ea2"),
]
"""Sizes and layouts of two matrices (N row-major, T transposed), and the CRC-32 of the bits of their product in each of the releases."""


def matrix(rows: int, columns: int, start: int) -> Array:
    numbers = np.arange(rows * columns, dtype=np.int64) + start
    return (((numbers * 7919) % 1009).astype(float) / 1009 - 0.5).astype(F32).reshape(rows, columns)


def laid_out(array: Array, layout: str) -> Array:
    return np.ascontiguousarray(array.T).T if layout == "T" else array


def digest(tensor: Tensor) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(tensor.array).tobytes()):08x}"


def call(name: str, release: str, *arrays: Array) -> str:
    return digest(resolve(f"aten::{name}", Release(release))(*map(Tensor, arrays)))


@pytest.mark.parametrize(("sizes", "layouts", "digests"), DIGESTS)
def test_products_have_the_bits_of_each_release(sizes: tuple[int, int, int], layouts: str, digests: str) -> None:
    rows, steps, columns = sizes
    a, b = laid_out(matrix(rows, steps, 1), layouts[0]), laid_out(matrix(steps, columns, 5), layouts[1])
    assert [call("mm", release, a, b) for release in RELEASES] == digests.split()


@pytest.mark.parametrize(
    ("steps", "digests"),
    [
        (3, "4de8abb3 4de8abb3 4de8abb3 4de8abb3"),
        (12, "6988173c 7b3db8d2 6988173c 6988173c"),
        (56, "9dc554c0 358dbc37 9dc554c0 9dc554c0"),
    ],
)
def test_dot_products_are_summed_in_vectors(steps: int, digests: str) -> None:
    a, b = matrix(1, steps, 3)[0], matrix(1, steps, 9)[0]
    known = [place for place, release in enumerate(RELEASES) if steps < 16 or release != "1.13.1"]
    assert [call("dot", RELEASES[place], a, b) for place in known] == [digests.split()[place] for place in known]


def test_small_batches_are_added_one_after_the_other_in_every_release() -> None:
    a, b = matrix(10, 7, 1).reshape(2, 5, 7), matrix(14, 3, 2).reshape(2, 7, 3)
    assert {call("bmm", release, a, b) for release in RELEASES} == {"56245ef0"}


def test_a_single_product_is_not_rounded_before_a_bias_is_added() -> None:
    a, w, bias = matrix(3, 1, 3), matrix(8, 1, 4), matrix(1, 8, 7)[0]
    assert {call("linear", release, a, w, bias) for release in RELEASES} == {"c1da8258"}
    assert digest(Tensor((a * w.T).astype(F32) + bias)) != "c1da8258"


def test_the_order_of_products_without_a_known_order_is_not_guessed() -> None:
    assert matrix_product(matrix(4, 600, 1), matrix(600, 4, 2), 3) is None
    assert matrix_product(matrix(4, 6, 1), matrix(6, 6, 2), 3) is None


def test_a_square_root_is_rounded_before_its_reciprocal() -> None:
    assert {call("rsqrt", release, matrix(1, 40, 3) + F32(1)) for release in RELEASES} == {"0f17d7c6"}


@pytest.mark.parametrize(("rows", "steps", "columns"), [(0, 2, 3), (2, 3, 0), (0, 8, 0), (3, 0, 2)])
def test_products_without_elements_are_empty_or_zero(rows: int, steps: int, columns: int) -> None:
    result = accumulated(np.ones((rows, steps), F32), np.ones((steps, columns), F32)).astype(F32)
    assert result.tolist() == np.zeros((rows, columns)).tolist()
