"""Which releases accept a convolution of an empty batch; each answer is that of the release."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def _takes(release: str, name: str, weight: Tensor, *, kind: str = "float32", groups: int = 1, dilation: int = 1) -> bool:
    n = int(name[-2])
    given = Tensor(np.zeros((0, 4, *(6,) * n), kind))
    ones = [1] * n
    rest = (ones, [0] * n, [0] * n, groups, [dilation] * n) if "transpose" in name else (ones, [0] * n, [dilation] * n, groups)
    try:
        result = resolve(f"aten::{name}", Release(release))(given, weight, None, *rest)
    except Raised:
        return False
    assert result.shape[0] == 0
    return True


def _weight(n: int = 2, kind: str = "float32", groups: int = 1) -> Tensor:
    return Tensor(np.ones((4, 4 // groups, *(3,) * n), kind))


@pytest.mark.parametrize(
    ("release", "plain", "double", "grouped", "dilated", "volume", "transposed"),
    [
        ("1.0.0", False, False, False, False, False, False),
        ("1.0.1", True, False, True, False, False, False),
        ("1.1.0", True, False, True, False, False, False),
        ("1.2.0", True, False, False, True, False, False),
        ("1.3.1", True, True, False, True, True, False),
        ("1.4.0", True, True, True, True, True, False),
        ("1.5.0", True, True, True, True, True, True),
        ("2.0.0", True, True, True, True, True, True),
    ],
)
def test_what_releases_take(
    release: str, plain: bool, double: bool, grouped: bool, dilated: bool, volume: bool, transposed: bool
) -> None:
    assert _takes(release, "conv2d", _weight()) is plain
    assert _takes(release, "conv2d", _weight(kind="float64"), kind="float64") is double
    assert _takes(release, "conv2d", _weight(groups=2), groups=2) is grouped
    assert _takes(release, "conv2d", _weight(), dilation=2) is dilated
    assert _takes(release, "conv3d", _weight(3)) is volume
    assert _takes(release, "conv_transpose2d", _weight()) is transposed


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose2d"])
def test_a_weight_that_is_no_view_of_one_dimension(name: str) -> None:
    """From 1.5 to 1.13 the weight is viewed as one dimension; one element over and over is."""
    n = int(name[-2])
    cut = Tensor(np.ones((4, 4, *(3,) * (n - 1), 6), np.float32)[..., :3])
    for release, takes in (("1.4.0", "transpose" not in name), ("1.5.1", False), ("1.13.1", False), ("2.0.0", True)):
        assert _takes(release, name, cut) is takes
    expanded = Tensor(np.broadcast_to(np.ones((), np.float32), (4, 4, *(3,) * n)))
    assert _takes("1.12.1", name, expanded)


def test_other_batches_are_not_looked_at() -> None:
    given, cut = Tensor(np.zeros((1, 4, 6), np.float32)), Tensor(np.ones((4, 4, 6), np.float32)[..., :3])
    assert resolve("aten::conv1d", Release("1.12.1"))(given, cut).shape == (1, 4, 4)
