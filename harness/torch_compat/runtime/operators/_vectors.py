"""Bit-exact float32 exponentials of the kernels: Sleef for whole vectors, the C library for the remaining elements.

Sleef's ``expf_u10`` (in 1.2 and newer) is off by one ulp for one in ten numbers; the C library is correctly rounded except for very few
numbers. An elementwise kernel processes two vectors at a time if elements are adjacent, in memory order, and the rest one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array
from torch_compat.runtime.operators._moments import fused

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "error_function",
    "exponential",
    "exponentials",
    "gelu_in_vectors",
    "gelu_of_onednn",
    "in_vectors",
    "rounded_exponential",
]

TAKEN = 16  # float32 elements in the two vectors that the recorded releases process at a time
LEAST, GREATEST = -104, 100
"""The exponential is zero for smaller numbers and infinite for greater numbers."""
INVERSE = np.float32(1.442695040888963407359924681001892137426645954152985934135449406931)
HIGH, LOW = -np.float32(0.693145751953125), -np.float32(1.428606765330187045e-06)  # minus the logarithm of 2, in two parts
TERMS = tuple(
    map(
        np.float32,
        (
            0.000198527617612853646278381, 0.00139304355252534151077271, 0.00833336077630519866943359, 0.0416664853692054748535156,
            0.166666671633720397949219, 0.5,
        ),
    )
)  # fmt: skip


HALF, ROOT = np.float32(0.5), np.float32(0.707106769)
ERROR_STEP = np.float32(0.3275911)
ERROR_TERMS = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))
"""Coefficients of the error function by Abramowitz and Stegun (7.1.26)."""
ONEDNN_TERMS = tuple(map(np.float32, (0.00828929059, 0.0418978221, 0.166676521, 0.499991506, 0.999999701, 1)))
"""Coefficients of oneDNN's exponential after reduction by multiples of the logarithm of 2."""
LOG2E, LN2 = np.float32(1.44269502), np.float32(0.693147182)
ONEDNN_LEAST = np.float32(-87.3365479)


def exponential(x: Array) -> Array:
    """Sleef's float32 exponential, used for whole vectors."""
    known = np.where((x >= LEAST) & (x <= GREATEST), x, np.zeros((), FLOAT32))  # other numbers are handled at the end
    power = np.rint(known * INVERSE)
    rest = fused(power, LOW, fused(power, HIGH, known))
    series: Any = TERMS[0]
    for term in TERMS[1:]:
        series = fused(series, rest, term)
    found = np.ldexp(np.float32(1) + fused(rest * rest, series, rest), power.astype(np.int32))
    found = np.where(x < LEAST, np.float32(0), np.where(x > GREATEST, np.float32(np.inf), found))
    return np.where(np.isnan(x), x, found).astype(FLOAT32)


def rounded_exponential(x: Array) -> Array:
    """The correctly rounded float32 exponential."""
    return np.exp(x.astype(FLOAT64)).astype(FLOAT32)


def exponentials(x: Array, of: Array) -> Array:
    """The float32 exponentials of an elementwise kernel.

    Parameters:
        of: the operand of the kernel; its memory layout determines which elements are in whole vectors.
    """
    taken = in_vectors(of)
    if taken is None:
        return rounded_exponential(x)
    return np.where(taken, exponential(x), rounded_exponential(x))


def error_function(x: Array, power: Array) -> Array:
    """The float32 error function by a polynomial.

    Parameters:
        power: the exponential of ``-x * x``.
    """
    step = np.float32(1) / fused(ERROR_STEP, np.abs(x), 1)
    series: Any = ERROR_TERMS[0]
    for term in ERROR_TERMS[1:]:
        series = fused(series, step, term)
    return np.copysign(fused(-power * step, series, 1), x)


def gelu_in_vectors(x: Array) -> Array:
    """GELU of PyTorch's own kernel for whole float32 vectors, as of 2.0."""
    scaled = x * ROOT
    return np.asarray((x * HALF) * (np.float32(1) + error_function(scaled, exponential(-(scaled * scaled)))))


def gelu_of_onednn(x: Array) -> Array:
    """GELU of oneDNN for float32."""
    scaled = x * ROOT
    square = np.maximum(-(scaled * scaled), ONEDNN_LEAST)
    known = np.where(np.isnan(square), np.zeros((), FLOAT32), square)
    power = np.floor(known * LOG2E + HALF)
    rest = fused(-power, LN2, known)
    series: Any = ONEDNN_TERMS[0]
    for term in ONEDNN_TERMS[1:]:
        series = fused(series, rest, term)
    found = np.ldexp(series, power.astype(np.int32))
    half = x * HALF
    return fused(error_function(scaled, np.where(np.isnan(square), square, found)), half, half)


def in_vectors(array: Array) -> Array | None:
    """The elements that a kernel processes in whole vectors; None if there are none."""
    inner = list(_side_by_side(array))
    count = 1
    for at in inner:
        count *= array.shape[at]
    whole = count // TAKEN * TAKEN
    if not whole:
        return None
    place = np.arange(count).reshape([array.shape[at] for at in reversed(inner)])
    shape = [1] * array.ndim
    for at in inner:
        shape[at] = array.shape[at]
    order = sorted(inner)
    turned = place.transpose([list(reversed(inner)).index(at) for at in order])
    return np.broadcast_to(turned.reshape(shape) < whole, array.shape)


def _side_by_side(array: Array) -> Iterator[int]:
    """The dimensions whose elements are adjacent in memory, fastest first."""
    step = array.itemsize
    for at in sorted(range(array.ndim), key=lambda at: (abs(array.strides[at]), -at)):
        if array.shape[at] == 1:
            continue
        if array.strides[at] != step:
            return
        yield at
        step *= array.shape[at]
