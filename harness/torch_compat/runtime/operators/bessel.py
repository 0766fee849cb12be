"""Bessel functions of ``torch.special``, and Airy's.

Everything is computed in float64 by sums over points of integrals, which are exact to rounding, or by series for large numbers. Where a
release loses digits in float32 before it takes the cosine of a large number, the same digits are lost here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, floating, functional, not_implemented
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators.pointwise import bessel_of
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 25.0
"""From here on Hankel's series is exact to rounding."""
POINTS = 96
"""Of a period, over which a sum is as good as the integral for numbers below `LARGE`."""
RATIONAL = 5.0
"""Up to here releases take quotients of polynomials, beyond it sines and cosines."""
EULER = 0.57721566490153286061


def _checked(name: str, self: Tensor, *, halves: bool = False) -> Array:
    array = floating(self.array)
    if array.dtype not in {FLOAT32, FLOAT64} and not (halves and array.dtype in HALVES):
        raise not_implemented(f"{name}_cpu", array.dtype)
    return array


# ------------------------------------------------------------------------------------------------------- of the first kind


def _hankel(order: int, x: Array) -> tuple[Array, Array]:
    """What of both kinds is not sine and cosine, of large numbers."""
    mu, term = 4.0 * order * order, np.ones_like(x)
    even, odd = np.ones_like(x), np.zeros_like(x)
    for k in range(1, 26):
        term = term * (mu - (2 * k - 1) ** 2) / (k * 8 * x)
        if k % 2:
            odd = odd + (term if k % 4 == 1 else -term)
        else:
            even = even + (-term if k % 4 == 2 else term)
    return even, odd


def _of_whole_order(orders: list[int], x: Array) -> list[Array]:
    """Functions of the first kind of numbers that are not large: means over a period."""
    sized(POINTS, x.size)
    looped(1, POINTS * x.size * len(orders))
    angles = 2 * math.pi * (np.arange(POINTS) + 0.5) / POINTS
    waves = x[..., None] * np.sin(angles)
    return [np.cos(order * angles - waves).mean(axis=-1) for order in orders]


def _second_kind(order: int, x: Array) -> Array:
    """Neumann's sum over functions of the first kind, of positive numbers that are not large."""
    last = 44
    found = _of_whole_order(list(range(order, last, 2)), x)
    logarithm = np.log(x / 2) + EULER
    if not order:
        total = sum(((-1) ** k / k * one for k, one in enumerate(found[1:], 1)), start=np.zeros_like(x))
        return np.asarray(2 / math.pi * logarithm * found[0] - 4 / math.pi * total)
    total = sum(((-1) ** k * (2 * k + 1) / (k * (k + 1)) * one for k, one in enumerate(found[1:], 1)), start=np.zeros_like(x))
    return np.asarray(-2 / (math.pi * x) + 2 / math.pi * (logarithm - 1) * found[0] - 4 / math.pi * total)


def _both_kinds(order: int, size: Array) -> tuple[Array, Array]:
    """Of positive numbers; what is too small for a sum is its first term."""
    large = size > LARGE
    inner = np.where(large | (size == 0) | ~np.isfinite(size), 1.0, size)
    first = _of_whole_order([order], inner)[0]
    second = _second_kind(order, inner)
    outer = np.where(large, size, LARGE)
    even, odd = _hankel(order, outer)
    phase = outer - (2 * order + 1) * math.pi / 4
    scale = np.sqrt(2 / (math.pi * outer))
    one = scale * (even * np.cos(phase) - odd * np.sin(phase))
    two = scale * (even * np.sin(phase) + odd * np.cos(phase))
    return np.where(large, one, first), np.where(large, two, second)


def _lost(order: int, array: Array) -> Array:
    """What rounding takes of the angle whose sine and cosine a release computes."""
    turn = array.dtype.type((2 * order + 1) * math.pi / 4)
    exact = array.astype(FLOAT64) - (2 * order + 1) * math.pi / 4
    lost = (array - turn).astype(FLOAT64) - exact
    return np.where(array > RATIONAL, lost, 0.0) if array.dtype == FLOAT32 else np.zeros(array.shape)


def _bessel_j(order: int) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        array = _checked(f"bessel_j{order}", self)
        with np.errstate(all="ignore"):
            size = np.abs(array)
            wide = size.astype(FLOAT64)
            first, second = _both_kinds(order, wide)
            lost = _lost(order, size)
            found = first * np.cos(lost) - second * np.sin(lost)
            small = (wide / 2) ** order * (1 - wide * wide / (4 * (order + 1)))
            found = np.where(wide < 1e-5, small, found)
            found = np.where(np.isfinite(wide), found, np.nan)
            return Tensor(np.asarray(np.where(array < 0, -found, found) if order else found).astype(array.dtype))

    return call


def _bessel_y(order: int) -> Callable[[Tensor], Tensor]:
    def call(self: Tensor) -> Tensor:
        array = _checked(f"bessel_y{order}", self)
        with np.errstate(all="ignore"):
            wide = np.abs(array.astype(FLOAT64))
            first, second = _both_kinds(order, wide)
            lost = _lost(order, array)
            found = second * np.cos(lost) + first * np.sin(lost)
            found = np.where(array > 0, np.where(np.isfinite(wide), found, np.nan), np.where(array == 0, -np.inf, np.nan))
            return Tensor(np.asarray(found).astype(array.dtype))

    return call


for _order in (0, 1):
    functional(f"special_bessel_j{_order}")(_bessel_j(_order))
    functional(f"special_bessel_y{_order}")(_bessel_y(_order))


@functional("special_spherical_bessel_j0")
def special_spherical_bessel_j0(x: Tensor) -> Tensor:
    """``sin(x) / x``."""
    array = _checked("spherical_bessel_j0", x)
    wide = array.astype(FLOAT64)
    with np.errstate(all="ignore"):
        sine = np.sin(wide).astype(array.dtype).astype(FLOAT64)  # in large numbers as good as the angle is
        found = np.where(wide == 0, 1.0, np.where(np.isinf(wide), 0.0, sine / wide))
    return Tensor(np.asarray(found).astype(array.dtype))


# ----------------------------------------------------------------------------------------------------------- modified ones


def _modified_i(name: str, order: int, *, halves: bool) -> Callable[[Tensor], Tensor]:
    scaled = bessel_of(order)

    def call(self: Tensor) -> Tensor:
        """The exponential is of the type of the elements, which it leaves before the function does."""
        array = _checked(name, self, halves=halves)
        kind = FLOAT64 if array.dtype == FLOAT64 else FLOAT32
        with np.errstate(all="ignore"):
            growth = np.exp(np.abs(array.astype(FLOAT64))).astype(kind).astype(FLOAT64)
            found = np.where(np.isinf(array.astype(FLOAT64)), np.nan, scaled(array.astype(FLOAT64)) * growth)
        return Tensor(np.asarray(found).astype(array.dtype))

    return call


for _order in (0, 1):
    functional(f"special_modified_bessel_i{_order}")(_modified_i(f"modified_bessel_i{_order}", _order, halves=False))
functional("special_i1")(_modified_i("i1", 1, halves=False))
functional("special_i1", since="2.3.0")(_modified_i("i1", 1, halves=True))

STEP = 0.125
"""Between points of an integral over a line."""
FARTHEST = 27.0
"""Beyond which nothing is left of an integrand, for numbers from `TINY` on."""
TINY = 1e-8


def _scaled_k(order: float, x: Array) -> Array:
    """The modified function of the second kind times the exponential: an integral over half a line, of positive numbers."""
    points = np.arange(0, FARTHEST, STEP)
    sized(points.size, x.size)
    looped(1, points.size * x.size)
    weights = np.where(points == 0, 0.5, 1.0) * STEP * np.cosh(order * points)
    return np.asarray((np.exp(-2 * x[..., None] * np.sinh(points / 2) ** 2) * weights).sum(axis=-1))


def _modified_k(name: str, order: int, *, scales: bool) -> Callable[[Tensor], Tensor]:
    def compute(array: Array) -> Tensor:
        wide = array.astype(FLOAT64)
        with np.errstate(all="ignore"):
            inner = np.where((wide >= TINY) & np.isfinite(wide), wide, 1.0)
            decay = np.exp(-wide)
            found = _scaled_k(order, inner) * (1 if scales else decay)
            tiny = 1 / wide if order else -np.log(wide / 2) - EULER
            found = np.where(wide < TINY, tiny, found)
            found = np.where(wide > 0, np.where(np.isinf(wide), 0.0, found), np.where(wide == 0, np.inf, np.nan))
        return Tensor(np.asarray(found).astype(array.dtype))

    def plain(self: Tensor) -> Tensor:
        return compute(_checked(name, self))

    def scaled(x: Tensor) -> Tensor:
        return compute(_checked(name, x))

    return scaled if scales else plain


for _order in (0, 1):
    for _name, _scales in ((f"modified_bessel_k{_order}", False), (f"scaled_modified_bessel_k{_order}", True)):
        functional(f"special_{_name}")(_modified_k(_name, _order, scales=_scales))


# ------------------------------------------------------------------------------------------------------------------- Airy's

LEAST_AIRY, MOST_AIRY = -9.0, 103.892
DECAYS = 1.0


def _airy_far_below(x: Array) -> Array:
    """The series for large negative numbers."""
    size = -x
    zeta = 2 / 3 * size * np.sqrt(size)
    even, odd, term = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(1, 20):
        term = term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)) / zeta
        if k % 2:
            odd = odd + (term if k % 4 == 1 else -term)
        else:
            even = even + (-term if k % 4 == 2 else term)
    phase = zeta - math.pi / 4
    return np.asarray((np.cos(phase) * even + np.sin(phase) * odd) / (math.sqrt(math.pi) * size**0.25))


def _airy_near(x: Array) -> Array:
    """An integral along a line above the real one, on which the integrand fades."""
    above, step = 0.6, 0.02
    points = np.arange(-9.0, 9.0 + step, step)
    sized(points.size, 2 * x.size)
    looped(1, 4 * points.size * x.size)
    places = points + 1j * above
    return np.asarray((np.exp(1j * (places**3 / 3 + x[..., None] * places)).sum(axis=-1) * step / (2 * math.pi)).real)


def _airy(x: Array) -> Array:
    far, decays = x < LEAST_AIRY, x > DECAYS
    near = _airy_near(np.where(far | decays | np.isnan(x), 0.0, x))
    below = _airy_far_below(np.where(far & np.isfinite(x), x, -10.0))
    size = np.where(decays & np.isfinite(x), x, 2.0)
    zeta = 2 / 3 * size * np.sqrt(size)
    above = np.sqrt(size / 3) / math.pi * _scaled_k(1 / 3, zeta) * np.exp(-zeta)
    found = np.where(far, below, np.where(decays, np.where(x > MOST_AIRY, 0.0, above), near))
    return np.where(np.isfinite(x), found, np.nan)


@functional("special_airy_ai")
def special_airy_ai(x: Tensor) -> Tensor:
    """Airy's function of the first kind."""
    array = _checked("airy_ai", x)
    with np.errstate(all="ignore"):
        return Tensor(_airy(array.astype(FLOAT64)).astype(array.dtype))
