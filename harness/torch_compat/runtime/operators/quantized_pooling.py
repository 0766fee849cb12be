"""Pooling, means and interpolation of quantized tensors, on the integers; the result has the scale and the zero point of the input."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import Array, fail, sizes
from torch_compat.runtime.operators._memory_formats import CHANNELS_LAST, CONTIGUOUS, format_of, is_formatted
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators._quantized_elements import (
    APART,
    ONE_BY_ONE,
    affine,
    channels_last,
    integers,
    like,
    quantized_as,
)
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.operators.quantized import dequantized
from torch_compat.runtime.operators.quantized_activations import of_opaque
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

HALF, CLOSE = 0.5, 1e-4


def _computed(name: str, elements: Array, *args: Any, **keywords: Any) -> Array:
    """The result of an operator of the release on integers as float64."""
    result = resolve(name, libraries.release)(Tensor(elements.astype(np.float64)), *args, **keywords)
    array: Array = result.array
    return array


def _laid(value: OpaqueTensor, result: Array, scale: float, zero: int) -> OpaqueTensor:
    """The result in the memory format of the argument."""
    elements = value.parts["elements"]
    order = format_of(elements)
    if elements.ndim == result.ndim and order != CONTIGUOUS:
        return like(value, channels_last(result), scale, zero)
    return like(value, np.asarray(result, order="C"), scale, zero)


# ----------------------------------------------------------------------------------------------------------------- maxima


def _max_pool(value: Any, n: int, *options: Any) -> OpaqueTensor:
    elements, scale, zero = affine(value, "max_pool")
    whole = _computed(f"aten::max_pool{n}d", elements, *options).astype(elements.dtype)
    return _laid(value, whole, scale, zero)


def _max_pools(n: int) -> None:
    @of_opaque(f"aten::max_pool{n}d", f"aten::quantized_max_pool{n}d")
    def max_pool(
        self: OpaqueTensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> OpaqueTensor:
        """The largest integers of windows."""
        return _max_pool(self, n, kernel_size, stride, padding, dilation, ceil_mode)

    @typed(f"quantized::max_pool{n}d")
    def quantized_max_pool(
        qx: OpaqueTensor,
        kernel_size: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        ceil_mode: bool = False,
    ) -> OpaqueTensor:
        """The largest integers of windows."""
        return _max_pool(qx, n, kernel_size, stride, padding, dilation, ceil_mode)


for _n in (1, 2, 3):
    _max_pools(_n)


# ----------------------------------------------------------------------------------------------------------------- averages


def _averages(value: OpaqueTensor, sums: Array, divisors: Array, *, adaptive: bool = False) -> OpaqueTensor:
    """The averages of windows.

    Parameters:
        sums: the sums of integers without the zero point.
        adaptive: whether the windows are those of an adaptive pool, which 2.13 rounds differently.
    """
    elements, scale, zero = affine(value, "avg_pool")
    bounds = np.iinfo(elements.dtype)
    lasts = is_formatted(elements, CHANNELS_LAST) or format_of(elements) != CONTIGUOUS
    with np.errstate(all="ignore"):
        factors = np.float32(1) / divisors.astype(np.float32)
        shares = sums.astype(np.float32) * factors
        fused = (sums.astype(np.float64) * factors + zero).astype(np.float32)
    together = np.rint(shares + np.float32(zero)).astype(np.float64)
    result = np.rint(shares).astype(np.float64) + zero if lasts else together
    singly = ONE_BY_ONE[0] <= libraries.release < ONE_BY_ONE[1]
    if lasts and (libraries.release < APART or (singly and adaptive)):
        result = np.rint(fused).astype(np.float64)
    elif lasts and singly:
        whole = result.shape[1] // LANES * LANES
        result[:, whole:] = together[:, whole:]
    return _laid(value, np.clip(result, bounds.min, bounds.max).astype(elements.dtype), scale, zero)


def _avg_pools(n: int) -> None:
    @of_opaque(f"aten::avg_pool{n}d")
    def avg_pool(
        self: OpaqueTensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> OpaqueTensor:  # fmt: skip
        """The averages of windows."""
        elements, _, zero = affine(self, "avg_pool")
        options = (kernel_size, stride, padding, ceil_mode)
        sums = _computed(f"aten::avg_pool{n}d", elements.astype(np.int64) - zero, *options, True, 1)
        if divisor_override is None:
            shares = _computed(f"aten::avg_pool{n}d", np.ones_like(elements), *options, count_include_pad, None)
            counts = _computed(f"aten::avg_pool{n}d", np.ones_like(elements), *options, True, 1)
            divisors = np.rint(counts / shares)
        else:
            divisors = np.array(divisor_override)
        return _averages(self, sums, divisors)


for _n in (2, 3):
    _avg_pools(_n)


def _adaptive(n: int) -> None:
    @of_opaque(f"aten::adaptive_avg_pool{n}d", f"aten::_adaptive_avg_pool{n}d")
    def adaptive_avg_pool(self: OpaqueTensor, output_size: Any) -> OpaqueTensor:
        """The averages of as many windows as the result has elements."""
        elements, scale, zero = affine(self, "adaptive_avg_pool")
        if elements.ndim not in {n + 1, n + 2}:
            raise fail(f"Expected {n + 1}D or {n + 2}D tensor, but got {list(elements.shape)}")
        out = sizes(output_size, n)
        if any(item < 1 for item in out) or not elements.size:
            raise Unsupported("the reference reader does not support empty results of adaptive pools", code="operator")
        sized(*elements.shape[:-n], *out)
        sums, counts = elements.astype(np.int64), np.ones((1,) * n, np.int64)
        for at in range(n):
            axis = elements.ndim - n + at
            size, count = elements.shape[axis], out[at]
            looped(count)
            places = [(index * size // count, -(-(index + 1) * size // count)) for index in range(count)]
            sums = np.stack([sums[(slice(None),) * axis + (slice(*place),)].sum(axis) for place in places], axis)
            widths = np.array([stop - start for start, stop in places])
            counts = counts * widths.reshape([-1 if other == at else 1 for other in range(n)])
        if format_of(elements) != CONTIGUOUS:
            return _averages(self, sums - counts * zero, np.broadcast_to(counts, sums.shape), adaptive=True)
        whole = np.rint(sums.astype(np.float32) * (np.float32(1) / counts.astype(np.float32))).astype(elements.dtype)
        return _laid(self, whole, scale, zero)


for _n in (2, 3):
    _adaptive(_n)


INNER = Release("1.13.0")
"""The first release that computes means over the last dimensions from the integers."""


def _inner(elements: Array, dim: Any) -> list[int]:
    """The dimensions of a mean if they are the last ones of contiguous integers of 8 bits, else none."""
    dims = dim if dim.__class__ is list else [dim]
    if elements.itemsize > 1 or not elements.flags.c_contiguous or not dims or any(item.__class__ is not int for item in dims):
        return []
    axes = sorted(item + elements.ndim if item < 0 else item for item in dims)
    return axes if axes == list(range(elements.ndim - len(axes), elements.ndim)) else []


@of_opaque("aten::mean")
def mean(self: OpaqueTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> OpaqueTensor:
    """The mean of the numbers, quantized again."""
    elements, scale, zero = affine(self, "mean")
    if dtype is not None and dtype != self.dtype.code:
        raise Unsupported("the reference reader does not convert means of quantized tensors", code="operator")
    if libraries.release >= INNER and elements.size and (axes := _inner(elements, dim)):
        count = math.prod(elements.shape[axis] for axis in axes)
        sums = elements.sum(tuple(axes), dtype=np.int64, keepdims=keepdim)
        return like(self, np.rint(sums.astype(np.float32) / np.float32(count)).astype(elements.dtype), scale, zero)
    values = dequantized(self)
    args = (values,) if dim is None or dim == [] else (values, dim, keepdim)
    result = resolve("aten::mean", libraries.release)(*args).array
    if not elements.flags.c_contiguous and (np.abs(np.abs(np.modf(result / np.float32(scale))[0]) - HALF) < CLOSE).any():
        raise Unsupported(
            "the last bits of sums that are not contiguous decide about a mean of quantized numbers", code="operator"
        )
    return quantized_as(self, result, scale, zero)


# ----------------------------------------------------------------------------------------------------------------- interpolation


def _nearest(name: str) -> None:
    @of_opaque(f"aten::{name}")
    def upsample(self: OpaqueTensor, *args: Any, **keywords: Any) -> OpaqueTensor:
        """The integers of the nearest places."""
        elements, scale, zero = affine(self, name)
        return _laid(self, _computed(f"aten::{name}", elements, *args, **keywords).astype(elements.dtype), scale, zero)


for _n in (1, 2, 3):
    _nearest(f"upsample_nearest{_n}d")
    _nearest(f"_upsample_nearest_exact{_n}d")


UNFUSED = Release("1.13.0")
"""The first release that computes places in row-major pictures without fused multiply-add."""
LANES = 8


class _Places(NamedTuple):
    """The two neighbors of each place along a dimension, and the weight of the second one."""

    first: Array
    second: Array
    weight: Array


def _places(size: int, out: int, aligned: bool, factor: Any, *, fused: bool) -> _Places:
    """The neighbors of the places of a result, in float32."""
    points = np.arange(out).astype(np.float32)
    if aligned:
        step = np.float32(size - 1) / np.float32(out - 1) if out > 1 else np.float32(0)
        at = step * points
    else:
        given = factor is not None and factor > 0
        step = np.float32(1.0 / factor) if given else np.float32(size) / np.float32(out)
        half = np.float32(0.5)
        inner = points + half
        at = (inner.astype(np.float64) * step - half).astype(np.float32) if fused else step * inner - half
        at = np.maximum(at, np.float32(0))
    first = np.minimum(at.astype(np.int64), size - 1)
    return _Places(first, np.minimum(first + 1, size - 1), at - first.astype(np.float32))


def _fused(a: Array, b: Array, c: Array) -> Array:
    return np.asarray((a.astype(np.float64) * b + c).astype(np.float32))


def _between(x: Array, rows: _Places, columns: _Places, *, order: int) -> Array:
    """Linear interpolation in two dimensions.

    Parameters:
        order: 0 without fused multiply-add, 1 fused with the first neighbor, 2 fused with the second one.
    """
    unit = np.float32(1)
    right, low = columns.weight, rows.weight[:, None]
    left, high = unit - right, unit - low
    corners = [x[..., a[:, None], b] for a in (rows.first, rows.second) for b in (columns.first, columns.second)]
    if order == 0:
        return high * (left * corners[0] + right * corners[1]) + low * (left * corners[2] + right * corners[3])
    if order == 1:
        upper, lower = (_fused(left, corners[at], right * corners[at + 1]) for at in (0, 2))
        return _fused(high, upper, low * lower)
    upper, lower = (_fused(right, corners[at + 1], left * corners[at]) for at in (0, 2))
    return _fused(low, lower, high * upper)


@of_opaque("aten::upsample_bilinear2d")
def upsample_bilinear2d(
    self: OpaqueTensor, output_size: Any, align_corners: bool = False, scales_h: Any = None, scales_w: Any = None
) -> OpaqueTensor:
    """Integers between those of the nearest places, computed in float32."""
    elements, scale, zero = affine(self, "upsample_bilinear2d")
    if elements.ndim != len(PICTURE) or not elements.size:
        raise fail(f"Non-empty 4D data tensor expected but got a tensor with sizes {list(elements.shape)}")
    if output_size is None or any(item.__class__ not in NUMBERS for item in (scales_h, scales_w)):
        raise Unsupported(
            "the reference reader supports bilinear interpolation of quantized tensors only to given sizes", code="operator"
        )
    out = sizes(output_size, 2)
    if min(out) < 1:
        raise fail(f"Input and output sizes should be greater than 0, but got output {list(out)}")
    sized(*elements.shape[:2], *out)
    lasts = format_of(elements) != CONTIGUOUS
    fused = lasts or libraries.release < UNFUSED
    factors = (scales_h, scales_w)
    rows, columns = (_places(elements.shape[2 + at], out[at], align_corners, factors[at], fused=fused) for at in range(2))
    x, name = elements.astype(np.float32), self.dtype.name

    def quantized(values: Array, *, fused: bool) -> Array:
        return integers(values - np.float32(zero), 1.0, zero, name, fused=fused)

    if not lasts:
        return _laid(self, quantized(_between(x, rows, columns, order=0), fused=False), scale, zero)
    whole = elements.shape[1] // LANES * LANES
    singly = ONE_BY_ONE[0] <= libraries.release < ONE_BY_ONE[1]
    first = quantized(_between(x[:, :whole], rows, columns, order=2), fused=not singly)
    rest = quantized(_between(x[:, whole:], rows, columns, order=1), fused=False)
    return _laid(self, np.concatenate([first, rest], 1), scale, zero)


PICTURE = (0, 1, 2, 3)
NUMBERS = frozenset({type(None), int, float})


@of_opaque("aten::__interpolate")
def interpolate(
    input: OpaqueTensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None, *rest: Any  # noqa: A002
) -> OpaqueTensor:  # fmt: skip
    """``F.interpolate`` of pictures, to the nearest place or bilinear."""
    elements, scale, zero = affine(input, "interpolate")
    if mode == "nearest":
        result = _computed("aten::__interpolate", elements, size, scale_factor, mode, align_corners, *rest)
        return _laid(input, result.astype(elements.dtype), scale, zero)
    if mode == "bilinear" and size is not None:
        product: OpaqueTensor = upsample_bilinear2d(input, size, bool(align_corners))
        return product
    raise Unsupported(f"the reference reader does not support {mode[:40]!r} interpolation of quantized tensors", code="operator")
