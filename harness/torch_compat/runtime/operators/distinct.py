"""Distinct elements, distinct slices, and membership tests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.ma  # np.unique imports it when it is first called, and a program's process opens no files

from torch_compat.arrays import counted
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.hash_order import MOST_IN_SET, number_hash, unordered_set
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators import _algorithms as algorithms
from torch_compat.runtime.operators._common import (
    HALVES,
    INT64,
    Array,
    axis,
    cast,
    fail,
    wide,
)
from torch_compat.runtime.operators.sorting import by_introsort, order, order_by
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

FIELD = 128  # words of memory that a field of a record takes


def _unique_1_0(array: Array, *, sorts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 2.1 a hash table finds distinct values; unless they are sorted, they keep the order of the table.

    NaN is never found in it: its inverse indices and counts are 0. 16-bit floats are distinguished by their bits, and of two zeros the
    first is kept. If there is neither NaN nor zeros of both signs, the table has no effect on sorted values.

    Raises:
        Unsupported: the table affects the result, and there are more numbers than its sizes are recorded for.
    """
    flat = array.reshape(-1)
    if sorts and not _seen_in_table(flat):
        values, to, often = np.unique(flat, return_inverse=True, return_counts=True)
        return Tensor(values), Tensor(to.reshape(array.shape).astype(INT64)), Tensor(often.astype(INT64))
    if flat.size > MOST_IN_SET:
        raise Unsupported(
            f"the reference reader reproduces the order of sets in releases only for up to {MOST_IN_SET} numbers", code="operator"
        )
    if array.dtype in HALVES:
        numbers, bits = wide(flat).tolist(), flat.view(np.uint16).tolist()
        keys = [number if number != number else two for number, two in zip(numbers, bits, strict=True)]  # noqa: PLR0124
        places = unordered_set(keys, bits)
    else:
        keys = numbers = flat.tolist()
        form = "<f" if array.dtype == np.float32 else "<d"
        places = unordered_set(keys, [number_hash(key, form) for key in keys])
    if sorts and len(places) <= algorithms.INSERTED:
        algorithms.sort(places, len(places), lambda a, b: bool(numbers[a] < numbers[b]))
    elif sorts and any(numbers[place] != numbers[place] for place in places):
        raise Unsupported(
            "the reference reader cannot reproduce the order in which std::sort puts many values that include NaN",
            code="operator",
        )
    elif sorts:
        places.sort(key=numbers.__getitem__)
    at, counts = {keys[place]: to for to, place in enumerate(places)}, Counter(keys)
    lost = [key != key for key in keys]  # noqa: PLR0124
    return (
        Tensor(flat[np.asarray(places, INT64)]),
        Tensor(np.asarray([0 if nan else at[key] for key, nan in zip(keys, lost, strict=True)], INT64).reshape(array.shape)),
        Tensor(np.asarray([0 if lost[place] else counts[keys[place]] for place in places], INT64)),
    )


def _seen_in_table(flat: Array) -> bool:
    """Whether sorted values still show that a hash table found them: by NaN, or by zeros of both signs."""
    if flat.dtype.kind in "iub":
        return False
    numbers = wide(flat)
    zeros = numbers[numbers == 0]
    return bool(np.isnan(numbers).any() or np.signbit(zeros).any() != np.signbit(zeros).all())


@operator("aten::_unique", gradient=False)
def unique_2_1_0(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Up to 2.1 a hash table finds distinct values."""
    return unique_1_0(self, sorted, return_inverse)[:2]


@operator("aten::_unique", gradient=False, since="1.13.0")
def unique_2_1_13(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Bools are in order."""
    return unique_2_1_0(self, sorted or self.array.dtype.kind == "b", return_inverse)


@operator("aten::_unique", gradient=False, since="2.2.0")
def unique_2(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Distinct values in order, and the index of each element among them."""
    return unique(self, sorted, return_inverse)[:2]


@operator("aten::_unique2", gradient=False)
def unique_1_0(
    self: Tensor,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """Up to 2.1 the inverse is also returned if only counts are requested."""
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
    """Bools are in order."""
    return unique_1_0(self, sorted or self.array.dtype.kind == "b", return_inverse, return_counts)


@operator("aten::_unique2", gradient=False, since="2.2.0")
def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> tuple[Tensor, ...]:  # noqa: A002
    """Distinct values in order, the index of each element among them, and their counts."""
    del sorted
    flat = self.array.reshape(-1)
    places = order_by(by_introsort, flat, 0, descending=False) if _seen_in_table(flat) else order(flat, 0, descending=False)
    values, runs, counts = unique_consecutive(Tensor(flat[places]), return_inverse=True, return_counts=True)
    inverse, nothing = np.empty(flat.size, INT64), Tensor(np.zeros(0, INT64))
    inverse[places] = runs.array
    return values, Tensor(inverse.reshape(self.array.shape)) if return_inverse else nothing, counts if return_counts else nothing


@operator("aten::unique_dim", gradient=False)
def unique_dim_1_0(
    self: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """Up to 1.11 an empty result has one dimension."""
    return _flat_if_empty(unique_dim_1_12(self, dim, sorted, return_inverse, return_counts))


@operator("aten::unique_dim", gradient=False, since="1.12.0")
def unique_dim_1_12(
    self: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 2.0 slices are compared after ``dim`` and the first dimension are swapped."""
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
    del sorted, return_inverse, return_counts  # both are always returned
    if not self.array.ndim:
        raise raised("IndexError", f"Dimension specified as {dim} but tensor has no dimensions")
    at = axis(dim, self.array.ndim)
    if self.array.dtype.kind == "f" and 0 < self.array.shape[at] <= algorithms.INSERTED and np.isnan(self.array).any():
        return _distinct_slices_with_nan(np.moveaxis(self.array, at, 0), at)
    meter.array(FIELD * (self.array.size // max(1, self.array.shape[at])))  # numpy makes a field of each column
    values, inverse, counts = np.unique(self.array, axis=at, return_inverse=True, return_counts=True)
    return Tensor(values), Tensor(inverse.reshape(-1).astype(INT64)), Tensor(counts.astype(INT64))


def _distinct_slices_with_nan(array: Array, at: int) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct slices, some of which contain NaN, which has no place in the order and equals nothing."""
    rows = array.reshape(len(array), -1)

    def before(number: int, other: int) -> bool:
        apart = np.flatnonzero((rows[number] < rows[other]) | (rows[number] > rows[other]))
        return bool(apart.size) and bool(rows[number][apart[0]] < rows[other][apart[0]])

    places = list(range(len(rows)))
    algorithms.sort(places, len(places), before)
    starts = np.concatenate([[True], (rows[places[1:]] != rows[places[:-1]]).any(axis=1)])
    inverse = np.empty(len(rows), INT64)
    inverse[places] = np.cumsum(starts) - 1
    values = np.moveaxis(array[[place for place, first in zip(places, starts, strict=True) if first]], 0, at)
    return Tensor(np.ascontiguousarray(values)), Tensor(inverse), Tensor(counted(inverse).astype(INT64))


def _after_nan(array: Array, value: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Up to 1.10 the first element is compared with itself: NaN begins two runs, the first of which is empty.

    Raises:
        Unsupported: there are more runs than elements, and the release has no memory for them.
    """
    flat = array.reshape(-1)
    if not flat.size or flat[0] == flat[0]:
        return value
    values, inverse, counts = (tensor.array for tensor in value)
    if values.size == flat.size:
        raise Unsupported("aten::unique_consecutive writes one element more than the tensor has", code="operator")
    return (
        Tensor(np.concatenate([flat[:1], values])),
        Tensor(inverse + 1 if inverse.size else inverse),
        Tensor(np.concatenate([np.zeros(1, INT64), counts]) if counts.size else counts),
    )


@operator("aten::unique_consecutive", gradient=False)
def unique_consecutive_1_0(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Up to 1.9 the only dimension of a vector is treated like any other."""
    if dim is not None:
        return unique_dim_consecutive_1_0(self, dim, return_inverse, return_counts)
    return _after_nan(self.array, unique_consecutive(self, return_inverse, return_counts))


@operator("aten::unique_consecutive", gradient=False, since="1.10.0")
def unique_consecutive_1_10(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Since 1.10 a vector has no slices."""
    if dim is not None and not (dim == 0 and self.array.ndim == 1):
        return unique_dim_consecutive_1_0(self, dim, return_inverse, return_counts)
    return _after_nan(self.array, unique_consecutive(self, return_inverse, return_counts))


@operator("aten::unique_consecutive", gradient=False, since="1.11.0")
def unique_consecutive_1_11(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]:
    """Up to 1.11 an empty result has one dimension."""
    if dim is not None and not (dim == 0 and self.array.ndim == 1):
        return unique_dim_consecutive_1_0(self, dim, return_inverse, return_counts)
    return unique_consecutive(self, return_inverse, return_counts)


@operator("aten::unique_consecutive", gradient=False, since="1.12.0")
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Merge runs of equal values."""
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
    """Up to 1.11 an empty result has one dimension."""
    return _flat_if_empty(unique_dim_consecutive(self, dim, return_inverse, return_counts))


def _flat_if_empty(value: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    first = value[0].array
    return value if first.size else (Tensor(first.reshape(0)), *value[1:])


@operator("aten::unique_dim_consecutive", gradient=False, since="1.12.0")
def unique_dim_consecutive(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Merge runs of equal slices; inverse indices and counts are always returned."""
    del return_inverse, return_counts
    array = self.array
    if not array.ndim:
        raise raised("IndexError", f"Dimension specified as {dim} but tensor has no dimensions")
    at = axis(dim, array.ndim)
    count = array.shape[at]
    if not array.size and any(not size for item, size in enumerate(array.shape) if item != at):
        raise fail("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    rows = np.moveaxis(array, at, 0).reshape(count, -1) if count else np.zeros((0, 1), array.dtype)
    starts = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]) if count else np.zeros(0, np.bool_)
    inverse = np.cumsum(starts) - 1
    return Tensor(array[(slice(None),) * at + (starts,)]), Tensor(inverse.astype(INT64)), Tensor(counted(inverse).astype(INT64))


@operator("aten::isin", gradient=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among other elements.

    With ``assume_unique``, and enough other elements that all are sorted together, an element that occurs again counts as one of them.
    """
    kind = dtypes.result_type((elements, test_elements)).array
    both = [
        cast(tensor.array if tensor.__class__ is Tensor else np.asarray(tensor), kind) for tensor in (elements, test_elements)
    ]
    if any(item.dtype.kind == "c" for item in both):
        raise fail("Unsupported input type encountered for isin(): ComplexFloat")
    meter.array(both[0].size)
    ours, others = both
    if assume_unique and ours.ndim and others.ndim and others.size >= int(10.0 * ours.size**0.145):
        return Tensor(_followed_by_equal(ours, others) != invert)
    return Tensor(np.asarray(np.isin(ours, others, invert=invert)))


def _followed_by_equal(ours: Array, others: Array) -> Array:
    """Whether an equal element comes next when all are sorted, ours before the others: ATen treats these elements as members."""
    every = np.concatenate([ours.ravel(), others.ravel()])
    meter.array(every.size)
    order = np.argsort(every, kind="stable")
    ranked = every[order]
    result = np.zeros(every.size, np.bool_)
    result[order[:-1]] = ranked[1:] == ranked[:-1]
    return result[: ours.size].reshape(ours.shape)
