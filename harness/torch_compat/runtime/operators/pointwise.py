"""Elementwise functions of one or two numbers: exponentials, logarithms, angles, error and gamma functions.

Since 1.8 integers are converted to floats; before, they are refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import (
    BFLOAT16,
    FLOAT32,
    FLOAT64,
    HALVES,
    Array,
    broadcast,
    can_cast,
    cast,
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
from torch_compat.runtime.operators._gamma_kernels import digamma, digamma32, digamma_1_0, trigamma
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators._vectors import DOUBLES, double_exponential, error_function, exponentials, rounded_exponential
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.operators._operands import Operand


def through_double(function: Any) -> Any:
    """Compute in double precision and round once; torch's vectorized functions differ from this by a unit or two."""

    def compute(array: Array) -> Array:
        if array.dtype == FLOAT32 or array.dtype in HALVES:
            return function(array.astype(FLOAT64)).astype(array.dtype)
        return DOUBLES.get(function, function)(array) if array.dtype == FLOAT64 else function(array)

    return compute


OBJECT = 3  # array elements of memory that a Python float takes
CALL = 100  # multiplications that take as long as a call of a Python function


def elementwise(function: Any) -> Any:
    """Apply a function of Python floats to arrays."""
    vectorised = np.frompyfunc(function, 1, 1)

    def compute(array: Array) -> Array:
        if array.dtype.kind == "c":
            raise not_implemented(getattr(function, "__name__", "function"), array.dtype)
        meter.array(OBJECT * array.size)
        meter.work(CALL * array.size)
        return np.asarray(vectorised(array.astype(FLOAT64)), FLOAT64).astype(array.dtype)

    return compute


def single(names: tuple[str, ...], function: Any, before: Any = None) -> None:
    """Register a function of one floating-point number.

    Parameters:
        before: the function up to 1.7, if it differs.
    """

    def version_1_0(self: Tensor) -> Tensor:
        if self.array.dtype.kind in "iub":
            raise not_implemented(f"{names[0]}_vml_cpu", self.array.dtype)
        return Tensor(np.asarray((before or function)(self.array)))

    def version_1_8(self: Tensor) -> Tensor:
        return Tensor(np.asarray(function(floating(self.array))))

    functional(*names, inplace=True)(version_1_0)
    functional(*names, inplace=True, since="1.8.0")(version_1_8)


def _erf(x: float) -> float:
    return math.erf(x)


def _erfc(x: float) -> float:
    return math.erfc(x)


def _lgamma(x: float) -> float:
    if x in {math.inf, -math.inf}:
        return math.inf
    try:
        return math.lgamma(x)
    except ValueError:
        return math.inf


def _erfinv(y: float) -> float:
    """Giles' initial value and three Newton steps."""
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    w = -math.log((1 - y) * (1 + y))
    if w < 5:
        w -= 2.5
        start = 2.81022636e-08
        for item in (
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ):
            start = item + start * w
    else:
        w = math.sqrt(w) - 3
        start = -0.000200214257
        for item in (
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ):
            start = item + start * w
    x = start * y
    for _ in range(3):
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def sigmoid_of(array: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    if array.dtype.kind == "c":
        return 1 / (1 + np.exp(-array))
    if array.dtype == FLOAT64:
        return 1 / (1 + double_exponential(-array))
    item = np.ones((), FLOAT32)  # each step in float32, like torch
    return (item / (item + exponentials(-array.astype(FLOAT32), array))).astype(array.dtype)


def _sinc(array: Array) -> Array:
    x = wide(array)
    product = x.dtype.type(np.pi) * x  # the sine is taken of the rounded product
    return np.where(x == 0, 1.0, np.sin(product) / np.where(product == 0, 1, product)).astype(array.dtype)


def erf_2_0(array: Array) -> Array:
    """Since 2.0 16-bit values use formula 7.1.26 of Abramowitz and Stegun in float32, which loses small results."""
    if array.dtype not in HALVES:
        return erf_of(array)
    x = array.astype(FLOAT32)
    return error_function(x, rounded_exponential(-(x * x))).astype(array.dtype)


def _steps_of_digamma(others: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Digamma in the steps of float32; ``others`` computes other dtypes, poles and infinities."""

    def compute(array: Array) -> Array:
        if array.dtype != FLOAT32:
            return others(array)
        special = ~np.isfinite(array) | ((array <= 0) & (array == np.floor(array)))
        result = digamma32(np.where(special, np.float32(1), array))
        return np.where(special, others(array), result) if special.any() else result

    return compute


erf_of = elementwise(_erf)
erfc_of = elementwise(_erfc)
digamma_of = _steps_of_digamma(elementwise(digamma))
_digamma_of_1_0 = _steps_of_digamma(elementwise(digamma_1_0))
lgamma_of = elementwise(_lgamma)

for _names, _function in {
    ("exp",): through_double(np.exp), ("exp2", "special_exp2"): through_double(np.exp2), ("expm1", "special_expm1"): through_double(np.expm1),
    ("log",): through_double(np.log), ("log2",): through_double(np.log2), ("log10",): through_double(np.log10),
    ("log1p", "special_log1p"): through_double(np.log1p), ("sqrt",): np.sqrt,
    ("sin",): through_double(np.sin), ("cos",): through_double(np.cos), ("tan",): through_double(np.tan),
    ("atan", "arctan"): through_double(np.arctan), ("sinh",): through_double(np.sinh), ("cosh",): through_double(np.cosh),
    ("tanh",): through_double(np.tanh), ("asinh", "arcsinh"): through_double(np.arcsinh), ("acosh", "arccosh"): through_double(np.arccosh),
    ("atanh", "arctanh"): through_double(np.arctanh), ("sigmoid", "special_expit"): sigmoid_of,
    ("erf", "special_erf"): erf_of, ("erfc", "special_erfc"): erfc_of,
    ("lgamma", "special_gammaln"): lgamma_of,
    ("sinc", "special_sinc"): _sinc, ("deg2rad",): lambda x: (x.astype(FLOAT64) * (np.pi / 180)).astype(x.dtype),
    ("rad2deg",): lambda x: (x.astype(FLOAT64) * (180 / np.pi)).astype(x.dtype), ("i0", "special_i0"): through_double(np.i0),
}.items():  # fmt: skip
    single(_names, _function)


def _erfinv_1_0(array: Array) -> Array:
    """Up to 1.6, the result for bfloat16 is zero."""
    return np.zeros_like(array) if array.dtype == BFLOAT16 else np.asarray(elementwise(_erfinv)(array))


single(("erfinv", "special_erfinv"), elementwise(_erfinv), _erfinv_1_0)


@functional("erfinv", "special_erfinv", inplace=True, since="1.7.0")
def _erfinv_1_7(self: Tensor) -> Tensor:
    """Up to 1.7 integers are refused."""
    if self.array.dtype.kind in "iub":
        raise not_implemented("erfinv_vml_cpu", self.array.dtype)
    return Tensor(np.asarray(elementwise(_erfinv)(self.array)))


def _log1p_2_0(self: Tensor) -> Tensor:
    """Up to 2.6 the result for the largest numbers is infinite."""
    x = floating(self.array)
    value = np.asarray(through_double(np.log1p)(x))
    if x.dtype.kind == "c":
        return Tensor(value)
    return Tensor(np.where(x > (1e307 if x.dtype == FLOAT64 else 1e38), np.asarray(np.inf, x.dtype), value).astype(x.dtype))


functional("log1p", "special_log1p", inplace=True, since="2.0.0")(_log1p_2_0)
functional("log1p", "special_log1p", inplace=True, since="2.7.0")(
    lambda self: Tensor(np.asarray(through_double(np.log1p)(floating(self.array))))
)

single(("digamma", "special_digamma", "special_psi"), digamma_of, _digamma_of_1_0)
functional("erf", "special_erf", inplace=True, since="2.0.0")(lambda self: Tensor(np.asarray(erf_2_0(floating(self.array)))))


# -------------------------------------------------------------------------------------------------------------------- pairs


def _floats(self: Operand, other: Operand) -> tuple[Array, Array]:
    x, y = common_floats(self, other)
    x, y = np.asarray(x), np.asarray(y)
    broadcast(x, y)
    return x, y


def _in_double(function: Any, x: Array, y: Array) -> Tensor:
    if x.dtype == FLOAT32 or x.dtype in HALVES:
        return Tensor(function(x.astype(FLOAT64), y.astype(FLOAT64)).astype(x.dtype))
    return Tensor(function(x, y))


@functional("atan2", "arctan2", inplace=True)
def atan2(self: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, self)."""
    return _in_double(np.arctan2, *_floats(self, other))


@functional("hypot", inplace=True)
def hypot(self: Tensor, other: Tensor) -> Tensor:
    """The distance of the point (self, other) from the origin."""
    return _in_double(np.hypot, *_floats(self, other))


@functional("nextafter", inplace=True)
def nextafter(self: Tensor, other: Tensor) -> Tensor:
    """The next representable number toward the other."""
    return Tensor(np.nextafter(*_floats(self, other)))


def _into_the_first(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Create an operator whose result is cast to the dtype of the first tensor, which must be able to hold it, or to that of ``out``."""

    def call(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        value = function(self, other).array
        if out is not None:
            return into(out, value)
        if not can_cast(value.dtype, self.array.dtype):
            raise fail(f"result type {words(value.dtype)} can't be cast to the desired output type {words(self.array.dtype)}")
        return Tensor(cast(value, self.array.dtype))

    return call


def logaddexp_1_9(self: Tensor, other: Tensor) -> Tensor:
    """Up to 2.0 complex numbers are refused."""
    x, y = _floats(self, other)
    if x.dtype.kind == "c":
        raise not_implemented("logaddexp_cpu", x.dtype)
    return _in_double(np.logaddexp, x, y)


operator("aten::logaddexp")(_into_the_first(logaddexp_1_9))
functional("logaddexp", since="1.9.0")(logaddexp_1_9)


@functional("logaddexp", since="2.1.0")
def logaddexp(self: Tensor, other: Tensor) -> Tensor:
    """``log(exp(self) + exp(other))``."""
    x, y = _floats(self, other)
    if x.dtype.kind == "c":
        more = x.real >= y.real
        high, low = (np.asarray(np.where(more, *pair), np.complex128) for pair in ((x, y), (y, x)))
        return Tensor(np.asarray(high + np.log1p(np.exp(low - high))).astype(x.dtype))
    return _in_double(np.logaddexp, x, y)


def logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    """``log2(2 ** self + 2 ** other)``."""
    x, y = _floats(self, other)
    if x.dtype.kind == "c":
        raise not_implemented("logaddexp2_cpu", x.dtype)
    return _in_double(np.logaddexp2, x, y)


operator("aten::logaddexp2")(_into_the_first(logaddexp2))
functional("logaddexp2", since="1.9.0")(logaddexp2)


def _x_log(function: Any, name: str) -> Any:
    def compute(self: Operand, other: Operand) -> Tensor:
        x, y = _floats(self, other)
        if x.dtype.kind == "c":
            raise not_implemented(name, x.dtype)
        value = np.where(np.isnan(y), np.nan, np.where(x == 0, 0.0, x.astype(FLOAT64) * function(y.astype(FLOAT64))))
        return Tensor(value.astype(x.dtype))

    return compute


functional("xlogy", "special_xlogy", inplace=True)(_x_log(np.log, "xlogy_cpu"))
functional("special_xlog1py")(_x_log(np.log1p, "xlog1py_cpu"))


@functional("ldexp", inplace=True)
def ldexp_1_8(self: Tensor, other: Tensor) -> Tensor:
    """``self * 2 ** other``, with the power in the dtype of ``other``."""
    power = floating(other.array)
    x, y = _floats(self, Tensor(np.power(np.asarray(2, power.dtype), power).astype(power.dtype)))
    return Tensor((x * y).astype(x.dtype))


@functional("ldexp", inplace=True, since="2.5.0")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """As of 2.5 powers of integers are computed in the dtype of ``self``."""
    whole = other.array.dtype.kind in "iub" and self.array.dtype.kind not in "iub"
    return ldexp_1_8(self, Tensor(other.array.astype(self.array.dtype)) if whole else other)


@operator("aten::frexp")
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent."""
    mantissa, exponent = np.frexp(self.array)
    return Tensor(mantissa), Tensor(np.asarray(exponent).astype(np.int32))


@functional("logit", "special_logit", inplace=True)
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, with x clamped to ``eps`` and ``1 - eps``."""
    array = floating(self.array)
    x = array
    if eps is not None:  # in the dtype of the elements, in which 1 - eps may be 1
        low = scalar_as(eps, array.dtype)
        high = (scalar_as(1.0, array.dtype) - low).astype(array.dtype)
        x = np.where(x < low, low, np.where(x > high, high, x))
    x = x.astype(FLOAT64)
    return Tensor(np.log(x / (1 - x)).astype(array.dtype))


@functional("polygamma")
def polygamma_1_0(n: int, self: Tensor) -> Tensor:
    """Up to 1.6 only digamma and its first derivative are implemented."""
    if n >= 2:
        raise fail(f"polygamma(n,x) is not implemented for n>=2, but was {n}")
    return Tensor(_digamma_of_1_0(floating(self.array))) if n == 0 else _polygamma(n, self)


@functional("polygamma", "special_polygamma", since="1.7.0")
def polygamma(n: int, self: Tensor) -> Tensor:
    """Derivatives of digamma; the zeroth is digamma."""
    return _polygamma(n, self)


operator("aten::polygamma_")(lambda self, n: write(self, polygamma_1_0(n, self).array))
operator("aten::polygamma_", since="1.7.0")(lambda self, n: write(self, polygamma(n, self).array))


def _polygamma(n: int, self: Tensor) -> Tensor:
    array = floating(self.array)
    if n < 0:
        raise fail("polygamma(n, x) does not support negative n.")
    if not n:
        return Tensor(digamma_of(array))
    if n == 1:
        return Tensor(trigamma(array).astype(array.dtype))
    n = (n + 2**31) % 2**32 - 2**31  # the kernel takes a 32-bit integer
    sign = 1.0 if n % 2 else -1.0
    factorial = math.gamma(n + 1) if 0 <= n < 170 else math.inf
    unit = FLOAT64 if array.dtype == FLOAT64 else np.dtype(np.float32)
    terms = _zeta(n + 1.0, array.astype(FLOAT64)).astype(unit)
    return Tensor((unit.type(sign * factorial) * terms).astype(array.dtype))


# Coefficients of the Euler-Maclaurin formula: (2k)! / B2k.
_BERNOULLI = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
    -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip


def _zeta(s: float, q: Array) -> Array:
    """The Hurwitz zeta function: the sum of ``(k + q) ** -s``; infinite at integers that are not positive."""
    q = np.asarray(q)
    a = q.copy()
    total = np.zeros_like(q)
    for _ in range(12):
        total = total + a**-s
        a = a + 1.0
    while np.any(a < 9.0) and np.all(np.isfinite(a)) and np.min(a) > -10_000:
        total = np.where(a < 9.0, total + a**-s, total)
        a = np.where(a < 9.0, a + 1.0, a)
    total = total + a ** (1.0 - s) / (s - 1.0) + 0.5 * a**-s
    factor, power = s, a ** (-s - 1.0)
    for k, item in enumerate(_BERNOULLI):
        total = total + factor * power / item
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power = power / (a * a)
    pole = (q <= 0) & (q == np.floor(q))
    return np.where(pole, np.inf, total)


@functional("special_entr")
def special_entr(self: Tensor) -> Tensor:
    """``-x log(x)``."""
    array = floating(self.array)
    x = array.astype(FLOAT64)
    return Tensor(np.where(x > 0, -x * np.log(x), np.where(x == 0, 0.0, np.where(np.isnan(x), x, -np.inf))).astype(array.dtype))


def _ndtri(p: float) -> float:
    """The inverse of the normal distribution function."""
    if not 0 <= p <= 1:
        return math.nan
    return math.sqrt(2) * _erfinv(2 * p - 1) if 1e-8 < p < 1 - 1e-8 else _tail(p)


def _tail(p: float) -> float:
    if p in {0, 1}:
        return -math.inf if p == 0 else math.inf
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _ndtr(middle) < p else (low, middle)
    return (low + high) / 2


def _ndtr(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2)) if not math.isnan(x) else x


def _erfcx(x: float) -> float:
    if math.isnan(x):
        return x
    if x < 25:
        return math.exp(x * x) * math.erfc(x) if x > -26.6 else math.inf
    square = 1 / (2 * x * x)
    return (1 - square + 3 * square**2 - 15 * square**3) / (x * math.sqrt(math.pi))


def _bessel(order: int) -> Any:
    def function(x: float) -> float:
        """The modified Bessel function of the first kind times exp(-|x|): its series, or Hankel's expansion for large numbers."""
        if math.isnan(x) or math.isinf(x):
            return math.nan if math.isnan(x) else 0.0 * (1 if not order or x > 0 else -1)
        size = abs(x)
        if size > 60:
            mu, term, total = 4.0 * order * order, 1.0, 1.0
            for k in range(1, 30):
                term *= -(mu - (2 * k - 1) ** 2) / (k * 8 * size)
                total += term
            result = total / math.sqrt(2 * math.pi * size)
        else:
            term = total = (size / 2) ** order
            for k in range(1, 150):
                term *= (size / 2) ** 2 / (k * (k + order))
                total += term
            result = total * math.exp(-size)
        return -result if order and x < 0 else result

    return function


def _special(name: str, function: Any) -> None:
    functional(f"special_{name}")(lambda self: Tensor(np.asarray(elementwise(function)(floating(self.array)))))


for _name, _one in {
    "ndtri": _ndtri, "erfcx": _erfcx, "i0e": _bessel(0), "i1e": _bessel(1),
}.items():  # fmt: skip
    _special(_name, _one)


def _gamma_parts(a: float, x: float) -> tuple[float, float]:
    """The lower and upper regularized incomplete gamma functions: the series, or Lentz's continued fraction."""
    if math.isnan(a) or math.isnan(x) or x < 0 or a < 0 or (a == 0 and x == 0):
        return math.nan, math.nan
    if a == 0 or math.isinf(x):
        return (math.nan, math.nan) if math.isinf(a) else (1.0, 0.0)
    if x == 0 or math.isinf(a):
        return 0.0, 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        for _ in range(2000):
            n += 1
            term *= x / n
            total += term
            if term < total * 1e-17:
                break
        return total * front, 1 - total * front
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 2000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b or 1e-300)
        c = b + an / c or 1e-300
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return 1 - front * h, front * h


def _igammas(names: tuple[str, ...], part: int) -> None:
    vectorised = np.frompyfunc(lambda a, x: _gamma_parts(a, x)[part], 2, 1)

    def call(self: Tensor, other: Tensor) -> Tensor:
        x, y = _floats(self, other)
        if x.dtype.kind == "c":
            raise not_implemented("igamma", x.dtype)
        looped(max(x.size, y.size))
        return Tensor(np.asarray(vectorised(x.astype(FLOAT64), y.astype(FLOAT64)), FLOAT64).astype(x.dtype))

    functional(names[0], inplace=True)(call)
    functional(names[1])(call)


_igammas(("igamma", "special_gammainc"), 0)
_igammas(("igammac", "special_gammaincc"), 1)


__all__ = ["elementwise", "erf_2_0", "erf_of", "erfc_of", "lgamma_of", "sigmoid_of", "single", "through_double"]
