"""The summation order of float32 convolutions in each release, measured on an Intel processor with ``DNNL_MAX_CPU_ISA=AVX2``.

Up to 1.6 oneDNN computes all convolutions without dilation. As of 1.7 it computes those with several images, groups, large kernels or
large images; PyTorch uses a matrix product for the rest: the weight times the windows as columns, plus the bias
(:mod:`torch_compat.runtime.operators._matrix_kernels`). oneDNN uses fused multiply-add and starts with the bias, which up to 1.5 most
kernels add last. It adds eight channels of a kernel position (sixteen up to 1.5), then those of the next position, and then the next
channels. Its 1x1 kernels add one channel after the other up to 1.7, and later with a stride; without a stride, and if there is padding
or if the groups do not have whole blocks of outputs, it uses matrix products, too.

Other orders are not known; these convolutions are summed in double precision.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array
from torch_compat.runtime.operators._matrix_kernels import UP_TO_1_6, UP_TO_1_13, added_columns, matrix_product

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LIBRARY", "LIBRARY_1_6", "MATRICES", "MATRICES_1_8", "ordered"]

LIBRARY, LIBRARY_1_6, MATRICES, MATRICES_1_8 = range(4)
"""Periods: up to 1.5, 1.6, 1.7, and 1.8 and newer."""
PICTURES = 20480  # elements of the input as of which oneDNN computes the rest as well
LARGE = 3  # oneDNN also computes kernels larger than this on both sides
CHANNELS, CHANNELS_1_5 = 8, 16  # channels per block of oneDNN
IMAGES = 16  # as of this number of images oneDNN also computes 1x1 kernels without stride and dilation
SINGLE_CHANNELS = 32  # up to this many channels, oneDNN adds 1x1 kernels without blocks
MOST_STEPS, MOST_PRODUCTS = 512, 1 << 22


def ordered(
    seen: Array, w: Array, b: Array | None, size: int, groups: int, era: int, *, padded: bool, strided: bool, dilated: bool
) -> Array | None:
    """Compute a convolution in the order of a release; returns None if the order is not known.

    Parameters:
        seen: the windows of the padded input, [batch, channels, positions, kernel]; the last two have as many dimensions as the kernel.
        size: the number of elements of the input.
        padded, strided, dilated: whether there is a padding, a stride, a dilation.
    """
    n = w.ndim - 2
    batch, out = seen.shape[0], seen.shape[2 : 2 + n]
    outputs, each, *kernel = w.shape
    steps = each * math.prod(kernel)
    if not 0 < steps <= MOST_STEPS or batch * outputs * math.prod(out) * steps > MOST_PRODUCTS or not seen.size:
        return None
    single, depthwise = math.prod(kernel) == 1, groups > 1 and each == 1 and outputs == groups
    plain = not padded and not strided
    by_library = groups > 1 or batch > 1 or (len(kernel) > 1 and min(kernel) > LARGE) or size > PICTURES
    matrices = groups > 1 and (outputs // groups % CHANNELS != 0 or single)
    if era <= LIBRARY_1_6:
        by_library = not dilated
    elif single and groups == 1 and era == MATRICES_1_8:
        by_library = by_library and (strided or dilated or batch >= IMAGES)
        matrices = padded
    elif single and not plain:
        matrices = True
    if not by_library or (matrices and not depthwise):
        return _by_matrices(seen, w, b, groups, library=by_library and (groups > 1 or not plain))
    if single and not depthwise and each > SINGLE_CHANNELS:
        return None
    fused = plain or not (depthwise and single and era < MATRICES_1_8)
    biased = era > LIBRARY or depthwise or single
    if not biased and each > CHANNELS_1_5:
        return None
    value = _by_library(seen, w, b if biased else None, groups, fused=fused, block=CHANNELS if biased else CHANNELS_1_5)
    return value if biased or b is None else value + b.reshape(1, outputs, *(1,) * n)


def _by_matrices(seen: Array, w: Array, b: Array | None, groups: int, *, library: bool) -> Array | None:
    """The weight times the windows, plus the bias, group by group; with a single output, the sum starts with the bias.

    Parameters:
        library: whether the kernel of oneDNN computes the product, which is that of MKL up to 1.6 and adds the bias last.
    """
    n = w.ndim - 2
    batch, out = seen.shape[0], seen.shape[2 : 2 + n]
    outputs, each, *kernel = w.shape
    steps, per = each * math.prod(kernel), outputs // groups
    columns = seen.reshape(batch, groups, each, *out, *kernel)
    columns = columns.transpose(0, 1, 2, *range(3 + n, 3 + 2 * n), *range(3, 3 + n)).reshape(batch, groups, steps, -1)
    columns, weights = columns.astype(FLOAT32), w.reshape(groups, per, steps)
    if per == 1 and b is not None and not library:
        start = np.broadcast_to(b.reshape(groups, 1, 1), (batch, groups, 1, columns.shape[-1])).astype(FLOAT32)
        return added_columns(weights, columns, libraries.period, start).astype(FLOAT32).reshape(batch, outputs, *out)
    result = matrix_product(weights, columns, UP_TO_1_6 if library and libraries.period == UP_TO_1_13 else libraries.period)
    if result is None:
        return None
    if b is not None:
        result = result + b.reshape(groups, per, 1)
    return result.astype(FLOAT32).reshape(batch, outputs, *out)


def _by_library(seen: Array, w: Array, b: Array | None, groups: int, *, fused: bool, block: int) -> Array:
    n = w.ndim - 2
    batch, out = seen.shape[0], seen.shape[2 : 2 + n]
    outputs, each, *kernel = w.shape
    per = outputs // groups
    parts = seen.reshape(batch, groups, 1, each, *seen.shape[2:]).astype(FLOAT64)
    weights = w.reshape(1, groups, per, each, *(1,) * n, *kernel).astype(FLOAT64)
    total = np.zeros((batch, groups, per, *out), FLOAT32)
    if b is not None:
        total = total + b.reshape(1, groups, per, *(1,) * n)
    for channel, place in _steps(each, kernel, block):
        index = (slice(None), slice(None), slice(None), channel, *(slice(None),) * n, *place)
        product = parts[index] * weights[index]
        total = (product + total).astype(FLOAT32) if fused else product.astype(FLOAT32) + total
    return np.asarray(total.reshape(batch, outputs, *out))


def _steps(each: int, kernel: list[int], block: int) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Channels and kernel positions in the order of oneDNN."""
    for first in range(0, each, block):
        for place, channel in itertools.product(np.ndindex(*kernel), range(first, min(each, first + block))):
            yield channel, place
