"""Embedding lookups and embedding bags."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import FLOAT64, INT64, Array, cast, fail, words
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.norms import norm_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised


def _whole(indices: Array, ints: bool, argument: str = "indices") -> None:
    if indices.dtype != INT64 and not (ints and indices.dtype == np.int32):
        raise fail(
            f"Expected tensor for argument #1 '{argument}' to have one of the following scalar types: Long, Int; but got torch.{words(indices.dtype)}Tensor "
            "instead (while checking arguments for embedding)"
        )


def _rows(weight: Array, indices: Array, ints: bool = True) -> Array:
    _whole(indices, ints)
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
            del padding_idx, scale_grad_by_freq, sparse  # they affect only gradients
            return Tensor(_rows(weight.array, indices.array, ints))

        operator("aten::embedding", since=since)(call)


_embeddings()


@operator("aten::embedding_renorm_")
def embedding_renorm_1_0_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Up to 2.3 the norm of one element is a root of its power."""
    return _renormed(self, indices, max_norm, norm_type, alone=False)


@operator("aten::embedding_renorm_", since="2.4.0")
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down rows whose norm is above a limit."""
    return _renormed(self, indices, max_norm, norm_type, alone=True)


def _renormed(self: Tensor, indices: Tensor, max_norm: float, norm_type: float, *, alone: bool) -> Tensor:
    if self.array.ndim != 2:
        raise fail(
            f"Expected 2-dimensional tensor, but got {self.array.ndim}-dimensional tensor for argument #1 'self' (while checking arguments for "
            "embedding_renorm_)"
        )
    _whole(indices.array, ints=True)
    looped(min(indices.array.size, self.array.shape[0]), self.array.shape[1])
    for row in np.unique(indices.array):
        size = float(norm_of(self.array[row], norm_type, (0,), keepdims=False, alone=alone))
        if size > max_norm:
            self.array[row] = (self.array[row] * (max_norm / (size + 1e-7))).astype(self.array.dtype)
    return self


def _bags() -> None:
    # Indices and offsets are int64 up to 1.7, and both int64 or both int32 in 1.8; since 1.9 the two dtypes may differ and are promoted.
    for since, ints, promoted in (("1.0.0", False, False), ("1.8.0", True, False), ("1.9.0", True, True)):

        def call(
            weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
            per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None, *,
            ints: bool = ints, promoted: bool = promoted,
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
            """Called by torch.nn.functional; ``padding_idx`` may be counted from the end."""
            del scale_grad_by_freq, sparse
            if padding_idx is not None:
                rows = weight.array.shape[0]
                if not -rows <= padding_idx < rows:
                    raise fail(
                        f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
                    )
                padding_idx %= rows
            places, starts = _integers(indices, offsets, ints=ints, promoted=promoted)
            return _embedding_bag(weight.array, places, starts, mode, per_sample_weights, include_last_offset, padding_idx)

        def inner(
            weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
            per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1, *,
            ints: bool = ints, promoted: bool = promoted,
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
            """Called by traces; a negative padding_idx means no padding."""
            del scale_grad_by_freq, sparse
            places, starts = _integers(indices, offsets, ints=ints, promoted=promoted)
            skip = padding_idx if padding_idx >= 0 else None
            return _embedding_bag(weight.array, places, starts, mode, per_sample_weights, include_last_offset, skip)

        operator("aten::embedding_bag", since=since)(call)
        operator("aten::_embedding_bag", "aten::_embedding_bag_forward_only", since=since)(inner)


_bags()


def _integers(indices: Tensor, offsets: Tensor, *, ints: bool, promoted: bool) -> tuple[Array, Array]:
    """Indices and offsets as arrays of one dtype."""
    places, starts = indices.array, offsets.array
    if promoted:
        kind = dtypes.promote(indices.dtype, offsets.dtype).array
        places, starts = cast(places, kind), cast(starts, kind)
    _whole(places, ints)
    _whole(starts, ints, "offsets")
    if places.dtype != starts.dtype:
        raise fail(
            f"Expected tensor for argument #1 'indices' to have the same type as tensor for argument #1 'offsets'; but type torch.{words(places.dtype)}Tensor "
            f"does not equal torch.{words(starts.dtype)}Tensor (while checking arguments for embedding_bag)"
        )
    return places, starts


def _embedding_bag(
    table: Array,
    places: Array,
    offsets: Array,
    mode: int,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    skip: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (0), means (1) or maxima (2) of bags of rows."""
    if mode not in {0, 1, 2}:
        raise fail("`mode` must be sum, mean, or max.")
    for item in (places, offsets):
        if item.ndim not in {1, 2}:
            raise fail(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {item.ndim}")
    if offsets.size and int(offsets.reshape(-1)[0]) != 0:
        raise fail(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
            f"{int(offsets.reshape(-1)[0])}"
        )
    if offsets.size and int(offsets.reshape(-1)[-1]) > places.size:
        raise fail(
            f"offsets[-1] can not be greater than input's length({places.size}), but got offsets[-1] of {int(offsets.reshape(-1)[-1])}"
        )
    looped(len(offsets))
    starts = [int(offset) for offset in offsets]
    if starts != sorted(starts) or (include_last_offset and starts and starts[-1] != places.size):
        raise Unsupported(
            f"offsets {starts} into {places.size} indices decrease, or end before the indices do: torch's kernels give different results",
            code="operator",
        )
    if not include_last_offset:
        starts.append(places.size)
    rows = _rows(table, places).astype(FLOAT64)
    if per_sample_weights is not None:
        if mode != 0:
            raise fail("embedding_bag: per_sample_weights only supported with mode='sum'")
        if per_sample_weights.array.shape != (places.size,):
            raise fail(
                f"expected per_sample_weights to be 1D with as many elements as input has ({places.size}), but got shape "
                f"{list(per_sample_weights.array.shape)}"
            )
        rows = rows * per_sample_weights.array.astype(FLOAT64)[:, None]
    value = np.zeros((len(starts) - 1, table.shape[1]), FLOAT64)
    sizes = np.zeros(len(starts) - 1, places.dtype)
    of_bag = np.zeros(places.size, places.dtype)
    best = np.zeros((len(starts) - 1, table.shape[1]), places.dtype)
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
    if mode != 2:  # unused in this case; it has the shape of the sizes
        best = sizes
    return Tensor(value.astype(table.dtype)), Tensor(of_bag), Tensor(sizes), Tensor(best)
