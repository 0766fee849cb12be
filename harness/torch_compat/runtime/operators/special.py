"""Special functions of ``torch.special``: zeta and gamma functions, the normal distribution, Bessel and Airy functions.

All are computed in float64 and rounded once. If a release loses digits in float32 before it takes the sine or cosine of a large number,
the same digits are lost here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    Array,
    broadcast,
    common_floats,
    fail,
    floating,
    functional,
    not_implemented,
    scalar_as,
    wide,
    words,
)
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.pointwise import elementwise, erf_2_0, erf_of, erfc_of, lgamma_of
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.operators._operands import Operand

# ------------------------------------------------------------------------------------------------------------------- zeta

_BERNOULLI = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
    -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip
"""Coefficients of the Euler-Maclaurin formula: (2k)! / B2k."""
DIRECT = 9
"""The number of terms that are summed directly before the formula is used."""
ROUNDING = 2.0**-53
POLE = 1e5
"""The distance of the second argument below zero beyond which the work for its terms is metered."""


def _zeta(s: float, q: float) -> float:
    """The Hurwitz zeta function, the sum of ``(k + q) ** -s``, with as many terms as Cephes takes."""
    if s == 1:
        return math.inf
    if math.isnan(q) or s < 1:
        return math.nan
    if math.isnan(s) and not (q <= 0 and q == math.floor(q)):
        return math.nan
    if q <= 0:
        if math.isinf(q) or q == math.floor(q):
            return math.inf
        if s != math.floor(s):
            return math.nan
        if q < -POLE:
            looped(int(min(-q, 2.0**53)))
    total, at, term, count = _power(q, -s), q, 0.0, 0
    while count < DIRECT or at <= DIRECT:
        count += 1
        at += 1.0
        term = _power(at, -s)
        total += term
        if -ROUNDING * total < term < ROUNDING * total:
            return total
    total += term * at / (s - 1.0) - 0.5 * term
    factor, power = 1.0, 0.0
    for item in _BERNOULLI:
        factor *= s + power
        term /= at
        part = factor * term / item
        total += part
        if abs(part / total) < ROUNDING:
            return total
        power += 1.0
        factor *= s + power
        term /= at
        power += 1.0
    return total


def _power(base: float, exponent: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(base), np.float64(exponent)))


_zetas = np.frompyfunc(_zeta, 2, 1)


@functional("special_zeta")
def special_zeta(self: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function of two tensors, or of a tensor and a number."""
    x, y = common_floats(self, other)
    if x.dtype not in {FLOAT32, FLOAT64}:
        raise not_implemented("zeta_cpu", x.dtype)
    shape = broadcast(x, y)
    looped(math.prod(shape))
    return Tensor(np.asarray(_zetas(x.astype(FLOAT64), y.astype(FLOAT64)), FLOAT64).astype(x.dtype))


# ------------------------------------------------------------------------------------------- the multivariate gamma function


def _multigammaln(array: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function: a sum over p log-gamma functions, each of them rounded."""
    looped(p, array.size)
    steps = [(array + np.asarray((at + 1 - p) / 2.0, array.dtype)).astype(array.dtype) for at in range(p)]
    parts = Tensor(np.stack([lgamma_of(step) for step in steps], axis=-1))
    total = resolve("aten::sum", libraries.release)(parts, [-1]).array
    constant = scalar_as(p * (p - 1) * math.log(math.pi) / 4, array.dtype)  # which may be infinite in 16 bits
    return (total.astype(FLOAT64) + constant.astype(FLOAT64)).astype(array.dtype)


def _at_least_one(p: int) -> None:
    if p < 1:
        raise fail("p has to be greater than or equal to 1")


@functional("mvlgamma", inplace=True)
def mvlgamma_1_0(self: Tensor, p: int) -> Tensor:
    """Up to 1.9 integers are refused."""
    array = self.array
    if array.dtype.kind in "iubc":
        raise fail(f"mvlgamma is not implemented for {words(array.dtype)}")
    _in_range(array, p)
    return Tensor(_multigammaln(array, p))


def _in_range(array: Array, p: int) -> None:
    if not (array.astype(FLOAT64) > 0.5 * (p - 1)).all():
        raise fail("All elements must be greater than (p-1)/2")
    _at_least_one(p)


@functional("mvlgamma", "special_multigammaln", inplace=True, since="1.10.0")
def mvlgamma_1_10(self: Tensor, p: int) -> Tensor:
    """Up to 1.12 numbers for which a gamma function is not positive are refused, and bools are accepted."""
    array = floating(self.array)
    if array.dtype.kind == "c":
        raise not_implemented("lgamma_cpu", array.dtype)
    _in_range(array, p)
    return Tensor(_multigammaln(array, p))


@functional("mvlgamma", "special_multigammaln", inplace=True, since="1.13.0")
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function."""
    if self.array.dtype == BOOL:
        raise fail("The input tensor may not be a boolean tensor.")
    _at_least_one(p)
    array = floating(self.array)
    if array.dtype.kind == "c":
        raise not_implemented("lgamma_cpu", array.dtype)
    return Tensor(_multigammaln(array, p))


# -------------------------------------------------------------------------------------------------- the normal distribution


def _ndtr(self: Tensor, erf: Callable[[Array], Array]) -> Tensor:
    """Half of one plus the error function, each step rounded, so that small results lose their digits."""
    array = floating(self.array)
    if array.dtype.kind == "c":
        raise not_implemented("erf_vml_cpu", array.dtype)
    root = _step(array.dtype, wide(array) / wide(array).dtype.type(math.sqrt(2)))
    return Tensor(_step(array.dtype, wide(_step(array.dtype, wide(erf(root)) + 1)) * wide(array).dtype.type(0.5)))


def _step(dtype: Any, value: Array) -> Array:
    return np.asarray(value).astype(dtype)


functional("special_ndtr")(lambda self: _ndtr(self, erf_of))
functional("special_ndtr", since="2.0.0")(lambda self: _ndtr(self, erf_2_0))


@functional("special_log_ndtr")
def special_log_ndtr(self: Tensor) -> Tensor:
    """The logarithm of the normal distribution function; below -1 by the scaled complementary error function. Each step is rounded."""
    array = floating(self.array)
    if array.dtype not in {FLOAT32, FLOAT64}:
        raise not_implemented("log_ndtr_cpu", array.dtype)
    kind = array.dtype
    root = array * kind.type(math.sqrt(0.5))
    low = array < -1
    with np.errstate(all="ignore"):
        scaled = _step(kind, np.log(_erfcx_of(np.where(low, -root, 1)).astype(FLOAT64) / 2)) - root * root
        result = np.where(low, scaled, _step(kind, np.log1p(-erfc_of(root).astype(FLOAT64) / 2)))
    return Tensor(np.where(array == -np.inf, array, result).astype(kind))


def _erfcx(x: float) -> float:
    """``exp(x * x) * erfc(x)`` of a positive number, computed directly or by Laplace's continued fraction."""
    if x < 5:
        return math.exp(x * x) * math.erfc(x)
    value = 0.0
    for at in range(60, 0, -1):
        value = at / 2 / (x + value)
    return 1 / (math.sqrt(math.pi) * (x + value))


_erfcx_of = elementwise(_erfcx)
