"""The summation order of small float32 convolutions in each release, measured on a processor with AVX2.

Up to 1.6 oneDNN computes all convolutions. As of 1.7 it computes those with several images, groups, large kernels or large images; PyTorch
uses matrix multiplication for the rest. Both add the products one after the other:

* oneDNN uses fused multiply-add. Depthwise convolutions and 1x1 images start with the bias (1.8 does not fuse them); others add the bias
  last and iterate over channels first, unless there are groups.
* Matrix multiplication iterates over channels last. As of 2.0 it is fused, with the bias last, if rows and columns fill whole blocks of the
  kernel; otherwise the sum starts with the bias. Before 2.0 nothing is fused, and the bias comes last for eight or more rows.

The order for other sizes is not known; these are summed in double precision.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LIBRARY", "MATRICES", "MATRICES_1_8", "MATRICES_1_9", "MATRICES_2_0", "ordered"]

LIBRARY, MATRICES, MATRICES_1_8, MATRICES_1_9, MATRICES_2_0 = range(5)
"""Periods: up to 1.6, 1.7, 1.8, 1.9 to 1.13, and 2.0 and later."""
PICTURES = 20480  # elements of the input as of which oneDNN computes the rest as well
LARGE = 3  # oneDNN also computes kernels larger than this on both sides
CHANNELS = 16  # channels per block of oneDNN
SINGLE_CHANNELS = 32  # up to this many channels, oneDNN adds 1x1 kernels without blocks
ROWS, COLUMNS = 4, 16  # rows and columns of a block of the matrix product as of 2.0
MANY_ROWS = 8
FEW_STEPS = 9  # the order of matrix-vector products is known up to this number of summands
BLOCK_STEPS = 72  # the order of matrix products before 2.0 is known up to this number of summands
MOST_STEPS, MOST_PRODUCTS = 512, 1 << 22


class Order(NamedTuple):
    """A summation order.

    Attributes:
        biased: whether the sum starts with the bias.
        fused: whether products are not rounded before they are added.
        channels_first: whether all channels of a kernel position are added before the next position.
    """

    biased: bool
    fused: bool
    channels_first: bool


def _order(size: int, weight: tuple[int, ...], batch: int, places: int, groups: int, era: int) -> Order | None:
    outputs, each, *kernel = weight
    by_library = era == LIBRARY or groups > 1 or batch > 1 or (len(kernel) > 1 and min(kernel) > LARGE) or size > PICTURES
    single = math.prod(kernel) == 1
    if by_library:
        depthwise = groups > 1 and each == 1 and outputs == groups
        if depthwise or (single and groups == 1):
            if era == MATRICES_1_8:
                return Order(biased=True, fused=False, channels_first=False) if depthwise else None
            return Order(biased=True, fused=True, channels_first=False) if each <= SINGLE_CHANNELS else None
        return Order(biased=False, fused=True, channels_first=groups == 1) if each <= CHANNELS else None
    steps = each * math.prod(kernel)
    if places == 1:  # matrix-vector product
        return Order(biased=False, fused=False, channels_first=False) if steps <= FEW_STEPS else None
    first = Order(biased=True, fused=False, channels_first=False)
    if places == ROWS or (steps <= ROWS and outputs <= ROWS and places < COLUMNS):
        return first
    if era == MATRICES_2_0:
        if places < COLUMNS or outputs < ROWS:
            return first if places >= COLUMNS else None
        return Order(biased=False, fused=True, channels_first=False) if outputs % ROWS == 0 else None
    if outputs <= ROWS and places % COLUMNS == 0:
        return first
    if outputs >= MANY_ROWS and outputs % MANY_ROWS == 0 and places % COLUMNS == 0 and steps <= BLOCK_STEPS:
        return Order(biased=False, fused=False, channels_first=False)
    return None


def ordered(seen: Array, w: Array, b: Array | None, size: int, groups: int, era: int) -> Array | None:
    """Compute a convolution in the order of a release; returns None if the order is not known.

    Parameters:
        seen: the windows of the padded input, [batch, channels, positions, kernel]; the last two have as many dimensions as the kernel.
        size: the number of elements of the input.
    """
    n = w.ndim - 2
    batch, out = seen.shape[0], seen.shape[2 : 2 + n]
    outputs, each, *kernel = w.shape
    steps = each * math.prod(kernel)
    if not 0 < steps <= MOST_STEPS or batch * outputs * math.prod(out) * steps > MOST_PRODUCTS or not seen.size:
        return None
    order = _order(size, w.shape, batch, math.prod(out), groups, era)
    if order is None:
        return None
    per = outputs // groups
    parts = seen.reshape(batch, groups, 1, each, *seen.shape[2:]).astype(FLOAT64)
    weights = w.reshape(1, groups, per, each, *(1,) * n, *kernel).astype(FLOAT64)
    total = np.zeros((batch, groups, per, *out), FLOAT32)
    bias = None if b is None else b.reshape(1, groups, per, *(1,) * n)
    if bias is not None and order.biased:
        total = total + bias
    for channel, place in _steps(each, kernel, channels_first=order.channels_first):
        index = (slice(None), slice(None), slice(None), channel, *(slice(None),) * n, *place)
        product = parts[index] * weights[index]
        total = (product + total).astype(FLOAT32) if order.fused else product.astype(FLOAT32) + total
    if bias is not None and not order.biased:
        total = total + bias
    return np.asarray(total.reshape(batch, outputs, *out))


def _steps(each: int, kernel: list[int], *, channels_first: bool) -> Iterable[tuple[int, tuple[int, ...]]]:
    places = list(np.ndindex(*kernel))
    if channels_first:
        return ((channel, place) for place in places for channel in range(each))
    return itertools.product(range(each), places)
