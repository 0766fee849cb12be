"""Orthogonal polynomials of ``torch.special``: Chebyshev (four kinds, also shifted), Hermite (two kinds), Laguerre and Legendre.

They are computed as in releases, step by step in the dtype of the elements; the kernels fuse the first product of a step with its sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array, broadcast, common_floats, functional, not_implemented
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.operators._operands import Operand

Number = Any  # a NumPy number of the dtype of the elements
MOST = 100_000
HIGH_FIRST, HIGH = 6, 8
"""The degrees above which angles are used, for the first kind and for the others."""
HERMITE = {FLOAT32: 128, FLOAT64: 512}
"""The maximum degrees for which every release computes a Hermite polynomial."""


def _fused(a: Number, b: Number, c: Number) -> Number:
    """``a * b + c`` rounded once; in float64, nearly always."""
    wide = np.longdouble if a.dtype == FLOAT64 else np.float64
    return a.dtype.type(wide(a) * wide(b) + wide(c))


def _recurrent(x: Number, n: int, first: Number, step: Callable[[int, Number, Number], Number]) -> Number:
    """Compute the polynomial of degree n by recurrence from those of degrees 0 and 1."""
    before, now = x.dtype.type(1), first
    if not n:
        return before
    if n > MOST:
        raise Unsupported(f"the reference reader does not support polynomials of degree {n}; the limit is {MOST}", code="value")
    for k in range(looped(n - 1)):
        before, now = now, step(k, now, before)
        if np.isnan(now):
            break
    return now


def _chebyshev(x: Number, n: int, kind: str) -> Number:
    """For high degrees, use angles inside (-1, 1); the ends have known values. Otherwise use the recurrence."""
    of, odd = x.dtype.type, n % 2 == 1
    if abs(x) == of(1):
        up, down = {"t": (1, 1), "u": (n + 1, n + 1), "v": (1, 2 * n + 1), "w": (2 * n + 1, 1)}[kind]
        return of(up if x > 0 else (-down if odd else down))
    if n > (HIGH_FIRST if kind == "t" else HIGH) and abs(x) < of(1):
        return _by_angle(x, n, kind)
    twice = x + x
    first = {"t": x, "u": twice, "v": twice - of(1), "w": twice + of(1)}[kind]
    return _recurrent(x, n, first, lambda _k, now, before: _fused(twice, now, -before))


def _by_angle(x: Number, n: int, kind: str) -> Number:
    of = x.dtype.type

    def rounded(function: Callable[[float], float], of_what: Number) -> Number:
        return of(function(float(of_what)))

    angle = rounded(math.acos, x)
    if kind == "t":
        return rounded(math.cos, of(n) * angle)
    if kind == "u":
        sine = rounded(math.sin, angle)
        return rounded(math.sin, of(n + 1) * angle) / sine if sine else of(n + 1) * rounded(math.cos, of(n + 1) * angle) / x
    half, turned = angle / of(2), (of(n) + of(0.5)) * angle
    sine, cosine = rounded(math.sin, half), rounded(math.cos, half)
    if kind == "v":
        end = of(2 * n + 1) if n % 2 == 0 else -of(2 * n + 1)
        return rounded(math.cos, turned) / cosine if sine != of(1) else end
    end = of(2 * n + 1) if x > 0 else of(-1 if n % 2 else 1)
    return rounded(math.sin, turned) / sine if cosine != of(1) else end


def _of_chebyshev(kind: str, *, shifted: bool) -> Callable[[Number, int], Number]:
    def compute(x: Number, n: int) -> Number:
        return _chebyshev(x + x - x.dtype.type(1) if shifted else x, n, kind)

    return compute


def _bounded(x: Number, n: int) -> None:
    if n > HERMITE[x.dtype]:
        raise Unsupported(
            f"the reference reader does not support Hermite polynomials of degree {n} in {x.dtype}; the limit is {HERMITE[x.dtype]}",
            code="value",
        )


def _hermite_h(x: Number, n: int) -> Number:
    _bounded(x, n)
    kind = x.dtype.type
    twice = x + x
    return _recurrent(x, n, twice, lambda k, now, before: _fused(twice, now, -(kind(2 * k + 2) * before)))


def _hermite_he(x: Number, n: int) -> Number:
    _bounded(x, n)
    kind = x.dtype.type
    return _recurrent(x, n, x, lambda k, now, before: _fused(x, now, -(kind(k + 1) * before)))


def _laguerre(x: Number, n: int) -> Number:
    kind = x.dtype.type
    if x == 0:
        return kind(1)
    return _recurrent(
        x,
        n,
        kind(1) - x,
        lambda k, now, before: _fused(kind(2 * k + 2) + (kind(1) - x), now, -(kind(k + 1) * before)) / kind(k + 2),
    )


def _legendre(x: Number, n: int) -> Number:
    kind = x.dtype.type
    if abs(x) == kind(1):
        return kind(1 if x > 0 or n % 2 == 0 else -1)
    return _recurrent(x, n, x, lambda k, now, before: _fused(kind(2 * k + 3) * x, now, -(kind(k + 1) * before)) / kind(k + 2))


def _register(name: str, function: Callable[[Number, int], Number]) -> None:
    def of_one(x: Number, n: Number) -> Number:
        if np.isnan(n) or abs(n) >= 2.0**63:
            raise Unsupported("the reference reader supports only degrees that are 64-bit integers", code="value")
        degree = int(n)
        return x.dtype.type(0) if degree < 0 else function(x, degree)

    def call(x: Operand, n: Operand) -> Tensor:
        given, degrees = common_floats(x, n)
        kind = given.dtype
        if kind not in {FLOAT32, FLOAT64}:
            raise not_implemented(f"{name}_cpu", kind)
        shape = broadcast(given, degrees)
        looped(math.prod(shape))
        result = np.empty(shape, kind)
        both: tuple[Array, Array] = (np.broadcast_to(given, shape), np.broadcast_to(degrees, shape))
        with np.errstate(all="ignore"):
            for at in np.ndindex(*shape):
                result[at] = of_one(both[0][at], both[1][at])
        return Tensor(result)

    functional(f"special_{name}")(call)


for _kind in "tuvw":
    _register(f"chebyshev_polynomial_{_kind}", _of_chebyshev(_kind, shifted=False))
    _register(f"shifted_chebyshev_polynomial_{_kind}", _of_chebyshev(_kind, shifted=True))
for _name, _function in {
    "hermite_polynomial_h": _hermite_h, "hermite_polynomial_he": _hermite_he, "laguerre_polynomial_l": _laguerre, "legendre_polynomial_p": _legendre,
}.items():  # fmt: skip
    _register(_name, _function)
