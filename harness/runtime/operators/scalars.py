"""Numbers of TorchScript: integers of 64 bits that wrap, floats, complex numbers, and conversions between them and tensors."""

from __future__ import annotations

import functools
import math
from typing import Any

from harness.errors import Unsupported
from harness.runtime.dtypes import Dtype
from harness.runtime.registry import operator
from harness.runtime.tensor import Tensor
from harness.runtime.values import raised

HALF = 1 << 63
FULL = (1 << 64) - 1


def wrapped(value: Any) -> Any:
    """An integer as 64 bits hold it; other numbers as they are."""
    if value.__class__ is int and not -HALF <= value < HALF:
        return ((value + HALF) & FULL) - HALF
    return value


def _number(value: Any) -> Any:
    return value.code if value.__class__ is Dtype else value


@operator("aten::add", of="scalar")
def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """The sum a + b * alpha."""
    value = a + b if alpha == 1 else a + b * alpha
    return value if value.__class__ is float else wrapped(value)


@operator("aten::sub", of="scalar")
def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    """The difference a - b * alpha."""
    value = a - b if alpha == 1 else a - b * alpha
    return value if value.__class__ is float else wrapped(value)


@operator("aten::mul", of="scalar")
def mul(a: Any, b: Any) -> Any:
    """A * b; an integer and a list repeats the list."""
    if b.__class__ is list:
        return list(b) * max(0, a)
    return wrapped(a * b)


@operator("aten::div", of="scalar")
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """True division, of integers, too."""
    if rounding_mode is not None:
        raise Unsupported("the reference reader has no aten::div of numbers with a rounding mode", code="operator")
    if a.__class__ is complex or b.__class__ is complex:
        if b == 0:
            return complex(math.nan, math.nan)
        return a / b
    if b == 0:
        if a.__class__ is not float and b.__class__ is not float:
            raise raised("RuntimeError", "division by zero")
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    try:
        return float(a) / float(b)
    except OverflowError:
        return math.inf


@operator("aten::floordiv", of="scalar")
def floordiv(a: Any, b: Any) -> Any:
    """Division rounded down."""
    if b == 0:
        if a.__class__ is float or b.__class__ is float:
            return div(float(a), float(b))
        raise raised("RuntimeError", "division by 0")
    if a.__class__ is float or b.__class__ is float:
        return float(math.floor(a / b)) if math.isfinite(a / b) else a / b
    return wrapped(a // b)


@operator("aten::remainder", of="scalar")
def remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of b."""
    if b == 0:
        if a.__class__ is float or b.__class__ is float:
            return math.nan
        raise raised("RuntimeError", "modulo by zero")
    if a.__class__ is float or b.__class__ is float:
        if math.isinf(a) or math.isnan(a) or math.isnan(b):
            return math.nan
        rest = math.fmod(a, b)
        return rest + b if rest and (rest < 0) != (b < 0) else rest
    return a % b


@operator("aten::fmod", of="scalar")
def fmod(a: Any, b: Any) -> float:
    """The remainder with the sign of a."""
    if b == 0 or math.isinf(a) or math.isnan(a):
        return math.nan
    return math.fmod(a, b)


def _power(a: Any, b: Any) -> Any:
    try:
        value = float(a) ** float(b) if a.__class__ is not complex and b.__class__ is not complex else a**b
    except OverflowError:
        return math.inf if a > 0 or float(b) % 2 == 0 else -math.inf
    except ZeroDivisionError:
        return math.copysign(math.inf, a) if float(b).is_integer() and b % 2 else math.inf
    if value.__class__ is complex and a.__class__ is not complex and b.__class__ is not complex:
        return math.nan  # of a negative number to a fraction
    return value


@operator("aten::pow", of="scalar")
def power(a: Any, b: Any) -> Any:
    """The power a ** b; always a float of integers and floats: the overloads that give an integer have a name of their own."""
    return _power(a, b)


@operator("prim::pow_int_to_int", of="scalar")
def power_integers(a: int, b: int) -> int:
    """The power a ** b in 64 bits."""
    return int(wrapped(pow(a, b, 1 << 64))) if b >= 0 else int(float(a) ** b)


@operator("aten::neg", of="scalar")
def neg(a: Any) -> Any:
    """-a."""
    return wrapped(-a)


@operator("aten::__and__", of="scalar")
def and_(a: Any, b: Any) -> Any:
    """A & b."""
    return a & b


@operator("aten::__or__", of="scalar")
def or_(a: Any, b: Any) -> Any:
    """A | b."""
    return a | b


@operator("aten::__xor__", of="scalar")
def xor(a: Any, b: Any) -> Any:
    """A ^ b."""
    return a ^ b


@operator("aten::__lshift__", of="scalar")
def lshift(a: int, b: int) -> Any:
    """A << b in 64 bits."""
    if not 0 <= b < 64:
        return 0
    return wrapped(a << b)


@operator("aten::__rshift__", of="scalar")
def rshift(a: int, b: int) -> Any:
    """A >> b, arithmetic."""
    return a >> min(max(b, 0), 63)


@operator("aten::__not__", of="scalar")
def not_(a: Any) -> bool:
    """Not a."""
    return not a


@operator("aten::bitwise_not", of="scalar")
def invert(a: int) -> int:
    """~a."""
    return ~a


@operator("aten::eq", of="scalar")
def eq(a: Any, b: Any) -> bool:
    """A == b."""
    return bool(a == b)


@operator("aten::ne", of="scalar")
def ne(a: Any, b: Any) -> bool:
    """A != b."""
    return bool(a != b)


@operator("aten::lt", of="scalar")
def lt(a: Any, b: Any) -> bool:
    """A < b."""
    return bool(a < b)


@operator("aten::le", of="scalar")
def le(a: Any, b: Any) -> bool:
    """A <= b."""
    return bool(a <= b)


@operator("aten::gt", of="scalar")
def gt(a: Any, b: Any) -> bool:
    """A > b."""
    return bool(a > b)


@operator("aten::ge", of="scalar")
def ge(a: Any, b: Any) -> bool:
    """A >= b."""
    return bool(a >= b)


@operator("aten::eq", of="any")
def eq_any(a: Any, b: Any) -> bool:
    """A == b of devices, enumerations, tuples, None."""
    return bool(_number(a) == _number(b))


@operator("aten::ne", of="any")
def ne_any(a: Any, b: Any) -> bool:
    """A != b of devices, enumerations, tuples, None."""
    return bool(_number(a) != _number(b))


def scalar_of(value: Any) -> Any:
    """The number in a value: a tensor of one element, or a number.

    Raises:
        Raised: the tensor has another number of elements.
    """
    if value.__class__ is Tensor:
        if value.array.size != 1:
            raise raised("RuntimeError", f"a Tensor with {value.array.size} elements cannot be converted to Scalar")
        return value.item()
    return value


def to_int(value: Any) -> int:
    """As C converts: a fraction is cut off; what does not fit becomes the lowest integer."""
    value = scalar_of(value)
    if value.__class__ is complex:
        value = value.real
    if value.__class__ is float:
        if not math.isfinite(value) or not -float(HALF) <= value < float(HALF):
            return -HALF
        return int(value)
    if value.__class__ is str:
        try:
            return int(wrapped(int(value, 10)))
        except ValueError:
            raise raised("RuntimeError", "stoll") from None
    return int(_number(value))


def to_float(value: Any) -> float:
    """A number, a tensor of one element, or a text as a float."""
    value = scalar_of(value)
    if value.__class__ is complex:
        value = value.real
    try:
        return float(value)
    except ValueError:
        raise raised("RuntimeError", "stod") from None


@operator("aten::Int", "aten::IntImplicit", of="any")
def aten_int(a: Any) -> int:
    """int(a)."""
    return to_int(a)


@operator("aten::Float", "aten::FloatImplicit", of="any")
def aten_float(a: Any) -> float:
    """float(a)."""
    return to_float(a)


@operator("aten::Bool", of="any")
def aten_bool(a: Any) -> bool:
    """bool(a)."""
    return bool(scalar_of(a))


@operator("aten::Complex", "aten::ComplexImplicit", of="any")
def aten_complex(a: Any, b: Any = 0) -> complex:
    """complex(a, b)."""
    return complex(scalar_of(a)) + complex(0, 1) * complex(scalar_of(b)) if b else complex(scalar_of(a))


@operator("aten::ScalarImplicit", "aten::item", "aten::_local_scalar_dense", of="any")
def item(a: Any) -> Any:
    """The number of a tensor of one element."""
    return scalar_of(a)


@operator("aten::floor", of="scalar")
def floor(a: Any) -> Any:
    """Rounded down; an integer in every release that has it for numbers."""
    if a.__class__ is float and not math.isfinite(a):
        return to_int(a)
    return math.floor(a)


@operator("aten::ceil", of="scalar")
def ceil(a: Any) -> Any:
    """Rounded up."""
    if a.__class__ is float and not math.isfinite(a):
        return to_int(a)
    return math.ceil(a)


@operator("aten::round", of="scalar")
def round_away(a: Any) -> float:
    """Rounded to the nearest whole number, halves away from zero, up to 1.6."""
    if not math.isfinite(a):
        return float(a)
    whole = math.floor(abs(a))
    return math.copysign(whole + 1 if abs(a) - whole >= 0.5 else whole, a)


@operator("aten::round", of="scalar", since="1.7.0")
def round_(a: Any) -> float:
    """Rounded to the nearest whole number, halves to the even one."""
    return float(round(a)) if math.isfinite(a) else float(a)


@operator("prim::abs", "aten::abs", of="scalar")
def abs_(a: Any) -> Any:
    """|a|."""
    return wrapped(abs(a))


def _float_function(name: str, function: Any) -> None:
    def call(a: Any) -> Any:
        try:
            return function(a)
        except ValueError:
            return math.nan if a != 0 or name not in {"log", "log2", "log10"} else -math.inf
        except OverflowError:
            return math.inf

    call.__doc__ = f"{name}(a) of a number."
    operator(f"aten::{name}", of="scalar")(call)


for _name in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
              "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "degrees", "radians"):  # fmt: skip
    _float_function(_name, getattr(math, _name))


@operator("aten::atan2", of="scalar")
def atan2(a: Any, b: Any) -> float:
    """The angle of the point (b, a)."""
    return math.atan2(a, b)


@operator("aten::copysign", of="scalar")
def copysign(a: Any, b: Any) -> float:
    """The size of a with the sign of b."""
    return math.copysign(a, b)


@operator("aten::isnan", of="scalar")
def isnan(a: Any) -> bool:
    """Whether a is not a number."""
    return math.isnan(a)


@operator("aten::isinf", of="scalar")
def isinf(a: Any) -> bool:
    """Whether a is infinite."""
    return math.isinf(a)


@operator("aten::isfinite", of="scalar")
def isfinite(a: Any) -> bool:
    """Whether a is finite."""
    return math.isfinite(a)


@operator("aten::gcd", of="scalar")
def gcd(a: int, b: int) -> int:
    """The greatest common divisor."""
    return math.gcd(a, b)


@operator("aten::factorial", of="scalar")
def factorial(a: int) -> Any:
    """The product of 1 to a."""
    if a < 0:
        raise raised("RuntimeError", "factorial() not defined for negative values")
    return wrapped(math.factorial(min(a, 66)))


@operator("aten::divmod", of="scalar")
def divmod_(a: Any, b: Any) -> tuple[Any, Any]:
    """(a // b, a % b)."""
    if b == 0:
        raise raised("RuntimeError", "ZeroDivisionError: integer division or modulo by zero")
    return floordiv(a, b), remainder(a, b)


@operator("prim::min", of="any")
def min_(a: Any, b: Any = None) -> Any:
    """The smaller one: of two numbers (the second one, where one is not a number), of the items of a list, of two lists."""
    if b is None:
        return _extreme(a, min_)
    return _mixed(a, b, a if a < b else b)  # noqa: FURB136 - as C does it, where one is not a number


@operator("prim::max", of="any")
def max_(a: Any, b: Any = None) -> Any:
    """The greater one."""
    if b is None:
        return _extreme(a, max_)
    return _mixed(a, b, a if a > b else b)  # noqa: FURB136 - as C does it


def _extreme(values: Any, choose: Any) -> Any:
    if not values:
        raise raised("RuntimeError", "min() or max() arg is an empty sequence")
    return functools.reduce(lambda x, y: choose(y, x), values)


def _mixed(a: Any, b: Any, chosen: Any) -> Any:
    return float(chosen) if (a.__class__ is float) != (b.__class__ is float) and chosen.__class__ is int else chosen
