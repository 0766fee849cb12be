"""Comparisons, logic, and elementwise maximum and minimum. Results were uint8 until 1.1; operands are promoted since 1.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import (
    BFLOAT16,
    BOOL,
    FLOAT32,
    Array,
    broadcast,
    checked_scalar,
    common,
    fail,
    functional,
    not_implemented,
    scalar_as,
    words,
    write,
)
from torch_compat.runtime.operators._vectors import in_whole_vectors
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.operators._operands import Operand


def _strict(self: Operand, other: Operand) -> tuple[Array, Array]:
    """Up to 1.2 both operands have the same dtype, and a number is truncated to it."""
    if other.__class__ is not Tensor:
        return self.array, scalar_as(other, self.array.dtype)
    if self.__class__ is not Tensor:
        return scalar_as(self, other.array.dtype), other.array
    if self.array.dtype != other.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(other.array.dtype)} for argument #2 'other'"
        )
    return self.array, other.array


def _check_convertible(self: Operand, other: Operand) -> None:
    """A number, or a zero-dimensional tensor next to one with dimensions, must be convertible to the other's dtype, although it is promoted.

    Raises:
        Raised: it is not convertible.
    """
    if self.__class__ is Tensor and other.__class__ is not Tensor:
        checked_scalar(other, self.array.dtype)
    elif self.__class__ is not Tensor:
        checked_scalar(self, other.array.dtype)
    elif self.array.dtype != other.array.dtype:
        if self.array.ndim and not other.array.ndim:
            checked_scalar(other.array.item(), self.array.dtype)
        elif other.array.ndim and not self.array.ndim:
            checked_scalar(self.array.item(), other.array.dtype)


OF_TWO_TYPES = "1.11.0"
"""As of this release, in-place comparisons accept tensors of different dtypes."""
_HALVES = {"lt": "1.7.0"}
"""The first releases that compare float16; 1.6.0 for operators that are not listed."""


def _comparison(names: tuple[str, ...], compare: Any, *, order: bool) -> None:
    def compute(x: Array, y: Array) -> Array:
        if order and x.dtype.kind == "c":
            raise not_implemented(f"{names[0]}_cpu", x.dtype)
        try:
            return compare(x, y)
        except ValueError:
            broadcast(x, y)
            raise

    def version_1_0(self: Operand, other: Operand) -> Tensor:
        return Tensor(version_1_2(self, other).array.astype(np.uint8))

    def version_1_2(self: Operand, other: Operand) -> Tensor:
        for number, tensor in ((other, self), (self, other)):
            if number.__class__ is not Tensor and tensor.__class__ is Tensor:
                checked_scalar(number, tensor.array.dtype)
        return Tensor(compute(*_strict(self, other)))

    def version_1_3(self: Operand, other: Operand) -> Tensor:
        x, _y = common(self, other)
        if x.dtype == np.float16:
            raise not_implemented(f"{names[0]}_cpu", x.dtype)
        return version_1_7(self, other)

    def overwriting_1_3(self: Tensor, other: Operand) -> Tensor:
        """1.3 to 1.5 convert integers and the float operand to float32 and compare the bits, cast to the integer dtype."""
        if self.array.dtype.kind not in "iu" or other.__class__ is not float:
            return version_1_3(self, other)
        checked_scalar(other, self.array.dtype)
        pair = (self.array, np.asarray(other))
        return Tensor(compute(*(item.astype(FLOAT32).view(np.int32).astype(self.array.dtype) for item in pair)))

    def version_1_7(self: Operand, other: Operand) -> Tensor:
        _check_convertible(self, other)
        return version_1_13(self, other)

    def version_1_13(self: Operand, other: Operand) -> Tensor:
        return Tensor(compute(*common(self, other)))

    halves = _HALVES.get(names[0], "1.6.0")
    for since, version in (
        ("1.0.0", version_1_0),
        ("1.2.0", version_1_2),
        ("1.3.0", version_1_3),
        (halves, version_1_7),
        ("1.13.0", version_1_13),
    ):
        functional(*names, since=since, gradient=False)(version)
    for since, version in (
        ("1.0.0", _of_one_type(version_1_0)),
        ("1.2.0", _of_one_type(version_1_2)),
        ("1.3.0", _of_one_type(overwriting_1_3)),
        (halves, _of_one_type(version_1_7)),
        (OF_TWO_TYPES, version_1_7),
        ("1.13.0", version_1_13),
    ):
        _in_place(names, since, version)


def _in_place(names: tuple[str, ...], since: str, function: Callable[..., Tensor]) -> None:
    def call(self: Tensor, other: Operand) -> Tensor:
        return write(self, function(self, other).array, check=True)

    for name in names:
        operator(f"aten::{name}_", since=since, gradient=False)(call)


def _of_one_type(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap an in-place comparison so that it accepts only tensors of one dtype, as up to 1.10."""

    def call(self: Tensor, other: Operand) -> Tensor:
        if other.__class__ is Tensor and self.array.dtype != other.array.dtype:
            message = f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(other.array.dtype)}"
            raise fail(f"{message} for argument 'other'")
        return function(self, other)

    return call


_comparison(("eq",), np.equal, order=False)
_comparison(("ne", "not_equal"), np.not_equal, order=False)
_comparison(("lt", "less"), np.less, order=True)
_comparison(("le", "less_equal"), np.less_equal, order=True)
_comparison(("gt", "greater"), np.greater, order=True)
_comparison(("ge", "greater_equal"), np.greater_equal, order=True)


# ------------------------------------------------------------------------------------------------------------ tests of values


def _test(names: tuple[str, ...], floats: Callable[[Array], Any], whole: bool) -> None:
    def compute(self: Tensor) -> Tensor:
        array = self.array
        if array.dtype.kind in "iub":
            return Tensor(np.full(array.shape, whole))
        return Tensor(floats(array))

    if names[0] in {"isnan", "isinf", "isfinite"}:  # the others came later
        functional(*names, gradient=False)(lambda self: Tensor(compute(self).array.astype(np.uint8)))
        functional(*names, since="1.2.0", gradient=False)(compute)
    else:
        functional(*names, gradient=False)(compute)


_test(("isnan",), np.isnan, whole=False)
_test(("isinf",), np.isinf, whole=False)
_test(("isfinite",), np.isfinite, whole=True)
_test(("isposinf",), lambda x: x == np.inf, whole=False)
_test(("isneginf",), lambda x: x == -np.inf, whole=False)


@functional("isreal", gradient=False)
def isreal(self: Tensor) -> Tensor:
    """Whether the imaginary part is zero."""
    return Tensor(np.isreal(self.array))


@functional("signbit", gradient=False)
def signbit_1_7(self: Tensor) -> Tensor:
    """Up to 1.12 the result tells whether a number is below zero: false for negative zero and NaN."""
    return Tensor(signbit(self).array & (self.array < 0))


@functional("signbit", gradient=False, since="1.13.0")
def signbit(self: Tensor) -> Tensor:
    """Whether the sign bit is set, including that of zeros."""
    array = self.array
    if array.dtype == BOOL:
        return Tensor(np.zeros(array.shape, BOOL))
    return Tensor(array < 0) if array.dtype.kind in "iu" else Tensor(np.signbit(array))


@operator("aten::isclose", gradient=False)
def isclose_1_0(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Up to 1.1 the result is uint8."""
    return Tensor(isclose_1_2(self, other, rtol, atol, equal_nan).array.astype(np.uint8))


@operator("aten::isclose", since="1.2.0", gradient=False)
def isclose_1_2(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Up to 1.2 integers are compared as integers: tolerances are truncated to their dtype, and sums wrap."""
    x, y = _of_one_dtype(self, other)
    if x.dtype.kind not in "iu":
        return _near(x, y, atol + rtol * np.abs(y), equal_nan)
    # The processor converts a number that does not fit into a word to the lowest integer; smaller types keep its lower bits.
    limit = 2**63 if x.dtype.itemsize == 8 else 2**31
    a, b = (np.asarray(int(item) if abs(item) < limit else -limit).astype(x.dtype) for item in (atol, rtol))
    return _near(x, y, a + b * np.abs(y), equal_nan)


@operator("aten::isclose", since="1.3.0", gradient=False)
def isclose_1_3(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Up to 1.4 differences of integers wrap, and a negative tolerance reduces the other one."""
    x, y = _of_one_dtype(self, other)
    size = np.abs(y)
    return _near(x, y, atol + rtol * (size if x.dtype.kind == "f" else size.astype(FLOAT32)), equal_nan)


@operator("aten::isclose", since="1.5.0", gradient=False)
def isclose_1_5(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """1.5 compares integers as floats, and uses the absolute value of ``rtol * other``."""
    x, y = _of_one_dtype(self, other)
    whole = x.dtype.kind != "f"
    a, b = (operand.astype(FLOAT32) if whole else operand for operand in (x, y))
    tensor = _near(a, b, atol + np.abs(rtol * b), equal_nan)
    return Tensor(tensor.array & (np.abs(a - b) <= atol + np.abs(rtol * b))) if whole else tensor


def _of_one_dtype(self: Tensor, other: Tensor) -> tuple[Array, Array]:
    x, y = self.array, other.array
    if x.dtype != y.dtype:
        raise fail(f"{words(x.dtype)} did not match {words(y.dtype)}")
    if x.dtype == BOOL:
        raise fail("Subtraction, the `-` operator, with a bool tensor is not supported.")
    broadcast(x, y)
    return x, y


def _near(x: Array, y: Array, allowed: Array, equal_nan: bool) -> Tensor:
    """Up to 1.5 equal integers are close only within the tolerances, like all other integers; equal floats are always close."""
    gap = np.abs(x - y)
    close = gap <= allowed
    if x.dtype.kind == "f":
        close = (close & np.isfinite(gap)) | (x == y)
        if equal_nan:
            close = close | (np.isnan(x) & np.isnan(y))
    return Tensor(np.asarray(close))


@operator("aten::isclose", since="1.6.0", gradient=False)
def isclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements lie within ``atol + rtol * |other|``."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise fail(f"{name} must be greater than or equal to zero, but got {value:g}")
    return _close(self, other, rtol, atol, equal_nan)


def _close(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    x, y = self.array, other.array
    if x.dtype != y.dtype:
        raise fail(f"{words(x.dtype)} did not match {words(y.dtype)}")
    broadcast(x, y)
    close = x == y
    if equal_nan and x.dtype.kind not in "iub":
        close = close | (np.isnan(x) & np.isnan(y))
    if rtol == 0 and atol == 0:
        return Tensor(close)
    a, b = (x, y) if x.dtype.kind not in "iub" else (x.astype(np.float32), y.astype(np.float32))
    allowed = atol + np.abs(rtol * b)
    gap = np.abs(a - b)
    return Tensor(close | (np.isfinite(gap) & (gap <= allowed)))


@operator("aten::allclose", gradient=False)
def allclose_1_0(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Up to 1.2 tolerances are truncated to the dtype of integers."""
    return bool(isclose_1_2(self, other, rtol, atol, equal_nan).array.all())


@operator("aten::allclose", since="1.3.0", gradient=False)
def allclose_1_3(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Same as :func:`isclose_1_3`."""
    return bool(isclose_1_3(self, other, rtol, atol, equal_nan).array.all())


@operator("aten::allclose", since="1.5.0", gradient=False)
def allclose_1_5(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Same as :func:`isclose_1_5`."""
    return bool(isclose_1_5(self, other, rtol, atol, equal_nan).array.all())


@operator("aten::allclose", since="1.6.0", gradient=False)
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(isclose(self, other, rtol, atol, equal_nan).array.all())


@operator("aten::equal", gradient=False)
def equal_1_0(self: Tensor, other: Tensor) -> bool:
    """Up to 1.12 both tensors must have the same dtype."""
    if self.array.dtype != other.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(self.array.dtype)} but got scalar type {words(other.array.dtype)} for argument #2 'other'"
        )
    return equal(self, other)


@operator("aten::equal", since="1.13.0", gradient=False)
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether size and elements are equal."""
    if self.array.shape != other.array.shape:
        return False
    x, y = common(self, other)
    return bool((x == y).all())


@operator("aten::is_nonzero", gradient=False)
def is_nonzero(self: Tensor) -> bool:
    """The truth value of the only element."""
    if self.array.size != 1:
        several = "no values" if not self.array.size else "more than one value"
        raise fail(f"Boolean value of Tensor with {several} is ambiguous")
    return bool(self.array)


# -------------------------------------------------------------------------------------------------------------------- logic


def _logic(name: str, function: Any, since: str) -> None:
    def compute(self: Tensor, other: Tensor) -> Tensor:
        broadcast(self.array, other.array)
        x, y = common(self, other)
        return Tensor(function(x != 0, y != 0))

    functional(name, since=since, gradient=False)(compute)
    _in_place((name,), since, _of_one_type(compute))
    _in_place((name,), OF_TWO_TYPES, compute)


_logic("logical_and", np.logical_and, "1.0.0")
_logic("logical_or", np.logical_or, "1.0.0")
_logic("logical_xor", np.logical_xor, "1.0.0")


@functional("logical_not", inplace=True, gradient=False)
def logical_not(self: Tensor) -> Tensor:
    """Whether elements are zero."""
    return Tensor(self.array == 0)


# ----------------------------------------------------------------------------------------------------- maximum and minimum


def larger(x: Array, y: Array, *others: Array) -> Array:
    """The elementwise maximum; NaN if either element is.

    Parameters:
        others: the other operands of the same kernel, see :func:`in_whole_vectors`.
    """
    broadcast(x, y)
    if x.dtype.kind == "c":
        raise not_implemented("maximum", x.dtype)
    if x.dtype.kind in "iub":
        return np.maximum(x, y)
    return _of_two_zeros(np.where(np.isnan(x), x, np.where(np.isnan(y) | (y > x), y, x)), x, y, *others)


def smaller(x: Array, y: Array, *others: Array) -> Array:
    """The elementwise minimum; NaN if either element is.

    Parameters:
        others: the other operands of the same kernel, see :func:`in_whole_vectors`.
    """
    broadcast(x, y)
    if x.dtype.kind == "c":
        raise not_implemented("minimum", x.dtype)
    if x.dtype.kind in "iub":
        return np.minimum(x, y)
    return _of_two_zeros(np.where(np.isnan(x), x, np.where(np.isnan(y) | (y < x), y, x)), x, y, *others)


def _of_two_zeros(array: Array, x: Array, y: Array, *others: Array) -> Array:
    """The result, with the zeros of ``y`` where both elements are zero and in whole vectors; elsewhere the zeros of ``x`` stay.

    The vector instructions of the processor return the second operand; ``std::min`` and ``std::max`` return the first.
    """
    zeros = (x == 0) & (y == 0)
    return np.where(zeros & in_whole_vectors(x, y, *others), y, array) if zeros.any() else array


def old_larger(x: Array, y: Array) -> Array:
    """Up to 1.4 a NaN in the left operand is dropped."""
    return np.where(x > y, x, y)


def old_smaller(x: Array, y: Array) -> Array:
    """Up to 1.4 a NaN in the left operand is dropped."""
    return np.where(x < y, x, y)


functional("maximum")(lambda self, other: Tensor(larger(*common(self, other))))
functional("minimum")(lambda self, other: Tensor(smaller(*common(self, other))))


def _fextreme(name: str, better: Any) -> None:
    def compute(self: Tensor, other: Tensor, *, first: bool) -> Tensor:
        x, y = common(self, other)
        broadcast(x, y)
        if x.dtype.kind == "c":
            raise not_implemented(name, x.dtype)
        taken = better(y, x)
        if x.dtype.kind not in "iub":
            taken = taken | np.isnan(x)
            if not first or x.dtype == BFLOAT16:
                taken = taken | ((x == 0) & (y == 0))
        return Tensor(np.where(taken, y, x))

    def extreme_1_0(self: Tensor, other: Tensor) -> Tensor:
        """The elementwise maximum or minimum, ignoring NaN; of two zeros, the second is returned."""
        return compute(self, other, first=False)

    def extreme(self: Tensor, other: Tensor) -> Tensor:
        """The elementwise maximum or minimum, ignoring NaN; of two zeros, the first is returned, but the second for bfloat16."""
        return compute(self, other, first=True)

    functional(name)(extreme_1_0)
    functional(name, since="2.8.0")(extreme)


_fextreme("fmax", np.greater)
_fextreme("fmin", np.less)


@functional("heaviside", inplace=True)
def heaviside(self: Tensor, values: Tensor) -> Tensor:
    """The step function: ``values`` where the input is zero."""
    x, y = self.array, values.array
    if x.dtype != y.dtype:
        raise fail("heaviside is not yet implemented for tensors with different dtypes.")
    broadcast(x, y)
    return Tensor(np.where(x == 0, y, (x > 0).astype(x.dtype)))


__all__ = ["larger", "old_larger", "old_smaller", "smaller"]
