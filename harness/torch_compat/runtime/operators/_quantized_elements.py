"""Elementwise arithmetic on quantized integers, as PyTorch's own kernels do it with AVX2.

Whole blocks of two vectors are converted with fused multiply-add and by the reciprocal of the scale; the elements that remain, and all
elements of tensors that are not contiguous, are converted one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.opaque import ELEMENTS
from torch_compat.runtime.operators._common import Array, fail
from torch_compat.runtime.packed import is_quantized
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor, dense

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ANY",
    "APART",
    "ONE_BY_ONE",
    "affine",
    "block",
    "by_elements",
    "channels_last",
    "integers",
    "like",
    "numbers",
    "quantized_as",
    "requantized_whole",
    "single",
]

ANY = ("quint8", "qint8", "qint32")
VECTOR = 32  # bytes
APART = Release("1.6.0")
"""The first release that rounds the scaled number, not the sum of it and the zero point."""
ONE_BY_ONE = (Release("2.13.0"), Release("2.14.0"))
"""From the first of these releases until the second, the sum is rounded again for elements that are converted one by one."""


def affine(value: Any, name: str, *dtypes: str) -> tuple[Array, float, int]:
    """The integers, the scale and the zero point of a tensor quantized with one scale.

    Raises:
        Raised: it is not such a tensor.
    """
    if not is_quantized(value, *(dtypes or ANY)) or "zero_point" not in value.parts:
        raise fail(f"{name}: expected a tensor quantized with one scale and zero point")
    parts = value.parts
    return parts["elements"], float(parts["scale"]), int(parts["zero_point"])


def numbers(elements: Array, scale: float, zero: int, *, fused: bool) -> Array:
    """The numbers in float32 that integers represent."""
    single_scale = np.float32(scale)
    if not fused:
        return (elements.astype(np.int64) - zero).astype(np.float32) * single_scale
    offset = single_scale * -np.float32(zero)
    return (elements.astype(np.float32).astype(np.float64) * single_scale + offset).astype(np.float32)


def integers(values: Array, scale: float, zero: int, dtype: str, *, fused: bool) -> Array:
    """Quantize numbers in float32."""
    kind = ELEMENTS[dtype]
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    inverse = np.float32(1) / np.float32(scale)
    singly = not fused or kind.itemsize > 1
    if libraries.release < APART and singly:
        whole = np.rint(np.float32(zero) + values / np.float32(scale)).astype(np.float64)
    elif libraries.release < APART:
        whole = np.rint((values.astype(np.float64) * inverse + zero).astype(np.float32)).astype(np.float64)
    elif singly and ONE_BY_ONE[0] <= libraries.release < ONE_BY_ONE[1]:
        whole = np.rint(np.float32(zero) + values * inverse).astype(np.float64)
    else:
        whole = np.rint(values * inverse).astype(np.float64) + zero
    whole = np.where(np.isnan(whole), least, whole)
    return np.clip(whole, least, most).astype(kind)


def requantized_whole(whole: Array, multiplier: np.float32, zero: int, dtype: str) -> Array:
    """Scale 32-bit integers, round them and add the zero point."""
    kind = ELEMENTS[dtype]
    scaled = np.rint(whole.astype(np.float32) * multiplier).astype(np.float64) + zero
    return np.clip(scaled, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def single(value: float, scale: float, zero: int, dtype: str) -> int:
    """Quantize one number."""
    number: int = integers(np.array(value, np.float32), scale, zero, dtype, fused=False).item()
    return number


def block(elements: Array) -> int:
    """How many elements of a kernel's round are computed together."""
    return 2 * VECTOR // int(elements.itemsize)


def by_elements(function: Callable[..., Array], *operands: Array) -> Array:
    """Apply a function of integers element by element, in memory order.

    Parameters:
        function: called with arrays of the operands' elements and ``fused``; gives the resulting elements.
        operands: arrays of one shape, or broadcast to one.
    """
    first = operands[0]
    flat = all(item.shape == first.shape and item.strides == first.strides and dense(item) for item in operands)
    with np.errstate(all="ignore"):
        if not flat:
            return function(*np.broadcast_arrays(*operands), fused=False)
        order = sorted(range(first.ndim), key=lambda at: (-first.strides[at], first.shape[at] == 1, at))
        lines = [item.transpose(order).reshape(-1) for item in operands]
        whole = first.size // block(first) * block(first)
        parts = [
            function(*(item[:whole] for item in lines), fused=True),
            function(*(item[whole:] for item in lines), fused=False),
        ]
        result = np.concatenate(parts).reshape([first.shape[at] for at in order])
        return result.transpose(np.argsort(order)) if order else result.reshape(first.shape)


def quantized_as(value: OpaqueTensor, numbers_: Array, scale: float, zero: int) -> OpaqueTensor:
    """Numbers quantized like ``aten::quantize_per_tensor`` of the release, to the dtype of a tensor."""
    quantize = resolve("aten::quantize_per_tensor", libraries.release)
    return quantize(Tensor(numbers_), float(scale), zero, value.dtype.code)  # type: ignore[no-any-return]


def like(value: OpaqueTensor, elements: Array, scale: float, zero: int) -> OpaqueTensor:
    """A tensor of the same dtype with other integers, scale and zero point."""
    parts = {"elements": elements, "scheme": "per_tensor_affine", "scale": scale, "zero_point": zero}
    return OpaqueTensor(value.layout, value.dtype, elements.shape, parts)


def channels_last(elements: Array) -> Array:
    """The same integers with the channels last in memory, also where a dimension has one element."""
    target = np.empty((elements.shape[0], *elements.shape[2:], elements.shape[1]), elements.dtype)
    result = np.moveaxis(target, -1, 1)
    result[...] = elements
    return result
