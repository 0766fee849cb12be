"""Bit-exact float32 exponentials of the kernels: Sleef for whole vectors, the C library for the remaining elements.

Sleef's ``expf_u10`` (in 1.2 and newer) is off by one ulp for one in ten numbers; the C library is correctly rounded except for very few
numbers. An elementwise kernel processes two vectors at a time if elements are adjacent, in memory order, and the rest one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.iterated import order
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array
from torch_compat.runtime.operators._moments import fused

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BYTES_TAKEN",
    "DOUBLES",
    "double_exponential",
    "double_tanh",
    "error_function",
    "exponential",
    "exponentials",
    "extended",
    "gelu_in_vectors",
    "gelu_of_onednn",
    "in_vectors",
    "in_whole_vectors",
    "rounded_exponential",
]

BYTES_TAKEN = 64  # bytes in the two vectors that the recorded releases process at a time
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
    result = np.ldexp(np.float32(1) + fused(rest * rest, series, rest), power.astype(np.int32))
    result = np.where(x < LEAST, np.float32(0), np.where(x > GREATEST, np.float32(np.inf), result))
    return np.where(np.isnan(x), x, result).astype(FLOAT32)


def extended(function: Any) -> Any:
    """A function of float64 in extended precision, rounded once: Sleef's differ from this in one of a hundred numbers, NumPy's in more."""

    def compute(x: Array) -> Array:
        return np.asarray(function(x.astype(np.longdouble))).astype(FLOAT64)

    return compute


double_exponential: Callable[[Array], Array] = extended(np.exp)
double_tanh: Callable[[Array], Array] = extended(np.tanh)
DOUBLES: dict[Any, Callable[[Array], Array]] = {
    np.exp: double_exponential, np.tanh: double_tanh, np.sinh: extended(np.sinh), np.cosh: extended(np.cosh),
}  # fmt: skip
"""Functions of float64 that are computed in extended precision."""


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
    result = np.ldexp(series, power.astype(np.int32))
    half = x * HALF
    return fused(error_function(scaled, np.where(np.isnan(square), square, result)), half, half)


def in_vectors(array: Array) -> Array | None:
    """The elements that a kernel with a single operand processes in whole vectors; None if there are none."""
    taken = in_whole_vectors(array)
    return np.broadcast_to(taken, array.shape) if taken.any() else None


def in_whole_vectors(*operands: Array) -> Array:
    """The elements that an elementwise kernel processes in whole vectors; the mask broadcasts to the result.

    The inner loop of a kernel covers the dimensions that are adjacent in memory in all operands. It uses vectors, two at a time, if every
    operand is contiguous along this loop, or if a single operand is broadcast and the others are contiguous (``cpu_kernel_vec`` in
    ``aten/src/ATen/native/cpu/Loops.h``).

    Parameters:
        operands: arrays with the same dtype that broadcast.
    """
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    strides = [np.broadcast_to(operand, shape).strides for operand in operands]
    size = operands[0].itemsize
    dims = [at for at in order(shape, strides, first=True) if shape[at] != 1]
    if not dims or sorted(stride[dims[0]] for stride in strides)[1:] != [size] * (len(operands) - 1):
        return np.zeros((), np.bool_)
    if min(stride[dims[0]] for stride in strides) not in {0, size}:
        return np.zeros((), np.bool_)
    count, place = 1, np.zeros((), np.int64)
    for at in dims:
        if any(stride[at] != count * stride[dims[0]] for stride in strides):
            break
        place = place + np.arange(shape[at]).reshape([-1 if at == axis else 1 for axis in range(len(shape))]) * count
        count *= shape[at]
    taken = BYTES_TAKEN // size
    return np.asarray(place < count // taken * taken)
