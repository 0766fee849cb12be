"""Elements selected by masks, which are filled, read or written; positions of nonzero elements, and ``where``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import (
    BOOL,
    INT64,
    Array,
    as_array,
    broadcast,
    cast,
    checked_scalar,
    common,
    fail,
    functional,
    into,
    words,
    write,
)
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.operators.casting import not_a_leaf
from torch_compat.runtime.operators.views import of_view
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


ONLY_BOOL, BYTES_TOO, FIRST_BYTES = range(3)
"""Which masks are accepted besides those of bools: none, those of bytes, or all, of which the lowest byte of each element is read."""


def _mask(mask: Tensor, taken: int) -> Array:
    array = mask.array
    if array.dtype == BOOL:
        return array
    if taken == ONLY_BOOL or (taken == BYTES_TOO and array.dtype != np.uint8):
        raise fail(f"only boolean masks are supported, but got mask with dtype {words(array.dtype)}")
    lowest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, array.itemsize)[:, 0].reshape(array.shape)
    if lowest.size and int(lowest.max()) > 1:
        raise fail("Mask tensor can take 0 and 1 values only")
    return lowest != 0


def _masked_fill(self: Tensor, mask: Tensor, value: Any, taken: int) -> Tensor:
    if value.__class__ is Tensor:
        if value.array.ndim:
            raise fail(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.array.ndim} dimension(s)."
            )
        value = value.item()
    array = self.array
    chosen = _mask(mask, taken)
    broadcast(array, chosen)
    return Tensor(np.where(chosen, checked_scalar(value, array.dtype), array))


def _bytes_only(mask: Tensor) -> None:
    """Up to 1.1 masks must be uint8."""
    if mask.array.dtype != np.uint8:
        raise fail(f"Expected object of scalar type Byte but got scalar type {words(mask.array.dtype)} for argument #2 'mask'")


def _masked_fill_1_0(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    _bytes_only(mask)
    return _masked_fill(self, mask, value, BYTES_TOO)


def _masked_fills(since: str, function: Any) -> None:
    """Register ``masked_fill`` and its in-place form, which accepts targets whose elements share memory; some releases warn about these."""
    functional("masked_fill", out=False, since=since)(function)

    def in_place(self: Tensor, mask: Tensor, value: Any) -> Tensor:
        tensor = function(self, mask, value)
        if tensor.array.shape == self.array.shape and 0 in self.array.strides:
            not_a_leaf(self)
            self.array[...] = tensor.array
            return self
        return write(self, tensor.array)

    operator("aten::masked_fill_", since=since)(in_place)


# Boolean masks are accepted since 1.2, all others are refused since 2.1.
_masked_fills("1.0.0", _masked_fill_1_0)
_masked_fills("1.2.0", lambda self, mask, value: _masked_fill(self, mask, value, BYTES_TOO))
_masked_fills("1.5.0", lambda self, mask, value: _masked_fill(self, mask, value, FIRST_BYTES))
_masked_fills("2.1.0", lambda self, mask, value: _masked_fill(self, mask, value, ONLY_BOOL))


def _masked_scatter(self: Tensor, mask: Tensor, source: Tensor, taken: int, *, by_memory: bool = False) -> Tensor:
    """Copy the elements of the source, in order, to where the mask is set.

    Parameters:
        by_memory: whether the elements of the result are visited in the memory order of ``self``.
    """
    if source.array.dtype != self.array.dtype:
        raise fail(
            f"masked_scatter: expected self and source to have same dtypes but got {words(self.array.dtype)} and {words(source.array.dtype)}"
        )
    chosen = _mask(mask, taken)
    shape = broadcast(self.array, chosen)
    array, chosen = np.broadcast_to(self.array, shape).copy(), np.broadcast_to(chosen, shape)
    count = int(chosen.sum())
    if source.array.size < count:
        raise fail(
            f"masked_scatter: expected self and source to have as many elements: {count} needed, {source.array.size} available"
        )
    if by_memory and shape == self.array.shape:
        steps = [step if size > 1 else 0 for size, step in zip(shape, self.array.strides, strict=True)]
        order = sorted(range(len(shape)), key=steps.__getitem__, reverse=True)
        array.transpose(order)[chosen.transpose(order)] = source.array.reshape(-1)[:count]
    else:
        array[chosen] = source.array.reshape(-1)[:count]
    return Tensor(array)


def _masked_scatter_1_0(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    _bytes_only(mask)
    return _masked_scatter(self, mask, source, BYTES_TOO)


functional("masked_scatter", inplace=True, out=False)(_masked_scatter_1_0)
functional("masked_scatter", inplace=True, out=False, since="1.2.0")(
    lambda self, mask, source: _masked_scatter(self, mask, source, BYTES_TOO)
)
functional("masked_scatter", out=False, since="1.8.0")(
    lambda self, mask, source: _masked_scatter(self, mask, source, FIRST_BYTES)
)


@operator("aten::masked_scatter_", since="1.8.0")
def masked_scatter_1_8(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """From 1.8 to 2.0, elements are visited in the memory order of the tensor that is written to."""
    return write(self, _masked_scatter(self, mask, source, FIRST_BYTES, by_memory=True).array)


functional("masked_scatter", inplace=True, out=False, since="2.1.0")(
    lambda self, mask, source: _masked_scatter(self, mask, source, ONLY_BOOL)
)


def _masked_select(self: Tensor, mask: Tensor, taken: int) -> Tensor:
    chosen = _mask(mask, taken)
    shape = broadcast(self.array, chosen)
    meter.read(math.prod(shape))  # numpy materializes both
    return Tensor(np.broadcast_to(self.array, shape)[np.broadcast_to(chosen, shape)].copy())


def _masked_select_1_0(self: Tensor, mask: Tensor) -> Tensor:
    _bytes_only(mask)
    return _alone(self, mask, _masked_select(self, mask, BYTES_TOO))


def _alone(self: Tensor, mask: Tensor, tensor: Tensor) -> Tensor:
    """Up to 1.4 one element that is selected from a 0-dim tensor by a 0-dim mask gives a 0-dim tensor."""
    return Tensor(tensor.array.reshape(())) if not self.array.ndim and not mask.array.ndim and tensor.array.size else tensor


functional("masked_select")(_masked_select_1_0)
functional("masked_select", since="1.2.0")(lambda self, mask: _alone(self, mask, _masked_select(self, mask, BYTES_TOO)))
functional("masked_select", since="1.5.0")(lambda self, mask: _masked_select(self, mask, BYTES_TOO))
functional("masked_select", since="2.1.0")(lambda self, mask: _masked_select(self, mask, ONLY_BOOL))


@functional("nonzero", gradient=False)
def nonzero_1_0(self: Tensor) -> Tensor:
    """Positions of nonzero elements, one in a row; stored row by row."""
    array = self.array
    if not array.ndim:
        return Tensor(np.zeros((int(array != 0), 0), INT64))
    return Tensor(np.array(np.argwhere(array != 0), INT64, order="C"))  # a copy: numpy keeps the strides of a single column


@functional("nonzero", since="1.10.0", gradient=False)
def nonzero(self: Tensor) -> Tensor:
    """As of 1.10 the positions are stored column by column: the stride of columns is the number of rows, even if that is 0."""
    result = nonzero_1_0(self).array
    if result.size:
        return Tensor(np.array(result.T, order="C").T)
    return Tensor(np.zeros(0, INT64)).as_strided(result.shape, (1, result.shape[0]))


@functional("nonzero_static", exact=True, gradient=False)
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first ``size`` of these positions; missing rows are filled with ``fill_value``."""
    if size < 0:
        raise fail("nonzero_static: 'size' must be an non-negative integer")
    result = nonzero_1_0(self).array
    sized(size, result.shape[1])
    value = np.full((size, result.shape[1]), fill_value, INT64)
    value[: len(result)] = result[:size]
    return Tensor(value)


def _columns(self: Tensor, places: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Positions of nonzero elements, one tensor for each dimension; all are views of one tensor."""
    tensor = places(self if self.ndim else Tensor(self.array.reshape(1)))
    return [of_view(tensor, tensor.array[:, at]) for at in range(tensor.array.shape[1])]


operator("aten::nonzero_numpy", gradient=False)(lambda self: _columns(self, nonzero_1_0))
operator("aten::nonzero_numpy", since="1.10.0", gradient=False)(lambda self: _columns(self, nonzero))


@operator("aten::argwhere", gradient=False)
def argwhere(self: Tensor) -> Tensor:
    """Positions of nonzero elements, one in a row."""
    return nonzero(self)


def _where(condition: Tensor, self: Any, other: Any, *, promote: bool) -> Tensor:
    chosen = condition.array
    if chosen.dtype not in (BOOL, np.uint8):
        raise fail(f"where expected condition to be a boolean tensor, but got a tensor with dtype {words(chosen.dtype)}")
    if not promote and self.__class__ is Tensor and other.__class__ is Tensor and self.array.dtype != other.array.dtype:
        raise fail(f"expected scalar type {words(self.array.dtype)} but found {words(other.array.dtype)}")
    if self.__class__ is not Tensor and other.__class__ is not Tensor:
        kind = dtypes.promote(dtypes.of_scalar(self), dtypes.of_scalar(other)).array
        x, y = cast(as_array(self), kind), cast(as_array(other), kind)
    else:
        x, y = common(self, other)
        for operand in (self, other):
            if operand.__class__ is not Tensor:
                checked_scalar(operand, x.dtype)
    broadcast(chosen, np.asarray(x), np.asarray(y))
    return Tensor(np.where(chosen != 0, x, y))


@operator("aten::_s_where")
def s_where_1_0(condition: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """Up to 1.2 nothing is broadcast: tensors with equally many elements are read in order, and the result has the shape of ``self``."""
    if not condition.array.size == self.array.size == other.array.size:
        raise fail(
            f"inconsistent tensor size, expected {list(condition.shape)}, {list(self.shape)} and {list(other.shape)} to match"
        )
    flat = [Tensor(tensor.array.reshape(-1)) for tensor in (condition, self, other)]
    return Tensor(_where(*flat, promote=False).array.reshape(self.shape))


def _wheres() -> None:
    def registered(since: str, places: Callable[[Tensor], Tensor], *, promote: bool) -> None:
        @operator("aten::where", since=since)
        def where(condition: Tensor, self: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
            """Elements of one tensor or the other; with a condition only, the positions where it is true."""
            if self is None and other is None:
                return _columns(condition, places)
            result = _where(condition, self, other, promote=promote)
            return result if out is None else into(out, result.array)

        operator("aten::_s_where", since=max(since, "1.3.0", key=Release))(where)

    registered("1.0.0", nonzero_1_0, promote=False)
    registered("1.10.0", nonzero, promote=False)
    registered("1.12.0", nonzero, promote=True)


_wheres()
