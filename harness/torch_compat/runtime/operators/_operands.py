"""Operands of arithmetic: how releases combine tensors and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
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

Operand = Any  # a tensor or a Python number, distinguished at run time


SHORT = 2  # bytes


def single(x: Array, other: Operand) -> Array | None:
    """A number as float32 next to a 16-bit tensor, for which 2.1 and newer do not round it; None in all other cases."""
    if x.dtype.itemsize != SHORT or x.dtype not in HALVES:
        return None
    if other.__class__ is not Tensor:
        return np.asarray(other, FLOAT32)
    return other.array.astype(FLOAT32) if other.array.size == 1 else None


def with_out(self: Operand, other: Operand, out: Tensor | None) -> tuple[Array, Array]:
    """Cast operands to the dtype of ``out`` before the computation, as releases up to 1.5 do."""
    x, y = common(self, other)
    if out is not None and out.array.dtype != x.dtype:
        if dtypes.of_numpy(x.dtype).category > out.dtype.category:
            raise fail(f"result type {words(x.dtype)} can't be cast to the desired output type {words(out.array.dtype)}")
        together = dtypes.promote(dtypes.of_numpy(x.dtype), out.dtype)
        return cast(as_array(self), together.array), cast(as_array(other), together.array)
    return x, y


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
    broadcast(*(one.array for one in tensors))
    return kind
