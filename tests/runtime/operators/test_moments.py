"""Layer norms are equal to the last bit to those of releases, even where these round differently."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.operators._moments import ROUNDINGS, normed_rows
from torch_compat.runtime.tensor import Tensor

ROW = np.array([0.1, -2.5, 7.25, 3.0, 1e-3, 0.7, -12.0, 0.3, 0.3, 5.5], np.float32)
BITS = {
    ("1.4.0", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("1.4.0", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("1.6.0", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("1.6.0", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("1.9.1", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("1.9.1", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("1.12.1", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("1.12.1", 10): "25a88c3f8d0c84bfcbe53a41f2c991402f20803f7d3ddc3f689183bfa57da63fa57da63f5c360741",
    ("2.1.2", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("2.1.2", 10): "25a88c3f8e0c84bfcbe53a41f3c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("2.6.0", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("2.6.0", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("2.9.1", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("2.9.1", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
    ("2.15.0", 5): "c8ea8a3fd2baf6bef3eb4541ccbb8d40a01b803f",
    ("2.15.0", 10): "25a88c3f8e0c84bfcbe53a41f2c991402f20803f7d3ddc3f709183bfa57da63fa57da63f5c360741",
}
"""The bits of a norm of the first elements of a row with weight and bias, as each release gave them."""


def bits(release: str, count: int) -> str:
    norm = registry.resolve("aten::layer_norm", Release(release))
    tensor = norm(Tensor(ROW[:count].copy()), [count], Tensor(ROW[:count] / 3), Tensor(ROW[:count] + 1))
    return str(tensor.array.tobytes().hex())


@pytest.mark.parametrize(("release", "count"), list(BITS))
def test_as_the_release_to_the_last_bit(release: str, count: int) -> None:
    assert bits(release, count) == BITS[release, count]


def test_releases_differ() -> None:
    assert len({BITS[release, 10] for release, count in BITS if count == 10}) > 1


def test_what_is_beyond_float32() -> None:
    large = Tensor(np.array([1e30] + [0] * 8, np.float32))
    with np.errstate(all="ignore"):
        before, after = (registry.resolve("aten::layer_norm", Release(name))(large, [9]).array for name in ("2.9.1", "2.10.0"))
    assert np.isnan(before).all()
    assert (after == 0).all()


@pytest.mark.parametrize(
    ("count", "digests"),
    [
        (5, "7ab682a6 3bcf803c 3bcf803c"),
        (8, "0a7a342c 0a7a342c 0a7a342c"),
        (19, "64cdfd1d 9f41528e 9f41528e"),
        (64, "0c289ae8 87a81a29 87a81a29"),
    ],
)
def test_rows_of_any_length_up_to_1_9(count: int, digests: str) -> None:
    """The CRC-32 of the bits in three releases: rows are summed without lanes up to 1.4."""
    x, w, b = (numbers(size, start) for size, start in ((3 * count, 1), (count, 5), (count, 9)))
    for release, expected in zip(("1.4.0", "1.5.1", "1.9.1"), digests.split(), strict=True):
        norm = registry.resolve("aten::layer_norm", Release(release))
        result = norm(Tensor((x * 3 + 1).astype(np.float32).reshape(3, count)), [count], Tensor(w), Tensor(b)).array
        assert f"{zlib.crc32(result.tobytes()):08x}" == expected, release


def numbers(size: int, start: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    values = np.arange(size, dtype=np.int64) + start
    return (((values * 7919) % 1009).astype(float) / 1009 - 0.5).astype(np.float32)


def test_other_types_are_not_followed() -> None:
    how = ROUNDINGS["2.0.0"]
    assert normed_rows(np.zeros((1, 4), np.float64), None, None, 1e-5, how) is None
    assert normed_rows(np.zeros((1, 4096), np.float32), None, None, 1e-5, how) is not None
