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


def _convolved(
    release: str, name: str, x: tuple[int, ...], weight: tuple[int, ...], *rest: object, kind: str = "float32"
) -> object:
    try:
        result = resolve(f"aten::{name}", Release(release))(Tensor(np.zeros(x, kind)), Tensor(np.ones(weight, kind)), None, *rest)
    except Raised:
        return None
    return list(result.shape)


@pytest.mark.parametrize(
    ("name", "x", "weight", "rest", "kind", "old", "new"),
    [
        ("conv_transpose1d", (1, 4, 1), (4, 4, 2), ([1], [1]), "float32", None, None),
        ("conv_transpose1d", (2, 4, 1), (4, 4, 2), ([1], [1]), "float32", None, [2, 4, 0]),
        ("conv_transpose1d", (2, 4, 1), (4, 4, 2), ([1], [1]), "float64", None, None),
        ("conv_transpose1d", (1, 4, 1), (4, 2, 2), ([1], [1], [0], 2), "float32", None, [1, 4, 0]),
        ("conv_transpose1d", (2, 4, 1), (4, 4, 2), ([1], [2], [1], 1, [2]), "float32", None, None),
        ("conv_transpose1d", (0, 4, 1), (4, 4, 2), ([1], [1]), "float64", [0, 4, 0], [0, 4, 0]),
        ("conv_transpose2d", (1, 4, 1, 1), (4, 4, 2, 4), ([1, 1], [1, 0]), "float32", None, None),
        ("conv_transpose2d", (1, 4, 1, 1), (4, 4, 4, 4), ([1, 1], [2, 0]), "float32", None, [1, 4, 0, 4]),
        ("conv_transpose3d", (15, 4, 1, 1, 1), (4, 4, 2, 1, 1), ([1, 1, 1], [1, 0, 0]), "float32", None, None),
        ("conv_transpose3d", (16, 4, 1, 1, 1), (4, 4, 2, 1, 1), ([1, 1, 1], [1, 0, 0]), "float32", None, [16, 4, 0, 1, 1]),
        ("conv_transpose3d", (1, 4, 1, 1, 1), (4, 4, 2, 4, 4), ([1, 1, 1], [1, 0, 0]), "float32", None, [1, 4, 0, 4, 4]),
    ],
)
def test_transposed_convolutions_with_an_empty_result(
    name: str, x: tuple[int, ...], weight: tuple[int, ...], rest: tuple[object, ...], kind: str, old: object, new: object
) -> None:
    """As 1.12.1 and 2.15.0 gave them in one thread."""
    assert [_convolved(release, name, x, weight, *rest, kind=kind) for release in ("1.12.1", "2.15.0")] == [old, new]


@pytest.mark.parametrize(
    ("name", "x", "weight", "rest", "results"),
    [
        ("conv1d", (1, 2, 0), (1, 2, 1), ([1], [1]), {"1.6.0": [1, 1, 2], "1.7.1": None, "2.15.0": None}),
        ("conv1d", (1, 0, 3), (2, 0, 2), (), {"1.10.2": None, "1.11.0": [1, 0, 2], "2.15.0": [1, 0, 2]}),
        ("conv1d", (1, 2, 1), (0, 2, 1), (), {"1.6.0": None, "1.8.1": None, "2.15.0": None}),
        ("conv1d", (1, 2, 1), (1, 2, 0), (), {"1.8.1": None, "2.15.0": None}),
        ("conv_transpose1d", (1, 2, 0), (2, 1, 2), (), {"1.6.0": None, "2.15.0": None}),
        ("conv_transpose1d", (1, 2, 1), (2, 0, 1), (), {"1.6.0": None, "2.15.0": None}),
        ("conv_transpose1d", (1, 2, 1), (2, 1, 0), (), {"1.6.0": None, "2.15.0": None}),
    ],
)
def test_sizes_of_nothing(
    name: str, x: tuple[int, ...], weight: tuple[int, ...], rest: tuple[object, ...], results: dict[str, object]
) -> None:
    assert {release: _convolved(release, name, x, weight, *rest) for release in results} == results
