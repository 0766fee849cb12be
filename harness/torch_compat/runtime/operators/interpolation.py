"""Image resizing and sampling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, Array, fail, into, not_implemented
from torch_compat.runtime.operators._interpolated import (
    CUBIC,
    LINEAR,
    Direction,
    by_channels,
    by_format,
    cubic,
    far_weight,
    linear,
    near_weight,
)
from torch_compat.runtime.operators._products import looped, sized, summed
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

LAST_OF_ONE = "1.10.0"
"""As of this release, a dimension reduced to one point uses its middle, unless align_corners is True."""


class Factors(list[Any]):
    """Scale factors that determine the output size, in contrast to scales given in addition to a size."""


def _unit(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which scales and positions are computed."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def _sizes(array: Array, output_size: Any, factors: Any, n: int) -> tuple[list[int], list[float | None]]:
    if array.ndim != n + 2:
        raise fail(f"It is expected input_size equals to {n + 2}, but got size {array.ndim}")
    if output_size is not None and len(output_size) != n:
        raise fail(f"It is expected output_size equals to {n}, but got size {len(output_size)}")
    if (output_size is None and factors is None) or (output_size is not None and factors.__class__ is Factors):
        raise fail("Must specify exactly one of output_size and scale_factors")
    sizes = (
        [int(item) for item in output_size]
        if output_size is not None
        else [_whole(size * factor) for size, factor in zip(array.shape[2:], factors, strict=True)]
    )
    scales: list[float | None] = (
        [None] * n if factors is None else [None if factor is None else float(factor) for factor in factors]
    )
    if (array.size == 0 and array.shape[0]) or any(size <= 0 for size in sizes) or any(size <= 0 for size in array.shape[2:]):
        raise fail(f"Input and output sizes should be greater than 0, but got input {list(array.shape[2:])} and output {sizes}")
    sized(*array.shape[:2], *sizes)
    return sizes, scales


def _whole(size: float) -> int:
    if not math.isfinite(size):
        raise Unsupported("the reference reader does not support scale factors that are not finite", code="value")
    return int(size)


def _scale(
    size: int, out: int, factor: float | None, align_corners: bool, unit: np.dtype[Any], *, one_is_first: bool = False
) -> Any:
    if one_is_first and out == 1:
        return unit.type(0)
    if align_corners:
        return unit.type((size - 1) / unit.type(out - 1)) if out > 1 else unit.type(0)
    return unit.type(1.0 / factor) if factor is not None and factor > 0 else unit.type(unit.type(size) / unit.type(out))


def _arguments(n: int, rest: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Collect the scales, which are passed as a list (the overload ``vec``) or one by one."""
    factors = (
        keywords["scale_factors"] if "scale_factors" in keywords else rest[0] if rest and rest[0].__class__ is list else None
    )
    if factors is not None:
        return Factors(factors)
    names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[n]
    given = [*rest, *(keywords[name] for name in names if name in keywords)]
    return given if any(item is not None for item in given) else None


def _into_out(call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap an operator to handle ``out``, which is not a scale."""

    def with_out(self: Tensor, output_size: Any, *rest: Any, out: Tensor | None = None, **keywords: Any) -> Tensor:
        tensor = call(self, output_size, *rest, **keywords)
        return tensor if out is None else into(out, tensor.array)

    return with_out


# ----------------------------------------------------------------------------------------------------------------- nearest


def _always(array: Array, sizes: list[int]) -> bool:
    del array, sizes
    return True


def _never(array: Array, sizes: list[int]) -> bool:
    del array, sizes
    return False


def _nearest(n: int, since: str, *, exact: bool, copies: Callable[[Array, list[int]], bool]) -> None:
    """Register nearest-neighbor upsampling as of a release.

    Parameters:
        copies: whether elements are copied (equal sizes) or doubled (twice the size) regardless of a given scale.
    """

    def call(self: Tensor, output_size: Any = None, *rest: Any, **keywords: Any) -> Tensor:
        array = self.array
        sizes, scales = _sizes(array, output_size, _arguments(n, rest, keywords), n)
        unit = _unit(array.dtype)
        for at, (out, factor) in enumerate(zip(sizes, scales, strict=True)):
            size = array.shape[2 + at]
            scale = _scale(size, out, factor, False, FLOAT32)
            points = np.arange(out).astype(FLOAT32)
            if out in {size, 2 * size} and copies(self.array, sizes):
                scale = np.float32(size / out)
            where = np.floor((points + np.float32(0.5)) * scale if exact else points * scale)
            array = np.take(array, np.minimum(where.astype(INT64), size - 1), axis=2 + at)
        del unit
        return Tensor(np.ascontiguousarray(array))

    operator(f"aten::_upsample_nearest_exact{n}d" if exact else f"aten::upsample_nearest{n}d", since=since)(_into_out(call))


for _n in (1, 2, 3):
    _nearest(_n, "1.0.0", exact=False, copies=_always)
    _nearest(_n, "1.0.0", exact=True, copies=_never)
_nearest(1, "1.9.0", exact=False, copies=_never)
_nearest(2, "1.9.0", exact=False, copies=by_format)
_nearest(3, "1.9.0", exact=False, copies=by_format)
_nearest(2, "2.0.0", exact=False, copies=by_channels)
_nearest(3, "2.0.0", exact=False, copies=by_channels)


# ------------------------------------------------------------------------------------------------------------------ linear


def _linear(n: int, name: str, since: str) -> None:
    def call(self: Tensor, output_size: Any, align_corners: bool, *rest: Any, **keywords: Any) -> Tensor:
        array = self.array
        if array.dtype.kind in "ib":
            raise not_implemented("compute_indices_weights_linear", array.dtype)
        directions = _directions(array, output_size, align_corners, _arguments(n, rest, keywords), n, since)
        return Tensor(
            _rounded(linear(array.astype(_unit(array.dtype), copy=False), directions, align_corners, since), array.dtype)
        )

    operator(f"aten::{name}", since=since)(_into_out(call))


def _directions(array: Array, output_size: Any, align_corners: bool, factors: Any, n: int, since: str) -> list[Direction]:
    sizes, scales = _sizes(array, output_size, factors, n)
    unit, first = _unit(array.dtype), Release(since) < Release(LAST_OF_ONE)
    return [
        Direction(size, out, factor, _scale(size, out, factor, align_corners, unit, one_is_first=first))
        for size, out, factor in zip(array.shape[2:], sizes, scales, strict=True)
    ]


def _rounded(value: Array, dtype: np.dtype[Any]) -> Array:
    return np.clip(np.rint(value), 0, 255).astype(dtype) if dtype.kind == "u" else value.astype(dtype)


for _n, _name in ((1, "upsample_linear1d"), (2, "upsample_bilinear2d"), (3, "upsample_trilinear3d")):
    for _since in sorted({*LINEAR, LAST_OF_ONE}, key=Release):
        _linear(_n, _name, _since)


def _bicubic(since: str) -> None:
    def call(self: Tensor, output_size: Any, align_corners: bool, *rest: Any, **keywords: Any) -> Tensor:
        """Bicubic upsampling."""
        array = self.array
        if array.dtype.kind in "ib":
            raise not_implemented("compute_indices_weights_cubic", array.dtype)
        directions = _directions(array, output_size, align_corners, _arguments(2, rest, keywords), 2, since)
        return Tensor(
            _rounded(cubic(array.astype(_unit(array.dtype), copy=False), directions, align_corners, since), array.dtype)
        )

    operator("aten::upsample_bicubic2d", since=since)(_into_out(call))


for _since in sorted({*CUBIC, LAST_OF_ONE}, key=Release):
    _bicubic(_since)


def _filtered(name: str, since: str, support: float, weigh: Any, *, copies: bool) -> None:
    """Register antialiased resampling, with a filter as wide as the scale.

    Parameters:
        copies: whether a dimension whose size does not change is copied regardless of a given scale.
    """

    def call(self: Tensor, output_size: Any, align_corners: bool, *rest: Any, **keywords: Any) -> Tensor:
        array = self.array
        sizes, scales = _sizes(array, output_size, _arguments(2, rest, keywords), 2)
        value = array.astype(FLOAT64)
        for at, (out, factor) in enumerate(zip(sizes, scales, strict=True)):
            size = array.shape[2 + at]
            if size == out and copies:
                continue
            scale = float(_scale(size, out, factor, align_corners, FLOAT64))
            reach = support * max(scale, 1.0)
            looped(out, int(min(size, 2 * reach + 2)) * 100)
            sized(out, size)
            table = np.zeros((out, size))
            for place in range(out):
                center = scale * (place + 0.5)
                low, high = max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), size)
                weights = np.asarray([weigh(abs((index - center + 0.5) / max(scale, 1.0))) for index in range(low, high)])
                table[place, low:high] = weights / weights.sum()
            value = np.moveaxis(np.tensordot(value, table, ([2 + at], [1])), -1, 2 + at)
        return Tensor(_rounded(value, array.dtype))

    operator(f"aten::{name}", since=since)(_into_out(call))


def _triangle(x: float) -> float:
    return max(1 - x, 0.0)


def _cubic(x: float) -> float:
    a = -0.5
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _lanczos(x: float) -> float:
    return float(np.sinc(x) * np.sinc(x / 3)) if x < 3 else 0.0


for _since, _copies in (("1.0.0", False), ("2.0.0", True)):
    _filtered("_upsample_bilinear2d_aa", _since, 1.0, _triangle, copies=_copies)
    _filtered("_upsample_bicubic2d_aa", _since, 2.0, _cubic, copies=_copies)
    _filtered("_upsample_lanczos2d_aa", _since, 3.0, _lanczos, copies=_copies)


# ------------------------------------------------------------------------------------- the operators of F.interpolate to 1.4


def _by_mode(
    input: Tensor,  # noqa: A002
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    *,
    since: str,
    by_factor: bool = False,
) -> Tensor:
    """Sizes determine the scales unless factors are to be used; a factor gives the output size, rounded down."""
    n = input.array.ndim - 2
    if size is None and scale_factor is None:
        raise fail("either size or scale_factor should be defined")
    factors = (
        []
        if scale_factor is None
        else [float(scale_factor)] * n
        if scale_factor.__class__ in {int, float}
        else list(scale_factor)
    )
    if size is not None:
        out = [size] * n if size.__class__ is int else list(size)
    else:
        out = [_whole(item * factor) for item, factor in zip(input.array.shape[2:], factors, strict=False)]
        if len(out) < n:
            raise fail(f"scale_factor shape must match input shape. Input is {n}D, scale_factor size is {len(factors)}")
    if mode in {"nearest", "area"} and align_corners is not None:
        raise fail("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    if n not in {1, 2, 3}:
        raise fail(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {n + 2}D) for the modes: nearest | linear | bilinear | trilinear (got {mode})"
        )
    if mode == "area":
        return resolve(f"aten::adaptive_avg_pool{n}d", Release(since))(input, out)  # type: ignore[no-any-return]
    if by_factor and len(factors) != n:
        raise Unsupported("the reference reader requires as many scale factors as dimensions", code="value")
    given = factors if by_factor else []
    if mode == "nearest":
        return resolve(f"aten::upsample_nearest{n}d", Release(since))(input, out, *given)  # type: ignore[no-any-return]
    name = {
        ("linear", 1): "linear1d",
        ("bilinear", 2): "bilinear2d",
        ("bicubic", 2): "bicubic2d",
        ("trilinear", 3): "trilinear3d",
    }.get((mode, n))
    if name is None:
        raise fail(f"Got {n + 2}D input, but mode {mode} needs a different number of dimensions")
    return resolve(f"aten::upsample_{name}", Release(since))(input, out, bool(align_corners), *given)  # type: ignore[no-any-return]


def _interpolate(since: str) -> None:
    def call(
        input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,  # noqa: A002
        recompute_scale_factor: bool | None = None, antialias: bool = False,
    ) -> Tensor:  # fmt: skip
        """``F.interpolate`` as an operator, using the upsampling operators of the same release."""
        if antialias:
            raise Unsupported("the reference reader does not support aten::__interpolate with antialias", code="operator")
        by_factor = recompute_scale_factor is False and scale_factor is not None
        return _by_mode(input, size, scale_factor, mode, align_corners, since=since, by_factor=by_factor)

    operator("aten::__interpolate", "aten::__upsample", since=since)(call)


for _since in sorted({*LINEAR, *CUBIC, LAST_OF_ONE}, key=Release):
    _interpolate(_since)


@operator("aten::__upsample_nearest")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:  # noqa: A002
    """``F.upsample_nearest``."""
    return _by_mode(input, size, scale_factor, "nearest", None, since=LAST_OF_ONE)


@operator("aten::__upsample_bilinear")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:  # noqa: A002
    """``F.upsample_bilinear`` with aligned corners."""
    return _by_mode(input, size, scale_factor, "bilinear", True, since=LAST_OF_ONE)


# ---------------------------------------------------------------------------------------------------------------- sampling


def _unnormalised(x: Array, size: int, align_corners: bool) -> Array:
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _reflected_in_picture(x: Array, size: int, align_corners: bool) -> Array:
    """Reflect like the vectorized kernel for images: subtract multiples of twice the span without rounding. Nonfinite values become NaN."""
    low, twice = (0.0, 2 * (size - 1)) if align_corners else (-0.5, 2 * size)
    if not twice:
        return np.zeros_like(x)
    kind = x.dtype.type
    away = np.abs(x - kind(low))
    extra = (away - np.trunc(away / kind(twice)).astype(np.longdouble) * twice).astype(x.dtype)
    other = kind(twice) - extra
    return np.asarray(np.where(extra < other, extra, other) + kind(low))


def _reflected_in_volume(x: Array, size: int, align_corners: bool) -> Array:
    """Reflect one number at a time; the number of reflections is a 32-bit integer, the minimum on overflow."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if not span:
        return np.zeros_like(x)
    kind = x.dtype.type
    away = np.abs(x - kind(low))
    extra, times = np.fmod(away, kind(span)), np.floor(away / kind(span))
    even = ~(times < INT32_RANGE) | (np.fmod(times, 2) == 0)
    return np.asarray(np.where(even, extra + kind(low), kind(span) - extra + kind(low)))


def _bounded(x: Array, size: int, padding_mode: int, align_corners: bool, *, volume: bool = False, clipped: bool = True) -> Array:
    """Limit coordinates to the image or volume. NaN becomes the first position of an image, or the last position of a volume."""
    if padding_mode == 0:
        return x
    if padding_mode == 2:
        x = (_reflected_in_volume if volume else _reflected_in_picture)(x, size, align_corners)
        if not clipped:
            return x
    return np.asarray(np.where(np.isnan(x), size - 1 if volume else 0, np.clip(x, 0, size - 1)).astype(x.dtype))


def _inside(coordinates: list[Array], sizes: tuple[int, ...]) -> Array:
    inside = np.ones(coordinates[0].shape, np.bool_)
    for coordinate, size in zip(coordinates, sizes, strict=True):
        inside &= (coordinate >= 0) & (coordinate <= size - 1)
    return inside


def _pick(image: Array, coordinates: list[Array]) -> Array:
    """The elements of [batch, channels, *spatial] at integer positions [batch, ...]; zero outside."""
    spatial = image.shape[2:]
    inside = _inside(coordinates, spatial)
    whole = [
        np.clip(np.nan_to_num(coordinate, nan=-1), 0, size - 1).astype(INT64)
        for coordinate, size in zip(coordinates, spatial, strict=True)
    ]
    batch = np.arange(image.shape[0]).reshape(-1, *(1,) * (coordinates[0].ndim - 1))
    result = np.moveaxis(image, 1, -1)[(batch, *whole)]
    return np.moveaxis(np.where(inside[..., None], result, 0.0), -1, 1)


INT32_RANGE = 2.0**31
VOLUME = 5  # number of dimensions of a batch of volumes


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x)


def _unnormalised_at_once(x: Array, size: int) -> Array:
    """Unnormalize without aligned corners like the kernel for images: the product is not rounded before 0.5 is subtracted."""
    return np.asarray(((x + 1).astype(np.longdouble) * (size / 2) - 0.5).astype(x.dtype))


def _grid_sample(
    input: Tensor,  # noqa: A002
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    nearest: Callable[[Array], Array] = np.rint,
    *,
    clipped: bool = True,
) -> Tensor:
    """Sample an image or volume at a grid of points.

    Parameters:
        nearest: the rounding function for nearest-neighbor mode.
        clipped: whether reflected positions are clipped.
    """
    image, points = input.array, grid.array
    n = image.ndim - 2
    if points.dtype != image.dtype:
        raise fail("grid_sampler(): expected input and grid to have same dtype")
    if points.shape[0] != image.shape[0] or points.shape[-1] != n or points.ndim != image.ndim:
        raise fail(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes {list(points.shape)}"
        )
    wide = image.astype(FLOAT64)
    sizes = image.shape[2:]
    unit = FLOAT64 if image.dtype == FLOAT64 else FLOAT32  # the last bit can determine the nearest pixel
    at_once = interpolation_mode != 2 and n == 2 and not align_corners
    raw = [
        _unnormalised_at_once(entry, size) if at_once else _unnormalised(entry, size, align_corners)
        for entry, size in ((points[..., n - 1 - at].astype(unit), sizes[at]) for at in range(n))
    ]
    if interpolation_mode == 2:
        return Tensor(_bicubic_sample(image.astype(unit), raw, sizes, padding_mode, align_corners).astype(image.dtype))
    volume = image.ndim == VOLUME
    where = [
        _bounded(entry, size, padding_mode, align_corners, volume=volume, clipped=clipped)
        for entry, size in zip(raw, sizes, strict=True)
    ]
    if interpolation_mode == 1:
        return Tensor(_pick(wide, [nearest(entry) for entry in where]).astype(image.dtype))
    base = [np.floor(entry) for entry in where]
    value: Any = 0.0
    for corner in np.ndindex(*(2,) * n):
        weight: Any = 1.0
        for side, item, low in zip(corner, where, base, strict=True):
            weight = weight * (item - low if side else low + 1 - item)
        places = [low + side for side, low in zip(corner, base, strict=True)]
        part = _pick(wide, places) * weight[:, None]
        value = value + (
            np.where(_inside(places, sizes)[:, None], part, 0.0) if volume else part
        )  # positions outside of a volume are skipped
    return Tensor(value.astype(image.dtype))


def _bicubic_sample(image: Array, raw: list[Array], sizes: tuple[int, ...], padding_mode: int, align_corners: bool) -> Array:
    base = [np.floor(item) for item in raw]
    parts = [item - low for item, low in zip(raw, base, strict=True)]
    weights = [[far_weight(t + 1), near_weight(t), near_weight(1 - t), far_weight(2 - t)] for t in parts]
    value: Any = 0.0
    for i, j in np.ndindex(4, 4):
        at = [
            _bounded(low + offset - 1, size, padding_mode, align_corners)
            for low, offset, size in zip(base, (i, j), sizes, strict=True)
        ]
        value = value + _pick(image, at) * (weights[0][i] * weights[1][j])[:, None]
    return np.asarray(value)


@operator("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler_1_0(
    input: Tensor,  # noqa: A002
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool = True,
) -> Tensor:
    """Up to 1.2 corners are always aligned; up to 1.4 a reflected place of a volume with aligned corners is outside if it is not finite, up to 2.0 its halves round away from zero."""
    nearest, volume = (_half_away, True) if input.array.ndim == VOLUME else (np.rint, False)
    return _grid_sample(
        input, grid, interpolation_mode, padding_mode, align_corners, nearest, clipped=not (volume and align_corners)
    )


@operator("aten::grid_sampler", "aten::grid_sampler_3d", since="1.5.0")
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool = True) -> Tensor:  # noqa: A002
    """Reflected positions of a volume are clipped as well."""
    nearest = _half_away if input.array.ndim == VOLUME else np.rint
    return _grid_sample(input, grid, interpolation_mode, padding_mode, align_corners, nearest)


@operator("aten::grid_sampler", "aten::grid_sampler_3d", since="2.1.0")
def grid_sampler_2_1(
    input: Tensor,  # noqa: A002
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool = True,
) -> Tensor:
    """Same as :func:`grid_sampler`; nearest-neighbor mode rounds halves to even."""
    return _grid_sample(input, grid, interpolation_mode, padding_mode, align_corners)


@operator("aten::affine_grid_generator")
def affine_grid_generator_1_0(theta: Tensor, size: list[int]) -> Tensor:
    """Up to 1.2 the single point of a dimension of size one is at the end, not in the middle."""
    return _affine_grid(theta, size, align_corners=True, single=-1.0)


@operator("aten::affine_grid_generator", since="1.3.0")
def affine_grid_generator(theta: Tensor, size: list[int], align_corners: bool = True) -> Tensor:
    """Affine sampling grids."""
    return _affine_grid(theta, size, align_corners=align_corners, single=0.0)


def _affine_grid(theta: Tensor, size: list[int], *, align_corners: bool, single: float) -> Tensor:
    if len(size) not in {4, 5}:
        raise fail("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.array.ndim != 3 or theta.array.shape[1:] != (len(size) - 2, len(size) - 1) or len(theta.array) != size[0]:
        raise fail(
            f"Expected a batch of {size[0]} affine matrices of shape {len(size) - 2}x{len(size) - 1}. Got {list(theta.shape)}."
        )
    if any(item < 0 for item in size[2:]):
        raise fail(f"number of steps must be non-negative, but the output size is {list(size)}")
    matrices = theta.array.astype(FLOAT64)
    sized(*size[2:], len(size))
    sized(*size[2:], *matrices.shape[:-1])
    axes = []
    for number in size[2:]:
        line = np.linspace(-1, 1, number) if number != 1 else np.full(1, single)
        axes.append(line if align_corners or not number else line * (number - 1) / number)
    grid = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*reversed(grid), np.ones_like(grid[0])], axis=-1)
    value = summed("...k,bjk->b...j", points, matrices)
    return Tensor(value.astype(theta.array.dtype))
