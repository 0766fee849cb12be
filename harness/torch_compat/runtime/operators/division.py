"""Quotients and remainders.

``div`` of integers truncates up to 1.5, raises in 1.6, and is a true division since 1.7. Each behavior is a version here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT16,
    FLOAT64,
    Array,
    as_array,
    broadcast,
    can_cast,
    cast,
    checked_scalar,
    common,
    common_1_0,
    common_floats,
    fail,
    floating,
    functional,
    into,
    not_implemented,
    scalar_as,
    wide,
    words,
    write,
)
from torch_compat.runtime.operators._operands import Operand, operands_1_3, operands_1_6, single
from torch_compat.runtime.operators._vectors import BYTES_TAKEN
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


_INTEGER_DIVISION = (
    "Integer division of tensors using div or / is no longer supported, and in a future release div will perform true division as in "
    "Python 3. Use true_divide or floor_divide (// in Python) instead."
)


def _no_zero(y: Array) -> None:
    if y.size and not y.all():
        raise fail("ZeroDivisionError")


def _true_quotient(x: Array, y: Array) -> Array:
    try:
        if x.dtype.kind in "iub":
            default = dtypes.default_dtype().array
            return np.divide(x.astype(default), y.astype(default))
        return np.divide(x, y)
    except ValueError:
        broadcast(x, y)
        raise


def _true_quotient_1_6(x: Array, y: Array) -> Array:
    """Up to 1.13, complex numbers are divided by the square of the divisor, which may be zero, infinite or not a number."""
    value = _true_quotient(x, y)
    if value.dtype.kind == "c":
        square = y.real * y.real + y.imag * y.imag
        odd = (square == 0) | ~np.isfinite(square)
        if odd.any():
            real, imag = x.real * y.real + x.imag * y.imag, x.imag * y.real - x.real * y.imag
            plain = np.empty(value.shape, value.dtype)
            plain.real, plain.imag = real / square, imag / square
            value = np.where(odd, plain, value)
    return value


def _overflows(x: Array, y: Array) -> None:
    """Refuse the minimum integer divided by -1: the processor raises SIGFPE for 32 and 64 bits, so every release crashes outside of vectors."""
    if x.dtype.kind == "i" and x.dtype.itemsize >= 4 and ((x == np.iinfo(x.dtype).min) & (y == -1)).any():
        raise Unsupported(f"the program divides the lowest {x.dtype} by -1, which can crash a release (SIGFPE)", code="overflow")


def trunc_quotient(x: Array, y: Array) -> Array:
    """``x / y`` truncated toward zero."""
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise not_implemented("div_trunc_cpu", x.dtype)
    if x.dtype.kind in "iu":
        shape = broadcast(x, y)
        if shape and 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
        _overflows(x, y)
        quotient = np.floor_divide(x, y)
        # Add one if the division rounded down below zero.
        return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.trunc(_true_quotient(x, y))


def _floor_quotient(x: Array, y: Array, *, zero: bool = True) -> Array:
    """Same as Python's ``//``; ``zero`` tells whether dividing a float by zero gives infinity (since 1.9) or NaN."""
    if x.dtype == BOOL:
        raise not_implemented("div_floor_cpu", x.dtype)
    if x.dtype.kind in "iu":
        shape = broadcast(x, y)
        if shape and 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
        return np.floor_divide(x, y)
    if x.dtype.kind == "c":
        raise not_implemented("div_floor_cpu", x.dtype)
    broadcast(x, y)
    a, b = wide(x), wide(y)
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    down = np.floor(quotient)
    down = np.where(quotient - down > 0.5, down + 1, down)
    exact = a / b
    value = np.where(quotient != 0, down, np.copysign(np.zeros((), a.dtype), exact))
    if zero:
        value = np.where(b == 0, exact, value)
    return value.astype(x.dtype)


def _divided(x: Array, y: Array, rounding_mode: str | None, *, zero: bool = True, old: bool = False) -> Array:
    if rounding_mode is None:
        return _true_quotient_1_6(x, y) if old else _true_quotient(x, y)
    if rounding_mode == "trunc":
        return trunc_quotient(x, y)
    if rounding_mode == "floor":
        return _floor_quotient(x, y, zero=zero)
    raise fail(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def _quotient(self: Operand, other: Operand, rounding_mode: str | None) -> Array:
    """Since 2.1 a number is not rounded to 16 bits before the division, unless the quotient is rounded down."""
    x, y = common_floats(self, other) if rounding_mode is None else common(self, other)
    number = single(x, other) if rounding_mode in {None, "trunc"} else None
    return _divided(x, y, rounding_mode) if number is None else _divided(wide(x), number, rounding_mode).astype(x.dtype)


def _by_zero_2_0(self: Operand, other: Operand) -> None:
    """Refuse to divide complex numbers by zero or infinity in 2.0 to 2.6, where vectorized and scalar code differ.

    Raises:
        Unsupported: the call is such a division.
    """
    x, y = (
        operand.array.dtype.kind if operand.__class__ is Tensor else "c" if operand.__class__ is complex else ""
        for operand in (self, other)
    )
    if "c" not in {x, y}:
        return
    dividend, divisor = as_array(self), as_array(other)
    if np.isinf(divisor).any() and max(dividend.size, divisor.size) * max(dividend.itemsize, divisor.itemsize) >= BYTES_TAKEN:
        raise Unsupported(
            "division of complex numbers by infinity is not supported: from 2.0 to 2.6, vectorized and scalar code give different results",
            code="complex",
        )
    if not np.all(divisor):
        raise Unsupported(
            "division of complex numbers by zero is not supported: from 2.0 to 2.6, vectorized and scalar code give different results",
            code="complex",
        )


def _old_quotient(x: Array, y: Array) -> Array:
    """Truncate integer quotients toward zero, as C does."""
    return trunc_quotient(x, y) if x.dtype.kind in "iu" else _true_quotient_1_6(x, y)


def _divisions(names: tuple[str, ...]) -> None:
    """``div`` and its alias, version by version."""

    def div_1_0(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        x, y = common_1_0(self, other, promotes=True)
        if x.dtype == BOOL:
            raise not_implemented("div_cpu", x.dtype)
        value = _old_quotient(x, y)
        return Tensor(value) if out is None else into(out, value, exact=True)

    def div_1_3(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        x, y = operands_1_3(self, other, out, "div_cpu")
        if x.dtype == BOOL:
            raise not_implemented("div_cpu", BOOL)
        value = _old_quotient(x, y)
        return Tensor(value) if out is None else into(out, value)

    def div_1_6(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        x, y = operands_1_6(self, other)
        if x.dtype.kind in "iub" and (out is None or out.array.dtype.kind in "iub"):
            raise fail(_INTEGER_DIVISION)
        if x.dtype == BOOL:
            raise not_implemented("div_cpu", BOOL)
        value = _old_quotient(x, y)
        return Tensor(value) if out is None else into(out, value)

    def div_1_7(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        value = _true_quotient_1_6(*common_floats(self, other))
        return Tensor(value) if out is None else into(out, value)

    def div_1_8(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        x, y = common_floats(self, other) if rounding_mode is None else common(self, other)
        value = _divided(x, y, rounding_mode, zero=False, old=True)
        return Tensor(value) if out is None else into(out, value)

    def div_1_9(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        value = (
            _true_quotient_1_6(*common_floats(self, other))
            if rounding_mode is None
            else _divided(*common(self, other), rounding_mode)
        )
        return Tensor(value) if out is None else into(out, value)

    def div_in_place_1_0(self: Tensor, other: Operand) -> Tensor:
        return write(self, _old_quotient(*common_1_0(self, other)))

    def div_in_place_1_3(self: Tensor, other: Operand) -> Tensor:
        x, y = operands_1_3(self, other, None, "div_cpu")
        if x.dtype == BOOL:
            raise not_implemented("div_cpu", BOOL)
        return write(self, _old_quotient(x, y))

    def div_in_place_1_6(self: Tensor, other: Operand) -> Tensor:
        x, y = operands_1_6(self, other)
        if x.dtype.kind in "iub":
            raise fail(_INTEGER_DIVISION)
        return write(self, _true_quotient_1_6(x, y))

    def div_in_place_1_7(self: Tensor, other: Operand) -> Tensor:
        return write(self, _true_quotient_1_6(*common_floats(self, other)))

    def div_in_place_1_8(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        operands = common_floats if rounding_mode is None else common
        return write(self, _divided(*operands(self, other), rounding_mode, zero=False, old=True))

    def div_in_place_1_9(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        operands = common_floats if rounding_mode is None else common
        return write(self, _divided(*operands(self, other), rounding_mode, old=True))

    def quotient_2_0(self: Operand, other: Operand, rounding_mode: str | None) -> Array:
        _by_zero_2_0(self, other)
        return _divided(*(common_floats if rounding_mode is None else common)(self, other), rounding_mode)

    def div_2_0(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        value = quotient_2_0(self, other, rounding_mode)
        return Tensor(value) if out is None else into(out, value)

    def div_in_place_2_0(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        return write(self, quotient_2_0(self, other, rounding_mode))

    def div_2_7(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        value = _quotient(self, other, rounding_mode)
        return Tensor(value) if out is None else into(out, value)

    def div_in_place_2_7(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        return write(self, _quotient(self, other, rounding_mode))

    def div_2_1(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        _by_zero_2_0(self, other)
        return div_2_7(self, other, rounding_mode=rounding_mode, out=out)

    def div_in_place_2_1(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        _by_zero_2_0(self, other)
        return write(self, _quotient(self, other, rounding_mode))

    versions: list[tuple[str, Callable[..., Tensor], Callable[..., Tensor]]] = [
        ("1.0.0", div_1_0, div_in_place_1_0), ("1.3.0", div_1_3, div_in_place_1_3),
        ("1.6.0", div_1_6, div_in_place_1_6),
        ("1.7.0", div_1_7, div_in_place_1_7), ("1.8.0", div_1_8, div_in_place_1_8), ("1.9.0", div_1_9, div_in_place_1_9),
        ("2.0.0", div_2_0, div_in_place_2_0), ("2.1.0", div_2_1, div_in_place_2_1), ("2.7.0", div_2_7, div_in_place_2_7),
    ]  # fmt: skip
    for since, function, in_place in versions:
        operator(*(f"aten::{name}" for name in names), since=since)(function)
        operator(*(f"aten::{name}_" for name in names), since=since)(in_place)


_divisions(("div", "divide"))


@functional("true_divide", inplace=True)
def true_divide_1_5(self: Operand, other: Operand) -> Tensor:
    """Convert integers and bools to floats."""
    operands_1_3(self, other, None, "div_cpu")
    return true_divide_1_7(self, other)


@functional("true_divide", inplace=True, since="1.6.0")
def true_divide_1_6(self: Operand, other: Operand) -> Tensor:
    """In 1.6, bfloat16 cannot be combined with other dtypes."""
    operands_1_6(self, other)
    return true_divide_1_7(self, other)


@functional("true_divide", inplace=True, since="1.7.0")
def true_divide_1_7(self: Operand, other: Operand) -> Tensor:
    """Since 1.7, any two dtypes can be combined."""
    return Tensor(_true_quotient_1_6(*common_floats(self, other)))


@functional("true_divide", inplace=True, since="2.0.0")
def true_divide_2_0(self: Operand, other: Operand) -> Tensor:
    """From 2.0 on, vectorized and scalar divisions of complex numbers by zero differ."""
    _by_zero_2_0(self, other)
    return Tensor(_true_quotient(*common_floats(self, other)))


@functional("true_divide", inplace=True, since="2.1.0")
def true_divide_2_1(self: Operand, other: Operand) -> Tensor:
    """Same as ``div``."""
    _by_zero_2_0(self, other)
    return Tensor(_quotient(self, other, None))


@functional("true_divide", inplace=True, since="2.7.0")
def true_divide(self: Operand, other: Operand) -> Tensor:
    """Same as ``div``."""
    return Tensor(_quotient(self, other, None))


def _one(array: Array) -> Array:
    return np.ones((), array.dtype)


@functional("reciprocal", inplace=True)
def reciprocal_1_0(self: Tensor) -> Tensor:
    """Up to 1.7 integers are refused."""
    if self.array.dtype.kind in "iub":
        raise not_implemented("reciprocal_cpu", self.array.dtype)
    return reciprocal_1_8(self)


@functional("reciprocal", inplace=True, since="1.8.0")
def reciprocal_1_8(self: Tensor) -> Tensor:
    """Complex reciprocals, computed like ``div`` up to 1.13."""
    array = floating(self.array)
    return Tensor(np.asarray(_true_quotient_1_6(_one(array), array)).astype(array.dtype))


@functional("reciprocal", inplace=True, since="2.0.0")
def reciprocal_2_0(self: Tensor) -> Tensor:
    """Same as ``div`` up to 2.6."""
    _by_zero_2_0(Tensor(_one(self.array)), self)
    return reciprocal(self)


@functional("reciprocal", inplace=True, since="2.7.0")
def reciprocal(self: Tensor) -> Tensor:
    """The reciprocal of each element."""
    array = floating(self.array)
    return Tensor((_one(array) / array).astype(array.dtype))


def _floor_divide_1_5(self: Operand, other: Operand) -> Tensor:
    if operands_1_3(self, other, None, "div_cpu")[0].dtype == BOOL:
        raise not_implemented("div_cpu", BOOL)
    return _floor_divide_old(self, other)


def _floor_divide_1_6(self: Operand, other: Operand) -> Tensor:
    operands_1_6(self, other)
    return _floor_divide_1_7(self, other)


def _floor_divide_1_7(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    if x.dtype.kind == "c":
        return Tensor(_true_quotient_1_6(x, y))  # not rounded
    if x.dtype == FLOAT16:
        raise fail("trunc_vml_cpu not implemented for 'Half'")
    return Tensor(trunc_quotient(x, y))


def _floor_divide_old(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    return Tensor(trunc_quotient(x, y))


def _floor_divide_new(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    return Tensor(_floor_quotient(x, y))


# Up to 1.12 floor_divide truncated toward zero, despite its name.
functional("floor_divide", inplace=True)(_floor_divide_1_5)
functional("floor_divide", inplace=True, since="1.6.0")(_floor_divide_1_6)
functional("floor_divide", inplace=True, since="1.7.0")(_floor_divide_1_7)
functional("floor_divide", inplace=True, since="1.8.0")(_floor_divide_old)
functional("floor_divide", inplace=True, since="1.13.0")(_floor_divide_new)
operator("aten::__ifloordiv__")(lambda self, other: write(self, _floor_divide_old(self, other).array))
operator("aten::__ifloordiv__", since="1.13.0")(lambda self, other: write(self, _floor_divide_new(self, other).array))


# ------------------------------------------------------------------------------------------------------------- remainders


def _remainder(x: Array, y: Array) -> Array:
    """The remainder with the sign of the divisor; a zero has the sign of the dividend."""
    shape = broadcast(x, y)
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise not_implemented("remainder_cpu", x.dtype)
    if x.dtype.kind in "iu":
        if 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
        return np.remainder(x, y)
    a, b = wide(x), wide(y)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest).astype(x.dtype)


def _remainder_1_0(x: Array, y: Array) -> Array:
    """Up to 1.1 the product is rounded before the subtraction for float64, but not for float32."""
    return _remainder_1_2(x, y) if x.dtype == FLOAT64 else _remainder_1_5(x, y)


def _remainder_1_5(x: Array, y: Array) -> Array:
    """Up to 1.5 the remainder is computed from the quotient: an infinite divisor gives NaN, and a zero is positive."""
    if x.dtype.kind != "f":
        return _remainder(x, y)
    broadcast(x, y)
    whole = np.floor(x / y)
    if x.dtype == FLOAT64:
        product, error = _product(y, whole)
        rest = (x - product) - error
    else:
        rest = x.astype(FLOAT64) - y.astype(FLOAT64) * whole.astype(FLOAT64)
    return np.where(y != 0, rest, np.nan).astype(x.dtype)


SPLIT = 2.0**27 + 1
"""Splits a double into two 26-bit parts (Veltkamp), whose products are exact (Dekker 1971)."""


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product of float64 numbers and its rounding error, as used by fused multiply-add; the error is 0 on overflow."""
    product = a * b
    high, other = SPLIT * a - (SPLIT * a - a), SPLIT * b - (SPLIT * b - b)
    low, rest = a - high, b - other
    error = ((high * other - product) + high * rest + low * other) + low * rest
    return product, np.where(np.isfinite(error), error, 0.0)


def _remainder_1_2(x: Array, y: Array) -> Array:
    """From 1.2 to 1.4 the product is rounded before the subtraction."""
    if x.dtype.kind != "f":
        return _remainder(x, y)
    broadcast(x, y)
    return np.where(y != 0, x - y * np.floor(x / y), np.asarray(np.nan, x.dtype)).astype(x.dtype)


def _fmod(x: Array, y: Array) -> Array:
    """The remainder with the sign of the dividend."""
    shape = broadcast(x, y)
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise not_implemented("fmod_cpu", x.dtype)
    if x.dtype.kind in "iu":
        if 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
    return np.fmod(x, y)


def _fmod_1_5(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """From 1.5 to 1.7, without ``out`` the result has the dtype of the left operand, to which the computed dtype and a number must be castable."""
    if other.__class__ is not Tensor:
        checked_scalar(other, self.array.dtype)
    value = _fmod(*_old_operands(self, other))
    if out is not None:
        return into(out, value)
    if not can_cast(value.dtype, self.array.dtype):
        raise fail(f"result type {words(value.dtype)} can't be cast to the desired output type {words(self.array.dtype)}")
    return Tensor(cast(value, self.array.dtype))


def _old_operands(self: Operand, other: Operand) -> tuple[Array, Array]:
    """From 1.5 to 1.7 tensors are promoted, and a number is cast to the dtype of the tensor."""
    if other.__class__ is not Tensor and self.__class__ is Tensor:
        return self.array, scalar_as(other, self.array.dtype)
    return common(self, other)


def _strict(self: Operand, other: Operand) -> tuple[Array, Array]:
    """1.2 to 1.4: tensors must have the same dtype, including zero-dimensional ones."""
    if self.__class__ is Tensor and other.__class__ is Tensor and self.array.dtype != other.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(other.array.dtype)} for argument #2 'other'"
        )
    return common_1_0(self, other)


functional("remainder", inplace=True)(lambda self, other: Tensor(_remainder_1_0(*_strict(self, other))))
functional("remainder", inplace=True, since="1.2.0")(lambda self, other: Tensor(_remainder_1_2(*_strict(self, other))))
functional("remainder", inplace=True, since="1.5.0")(lambda self, other: Tensor(_remainder_1_5(*_old_operands(self, other))))
functional("remainder", inplace=True, since="1.6.0")(lambda self, other: Tensor(_remainder(*_old_operands(self, other))))
functional("remainder", inplace=True, since="1.8.0")(lambda self, other: Tensor(_remainder(*common(self, other))))
functional("fmod", inplace=True)(lambda self, other: Tensor(_fmod(*_strict(self, other))))
operator("aten::fmod", since="1.5.0")(_fmod_1_5)
operator("aten::fmod_", since="1.5.0")(lambda self, other: write(self, _fmod_1_5(self, other).array))
functional("fmod", inplace=True, since="1.8.0")(lambda self, other: Tensor(_fmod(*common(self, other))))
