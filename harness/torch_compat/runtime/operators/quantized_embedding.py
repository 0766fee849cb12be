"""Embeddings with rows of 8, 4 or 2 bits: each row of bytes ends with its own scale and offset."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT32, Array, fail
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.packed import PackedEmbedding
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

BYTE = 8
EPSILON = np.float32(1e-8)
ONE = np.float32(1)


def _matrix(weight: Tensor) -> Array:
    if weight.array.dtype != FLOAT32 or weight.array.ndim != 2 or not weight.array.size:
        raise fail("expected scalar type Float and a matrix of weights")
    return np.ascontiguousarray(weight.array)


def _bytes_of(*columns: Array) -> Array:
    """The bytes of numbers for each row."""
    parts = [np.ascontiguousarray(item).reshape(-1, 1).view(np.uint8) for item in columns]
    return np.concatenate(parts, 1)


def packed_rows(rows: Array, bits: int) -> Array:
    """Quantize the rows of a matrix of float32, each by its own range."""
    least, most = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    with np.errstate(all="ignore"):
        if bits == BYTE:
            width = most - least
            codes = np.rint((rows - least) * (np.float32(255) / (width + EPSILON))).astype(np.int64).astype(np.uint8)
            return np.concatenate([codes, _bytes_of(width / np.float32(255), least)], 1)
        highest = (1 << bits) - 1
        offset = least.astype(np.float16).astype(np.float32)
        width = most - offset
        scale = np.where(width == 0, ONE, width / np.float32(highest)).astype(np.float16)
        scale = np.where(scale == 0, np.float16(1), scale)
        inverse = ONE / scale.astype(np.float32)
        scale, inverse = np.where(np.isinf(inverse), np.float16(1), scale), np.where(np.isinf(inverse), ONE, inverse)
        codes = np.clip(np.rint((rows - offset) * inverse), 0, highest).astype(np.uint8)
    per = BYTE // bits
    count = -(-rows.shape[1] // per)
    wide = np.zeros((len(rows), count * per), np.uint8)
    wide[:, : rows.shape[1]] = codes
    lines = np.zeros((len(rows), count), np.uint8)
    for at in range(per):
        lines |= wide[:, at::per] << np.uint8(at * bits)
    return np.concatenate([lines, _bytes_of(scale.astype(np.float16), offset.astype(np.float16))], 1)


def _parted(lines: Array, bits: int) -> tuple[Array, Array, Array]:
    """The codes, scales and offsets of rows of bytes.

    Raises:
        Raised: the rows are too short.
    """
    kind = np.dtype(np.float32 if bits == BYTE else np.float16)
    tail = 2 * kind.itemsize
    if lines.dtype != np.uint8 or lines.ndim != 2 or lines.shape[1] <= tail:
        raise fail("expected rows of bytes that end with a scale and an offset")
    numbers = np.ascontiguousarray(lines[:, -tail:]).view(kind).astype(np.float32)
    codes = lines[:, :-tail]
    if bits < BYTE:
        per = BYTE // bits
        sized(len(codes), codes.shape[1] * per)
        wide = np.empty((len(codes), codes.shape[1] * per), np.uint8)
        for at in range(per):
            wide[:, at::per] = (codes >> np.uint8(at * bits)) & np.uint8((1 << bits) - 1)
        codes = wide
    return codes, numbers[:, :1], numbers[:, 1:]


def _lookup(lines: Array, bits: int, indices: Any, bounds: Array, weights: Array | None) -> Array:
    """The sums of the rows of each bag, in float32 with fused multiply-add."""
    codes, scales, offsets = _parted(lines, bits)
    places = indices.array.reshape(-1).astype(np.int64)
    if places.size and (places.min() < 0 or places.max() >= len(codes)):
        raise fail("embedding bag: an index is out of range")
    if bounds.size and (bounds[0] != 0 or (bounds[1:] < bounds[:-1]).any() or bounds[-1] > places.size):
        raise fail("embedding bag: the offsets are not increasing, or beyond the indices")
    sized(max(len(bounds) - 1, 0), codes.shape[1])
    result = np.zeros((max(len(bounds) - 1, 0), codes.shape[1]), np.float32)
    looped(places.size, codes.shape[1])
    for bag in range(len(result)):
        for at in range(int(bounds[bag]), int(bounds[bag + 1])):
            row = places[at]
            scale, offset = scales[row], offsets[row]
            if weights is not None:
                scale, offset = scale * weights[at], offset * weights[at]
            total = result[bag] + offset
            result[bag] = (codes[row].astype(np.float64) * scale + total).astype(np.float32)
    return result


def _bag(
    name: str, lines: Array, bits: int, indices: Tensor, offsets: Tensor | None, mode: int, pruned: bool, weights: Tensor | None, mapping: Any,
    last: bool,
) -> Tensor:  # fmt: skip
    if mode or pruned or mapping is not None:
        raise Unsupported(
            f"the reference reader supports quantized::{name} only with sums of rows that are not pruned", code="operator"
        )
    if indices.array.dtype.kind != "i" or indices.array.ndim not in {1, 2}:
        raise fail("expected indices of one or two dimensions")
    if indices.array.ndim == 2:
        if offsets is not None:
            raise fail(f"{name}: offsets must be None for indices of two dimensions")
        bounds = np.arange(len(indices.array) + 1) * indices.array.shape[1]
    else:
        if offsets is None or offsets.array.ndim != 1 or offsets.array.dtype.kind != "i":
            raise fail(f"{name} expects offsets to be set for 1D indices.")
        bounds = offsets.array.astype(np.int64)
        if not last:
            bounds = np.append(bounds, indices.array.size)
    numbers = None
    if weights is not None:
        if weights.array.dtype != FLOAT32 or weights.array.size != indices.array.size:
            raise fail("expected one weight of float32 for each index")
        numbers = weights.array.reshape(-1)
    return Tensor(_lookup(lines, bits, indices, bounds, numbers))


def _rows(name: str, bits: int) -> None:
    @typed(f"quantized::embedding_bag_{name}_prepack")
    def prepack(weight: Tensor, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16) -> Tensor:
        """Quantize each row by its own range."""
        del nbins, ratio
        if optimized_qparams:
            raise Unsupported("the reference reader does not optimize the parameters of quantized rows", code="operator")
        rows = _matrix(weight)
        if bits < BYTE and rows.shape[1] % (BYTE // bits):
            raise fail(f"the number of columns must be a multiple of {BYTE // bits}")
        return Tensor(packed_rows(rows, bits))

    @typed(f"quantized::embedding_bag_{name}_unpack")
    def unpack(weight: Tensor) -> Tensor:
        """The numbers of the rows."""
        codes, scales, offsets = _parted(weight.array, bits)
        with np.errstate(all="ignore"):
            return Tensor((codes.astype(np.float64) * scales + offsets).astype(np.float32))

    @typed(f"quantized::embedding_bag_{name}_rowwise_offsets")
    def bag(
        weight: Tensor, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
        pruned_weights: bool = False, per_sample_weights: Tensor | None = None, compressed_indices_mapping: Tensor | None = None,
        include_last_offset: bool = False,
    ) -> Tensor:  # fmt: skip
        """The sums of rows of bags."""
        del scale_grad_by_freq
        return _bag(
            f"embedding_bag_{name}", weight.array, bits, indices, offsets, mode, pruned_weights, per_sample_weights,
            compressed_indices_mapping, include_last_offset,
        )  # fmt: skip


for _name, _bits in (("byte", 8), ("4bit", 4), ("2bit", 2)):
    _rows(_name, _bits)


@typed("quantized::embedding_bag_prepack")
def embedding_bag_prepack(weight: OpaqueTensor) -> PackedEmbedding:
    """Pack a quantized weight."""
    if weight.dtype.name != "quint8":
        raise Unsupported("the reference reader packs only embeddings of 8 bits", code="operator")
    return PackedEmbedding(weight)


@typed("quantized::embedding_bag_unpack")
def embedding_bag_unpack(W_prepack: PackedEmbedding) -> Any:  # noqa: N803
    """The quantized weight."""
    return W_prepack.m_unpack()


def _lines(packed: PackedEmbedding) -> Array:
    """The rows of bytes of a packed weight of 8 bits."""
    parts = packed.weight.parts
    scales = parts["scales"].array.astype(np.float32)
    zeros = parts["zero_points"].array.astype(np.float32)
    return np.concatenate([parts["elements"], _bytes_of(scales, -zeros * scales)], 1)


@typed("quantized::embedding_bag_byte")
def embedding_bag_byte(
    weight: PackedEmbedding, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
    pruned_weights: bool = False, per_sample_weights: Tensor | None = None, compressed_indices_mapping: Tensor | None = None,
    include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """The sums of rows of bags."""
    del scale_grad_by_freq
    return _bag(
        "embedding_bag_byte", _lines(weight), BYTE, indices, offsets, mode, pruned_weights, per_sample_weights, compressed_indices_mapping,
        include_last_offset,
    )  # fmt: skip


@typed("quantized::embedding_byte")
def embedding_byte(weight: PackedEmbedding, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """The rows at indices."""
    del pruned_weights
    if indices.array.dtype.kind != "i":
        raise fail("expected indices that are integers")
    bounds = np.arange(indices.array.size + 1)
    rows = _lookup(_lines(weight), BYTE, indices, bounds, None)
    return Tensor(rows.reshape(*indices.array.shape, -1))
