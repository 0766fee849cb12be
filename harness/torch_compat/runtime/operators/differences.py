"""Differences and cumulative integrals along dimensions: ``gradient`` and ``cumulative_trapezoid``."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import UINT8, Array, Scalar, axes, axis, cast, fail, floating
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.reductions import places_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__: list[str] = []


def _part(array: Array, at: int, start: int | None, stop: int | None) -> Array:
    return array[(*(slice(None),) * at, slice(start, stop))]


def _directions(self: Tensor, dim: Any, spacing: Any, edge_order: int) -> list[int]:
    """The dimensions along which a gradient is estimated.

    Raises:
        Raised: an argument does not fit the tensor.
    """
    array = self.array
    if array.dtype == UINT8:
        raise fail("torch.gradient does not support uint8 input.")
    many = spacing.__class__ is list
    if many and dim is None and len(spacing) not in {1, array.ndim}:
        raise fail(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {array.ndim}, but got a list of length {len(spacing)}"
        )
    if many and dim.__class__ is list and len(spacing) != len(dim):
        raise fail(
            f"torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, but got a "
            f"spacing argument of length {len(spacing)} and a dim argument of length {len(dim)}."
        )
    if edge_order not in {1, 2}:
        raise fail("torch.gradient only supports edge_order=1 and edge_order=2.")
    results = list(axes(dim, array.ndim, empty_is_all=False)) if dim is not None else list(range(array.ndim))
    if dim is not None and not array.ndim:
        results = []
    for number in results:
        if array.shape[number] < edge_order + 1:
            raise fail("torch.gradient expected each dimension size to be at least edge_order+1")
    return results


@operator("aten::gradient")
def gradient(self: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> list[Tensor]:
    """The gradient of samples, by central differences, with one-sided differences at the ends."""
    result = _directions(self, dim, spacing, edge_order)
    looped(len(result), self.array.size)
    steps = spacing if spacing.__class__ is list else [1 if spacing is None else spacing] * len(result)
    if len(steps) != len(result):
        raise fail("torch.gradient expected one spacing for each dimension")
    results = []
    for at, step in zip(result, steps, strict=True):
        if step.__class__ is Tensor:
            results.append(Tensor(_at_places(self.array, at, step, edge_order)))
        else:
            results.append(Tensor(_at_even_steps(self.array, at, step, edge_order)))
    return results


def _computed(array: Array, *others: Array | Scalar) -> np.dtype[Any]:
    kind = dtypes.result_type(tuple(Tensor(other) if isinstance(other, np.ndarray) else other for other in (array, *others)))
    return kind.array if kind.category >= 2 else dtypes.default_dtype().array


def _wide(kind: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex128 if kind.kind == "c" else np.float64)


def _at_even_steps(array: Array, at: int, step: Scalar, edge_order: int) -> Array:
    kind = _computed(array, step)
    x = array.astype(_wide(kind)) if array.dtype.kind not in "iu" else array

    def cut(start: int, stop: int | None = None) -> Array:
        return _part(x, at, start, stop)

    center = (cut(2) - cut(0, -2)) / (2 * step)
    if edge_order == 1:
        first, last = (cut(1, 2) - cut(0, 1)) / step, (cut(-1) - cut(-2, -1)) / step
    else:
        first = (-1.5 * cut(0, 1) + 2 * cut(1, 2) - 0.5 * cut(2, 3)) / step
        last = (0.5 * cut(-3, -2) - 2 * cut(-2, -1) + 1.5 * cut(-1)) / step
    return cast(np.concatenate([first, center, last], axis=at), kind)


def _at_places(array: Array, at: int, places: Tensor, edge_order: int) -> Array:
    points = places.array
    if points.ndim != 1:
        raise fail(
            f"torch.gradient expected each element of spacing to have one dimension, but got an element with {points.ndim} dimensions!"
        )
    if len(points) != array.shape[at]:
        raise Unsupported("gradients with a different number of positions than samples are not supported", code="operator")
    kind = _computed(array, points)
    x = cast(array, kind)
    shape = [-1 if index == at else 1 for index in range(array.ndim)]
    apart = floating(np.diff(points)).reshape(shape)  # the factors of the samples have the dtype of the positions
    h1, h2 = _part(apart, at, None, -1), _part(apart, at, 1, None)

    def cut(start: int, stop: int | None = None) -> Array:
        return _part(x, at, start, stop)

    center = -h2 / (h1 * (h1 + h2)) * cut(0, -2) + (h2 - h1) / (h1 * h2) * cut(1, -1) + h1 / (h2 * (h1 + h2)) * cut(2)
    if edge_order == 1:
        ends = [_part(array, at, *item) for item in ((0, 1), (1, 2), (-2, -1), (-1, None))]  # whose differences wrap around
        first = cast(ends[1] - ends[0], kind) / _part(apart, at, 0, 1)
        last = cast(ends[3] - ends[2], kind) / _part(apart, at, -1, None)
    else:
        a, b = _part(apart, at, 0, 1), _part(apart, at, 1, 2)
        first = -(2 * a + b) / (a * (a + b)) * cut(0, 1) + (a + b) / (a * b) * cut(1, 2) - a / (b * (a + b)) * cut(2, 3)
        a, b = _part(apart, at, -2, -1), _part(apart, at, -1, None)
        last = b / (a * (a + b)) * cut(-3, -2) - (a + b) / (a * b) * cut(-2, -1) + (a + 2 * b) / (b * (a + b)) * cut(-1)
    return cast(np.concatenate([first, center, last], axis=at), kind)


@operator("aten::cumulative_trapezoid")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """The cumulative trapezoidal integral, with a constant spacing or given positions."""
    array = y.array
    for name, tensor in (("y", y), ("x", x)):
        if tensor.__class__ is Tensor and tensor.array.dtype.kind == "b":
            raise fail(f"cumulative_trapezoid: received a bool input for `{name}`, but bool is not supported")
    if x is None and dx.__class__ in {bool, complex}:
        raise fail("cumulative_trapezoid: Currently, we only support dx as a real number.")
    at = axis(dim, array.ndim)
    if not array.ndim:
        raise fail("slice() cannot be applied to a 0-dim tensor.")
    left, right = _part(array, at, None, -1), _part(array, at, 1, None)
    if x is None:
        sums = floating(left + right)
        wide = _wide(sums.dtype)
        parts = (sums * sums.dtype.type(float(dx.real) / 2.0)).astype(wide)
        return Tensor(cast(np.cumsum(parts, axis=at) + 0.0, sums.dtype))  # a sum starts at zero, which is not negative
    places = places_of("cumulative_trapezoid", x, array, at)
    steps = np.diff(places, axis=at)  # places may have more dimensions than points: those are counted from the points' first
    kind = dtypes.result_type((Tensor(steps), Tensor(left))).array
    areas = cast(steps, kind) * cast(left + right, kind)
    whole = np.int64 if kind.kind in "iu" else _wide(kind)
    running = (np.cumsum(areas, axis=at, dtype=whole) + 0) / 2
    return Tensor(cast(np.asarray(running), kind if kind.kind in "fcV" else dtypes.default_dtype().array))
