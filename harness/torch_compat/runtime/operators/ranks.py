"""Elements by rank: the k-th smallest, medians, modes and quantiles."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.ma  # np.quantile imports it at the first call, and the process of a program opens no files

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators import _algorithms as algorithms
from torch_compat.runtime.operators._common import (
    FLOAT64,
    INT64,
    Array,
    axis,
    fail,
    functional,
    wide,
)
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.reductions import of_nothing, refuse_empty, refuse_no_places
from torch_compat.runtime.operators.sorting import before_in, order
from torch_compat.runtime.tensor import Tensor


def _kthvalue(self: Tensor, k: int, dim: int, keepdim: bool, *, any_of_number: bool) -> tuple[Tensor, Tensor]:
    array = self.array
    at = axis(dim, array.ndim)
    if array.ndim and not array.size:
        refuse_no_places("kthvalue", array, at)
    if not 1 <= k <= (array.shape[at] if array.ndim else 1) and not (any_of_number and not array.ndim):
        raise fail("kthvalue(): selected number k out of range for dimension " + str(at))
    return _selected(array, at, k - 1, keepdim) if array.ndim else (Tensor(array.copy()), Tensor(np.zeros((), INT64)))


@functional("kthvalue")
def kthvalue_1_0(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Up to 1.8 tensors without elements are refused."""
    refuse_empty("kthvalue", self.array)
    return _kthvalue(self, k, dim, keepdim, any_of_number=False)


@functional("kthvalue", since="1.9.0")
def kthvalue_1_9(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """1.9 and 1.10 accept any k for a 0-dim tensor."""
    return _kthvalue(self, k, dim, keepdim, any_of_number=True)


@functional("kthvalue", since="1.11.0")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element, counted from 1."""
    return _kthvalue(self, k, dim, keepdim, any_of_number=False)


def _selected(array: Array, at: int, rank: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The element of a rank along a dimension, and its index; of equal elements, the one that :func:`_quickselect` finds."""
    tensor, where = _one_of(array, order(array, at, descending=False), at, rank, True)
    rows, places = np.moveaxis(array, at, -1).reshape(-1, array.shape[at]), where.array
    equal = (array == tensor.array) | ((array != array) & (tensor.array != tensor.array))  # noqa: PLR0124 - NaN
    several = np.moveaxis(equal.sum(axis=at, keepdims=True) > 1, at, -1).reshape(-1)
    if several.any():
        looped(int(several.sum()))
        flat = np.moveaxis(places, at, -1).reshape(-1)
        for row in np.flatnonzero(several):
            flat[row] = _quickselect(rows[row], rank)
        places = np.moveaxis(flat.reshape(np.moveaxis(places, at, -1).shape), -1, at)
    values = np.take_along_axis(array, places, axis=at)  # zeros keep their sign
    if not keepdim:
        values, places = values.squeeze(at), places.squeeze(at)
    return Tensor(values.copy()), Tensor(places.copy())


def _quickselect(values: Array, rank: int) -> int:
    """The index of the element of a rank, as selected by kthvalue in all releases, and by median up to 1.7."""
    places = list(range(len(values)))
    algorithms.quickselect(places, rank, before_in(values))
    return places[rank]


def _one_of(array: Array, places: Array, at: int, rank: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    where = np.take(places, [rank], axis=at)
    values = np.take_along_axis(array, where, axis=at)
    if not keepdim:
        values, where = values.squeeze(at), where.squeeze(at)
    return Tensor(values.copy()), Tensor(where.copy())


@functional("median")
def median_1_0(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Up to 1.7 a NaN counts as the largest element and does not make the median NaN."""
    array = self.array
    if dim is None:
        flat = _some(array)
        return Tensor(flat[order(flat, 0, descending=False)[(flat.size - 1) // 2], ...].copy())
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    refuse_empty("kthvalue", array)
    return _selected(array, at, (array.shape[at] - 1) // 2, keepdim)


def _some(array: Array) -> Array:
    """Flatten the elements.

    Raises:
        Raised: there are no elements.
    """
    if not array.size:
        raise fail("median() operation does not have an identity for empty input tensor")
    return array.reshape(-1)


@functional("median", since="1.8.0")
def median_1_8(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """1.8 refuses the median of all elements of an empty tensor."""
    if dim is None:
        _some(self.array)
    return median(self, dim, keepdim)


@functional("median", since="1.9.0")
def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The lower of the two middle elements; NaN if there is a NaN."""
    array = self.array
    if dim is None:
        flat = array.reshape(-1)
        if not flat.size:
            return Tensor(np.asarray(np.nan if array.dtype.kind not in "iu" else np.iinfo(array.dtype).min, array.dtype))
        places = order(flat, 0, descending=False)
        if array.dtype.kind not in "iub" and np.isnan(flat).any():
            return Tensor(np.asarray(np.nan, array.dtype))
        return Tensor(flat[places[(flat.size - 1) // 2], ...].copy())
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    nothing = of_nothing("median", array, at, keepdim=keepdim)
    if nothing is not None:
        return nothing
    places = order(array, at, descending=False)
    values, where = _one_of(array, places, at, (array.shape[at] - 1) // 2, True)
    if array.dtype.kind not in "iub":
        nans = np.isnan(array)
        some = nans.any(axis=at, keepdims=True)
        first = np.expand_dims(nans.argmax(axis=at), at)
        values = Tensor(np.where(some, np.asarray(np.nan, array.dtype), values.array))
        where = Tensor(np.where(some, first, where.array))
    if not keepdim:
        return Tensor(values.array.squeeze(at)), Tensor(where.array.squeeze(at))
    return values, where


def _most(values: Array, *, quicksort: bool = False) -> int:
    """The index of the last of the most frequent elements in sorted order; each NaN is a separate value.

    Parameters:
        quicksort: whether the quicksort of TH sorts, for which NaN is largest; else ``std::sort``, which leaves NaN in any position.
    """
    some = values.dtype.kind not in "iub" and bool(np.isnan(values).any())
    if some and not quicksort and values.size > algorithms.INSERTED:
        raise Unsupported(
            f"the reference reader does not support aten::mode of more than {algorithms.INSERTED} numbers that include NaN",
            code="operator",
        )
    numbers = wide(values).tolist()
    places = list(range(values.size))
    if quicksort:
        algorithms.quicksort(places, before_in(values))
    else:
        algorithms.sort(places, len(places), lambda a, b: bool(numbers[a] < numbers[b]))
    best, most, run = places[0], 0, 0
    for rank, place in enumerate(places):
        run += 1
        if rank == len(places) - 1 or numbers[place] != numbers[places[rank + 1]]:
            if run > most:
                best, most = place, run
            run = 0
    return best


@functional("mode")
def mode_1_0(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Up to 1.8 tensors without elements are refused, and the quicksort of TH is used."""
    refuse_empty("mode", self.array)
    return _mode(self, dim, keepdim, quicksort=True)


@functional("mode", since="1.9.0")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent value, the smallest of equally frequent ones, and its last index."""
    return _mode(self, dim, keepdim, quicksort=False)


def _mode(self: Tensor, dim: int, keepdim: bool, *, quicksort: bool) -> tuple[Tensor, Tensor]:
    array = self.array
    at = axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()), Tensor(np.zeros((), INT64))
    nothing = of_nothing("mode", array, at, keepdim=keepdim)
    if nothing is not None:
        return nothing
    moved = np.moveaxis(array, at, -1)
    values = np.empty(moved.shape[:-1], array.dtype)
    places = np.zeros(moved.shape[:-1], INT64)
    looped(math.prod(moved.shape[:-1]), algorithms.LOOKED_AT * array.shape[at] * array.shape[at].bit_length())
    for index in np.ndindex(*moved.shape[:-1]):
        places[index] = _most(moved[index], quicksort=quicksort)
        values[index] = moved[index][places[index]]  # zeros keep their sign
    if keepdim:
        values, places = np.expand_dims(values, at), np.expand_dims(places, at)
    return Tensor(values), Tensor(places)


# ------------------------------------------------------------------------------------------------------------- quantiles


def _quantile(name: str, *, ignore: bool) -> None:
    def call(
        self: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        array = self.array
        if array.dtype.kind != "f":
            raise fail(f"{name}() input tensor must be either float or double dtype")
        if not array.size:
            raise fail("quantile() input tensor must be non-empty")
        if isinstance(q, Tensor) and q.array.dtype != array.dtype:
            raise fail(f"{name}() q tensor must be same dtype as the input tensor")
        wanted = q.array.astype(FLOAT64) if isinstance(q, Tensor) else np.asarray(q, FLOAT64)
        if wanted.ndim > 1:
            raise fail(f"{name}() q must be a scalar or 1D tensor")
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise fail(f"{name}() q values must be in the range [0, 1]")
        result = None if dim is None else axis(dim, array.ndim)
        if not array.ndim:
            result, keepdim = None, False
        function: Any = np.nanquantile if ignore else np.quantile
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice")  # the result is NaN, and torch does not warn
            values = function(array.astype(FLOAT64), wanted, axis=result, keepdims=keepdim, method=interpolation)
        return Tensor(np.asarray(values).astype(array.dtype))

    functional(name)(call)


_quantile("quantile", ignore=False)
_quantile("nanquantile", ignore=True)


@functional("nanmedian")
def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The lower of the two middle elements other than NaN; NaN and its first index if all are NaN."""
    array = self.array
    if array.dtype.kind in "iub" or not np.isnan(array).any():
        return median(self, dim, keepdim)
    at = 0 if dim is None else axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy()) if dim is None else (Tensor(array.copy()), Tensor(np.zeros((), INT64)))
    values = array.reshape(-1) if dim is None else array
    there = np.maximum((~np.isnan(values)).sum(axis=at, keepdims=True) - 1, 0) // 2
    where = np.take_along_axis(order(values, at, descending=False), there, axis=at)
    result = np.take_along_axis(values, where, axis=at)
    if dim is None:
        return Tensor(result.reshape(()).copy())
    return (Tensor(result), Tensor(where)) if keepdim else (Tensor(result.squeeze(at)), Tensor(where.squeeze(at)))
