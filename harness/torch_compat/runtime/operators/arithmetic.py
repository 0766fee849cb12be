"""Sums, products, quotients, remainders and powers.

Type promotion came in 1.3 (sums, differences, products, quotients) and 1.5 (the rest of them refuse a result that does not fit);
``div`` of integers truncated until 1.5, raised in 1.6 and divides truly since 1.7. Each has its version here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    HALVES,
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
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

Operand = Any  # a tensor or a Python number: told apart at run time
_SUBTRACTED = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
)
_INTEGER_DIVISION = (
    "Integer division of tensors using div or / is no longer supported, and in a future release div will perform true division as in "
    "Python 3. Use true_divide or floor_divide (// in Python) instead."
)
Fused = tuple[np.dtype[Any], ...]
SHORT = 2  # bytes
TOGETHER = 32  # numbers of 16 bits in the two vectors that are computed at a time
FUSED: tuple[tuple[str, Fused], ...] = (("1.3.0", ()), ("1.6.0", HALVES[1:]), ("2.1.0", HALVES))
"""The types of 16 bits whose vectors are summed with one rounding, from a release on."""


def _scaled(x: Array, y: Array, alpha: Scalar, fused: Fused) -> Array:
    """``x + alpha * y``, rounded once for float32, as the fused instruction does."""
    dtype = x.dtype
    if dtype.kind in "iub" and alpha.__class__ is float:
        raise fail("For integral input tensors, argument alpha must not be a floating point number.")
    if alpha.__class__ is bool and dtype != BOOL:
        raise fail("Boolean alpha only supported for Boolean results.")
    if dtype in HALVES:
        return _scaled_halves(x, y, checked_scalar(alpha, dtype), dtype in fused)
    if dtype == FLOAT32:
        exact = float(checked_scalar(alpha, FLOAT32))
        return (x.astype(FLOAT64) + exact * y.astype(FLOAT64)).astype(dtype)
    if dtype == BOOL:
        return np.logical_or(x, y) if alpha else x | np.zeros_like(y)
    return np.add(x, y * checked_scalar(alpha, dtype))


def _scaled_halves(x: Array, y: Array, alpha: Array, fused: bool) -> Array:
    """In 16 bits. The product is rounded, too, but not within vectors where they are ``fused``: not of views, nor of what is left over."""
    dtype = x.dtype
    product = wide(alpha) * wide(y)
    value = np.asarray((wide(x) + wide(product.astype(dtype))).astype(dtype))
    whole = all(one.size == 1 or (one.shape == value.shape and one.flags.c_contiguous) for one in (x, y))
    if fused and whole and value.size >= TOGETHER:
        once = (x.astype(FLOAT64) + product.astype(FLOAT64)).astype(FLOAT32).astype(dtype)
        count = value.size - value.size % TOGETHER
        value.reshape(-1)[:count] = once.reshape(-1)[:count]
    return value


def _cut_alpha(alpha: Scalar, dtype: np.dtype[Any], *, cuts: bool) -> Scalar:
    """Up to 1.2 alpha is cut to an integer where the tensors are of integers."""
    return int(alpha) if cuts and dtype.kind in "iu" and alpha.__class__ is float and math.isfinite(alpha) else alpha


def _add(x: Array, y: Array, alpha: Scalar, fused: Fused = (), *, cuts: bool = False) -> Array:
    """Complex numbers are always multiplied by alpha, which makes NaN of a zero part beside one that is not finite."""
    alpha = _cut_alpha(alpha, x.dtype, cuts=cuts)
    try:
        if alpha.__class__ is int and alpha == 1 and x.dtype.kind != "c":
            return np.add(x, y)
        return _scaled(x, y, alpha, fused)
    except ValueError:
        broadcast(x, y)
        raise


def _sub(x: Array, y: Array, alpha: Scalar, fused: Fused = (), *, cuts: bool = False) -> Array:
    if x.dtype == BOOL:
        raise fail(_SUBTRACTED)
    alpha = _cut_alpha(alpha, x.dtype, cuts=cuts)
    try:
        if alpha.__class__ is int and alpha == 1 and x.dtype.kind != "c":
            return np.subtract(x, y)
        if alpha.__class__ is bool:
            raise fail("Boolean alpha only supported for Boolean results.")
        return _scaled(x, y, -alpha, fused)
    except ValueError:
        broadcast(x, y)
        raise


def _mul(x: Array, y: Array) -> Array:
    try:
        return np.multiply(x, y)
    except ValueError:
        broadcast(x, y)
        raise


def _no_bools(self: Operand, other: Operand) -> None:
    mine = self.__class__ is bool or (self.__class__ is Tensor and self.array.dtype == BOOL)
    yours = other.__class__ is bool or (other.__class__ is Tensor and other.array.dtype == BOOL)
    if mine and yours:
        raise fail(_SUBTRACTED)
    if mine or yours:
        raise fail(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


@operator("aten::add")
def add_1_0(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.2 both tensors have one type, and a number is cut to it."""
    value = _add(*common_1_0(self, other, promotes=True), alpha, cuts=True)
    return Tensor(value) if out is None else into(out, value, exact=True)


@operator("aten::add", since="1.3.0")
def add_1_3(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.5 a wider type of ``out`` is what is computed in."""
    value = _add(*_with_out(self, other, out), alpha)
    return Tensor(value) if out is None else into(out, value)


@operator("aten::add_")
def add_in_place_1_0(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """Up to 1.2."""
    return write(self, _add(*common_1_0(self, other, promotes=True), alpha, cuts=True))


@operator("aten::sub", "aten::subtract")
def sub_1_0(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.2 both tensors have one type, and a number is cut to it."""
    value = _sub(*common_1_0(self, other, promotes=True), alpha, cuts=True)
    return Tensor(value) if out is None else into(out, value, exact=True)


@operator("aten::sub_", "aten::subtract_")
def sub_in_place_1_0(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """Up to 1.2."""
    return write(self, _sub(*common_1_0(self, other, promotes=True), alpha, cuts=True))


@operator("aten::rsub")
def rsub_1_0(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """Up to 1.2."""
    x, y = common_1_0(self, other, promotes=True)
    return Tensor(_sub(y, x, alpha, cuts=True))


def _sums(since: str, fused: Fused) -> None:
    """Sums and differences from a release on; bool tensors have no difference."""

    def add(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``self + alpha * other``."""
        x, y = common(self, other)
        value = _add(x, y, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    def add_in_place(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
        """``self += alpha * other``."""
        x, y = common(self, other)
        return write(self, _add(x, y, alpha, fused))

    def sub(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``self - alpha * other``."""
        x, y = common(self, other)
        _no_bools(self, other)
        value = _sub(x, y, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    def sub_in_place(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
        """``self -= alpha * other``."""
        x, y = common(self, other)
        _no_bools(self, other)
        return write(self, _sub(x, y, alpha, fused))

    def rsub(self: Tensor, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``other - alpha * self``."""
        x, y = common(self, other)
        _no_bools(self, other)
        value = _sub(y, x, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    if since != "1.3.0":  # add_1_3 is that of then
        operator("aten::add", since=since)(add)
    operator("aten::add_", since=since)(add_in_place)
    operator("aten::sub", "aten::subtract", since=since)(sub)
    operator("aten::sub_", "aten::subtract_", since=since)(sub_in_place)
    operator("aten::rsub", since=since)(rsub)


for _since, _fused in FUSED:
    _sums(_since, _fused)


@operator("aten::mul", "aten::multiply")
def mul_1_0(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.2 both tensors have one type, and a number is cut to it."""
    value = _mul(*common_1_0(self, other, promotes=True))
    return Tensor(value) if out is None else into(out, value, exact=True)


@operator("aten::mul", "aten::multiply", since="1.3.0")
def mul_1_3(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.5 a wider type of ``out`` is what is computed in."""
    value = _mul(*_with_out(self, other, out))
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul", "aten::multiply", since="1.6.0")
def mul(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``self * other``."""
    x, y = common(self, other)
    value = _mul(x, y)
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul_", "aten::multiply_")
def mul_in_place_1_0(self: Tensor, other: Operand) -> Tensor:
    """Up to 1.2."""
    return write(self, _mul(*common_1_0(self, other, promotes=True)))


@operator("aten::mul_", "aten::multiply_", since="1.3.0")
def mul_in_place(self: Tensor, other: Operand) -> Tensor:
    """``self *= other``."""
    x, y = common(self, other)
    return write(self, _mul(x, y))


def _single(x: Array, other: Operand) -> Array | None:
    """A number as float32 beside elements of 16 bits, which is not rounded to them since 2.1; None where this is no such case."""
    if x.dtype.itemsize != SHORT or x.dtype not in HALVES:
        return None
    if other.__class__ is not Tensor:
        return np.asarray(other, FLOAT32)
    return other.array.astype(FLOAT32) if other.array.size == 1 else None


def _product(self: Operand, other: Operand) -> Array:
    x, y = common(self, other)
    number = _single(x, other)
    return _mul(x, y) if number is None else _mul(wide(x), number).astype(x.dtype)


@operator("aten::mul", "aten::multiply", since="2.1.0")
def mul_2_1(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``self * other``, which is not rounded to 16 bits where it is one number."""
    value = _product(self, other)
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul_", "aten::multiply_", since="2.1.0")
def mul_in_place_2_1(self: Tensor, other: Operand) -> Tensor:
    """``self *= other``, likewise of a tensor; mul_.Scalar alone still rounds its number."""
    return write(self, _product(self, other) if other.__class__ is Tensor else _mul(*common(self, other)))


# --------------------------------------------------------------------------------------------------------------- division


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
    """The lowest integer by -1: a processor raises SIGFPE for 32 and 64 bits, and every release dies of it where no vector computes it."""
    if x.dtype.kind == "i" and x.dtype.itemsize >= 4 and ((x == np.iinfo(x.dtype).min) & (y == -1)).any():
        raise Unsupported(f"divides the lowest {x.dtype} by -1, which a release may die of (SIGFPE)", code="overflow")


def _trunc_quotient(x: Array, y: Array) -> Array:
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise not_implemented("div_trunc_cpu", x.dtype)
    if x.dtype.kind in "iu":
        shape = broadcast(x, y)
        if shape and 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
        _overflows(x, y)
        quotient = np.floor_divide(x, y)
        # One more where the division rounded down below zero.
        return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.trunc(_true_quotient(x, y))


def _floor_quotient(x: Array, y: Array, *, zero: bool = True) -> Array:
    """As Python's ``//``; ``zero`` says whether division of a float by zero gives an infinity (since 1.9) or NaN."""
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
        return _trunc_quotient(x, y)
    if rounding_mode == "floor":
        return _floor_quotient(x, y, zero=zero)
    raise fail(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def _quotient(self: Operand, other: Operand, rounding_mode: str | None) -> Array:
    """Since 2.1 a number is not rounded to 16 bits before it divides; but where the quotient is rounded down."""
    x, y = common_floats(self, other) if rounding_mode is None else common(self, other)
    number = _single(x, other) if rounding_mode in {None, "trunc"} else None
    return _divided(x, y, rounding_mode) if number is None else _divided(wide(x), number, rounding_mode).astype(x.dtype)


def _by_zero_2_0(self: Operand, other: Operand) -> None:
    """From 2.0 to 2.6, what complex numbers divided by zero give depends on whether a vector computes it.

    Raises:
        Unsupported: such a call.
    """
    x, y = (one.array.dtype.kind if one.__class__ is Tensor else "c" if one.__class__ is complex else "" for one in (self, other))
    if "c" in {x, y} and not np.all(as_array(other)):
        raise Unsupported(
            "divides complex numbers by zero: from 2.0 to 2.6, vectors give another result than single numbers", code="complex"
        )


def _old_quotient(x: Array, y: Array) -> Array:
    """Integers are cut towards zero, as C does."""
    return _trunc_quotient(x, y) if x.dtype.kind in "iu" else _true_quotient_1_6(x, y)


def _promoted_1_6(self: Operand, other: Operand, out: Tensor | None = None) -> None:
    """Up to 1.6, bfloat16 has no type in common with any other one: where two types take part alike, an assertion fails."""
    tensors = [one.array for one in (self, other, out) if one.__class__ is Tensor]
    if all(one.dtype != BFLOAT16 for one in tensors):
        return
    for group in ([one.dtype for one in tensors if one.ndim], [one.dtype for one in tensors if not one.ndim]):
        if BFLOAT16 in group and len(set(group)) > 1:
            raise fail("dtype != ScalarType::Undefined INTERNAL ASSERT FAILED")
    high = next((one.dtype for one in tensors if one.ndim), None)
    low = next((one.dtype for one in tensors if not one.ndim), None)
    if high is not None and low == BFLOAT16 and high.kind in "iub":
        raise fail("dtype != ScalarType::Undefined INTERNAL ASSERT FAILED")


def _refused_1_5(self: Operand, other: Operand, out: Tensor | None = None) -> None:
    """What 1.4 and 1.5 refuse by type; ``out`` takes part in promotion.

    Raises:
        Unsupported: a float of 16 bits and another type meet where ``out`` is given: releases compute in one of the types, or assert.
    """
    kinds = {one.array.dtype for one in (self, other, out) if one.__class__ is Tensor}
    if out is not None and len(kinds) > 1 and kinds & {BFLOAT16, FLOAT16}:
        raise Unsupported(
            "divides into out= with float16 or bfloat16 beside another type, of which 1.5 makes numbers of its own",
            code="promotion",
        )
    _promoted_1_6(self, other, out)
    if kinds & {BFLOAT16, FLOAT16, BOOL}:
        together = dtypes.result_type((self, other)).array
        if together in {FLOAT16, BOOL}:
            raise not_implemented("div_cpu", together)


def _with_out(self: Operand, other: Operand, out: Tensor | None) -> tuple[Array, Array]:
    """Until 1.5 the type of ``out`` takes part: operands become of it before they are divided."""
    x, y = common(self, other)
    if out is not None and out.array.dtype != x.dtype:
        if dtypes.of_numpy(x.dtype).category > out.dtype.category:
            raise fail(f"result type {words(x.dtype)} can't be cast to the desired output type {words(out.array.dtype)}")
        together = dtypes.promote(dtypes.of_numpy(x.dtype), out.dtype)
        return cast(as_array(self), together.array), cast(as_array(other), together.array)
    return x, y


def _divisions(names: tuple[str, ...]) -> None:
    """``div`` and its alias, version by version."""

    def div_1_0(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        x, y = common_1_0(self, other)
        if x.dtype == BOOL:
            raise not_implemented("div_cpu", x.dtype)
        value = _old_quotient(x, y)
        return Tensor(value) if out is None else into(out, value, exact=True)

    def div_1_3(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        x, y = _with_out(self, other, out)
        value = _old_quotient(x.astype(np.int64), y.astype(np.int64)).astype(BOOL) if x.dtype == BOOL else _old_quotient(x, y)
        return Tensor(value) if out is None else into(out, value)

    def div_1_4(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        _refused_1_5(self, other, out)
        return div_1_3(self, other, out=out)

    def div_1_6(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        _promoted_1_6(self, other)
        x, y = common(self, other)
        if x.dtype.kind in "iub" and (out is None or out.array.dtype.kind in "iub"):
            raise fail(_INTEGER_DIVISION)
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
        return write(self, _old_quotient(*common(self, other)))

    def div_in_place_1_4(self: Tensor, other: Operand) -> Tensor:
        _refused_1_5(self, other)
        return div_in_place_1_3(self, other)

    def div_in_place_1_6(self: Tensor, other: Operand) -> Tensor:
        _promoted_1_6(self, other)
        x, y = common(self, other)
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

    def div_2_0(self: Operand, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        _by_zero_2_0(self, other)
        return div_1_9(self, other, rounding_mode=rounding_mode, out=out)

    def div_in_place_2_0(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        _by_zero_2_0(self, other)
        return div_in_place_1_9(self, other, rounding_mode=rounding_mode)

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
        ("1.4.0", div_1_4, div_in_place_1_4), ("1.6.0", div_1_6, div_in_place_1_6),
        ("1.7.0", div_1_7, div_in_place_1_7), ("1.8.0", div_1_8, div_in_place_1_8), ("1.9.0", div_1_9, div_in_place_1_9),
        ("2.0.0", div_2_0, div_in_place_2_0), ("2.1.0", div_2_1, div_in_place_2_1), ("2.7.0", div_2_7, div_in_place_2_7),
    ]  # fmt: skip
    for since, function, in_place in versions:
        operator(*(f"aten::{name}" for name in names), since=since)(function)
        operator(*(f"aten::{name}_" for name in names), since=since)(in_place)


_divisions(("div", "divide"))


@functional("true_divide", inplace=True)
def true_divide_1_5(self: Operand, other: Operand) -> Tensor:
    """Integers and bools as floats."""
    _promoted_1_6(self, other)
    if dtypes.result_type((self, other)).array == FLOAT16:
        raise not_implemented("div_cpu", FLOAT16)
    return true_divide_1_7(self, other)


@functional("true_divide", inplace=True, since="1.6.0")
def true_divide_1_6(self: Operand, other: Operand) -> Tensor:
    """bfloat16 meets no other type yet."""
    _promoted_1_6(self, other)
    return true_divide_1_7(self, other)


@functional("true_divide", inplace=True, since="1.7.0")
def true_divide_1_7(self: Operand, other: Operand) -> Tensor:
    """Any two types."""
    return Tensor(_true_quotient_1_6(*common_floats(self, other)))


@functional("true_divide", inplace=True, since="2.0.0")
def true_divide_2_0(self: Operand, other: Operand) -> Tensor:
    """By zero, vectors and single numbers differ."""
    _by_zero_2_0(self, other)
    return true_divide_1_7(self, other)


@functional("true_divide", inplace=True, since="2.1.0")
def true_divide_2_1(self: Operand, other: Operand) -> Tensor:
    """As ``div``."""
    _by_zero_2_0(self, other)
    return Tensor(_quotient(self, other, None))


@functional("true_divide", inplace=True, since="2.7.0")
def true_divide(self: Operand, other: Operand) -> Tensor:
    """As ``div``."""
    return Tensor(_quotient(self, other, None))


def _floor_divide_1_5(self: Operand, other: Operand) -> Tensor:
    _refused_1_5(self, other)
    return _floor_divide_old(self, other)


def _floor_divide_1_6(self: Operand, other: Operand) -> Tensor:
    _promoted_1_6(self, other)
    return _floor_divide_1_7(self, other)


def _floor_divide_1_7(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    if x.dtype.kind == "c":
        raise Unsupported("floor_divide of complex numbers, whose quotient 1.6 to 1.8 do not round", code="complex")
    if x.dtype == FLOAT16:
        raise fail("trunc_vml_cpu not implemented for 'Half'")
    return Tensor(_trunc_quotient(x, y))


def _floor_divide_old(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    return Tensor(_trunc_quotient(x, y))


def _floor_divide_new(self: Operand, other: Operand) -> Tensor:
    x, y = common(self, other)
    return Tensor(_floor_quotient(x, y))


# Up to 1.12 floor_divide cut towards zero, whatever its name says.
functional("floor_divide", inplace=True)(_floor_divide_1_5)
functional("floor_divide", inplace=True, since="1.6.0")(_floor_divide_1_6)
functional("floor_divide", inplace=True, since="1.7.0")(_floor_divide_1_7)
functional("floor_divide", inplace=True, since="1.8.0")(_floor_divide_old)
functional("floor_divide", inplace=True, since="1.13.0")(_floor_divide_new)
operator("aten::__ifloordiv__")(lambda self, other: write(self, _floor_divide_old(self, other).array))
operator("aten::__ifloordiv__", since="1.13.0")(lambda self, other: write(self, _floor_divide_new(self, other).array))


# ------------------------------------------------------------------------------------------------------------- remainders


def _remainder(x: Array, y: Array) -> Array:
    """The remainder with the divisor's sign; a zero keeps the dividend's."""
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
    """Up to 1.5 computed from the quotient: an infinite divisor gives NaN, a zero becomes positive."""
    if x.dtype.kind != "f":
        return _remainder(x, y)
    broadcast(x, y)
    wider = np.longdouble if x.dtype == FLOAT64 else FLOAT64  # the product and the difference are one instruction
    rest = x.astype(wider) - y.astype(wider) * np.floor(x / y).astype(wider)
    return np.where(y != 0, rest, np.nan).astype(x.dtype)


def _remainder_1_2(x: Array, y: Array) -> Array:
    """1.2 to 1.4 round the product before the difference."""
    if x.dtype.kind != "f":
        return _remainder(x, y)
    broadcast(x, y)
    return np.where(y != 0, x - y * np.floor(x / y), np.asarray(np.nan, x.dtype)).astype(x.dtype)


def _fmod(x: Array, y: Array) -> Array:
    """The remainder with the dividend's sign."""
    shape = broadcast(x, y)
    if x.dtype == BOOL or x.dtype.kind == "c":
        raise not_implemented("fmod_cpu", x.dtype)
    if x.dtype.kind in "iu":
        if 0 in shape:
            return np.empty(shape, x.dtype)
        _no_zero(y)
    return np.fmod(x, y)


def _fmod_1_5(self: Tensor, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """1.5 to 1.7: without ``out`` the result is of the left one's type, which has to hold what is computed, and a number."""
    if other.__class__ is not Tensor:
        checked_scalar(other, self.array.dtype)
    value = _fmod(*_old_operands(self, other))
    if out is not None:
        return into(out, value)
    if not can_cast(value.dtype, self.array.dtype):
        raise fail(f"result type {words(value.dtype)} can't be cast to the desired output type {words(self.array.dtype)}")
    return Tensor(cast(value, self.array.dtype))


def _old_operands(self: Operand, other: Operand) -> tuple[Array, Array]:
    """1.5 to 1.7: tensors are promoted; a number is cut to the tensor's type."""
    if other.__class__ is not Tensor and self.__class__ is Tensor:
        return self.array, scalar_as(other, self.array.dtype)
    return common(self, other)


def _strict(self: Operand, other: Operand) -> tuple[Array, Array]:
    """1.2 to 1.4: tensors have to be of one type, without dimensions too."""
    if self.__class__ is Tensor and other.__class__ is Tensor and self.array.dtype != other.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(other.array.dtype)} for argument #2 'other'"
        )
    return common_1_0(self, other)


functional("remainder", inplace=True)(lambda self, other: Tensor(_remainder_1_0(*_strict(self, other))))
functional("remainder", inplace=True, since="1.2.0")(lambda self, other: Tensor(_remainder_1_2(*_strict(self, other))))
functional("remainder", inplace=True, since="1.5.0")(lambda self, other: Tensor(_remainder_1_0(*_old_operands(self, other))))
functional("remainder", inplace=True, since="1.6.0")(lambda self, other: Tensor(_remainder(*_old_operands(self, other))))
functional("remainder", inplace=True, since="1.8.0")(lambda self, other: Tensor(_remainder(*common(self, other))))
functional("fmod", inplace=True)(lambda self, other: Tensor(_fmod(*_strict(self, other))))
operator("aten::fmod", since="1.5.0")(_fmod_1_5)
operator("aten::fmod_", since="1.5.0")(lambda self, other: write(self, _fmod_1_5(self, other).array))
functional("fmod", inplace=True, since="1.8.0")(lambda self, other: Tensor(_fmod(*common(self, other))))


# ----------------------------------------------------------------------------------------------------------------- powers


def _integer_power(x: Array, y: Array) -> Array:
    """Powers of integers wrap; of negative powers only those of 1 and -1 are not zero."""
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
    return _integer_power(x, y) if x.dtype.kind in "iu" else np.power(x, y)


def _complex_power(x: Array, y: Array) -> Array:
    """By logarithms, as C++ does: also zero to the power of zero, which is NaN then."""
    return np.where(x == 0, np.exp(y * np.log(x)), np.power(x, y))


def _power_of_number(x: Array, exponent: Scalar) -> Array:
    """A tensor to the power of a number, which has short cuts of its own."""
    if x.dtype.kind in "iu":
        if exponent.real < 0:
            raise fail("Integers to negative integer powers are not allowed.")
        return _integer_power(x, checked_scalar(exponent, x.dtype))
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    if x.dtype.kind == "c":
        return np.power(x, scalar_as(exponent, x.dtype))
    if x.dtype == np.float16 and abs(exponent) == 0.5:
        return np.power(wide(x), np.asarray(exponent, FLOAT32)).astype(x.dtype)  # by no short cut: the root of -inf is inf
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


INT32_LIMIT, INT64_LIMIT = 2.0**31, 2.0**63


def _truncated(value: Array, dtype: np.dtype[Any]) -> Array:
    """Doubles as integers, as the processor makes them: the least of 32 or 64 bits where they do not fit."""
    word, limit = (INT64, INT64_LIMIT) if dtype == INT64 else (np.dtype(np.int32), INT32_LIMIT)
    fits = np.abs(value) < limit
    return np.where(fits, np.where(fits, value, 0).astype(word), np.iinfo(word).min).astype(word).astype(dtype)


def _pow_1_3(self: Operand, exponent: Operand) -> Tensor:
    """1.3 to 1.5 compute powers of integers as doubles, which are cut; the result is of the tensor's type."""
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
        return Tensor(_truncated(np.power(base.astype(FLOAT64), float(exponent.real)), base.dtype))
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


@functional("float_power", inplace=True)
def float_power(self: Operand, exponent: Operand) -> Tensor:
    """Powers in double precision."""
    x, _ = common(self, exponent)
    dtype = np.dtype(np.complex128) if x.dtype.kind == "c" else FLOAT64
    if exponent.__class__ is not Tensor:
        return Tensor(_power_of_number(cast(as_array(self), dtype), exponent))
    return Tensor(
        (_complex_power if dtype.kind == "c" else np.power)(cast(as_array(self), dtype), cast(as_array(exponent), dtype))
    )


@functional("square", inplace=True)
def square(self: Tensor) -> Tensor:
    """``self ** 2``."""
    return _pow(self, 2)


# ------------------------------------------------------------------------------------------------- signs and other singles


@functional("neg", "negative", inplace=True, exact=True)
def neg(self: Tensor) -> Tensor:
    """``-self``; unsigned integers wrap."""
    if self.array.dtype == BOOL:
        raise fail(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return Tensor(np.negative(self.array))


def absolute(self: Tensor) -> Tensor:
    """Absolute values; those of complex numbers are real."""
    if self.array.dtype == BOOL:
        raise not_implemented("abs_cpu", self.array.dtype)
    return Tensor(np.abs(self.array))


@operator("aten::abs", "aten::absolute")
def absolute_out(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute values; they go into complex numbers, too."""
    found = absolute(self)
    if out is None:
        return found
    return (
        into(out, cast(found.array, out.array.dtype), exact=True)
        if self.array.dtype.kind == "c"
        else into(out, found.array, exact=True)
    )


@operator("aten::abs_", "aten::absolute_")
def absolute_in_place(self: Tensor) -> Tensor:
    """In place."""
    if self.array.dtype.kind == "c":
        raise fail("In-place abs is not supported for complex tensors.")
    return write(self, absolute(self).array)


def _reciprocal(self: Tensor) -> Tensor:
    array = floating(self.array)
    return Tensor((scalar_as(1, array.dtype) / array).astype(array.dtype))


def _reciprocal_1_0(self: Tensor) -> Tensor:
    """Up to 1.7 integers are refused."""
    if self.array.dtype.kind in "iub":
        raise not_implemented("reciprocal_cpu", self.array.dtype)
    return _reciprocal(self)


functional("reciprocal", inplace=True)(_reciprocal_1_0)
functional("reciprocal", inplace=True, since="1.8.0")(_reciprocal)


@functional("positive")
def positive(self: Tensor) -> Tensor:
    """``+self``."""
    return self


# ----------------------------------------------------------------------------------------------------- products and a sum


def _addcmul_1_0(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    _one_type(self, tensor1, tensor2)
    return addcmul(self, tensor1, tensor2, value=value)


def _one_type(*tensors: Tensor) -> None:
    first = tensors[0].array.dtype
    for other in tensors[1:]:
        if other.array.dtype != first:
            raise fail(f"Found dtype {words(other.array.dtype)} but expected {words(first)}")


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """``self + value * tensor1 * tensor2``."""
    dtype = dtypes.result_type((self, tensor1, tensor2)).array
    x, a, b = (cast(one.array, dtype) for one in (self, tensor1, tensor2))
    broadcast(x, a, b)
    return Tensor((wide(x) + wide(checked_scalar(value, dtype)) * wide(a) * wide(b)).astype(dtype))


functional("addcmul", inplace=True)(_addcmul_1_0)
functional("addcmul", inplace=True, since="1.13.0")(addcmul)


def _addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """``self + value * tensor1 / tensor2``; integers divided by integers are refused since 1.6."""
    if tensor1.array.dtype.kind in "iub" and tensor2.array.dtype.kind in "iub":
        raise fail(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 "
            "and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) "
            "for integer inputs and as (input + value * tensor1 / tensor2) for float inputs."
        )
    dtype = dtypes.result_type((self, tensor1, tensor2)).array
    x, a, b = (cast(one.array, dtype) for one in (self, tensor1, tensor2))
    broadcast(x, a, b)
    return Tensor((wide(x) + wide(checked_scalar(value, dtype)) * wide(a) / wide(b)).astype(dtype))


def _addcdiv_1_0(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    _one_type(self, tensor1, tensor2)
    x, a, b = self.array, tensor1.array, tensor2.array
    broadcast(x, a, b)
    if x.dtype.kind in "iu":
        return Tensor(x + _trunc_quotient(checked_scalar(value, x.dtype) * a, b))
    return Tensor(x + checked_scalar(value, x.dtype) * a / b)


def _addcdiv_1_6(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    if not (tensor1.array.dtype.kind in "iub" and tensor2.array.dtype.kind in "iub"):
        _one_type(self, tensor1, tensor2)
    return _addcdiv(self, tensor1, tensor2, value=value)


functional("addcdiv", inplace=True)(_addcdiv_1_0)
functional("addcdiv", inplace=True, since="1.6.0")(_addcdiv_1_6)
functional("addcdiv", inplace=True, since="1.13.0")(_addcdiv)


def _lerp_ends(self: Tensor, end: Tensor) -> tuple[Array, Array]:
    x, y = self.array, end.array
    if x.dtype != y.dtype:
        raise fail(f"expected dtype {words(x.dtype)} for `end` but got dtype {words(y.dtype)}")
    return x, y


@functional("lerp", inplace=True)
def lerp_1_0(self: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """Between self (weight 0) and end (weight 1), computed from the nearer end."""
    x, y = _lerp_ends(self, end)
    if x.dtype.kind in "iub":
        raise not_implemented("lerp_kernel_scalar", x.dtype)
    w = weight.array if weight.__class__ is Tensor else scalar_as(weight, x.dtype)
    if w.dtype != x.dtype:
        raise fail(f"expected dtype {words(x.dtype)} for `weight` but got dtype {words(w.dtype)}")
    broadcast(x, y, w)
    a, b, w = wide(x), wide(y), wide(w)
    return Tensor(np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)).astype(x.dtype))


@functional("lerp", inplace=True, since="2.7.0")
def lerp(self: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """A weight without dimensions takes part in promotion."""
    if weight.__class__ is Tensor and not weight.array.ndim:
        _lerp_ends(self, end)
        dtype = dtypes.result_type((self, end, weight)).array
        return lerp_1_0(*(Tensor(cast(one.array, dtype)) for one in (self, end, weight)))
    return lerp_1_0(self, end, weight)


def _of_first(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Up to 1.8 the result is of the first tensor's type."""

    def compute(self: Tensor, other: Tensor) -> Tensor:
        return Tensor(cast(function(self, other).array, self.array.dtype))

    return compute


def _whole(kind: str) -> Callable[[Tensor, Tensor], Tensor]:
    function: Any = np.gcd if kind == "gcd" else np.lcm

    def compute(self: Tensor, other: Tensor) -> Tensor:
        x, y = common(self, other)
        if x.dtype.kind not in "iu":
            raise not_implemented(f"{kind}_cpu", x.dtype)
        broadcast(x, y)
        return Tensor(function(x, y))

    return compute


for _name in ("gcd", "lcm"):
    functional(_name, inplace=True)(_of_first(_whole(_name)))
    functional(_name, inplace=True, since="1.9.0")(_whole(_name))
