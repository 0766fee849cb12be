"""Sorting, top-k, and counting into bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.arrays import counted
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators import _algorithms as algorithms
from torch_compat.runtime.operators._common import (
    FLOAT64,
    INT64,
    Array,
    Scalar,
    axis,
    common,
    fail,
    functional,
    not_implemented,
    wide,
    words,
)
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor


def order(array: Array, at: int, *, descending: bool) -> Array:
    """The indices that sort an array; stable; NaN counts as the largest element."""
    if array.dtype.kind == "c":
        raise not_implemented("sort", array.dtype)
    keys = wide(array)
    if keys.dtype.kind == "b":
        keys = keys.astype(np.int8)
    if not descending:
        return np.argsort(keys, axis=at, kind="stable")
    # An ascending stable sort of the flipped array, flipped again, is a descending stable sort.
    places = np.argsort(np.flip(keys, axis=at), axis=at, kind="stable")
    return np.flip(keys.shape[at] - 1 - places, axis=at)


def before_in(values: Array, *, descending: bool = False) -> algorithms.Before:
    """Create a function that tells whether one index of a row precedes another; NaN counts as the largest element."""
    numbers = wide(values).tolist()

    def before(a: int, b: int) -> bool:
        x, y = (numbers[b], numbers[a]) if descending else (numbers[a], numbers[b])
        return bool(x < y or (y != y and x == x))  # noqa: PLR0124

    return before


def _by_quicksort(values: Array, *, descending: bool) -> Array:
    """The indices that sort a row, as the quicksort of TH orders them."""
    places = list(range(len(values)))
    algorithms.quicksort(places, before_in(values, descending=descending))
    return np.array(places, INT64)


def by_introsort(values: Array, *, descending: bool) -> Array:
    """The indices that sort a row, as ``std::sort`` orders them."""
    places = list(range(len(values)))
    algorithms.sort(places, len(places), before_in(values, descending=descending))
    return np.array(places, INT64)


STABLE = {_by_quicksort: algorithms.UNSPLIT + 1, by_introsort: algorithms.INSERTED}
"""The maximum number of elements that an algorithm sorts only by insertion, which is stable."""


def order_by(algorithm: Any, array: Array, at: int, *, descending: bool) -> Array:
    """The indices that sort an array; equal elements are in the order that the algorithm gives them."""
    places = order(array, at, descending=descending)
    size = array.shape[at]
    if size <= STABLE[algorithm] or not array.size or not _ties(np.take_along_axis(array, places, axis=at), at):
        return places
    looped(array.size // size, algorithms.LOOKED_AT * size * size.bit_length())
    return np.asarray(np.apply_along_axis(algorithm, at, array, descending=descending))


def _sorted(self: Tensor, dim: int, *, descending: bool, algorithm: Any = None) -> tuple[Tensor, Tensor]:
    """Sort with an algorithm, which may be unstable; without one, the sort is stable."""
    array = self.array
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    if algorithm is None:
        places = order(array, at, descending=descending)
    else:
        places = order_by(algorithm, array, at, descending=descending)
    return Tensor(np.take_along_axis(array, places, axis=at)), Tensor(np.ascontiguousarray(places))


@functional("sort")
def sort_1_0_0(self: Tensor, dim: Any = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """1.0.0 compares NaN like other numbers, so elements compared with it stay in place; up to ten elements are sorted by insertion."""
    array = self.array
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return _sorted(self, dim, descending=descending, algorithm=_by_quicksort)
    at = axis(dim, array.ndim)
    if array.shape[at] > INSERTED:
        raise Unsupported(
            f"the reference reader does not support aten::sort of more than {INSERTED} values that include NaN, with the semantics of 1.0.0",
            code="operator",
        )
    looped(array.size // max(1, array.shape[at]))
    places = np.apply_along_axis(_inserted, at, array, descending=descending)
    return Tensor(np.take_along_axis(array, places, axis=at)), Tensor(places)


INSERTED = 10


def _inserted(values: Array, *, descending: bool) -> Array:
    places = list(range(len(values)))
    for end in range(1, len(places)):
        item, at = places[end], end
        while at and (values[places[at - 1]] < values[item] if descending else values[places[at - 1]] > values[item]):
            places[at] = places[at - 1]
            at -= 1
        places[at] = item
    return np.array(places, np.int64)


@functional("sort", since="1.0.1")
def sort_1_0_1(self: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Up to 1.6 the quicksort of TH is used."""
    return _sorted(self, dim, descending=descending, algorithm=_by_quicksort)


@functional("sort", since="1.7.0")
def sort_1_7(
    self: Tensor, dim: Any = -1, descending: bool = False, *args: Any, stable: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Up to 1.11 a 0-dim tensor can be sorted along any dimension."""
    if self.array.ndim:
        return sort(self, dim, descending, *args, stable=stable)
    return Tensor(self.array.copy()), Tensor(np.zeros((), np.int64))


@functional("sort", since="1.12.0")
def sort(self: Tensor, dim: Any = -1, descending: bool = False, *args: Any, stable: bool | None = None) -> tuple[Tensor, Tensor]:
    """Sorted values and their indices; equal elements are in the order of ``std::sort``, unless the sort is stable."""
    if args:  # sort.stable(self, *, stable, dim, descending) of old programs passes them by position
        stable, dim, descending = dim, descending, args[0]
    return _sorted(self, dim, descending=descending, algorithm=None if stable else by_introsort)


@functional("argsort", gradient=False)
def argsort_1_0(self: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """Same as :func:`sort_1_0_1`."""
    return sort_1_0_1(self, dim, descending)[1]


@functional("argsort", gradient=False, since="1.7.0")
def argsort_1_7(self: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Same as :func:`sort_1_7`."""
    return sort_1_7(self, dim, descending, stable=stable)[1]


@functional("argsort", gradient=False, since="1.12.0")
def argsort(self: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that sort a tensor."""
    return sort(self, dim, descending, stable=stable)[1]


@functional("msort")
def msort(self: Tensor) -> Tensor:
    """Sort along the first dimension."""
    return sort(self, 0)[0]


@functional("topk")
def topk_1_0(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:  # noqa: A002
    """Up to 1.1 TH selects the elements, and sorts them afterward.

    Raises:
        Unsupported: an element is NaN, which compares as in C++.
    """
    if self.array.dtype.kind == "f" and bool(np.isnan(self.array).any()):
        raise Unsupported(
            "the reference reader does not support aten::topk of values that include NaN, with the semantics of 1.1 and older",
            code="operator",
        )
    return _best(self, k, dim, largest=largest, select=_selected_and_sorted if sorted else _selected)


@functional("topk", since="1.2.0")
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:  # noqa: A002
    """The k largest or smallest elements, sorted on request; otherwise in the order in which they are found."""
    return _best(self, k, dim, largest=largest, select=_partitioned_and_sorted if sorted else _partitioned)


def _best(self: Tensor, k: int, dim: int, *, largest: bool, select: Any) -> tuple[Tensor, Tensor]:
    array = self.array
    at = axis(dim, array.ndim)
    if not array.ndim:
        if k > 1:
            raise fail("selected index k out of range")
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    if not 0 <= k <= array.shape[at]:
        raise fail("selected index k out of range")
    places = order(array, at, descending=largest)
    first = np.ascontiguousarray(np.take(places, np.arange(k), axis=at))
    ranked = np.take_along_axis(array, np.take(places, np.arange(min(k + 1, array.shape[at])), axis=at), axis=at)
    if k and array.size and (select in UNORDERED or _ties(ranked, at)):
        looped(array.size // array.shape[at], algorithms.LOOKED_AT * array.shape[at])
        first = np.apply_along_axis(select, at, array, k, largest=largest)
    return Tensor(np.take_along_axis(array, first, axis=at)), Tensor(first)


def _ties(ranked: Array, at: int) -> bool:
    """Whether two adjacent sorted elements are equal; NaN counts as equal to NaN."""
    a, b = np.take(ranked, np.arange(1, ranked.shape[at]), axis=at), np.take(ranked, np.arange(ranked.shape[at] - 1), axis=at)
    return bool(((a == b) | ((a != a) & (b != b))).any())  # noqa: PLR0124


PARTIAL = 64
"""If there are at least this many elements for each requested one, releases sort a part; otherwise they partition (``TopKImpl.h``)."""


def _partitioned(values: Array, k: int, *, largest: bool) -> Array:
    """The indices of the first k elements, as the algorithms of the GNU C++ library leave them at the front."""
    places = list(range(len(values)))
    before = before_in(values, descending=largest)
    if k * PARTIAL <= len(places):
        algorithms.partial_sort(places, k, before)
    else:
        algorithms.nth_element(places, k - 1, before)
    return np.array(places[:k], INT64)


def _partitioned_and_sorted(values: Array, k: int, *, largest: bool) -> Array:
    places = _partitioned(values, k, largest=largest).tolist()
    if k * PARTIAL > len(values):
        algorithms.sort(places, k - 1, before_in(values, descending=largest))
    return np.array(places, INT64)


def _selected(values: Array, k: int, *, largest: bool) -> Array:
    """The indices of the k best elements as TH leaves them: the k smallest at the front, the k largest at the end."""
    places = list(range(len(values)))
    cut = len(places) - k if largest else k
    if cut:
        algorithms.quickselect(places, cut - 1, before_in(values))
    return np.array(places[-k:] if largest else places[:k], INT64)


def _selected_and_sorted(values: Array, k: int, *, largest: bool) -> Array:
    places = _selected(values, k, largest=largest).tolist()
    if largest:
        algorithms.quicksort(places, before_in(values, descending=True))
        return np.array(places, INT64)
    front = places[:-1]
    algorithms.quicksort(front, before_in(values))
    return np.array([*front, places[-1]], INT64)


UNORDERED = {_partitioned, _selected}


# ------------------------------------------------------------------------------------------------------------------ bins


def _search(boundaries: Array, values: Array, *, right: bool) -> Array:
    """Binary search as in torch, with the same results for unsorted boundaries and for NaN, which is above all boundaries."""
    low = np.zeros(values.shape, INT64)
    high = np.full(values.shape, boundaries.shape[-1], INT64)
    for _ in range(boundaries.shape[-1].bit_length()):
        middle = low + (high - low) // 2
        at = np.minimum(middle, boundaries.shape[-1] - 1)
        here = boundaries[at] if boundaries.ndim == 1 else np.take_along_axis(boundaries, at, axis=-1)
        above = here > values if right else here >= values
        open_ = low < high
        low = np.where(open_ & ~above, middle + 1, low)
        high = np.where(open_ & above, middle, high)
    return low


def _placed(boundaries: Tensor, values: Any, out_int32: bool, right: bool) -> Tensor:
    bounds, array = (np.asarray(item) for item in common(boundaries, values))
    if array.size and bounds.dtype.kind in "bc":
        raise not_implemented("searchsorted_out_cpu", bounds.dtype)
    return Tensor(_search(bounds, array, right=right).astype(np.int32 if out_int32 else INT64))


def _sorter(places: Array, shape: tuple[int, ...]) -> Array:
    if places.shape != shape:
        raise fail(
            f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {list(shape)}and got sorter tensor "
            f"{list(places.shape)}"
        )
    if places.dtype != INT64:
        raise fail(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {words(places.dtype)}")
    if places.size and (places.min() < 0 or places.max() >= shape[-1]):
        raise fail("torch.searchsorted(): sorter index out of range")
    return places


@functional("searchsorted", gradient=False)
def searchsorted(
    sorted_sequence: Tensor,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The indices at which values would have to be inserted."""
    bounds = sorted_sequence.array
    if side not in {None, "left", "right"}:
        raise fail(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise fail("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    shape = self.array.shape if self.__class__ is Tensor else ()
    if not shape and bounds.ndim != 1:
        raise fail(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({bounds.ndim})"
        )
    if not bounds.ndim:
        raise fail("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if bounds.ndim != 1 and bounds.shape[:-1] != shape[:-1]:
        raise fail(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(bounds.shape)} and input value tensor {list(shape)}"
        )
    if sorter is not None:
        sorted_sequence = Tensor(np.take_along_axis(bounds, _sorter(sorter.array, bounds.shape), axis=-1))
    return _placed(sorted_sequence, self, out_int32, right or side == "right")


@functional("bucketize", gradient=False)
def bucketize(self: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The indices of the buckets between boundaries that contain the values."""
    if boundaries.array.ndim != 1:
        raise fail(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return _placed(boundaries, self, out_int32, right)


@operator("aten::bincount", gradient=False)
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of each integer."""
    array = self.array
    if array.ndim != 1 or (array.size and (array < 0).any()) or array.dtype.kind not in "iu":
        raise fail("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise fail("minlength should be >= 0")
    sized(max(minlength, int(array.max()) + 1 if array.size else 0))
    if weights is None or not array.size:
        return Tensor(counted(array, minlength=minlength).astype(INT64))
    kept = weights.array.dtype if weights.array.dtype == np.float32 else FLOAT64
    return Tensor(counted(array, weights.array.astype(FLOAT64), minlength).astype(kept))


@functional("histc", gradient=False)
def histc_1_0(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:  # noqa: A002
    """Up to 1.3 all counts are 0 if the minimum is above the maximum."""
    if bins >= 1 and min.real > max.real:
        sized(bins)
        return Tensor(np.zeros(bins, self.array.dtype))
    return histc_1_4(self, bins, min, max)


@functional("histc", gradient=False, since="1.4.0")
def histc_1_4(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:  # noqa: A002
    """Up to 1.10 an empty tensor needs an explicit range."""
    if not self.array.size and min.real == max.real:
        raise fail("operation does not have an identity.")
    return histc(self, bins, min, max)


@functional("histc", gradient=False, since="1.11.0")
def histc(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:  # noqa: A002
    """The numbers of values in bins of equal width."""
    array = self.array
    if bins < 1:
        raise fail(f"torch.histogram(): bins must be > 0, but got {bins}")
    sized(bins)
    low, high = float(min.real), float(max.real)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise fail(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise fail("torch.histc: max must be larger than min")
    kept = array[(array >= low) & (array <= high)].astype(FLOAT64)
    place = np.minimum(((kept - low) / (high - low) * bins).astype(INT64), bins - 1)
    return Tensor(counted(place, minlength=bins).astype(array.dtype))


__all__ = ["before_in", "by_introsort", "order", "order_by"]
