"""Memory formats of operators: their numbers, their required number of dimensions, and arrays in these formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torch_compat.runtime.operators._common import Array, fail, resized
from torch_compat.runtime.tensor import dense, strided

if TYPE_CHECKING:
    from torch_compat.runtime.tensor import Tensor

CONTIGUOUS, PRESERVE, CHANNELS_LAST, CHANNELS_LAST_3D = range(4)
ORDERS: Final = {CHANNELS_LAST: (0, 2, 3, 1), CHANNELS_LAST_3D: (0, 2, 3, 4, 1)}
"""The dimensions in memory order, largest stride first."""


def check_rank(ndim: int, memory_format: int | None) -> None:
    """Check the number of dimensions for a channels-last memory format.

    Raises:
        Raised: the format needs a different number of dimensions.
    """
    order = ORDERS.get(memory_format or 0)
    if order is not None and len(order) != ndim:
        name = "channels_last" if memory_format == CHANNELS_LAST else "channels_last_3d"
        raise fail(f"required rank {len(order)} tensor to use {name} format")


def is_formatted(array: Array, memory_format: int) -> bool:
    """Whether an array is in a memory format; False if the format needs a different number of dimensions."""
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
    """The channels-last format of an array that is channels-last and not row-major; otherwise the contiguous format."""
    return next((order for order in ORDERS if is_formatted(array, order) and not array.flags.c_contiguous), CONTIGUOUS)


def laid_as(array: Array, kind: np.dtype[Any], memory_format: int | None) -> Array:
    """An uninitialized array with the shape of another array, in a memory format.

    With ``preserve_format`` it has the strides of the other array if that has no holes, and its order of dimensions if no elements share
    memory.

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
    """Same as ``resize_``: a new shape for the same memory, whose elements are then in the order of the format, if given.

    Raises:
        Raised: the format needs a different number of dimensions, or does not apply to ``resize_``.
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
