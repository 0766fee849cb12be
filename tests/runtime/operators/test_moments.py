"""Layer norms are equal to the last bit to those of releases, even where these round differently."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.operators._moments import ROUNDINGS, normed_rows
from torch_compat.runtime.tensor import Tensor

ROW = np.array([0.1, -2.5, 7.25, 3.0, 1e-3, 0.7, -12.0, 0.3, 0.3, 5.5], np.float32)
BITS = {
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


def test_other_types_are_not_followed() -> None:
    how = ROUNDINGS["2.0.0"]
    assert normed_rows(np.zeros((1, 4), np.float64), None, None, 1e-5, how) is None
    assert normed_rows(np.zeros((1, 4096), np.float32), None, None, 1e-5, how) is not None
