"""Order: sorting, the best few, distinct values, counting into bins."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.ma  # np.quantile and np.unique import it when they are first called, and a program's process opens no files

from torch_compat.arrays import counted
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.hash_order import MOST_IN_SET, number_hash, unordered_set
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators import _algorithms as algorithms
from torch_compat.runtime.operators._common import (
    FLOAT64,
    HALVES,
    INT64,
    Array,
    Scalar,
    axis,
    cast,
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
from torch_compat.runtime.values import raised

FIELD = 128  # words of memory that a field of a record takes


def order(array: Array, at: int, *, descending: bool) -> Array:
    """Places in sorted order; stable; NaN counts as the largest."""
    if array.dtype.kind == "c":
        raise not_implemented("sort", array.dtype)
    keys = wide(array)
    if keys.dtype.kind == "b":
        keys = keys.astype(np.int8)
    if not descending:
        return np.argsort(keys, axis=at, kind="stable")
    # From behind: what a stable ascending sort of the flipped array gives, flipped again, is a stable descending one.
    places = np.argsort(np.flip(keys, axis=at), axis=at, kind="stable")
    return np.flip(keys.shape[at] - 1 - places, axis=at)


def _sorted(self: Tensor, dim: int, *, descending: bool) -> tuple[Tensor, Tensor]:
    array = self.array
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    places = order(array, at, descending=descending)
    return Tensor(np.take_along_axis(array, places, axis=at)), Tensor(np.ascontiguousarray(places))


@functional("sort")
def sort_1_0_0(self: Tensor, dim: Any = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """1.0.0 compares NaN like a number, and so leaves what it is compared with where it is: it sorts by insertion, up to ten."""
    array = self.array
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return _sorted(self, dim, descending=descending)
    at = axis(dim, array.ndim)
    if array.shape[at] > INSERTED:
        raise Unsupported(f"aten::sort of more than {INSERTED} numbers that include NaN, as in 1.0.0", code="operator")
    looped(array.size // max(1, array.shape[at]))
    places = np.apply_along_axis(_inserted, at, array, descending=descending)
    return Tensor(np.take_along_axis(array, places, axis=at)), Tensor(places)


INSERTED = 10


def _inserted(values: Array, *, descending: bool) -> Array:
    places = list(range(len(values)))
    for end in range(1, len(places)):
        one, at = places[end], end
        while at and (values[places[at - 1]] < values[one] if descending else values[places[at - 1]] > values[one]):
            places[at] = places[at - 1]
            at -= 1
        places[at] = one
    return np.array(places, np.int64)


@functional("sort", since="1.0.1")
def sort(self: Tensor, dim: Any = -1, descending: bool = False, *args: Any, stable: bool | None = None) -> tuple[Tensor, Tensor]:
    """Values and where they stood."""
    if args:  # sort.stable(self, *, stable, dim, descending) of old programs has them by position
        dim, descending = descending, args[0]
    del stable  # always
    return _sorted(self, dim, descending=descending)


@functional("argsort", gradient=False)
def argsort(self: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Where sorted values stood."""
    del stable
    return _sorted(self, dim, descending=descending)[1]


@functional("msort")
def msort(self: Tensor) -> Tensor:
    """Sorted along the first dimension."""
    return _sorted(self, 0, descending=False)[0]


@functional("topk")
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:  # noqa: A002
    """The best few, in order."""
    del sorted
    array = self.array
    at = axis(dim, array.ndim)
    if not array.ndim:
        if k > 1:
            raise fail("selected index k out of range")
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    if not 0 <= k <= array.shape[at]:
        raise fail("selected index k out of range")
    places = order(array, at, descending=largest)
    ranked = np.take_along_axis(array, places, axis=at)
    if k and _ties(np.take(ranked, np.arange(min(k + 1, ranked.shape[at])), axis=at), at):
        looped(array.size // array.shape[at], array.shape[at])
        places = np.apply_along_axis(_partitioned, at, array, k, largest=largest)
        return Tensor(np.take_along_axis(array, places, axis=at)), Tensor(places)
    first = np.ascontiguousarray(np.take(places, np.arange(k), axis=at))
    return Tensor(np.take_along_axis(array, first, axis=at)), Tensor(first)


def _ties(ranked: Array, at: int) -> bool:
    """Whether two neighbours of something that is sorted are equal, also not-a-number."""
    a, b = np.take(ranked, np.arange(1, ranked.shape[at]), axis=at), np.take(ranked, np.arange(ranked.shape[at] - 1), axis=at)
    return bool(((a == b) | ((a != a) & (b != b))).any())  # noqa: PLR0124


PARTIAL = 64
"""From this many elements for each that is asked for on, releases sort a part, else they partition (``TopKImpl.h``)."""


def _partitioned(values: Array, k: int, *, largest: bool) -> Array:
    """The places of the best few, of equal ones those that the algorithms of the C++ library of GNU leave in front, as from 1.2 on."""
    numbers = wide(values).tolist()

    def before(a: int, b: int) -> bool:
        x, y = numbers[a], numbers[b]
        if largest:
            return bool((x != x and y == y) or x > y)  # noqa: PLR0124
        return bool((x == x and y != y) or x < y)  # noqa: PLR0124

    places = list(range(len(numbers)))
    if k * PARTIAL <= len(numbers):
        algorithms.partial_sort(places, k, before)
    else:
        algorithms.nth_element(places, k - 1, before)
        algorithms.sort(places, k - 1, before)
    return np.array(places[:k], np.int64)


# -------------------------------------------------------------------------------------------------------------- distinct


def _unique_1_0(array: Array, *, sorts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 2.1 a hash table finds distinct values, whose order they have unless they are sorted.

    NaN is never found in it: its places are 0, and it is counted 0 times. Halves are told apart by their bits, and of two zeros the one
    that came first stays. Where neither is there, and the values are sorted, the table cannot be seen.

    Raises:
        Unsupported: the table can be seen, and there are more numbers than its sizes are recorded for.
    """
    flat = array.reshape(-1)
    if sorts and not _seen_in_table(flat):
        values, to, often = np.unique(flat, return_inverse=True, return_counts=True)
        return Tensor(values), Tensor(to.reshape(array.shape).astype(INT64)), Tensor(often.astype(INT64))
    if flat.size > MOST_IN_SET:
        raise Unsupported(f"the reference reader orders sets of up to {MOST_IN_SET} numbers as releases do", code="operator")
    if array.dtype in HALVES:
        numbers, bits = wide(flat).tolist(), flat.view(np.uint16).tolist()
        keys = [one if one != one else two for one, two in zip(numbers, bits, strict=True)]  # noqa: PLR0124
        places = unordered_set(keys, bits)
    else:
        keys = numbers = flat.tolist()
        form = "<f" if array.dtype == np.float32 else "<d"
        places = unordered_set(keys, [number_hash(one, form) for one in keys])
    if sorts and len(places) <= algorithms.INSERTED:
        algorithms.sort(places, len(places), lambda a, b: bool(numbers[a] < numbers[b]))
    elif sorts and any(numbers[place] != numbers[place] for place in places):
        raise Unsupported("the reference reader does not sort NaN among many as std::sort does", code="operator")
    elif sorts:
        places.sort(key=numbers.__getitem__)
    at, counts = {keys[place]: to for to, place in enumerate(places)}, Counter(keys)
    lost = [one != one for one in keys]  # noqa: PLR0124
    return (
        Tensor(flat[np.asarray(places, INT64)]),
        Tensor(np.asarray([0 if nan else at[key] for key, nan in zip(keys, lost, strict=True)], INT64).reshape(array.shape)),
        Tensor(np.asarray([0 if lost[place] else counts[keys[place]] for place in places], INT64)),
    )


def _seen_in_table(flat: Array) -> bool:
    """Whether numbers that are sorted still tell that a hash table found them: by NaN, or by zeros of both signs."""
    if flat.dtype.kind in "iub":
        return False
    numbers = wide(flat)
    zeros = numbers[numbers == 0]
    return bool(np.isnan(numbers).any() or np.signbit(zeros).any() != np.signbit(zeros).all())


@operator("aten::_unique", gradient=False)
def unique_2_1_0(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Up to 2.1 distinct values are found by a hash table."""
    return unique_1_0(self, sorted, return_inverse)[:2]


@operator("aten::_unique", gradient=False, since="1.13.0")
def unique_2_1_13(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Truth values are in order."""
    return unique_2_1_0(self, sorted or self.array.dtype.kind == "b", return_inverse)


@operator("aten::_unique", gradient=False, since="2.2.0")
def unique_2(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Distinct values in order, and where each element went."""
    return unique(self, sorted, return_inverse)[:2]


@operator("aten::_unique2", gradient=False)
def unique_1_0(
    self: Tensor,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """Up to 2.1 where elements went is told also where only their counts are asked for."""
    values, inverse, counts = _unique_1_0(self.array, sorts=sorted)
    nothing = Tensor(np.zeros(0, INT64))
    return values, inverse if return_inverse or return_counts else nothing, counts if return_counts else nothing


@operator("aten::_unique2", gradient=False, since="1.13.0")
def unique_1_13(
    self: Tensor,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """Truth values are in order."""
    return unique_1_0(self, sorted or self.array.dtype.kind == "b", return_inverse, return_counts)


@operator("aten::_unique2", gradient=False, since="2.2.0")
def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Distinct values in order, where each element went, and how often each occurs."""
    del sorted
    values, inverse, counts = np.unique(self.array.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False)
    nothing = np.zeros(0, INT64)
    return (
        Tensor(values),
        Tensor(inverse.reshape(self.array.shape).astype(INT64) if return_inverse else nothing),
        Tensor(counts.astype(INT64) if return_counts else nothing),
    )


@operator("aten::unique_dim", gradient=False)
def unique_dim_1_0(
    self: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """Up to 1.11 what is empty has one dimension."""
    return _flat_if_empty(unique_dim_1_12(self, dim, sorted, return_inverse, return_counts))


@operator("aten::unique_dim", gradient=False, since="1.12.0")
def unique_dim_1_12(
    self: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 2.0 slices are compared with the first dimension in the place of the one that they are of."""
    at = axis(dim, self.array.ndim)
    if at < 2 or not self.array.size:
        return unique_dim(self, dim, sorted, return_inverse, return_counts)
    values, inverse, counts = unique_dim(Tensor(np.swapaxes(self.array, 0, at)), 0, sorted, return_inverse, return_counts)
    return Tensor(np.swapaxes(values.array, 0, at)), inverse, counts


@operator("aten::unique_dim", gradient=False, since="2.1.0")
def unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct slices."""
    del sorted, return_inverse, return_counts  # both come in any case
    at = axis(dim, self.array.ndim)
    meter.array(FIELD * (self.array.size // max(1, self.array.shape[at])))  # numpy makes a field of each column
    values, inverse, counts = np.unique(self.array, axis=at, return_inverse=True, return_counts=True)
    return Tensor(values), Tensor(inverse.reshape(-1).astype(INT64)), Tensor(counts.astype(INT64))


@operator("aten::unique_consecutive", gradient=False)
def unique_consecutive_1_0(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Up to 1.9 the only dimension of a vector is one as any other."""
    if dim is not None:
        return unique_dim_consecutive_1_0(self, dim, return_inverse, return_counts)
    return unique_consecutive(self, return_inverse, return_counts)


@operator("aten::unique_consecutive", gradient=False, since="1.10.0")
def unique_consecutive_1_10(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Up to 1.11 what is empty has one dimension."""
    if dim is not None and not (dim == 0 and self.array.ndim == 1):
        return unique_dim_consecutive_1_0(self, dim, return_inverse, return_counts)
    return unique_consecutive(self, return_inverse, return_counts)


@operator("aten::unique_consecutive", gradient=False, since="1.12.0")
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs of equal values as one."""
    if dim is not None and not (dim == 0 and self.array.ndim == 1):
        return unique_dim_consecutive(self, dim, return_inverse, return_counts)
    flat = self.array.reshape(-1)
    starts = np.concatenate([[True], flat[1:] != flat[:-1]]) if flat.size else np.zeros(0, np.bool_)
    inverse = np.cumsum(starts) - 1
    nothing = np.zeros(0, INT64)
    return (
        Tensor(flat[starts]),
        Tensor(inverse.reshape(self.array.shape).astype(INT64) if return_inverse else nothing),
        Tensor(counted(inverse).astype(INT64) if return_counts else nothing),
    )


@operator("aten::unique_dim_consecutive", gradient=False)
def unique_dim_consecutive_1_0(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """Up to 1.11 what is empty has one dimension."""
    return _flat_if_empty(unique_dim_consecutive(self, dim, return_inverse, return_counts))


def _flat_if_empty(found: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    first = found[0].array
    return found if first.size else (Tensor(first.reshape(0)), *found[1:])


@operator("aten::unique_dim_consecutive", gradient=False, since="1.12.0")
def unique_dim_consecutive(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs of equal slices as one; where each went and how long each is come in any case."""
    del return_inverse, return_counts
    array = self.array
    if not array.ndim:
        raise raised("IndexError", f"Dimension specified as {dim} but tensor has no dimensions")
    at = axis(dim, array.ndim)
    count = array.shape[at]
    if not array.size and any(not size for one, size in enumerate(array.shape) if one != at):
        raise fail("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    rows = np.moveaxis(array, at, 0).reshape(count, -1) if count else np.zeros((0, 1), array.dtype)
    starts = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]) if count else np.zeros(0, np.bool_)
    inverse = np.cumsum(starts) - 1
    return Tensor(array[(slice(None),) * at + (starts,)]), Tensor(inverse.astype(INT64)), Tensor(counted(inverse).astype(INT64))


@operator("aten::isin", gradient=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others."""
    if assume_unique:
        raise Unsupported("the reference reader does not know what isin gives with assume_unique", code="operator")
    kind = dtypes.result_type((elements, test_elements)).array
    both = [cast(one.array if one.__class__ is Tensor else np.asarray(one), kind) for one in (elements, test_elements)]
    if any(one.dtype.kind == "c" for one in both):
        raise fail("Unsupported input type encountered for isin(): ComplexFloat")
    meter.array(both[0].size)
    return Tensor(np.asarray(np.isin(both[0], both[1], invert=invert)))


# ------------------------------------------------------------------------------------------------------------------ bins


def _search(boundaries: Array, values: Array, *, right: bool) -> Array:
    """Halving as torch does it, so that unsorted boundaries and NaN, which every boundary is below, come out the same."""
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
    bounds, array = (np.asarray(one) for one in common(boundaries, values))
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
    """Where values would have to be put in."""
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
    """Between which boundaries values lie."""
    if boundaries.array.ndim != 1:
        raise fail(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return _placed(boundaries, self, out_int32, right)


@operator("aten::bincount", gradient=False)
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs."""
    array = self.array
    if array.ndim != 1 or (array.size and (array < 0).any()) or array.dtype.kind not in "iu":
        raise fail("bincount only supports 1-d non-negative integral inputs.")
    sized(max(minlength, int(array.max()) + 1 if array.size else 0))
    if weights is None or not array.size:
        return Tensor(counted(array, minlength=minlength).astype(INT64))
    kept = weights.array.dtype if weights.array.dtype == np.float32 else FLOAT64
    return Tensor(counted(array, weights.array.astype(FLOAT64), minlength).astype(kept))


@functional("histc", gradient=False)
def histc_1_0(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:  # noqa: A002
    """Up to 1.3 nothing lies between a largest and a least number that are the wrong way round."""
    if bins >= 1 and min.real > max.real:
        sized(bins)
        return Tensor(np.zeros(bins, self.array.dtype))
    return histc(self, bins, min, max)


@functional("histc", gradient=False, since="1.4.0")
def histc(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:  # noqa: A002
    """Counts of values in bins of equal width."""
    array = self.array
    if bins < 1:
        raise fail(f"torch.histogram(): bins must be > 0, but got {bins}")
    sized(bins)
    low, high = float(min.real), float(max.real)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if low > high:
        raise fail("torch.histc: max must be larger than min")
    kept = array[(array >= low) & (array <= high)].astype(FLOAT64)
    place = np.minimum(((kept - low) / (high - low) * bins).astype(INT64), bins - 1)
    return Tensor(counted(place, minlength=bins).astype(array.dtype))


__all__ = ["order"]
