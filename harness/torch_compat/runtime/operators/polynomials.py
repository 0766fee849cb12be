"""Orthogonal polynomials of ``torch.special``: Chebyshev's of four kinds, shifted ones, Hermite's of two kinds, Laguerre's and Legendre's.

They are computed as releases do, step by step in the type of the elements.
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

Number = Any  # of numpy, of the type of the elements
Ends = "Callable[[Number, int], Number | None]"
MOST = 100_000


def _recurrent(x: Number, n: int, first: Number, step: Callable[[int, Number, Number], Number]) -> Number:
    """The polynomial of degree n, from those of degree 0 and 1."""
    before, now = x.dtype.type(1), first
    if not n:
        return before
    if n > MOST:
        raise Unsupported("the reference reader does not support polynomials of such a degree", code="value")
    for k in range(looped(n - 1)):
        before, now = now, step(k, now, before)
        if np.isnan(now):
            break
    return now


def _chebyshev(x: Number, n: int, kind: str) -> Number:
    """By angles for high degrees within -1 and 1, whose ends have values of their own; else by the recurrence."""
    one = x.dtype.type(1)
    odd = n % 2 == 1
    if abs(x) == one:
        up, down = {"t": (1, 1), "u": (n + 1, n + 1), "v": (1, 2 * n + 1), "w": (2 * n + 1, 1)}[kind]
        return x.dtype.type(up if x > 0 else (-down if odd else down))
    limit = 6 if kind == "t" else 8
    if n > limit and abs(x) < one:
        angle = np.arccos(x)
        if kind == "t":
            return np.cos(x.dtype.type(n) * angle)
        if kind == "u":
            if np.sin(angle) == 0:
                return x.dtype.type(n + 1) * np.cos(x.dtype.type(n + 1) * angle) / x
            return np.sin(x.dtype.type(n + 1) * angle) / np.sin(angle)
        half = angle / x.dtype.type(2)
        if kind == "v":
            return (
                np.cos((x.dtype.type(n) + x.dtype.type(0.5)) * angle) / np.cos(half)
                if np.sin(half) != 1
                else x.dtype.type(n * 2 + 1) * (-1 if odd else 1)
            )
        return (
            np.sin((x.dtype.type(n) + x.dtype.type(0.5)) * angle) / np.sin(half) if np.cos(half) != 1 else x.dtype.type(n * 2 + 1)
        )
    twice = x + x
    first = {"t": x, "u": twice, "v": twice - one, "w": twice + one}[kind]
    return _recurrent(x, n, first, lambda _k, now, before: twice * now - before)


def _of_chebyshev(kind: str, *, shifted: bool) -> Callable[[Number, int], Number]:
    def compute(x: Number, n: int) -> Number:
        return _chebyshev(x + x - x.dtype.type(1) if shifted else x, n, kind)

    return compute


def _hermite_h(x: Number, n: int) -> Number:
    kind = x.dtype.type
    twice = x + x
    return _recurrent(x, n, twice, lambda k, now, before: twice * now - kind(2 * k + 2) * before)


def _hermite_he(x: Number, n: int) -> Number:
    kind = x.dtype.type
    return _recurrent(x, n, x, lambda k, now, before: x * now - kind(k + 1) * before)


def _laguerre(x: Number, n: int) -> Number:
    kind = x.dtype.type
    if x == 0:
        return kind(1)
    return _recurrent(
        x, n, kind(1) - x, lambda k, now, before: (kind(2 * k + 3) * now - x * now - kind(k + 1) * before) / kind(k + 2)
    )


def _legendre(x: Number, n: int) -> Number:
    kind = x.dtype.type
    if abs(x) == kind(1):
        return kind(1 if x > 0 or n % 2 == 0 else -1)
    return _recurrent(x, n, x, lambda k, now, before: (kind(2 * k + 3) * x * now - kind(k + 1) * before) / kind(k + 2))


def _register(name: str, function: Callable[[Number, int], Number]) -> None:
    def of_one(x: Number, n: Number) -> Number:
        if np.isnan(n) or abs(n) >= 2.0**63:
            raise Unsupported("the reference reader does not support degrees that are no integers of 64 bits", code="value")
        degree = math.trunc(n)
        return x.dtype.type(0) if degree < 0 else function(x, degree)

    def call(x: Operand, n: Operand) -> Tensor:
        given, degrees = common_floats(x, n)
        kind = given.dtype
        if kind not in {FLOAT32, FLOAT64}:
            raise not_implemented(f"{name}_cpu", kind)
        shape = broadcast(given, degrees)
        looped(math.prod(shape))
        found = np.empty(shape, kind)
        both: tuple[Array, Array] = (np.broadcast_to(given, shape), np.broadcast_to(degrees, shape))
        with np.errstate(all="ignore"):
            for at in np.ndindex(*shape):
                found[at] = of_one(both[0][at], both[1][at])
        return Tensor(found)

    functional(f"special_{name}")(call)


for _kind in "tuvw":
    _register(f"chebyshev_polynomial_{_kind}", _of_chebyshev(_kind, shifted=False))
    _register(f"shifted_chebyshev_polynomial_{_kind}", _of_chebyshev(_kind, shifted=True))
for _name, _function in {
    "hermite_polynomial_h": _hermite_h, "hermite_polynomial_he": _hermite_he, "laguerre_polynomial_l": _laguerre, "legendre_polynomial_p": _legendre,
}.items():  # fmt: skip
    _register(_name, _function)
