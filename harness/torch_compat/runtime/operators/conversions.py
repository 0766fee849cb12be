"""Conversions between tensors, numbers of every kind, and strings; and rounding of numbers to integers."""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators.scalars import HALF, int32, number_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable


LONGEST_NUMBER = 64  # digits; longer integers count as out of range


_NOTHING: Any = object()


def scalar_of(value: Any) -> Any:
    """The number in a value: a tensor of one element, or a number.

    Raises:
        Raised: the tensor has another number of elements.
    """
    if value.__class__ is Tensor:
        if value.array.size != 1:
            raise raised("RuntimeError", f"a Tensor with {value.array.size} elements cannot be converted to Scalar")
        return value.item()
    if value.__class__ is OpaqueTensor:
        raise Unsupported(
            "the reference reader does not support getting a number from a sparse, nested or quantized tensor", code="value"
        )
    return value


def _real_part(value: Any, kind: str = "double") -> Any:
    if value.__class__ is not complex:
        return value
    if value.imag:
        raise raised("RuntimeError", f"value cannot be converted to type {kind} without overflow")
    return value.real


def to_int(value: Any) -> int:
    """C conversion: the fraction is truncated; values out of range become the lowest integer."""
    value = _real_part(scalar_of(value), "int64_t")
    if value.__class__ is float:
        if not math.isfinite(value) or not -float(HALF) <= value < float(HALF):
            return -HALF
        return int(value)
    if value.__class__ is str:
        return int(_read(value, _INTEGER, "stoll", "invalid literal for int() with base 10", _int64))
    return int(number_of(value))


_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_FLOAT = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
    r"|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?))",
    re.IGNORECASE,
)


def _read(text: str, form: re.Pattern[str], function: str, refused: str, convert: Callable[[str], Any]) -> Any:
    """Read a number from text like a C++ function: leading whitespace is accepted, trailing text is not.

    Raises:
        Raised: the text does not begin with a number, the number is out of range (the function says so), or other text follows it.
    """
    match = form.match(text)
    value = None if match is None else convert(match[1])
    if match is None or value is None:
        raise raised("RuntimeError", function)
    if match.end() != len(text):
        raise raised("RuntimeError", f"{refused}: '{text}'")
    return value


def _int64(text: str) -> int | None:
    value = int(text) if len(text) < LONGEST_NUMBER else HALF
    return value if -HALF <= value < HALF else None


def _double(text: str) -> float | None:
    """None if a number is too large, or so small that digits are lost."""
    low = text.lower()
    if "n" in low and "x" not in low:
        return float(low.partition("(")[0])
    try:
        value = float.fromhex(low) if "x" in low else float(low)
    except OverflowError:
        return None
    lost = abs(value) < sys.float_info.min and any(
        digit in "123456789abcdf" for digit in re.split("[ep]", low.replace("0x", ""))[0]
    )
    return None if math.isinf(value) or lost else value


def to_float(value: Any) -> float:
    """Convert a number, a tensor of one element, or a string to a float."""
    value = _real_part(scalar_of(value))
    if value.__class__ is str:
        return float(_read(value, _FLOAT, "stod", "could not convert string to float", _double))
    return float(value)


@operator("aten::Int", of="any")
def aten_int(a: Any) -> int:
    """int(a)."""
    if (
        a.__class__ is Tensor
        and a.array.dtype.kind in "fc"
        and a.array.size == 1
        and not -float(HALF) <= a.array.item().real < float(HALF)
    ):
        raise raised("RuntimeError", "value cannot be converted to type int64_t without overflow")
    return to_int(a)


@operator("aten::Float", of="any")
def aten_float_1_0(a: Any) -> float:
    """Up to 1.5 only the strings of infinities can be converted."""
    if a.__class__ is str and a not in {"inf", "-inf"}:
        raise raised("RuntimeError", f"Only 'inf' or '-inf' can be cast to a float, but got '{a}'")
    return to_float(a)


@operator("aten::Float", since="1.6.0", of="any")
def aten_float(a: Any) -> float:
    """float(a)."""
    return to_float(a)


def _implicit(a: Any, *, whole: bool = False) -> Any:
    """Check a tensor passed as a number argument: it has no dimensions, and holds an integer if one is required."""
    if a.__class__ is Tensor:
        if a.array.ndim:
            raise raised("RuntimeError", "Cannot input a tensor of dimension other than 0 as a scalar argument")
        if whole and a.array.dtype.kind not in "iu":
            raise raised("RuntimeError", f"Cannot input a tensor of type {a.dtype} as an integral argument")
    return a


@operator("aten::IntImplicit", of="any")
def int_implicit(a: Any) -> int:
    """A tensor as an integer argument."""
    return to_int(_implicit(a, whole=True))


@operator("aten::FloatImplicit", of="any")
def float_implicit(a: Any) -> float:
    """A tensor as a float argument."""
    return to_float(_implicit(a))


def _without_bools(value: Any) -> Any:
    return int(value) if value.__class__ is bool else value


def _without_complex(value: Any) -> Any:
    """Up to 1.7 a number in a program is never complex: without an imaginary part it is truncated to an integer, otherwise refused."""
    if value.__class__ is complex and not -float(HALF) <= value.real < float(HALF):
        raise raised("RuntimeError", "value cannot be converted to type int64_t without overflow")
    return to_int(value) if value.__class__ is complex else _without_bools(value)


@operator("aten::ScalarImplicit", of="any")
def scalar_implicit_1_0(a: Any) -> Any:
    """A tensor as a number argument; a complex number becomes an integer, True becomes 1."""
    return _without_complex(scalar_implicit(a))


@operator("aten::ScalarImplicit", of="any", since="1.8.0")
def scalar_implicit_1_8(a: Any) -> Any:
    """A tensor as a number argument; True becomes 1."""
    return _without_bools(scalar_implicit(a))


@operator("aten::ScalarImplicit", of="any", since="1.9.0")
def scalar_implicit(a: Any) -> Any:
    """A tensor as a number argument."""
    return scalar_of(_implicit(a))


@operator("aten::Bool", of="any")
def aten_bool(a: Any) -> bool:
    """bool(a)."""
    return bool(scalar_of(a))


@operator("aten::ComplexImplicit", of="any")
def complex_implicit(a: Any) -> complex:
    """A tensor as a complex argument."""
    return complex(scalar_of(_implicit(a)))


@operator("aten::Complex", of="any")
def aten_complex(a: Any, b: Any = _NOTHING) -> complex:
    """complex(a, b)."""
    first, second = scalar_of(a), scalar_of(b)
    if first.__class__ is str:
        return complex(first)
    if b is _NOTHING:
        return complex(first)
    if first.__class__ is complex or second.__class__ is complex:
        first, second = (_real_part(side) for side in (first, second))
    first = int32(first) if a.__class__ is int else first  # like C++, which uses int where 64 bits are meant
    second = int32(second) if b.__class__ is int else second
    return complex(float(first), float(second))


@operator("aten::_local_scalar_dense", of="any")
def first_item_1_0(a: Any) -> Any:
    """The first number of a tensor; a complex number becomes an integer, True becomes 1."""
    return _without_complex(first_item(a))


@operator("aten::_local_scalar_dense", of="any", since="1.8.0")
def first_item_1_8(a: Any) -> Any:
    """The first number of a tensor; True becomes 1."""
    return _without_bools(first_item(a))


@operator("aten::_local_scalar_dense", of="any", since="1.9.0")
def first_item(a: Any) -> Any:
    """The first number of a tensor."""
    if a.__class__ is Tensor and a.array.size > 1:
        return Tensor(a.array.reshape(-1)[:1]).item()
    return scalar_of(a)


@operator("aten::item", of="any")
def item_1_0(a: Any) -> Any:
    """The number of a tensor of one element; a complex number becomes an integer, True becomes 1."""
    return _without_complex(item(a))


@operator("aten::item", of="any", since="1.8.0")
def item_1_8(a: Any) -> Any:
    """The number of a tensor of one element; True becomes 1."""
    return _without_bools(item(a))


@operator("aten::item", of="any", since="1.9.0")
def item(a: Any) -> Any:
    """The number of a tensor of one element, of the kind of its dtype."""
    return scalar_of(a)


@operator("aten::floor", of="scalar")
def floor(a: Any) -> Any:
    """Round down; the result is an integer in every release that supports numbers."""
    if a.__class__ is int:
        return to_int(float(a))  # via a double
    return _whole(a, math.floor)


def _whole(a: Any, function: Any) -> Any:
    if a.__class__ is float and not -float(HALF) <= a < float(HALF):
        raise raised("RuntimeError", f"Cannot convert float {a:f} to integer")
    return function(a)


@operator("aten::ceil", of="scalar")
def ceil_1_0(a: Any) -> Any:
    """Round up; up to 1.9 an integer is converted to a double first, too."""
    return to_int(float(a)) if a.__class__ is int else ceil(a)


@operator("aten::ceil", of="scalar", since="1.10.0")
def ceil(a: Any) -> Any:
    """Round up."""
    return _whole(a, math.ceil)


@operator("aten::round", of="scalar")
def round_away(a: Any) -> float:
    """Up to 1.6 round to the nearest integer, halves away from zero."""
    if not math.isfinite(a):
        return float(a)
    whole = math.floor(abs(a))
    return math.copysign(whole + 1 if abs(a) - whole >= 0.5 else whole, a)


@operator("aten::round", of="scalar", since="1.7.0")
def round_(a: Any) -> float:
    """Round to the nearest integer, halves to even."""
    return math.copysign(round(a), a) if math.isfinite(a) else float(a)  # also keeps the sign of results rounded to zero
