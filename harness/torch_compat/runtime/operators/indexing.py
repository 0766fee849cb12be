"""Indexing, gather, scatter, and related operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import (
    BOOL,
    INT64,
    Array,
    Scalar,
    axis,
    broadcast,
    cast,
    checked_scalar,
    fail,
    functional,
    unaliased,
    words,
    write,
)
from torch_compat.runtime.operators.casting import overwrite
from torch_compat.runtime.operators.parts import diagonal
from torch_compat.runtime.operators.slices import places_within
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

Index = list[Tensor | None]
PLACES = (np.dtype(np.int64), np.dtype(np.int32))
MASKS = (BOOL, np.dtype(np.uint8))

# ------------------------------------------------------------------------------------------------------------ advanced


def _index(array: Array, indices: Any, *, ints: bool) -> tuple[Any, ...]:
    """Indices as numpy takes them: masks as places, checked, and a new place for the result as torch's.

    Parameters:
        ints: whether places of int32 are taken.

    Raises:
        Raised: of another type, or out of range.
    """
    results: list[Any] = []
    at = 0
    for index in indices:
        if index is None:
            results.append(slice(None))
            at += 1
            continue
        places = index.array
        if places.dtype in (BOOL, np.uint8):
            for offset, size in enumerate(places.shape):
                if at + offset >= array.ndim or array.shape[at + offset] != size:
                    raise raised(
                        "IndexError",
                        f"The shape of the mask {list(places.shape)} at index {offset} does not match the shape of the indexed tensor "
                        f"{list(array.shape)} at index {at + offset}",
                    )
            if not places.ndim:
                results.append(places.astype(BOOL))
                continue
            results.extend(np.nonzero(places))
            at += places.ndim
            continue
        if places.dtype not in PLACES[: 1 + ints]:
            raise raised("IndexError", f"tensors used as indices must be long, {'int, ' if ints else ''}byte or bool tensors")
        if at >= array.ndim:
            raise raised("IndexError", f"too many indices for tensor of dimension {array.ndim}")
        size = array.shape[at]
        if places.size and (int(places.max()) >= size or int(places.min()) < -size):
            bad = next(int(item) for item in places.reshape(-1) if not -size <= int(item) < size)
            raise raised("IndexError", f"index {bad} is out of bounds for dimension {at} with size {size}")
        results.append(places.astype(INT64))
        at += 1
    if at > array.ndim:
        raise raised("IndexError", f"too many indices for tensor of dimension {array.ndim}")
    tensors = [item for item in results if isinstance(item, np.ndarray)]
    try:
        np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
        raise raised(
            "IndexError", f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    return tuple(results)


def _some(array: Array, indices: Any, *, filled: bool = False) -> None:
    """Refuse an index without tensors, with the error of 1.13 (others fail an assertion), and more indices than dimensions.

    A zero-dimensional mask gives no indices, so it alone counts as no index, too, except if ``filled``.
    """
    given = [index.array for index in indices if index is not None]
    if not given:
        raise fail("strides() called on an undefined Tensor")
    if len(indices) > array.ndim:
        raise raised("IndexError", f"too many indices for tensor of dimension {array.ndim} (got {len(indices)})")
    if not filled and all(not item.ndim and item.dtype in MASKS for item in given):
        raise fail("ntensor >= 3 INTERNAL ASSERT FAILED: 0-dim masks are not valid indices")


def _one_mask(indices: Any) -> bool:
    """Whether the only index is a mask, so that one number is written as by ``masked_fill``."""
    results = [index.array for index in indices if index is not None]
    return len(results) == 1 and results[0].dtype in MASKS


def index_put_of(
    self: Tensor, indices: Any, values: Tensor, *, accumulate: bool, ints: bool = True, converts: bool = True
) -> Tensor:
    """Write elements at indices, or add to them one after the other."""
    target, value = self.array, values.array
    if value.dtype != target.dtype and converts and value.size == 1 and not accumulate and _one_mask(indices):
        value = checked_scalar(values.item(), target.dtype).reshape(value.shape)
    if value.dtype != target.dtype:
        raise fail(
            f"Index put requires the source and destination dtypes match, got {words(target.dtype)} for the destination and {words(value.dtype)} for "
            "the source."
        )
    _some(target, indices, filled=value.size == 1 and not accumulate and _one_mask(indices))
    where = _index(target, indices, ints=ints)
    unaliased(target)
    if value.ndim > 1 and value.shape[0] == 1 and (accumulate or value.size > 1 or not _one_mask(indices)):
        shape = np.broadcast_to(np.zeros((), BOOL), target.shape)[where].shape
        if value.ndim > len(shape):  # numpy would take it
            raise fail(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
            )
    try:
        if accumulate:
            np.add.at(target, where, value)
        else:
            target[where] = value
    except ValueError:
        raise fail(f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result") from None
    return self


def _indexing(since: str, *, ints: bool, converts: bool) -> None:
    """Elements at places, read and written; places of int32 are taken, or not, and one number of another type where a mask is."""

    def index(self: Tensor, indices: Any) -> Tensor:
        if not indices:
            raise raised("IndexError", "at least one index must be provided")
        _some(self.array, indices)
        return Tensor(np.asarray(self.array[_index(self.array, indices, ints=ints)]).copy())

    def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
        return index_put_of(self, indices, values, accumulate=accumulate, ints=ints, converts=converts)

    def index_put_impl_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
        del unsafe  # indices are always checked
        return index_put_of(self, indices, values, accumulate=accumulate, ints=ints, converts=converts)

    def index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
        return index_put_of(Tensor(self.array.copy()), indices, values, accumulate=accumulate, ints=ints, converts=converts)

    if ints or not converts:
        operator("aten::index", since=since)(index)
    operator("aten::index_put_", since=since)(index_put_)
    operator("aten::_index_put_impl_", since=since)(index_put_impl_)
    operator("aten::index_put", since=since)(index_put)
    if ints:  # int32 indices were added later

        def unsafe_index(self: Tensor, indices: Any) -> Tensor:
            for tensor in indices:
                if tensor is not None and tensor.array.dtype.type not in {np.int32, np.int64}:
                    raise fail(f"_unsafe_index found unexpected index type {words(tensor.array.dtype)}")
            return index(self, indices)

        operator("aten::_unsafe_index")(unsafe_index)
        operator("aten::_unsafe_index_put")(index_put)


_indexing("1.0.0", ints=False, converts=False)
_indexing("1.10.0", ints=False, converts=True)
_indexing("2.0.0", ints=True, converts=True)


# ------------------------------------------------------------------------------------------------------- along a dimension


@functional("gather")
def gather_1_0(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Up to 1.5 the index is as large as the tensor, apart from the dimension."""
    del sparse_grad
    if index.array.dtype != INT64:
        raise fail(f"Expected object of scalar type Long but got scalar type {words(index.array.dtype)} for argument #3 'index'")
    at = axis(dim, self.array.ndim)
    for item, (size, wanted) in enumerate(zip(index.array.shape, self.array.shape, strict=False)):
        if item != at and size != wanted and index.array.size:
            raise fail(f"Size does not match at dimension {item} get {wanted} vs {size}")
    return _gathered(self, dim, index, ints=False)


@functional("gather", since="1.6.0")
def gather_1_6(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Indices are int64."""
    del sparse_grad
    return _gathered(self, dim, index, ints=False)


@functional("gather", since="2.8.0")
def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Indices are int64 or int32."""
    del sparse_grad
    return _gathered(self, dim, index, ints=True)


def _integers(where: str, places: Array, *, ints: bool) -> None:
    if places.dtype != INT64 and not (ints and places.dtype == np.int32):
        raise fail(f"{where}(): Expected dtype {'int32/int64' if ints else 'int64'} for index")


def _gathered(self: Tensor, dim: int, index: Tensor, *, ints: bool) -> Tensor:
    """For each place of the index, the element of that place along a dimension. Of an empty index the type is not looked at."""
    array, places = self.array, index.array
    at = axis(dim, array.ndim)
    if not places.size:
        return Tensor(np.empty(places.shape, array.dtype))
    _integers("gather", places, ints=ints)
    if (array.ndim or 1) != (places.ndim or 1):
        raise fail("Index tensor must have the same number of dimensions as input tensor")
    full, here = array.reshape(array.shape or (1,)), places.reshape(places.shape or (1,))
    _fits("gather", full, here, at)
    cut = full[tuple(slice(None) if item == at else slice(0, size) for item, size in enumerate(here.shape))]
    return Tensor(np.take_along_axis(cut, here, axis=at).reshape(places.shape))


def _fits(where: str, array: Array, places: Array, at: int) -> None:
    for item, size in enumerate(places.shape):
        if item != at and size > array.shape[item]:
            raise fail(
                f"Size does not match at dimension {item} expected index {list(places.shape)} to be no larger than self {list(array.shape)} apart from "
                f"dimension {at}"
            )
    bad = (places < 0) | (places >= array.shape[at])
    if bad.any():
        raise fail(f"index {int(places[bad][0])} is out of bounds for dimension {at} with size {array.shape[at]}")
    del where


_REDUCE: dict[str, Any] = {
    "add": np.add,
    "sum": np.add,
    "multiply": np.multiply,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _scattered(
    self: Tensor, dim: int, index: Tensor, src: Any, reduce: str | None, *, era: int, include_self: bool = True
) -> Array:
    """Places are int64; since 1.11 (era 1) the type of an empty index is not looked at, since 2.8 (era 2) int32 will do."""
    array, places = self.array.copy(), index.array
    at = axis(dim, array.ndim)
    if places.size or not era:
        _integers("scatter", places, ints=era > 1)
    if not places.size:
        return array
    full = array.reshape(array.shape or (1,))
    if max(places.ndim, 1) != full.ndim:
        raise fail("Index tensor must have the same number of dimensions as self tensor")
    here = places.reshape(places.shape or (1,))
    if src.__class__ is Tensor:
        if src.array.dtype != array.dtype:
            raise fail("scatter(): Expected self.dtype to be equal to src.dtype")
        value = src.array.reshape(src.array.shape or (1,))
        if value.ndim != here.ndim or full.ndim != here.ndim:
            raise fail("Index tensor must have the same number of dimensions as src tensor")
        if any(a > b for a, b in zip(here.shape, value.shape, strict=True)):
            raise fail(
                f"Expected index {list(places.shape)} to be no larger than self {list(self.array.shape)} apart from dimension {at} and to be no larger size than src {list(src.array.shape)}"
            )
        value = value[tuple(slice(0, size) for size in here.shape)]
    else:
        value = np.broadcast_to(checked_scalar(src, array.dtype), here.shape)
    _fits("scatter", full, here, at)
    where = list(np.indices(here.shape, sparse=True))
    where[at] = here
    if reduce is None:
        full[tuple(where)] = value
        return array
    if reduce == "mean":
        total, count = np.zeros_like(full), np.zeros(full.shape, INT64)
        np.add.at(total, tuple(where), value)
        np.add.at(count, tuple(where), 1)
        base = full + total if include_self else np.where(count > 0, total, full)
        divisor = count + 1 if include_self else np.maximum(count, 1)
        mean = base / divisor if array.dtype.kind not in "iu" else np.floor_divide(base, divisor)
        full[...] = mean.astype(array.dtype)
        return array
    if reduce not in _REDUCE:
        raise fail(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if not include_self:
        start = {"sum": 0, "prod": 1, "amax": _lowest(array.dtype), "amin": _highest(array.dtype)}[reduce]
        full[tuple(where)] = start
    _REDUCE[reduce].at(full, tuple(where), value)
    return array


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype == BOOL:
        return False
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    if dtype == BOOL:
        return True
    return np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


def _scatters() -> None:
    for era, since in enumerate(("1.0.0", "1.11.0", "2.8.0")):

        def scatter(
            self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Scalar | None = None, reduce: str | None = None, era: int = era
        ) -> Tensor:  # fmt: skip
            """Write elements to indices along a dimension."""
            if reduce not in {None, "add", "multiply"}:
                raise fail("reduce argument must be either add or multiply.")
            return Tensor(_scattered(self, dim, index, value if src is None else src, reduce, era=era))

        def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor, *, era: int = era) -> Tensor:
            """Add elements at indices along a dimension, one after the other."""
            return Tensor(_scattered(self, dim, index, src, "add", era=era))

        def scatter_reduce(
            self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, era: int = era
        ) -> Tensor:
            """Reduce elements at indices along a dimension."""
            return Tensor(_scattered(self, dim, index, src, reduce, include_self=include_self, era=era))

        functional("scatter", inplace=True, since=since)(scatter)
        functional("scatter_add", inplace=True, since=since)(scatter_add)
        functional("scatter_reduce", inplace=True, since=since)(scatter_reduce)


_scatters()


@functional("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    """Elements by linear index."""
    flat = self.array.reshape(-1)
    places = places_within("take", index.array, flat.size, negative=True)
    return Tensor(np.asarray(flat[places]))


def _take_along_dim(self: Tensor, indices: Tensor, dim: int | None, *, ints: bool, wraps: bool = False) -> Tensor:
    """As numpy's ``take_along_axis``, by way of ``gather``; along a dimension places are int64 in every release.

    Parameters:
        self: of which elements are taken.
        indices: their places.
        dim: along which; of all elements in order where there is none.
        ints: whether ``gather`` takes int32.
        wraps: whether places along a dimension are taken modulo its size, so that none is out of range.
    """
    array, places = self.array, indices.array
    if dim is None:
        return _gathered(Tensor(array.reshape(-1)), 0, Tensor(places.reshape(-1)), ints=ints)
    if array.ndim != places.ndim:
        raise fail(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {array.ndim} dimensions for input, and "
            f"{places.ndim} dimensions for indices"
        )
    if places.dtype != INT64:
        raise fail(f"torch.take_along_dim(): dtype of indices should be Long but got {words(places.dtype)}")
    at = axis(dim, array.ndim)
    if not array.ndim:
        return _gathered(self, 0, indices, ints=ints)
    if wraps and places.size:
        if not array.shape[at]:
            raise fail("ZeroDivisionError")
        places = places % array.shape[at]
    lead, rest = array.shape[:at], array.shape[at + 1 :]
    whole = broadcast(np.empty((*lead, 1, *rest), BOOL), np.empty((*places.shape[:at], 1, *places.shape[at + 1 :]), BOOL))
    wide = np.broadcast_to(array, (*whole[:at], array.shape[at], *whole[at + 1 :]))
    chosen = np.broadcast_to(places, (*whole[:at], places.shape[at], *whole[at + 1 :]))
    return _gathered(Tensor(wide), at, Tensor(chosen), ints=ints)


functional("take_along_dim")(lambda self, indices, dim=None: _take_along_dim(self, indices, dim, ints=False))
functional("take_along_dim", since="2.8.0")(lambda self, indices, dim=None: _take_along_dim(self, indices, dim, ints=True))
functional("take_along_dim", since="2.10.0")(
    lambda self, indices, dim=None: _take_along_dim(self, indices, dim, ints=True, wraps=True)
)


@operator("aten::put_")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write elements by linear index."""
    flat = self.array.reshape(-1).copy()
    if source.array.dtype != flat.dtype:
        raise fail(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {words(flat.dtype)} and source.dtype = "
            f"{words(source.array.dtype)}"
        )
    if source.array.size != index.array.size:
        raise raised(
            "IndexError",
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.array.size}, index.numel() = "
            f"{index.array.size}",
        )
    places = places_within("put_", index.array, flat.size, negative=True).reshape(-1)
    if accumulate:
        np.add.at(flat, places, source.array.reshape(-1))
    else:
        flat[places] = source.array.reshape(-1)
    return overwrite(self, flat.reshape(self.array.shape))


# ---------------------------------------------------------------------------------------------------- views written, as copies


def _written(self: Tensor, where: Any, src: Tensor) -> Tensor:
    array = self.array.copy()
    if array[where].shape != src.array.shape:
        raise fail(
            f"expected src to have a size equal to the slice of self. src size = {list(src.array.shape)}, slice size = {list(array[where].shape)}"
        )
    array[where] = cast(src.array, array.dtype)
    return Tensor(array)


@operator("aten::select_scatter")
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with one index of a dimension written."""
    return _written(self, (*(slice(None),) * axis(dim, self.array.ndim), index, ...), src)


@operator("aten::slice_scatter")
def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with a slice of a dimension written."""
    if step <= 0:
        raise fail("slice step must be positive")
    return _written(self, (*(slice(None),) * axis(dim, self.array.ndim), slice(start, end, step)), src)


@operator("aten::diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with a diagonal written."""
    copied = Tensor(self.array.copy())
    part = diagonal(copied, offset, dim1, dim2)
    if part.shape != src.shape:
        raise fail(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    write(part, src.array)
    return copied


__all__ = ["index_put_of"]
