"""The summation order of float32 transposed convolutions in each release, measured on an Intel processor with ``DNNL_MAX_CPU_ISA=AVX2``.

Up to 1.13 PyTorch multiplies the transposed weight by the input (:mod:`torch_compat.runtime.operators._matrix_kernels`), and adds the
kernel positions of the product one after the other, and then the bias. As of 2.0 oneDNN computes those with several images, groups,
large kernels or large images, except kernels of one element without stride and dilation. oneDNN, too, uses the matrix product if the
padding exceeds the dilated kernel, or for both stride and dilation. Its other kernels start with zero, use fused multiply-add, add
blocks of channels of a kernel position, then those of the next position and then the next channels, and add the bias last:

* without stride, blocks of eight channels, also for groups if their channels are whole blocks, and as of 2.1 for one channel per group;
* with stride, as of 2.4, blocks of 64 channels. If each output gets several columns of an even kernel, each column is summed apart.

Other orders are not known; these convolutions are summed in double precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array
from torch_compat.runtime.operators._matrix_kernels import UP_TO_1_13, matrix_product

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["transposed_in_order"]

PICTURES = 20480  # elements of the input as of which oneDNN computes all
LARGE = 3  # oneDNN also computes kernels larger than this in the last two dimensions
CHANNELS, MOST_CHANNELS = 8, 32  # channels per block without stride, and up to how many channels the blocks are known
CHANNELS_STRIDED, CHANNELS_OF_GROUPS = (
    64,
    8,
)  # the same with stride; groups with up to this number of channels use matrix products
IMAGES = 16  # as of this number of images oneDNN computes even kernels of one element
DEPTHWISE, STRIDED = Release("2.1.0"), Release("2.4.0")  # the first releases whose oneDNN has kernels for these
TWO = 2
MOST_STEPS, MOST_PRODUCTS = 1024, 1 << 22


def transposed_in_order(
    x: Array, w: Array, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], full: tuple[int, ...],
    groups: int,
) -> Array | None:  # fmt: skip
    """Compute a transposed convolution without its bias in the order of a release, before padding is cut off; None if it is not known.

    Parameters:
        x: [batch, channels, *spatial]
        w: [channels, outputs / groups, *kernel]
        full: the spatial sizes of the result, padding included.

    Returns:
        [batch, groups, outputs / groups, *full]
    """
    kernel, each, per = w.shape[2:], w.shape[0] // groups, w.shape[1]
    products = x.size * per * math.prod(kernel)
    if not x.size or not w.size or each * math.prod(kernel) > MOST_STEPS or products > MOST_PRODUCTS:
        return None
    meter.work(products)
    parts = x.reshape(x.shape[0], groups, each, *x.shape[2:])
    weights = w.reshape(groups, each, per, *kernel)
    strided, dilated = max(stride) > 1, max(dilation) > 1
    by_library = libraries.period > UP_TO_1_13 and (
        groups > 1 or x.shape[0] > 1 or min(kernel[-2:]) > LARGE < LARGE * len(kernel) or x.size > PICTURES
    )
    if not by_library or not (strided or dilated or x.shape[0] >= IMAGES or max(kernel) > 1):
        return _by_matrices(parts, weights, stride, dilation, full)
    beyond = any(size > d * (k - 1) for size, d, k in zip(padding, dilation, kernel, strict=True))
    if strided and dilated:
        return _by_matrices(parts, weights, stride, dilation, full)
    depthwise = groups > 1 and each == per == 1
    if not strided:
        if (
            beyond
            or (groups > 1 and not depthwise and (each % CHANNELS or per % CHANNELS))
            or (depthwise and libraries.release < DEPTHWISE)
        ):
            return _by_matrices(parts, weights, stride, dilation, full)
        if each > MOST_CHANNELS or len(kernel) > TWO:
            return None
        return _chained(parts, weights, stride, dilation, full, _positions(kernel), CHANNELS)
    if libraries.release < STRIDED:
        if len(kernel) == 1 or (groups > 1 and (each % CHANNELS or per % CHANNELS)):
            return _by_matrices(parts, weights, stride, dilation, full)
        return None
    if groups > 1 and not depthwise and each <= CHANNELS_OF_GROUPS:
        if not each % CHANNELS and not per % CHANNELS:
            return _chained(parts, weights, stride, dilation, full, _positions(kernel), CHANNELS)
        return _by_matrices(parts, weights, stride, dilation, full)
    columns, step = kernel[-1], stride[-1]
    if columns > step > TWO or each > CHANNELS_STRIDED or len(kernel) > TWO:
        return None
    if columns > step and columns % TWO == 0 and padding[-1] < columns // TWO:
        total = np.zeros(0, FLOAT32)
        for column in range(columns):
            places = [place for place in _positions(kernel) if place[-1] == column]
            part = _chained(parts, weights, stride, dilation, full, places, CHANNELS_STRIDED)
            total = total + part if column else part
        return total
    return _chained(parts, weights, stride, dilation, full, _positions(kernel), CHANNELS_STRIDED)


def _positions(kernel: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(np.ndindex(*kernel))


def _where(
    place: tuple[int, ...], spatial: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[slice, ...]:
    """The part of the result to which a kernel position is added."""
    return tuple(
        slice(p * d, p * d + (size - 1) * s + 1, s) for p, d, size, s in zip(place, dilation, spatial, stride, strict=True)
    )


def _by_matrices(
    parts: Array, weights: Array, stride: tuple[int, ...], dilation: tuple[int, ...], full: tuple[int, ...]
) -> Array | None:
    """The transposed weight times the input, whose kernel positions are added one after the other."""
    batch, groups, each, *spatial = parts.shape
    per, kernel = weights.shape[2], weights.shape[3:]
    turned = np.swapaxes(np.ascontiguousarray(weights.reshape(groups, each, -1)), -1, -2)
    product = matrix_product(turned, np.ascontiguousarray(parts.reshape(batch, groups, each, -1)), libraries.period)
    if product is None:
        return None
    columns = product.astype(FLOAT32).reshape(batch, groups, per, *kernel, *spatial)
    value = np.zeros((batch, groups, per, *full), FLOAT32)
    for place in np.ndindex(*kernel):
        lead = (slice(None), slice(None), slice(None))
        value[(*lead, *_where(place, tuple(spatial), stride, dilation))] += columns[(*lead, *place)]
    return value


def _chained(
    parts: Array, weights: Array, stride: tuple[int, ...], dilation: tuple[int, ...], full: tuple[int, ...],
    places: Iterable[tuple[int, ...]], block: int,
) -> Array:  # fmt: skip
    """One product after the other with fused multiply-add: blocks of channels, in them positions, in them channels."""
    batch, groups, each, *spatial = parts.shape
    per = weights.shape[2]
    value = np.zeros((batch, groups, per, *full), FLOAT32)
    wide, known = parts.astype(FLOAT64)[:, :, :, None], list(places)
    for first in range(0, each, block):
        for place in known:
            where = (slice(None), slice(None), slice(None), *_where(place, tuple(spatial), stride, dilation))
            for channel in range(first, min(each, first + block)):
                factor = weights[(slice(None), channel, slice(None), *place)].reshape(1, groups, per, *(1,) * len(spatial))
                value[where] = (wide[:, :, channel] * factor + value[where]).astype(FLOAT32)
    return value
