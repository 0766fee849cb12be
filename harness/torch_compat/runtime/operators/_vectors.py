"""Exponentials of float32 as the kernels compute them, to the last bit: of whole vectors by Sleef, of what is left over by the C library.

Sleef's ``expf_u10`` (of every release from 1.2 on) is off by one unit in one of ten numbers; what the C library gives is rounded correctly but for very
few. An elementwise kernel takes two vectors at a time where elements lie side by side, in the order of memory, and the rest one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.iterated import order
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
    "in_whole_vectors",
    "rounded_exponential",
]

BYTES_TAKEN = 64  # the two vectors that the recorded releases process at a time
TAKEN = 16  # elements of float32 in the two vectors that the recorded releases take at a time
LEAST, GREATEST = -104, 100
"""Of what is less the exponential is zero, of what is greater infinite."""
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
"""Of the error function by Abramowitz and Stegun (7.1.26)."""
ONEDNN_TERMS = tuple(map(np.float32, (0.00828929059, 0.0418978221, 0.166676521, 0.499991506, 0.999999701, 1)))
"""Of oneDNN's exponential of what is left of a number beside multiples of the logarithm of 2."""
LOG2E, LN2 = np.float32(1.44269502), np.float32(0.693147182)
ONEDNN_LEAST = np.float32(-87.3365479)


def exponential(x: Array) -> Array:
    """Sleef's of float32, as whole vectors have it."""
    known = np.where((x >= LEAST) & (x <= GREATEST), x, np.zeros((), FLOAT32))  # others are told apart at the end
    power = np.rint(known * INVERSE)
    rest = fused(power, LOW, fused(power, HIGH, known))
    series: Any = TERMS[0]
    for term in TERMS[1:]:
        series = fused(series, rest, term)
    found = np.ldexp(np.float32(1) + fused(rest * rest, series, rest), power.astype(np.int32))
    found = np.where(x < LEAST, np.float32(0), np.where(x > GREATEST, np.float32(np.inf), found))
    return np.where(np.isnan(x), x, found).astype(FLOAT32)


def rounded_exponential(x: Array) -> Array:
    """Of float32, rounded correctly."""
    return np.exp(x.astype(FLOAT64)).astype(FLOAT32)


def exponentials(x: Array, of: Array) -> Array:
    """Those of float32 as an elementwise kernel has them.

    Parameters:
        of: the operand of the kernel, by whose place in memory it is decided what whole vectors hold.
    """
    taken = in_vectors(of)
    if taken is None:
        return rounded_exponential(x)
    return np.where(taken, exponential(x), rounded_exponential(x))


def error_function(x: Array, power: Array) -> Array:
    """Of float32 by a polynomial.

    Parameters:
        power: the exponential of ``-x * x``.
    """
    step = np.float32(1) / fused(ERROR_STEP, np.abs(x), 1)
    series: Any = ERROR_TERMS[0]
    for term in ERROR_TERMS[1:]:
        series = fused(series, step, term)
    return np.copysign(fused(-power * step, series, 1), x)


def gelu_in_vectors(x: Array) -> Array:
    """As PyTorch's own kernel has it of whole vectors of float32, from 2.0 on."""
    scaled = x * ROOT
    return np.asarray((x * HALF) * (np.float32(1) + error_function(scaled, exponential(-(scaled * scaled)))))


def gelu_of_onednn(x: Array) -> Array:
    """As oneDNN has it of float32."""
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
    """Which elements a kernel takes in whole vectors; None where it takes none so."""
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


def in_whole_vectors(*operands: Array) -> Array:
    """Which elements an elementwise kernel with several operands of one dtype processes in whole vectors; broadcasts to the result.

    A kernel loops over the dimensions that are adjacent in all operands. It uses vectors, two at a time, if every operand is contiguous
    along this loop, or all but one, which is broadcast (``cpu_kernel_vec`` in ``aten/src/ATen/native/cpu/Loops.h``).
    """
    shape = np.broadcast_shapes(*(one.shape for one in operands))
    strides = [np.broadcast_to(one, shape).strides for one in operands]
    size = operands[0].itemsize
    dims = [at for at in order(shape, strides, first=True) if shape[at] != 1]
    if not dims or sorted(one[dims[0]] for one in strides)[1:] != [size] * (len(operands) - 1):
        return np.zeros((), np.bool_)
    if min(one[dims[0]] for one in strides) not in {0, size}:
        return np.zeros((), np.bool_)
    count, place = 1, np.zeros((), np.int64)
    for at in dims:
        if any(one[at] != count * one[dims[0]] for one in strides):
            break
        place = place + np.arange(shape[at]).reshape([-1 if at == axis else 1 for axis in range(len(shape))]) * count
        count *= shape[at]
    taken = BYTES_TAKEN // size
    return np.asarray(place < count // taken * taken)


def _side_by_side(array: Array) -> Iterator[int]:
    """The dimensions whose elements lie side by side in memory, the fastest first."""
    step = array.itemsize
    for at in sorted(range(array.ndim), key=lambda at: (abs(array.strides[at]), -at)):
        if array.shape[at] == 1:
            continue
        if array.strides[at] != step:
            return
        yield at
        step *= array.shape[at]
