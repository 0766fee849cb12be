"""Sums, products, signs, and fused products and sums.

Type promotion was added in 1.3; each version is implemented here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    HALVES,
    INT64,
    Array,
    Scalar,
    broadcast,
    cast,
    checked_scalar,
    common,
    common_1_0,
    fail,
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
from torch_compat.runtime.operators.division import trunc_quotient
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

_SUBTRACTED = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
)
Fused = tuple[np.dtype[Any], ...]
"""The 16-bit dtypes whose vectors are summed with a single rounding."""
TOGETHER = 32  # number of 16-bit elements in the two vectors that are processed at a time


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
    """Add in 16 bits. The product is rounded, too, except in ``fused`` vectors of contiguous operands; leftover elements are never fused."""
    dtype = x.dtype
    product = wide(alpha) * wide(y)
    value = np.asarray((wide(x) + wide(product.astype(dtype))).astype(dtype))
    whole = all(operand.size == 1 or (operand.shape == value.shape and operand.flags.c_contiguous) for operand in (x, y))
    if fused and whole and value.size >= TOGETHER:
        once = (x.astype(FLOAT64) + product.astype(FLOAT64)).astype(FLOAT32).astype(dtype)
        count = value.size - value.size % TOGETHER
        value.reshape(-1)[:count] = once.reshape(-1)[:count]
    return value


def _cut_alpha(alpha: Scalar, dtype: np.dtype[Any], *, cuts: bool) -> Scalar:
    """Up to 1.2 alpha is truncated to an integer for integer tensors."""
    return int(alpha) if cuts and dtype.kind in "iu" and alpha.__class__ is float and math.isfinite(alpha) else alpha


def _add(x: Array, y: Array, alpha: Scalar, fused: Fused = (), *, cuts: bool = False) -> Array:
    """Complex numbers are always multiplied by alpha, which turns a zero part into NaN if the other part is not finite."""
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
    """Up to 1.2 both tensors have the same dtype, and a number is truncated to it."""
    value = _add(*common_1_0(self, other, promotes=True), alpha, cuts=True)
    return Tensor(value) if out is None else into(out, value, exact=True)


@operator("aten::add_")
def add_in_place_1_0(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """Up to 1.2."""
    return write(self, _add(*common_1_0(self, other, promotes=True), alpha, cuts=True))


@operator("aten::sub", "aten::subtract")
def sub_1_0(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.2 both tensors have the same dtype, and a number is truncated to it."""
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


Operands = Callable[[Operand, Operand, "Tensor | None"], tuple[Array, Array]]


def _in_1_3(self: Operand, other: Operand, out: Tensor | None) -> tuple[Array, Array]:
    return operands_1_3(self, other, out, "add_cpu/sub_cpu")


def _in_1_6(self: Operand, other: Operand, out: Tensor | None) -> tuple[Array, Array]:
    del out
    return operands_1_6(self, other)


def _in_1_7(self: Operand, other: Operand, out: Tensor | None) -> tuple[Array, Array]:
    del out
    return common(self, other)


def _sums(since: str, operands: Operands, fused: Fused) -> None:
    """Register sums and differences from one release on; bool tensors cannot be subtracted."""

    def add(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``self + alpha * other``."""
        x, y = operands(self, other, out)
        value = _add(x, y, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    def add_in_place(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
        """``self += alpha * other``."""
        x, y = operands(self, other, None)
        return write(self, _add(x, y, alpha, fused))

    def sub(self: Operand, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``self - alpha * other``."""
        x, y = operands(self, other, out)
        _no_bools(self, other)
        value = _sub(x, y, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    def sub_in_place(self: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
        """``self -= alpha * other``."""
        x, y = operands(self, other, None)
        _no_bools(self, other)
        return write(self, _sub(x, y, alpha, fused))

    def rsub(self: Tensor, other: Operand, alpha: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
        """``other - alpha * self``."""
        x, y = operands(self, other, out)
        _no_bools(self, other)
        value = _sub(y, x, alpha, fused)
        return Tensor(value) if out is None else into(out, value)

    operator("aten::add", since=since)(add)
    operator("aten::add_", since=since)(add_in_place)
    operator("aten::sub", "aten::subtract", since=since)(sub)
    operator("aten::sub_", "aten::subtract_", since=since)(sub_in_place)
    operator("aten::rsub", since=since)(rsub)


for _since, _operands, _fused in (
    ("1.3.0", _in_1_3, ()),  # the dtype of ``out`` takes part in type promotion
    ("1.6.0", _in_1_6, HALVES[1:]),
    ("1.7.0", _in_1_7, HALVES[1:]),  # bfloat16 has a common dtype with other dtypes
    ("2.1.0", _in_1_7, HALVES),
):
    _sums(_since, _operands, _fused)


@operator("aten::mul", "aten::multiply")
def mul_1_0(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.2 both tensors have the same dtype, and a number is truncated to it."""
    value = _mul(*common_1_0(self, other, promotes=True))
    return Tensor(value) if out is None else into(out, value, exact=True)


@operator("aten::mul", "aten::multiply", since="1.3.0")
def mul_1_3(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.5 the dtype of ``out`` takes part in type promotion."""
    value = _mul(*operands_1_3(self, other, out, "mul_cpu"))
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul", "aten::multiply", since="1.6.0")
def mul_1_6(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """In 1.6, bfloat16 has no common dtype with other dtypes."""
    value = _mul(*operands_1_6(self, other))
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul", "aten::multiply", since="1.7.0")
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
def mul_in_place_1_3(self: Tensor, other: Operand) -> Tensor:
    """Up to 1.5 there is no kernel for float16."""
    return write(self, _mul(*operands_1_3(self, other, None, "mul_cpu")))


@operator("aten::mul_", "aten::multiply_", since="1.6.0")
def mul_in_place_1_6(self: Tensor, other: Operand) -> Tensor:
    """In 1.6, bfloat16 has no common dtype with other dtypes."""
    return write(self, _mul(*operands_1_6(self, other)))


@operator("aten::mul_", "aten::multiply_", since="1.7.0")
def mul_in_place(self: Tensor, other: Operand) -> Tensor:
    """``self *= other``."""
    x, y = common(self, other)
    return write(self, _mul(x, y))


def _product(self: Operand, other: Operand) -> Array:
    x, y = common(self, other)
    number = single(x, other)
    return _mul(x, y) if number is None else _mul(wide(x), number).astype(x.dtype)


@operator("aten::mul", "aten::multiply", since="2.1.0")
def mul_2_1(self: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``self * other``; ``other`` is not rounded to 16 bits if it is a single number."""
    value = _product(self, other)
    return Tensor(value) if out is None else into(out, value)


@operator("aten::mul_", "aten::multiply_", since="2.1.0")
def mul_in_place_2_1(self: Tensor, other: Operand) -> Tensor:
    """``self *= other``, with the same rule for a tensor; only mul_.Scalar still rounds its number."""
    return write(self, _product(self, other) if other.__class__ is Tensor else _mul(*common(self, other)))


# --------------------------------------------------------------------------------------------------- other unary operators


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
    """Absolute values; ``out`` may be complex for complex input."""
    tensor = absolute(self)
    if out is None:
        return tensor
    return (
        into(out, cast(tensor.array, out.array.dtype), exact=True)
        if self.array.dtype.kind == "c"
        else into(out, tensor.array, exact=True)
    )


@operator("aten::abs_", "aten::absolute_")
def absolute_in_place_1_0(self: Tensor) -> Tensor:
    """Up to 1.6 complex numbers are overwritten with their absolute values."""
    return write(self, cast(absolute(self).array, self.array.dtype))


@operator("aten::abs_", "aten::absolute_", since="1.7.0")
def absolute_in_place(self: Tensor) -> Tensor:
    """In place."""
    if self.array.dtype.kind == "c":
        raise fail("In-place abs is not supported for complex tensors.")
    return write(self, absolute(self).array)


@functional("positive")
def positive(self: Tensor) -> Tensor:
    """``+self``."""
    return self


# ------------------------------------------------------------------------------------------------ fused products and sums


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
    x, a, b = (cast(tensor.array, dtype) for tensor in (self, tensor1, tensor2))
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
    x, a, b = (cast(tensor.array, dtype) for tensor in (self, tensor1, tensor2))
    broadcast(x, a, b)
    return Tensor((wide(x) + wide(checked_scalar(value, dtype)) * wide(a) / wide(b)).astype(dtype))


def _addcdiv_1_0(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """Up to 1.5 integers are divided by integers; only vectorized code truncates products of narrow integers to their dtype."""
    _one_type(self, tensor1, tensor2)
    x, a, b = self.array, tensor1.array, tensor2.array
    broadcast(x, a, b)
    if x.dtype.kind in "iu":
        factor = checked_scalar(value, x.dtype)
        result = (x + trunc_quotient(factor.astype(INT64) * a.astype(INT64), b.astype(INT64))).astype(x.dtype)
        if x.nbytes >= BYTES_TAKEN and (result != x + trunc_quotient(factor * a, b)).any():
            raise Unsupported("aten::addcdiv truncates products to the dtype of its tensors in vectorized code", code="value")
        return Tensor(result)
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
    """Up to 1.8 a weight must not have more dimensions than both ends."""
    if weight.__class__ is Tensor and weight.array.ndim > max(self.array.ndim, end.array.ndim):
        raise fail("weight should be of dimension max(self.dim(), end.dim()) or lesser")
    return lerp_1_9(self, end, weight)


@functional("lerp", inplace=True, since="1.9.0")
def lerp_1_9(self: Tensor, end: Tensor, weight: Operand) -> Tensor:
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
    """A zero-dimensional weight takes part in type promotion."""
    if weight.__class__ is Tensor and not weight.array.ndim:
        _lerp_ends(self, end)
        dtype = dtypes.result_type((self, end, weight)).array
        return lerp_1_9(*(Tensor(cast(tensor.array, dtype)) for tensor in (self, end, weight)))
    return lerp_1_9(self, end, weight)


def _of_first(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Up to 1.8 the result has the dtype of the first tensor."""

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
