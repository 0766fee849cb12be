"""In which order the products of small convolutions are added: the bits of releases on a processor of Intel with ``DNNL_MAX_CPU_ISA=AVX2``."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

Array = np.ndarray[Any, Any]
RELEASES = ("1.5.1", "1.6.0", "1.7.1", "1.12.1", "2.0.1", "2.15.0")


def numbers(shape: tuple[int, ...], start: int) -> Array:
    result = np.arange(np.prod(shape), dtype=np.int64) + start
    return (((result * 7919) % 1009).astype(float) / 1009 - 0.5).astype(np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "weight", "groups", "stride", "padding", "digests"),
    [
        ((1, 3, 6, 6), (4, 3, 3, 3), 1, 1, 0, "cfc06a52 0ac48c0c 9a64e44c 9a64e44c 9a64e44c 9a64e44c"),
        ((1, 4, 9, 7), (8, 4, 3, 3), 1, 2, 1, "ab82df9b 4b5b7156 ac64b651 ac64b651 9b05f1bd 9b05f1bd"),
        ((1, 4, 4, 4), (3, 4, 1, 1), 1, 1, 0, "b82d4437 b82d4437 92ed8cc8 92ed8cc8 bae9c920 bae9c920"),
        ((2, 4, 4, 4), (3, 4, 1, 1), 1, 1, 0, "d9bd359c d9bd359c d9bd359c 2335f1c2 12a6b1ff 12a6b1ff"),
        ((2, 20, 5, 5), (8, 20, 3, 3), 1, 1, 1, "705c26f8 20b12fbd 20b12fbd 20b12fbd 20b12fbd 20b12fbd"),
        ((1, 3, 6, 6), (4, 3, 5, 5), 1, 1, 0, "b0547593 3390ec11 3390ec11 3390ec11 3390ec11 3390ec11"),
        ((1, 4, 4, 4), (4, 1, 3, 3), 4, 1, 1, "a00e0ed8 a00e0ed8 a00e0ed8 a00e0ed8 a00e0ed8 a00e0ed8"),
        ((2, 4, 6, 6), (8, 2, 3, 3), 2, 1, 0, "fc31541f fc31541f fc31541f fc31541f fc31541f fc31541f"),
        ((1, 1, 3, 3), (3, 1, 3, 3), 1, 1, 0, "25df653c accf86bd 2240815e 2240815e be7a2953 be7a2953"),
        ((1, 3, 12, 12), (1, 3, 3, 3), 1, 1, 1, "e995f60f 9dba3a78 fb0d3b5e fb0d3b5e 215edcb6 215edcb6"),
        ((1, 16, 8, 8), (16, 16, 3, 3), 1, 1, 1, "a2854a9c 81c2b4e3 e9bc6b55 e9bc6b55 e9bc6b55 e9bc6b55"),
        ((1, 4, 4, 4), (4, 1, 1, 1), 4, 1, 0, "21639a1d 21639a1d 21639a1d 21639a1d 21639a1d 21639a1d"),
    ],
)  # fmt: skip
def test_bits(shape: tuple[int, ...], weight: tuple[int, ...], groups: int, stride: int, padding: int, digests: str) -> None:
    """The CRC-32 of the bits in each of the releases."""
    x, w, b = (Tensor(numbers(item, start)) for item, start in ((shape, 1), (weight, 5), (weight[:1], 9)))
    results = []
    expected = dict(zip(RELEASES, digests.split(), strict=True))
    if weight[1] > 16:
        del expected["1.5.1"]  # more channels than are known
    for release in expected:
        result = resolve("aten::conv2d", Release(release))(x, w, b, [stride] * 2, [padding] * 2, [1, 1], groups).array
        results.append(f"{zlib.crc32(np.ascontiguousarray(result).tobytes()):08x}")
    assert results == list(expected.values())


def test_other_sizes_are_summed_in_double_precision() -> None:
    x, w = numbers((1, 60, 4, 4), 1), numbers((4, 60, 3, 3), 2)
    result = resolve("aten::conv2d")(Tensor(x), Tensor(w)).array
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(result, np.einsum("bchwij,ocij->bohw", windows, w.astype(float)).astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "weight", "groups", "stride", "padding", "dilation", "digests"),
    [
        ((1, 3, 5, 4), (3, 2, 3, 3), 1, 1, 0, 1, "e6426a7c 01599b31 e6426a7c e6426a7c e6426a7c"),
        ((2, 3, 5, 4), (3, 2, 3, 3), 1, 1, 1, 1, "0656357d 822fd451 c1af68a9 c1af68a9 c1af68a9"),
        ((2, 4, 4, 4), (4, 3, 4, 4), 1, 2, 1, 1, "a67e4c5e a67e4c5e - 89ef4faa 89ef4faa"),
        ((2, 4, 4, 4), (4, 3, 2, 2), 1, 2, 0, 1, "0c43252e 0c43252e - 0c43252e 0c43252e"),
        ((2, 20, 3, 4), (20, 3, 3, 3), 1, 2, 1, 1, "f7ccb215 2370ef13 - 94cd59a8 94cd59a8"),
        ((1, 6, 4, 4), (6, 2, 3, 3), 2, 1, 1, 1, "7f27b942 7f27b942 7f27b942 7f27b942 7f27b942"),
        ((1, 4, 4, 4), (4, 1, 3, 3), 4, 1, 0, 1, "bb70333b bb70333b 747114c7 747114c7 747114c7"),
        ((2, 32, 3, 3), (32, 2, 3, 3), 2, 2, 0, 1, "f349306b f349306b f349306b bed9b678 bed9b678"),
        ((1, 16, 4, 4), (16, 8, 3, 3), 2, 1, 0, 1, "60a19465 60a19465 413cf642 413cf642 413cf642"),
        ((2, 3, 4, 3), (3, 2, 2, 2), 1, 2, 0, 2, "d0bc99a3 1dbd71f1 d0bc99a3 d0bc99a3 d0bc99a3"),
        ((1, 2, 3, 3), (2, 1, 1, 1), 1, 1, 0, 1, "d94a172b d94a172b d94a172b d94a172b d94a172b"),
        ((2, 5, 4, 4), (5, 2, 2, 2), 1, 1, 2, 1, "17d9321f 17d9321f 17d9321f 17d9321f 17d9321f"),
    ],
)
def test_bits_of_transposed_convolutions(
    shape: tuple[int, ...], weight: tuple[int, ...], groups: int, stride: int, padding: int, dilation: int, digests: str
) -> None:
    """The CRC-32 of the bits in each of the releases, or ``-`` if the order is not known."""
    x, w, b = (Tensor(numbers(item, start)) for item, start in ((shape, 1), (weight, 5), ((weight[1] * groups,), 9)))
    results = []
    for release in ("1.5.1", "1.13.1", "2.1.2", "2.4.1", "2.15.0"):
        call = resolve("aten::conv_transpose2d", Release(release))
        result = call(x, w, b, [stride] * 2, [padding] * 2, 0, groups, [dilation] * 2).array
        results.append(f"{zlib.crc32(np.ascontiguousarray(result).tobytes()):08x}")
    expected = digests.split()
    assert [item for item, known in zip(results, expected, strict=True) if known != "-"] == [
        item for item in expected if item != "-"
    ]


@pytest.mark.parametrize(
    ("shape", "weight", "groups", "stride", "padding", "dilation", "digests"),
    [
        ((1, 4, 9, 7), (8, 4, 3, 3), 1, 1, 2, 2, "a65ecb15 a65ecb15 7c204627 7c204627 a65ecb15 a65ecb15"),
        ((2, 4, 9, 7), (8, 4, 3, 3), 1, 1, 0, 2, "4f75fcb6 4f75fcb6 a1d980fa a1d980fa a1d980fa a1d980fa"),
        ((1, 4, 9, 9), (6, 2, 3, 3), 2, 1, 0, 2, "f6e92e73 f6e92e73 - f6e92e73 f6e92e73 f6e92e73"),
        ((1, 6, 8, 8), (4, 3, 2, 2), 2, 2, 0, 1, "- e2c61a48 e2c61a48 e2c61a48 e2c61a48 e2c61a48"),
        ((2, 8, 7, 7), (8, 4, 3, 3), 2, 2, 1, 1, "- c404b0e1 c404b0e1 c404b0e1 c404b0e1 c404b0e1"),
        ((1, 3, 11, 9), (2, 3, 2, 2), 1, 1, 1, 3, "e049c9b7 e049c9b7 c1462d06 c1462d06 e049c9b7 e049c9b7"),
    ],
)
def test_bits_of_dilated_and_strided_convolutions(
    shape: tuple[int, ...], weight: tuple[int, ...], groups: int, stride: int, padding: int, dilation: int, digests: str
) -> None:
    """The CRC-32 of the bits in each of the releases, or ``-`` if the order is not known."""
    x, w, b = (Tensor(numbers(item, start)) for item, start in ((shape, 1), (weight, 5), (weight[:1], 9)))
    for release, expected in zip(("1.5.1", "1.6.0", "1.8.1", "1.12.1", "2.0.1", "2.15.0"), digests.split(), strict=True):
        call = resolve("aten::conv2d", Release(release))
        result = call(x, w, b, [stride] * 2, [padding] * 2, [dilation] * 2, groups).array
        if expected != "-":
            assert f"{zlib.crc32(np.ascontiguousarray(result).tobytes()):08x}" == expected, release
