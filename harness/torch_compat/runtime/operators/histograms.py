"""Histograms in one and several dimensions, with bins of equal width or with given edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT64, HALVES, INT64, Array, fail, into, not_implemented
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.operators.ranges import spaced
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__: list[str] = []


def _ends(points: Array, bounds: list[float] | None) -> list[tuple[float, float]]:
    """The range of the bins in each dimension.

    Raises:
        Raised: the bounds are not finite, or are reversed.
    """
    count = points.shape[1]
    if bounds is not None:
        if len(bounds) != 2 * count:
            raise fail(
                f"torch.histogramdd(): for a {count}-dimensional histogram range should have {2 * count} elements, but got {len(bounds)}"
            )
        results = [(float(bounds[2 * at]), float(bounds[2 * at + 1])) for at in range(count)]
    elif len(points):
        results = [(float(low), float(high)) for low, high in zip(points.min(axis=0), points.max(axis=0), strict=True)]
    else:
        results = [(0.0, 1.0)] * count
    for at, (low, high) in enumerate(results):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise fail(f"torch.histogramdd(): dimension {at}'s range [{low}, {high}] is not finite")
        if low > high:
            raise fail(f"torch.histogramdd(): min should not exceed max, but got min {low} max {high} for dimension {at}")
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in results]


def _upper_bounds(edges: Array, x: Array) -> Array:
    """The result of ``std::upper_bound`` for each element, also for edges that are not sorted."""
    first, left = np.zeros(x.shape, INT64), np.full(x.shape, len(edges), INT64)
    while left.any():
        half = left // 2
        below = x < edges[np.minimum(first + half, len(edges) - 1)]
        first = np.where(below | (left == 0), first, first + half + 1)
        left = np.where(below | (left == 0), half, left - half - 1)
    return first


def _histogram(
    self: Tensor, bins: list[Any], bounds: list[float] | None, weight: Tensor | None, density: bool, *, era: int
) -> tuple[Tensor, list[Tensor]]:
    array = self.array
    if array.ndim < 2:
        raise fail("torch.histogramdd(): input tensor should have at least 2 dimensions")
    count = array.shape[-1]
    if len(bins) != count:
        raise fail(f"torch.histogramdd(): expected {count} bin counts or sequences of bin edges, but got {len(bins)}")
    if array.dtype in HALVES:
        raise Unsupported("histograms of 16-bit dtypes are not supported", code="dtype")
    if array.dtype not in (np.float32, FLOAT64):
        raise not_implemented("histogram_cpu" if count == 1 else "histogramdd", array.dtype)
    points = array.reshape(-1, count)
    if weight is not None:
        if weight.array.dtype != array.dtype:
            raise fail(
                "torch.histogramdd(): if weight tensor is provided, input tensor and weight tensor should have the same dtype"
            )
        if weight.array.shape != array.shape[:-1]:
            raise fail(
                "torch.histogramdd(): if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension"
            )
    edges: list[Array] = []
    ends = _ends(points, bounds) if any(item.__class__ is int for item in bins) else []
    for at, edge in enumerate(bins):
        if edge.__class__ is int:
            if edge < 1:
                raise fail(f"torch.histogramdd(): bins must be > 0, but got {edge} for dimension {at}")
            sized(edge + 1)
            edges.append(spaced(*ends[at], edge + 1, array.dtype, era=era))
        else:
            if edge.array.dtype != array.dtype:
                raise fail("torch.histogramdd(): input tensor and bins tensors should have the same dtype")
            if edge.array.ndim != 1 or not edge.array.size:
                raise fail("torch.histogramdd(): bins tensor should have one dimension and at least 1 element")
            edges.append(edge.array)
    shape = tuple(len(item) - 1 for item in edges)
    sized(*shape)
    inside = np.ones(len(points), np.bool_)
    places: Array = np.zeros(len(points), INT64)
    for at, edge in enumerate(edges):
        x = points[:, at]
        inside &= (x >= edge[0]) & (x <= edge[-1])
        last = len(edge) - 2
        if bins[at].__class__ is int and edge[0] == edge[-1]:
            bin_ = np.full(x.shape, min(1, last))  # the place between equal ends is NaN
        else:
            bin_ = np.minimum(_upper_bounds(edge, x) - 1, last)
        places = places * max(shape[at], 1) + bin_
    value: Array = np.zeros(math.prod(shape), array.dtype)
    if value.size:
        np.add.at(value, places[inside], 1 if weight is None else weight.array.reshape(-1)[inside])
    value = value.reshape(shape)
    if density:
        value = value / value.sum(dtype=FLOAT64).astype(array.dtype)
        for at, edge in enumerate(edges):
            value = value / np.diff(edge).reshape([-1 if dim == at else 1 for dim in range(count)])
    return Tensor(value.astype(array.dtype)), [Tensor(item.copy()) for item in edges]


def _histograms() -> None:
    # The edges are those of linspace, which has counted the second half from the end since 2.0, element by element.
    for since, era in (("1.0.0", 2), ("2.0.0", 3)):

        def histogram(
            self: Tensor, bins: Any = 100, *, range: list[float] | None = None, weight: Tensor | None = None, density: bool = False,  # noqa: A002
            hist: Tensor | None = None, bin_edges: Tensor | None = None, era: int = era,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            """Counts, or sums of weights, of values in bins, and the bin edges."""
            flat = None if weight is None else Tensor(weight.array.reshape(-1))
            if weight is not None and weight.array.size != self.array.size:
                raise fail("torch.histogram(): if weight tensor is provided it should have as many elements as the input tensor")
            if hist is not None and bin_edges is not None and hist.storage is bin_edges.storage:
                raise Unsupported(
                    "one tensor for both the counts and the edges is not supported: the write order is unknown", code="operator"
                )
            tensor, (edges,) = _histogram(Tensor(self.array.reshape(-1, 1)), [bins], range, flat, density, era=era)
            if hist is not None and bin_edges is not None:
                return into(hist, tensor.array, exact=True), into(bin_edges, edges.array, exact=True)
            return tensor, edges

        def histogramdd(
            self: Tensor, bins: Any, range: list[float] | None = None, weight: Tensor | None = None, density: bool = False,  # noqa: A002
            era: int = era,
        ) -> tuple[Tensor, list[Tensor]]:  # fmt: skip
            """Counts, or sums of weights, of points in boxes, and the edges of the boxes along each dimension."""
            count = self.array.shape[-1] if self.array.ndim else 0
            listed = bins if bins.__class__ is list else [bins] * count
            if len(listed) != count:
                raise Unsupported(
                    "a histogram whose bins do not match the number of dimensions is not supported", code="operator"
                )
            return _histogram(self, list(listed), range, weight, density, era=era)

        operator("aten::histogram", since=since, gradient=False)(histogram)
        operator("aten::histogramdd", since=since, gradient=False)(histogramdd)


_histograms()
