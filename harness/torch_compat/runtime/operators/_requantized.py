"""Arithmetic of fbgemm: sums of products of integers, and their conversion to other integers or to numbers.

Products of unsigned activations and signed weights are added in 32 bits, exactly as processors with 8-bit dot products (VNNI) do; others
saturate sums of two products at 16 bits. The sums are converted in float32, and rounded to nearest with ties to even.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import DTYPES
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.limits import meter
from torch_compat.runtime.opaque import ELEMENTS, STRIDED
from torch_compat.runtime.operators._common import Array, fail
from torch_compat.runtime.operators._products import multiplied
from torch_compat.runtime.packed import is_quantized
from torch_compat.runtime.tensor import OpaqueTensor

__all__ = ["Dynamic", "activations", "chosen", "per_tensor", "products", "quantized_dynamically", "represented", "requantized"]

LARGEST = np.float32(2147483520.0)  # the largest float32 that a 32-bit integer can hold
SMALLEST_SCALE = 6.1e-5
"""Scales are not smaller, so that products of two scales do not vanish."""
BOUNDED = Release("1.10.0")
"""The first release that bounds scales so."""
VECTOR = 8
WIDE = Release("1.5.0")
"""The first release that subtracts the ends of the range in double precision, and that multiplies the rest of a row after whole vectors
by the reciprocal of the scale."""
APART = Release("2.14.0")
"""The first release that rounds the scaled number, not the sum of it and the zero point."""


class Dynamic(NamedTuple):
    """A scale and zero point, chosen from the range of the numbers."""

    scale: float
    zero: int


def chosen(least: float, most: float, lowest: int, highest: int) -> Dynamic:
    """The scale and zero point of numbers within a range, in double precision.

    Parameters:
        least, most: the range of the numbers, which are float32.
        lowest, highest: the range of the integers.
    """
    least, most = min(least, 0.0), max(most, 0.0)
    width = most - least if libraries.release >= WIDE else float(np.float32(most - least))
    scale = width / (highest - lowest)
    single = np.float32(scale)
    with np.errstate(all="ignore"):
        if single == 0 or np.isinf(np.float32(1) / single):
            scale = 0.1
    if scale < SMALLEST_SCALE and libraries.release >= BOUNDED:
        original, scale = np.float32(scale), float(np.float32(SMALLEST_SCALE))
        if least == 0:
            most = float(np.float32(scale * (highest - lowest)))
        elif most == 0:
            least = -float(np.float32(scale * (highest - lowest)))
        else:
            amplifier = np.float32(scale) / original
            least, most = float(np.float32(least) * amplifier), float(np.float32(most) * amplifier)
    from_least, from_most = lowest - least / scale, highest - most / scale
    of_least, of_most = abs(lowest) - abs(least / scale), abs(highest) - abs(most / scale)
    zero = from_least if of_least < of_most else from_most
    return Dynamic(scale, int(np.rint(min(max(zero, lowest), highest))))


def quantized_dynamically(array: Array, *, reduce_range: bool) -> tuple[Array, Dynamic]:
    """Quantize activations by their own range to unsigned integers of 8 bits, or of 7 bits if the range is reduced."""
    if not np.isfinite(array).all():
        raise fail("In ChooseQuantizationParams, min should be less than or equal to max")
    least, most = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    result = chosen(least, most, 0, 127 if reduce_range else 255)
    with np.errstate(all="ignore"):
        single = np.float32(result.scale)
        inverse = np.float32(1) / single
        if libraries.release >= APART:
            rounded = np.rint(np.minimum(array * inverse, LARGEST)).astype(np.float64) + result.zero
        else:  # with fused multiply-add
            rounded = np.rint((array.astype(np.float64) * inverse + result.zero).astype(np.float32))
            if libraries.release < WIDE:
                whole = array.shape[-1] // VECTOR * VECTOR
                rounded[..., whole:] = np.rint(np.float32(result.zero) + array[..., whole:] / single)
        return np.clip(rounded, 0, 255).astype(np.uint8), result


def activations(value: Any, name: str, *dtypes: str) -> tuple[Array, np.float32, int]:
    """The integers, the scale and the zero point of a quantized activation.

    Raises:
        Raised: it is not a tensor quantized with one scale to one of the dtypes.
    """
    if not is_quantized(value, *(dtypes or ("quint8",))) or "zero_point" not in value.parts:
        raise fail(f"{name}: expected a tensor quantized with one scale and zero point to {' or '.join(dtypes or ('quint8',))}")
    parts = value.parts
    return parts["elements"], np.float32(parts["scale"]), int(parts["zero_point"])


def products(x: Array, w: Array, zero: int, zeros: Array) -> Array:
    """The sums of products of [..., rows, inputs] and [..., outputs, inputs], without the parts of the zero points.

    Parameters:
        zero: the zero point of ``x``.
        zeros: the zero points of ``w``, one or one for each output.
    """
    meter.array(x.size)
    meter.array(w.size)
    left, right = x.astype(np.float64), w.astype(np.float64)
    sums = multiplied(left, right.swapaxes(-1, -2)).astype(np.int64)
    offsets = w.sum(-1, dtype=np.int64) - x.shape[-1] * zeros
    sums = sums - zero * offsets[..., None, :]
    if zeros.any():
        sums = sums - x.sum(-1, dtype=np.int64)[..., :, None] * zeros
    return sums.astype(np.int32)


def _with_bias(sums: Array, bias: Array | None, factors: Array) -> Array:
    """The sums in float32; the bias is divided by the factors of channels, or multiplied by the reciprocal of a single factor."""
    numbers = sums.astype(np.float32)
    if bias is None:
        return numbers
    return numbers + (bias / factors if factors.ndim else bias * (np.float32(1) / factors))


def requantized(
    sums: Array, bias: Array | None, factors: Array, scale: float, zero: int, *, relu: bool = False, dtype: str = "quint8"
) -> Array:
    """Convert sums of products to quantized integers.

    Parameters:
        bias: a number for each output, which is the last dimension.
        factors: the product of the scales of activations and weights: without dimensions, or one for each output.
        scale, zero: the scale and zero point of the result.
        relu: whether numbers below zero become zero.
    """
    with np.errstate(all="ignore"):
        numbers = _with_bias(sums, bias, factors) * (factors / np.float32(scale))
        whole = np.rint(numbers).astype(np.float64)
    whole = np.where(np.abs(whole) < 2.0**31, whole, -(2.0**31))  # also NaN: the integer indefinite
    wide = np.clip(np.clip(whole, -32768, 32767) + zero, -32768, 32767)
    return np.clip(wide, zero if relu else 0, 255).astype(ELEMENTS[dtype])


def represented(sums: Array, bias: Array | None, factors: Array, *, relu: bool = False) -> Array:
    """Convert sums of products to the numbers that they represent, in float32."""
    with np.errstate(all="ignore"):
        numbers = sums.astype(np.float32)
        fused = 0 if bias is None else bias
        numbers = (numbers.astype(np.float64) * factors + fused).astype(np.float32)
    return np.maximum(numbers, np.float32(0)) if relu else numbers


def per_tensor(elements: Array, dtype: str, scale: float, zero: int) -> OpaqueTensor:
    """A tensor quantized with one scale and zero point."""
    return OpaqueTensor(
        STRIDED,
        DTYPES[dtype],
        elements.shape,
        {"elements": elements, "scheme": "per_tensor_affine", "scale": scale, "zero_point": zero},
    )
