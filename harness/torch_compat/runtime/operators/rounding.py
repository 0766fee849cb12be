"""Rounding, signs and bounds; ``clamp`` changed in 1.8 (which bound wins), 1.12 (bounds promote) and 2.15 (bounds beyond the dtype)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BOOL,
    Array,
    Scalar,
    broadcast,
    can_cast,
    cast,
    checked_scalar,
    dtypes_finfo,
    fail,
    functional,
    not_implemented,
    scalar_as,
    wide,
    words,
)
from torch_compat.runtime.operators.comparison import larger, smaller
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

FLOAT16 = np.dtype(np.float16)
Bound = Any  # a tensor, a Python number or None


def _rounding(names: tuple[str, ...], function: Any) -> None:
    """Register a rounding function; integers are returned unchanged since 1.13 and refused before; bools are always refused."""

    def version_1_0(self: Tensor) -> Tensor:
        if self.array.dtype.kind in "iub":
            raise not_implemented(f"{names[0]}_vml_cpu", self.array.dtype)
        return Tensor(function(self.array))

    def version_1_13(self: Tensor) -> Tensor:
        array = self.array
        if array.dtype.kind in "iu":
            return Tensor(array.copy())
        if array.dtype == BOOL or array.dtype.kind == "c":
            raise not_implemented(f"{names[0]}_vml_cpu", array.dtype)
        return Tensor(function(array))

    functional(*names, inplace=True, exact=True)(version_1_0)
    functional(*names, inplace=True, exact=True, since="1.13.0")(version_1_13)


_rounding(("ceil",), np.ceil)
_rounding(("floor",), np.floor)
_rounding(("trunc", "fix"), np.trunc)


def _round(self: Tensor) -> Tensor:
    if self.array.dtype.kind in "iub":
        raise not_implemented("round_vml_cpu", self.array.dtype)
    return Tensor(np.rint(self.array))


def _round_1_13(self: Tensor, *, decimals: int | None = None) -> Tensor:
    """Up to 2.0, with decimals, bfloat16 is rounded at every step and float16 is refused."""
    if decimals and self.array.dtype == FLOAT16:
        raise not_implemented("round_cpu", self.array.dtype)
    return _round_2_1(self, decimals=decimals, widened=lambda array: array)


def _round_2_1(self: Tensor, *, decimals: int | None = None, widened: Callable[[Array], Array] = wide) -> Tensor:
    """Round ties to even; with decimals, round the number times a power of ten."""
    array = self.array
    if array.dtype.kind in "iu":
        if decimals is not None:
            raise not_implemented("round_vml_cpu", array.dtype)
        return Tensor(array.copy())
    if array.dtype == BOOL or array.dtype.kind == "c":
        raise not_implemented("round_vml_cpu", array.dtype)
    if not decimals:
        return Tensor(np.rint(array))
    exact = widened(array)
    ten = np.power(10.0, abs(decimals)).astype(exact.dtype)
    return Tensor((np.rint(exact * ten) / ten if decimals > 0 else np.rint(exact / ten) * ten).astype(array.dtype))


functional("round", inplace=True, exact=True)(_round)
functional("round", inplace=True, exact=True, since="1.11.0")(
    lambda self, *, decimals=None: _round_1_13(self, decimals=decimals) if decimals else _round(self)
)
functional("round", inplace=True, exact=True, since="1.13.0")(_round_1_13)
functional("round", inplace=True, exact=True, since="2.1.0")(lambda self, *, decimals=None: _round_2_1(self, decimals=decimals))
functional("special_round", exact=True)(
    lambda self, *, decimals=None: _round_1_13(self, decimals=decimals) if decimals else _round(self)
)
functional("special_round", exact=True, since="1.13.0")(_round_1_13)
functional("special_round", exact=True, since="2.1.0")(lambda self, *, decimals=None: _round_2_1(self, decimals=decimals))


@functional("frac", inplace=True, exact=True)
def frac(self: Tensor) -> Tensor:
    """The fractional part of a number."""
    array = self.array
    if array.dtype.kind in "iub":
        raise not_implemented("frac_cpu", array.dtype)
    return Tensor((wide(array) - np.trunc(wide(array))).astype(array.dtype))


@functional("sign", inplace=True, exact=True)
def sign_1_0(self: Tensor) -> Tensor:
    """Up to 1.2 the sign of a bool is its negation."""
    return Tensor(~self.array) if self.array.dtype.kind == "b" else sign(self)


@functional("sign", "sgn", inplace=True, exact=True, since="1.3.0")
def sign(self: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for NaN; for a complex number, a number of length one."""
    array = self.array
    if array.dtype.kind == "c":
        length = np.abs(array)
        return Tensor(np.where(length == 0, np.zeros_like(array), array / length).astype(array.dtype))
    if array.dtype.kind in "ub":
        return Tensor((array != 0).astype(array.dtype))
    return Tensor((array > 0).astype(array.dtype) - (array < 0).astype(array.dtype))


# -------------------------------------------------------------------------------------------------------------------- clamp


BOUNDS_CUT = "2.15.0"


class Element(Protocol):
    """Convert a numeric bound to an element."""

    def __call__(self, value: Any, dtype: Any, *, lower: bool) -> Array:
        """Convert a bound to an element of a dtype; ``lower`` tells which bound it is."""


def checked_bound(value: Any, dtype: Any, *, lower: bool) -> Array:
    """Convert a bound to an element; it must fit the dtype."""
    del lower
    return checked_scalar(value, dtype)


def whole_bound(value: Any, dtype: Any, *, lower: bool) -> Array:
    """Convert a bound to an element; an integer bound that excludes no number of the dtype becomes the limit of the dtype.

    Raises:
        Raised: the bound excludes all numbers of the dtype.
    """
    if dtype.kind not in "iu" or value.__class__ is complex or not math.isfinite(value):
        return checked_scalar(value, dtype)
    limits = np.iinfo(dtype)
    if limits.min <= int(value) <= limits.max:
        return checked_scalar(value, dtype)
    if (int(value) < limits.min) is not lower:
        raise fail(f"Clamp {'min' if lower else 'max'} value {value:g} is outside the representable range of {words(dtype)}")
    return scalar_as(int(limits.min if lower else limits.max), dtype)


def _nothing(low: Bound, high: Bound) -> None:
    if low is None and high is None:
        raise fail("torch.clamp: At least one of 'min' or 'max' must not be None")


def _cut(array: Array, low: Any, high: Any, *, low_wins: bool) -> Array:
    """Clamp elements; NaN elements are kept, and a NaN bound has no effect, because comparisons with NaN are false."""
    if low is not None and high is not None:
        if low_wins:
            return np.where(array < low, low, np.where(array > high, high, array))
        return np.where((above := np.where(array < low, low, array)) > high, high, above)
    return np.where(array < low, low, array) if low is not None else np.where(array > high, high, array)


def _clamp_old(low_wins: bool, self: Tensor, low: Bound, high: Bound) -> Tensor:
    """Up to 1.11 numeric bounds are converted to the tensor's dtype; tensor bounds apply in the common dtype of the tensors."""
    _nothing(low, high)
    array = self.array
    if array.dtype.kind in "bc":
        raise not_implemented("clamp_cpu", array.dtype)
    kind = dtypes.result_type([item for item in (self, low, high) if item.__class__ is Tensor]).array
    bounds = [
        None if item is None else (cast(item.array, kind) if item.__class__ is Tensor else checked_scalar(item, array.dtype))
        for item in (low, high)
    ]
    for tensor in (low, high):
        if tensor.__class__ is Tensor and not can_cast(tensor.array.dtype, array.dtype):
            raise fail(f"result type {words(tensor.array.dtype)} can't be cast to the desired output type {words(array.dtype)}")
    broadcast(array, *(item.array for item in (low, high) if item.__class__ is Tensor))
    return Tensor(cast(_cut(cast(array, kind), *bounds, low_wins=low_wins), array.dtype))


def _clamp(self: Tensor, low: Bound, high: Bound, element: Element = checked_bound) -> Tensor:
    """Clamp as of 1.12: the upper bound wins if bounds are reversed; a NaN bound makes all elements NaN; bounds take part in promotion.

    Parameters:
        element: converts a numeric bound to an element.
    """
    _nothing(low, high)
    parts = [item for item in (self, low, high) if item is not None]
    if self.array.dtype.kind == "c":
        raise fail("clamp is not supported for complex types")
    dtype = dtypes.result_type(parts).array
    tensors = low.__class__ is Tensor or high.__class__ is Tensor
    if dtype == BOOL and (not tensors or (low is not None and high is not None)):
        raise not_implemented("clamp_cpu" if tensors else "clamp_scalar_cpu", dtype)
    array = cast(self.array, dtype)
    if dtype.kind not in "iu" and not tensors:
        for bound in (low, high):
            if bound is not None and math.isnan(bound.real):
                return Tensor(np.full(array.shape, np.nan, dtype))
    a, b = (
        None
        if tensor is None
        else (cast(tensor.array, dtype) if tensor.__class__ is Tensor else element(tensor, dtype, lower=lower))
        for tensor, lower in ((low, True), (high, False))
    )
    broadcast(*(item for item in (array, a, b) if item is not None))
    if tensors:
        operands = [item for item in (array, a, b) if item is not None]
        value = array if a is None else larger(array, a, *operands)
        return Tensor(value if b is None else smaller(value, b, *operands))
    return Tensor(_cut(array, a, b, low_wins=False))


def clamp_1_0(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:  # noqa: A002
    """Up to 1.7 the lower bound wins."""
    return _clamp_old(True, self, min, max)


def clamp_1_8(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:  # noqa: A002
    """From 1.8 to 1.11 the upper bound wins, and bounds are converted to the tensor's dtype."""
    return _clamp_old(False, self, min, max)


def clamp_1_12(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:  # noqa: A002
    """From 1.12 to 2.11 a single bound has no effect if it is NaN."""
    alone = [item for item in (min, max) if item is not None]
    if len(alone) == 1 and alone[0].__class__ is float and math.isnan(alone[0]) and self.array.dtype.kind != "c":
        return _clamp(self, -math.inf, None)
    return _clamp(self, min, max)


def clamp_2_12(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:  # noqa: A002
    """Up to 2.14 a bound must fit the dtype; with uint8, negative bounds wrap."""
    return _clamp(self, min, max)


def clamp(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:  # noqa: A002
    """As of 2.15 a bound outside an integer dtype has no effect, or is refused if it excludes all numbers."""
    return _clamp(self, min, max, whole_bound)


functional("clamp", "clip", inplace=True)(clamp_1_0)
functional("clamp", "clip", inplace=True, since="1.8.0")(clamp_1_8)
functional("clamp", "clip", inplace=True, since="1.12.0")(clamp_1_12)
functional("clamp", "clip", inplace=True, since="2.12.0")(clamp_2_12)
functional("clamp", "clip", inplace=True, since=BOUNDS_CUT)(clamp)
functional("clamp_min", inplace=True)(lambda self, min: _clamp_old(False, self, min, None))  # noqa: A006
functional("clamp_min", inplace=True, since="1.12.0")(lambda self, min: _clamp(self, min, None))  # noqa: A006
functional("clamp_min", inplace=True, since=BOUNDS_CUT)(lambda self, min: _clamp(self, min, None, whole_bound))  # noqa: A006
functional("clamp_max", inplace=True)(lambda self, max: _clamp_old(False, self, None, max))  # noqa: A006
functional("clamp_max", inplace=True, since="1.12.0")(lambda self, max: _clamp(self, None, max))  # noqa: A006
functional("clamp_max", inplace=True, since=BOUNDS_CUT)(lambda self, max: _clamp(self, None, max, whole_bound))  # noqa: A006


@functional("copysign", inplace=True)
def copysign(self: Tensor, other: Tensor | Scalar) -> Tensor:
    """The absolute value of one number with the sign of the other."""
    dtype = dtypes.result_type((self, other))
    target = dtype.array if dtype.category == 2 else dtypes.default_dtype().array
    y = cast(other.array, target) if isinstance(other, Tensor) else scalar_as(other, target)
    broadcast(self.array, np.asarray(y))
    return Tensor(np.copysign(cast(self.array, target), y))


@functional("nan_to_num", inplace=True)
def nan_to_num(self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities with numbers."""
    array = self.array
    if array.dtype.kind in "iub":
        return Tensor(array.copy())
    if array.dtype.kind == "c":
        result = np.empty_like(array)
        result.real, result.imag = (nan_to_num(Tensor(part), nan, posinf, neginf).array for part in (array.real, array.imag))
        return Tensor(result)
    limits: Any = np.finfo(array.dtype) if array.dtype.kind in "fc" else None
    if limits is None:
        limits = dtypes_finfo(array.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = -float(limits.max) if neginf is None else neginf
    value = np.where(np.isnan(array), scalar_as(0.0 if nan is None else nan, array.dtype), array)
    value = np.where(array == np.inf, scalar_as(high, array.dtype), value)
    return Tensor(np.where(array == -np.inf, scalar_as(low, array.dtype), value).astype(array.dtype))
