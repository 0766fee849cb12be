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
