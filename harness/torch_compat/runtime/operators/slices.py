"""Slices of a tensor along one dimension, by their indices: selected, added, copied and filled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import (
    INT64,
    Array,
    Scalar,
    axis,
    checked_scalar,
    fail,
    functional,
    words,
)
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["places_within"]


def places_within(where: str, places: Array, size: int, *, negative: bool = False, ints: bool = False) -> Array:
    """Indices as int64, each of which must be within a dimension.

    Parameters:
        where: the operator, for the error.
        negative: whether indices may count from the end.
        ints: whether they may be int32.

    Raises:
        Raised: an index is out of range, or is not an integer of these dtypes.
    """
    if places.dtype != INT64 and not (ints and places.dtype == np.int32):
        raise fail(f"{where}(): Expected dtype {'int32 or int64' if ints else 'int64'} for index")
    if places.size and (int(places.max()) >= size or int(places.min()) < (-size if negative else 0)):
        raise raised("IndexError" if where == "index_select" else "RuntimeError", "index out of range in self")
    return places.astype(INT64)


def _index_selects(since: str, *, ints: bool, of_number: Callable[[int], bool] | None) -> None:
    """Register ``index_select``.

    Parameters:
        ints: whether indices may be int32.
        of_number: whether a 0-dim tensor accepts so many indices; None if its result has one dimension.
    """

    @functional("index_select", since=since)
    def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
        """Select slices by index."""
        array, places = self.array, index.array
        if not ints and places.dtype != INT64:
            raise fail(f"Expected object of scalar type Long but got scalar type {words(places.dtype)} for argument #3 'index'")
        at = axis(dim, array.ndim)
        if places.ndim > 1:
            raise raised("IndexError", "index_select(): Index is supposed to be a vector")
        if not array.ndim and of_number is not None:
            if not of_number(places.size):
                raise fail(f"index_select(): Index to scalar can have only 1 value, got {places.size} value(s)")
            places_within("index_select", places, 1, ints=True)
            return Tensor(array.copy())
        full = array.reshape(array.shape or (1,))
        return Tensor(np.take(full, places_within("index_select", places, full.shape[at], ints=True).reshape(-1), axis=at))


_index_selects("1.0.0", ints=False, of_number=None)
_index_selects("1.5.0", ints=False, of_number=lambda _: True)
_index_selects("1.8.0", ints=True, of_number=lambda _: True)
_index_selects("2.0.0", ints=True, of_number=lambda count: count < 2)
_index_selects("2.1.0", ints=True, of_number=lambda count: count == 1)


def _slices(self: Tensor, dim: int, index: Tensor, where: str, *, ints: bool = False) -> tuple[Array, Array, tuple[Any, ...]]:
    array = self.array.copy()
    at = axis(dim, array.ndim)
    full = array.reshape(array.shape or (1,))
    if index.array.ndim > 1:
        raise raised("IndexError", f"{where}(): Index has to be a vector/scalar")
    places = places_within(where, index.array, full.shape[at], negative=where == "index_fill", ints=ints).reshape(-1)
    return array, full, (*(slice(None),) * at, places)


def _sliced_like(source: Array, self: Array, at: int, *, era: int) -> Array | None:
    """The slices of a source in the shape of those of a tensor, or None if they do not match.

    Eras: 0 up to 1.3 (the number of elements decides), 1 up to 2.0 (a slice is broadcast), 2 (the shapes are equal).
    """
    if era == 2:
        same = source.ndim == self.ndim and all(
            a == b for item, (a, b) in enumerate(zip(source.shape, self.shape, strict=True)) if item != at
        )
        return source.reshape(source.shape or (1,)) if same else None
    if self.ndim < 2:
        return source.reshape(-1) if source.ndim < 2 else None
    if not source.ndim:
        return None
    cut, shape = np.moveaxis(source, at, 0), (*self.shape[:at], *self.shape[at + 1 :])
    if not len(cut):
        return np.empty((*self.shape[:at], 0, *self.shape[at + 1 :]), source.dtype)
    if era == 0:
        return np.moveaxis(cut.reshape(len(cut), *shape), 0, at) if math.prod(cut.shape[1:]) == math.prod(shape) else None
    missing = len(shape) - (cut.ndim - 1)
    if missing < 0 or any(a not in {1, b} for a, b in zip(cut.shape[1:], shape[missing:], strict=True)):
        return None
    return np.moveaxis(np.broadcast_to(cut.reshape(len(cut), *(1,) * missing, *cut.shape[1:]), (len(cut), *shape)), 0, at)


def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Scalar, *, ints: bool, era: int) -> Tensor:
    """Add slices at indices, one after the other.

    Parameters:
        ints: whether indices may be int32.
        era: which slices match (:func:`_sliced_like`).
    """
    if source.array.dtype != self.array.dtype:
        raise fail(
            f"index_add_(): self ({words(self.array.dtype)}) and source ({words(source.array.dtype)}) must have the same scalar type"
        )
    array, full, where = _slices(self, dim, index, "index_add", ints=ints)
    at = axis(dim, self.array.ndim)
    if at >= max(source.array.ndim, 1):
        raise fail(f"index_add_(): Indexing dim {at} is out of bounds of the source tensor with dim {source.array.ndim}")
    value = _sliced_like(source.array, self.array, at, era=era)
    if value is None or value.shape[at] != index.array.size:
        raise fail(
            f"source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {list(self.array.shape)} source.shape = {list(source.array.shape)}"
        )
    np.add.at(full, where, value if alpha == 1 else value * checked_scalar(alpha, array.dtype))
    return Tensor(array)


def _index_adds(since: str, *, ints: bool, era: int) -> None:
    functional("index_add", inplace=True, since=since)(
        lambda self, dim, index, source, *, alpha=1: _index_add(self, dim, index, source, alpha, ints=ints, era=era)
    )


# Indices may be int32 since 1.8.
_index_adds("1.0.0", ints=False, era=0)
_index_adds("1.4.0", ints=False, era=1)
_index_adds("1.8.0", ints=True, era=1)
_index_adds("2.1.0", ints=True, era=2)


@functional("index_copy", inplace=True)
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Write slices at indices."""
    if source.array.dtype != self.array.dtype:
        raise fail("index_copy_(): self and source expected to have the same dtype")
    if index.array.ndim > 1:
        raise raised("IndexError", f"index_copy_(): Index should have dimension 1 or 0 (got {index.array.ndim})")
    array, full, where = _slices(self, dim, index, "index_copy")
    value = source.array.reshape(source.array.shape or (1,))
    at = axis(dim, self.array.ndim)
    if not source.array.ndim and index.array.size != 1:
        raise raised(
            "IndexError", f"index_copy_(): When source is scalar, index should have one element (got {index.array.size})"
        )
    if value.ndim != full.ndim:
        raise raised(
            "IndexError",
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({value.ndim}), destination dimensionality ({full.ndim})",
        )
    if value.shape[at] != index.array.size:
        raise raised(
            "IndexError",
            f"index_copy_(): Number of indices ({index.array.size}) should be equal to source.size(dim) ({value.shape[at]})",
        )
    if any(a != b for item, (a, b) in enumerate(zip(value.shape, full.shape, strict=True)) if item != at):
        raise fail("index_copy_(): Source/destination tensor must have same slice shapes.")
    full[where] = value
    return Tensor(array)


@functional("index_fill", inplace=True, out=False)
def index_fill_1_0(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Up to 1.7 negative indices are not supported."""
    if (index.array < 0).any():
        raise fail("invalid argument 3: out of range")
    return index_fill(self, dim, index, value)


@functional("index_fill", inplace=True, out=False, since="1.8.0")
def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write one number at indices."""
    if value.__class__ is Tensor and value.array.ndim:
        raise fail(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.array.ndim} dimension(s)."
        )
    number = value.item() if value.__class__ is Tensor else value
    array, full, where = _slices(self, dim, index, "index_fill")
    full[where] = checked_scalar(number, array.dtype)
    return Tensor(array)
