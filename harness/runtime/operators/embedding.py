"""Rows of tables by number, and bags of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from harness.runtime.operators._common import FLOAT64, INT64, Array, fail, words
from harness.runtime.operators.reductions import norm_of
from harness.runtime.registry import operator
from harness.runtime.tensor import Tensor
from harness.runtime.values import raised


def _rows(weight: Array, indices: Array, since_int: bool = True) -> Array:
    if indices.dtype != INT64 and not (since_int and indices.dtype == np.int32):
        raise fail(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{words(indices.dtype)}Tensor "
            "instead (while checking arguments for embedding)"
        )
    if weight.ndim != 2:
        raise fail("'weight' must be 2-D")
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= weight.shape[0]):
        raise raised("IndexError", "index out of range in self")
    return weight[indices.astype(INT64)]


def _embeddings() -> None:
    for since, ints in (("1.0.0", False), ("1.8.0", True)):

        def call(
            weight: Tensor,
            indices: Tensor,
            padding_idx: int = -1,
            scale_grad_by_freq: bool = False,
            sparse: bool = False,
            ints: bool = ints,
        ) -> Tensor:
            del padding_idx, scale_grad_by_freq, sparse  # they matter to gradients only
            return Tensor(_rows(weight.array, indices.array, ints))

        operator("aten::embedding", since=since)(call)


_embeddings()


@operator("aten::embedding_renorm_")
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows whose norm is above a limit are scaled down to it."""
    for row in np.unique(indices.array):
        size = float(norm_of(self.array[row], norm_type, (0,), keepdims=False))
        if size > max_norm:
            self.array[row] = (self.array[row] * (max_norm / (size + 1e-7))).astype(self.array.dtype)
    return self


@operator("aten::embedding_bag")
def embedding_bag_of(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Bags of rows; a row that counts nothing may be counted from the end."""
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.array.shape[0]
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


@operator("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Sums (0), means (1) or maxima (2) of bags of rows."""
    del scale_grad_by_freq, sparse
    table, places = weight.array, indices.array
    for one in (places, offsets.array):
        if one.ndim not in {1, 2}:
            raise fail(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {one.ndim}")
    starts = [int(one) for one in offsets.array]
    if not include_last_offset:
        starts.append(places.size)
    rows = _rows(table, places).astype(FLOAT64)
    if per_sample_weights is not None:
        if mode != 0:
            raise fail("embedding_bag: per_sample_weights only supported with mode='sum'")
        rows = rows * per_sample_weights.array.astype(FLOAT64)[:, None]
    skip = padding_idx if padding_idx is not None and padding_idx >= 0 else None
    value = np.zeros((len(starts) - 1, table.shape[1]), FLOAT64)
    sizes = np.zeros(len(starts) - 1, INT64)
    of_bag = np.zeros(places.size, INT64)
    best = np.zeros((len(starts) - 1, table.shape[1]), INT64)
    for bag, (a, b) in enumerate(pairwise(starts)):
        of_bag[a:b] = bag
        kept = rows[a:b] if skip is None else rows[a:b][places[a:b] != skip]
        sizes[bag] = len(kept)
        if not len(kept):
            continue
        if mode == 2:
            value[bag] = kept.max(axis=0)
            numbers = places[a:b] if skip is None else places[a:b][places[a:b] != skip]
            best[bag] = numbers[kept.argmax(axis=0)]
        else:
            value[bag] = kept.sum(axis=0) / (len(kept) if mode == 1 else 1)
    if mode != 2:  # nobody reads it then; its shape is that of the sizes
        best = sizes
    return Tensor(value.astype(table.dtype)), Tensor(of_bag), Tensor(sizes), Tensor(best)
