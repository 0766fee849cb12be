"""Linear and cubic interpolation in the order of each release's kernels, bit-exact for float32.

Measured with images of 1 to 13 channels, contiguous and channels-last, upsampled and downsampled, in thirty releases with AVX2. Kernels
differ in three ways: how the source position is rounded, whether they process dimensions one after the other or all corners at once, and
in which order they add the products, most of which use fused multiply-add.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, Array
from torch_compat.runtime.operators._memory_formats import CHANNELS_LAST, CHANNELS_LAST_3D, is_formatted
from torch_compat.runtime.operators._moments import fused, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CUBIC",
    "LINEAR",
    "SMALL",
    "Direction",
    "by_channels",
    "by_format",
    "cubic",
    "era",
    "far_weight",
    "linear",
    "near_weight",
]

SMALL: Final = 128
"""The maximum sum of height and width of an image that is computed as if its channels were last."""

LANES: Final = 8
"""The number of float32 channels in a vector; the remaining channels are added in a different order."""


class Direction(NamedTuple):
    """The parameters of a dimension.

    Attributes:
        size, out: the input and output size.
        factor: the scale factor that was passed, if any.
        scale: the effective scale: input elements per output element.
    """

    size: int
    out: int
    factor: float | None
    scale: Any


class Linear(NamedTuple):
    """Linear interpolation as of a release.

    Attributes:
        places: the rounding of source positions: `FUSED`, `PLAIN`, `WIDE` (double precision with a float32 scale) or `DOUBLE` (scale in
            double precision as well).
        step: the addition of products if dimensions are processed one after the other; None for all corners at once.
        last: whether the kernel treats the input as channels-last and adds all corners at once.
        vectors, rest: the order of corners for channels that fill vectors, and for the remaining channels; None for double precision.
        columns: the rounding of positions along the width of channels-last volumes, if it differs from `places`.
    """

    places: str
    step: Callable[[Array, Array, Array], Array] | None
    last: Callable[[Array, Sequence[int]], bool]
    vectors: str = "onward"
    rest: str | None = "swapped"
    columns: str | None = None


FUSED, PLAIN, WIDE, DOUBLE = "fused", "plain", "wide", "double"
FORMATS = {4: CHANNELS_LAST, 5: CHANNELS_LAST_3D}


def _never(array: Array, sizes: Sequence[int]) -> bool:
    del array, sizes
    return False


def by_format(array: Array, sizes: Sequence[int]) -> bool:
    """Whether a tensor is channels-last in memory."""
    del sizes
    return array.ndim in FORMATS and is_formatted(array, FORMATS[array.ndim])


def _by_corners(array: Array, sizes: Sequence[int]) -> bool:
    """Like :func:`by_channels`; in a single thread also images with three channels and any size."""
    return by_channels(array, sizes) or (array.ndim == 4 and array.shape[1] == 3)


def by_channels(array: Array, sizes: Sequence[int]) -> bool:
    """Whether a tensor is channels-last with more than three channels, or is a small image."""
    if array.ndim not in FORMATS:
        return False
    last = array.shape[1] > 3 and is_formatted(array, FORMATS[array.ndim])
    return last or (array.ndim == 4 and sum(sizes) <= SMALL)


LINEAR: Final = {
    "1.0.0": Linear(DOUBLE, plain, _never),
    "1.1.0": Linear(FUSED, plain, _never),
    "1.6.0": Linear(FUSED, None, by_format),
    "1.9.0": Linear(FUSED, fused, by_format),
    "1.12.0": Linear(FUSED, fused, by_format, "back", None),
    "1.13.0": Linear(WIDE, fused, by_format, "back", None),
    "2.0.0": Linear(FUSED, fused, _by_corners, "back"),
    "2.4.0": Linear(PLAIN, fused, _by_corners, "back"),
    "2.6.0": Linear(PLAIN, fused, _by_corners, "back", columns=PLAIN),
    "2.7.0": Linear(FUSED, fused, _by_corners, "back"),
    "2.8.0": Linear(PLAIN, fused, _by_corners, "back"),
    "2.10.0": Linear(FUSED, fused, _by_corners, "back"),
    "2.15.0": Linear(PLAIN, fused, _by_corners, "back", columns=PLAIN),
}
"""Keyed by the first release."""


class Cubic(NamedTuple):
    """Bicubic interpolation as of a release.

    Attributes:
        places: see `Linear`.
        near, far: the rounding of the polynomial steps for the two nearer and the two farther points.
        step: the addition of products along a dimension.
        copies: the images of a batch that are copied if the size does not change, while the others become zeros; None if all images are
            interpolated.
    """

    places: str
    near: tuple[Any, Any]
    far: tuple[Any, Any, Any]
    step: Callable[[Array, Array, Array], Array]
    copies: slice | None = None


CUBIC: Final = {
    "1.0.0": Cubic(FUSED, (plain, plain), (plain, plain, plain), plain, copies=slice(1)),
    "1.8.0": Cubic(FUSED, (plain, plain), (plain, plain, plain), plain, copies=slice(None)),
    "1.9.0": Cubic(FUSED, (fused, fused), (fused, fused, fused), fused),
    "1.13.0": Cubic(WIDE, (fused, fused), (fused, fused, fused), fused),
    "2.0.0": Cubic(FUSED, (fused, fused), (fused, fused, fused), fused),
    "2.5.0": Cubic(FUSED, (plain, plain), (plain, plain, plain), fused),
    "2.10.0": Cubic(FUSED, (fused, plain), (fused, fused, plain), fused),
}
"""Keyed by the first release."""


def era(table: dict[str, Any], since: str) -> Any:
    """The table entry for a release."""
    return table[max((item for item in table if Release(item) <= Release(since)), key=Release)]


def linear(array: Array, directions: Sequence[Direction], align_corners: bool, since: str) -> Array:
    """Interpolate an array of [batch, channels, ...] linearly in float32 or float64."""
    how: Linear = era(LINEAR, since)
    sizes = [direction.out for direction in directions]
    stays = tuple(sizes) == array.shape[2:]
    copied = Release(since) >= Release("1.6.0")
    if stays and not copied:
        return array.copy()
    channels = how.last(array, sizes)
    ways = [how.places] * len(directions)
    if channels:
        ways = [how.places if how.places == WIDE else FUSED] * len(directions)
        if how.columns is not None and array.ndim == 5:
            ways[-1] = how.columns
    lines = [
        _neighbors(direction, align_corners, way, array.dtype, copied=copied)
        for direction, way in zip(directions, ways, strict=True)
    ]
    if channels:
        return _corners(array, lines, how)
    if how.step is None:
        return _chain(*_products(array, lines), ORDERS["swapped"](1 << len(lines)))
    return _along(array, lines, how.step)


class Neighbors(NamedTuple):
    """The neighbors of the points along a dimension: the indices and weights of both."""

    low: Array
    high: Array
    before: Array
    after: Array


def _neighbors(direction: Direction, align_corners: bool, way: str, unit: np.dtype[Any], *, copied: bool) -> Neighbors:
    if copied and direction.size == direction.out:
        at = np.arange(direction.out)
        return Neighbors(at, at, np.ones(direction.out, unit), np.zeros(direction.out, unit))
    where = _places(direction, align_corners, way, unit)
    if not align_corners:
        where = np.where(where < 0, where.dtype.type(0), where)
    low = np.minimum(np.floor(where), direction.size - 1)
    after = (where - low).astype(unit)
    if way != WIDE:
        after = np.clip(after, 0, 1)
    low = low.astype(INT64)
    return Neighbors(low, np.minimum(low + 1, direction.size - 1), (unit.type(1) - after).astype(unit), after)


def _places(direction: Direction, align_corners: bool, way: str, unit: np.dtype[Any]) -> Array:
    """The source positions of all points, in `unit` or in double precision."""
    points = np.arange(direction.out).astype(unit if way in {FUSED, PLAIN} else FLOAT64)
    half = points.dtype.type(0.5)
    if way == DOUBLE:
        scale = _double_scale(direction, align_corners)
        where = points * scale if align_corners else scale * (points + half) - half
        return np.asarray(where)
    scale = points.dtype.type(direction.scale)
    if align_corners:
        return np.asarray(points * scale)
    step = fused if way == FUSED and unit == FLOAT32 else plain
    return np.asarray(step(np.full_like(points, scale), points + half, np.full_like(points, -half)))


def _double_scale(direction: Direction, align_corners: bool) -> float:
    if direction.out == 1:
        return 0.0
    return (direction.size - 1) / (direction.out - 1) if align_corners else direction.size / direction.out


def _along(array: Array, lines: Sequence[Neighbors], step: Callable[[Array, Array, Array], Array]) -> Array:
    """Interpolate along one dimension after the other, the last dimension first."""
    if array.dtype != FLOAT32:
        step = plain
    for at in range(array.ndim - 1, 1, -1):
        low, high, before, after = lines[at - 2]
        weights = [_spread(side, at, array.ndim) for side in (before, after)]
        array = step(np.take(array, low, axis=at), weights[0], np.take(array, high, axis=at) * weights[1])
    return array


def _spread(line: Array, at: int, ndim: int) -> Array:
    return line.reshape([-1 if each == at else 1 for each in range(ndim)])


def _products(array: Array, lines: Sequence[Neighbors]) -> tuple[list[Array], list[Array]]:
    """The elements at all corners and the products of their weights; the last dimension varies fastest."""
    values, weights = [], []
    for corner in itertools.product((0, 1), repeat=len(lines)):
        value, weight = array, np.ones((), array.dtype)
        for at, (far, line) in enumerate(zip(corner, lines, strict=True)):
            value = np.take(value, line[far], axis=at + 2)
            weight = weight * _spread(line[2 + far], at + 2, array.ndim)
        values.append(value)
        weights.append(weight)
    return values, weights


ORDERS: Final[dict[str, Callable[[int], list[int]]]] = {
    "onward": lambda count: list(range(count)),
    "swapped": lambda count: [1, 0, *range(2, count)],
    "back": lambda count: [count - 2, count - 1, *range(count - 3, -1, -1)],
}
"""Summation orders of the corner products; the first product is rounded, and the others use fused multiply-add."""


def _chain(values: list[Array], weights: list[Array], order: list[int] | None) -> Array:
    unit = values[0].dtype
    if order is None or unit != FLOAT32:
        total = sum(value.astype(FLOAT64) * weight.astype(FLOAT64) for value, weight in zip(values, weights, strict=True))
        return np.asarray(total).astype(unit)
    total = values[order[0]] * weights[order[0]]
    for at in order[1:]:
        total = fused(values[at], weights[at], total)
    return np.asarray(total)


def _corners(array: Array, lines: Sequence[Neighbors], how: Linear) -> Array:
    """Interpolate with all corners at once: first the channels that fill vectors, then the rest."""
    whole = array.shape[1] // LANES * LANES
    count = 1 << len(lines)
    parts = [
        _chain(*_products(channels, lines), None if name is None else ORDERS[name](count))
        for channels, name in ((array[:, :whole], how.vectors), (array[:, whole:], how.rest))
        if channels.shape[1]
    ]
    return np.concatenate(parts, axis=1) if parts else _along(array, lines, plain)


def cubic(array: Array, directions: Sequence[Direction], align_corners: bool, since: str) -> Array:
    """Interpolate an array of [batch, channels, height, width] with cubic polynomials through four points in each direction."""
    how: Cubic = era(CUBIC, since)
    if how.copies and tuple(item.out for item in directions) == array.shape[2:]:
        copied = np.zeros_like(array)
        copied[how.copies] = array[how.copies]
        return copied
    single = array.dtype == FLOAT32
    for at in range(array.ndim - 1, 1, -1):
        direction = directions[at - 2]
        where = _places(direction, align_corners, how.places, array.dtype)
        whole = np.floor(where.astype(array.dtype))
        weights = _cubic_weights((where - whole).astype(array.dtype), how)
        points = [
            np.take(array, np.clip(whole.astype(INT64) + offset - 1, 0, direction.size - 1), axis=at) for offset in range(4)
        ]
        spread = [_spread(weight, at, array.ndim) for weight in weights]
        step = how.step if single else plain
        first, second = (0, 1) if step is plain else (1, 0)
        total = points[first] * spread[first]
        for each in (second, 2, 3):
            total = step(points[each], spread[each], total)
        array = total
    return array


def _cubic_weights(part: Array, how: Cubic) -> list[Array]:
    item = part.dtype.type(1)
    near, far = (how.near, how.far) if part.dtype == FLOAT32 else (PLAIN_NEAR, PLAIN_FAR)
    rest = item - part
    return [far_weight(part + item, far), near_weight(part, near), near_weight(rest, near), far_weight(rest + item, far)]


A: Final = -0.75
"""The parameter of the cubic convolution."""
PLAIN_NEAR, PLAIN_FAR = (plain, plain), (plain, plain, plain)


def near_weight(x: Array, steps: tuple[Any, Any] = PLAIN_NEAR) -> Array:
    """The weight of a point at a distance of up to one; ``steps`` are the roundings in Horner's scheme."""
    of = x.dtype.type
    result = steps[0](np.full_like(x, of(A) + of(2)), x, np.full_like(x, -(of(A) + of(3))))
    return np.asarray(steps[1](result * x, x, np.ones_like(x)))


def far_weight(x: Array, steps: tuple[Any, Any, Any] = PLAIN_FAR) -> Array:
    """The weight of a point at a distance between one and two."""
    of = x.dtype.type
    result = steps[0](np.full_like(x, of(A)), x, np.full_like(x, of(-5) * of(A)))
    result = steps[1](result, x, np.full_like(x, of(8) * of(A)))
    return np.asarray(steps[2](result, x, np.full_like(x, of(-4) * of(A))))
