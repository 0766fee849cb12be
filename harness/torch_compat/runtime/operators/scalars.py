"""Numbers of TorchScript: 64-bit integers that wrap, floats and complex numbers; their arithmetic, comparisons and functions."""

from __future__ import annotations

import cmath
import functools
import math
from operator import gt as greater
from operator import lt as less
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.operators._equality import equal, measured
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.values import bounded, raised

if TYPE_CHECKING:
    from collections.abc import Callable

HALF = 1 << 63
FULL = (1 << 64) - 1


def wrapped(value: Any) -> Any:
    """Wrap an integer to 64 bits; other numbers are unchanged."""
    if value.__class__ is int and not -HALF <= value < HALF:
        return ((value + HALF) & FULL) - HALF
    return value


NUMBERS: frozenset[Any] = frozenset({int, float, bool, complex})


def number_of(value: Any) -> Any:
    """Convert a dtype to its code; other values are unchanged."""
    return value.code if value.__class__ is Dtype else value


@operator("aten::add", of="scalar")
def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """The sum ``a + b * alpha``."""
    value = a + b if alpha == 1 else a + _product(b, alpha)
    return value if value.__class__ is float else wrapped(value)


@operator("aten::sub", of="scalar")
def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    """The difference ``a - b * alpha``."""
    value = a - b if alpha == 1 else a - _product(b, alpha)
    return value if value.__class__ is float else wrapped(value)


@operator("aten::mul", of="scalar")
def mul(a: Any, b: Any) -> Any:
    """The product ``a * b``; an integer times a list repeats the list."""
    if b.__class__ is list:
        if a < 0 and b:
            raise raised("RuntimeError", "vector::reserve")
        bounded(len(b) * a)
        return list(b) * a
    if b.__class__ is complex or a.__class__ is complex:
        return _complex_product(a, b)
    if b.__class__ not in NUMBERS:
        return _product(a, b)
    return wrapped(a * b)


def _product(a: Any, b: Any) -> Any:
    if a.__class__ not in NUMBERS or b.__class__ not in NUMBERS:  # Python would repeat strings, lists and tuples
        raise raised("RuntimeError", f"expected two numbers, found a {a.__class__.__name__} and a {b.__class__.__name__}")
    return a * b


def _complex_product(a: Any, b: Any) -> complex:
    """A real factor multiplies both parts separately, so that infinities and NaN do not spread from one part to the other."""
    if a.__class__ is not complex:
        return complex(a * b.real, a * b.imag)
    return a * b if b.__class__ is complex else complex(a.real * b, a.imag * b)


@operator("aten::div", of="scalar")
def div_1_0(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """Up to 1.13, complex division divides by the squared absolute value of the divisor, which may be zero or infinite."""
    if rounding_mode is None and complex in {a.__class__, b.__class__}:
        a, b = complex(a), complex(b)
        square = b.real * b.real + b.imag * b.imag
        if not square or not math.isfinite(square):
            real, imag = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
            return complex(div(real, square), div(imag, square))
    return div(a, b, rounding_mode=rounding_mode)


@operator("aten::div", of="scalar", since="2.0.0")
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """True division, even of integers."""
    if rounding_mode is not None:
        raise Unsupported("the reference reader does not support aten::div of numbers with a rounding mode", code="operator")
    if a.__class__ is complex or b.__class__ is complex:
        return _complex_quotient(complex(a), complex(b))
    if b == 0:
        if a == 0 or math.isnan(a):
            return _invalid(a)
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    try:
        return float(a) / float(b)
    except OverflowError:
        return math.inf


def _invalid(*numbers: Any) -> float:
    """The first NaN operand; otherwise the NaN with a sign bit that x86 returns for an invalid operation."""
    return next((float(number) for number in numbers if math.isnan(number)), -math.nan)


def _complex_quotient(a: complex, b: complex) -> complex:
    """Divide complex numbers as in C99: if both parts are NaN, infinities and zeros decide."""
    if b != 0:
        result = a / b
        if not (math.isnan(result.real) and math.isnan(result.imag)):
            return result
    if b == 0 and not (math.isnan(a.real) and math.isnan(a.imag)):
        infinite = math.copysign(math.inf, b.real)
        return complex(infinite * a.real, infinite * a.imag)

    def sign(value: float, *, infinite: bool) -> float:
        return math.copysign(1.0 if infinite else 0.0, value)

    if cmath.isinf(a) and cmath.isfinite(b):
        x, y = sign(a.real, infinite=math.isinf(a.real)), sign(a.imag, infinite=math.isinf(a.imag))
        return complex(math.inf * (x * b.real + y * b.imag), math.inf * (y * b.real - x * b.imag))
    if cmath.isinf(b) and cmath.isfinite(a):
        x, y = sign(b.real, infinite=math.isinf(b.real)), sign(b.imag, infinite=math.isinf(b.imag))
        return complex(0.0 * (a.real * x + a.imag * y), 0.0 * (a.imag * x - a.real * y))
    return complex(math.nan, math.nan)


@operator("aten::floordiv", of="scalar")
def floordiv(a: Any, b: Any) -> Any:
    """Division rounded toward minus infinity."""
    if b == 0:
        if a.__class__ is float or b.__class__ is float:
            return div(float(a), float(b))
        raise raised("RuntimeError", "division by 0")
    if a.__class__ is float or b.__class__ is float:
        quotient = a / b
        return math.copysign(math.floor(quotient), quotient) if math.isfinite(quotient) else quotient  # keeps a negative zero
    return wrapped(a // b)


def _cut_off(a: int, b: int) -> int:
    """The remainder of a truncating division, as in C."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


@operator("aten::remainder", of="scalar")
def remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of b."""
    if b == 0:
        if a.__class__ is float or b.__class__ is float:
            return _invalid(a)
        raise raised("RuntimeError", "modulo by zero")
    if a.__class__ is int and b.__class__ is int and not -HALF // 2 <= b <= HALF // 2:
        return _cut_off(wrapped(_cut_off(a, b) + b), b)
    if a.__class__ is float or b.__class__ is float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return _invalid(a, b)
        return math.fmod(math.fmod(a, b) + b, b)
    return a % b


@operator("aten::fmod", of="scalar")
def fmod(a: Any, b: Any) -> float:
    """The remainder with the sign of a."""
    if b == 0 or math.isinf(a) or math.isnan(a):
        return _invalid(a, b)
    return math.fmod(a, b)


def _power(a: Any, b: Any) -> Any:
    try:
        value = float(a) ** float(b) if a.__class__ is not complex and b.__class__ is not complex else a**b
    except OverflowError:
        return math.inf if a > 0 or float(b) % 2 == 0 else -math.inf
    except ZeroDivisionError:
        return math.copysign(math.inf, a) if float(b).is_integer() and b % 2 else math.inf
    if value.__class__ is complex and a.__class__ is not complex and b.__class__ is not complex:
        return _invalid()  # a negative number to a fractional power
    return value


@operator("aten::pow", of="scalar")
def power_1_0(a: Any, b: Any) -> Any:
    """The power ``a ** b``; integers and floats always give a float, because the overloads that give an integer have another name."""
    return _power(a, b)


@operator("aten::pow", of="scalar", since="1.10.0")
def power(a: Any, b: Any) -> Any:
    """As of 1.10 zero to a negative power is refused."""
    if a.__class__ is not complex and b.__class__ is not complex and a == 0 and b < 0:
        raise raised("RuntimeError", "0.0 cannot be raised to a negative power")
    return _power(a, b)


@operator("prim::pow_int_to_int", of="scalar")
def power_integers(a: int, b: int) -> int:
    """The power ``a ** b``, wrapped to 64 bits."""
    return int(wrapped(pow(a, b, 1 << 64))) if b >= 0 else int(float(a) ** b)


@operator("aten::neg", of="scalar")
def neg(a: Any) -> Any:
    """-a."""
    return wrapped(-a)


@operator("aten::__and__", of="scalar")
def and_(a: Any, b: Any) -> Any:
    """The bitwise and ``a & b``."""
    return a & b


@operator("aten::__or__", of="scalar")
def or_(a: Any, b: Any) -> Any:
    """The bitwise or ``a | b``."""
    return a | b


@operator("aten::__xor__", of="scalar")
def xor(a: Any, b: Any) -> Any:
    """The bitwise exclusive or ``a ^ b``."""
    return a ^ b


@operator("aten::__lshift__", of="scalar")
def lshift(a: int, b: int) -> Any:
    """The left shift ``a << b``, wrapped to 64 bits; processors take the count modulo 64, including a negative one."""
    return wrapped(a << (b & 63))


@operator("aten::__rshift__", of="scalar")
def rshift(a: int, b: int) -> Any:
    """The arithmetic right shift ``a >> b``, with the count modulo 64."""
    return a >> (b & 63)


@operator("aten::__not__", of="scalar")
def not_(a: Any) -> bool:
    """The logical negation ``not a``."""
    return not a


@operator("aten::bitwise_not", of="scalar")
def invert(a: int) -> int:
    """~a."""
    return ~a


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Convert two numbers for a comparison as in C: an integer compared with a float becomes a float, which may round it."""
    if a.__class__ is float and b.__class__ is int:
        return a, float(b)
    if a.__class__ is int and b.__class__ is float:
        return float(a), b
    return a, b


@operator("aten::eq", of="scalar")
def eq(a: Any, b: Any) -> bool:
    """Whether ``a == b``."""
    a, b = _alike(a, b)
    return bool(a == b)


@operator("aten::ne", of="scalar")
def ne(a: Any, b: Any) -> bool:
    """Whether ``a != b``."""
    a, b = _alike(a, b)
    return bool(a != b)


@operator("aten::lt", of="scalar")
def lt(a: Any, b: Any) -> bool:
    """Whether ``a < b``."""
    a, b = _alike(a, b)
    return bool(a < b)


@operator("aten::le", of="scalar")
def le(a: Any, b: Any) -> bool:
    """Whether ``a <= b``."""
    a, b = _alike(a, b)
    return bool(a <= b)


@operator("aten::gt", of="scalar")
def gt(a: Any, b: Any) -> bool:
    """Whether ``a > b``."""
    a, b = _alike(a, b)
    return bool(a > b)


@operator("aten::ge", of="scalar")
def ge(a: Any, b: Any) -> bool:
    """Whether ``a >= b``."""
    a, b = _alike(a, b)
    return bool(a >= b)


@operator("aten::eq", of="any")
def eq_any(a: Any, b: Any) -> bool:
    """Whether ``a == b``, for devices, enumerations, tuples and None."""
    return equal(number_of(a), number_of(b))


@operator("aten::ne", of="any")
def ne_any(a: Any, b: Any) -> bool:
    """Whether ``a != b``, for devices, enumerations, tuples and None."""
    return not equal(number_of(a), number_of(b))


def int32(value: int) -> int:
    """Wrap an integer to 32 bits."""
    return ((int(value) + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


@operator("prim::abs", of="tensor")
def abs_tensor(x: Any) -> Any:
    """The absolute value of a tensor."""
    return resolve("aten::abs")(x)


@operator("prim::abs", "aten::abs", of="scalar")
def abs_(a: Any) -> Any:
    """|a|."""
    return wrapped(abs(a))


# Arguments for which Python raises and C returns an infinity; for all other arguments that raise, the result is NaN.
POLES = {
    "log": {0: -math.inf}, "log2": {0: -math.inf}, "log10": {0: -math.inf}, "log1p": {-1: -math.inf}, "atanh": {1: math.inf, -1: -math.inf},
}  # fmt: skip


def _pole(name: str, a: Any) -> float:
    if name in {"lgamma", "gamma"} and math.isfinite(a):
        return math.inf if name == "lgamma" else math.copysign(math.inf, a) if a == 0 else math.nan
    return POLES.get(name, {}).get(a, math.nan)


def _float_function(name: str, function: Any) -> None:
    complex_function = getattr(cmath, name, None)

    def call(a: Any, b: Any = None) -> Any:
        if b is not None:
            return div(call(a), call(b))
        if a.__class__ is complex:
            if complex_function is None:
                raise Unsupported(f"the reference reader does not support aten::{name} of complex numbers", code="operator")
            if (name == "atan" and a in {1j, -1j}) or (name == "atanh" and a in {1 + 0j, -1 + 0j}):
                return complex(a.real * math.inf if a.real else a.real, a.imag * math.inf if a.imag else a.imag)
            if a == 0 and name in {"log", "log2", "log10"}:
                return complex(-math.inf, math.atan2(a.imag, a.real))
            try:
                return complex_function(a)
            except (ValueError, OverflowError):
                return complex(math.nan, math.nan)
        try:
            return function(a)
        except ValueError:
            return _pole(name, a)
        except OverflowError:
            return -math.inf if name == "sinh" and a < 0 else math.inf

    call.__doc__ = f"{name}(a) of a number."
    operator(f"aten::{name}", of="scalar")(call)


for _name in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
              "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "degrees", "radians", "fabs"):  # fmt: skip
    _float_function(_name, getattr(math, _name))


@operator("aten::atan2", of="scalar")
def atan2(a: Any, b: Any) -> float:
    """The angle of the point (b, a)."""
    return math.atan2(a, b)


@operator("aten::copysign", of="scalar")
def copysign(a: Any, b: Any) -> float:
    """The absolute value of a with the sign of b."""
    return math.copysign(a, b)


@operator("aten::isnan", of="scalar", since="2.7.0")
def isnan(a: Any) -> bool:
    """Whether a number is NaN."""
    return cmath.isnan(a) if a.__class__ is complex else math.isnan(a)


@operator("aten::isnan", of="scalar")
def isnan_1_0(a: Any) -> int | bool:
    """Up to 2.6 the result for a float is 1 or 0."""
    return isnan(a) if a.__class__ is complex else int(isnan(a))


@operator("aten::isinf", of="scalar", since="2.7.0")
def isinf(a: Any) -> bool:
    """Whether a number is infinite."""
    return cmath.isinf(a) if a.__class__ is complex else math.isinf(a)


@operator("aten::isinf", of="scalar")
def isinf_1_0(a: Any) -> int | bool:
    """Up to 2.6 the result for a float is 1 or 0."""
    return isinf(a) if a.__class__ is complex else int(isinf(a))


@operator("aten::isfinite", of="scalar")
def isfinite(a: Any) -> bool:
    """Whether a number is finite."""
    return cmath.isfinite(a) if a.__class__ is complex else math.isfinite(a)


@operator("aten::__range_length", of="scalar")
def range_length(lo: int, hi: int, step: int) -> int:
    """The number of iterations of a loop over a range."""
    if not step:
        raise raised("RuntimeError", "range() arg 3 must not be zero")
    return len(range(lo, hi, step)) if -HALF <= hi - lo < HALF else max(0, -((lo - hi) // step))


@operator("aten::__derive_index", of="scalar")
def derive_index(index: int, start: int, step: int) -> Any:
    """The value of a loop variable, computed from the number of the iteration."""
    return wrapped(start + index * step)


@operator("aten::angle", of="scalar")
def angle(a: Any) -> float:
    """The angle of a number; for a real number, 0 or pi."""
    if a.__class__ is complex:
        return cmath.phase(a)
    return 0.0 if math.isnan(a) else math.atan2(0.0, a)


@operator("aten::polar", of="scalar")
def polar(a: Any, b: Any) -> complex:
    """The complex number with a given length and angle."""
    return complex(a * math.cos(b), a * math.sin(b))


@operator("aten::modf", of="scalar")
def modf(a: Any) -> tuple[float, float]:
    """The fractional and the integral part, both with the sign of the number."""
    return math.modf(a)


@operator("aten::frexp", of="scalar")
def frexp(a: float) -> tuple[float, int]:
    """The fraction and the exponent of two."""
    return math.frexp(a)


@operator("aten::ldexp", of="scalar")
def ldexp(x: float, i: int) -> float:
    """The number ``x * 2 ** i``."""
    try:
        return math.ldexp(x, int32(i))
    except OverflowError:
        return math.copysign(math.inf, x)


@operator("aten::mathremainder", of="scalar")
def mathremainder(a: Any, b: Any) -> float:
    """The remainder with respect to the nearest multiple."""
    try:
        return math.remainder(a, b)
    except ValueError:
        return math.nan


@operator("aten::gcd", of="scalar")
def gcd(a: int, b: int) -> int:
    """The greatest common divisor."""
    return int(wrapped(math.gcd(a, b)))


@operator("aten::factorial", of="scalar")
def factorial(a: int) -> Any:
    """The factorial of a, wrapped to 64 bits."""
    if a < 0:
        raise raised("RuntimeError", "factorial() not defined for negative values")
    return wrapped(math.factorial(min(a, 66)))


@operator("aten::divmod", of="scalar")
def divmod_(a: Any, b: Any) -> tuple[Any, Any]:
    """The quotient ``a // b`` and the remainder ``a % b``."""
    if b == 0:
        raise raised("RuntimeError", "ZeroDivisionError: integer division or modulo by zero")
    if a.__class__ is not float and b.__class__ is not float:
        return wrapped(a // b), a % b
    if not math.isfinite(a) or math.isnan(b):
        if a.__class__ is not b.__class__:
            raise raised("RuntimeError", "Cannot convert float nan to integer")
        return math.nan, math.nan
    rest = math.fmod(a, b)
    if rest and (b < 0) != (rest < 0):
        rest += b
    if a.__class__ is not b.__class__:
        whole = math.floor(a / b)
        return float(int32(whole)), a - whole * b
    return (a - rest) / b, rest


@operator("prim::min", of="any")
def min_(a: Any, b: Any = None) -> Any:
    """The minimum of two numbers (the second one if either is NaN), of the items of a list, or of two lists."""
    return _preceding(a, b, less, min_)


@operator("prim::max", of="any")
def max_(a: Any, b: Any = None) -> Any:
    """The maximum of two numbers (the second one if either is NaN), of the items of a list, or of two lists."""
    return _preceding(a, b, greater, max_)


@operator("prim::min", of="any", since="2.13.0")
def min_2_13(a: Any, b: Any = None) -> Any:
    """As of 2.13 the second list is returned, too, if a NaN item decides."""
    return _preceding(a, b, less, min_2_13, second=True)


@operator("prim::max", of="any", since="2.13.0")
def max_2_13(a: Any, b: Any = None) -> Any:
    """As of 2.13 the second list is returned, too, if a NaN item decides."""
    return _preceding(a, b, greater, max_2_13, second=True)


def _preceding(a: Any, b: Any, precedes: Callable[[Any, Any], bool], choose: Callable[..., Any], *, second: bool = False) -> Any:
    if b is None:
        return _extreme(a, choose)
    if a.__class__ is list:
        return _first_list(a, b, precedes, second=second)
    return _mixed(a, b, a if precedes(a, b) else b)  # as in C if a number is NaN


def _first_list(a: list[Any], b: list[Any], precedes: Callable[[Any, Any], bool], *, second: bool) -> list[Any]:
    """The list that precedes the other by the first different items, or by length; if the lists are equal, the second one.

    Parameters:
        second: whether to take the second list, too, if one of these items is NaN; else the first one.
    """
    measured(a)
    measured(b)
    for item, other in zip(a, b, strict=False):
        if item != other:
            return (a if precedes(item, other) else b) if second else (b if precedes(other, item) else a)
    return a if precedes(len(a), len(b)) else b


def _extreme(values: Any, choose: Any) -> Any:
    if not values:
        raise raised("RuntimeError", "min() or max() arg is an empty sequence")
    return functools.reduce(lambda x, y: choose(y, x), values)


def _mixed(a: Any, b: Any, chosen: Any) -> Any:
    return float(chosen) if (a.__class__ is float) != (b.__class__ is float) and chosen.__class__ is int else chosen
