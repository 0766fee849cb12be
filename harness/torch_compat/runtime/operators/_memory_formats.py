"""The memory formats that operators take: their numbers, the number of dimensions that each needs, and arrays that lie in memory so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.runtime.operators._common import Array, fail, resized
from torch_compat.runtime.tensor import dense, strided

if TYPE_CHECKING:
    from torch_compat.runtime.tensor import Tensor

CONTIGUOUS, PRESERVE, CHANNELS_LAST, CHANNELS_LAST_3D = range(4)
ORDERS: Final = {CHANNELS_LAST: (0, 2, 3, 1), CHANNELS_LAST_3D: (0, 2, 3, 4, 1)}
"""The dimensions in the order of memory, the one with the largest stride first."""


def check_rank(ndim: int, memory_format: int | None) -> None:
    """Refuse a memory format of images or volumes for a tensor with another number of dimensions.

    Raises:
        Raised: so it is.
    """
    order = ORDERS.get(memory_format or 0)
    if order is not None and len(order) != ndim:
        name = "channels_last" if memory_format == CHANNELS_LAST else "channels_last_3d"
        raise fail(f"required rank {len(order)} tensor to use {name} format")


def is_formatted(array: Array, memory_format: int) -> bool:
    """Whether elements lie in memory so; never in a format that needs a different number of dimensions."""
    order = ORDERS.get(memory_format)
    if order is None:
        return bool(array.flags.c_contiguous)
    return len(order) == array.ndim and bool(array.transpose(order).flags.c_contiguous)


def formatted(array: Array, memory_format: int | None) -> Array:
    """A copy in a memory format; ``preserve_format`` keeps the order of strides.

    Raises:
        Raised: the format needs a different number of dimensions.
    """
    check_rank(array.ndim, memory_format)
    if memory_format in ORDERS:
        order = ORDERS[memory_format]
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    if memory_format in {None, PRESERVE} and 0 not in array.strides:
        return array.copy(order="K")
    return array.copy(order="C")


def format_of(array: Array) -> int:
    """The memory format of images or volumes that lie in memory so, and not row by row; else that without another order."""
    return next((one for one in ORDERS if is_formatted(array, one) and not array.flags.c_contiguous), CONTIGUOUS)


def laid_as(array: Array, kind: np.dtype[Any], memory_format: int | None) -> Array:
    """An array that nobody wrote, of the shape of another one and in the format.

    Where the format is preserved, it has the strides of the other one if that has no holes, and its order if no place stands for several
    elements.

    Raises:
        Raised: the format needs a different number of dimensions.
    """
    check_rank(array.ndim, memory_format)
    if memory_format in ORDERS:
        return formatted(np.empty(array.shape, kind), memory_format)
    keeps = array.size and memory_format in {None, PRESERVE}
    if keeps and dense(array):
        return strided(np.empty(array.size, kind), array.shape, tuple(step // array.itemsize for step in array.strides), 0)
    keeps = keeps and all(step or size == 1 for step, size in zip(array.strides, array.shape, strict=True))
    return np.empty_like(array, kind, order="K" if keeps else "C", subok=False)


def resized_as(tensor: Tensor, shape: tuple[int, ...], memory_format: int | None) -> Tensor:
    """As ``resize_``: another shape of the same memory, whose elements are then read in the order of the format, if one is given.

    Raises:
        Raised: the format needs a different number of dimensions, or is none of a resized tensor.
    """
    if memory_format == PRESERVE:
        raise fail("Unsupported memory formatPreserve")
    check_rank(len(shape), memory_format)
    offset = tensor.storage_offset
    resized(tensor, shape)
    if memory_format is not None:
        order = ORDERS.get(memory_format, tuple(range(len(shape))))
        steps: dict[int, Any] = {}
        step = 1
        for at in reversed(order):
            steps[at] = step
            step *= max(shape[at], 1)
        tensor.array = strided(tensor.array, shape, tuple(steps[at] for at in range(len(shape))), offset)
    return tensor
