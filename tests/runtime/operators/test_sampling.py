"""Sampling at positions that are NaN, infinite or far away, with the results of the releases.

Images were computed by 1.7.1 and 2.15.0, which agree; volumes by 1.4.0, 1.5.0, 1.7.1 and 2.15.0. In fifteen releases, 192 positions of an
image and 288 of a volume were compared, in both dtypes, for each interpolation, each padding, and with and without aligned corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

NAN, INF = float("nan"), float("inf")
PLACES = (NAN, INF, -INF, 1e9, 3e9, -1e10, 1e20, 5.25, -1.9)
LINEAR, NEAREST, CUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def sampled(shape: tuple[int, ...], places: Any, *options: Any, horizon: str) -> Any:
    """Values of a picture or volume that counts from 1, at these x and 0.1 in all other directions."""
    image = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(1, 1, *shape)
    n = len(shape)
    points = np.array([[place, *[0.1] * (n - 1)] for place in places], np.float32).reshape(*(1,) * n, -1, n)
    with np.errstate(all="ignore"):
        tensor = resolve("aten::grid_sampler", Release(horizon))(Tensor(image), Tensor(points), *options)
    return tensor.array.reshape(-1).tolist()


@pytest.mark.parametrize("horizon", ["1.7.1", "2.15.0"])
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((LINEAR, ZEROS, True), [NAN, NAN, NAN, 0, 0, 0, 0, 0, 0]),
        ((LINEAR, BORDER, True), [5.4, 8.4, 5.4, 8.4, 8.4, 5.4, 8.4, 8.4, 5.4]),
        ((LINEAR, BORDER, False), [5.6, 8.6, 5.6, 8.6, 8.6, 5.6, 8.6, 8.6, 5.6]),
        ((LINEAR, REFLECTION, True), [5.4, 5.4, 5.4, 5.4, 5.4, 5.4, 5.4, 8.025, 6.75]),
        ((LINEAR, REFLECTION, False), [5.6, 5.6, 5.6, 5.6, 5.6, 5.6, 5.6, 8.6, 6.9]),
        ((NEAREST, ZEROS, False), [0] * 9),
        ((NEAREST, BORDER, False), [5, 8, 5, 8, 8, 5, 8, 8, 5]),
        ((NEAREST, REFLECTION, True), [5, 5, 5, 5, 5, 5, 5, 8, 6]),
    ],
)
def test_pictures(horizon: str, options: tuple[Any, ...], found: list[float]) -> None:
    """What is no number is the first place; infinities are clipped, and become no numbers if they are reflected."""
    assert sampled((3, 4), PLACES, *options, horizon=horizon) == pytest.approx(found, nan_ok=True, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((CUBIC, ZEROS, True), [NAN, NAN, NAN, 0, 0, 0, 0, 0, -0.62459427]),
        ((CUBIC, BORDER, True), [NAN, NAN, NAN, 8.571003, 8.571003, 5.571002, 8.571003, 8.571003, 5.571002]),
        ((CUBIC, REFLECTION, False), [NAN, NAN, NAN, 5.8358774, 5.8358774, 5.8358774, 5.8358774, 8.835878, 7.177879]),
    ],
)
def test_pictures_by_cubes(options: tuple[Any, ...], found: list[float]) -> None:
    assert sampled((3, 4), PLACES, *options, horizon="2.15.0") == pytest.approx(found, nan_ok=True, rel=1e-5)


OUTSIDE = [0.0] * 3


@pytest.mark.parametrize("horizon", ["1.4.0", "1.5.0", "1.7.1", "2.15.0"])
@pytest.mark.parametrize(
    ("options", "reflected", "found"),
    [
        ((LINEAR, ZEROS, True), False, [0] * 9),
        ((LINEAR, BORDER, True), False, [15, 15, 12, 15, 15, 12, 15, 15, 12]),
        ((LINEAR, BORDER, False), False, [15.8, 15.8, 12.8, 15.8, 15.8, 12.8, 15.8, 15.8, 12.8]),
        ((LINEAR, REFLECTION, True), True, [15, 15, 15, 12, 14, 14, 12, 14.625, 13.35]),
        ((LINEAR, REFLECTION, False), False, [15.8, 15.8, 15.8, 12.8, 12.8, 12.8, 12.8, 15.8, 14.1]),
        ((NEAREST, BORDER, True), False, [20, 20, 17, 20, 20, 17, 20, 20, 17]),
        ((NEAREST, REFLECTION, True), True, [20, 20, 20, 17, 19, 19, 17, 20, 18]),
        ((NEAREST, REFLECTION, False), False, [20, 20, 20, 17, 17, 17, 17, 20, 18]),
    ],
)
def test_volumes(horizon: str, options: tuple[Any, ...], reflected: bool, found: list[float]) -> None:
    """What is no number is the last place, in 1.4 outside after reflection; of places outside not even the weight is looked at."""
    if reflected and horizon == "1.4.0":
        found = [*OUTSIDE, *found[3:]]
    assert sampled((2, 3, 4), PLACES, *options, horizon=horizon) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "padding", "place", "elsewhere"),
    [
        ((3, 4), BORDER, NAN, True),
        ((3, 4), BORDER, INF, False),
        ((1, 1), BORDER, INF, True),
        ((3, 4), ZEROS, NAN, False),
        ((3, 4), REFLECTION, INF, True),
        ((3, 4), REFLECTION, 1e20, True),
        ((3, 4), REFLECTION, 5.25, False),
        ((2, 3, 4), BORDER, NAN, False),
    ],
)
def test_pictures_read_other_memory_up_to_1_6(shape: tuple[int, ...], padding: int, place: float, elsewhere: bool) -> None:
    """1.0.1, 1.2.0, 1.4.0, 1.5.1 and 1.6.0 die, or give what lies there."""
    sampled(shape, [place], LINEAR, padding, True, horizon="1.7.1")
    if elsewhere:
        with pytest.raises(Unsupported, match="reads unrelated memory"):
            sampled(shape, [place], LINEAR, padding, True, horizon="1.6.0")
    else:
        sampled(shape, [place], LINEAR, padding, True, horizon="1.6.0")
