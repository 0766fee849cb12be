"""Bessel and Airy functions of ``torch.special``, computed like Cephes in the dtype of the elements.

The coefficients are those of the releases. Their errors exceed float64 rounding errors, so each step is rounded as in the releases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._cephes import AIRY, MODIFIED, QUOTIENTS
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, floating, functional, not_implemented, wide
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

RATIONAL = 5.0
"""Up to this value rational functions are used, beyond it sines and cosines."""


def _checked(name: str, self: Tensor, *, halves: bool = False) -> Array:
    array = floating(self.array)
    if array.dtype not in {FLOAT32, FLOAT64} and not (halves and array.dtype in HALVES):
        raise not_implemented(f"{name}_cpu", array.dtype)
    return array


def _quotient(above: tuple[float, ...], below: tuple[float, ...], x: Array) -> Array:
    return _polynomial(above, x) / _polynomial(below, x)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    looped(len(coefficients), x.size)
    result = np.zeros_like(x)
    for coefficient in coefficients:
        result = result * x + x.dtype.type(coefficient)
    return result


def _rounded(function: Any, x: Array) -> Array:
    """A function computed in float64, rounded to the dtype of the elements."""
    return np.asarray(function(x.astype(FLOAT64))).astype(x.dtype)


# -------------------------------------------------------------------------------------------------- first and second kind


def _waves(order: int, x: Array, *, second: bool) -> Array:
    """The asymptotic form for large numbers."""
    kind = x.dtype.type
    inverse = kind(5) / x
    square = inverse * inverse if order else kind(25) / (x * x)
    p = _quotient(QUOTIENTS[f"pp{order}"], QUOTIENTS[f"pq{order}"], square)
    q = _quotient(QUOTIENTS[f"qp{order}"], QUOTIENTS[f"qq{order}"], square)
    angle = x - kind((2 * order + 1) * math.pi / 4)
    sine, cosine = _rounded(np.sin, angle), _rounded(np.cos, angle)
    result = p * sine + inverse * q * cosine if second else p * cosine - inverse * q * sine
    return result * kind(math.sqrt(2 / math.pi)) / np.sqrt(x)


ROOTS = {0: (5.78318596294678452118, 30.4712623436620863991), 1: (14.6819706421238932572, 49.2184563216946036703)}
"""Squares of the first two zeros of each function."""


def _first_kind(order: int, x: Array) -> Array:
    """The Bessel function for nonnegative numbers."""
    kind = x.dtype.type
    square = x * x
    low, high = ROOTS[order]
    quotient = (_polynomial(QUOTIENTS[f"rp{order}"], square), _polynomial(QUOTIENTS[f"rq{order}"], square))
    if order:
        small = quotient[0] / quotient[1] * x * (square - kind(low)) * (square - kind(high))
    else:
        small = (square - kind(low)) * (square - kind(high)) * quotient[0] / quotient[1]
        small = np.where(x < kind(0.00001), kind(1) - square / kind(4), small)
    return np.where(x <= kind(RATIONAL), small, _waves(order, x, second=False))


def _second_kind(order: int, x: Array) -> Array:
    kind = x.dtype.type
    quotient = _quotient(QUOTIENTS[f"yp{order}"], QUOTIENTS[f"yq{order}"], x * x)
    logarithm, first = _rounded(np.log, x), _first_kind(order, x)
    scale = kind(2 / math.pi)
    small = x * quotient + scale * (first * logarithm - kind(1) / x) if order else quotient + scale * logarithm * first
    small = np.where(x == 0, kind(-np.inf), np.where(x < 0, kind(np.nan), small))
    return np.where(x <= kind(RATIONAL), small, _waves(order, x, second=True))


def _unsigned(order: int) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        array = _checked(f"bessel_j{order}", self)
        with np.errstate(all="ignore"):
            result = _first_kind(order, np.abs(array))
        return Tensor(np.asarray(np.where(array < 0, -result, result) if order else result))

    return call


def _positive(order: int) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        array = _checked(f"bessel_y{order}", self)
        with np.errstate(all="ignore"):
            return Tensor(np.asarray(_second_kind(order, array)))

    return call


for _order in (0, 1):
    functional(f"special_bessel_j{_order}")(_unsigned(_order))
    functional(f"special_bessel_y{_order}")(_positive(_order))


@functional("special_spherical_bessel_j0")
def special_spherical_bessel_j0(x: Tensor) -> Tensor:
    """``sin(x) / x``."""
    array = _checked("spherical_bessel_j0", x)
    wide = array.astype(FLOAT64)
    with np.errstate(all="ignore"):
        sine = np.sin(wide).astype(array.dtype).astype(FLOAT64)
        result = np.where(wide == 0, 1.0, np.where(np.isinf(wide), 0.0, sine / wide))
    return Tensor(np.asarray(result).astype(array.dtype))


# ------------------------------------------------------------------------------------------------------ modified functions


def _series(coefficients: tuple[float, ...], x: Array) -> Array:
    """Half a sum of Chebyshev polynomials."""
    kind = x.dtype.type
    looped(len(coefficients), x.size)
    before, last, now = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x) + kind(coefficients[0])
    for coefficient in coefficients[1:]:
        before, last = last, now
        now = x * last - before + kind(coefficient)
    return kind(0.5) * (now - before)


SHORT = (17, 7)
"""Numbers of coefficients that ``i1`` uses in float32, counted from the end, for small and large numbers."""


def _first_modified(order: int, x: Array, *, short: bool = False) -> Array:
    """The modified function of the first kind, for any numbers.

    Parameters:
        short: whether fewer coefficients are used in float32.
    """
    kind = x.dtype.type
    low, high = MODIFIED[f"i{order}a"], MODIFIED[f"i{order}b"]
    if short and x.dtype == FLOAT32:
        low, high = low[-SHORT[0] :], high[-SHORT[1] :]
    size = np.abs(x)
    growth = _rounded(np.exp, size)
    small = growth * (size if order else kind(1)) * _series(low, size / kind(2) - kind(2))
    large = growth * _series(high, kind(32) / size - kind(2)) / np.sqrt(size)
    result = np.where(size <= kind(8), small, large)
    return np.where(x < 0, -result, result) if order else result


def _modified_i(order: int) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        array = _checked(f"modified_bessel_i{order}", self)
        with np.errstate(all="ignore"):
            return Tensor(np.asarray(_first_modified(order, array)))

    return call


def _i1(self: Tensor, *, halves: bool) -> Tensor:
    array = _checked("i1", self, halves=halves)
    with np.errstate(all="ignore"):
        return Tensor(np.asarray(_first_modified(1, wide(array), short=True)).astype(array.dtype))


for _order in (0, 1):
    functional(f"special_modified_bessel_i{_order}")(_modified_i(_order))
functional("special_i1")(lambda self: _i1(self, halves=False))
functional("special_i1", since="2.6.0")(lambda self: _i1(self, halves=True))


def _second_modified(order: int, x: Array, *, scales: bool) -> Array:
    kind = x.dtype.type
    half = _series(MODIFIED[f"k{order}a"], x * x - kind(2))
    first = _first_modified(order, x)
    logarithm = np.log(0.5 * x.astype(FLOAT64))
    small = logarithm * first + half / x if order else half - logarithm * first
    small = small.astype(x.dtype)
    large = _series(MODIFIED[f"k{order}b"], kind(8) / x - kind(2)) / np.sqrt(x)
    if scales:
        small = small * _rounded(np.exp, x)
    else:
        large = _rounded(np.exp, -x) * _series(MODIFIED[f"k{order}b"], kind(8) / x - kind(2)) / np.sqrt(x)
    result = np.where(x <= kind(2), small, large)
    return np.where(x > 0, result, np.where(x == 0, kind(np.inf), kind(np.nan)))


def _modified_k(name: str, order: int, *, scales: bool) -> Callable[[Tensor], Tensor]:
    def compute(array: Array) -> Tensor:
        with np.errstate(all="ignore"):
            return Tensor(np.asarray(_second_modified(order, array, scales=scales)))

    def plain(self: Tensor) -> Tensor:
        return compute(_checked(name, self))

    def scaled(x: Tensor) -> Tensor:
        return compute(_checked(name, x))

    return scaled if scales else plain


for _order in (0, 1):
    for _name, _scales in ((f"modified_bessel_k{_order}", False), (f"scaled_modified_bessel_k{_order}", True)):
        functional(f"special_{_name}")(_modified_k(_name, _order, scales=_scales))


# ------------------------------------------------------------------------------------------------------------ Airy function

NEAR, NOTHING = 2.09, 103.892
"""The bound for using the series, and the bound beyond which the result is zero."""
AT_ZERO = (0.355028053887817239260, 0.258819403792806798405)
"""The value of the function at zero, and its negated slope there."""
MOST_TERMS = 60


def _airy_far(x: Array) -> Array:
    """The function for negative numbers."""
    kind = x.dtype.type
    zeta = kind(-2) * x * np.sqrt(-x) / kind(3)
    z = kind(1) / zeta
    square = z * z
    f = _quotient(AIRY["afn"], AIRY["afd"], square)
    g = _quotient(AIRY["agn"], AIRY["agd"], square)
    angle = zeta + kind(0.25) * kind(math.pi)
    scale = kind(1 / math.sqrt(math.pi)) / np.sqrt(np.sqrt(-x))
    return scale * (_rounded(np.sin, angle) * (kind(1) + square * f) - _rounded(np.cos, angle) * (z * g))


def _airy_above(x: Array) -> Array:
    kind = x.dtype.type
    zeta = kind(2) * x * np.sqrt(x) / kind(3)
    quotient = _quotient(AIRY["an"], AIRY["ad"], kind(1) / zeta)
    return kind(1 / math.sqrt(math.pi)) * quotient / (kind(2) * np.sqrt(np.sqrt(x)) * _rounded(np.exp, zeta))


def _airy_near(x: Array) -> Array:
    """The series, summed as long as its terms matter."""
    kind = x.dtype.type
    f, g, m, n, k = np.ones_like(x), x.copy(), np.ones_like(x), x.copy(), kind(1)
    cube, goes = x * x * x, np.ones(x.shape, bool)
    for _ in range(looped(MOST_TERMS, x.size)):
        if not goes.any():
            break
        m = m * cube / (k + kind(1))
        n = n * cube / (k + kind(2)) / (k + kind(3))
        m = m / (k + kind(2))
        k = k + kind(3)
        f, g = np.where(goes, f + m, f), np.where(goes, g + n, g)
        goes &= np.abs(m / f) > np.finfo(x.dtype).eps
    return kind(AT_ZERO[0]) * f - kind(AT_ZERO[1]) * g


@functional("special_airy_ai")
def special_airy_ai(x: Tensor) -> Tensor:
    """Airy's function of the first kind."""
    array = _checked("airy_ai", x)
    kind = array.dtype.type
    with np.errstate(all="ignore"):
        series = (array >= kind(-NEAR)) & (array < kind(NEAR))
        result: Array = np.where(array < 0, _airy_far(array), _airy_above(array))
        result = np.where(series, _airy_near(np.where(series, array, kind(0))), result)
        result = np.where(array > kind(NOTHING), kind(0), result)
        return Tensor(np.asarray(np.where(np.isfinite(array), result, kind(np.nan))))
