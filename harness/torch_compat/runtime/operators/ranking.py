"""Losses of pairs and triplets, which compare how near or how large they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, fail, wide
from torch_compat.runtime.operators.distances import PAIRWISE, rounded, sum_of_products
from torch_compat.runtime.operators.losses import MEAN, _floats, _reduce
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


@operator("aten::margin_ranking_loss")
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``, which is small if the inputs are ranked as the target tells."""
    if target.array.dtype.kind == "b":
        raise fail("Negation, the `-` operator, on a bool tensor is not supported.")
    if any(item.array.dtype.kind in "fc" for item in (input1, input2, target)):
        kind, (a, b, y) = _floats("margin_ranking_loss", input1, input2, target)
    else:  # the margin is a floating-point number
        kind, (a, b, y) = FLOAT32, [item.array.astype(FLOAT64) for item in (input1, input2, target)]
    return _reduce(np.maximum(-y * (a - b) + margin, 0), reduction, kind)


def _cosine_embedding(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int, axis: int) -> Tensor:
    """One minus the cosine, or the cosine above a margin, with each step rounded to the dtype of the elements."""
    if min(input1.array.ndim, input2.array.ndim) < abs(axis) + (axis > 0):
        raise raised("IndexError", f"Dimension out of range (expected to be in range of [-1, 0], but got {axis})")
    kind = dtypes.result_type((input1, input2)).array
    least = wide(np.zeros((), kind)).dtype.type(1e-12)
    products = sum_of_products(input1.array, input2.array, axis)
    first, second = (rounded(sum_of_products(tensor.array, tensor.array, axis) + least, kind) for tensor in (input1, input2))
    cosine = rounded(products / rounded(np.sqrt(rounded(first * second, kind)), kind), kind)
    y = target.array.astype(FLOAT64)
    value = np.where(y == 1, 1 - cosine, 0.0) + np.where(y == -1, np.maximum(cosine - margin, 0), 0.0)
    return _reduce(np.asarray(value), reduction, kind)


@operator("aten::cosine_embedding_loss")
def cosine_embedding_loss_1_0(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """Up to 1.8 the cosines are those along the second dimension."""
    return _cosine_embedding(input1, input2, target, margin, reduction, 1)


@operator("aten::cosine_embedding_loss", since="1.9.0")
def cosine_embedding_loss_1_9(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Tensor:
    """In 1.9 the target must have one dimension."""
    if target.array.ndim != 1:
        raise fail("1D target tensor expected, multi-target not supported")
    return _cosine_embedding(input1, input2, target, margin, reduction, 1)


@operator("aten::cosine_embedding_loss", since="1.10.0")
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """As of 1.10 the inputs have one dimension more than the target, which has none or one."""
    if target.array.ndim > 1:
        raise fail("0D or 1D target tensor expected, multi-target not supported")
    if any(tensor.array.ndim != target.array.ndim + 1 for tensor in (input1, input2)):
        raise fail(
            f"{target.array.ndim}D target tensor expects {target.array.ndim + 1}D input tensors, but found inputs with sizes {list(input1.shape)} "
            f"and {list(input2.shape)}."
        )
    return _cosine_embedding(input1, input2, target, margin, reduction, -1)


def _triplet_margin_losses(since: str, pairwise_distance: Callable[..., Tensor], *, second: bool) -> None:
    """Register the triplet loss of a release, computed with its distances.

    Parameters:
        second: whether the distances are those along the second dimension; else along the last, and all inputs have as many dimensions.
    """

    def triplet_margin_loss(
        anchor: Tensor,
        positive: Tensor,
        negative: Tensor,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-06,
        swap: bool = False,
        reduction: int = MEAN,
    ) -> Tensor:
        """How much nearer the anchor is to the negative than to the positive example, plus a margin."""
        kind = _floats("triplet_margin_loss", anchor, positive, negative)[0]
        given = (anchor, positive, negative)
        if second:
            if min(max(anchor.array.ndim, item.array.ndim) for item in (positive, negative)) < 2:
                raise raised("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)")
            anchor, positive, negative = (
                Tensor(np.moveaxis(item.array, 1, -1)) if item.array.ndim > 2 else item for item in given
            )
        elif len({item.array.ndim for item in given}) > 1:
            raise fail("The anchor, positive, and negative tensors are expected to have the same number of dimensions.")
        near, far = (wide(pairwise_distance(anchor, item, p, eps).array) for item in (positive, negative))
        if swap:
            far = np.minimum(far, wide(pairwise_distance(positive, negative, p, eps).array))
        value = rounded(rounded(near + near.dtype.type(margin), kind) - far, kind)
        return _reduce(np.maximum(value, 0), reduction, kind)

    operator("aten::triplet_margin_loss", since=since)(triplet_margin_loss)


SAME_DIMENSIONS = Release("1.10.0")
for _since, _distance in PAIRWISE.items():
    if Release(_since) < SAME_DIMENSIONS:
        _triplet_margin_losses(_since, _distance, second=True)
_triplet_margin_losses(
    "1.10.0", [value for since, value in PAIRWISE.items() if Release(since) < SAME_DIMENSIONS][-1], second=False
)
for _since, _distance in PAIRWISE.items():
    if Release(_since) >= SAME_DIMENSIONS:
        _triplet_margin_losses(_since, _distance, second=False)
