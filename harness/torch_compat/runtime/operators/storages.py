"""Operators that give a tensor the memory of another tensor, or compare the memory of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import fail, words
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor, offset_of, owner, strides_of

if TYPE_CHECKING:
    from collections.abc import Callable


@operator("aten::is_set_to", gradient=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same view of the same memory."""
    a, b = self.array, tensor.array
    return bool(
        a.shape == b.shape and a.strides == b.strides and owner(a) is owner(b) and self.storage_offset == tensor.storage_offset
    )


def _set(self: Tensor, source: Tensor | None, other: Callable[[Tensor, Tensor], Any]) -> Tensor:
    if source is None:
        self.array = np.empty(0, self.array.dtype)
    else:
        self.array = source.array[...] if source.array.dtype == self.array.dtype else other(self, source)
    return self


@operator("aten::set_", gradient=False)
def set_1_0(self: Tensor, source: Tensor | None = None) -> Tensor:
    """Take over the memory of another tensor. Up to 1.5, the two must have one dtype."""
    return _set(self, source, lambda self, source: _refuse(self, source, ""))


@operator("aten::set_", gradient=False, since="1.3.0")
def set_1_3(self: Tensor, source: Tensor | None = None) -> Tensor:
    """In 1.3 and 1.4, the message names the call."""
    return _set(self, source, lambda self, source: _refuse(self, source, " in call to _th_set_"))


@operator("aten::set_", gradient=False, since="1.5.0")
def set_1_5(self: Tensor, source: Tensor | None = None) -> Tensor:
    """The error of 1.5 names C++ types, and the dtype of the source by a number."""
    return _set(self, source, _refuse_1_5)


@operator("aten::set_", gradient=False, since="1.6.0")
def set_(self: Tensor, source: Tensor | None = None) -> Tensor:
    """Take over the memory of another tensor. The dtype stays: the bytes of a tensor of another dtype are read as this dtype."""
    return _set(self, source, _reinterpreted)


def _refuse(self: Tensor, source: Tensor, where: str) -> Any:
    raise fail(
        f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(source.array.dtype)} for argument #2 'source'{where}"
    )


def _refuse_1_5(_self: Tensor, _source: Tensor) -> Any:
    raise Unsupported(
        "aten::set_ of a tensor with another dtype, which 1.5 refuses with a message that is not modeled", code="operator"
    )


def _reinterpreted(self: Tensor, source: Tensor) -> Any:
    """The memory of another dtype: shape, strides and offset count elements, and keep their numbers."""
    array, dtype = source.array, self.array.dtype
    base, strides, offset = owner(array), strides_of(array), offset_of(array)
    if not array.size:
        return np.empty(array.shape, dtype)
    last = offset + sum((size - 1) * stride for size, stride in zip(array.shape, strides, strict=True))
    if (last + 1) * dtype.itemsize > base.nbytes:
        raise Unsupported(
            "aten::set_ grows the storage of a tensor with smaller elements by uninitialized memory", code="operator"
        )
    memory = base if base.flags.c_contiguous else base.ravel(order="K")  # the same memory in memory order
    return arrays.view(memory, dtype, array.shape, strides, offset)


@operator("aten::set_data", gradient=False)
def set_data(self: Tensor, new_data: Tensor) -> None:
    """Take over the memory and the dtype of another tensor."""
    self.array = new_data.array[...]
