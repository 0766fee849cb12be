"""Powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Scalar,
    as_array,
    broadcast,
    can_cast,
    cast,
    checked_scalar,
    common,
    common_1_0,
    fail,
    functional,
    not_implemented,
    scalar_as,
    wide,
    words,
    write,
)
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from torch_compat.runtime.operators._operands import Operand


def _integer_power(x: Array, y: Array) -> Array:
    """Integer powers wrap; negative powers are 0, except those of 1 and -1."""
    with np.errstate(all="ignore"):
        base = x if x.dtype.kind != "b" else x.astype(np.int64)
        powers = np.power(base, np.where(y < 0, np.zeros_like(y), y))
        small = np.where(base == 1, 1, np.where(base == -1, np.where(y % 2 == 0, 1, -1), 0)) if y.dtype.kind == "i" else powers
        return np.where(y < 0, small, powers).astype(x.dtype)


def _power(x: Array, y: Array) -> Array:
    broadcast(x, y)
    if x.dtype == BOOL:
        raise not_implemented("pow", x.dtype)
    if x.dtype.kind == "c":
        return _complex_power(x, y)
    return _integer_power(x, y) if x.dtype.kind in "iu" else _plain_power(x, y)


def _plain_power(x: Array, y: Array) -> Array:
    """Powers without a shortcut for square roots, which NumPy takes for a single exponent: that of -inf is inf, and that of -0.0 is 0.0."""
    shape = broadcast(x, y) or (1,)
    result = np.power(np.broadcast_to(x, shape), np.ascontiguousarray(np.broadcast_to(y, shape)))
    return result.reshape(broadcast(x, y))


def _complex_power(x: Array, y: Array) -> Array:
    """Complex powers by logarithms, as in C++, including zero to the power of zero, which is then NaN."""
    return np.where(x == 0, np.exp(y * np.log(x)), np.power(x, y))


def _power_of_number(x: Array, exponent: Scalar) -> Array:
    """A tensor to the power of a number, with shortcuts for some exponents."""
    if x.dtype.kind in "iu":
        if exponent.real < 0:
            raise fail("Integers to negative integer powers are not allowed.")
        return _integer_power(x, checked_scalar(exponent, x.dtype))
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    if x.dtype.kind == "c" and exponent != 0.5:
        return np.power(x, scalar_as(exponent, x.dtype))
    if x.dtype == np.float16 and abs(exponent) == 0.5:
        return _plain_power(wide(x), np.asarray(exponent, FLOAT32)).astype(x.dtype)
    if exponent == 0.5:
        return np.sqrt(x)
    if exponent == -0.5:
        return (1 / np.sqrt(x)).astype(x.dtype)
    if exponent == -1:
        return (scalar_as(1, x.dtype) / x).astype(x.dtype)
    if exponent == -2:
        return (scalar_as(1, x.dtype) / (x * x)).astype(x.dtype)
    return np.power(x, checked_scalar(exponent, x.dtype))


def _pow(self: Operand, exponent: Operand) -> Tensor:
    x, y = common(self, exponent)
    if exponent.__class__ is Tensor:
        if self.__class__ is not Tensor and self == 1:
            return Tensor(np.ones(y.shape, y.dtype))
        return Tensor(_power(x, y))
    if exponent == 0:
        return Tensor(np.ones(x.shape, x.dtype))
    if exponent == 1:
        return Tensor(x.copy())
    return Tensor(_power_of_number(x, exponent))


INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
LIMITS = {INT16: 2.0**15, INT32: 2.0**31, INT64: 2.0**63}


def _truncated(value: Array, dtype: np.dtype[Any], least: np.dtype[Any] = INT32) -> Array:
    """Convert doubles to integers like the processor: values out of range become the smallest integer, whose lower bits are kept.

    Parameters:
        least: the smallest integer dtype that the processor converts to.
    """
    word = max(dtype, least, key=lambda item: item.itemsize)
    fits = np.abs(np.trunc(value)) < LIMITS[word]
    return np.where(fits, np.where(fits, value, 0).astype(word), np.iinfo(word).min).astype(word).astype(dtype)


def _pow_1_3(self: Operand, exponent: Operand) -> Tensor:
    """From 1.3 to 1.5 powers of integers are truncated doubles; the result has the dtype of the tensor."""
    x, y = common(self, exponent)
    if exponent.__class__ is Tensor:
        base = self.array if self.__class__ is Tensor else exponent.array
        if self.__class__ is not Tensor and self == 1:
            return Tensor(np.ones(y.shape, base.dtype))
        if not can_cast(x.dtype, base.dtype):
            raise fail(f"result type {words(x.dtype)} can't be cast to the desired output type {words(base.dtype)}")
        if x.dtype.kind not in "iu":
            return Tensor(cast(_power(x, y), base.dtype))
        broadcast(x, y)
        return Tensor(cast(_truncated(np.power(x.astype(FLOAT64), y.astype(FLOAT64)), x.dtype), base.dtype))
    base = self.array
    if base.dtype.kind in "iub" and exponent.__class__ is int and exponent < 0:
        raise fail("Integers to negative integer powers are not allowed.")
    if exponent == 0:
        return Tensor(np.ones(base.shape, base.dtype))
    if exponent == 1:
        return Tensor(base.copy())
    if base.dtype == BOOL:
        raise not_implemented("pow", base.dtype)
    if base.dtype.kind in "iu" and exponent not in {2, 3}:
        least = INT16 if exponent.__class__ is float else INT32
        return Tensor(_truncated(np.power(base.astype(FLOAT64), float(exponent.real)), base.dtype, least))
    return Tensor(_power_of_number(base, exponent))


def _pow_1_0(self: Operand, exponent: Operand) -> Tensor:
    x, y = common_1_0(self, exponent)
    if exponent.__class__ is Tensor:
        return Tensor(_power(x, y))
    if not x.size:
        return Tensor(x.copy())
    if x.dtype.kind in "iub" and exponent.__class__ is float:
        exponent = int(checked_scalar(exponent, x.dtype))
    return Tensor(_power_of_number(x, exponent)) if exponent != 0 else Tensor(np.ones(x.shape, x.dtype))


functional("pow", inplace=True)(_pow_1_0)
functional("pow", inplace=True, since="1.3.0")(_pow_1_3)
functional("pow", inplace=True, since="1.6.0")(_pow)


@functional("float_power")
def float_power(self: Operand, exponent: Operand) -> Tensor:
    """Powers in double precision."""
    x, _ = common(self, exponent)
    dtype = np.dtype(np.complex128) if x.dtype.kind == "c" else FLOAT64
    if exponent.__class__ is not Tensor:
        return Tensor(_power_of_number(cast(as_array(self), dtype), exponent))
    return Tensor(
        (_complex_power if dtype.kind == "c" else np.power)(cast(as_array(self), dtype), cast(as_array(exponent), dtype))
    )


@operator("aten::float_power_")
def float_power_(self: Tensor, exponent: Operand) -> Tensor:
    """In place, the base must have the dtype of the result."""
    tensor = float_power(self, exponent)
    if tensor.dtype is not self.dtype:
        raise fail(
            f"the base given to float_power_ has dtype {self.dtype.name} but the operation's result requires dtype {tensor.dtype.name}"
        )
    return write(self, tensor.array)


@functional("square", inplace=True)
def square(self: Tensor) -> Tensor:
    """``self ** 2``."""
    return _pow(self, 2)
