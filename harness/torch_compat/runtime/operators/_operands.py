"""Operands of arithmetic: how releases combine tensors and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    HALVES,
    Array,
    as_array,
    broadcast,
    cast,
    common,
    fail,
    not_implemented,
    words,
)
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from torch_compat.runtime.dtypes import Dtype

Operand = Any  # a tensor or a Python number, distinguished at run time


SHORT = 2  # bytes


def single(x: Array, other: Operand) -> Array | None:
    """A number as float32 next to a 16-bit tensor, for which 2.1 and newer do not round it; None in all other cases."""
    if x.dtype.itemsize != SHORT or x.dtype not in HALVES:
        return None
    if other.__class__ is not Tensor:
        return np.asarray(other, FLOAT32)
    return other.array.astype(FLOAT32) if other.array.size == 1 else None


def operands_1_3(self: Operand, other: Operand, out: Tensor | None, kernel: str) -> tuple[Array, Array]:
    """Operands in the common dtype of 1.3 to 1.5, in which ``out`` takes part after it has been resized.

    Parameters:
        kernel: the kernel in the message for float16, which these releases do not compute.

    Raises:
        Raised: there is no common dtype, it cannot be cast to that of ``out``, or it is float16.
    """
    if out is None:
        x, y = operands_1_6(self, other)
    else:
        shape = broadcast(*(operand.array for operand in (self, other) if operand.__class__ is Tensor))
        together = _promoted_1_6((Tensor(np.empty((0,) * bool(shape), out.array.dtype)), self, other))
        if together.category > out.dtype.category:
            raise fail(f"result type {words(together.array)} can't be cast to the desired output type {words(out.array.dtype)}")
        x, y = (cast(as_array(operand), together.array) for operand in (self, other))
    if x.dtype == FLOAT16:
        raise not_implemented(kernel, FLOAT16)
    return x, y


def operands_1_6(self: Operand, other: Operand) -> tuple[Array, Array]:
    """Operands in the common dtype of 1.6.

    Raises:
        Raised: there is no common dtype, because bfloat16 meets another dtype of the same group.
    """
    if any(operand.__class__ is Tensor and operand.array.dtype == BFLOAT16 for operand in (self, other)):
        together = _promoted_1_6((self, other)).array
        return cast(as_array(self), together), cast(as_array(other), together)
    return common(self, other)


def _promoted_1_6(values: tuple[Operand, ...]) -> Dtype:
    """The result type up to 1.6, in which bfloat16 and another dtype have no common dtype (``Undefined``).

    An undefined dtype is replaced by the next dtype of its group, or of a lower group, so the order of the operands matters.
    """
    if all(tensor.__class__ is not Tensor or tensor.array.dtype != BFLOAT16 for tensor in values):
        return dtypes.result_type(values)
    dims: Dtype | None = None
    zero: Dtype | None = None
    wrapped: Dtype | None = None
    for value in values:
        if value.__class__ is not Tensor:
            wrapped = _defined(wrapped, dtypes.of_scalar(value))
        elif value.array.ndim:
            dims = _defined(dims, value.dtype)
        else:
            zero = _defined(zero, value.dtype)
    together = _grouped(dims, _grouped(zero, wrapped))
    if together is None:
        raise fail("dtype != ScalarType::Undefined INTERNAL ASSERT FAILED")
    return together


def _defined(first: Dtype | None, second: Dtype | None) -> Dtype | None:
    """The common dtype of two dtypes of the same group; None is undefined and does not count."""
    if first is None or second is None:
        return second if first is None else first
    if first is not second and BFLOAT16 in {first.array, second.array}:
        return None
    return dtypes.promote(first, second)


def _grouped(higher: Dtype | None, lower: Dtype | None) -> Dtype | None:
    """The dtype of a group and the group below it, which counts only if its category is higher."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.category >= dtypes.FLOATING:
        return higher
    return _defined(higher, lower) if not higher.category or lower.category >= dtypes.FLOATING else higher


def common_float(where: str, *tensors: Tensor) -> np.dtype[Any]:
    """The common floating-point dtype of tensors that broadcast.

    Raises:
        Raised: the common dtype is an integer dtype, or the tensors do not broadcast.
        Unsupported: the common dtype is complex, which few operators take, and only in some releases.
    """
    kind = dtypes.result_type(tensors).array
    if kind.kind in "iub":
        raise not_implemented(where, kind)
    if kind.kind == "c":
        raise Unsupported(f"the reference reader does not compute {where} of complex numbers", code="dtype")
    broadcast(*(tensor.array for tensor in tensors))
    return kind
