"""Margin losses for one label or several labels per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT64, INT64, Array, Scalar, fail, functional, into, not_implemented
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.losses import MEAN, NONE, SUM, _reduce
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__: list[str] = []


def _margins(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    x, labels = self.array, target.array
    if x.ndim > 2 or 0 in x.shape[1 - (x.ndim < 2) :]:
        raise fail(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}")
    if labels.shape != x.shape and not (x.ndim < 2 and labels.ndim < 2 and labels.size == x.size):
        raise fail(f"inconsistent target size: {list(labels.shape)} for input of size: {list(x.shape)}")
    if not x.size:
        raise Unsupported(
            "the multilabel margin loss of an empty batch is not supported: releases return uninitialized memory", code="operator"
        )
    if x.dtype not in (np.float32, FLOAT64):
        raise not_implemented("multilabel_margin_loss_forward_out_frame", x.dtype)
    if labels.dtype != INT64:
        raise fail(f"expected scalar type Long but found {labels.dtype}")
    rows, places = (item.reshape(-1, x.shape[-1] if x.ndim else 1) for item in (x, labels))
    count = rows.shape[1]
    if (places < -1).any() or (places >= count).any():
        raise fail("argument #3 'target' is out of range")
    looped(len(rows), count * count)
    value: Array = np.zeros(len(rows), FLOAT64)
    marked = np.zeros(rows.shape, x.dtype)
    for at, (row, given) in enumerate(zip(rows.astype(FLOAT64), places, strict=True)):
        ends = np.flatnonzero(given < 0)
        own = given[: ends[0]] if len(ends) else given
        marked[at, own] = 1
        others = row[marked[at] == 0]
        hinges = 1 - (row[own][:, None] - others[None, :])
        value[at] = np.where(hinges > 0, hinges, 0).sum() / count  # NaN counts as zero
    if reduction == NONE and x.ndim > 1:
        result: Any = value
    else:
        result = np.asarray(value.mean() if reduction == MEAN else value.sum())
    return Tensor(result.astype(x.dtype)), Tensor(marked.reshape(labels.shape))


def _multilabel(since: str, *, rows: bool) -> None:
    """Register the multilabel margin losses of a release.

    Parameters:
        rows: whether the unreduced loss of a single sample has one dimension.
    """

    def losses(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
        tensor, marked = _margins(self, target, reduction)
        return (Tensor(tensor.array.reshape(1)) if rows and reduction == NONE and self.array.ndim == 1 else tensor), marked

    def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN, *, out: Tensor | None = None) -> Tensor:
        """Hinge losses of each label of a sample against each class that is not one of its labels; -1 ends the labels."""
        loss = losses(self, target, reduction)[0]
        return loss if out is None else into(out, loss.array)

    def multilabel_margin_loss_forward(
        self: Tensor, target: Tensor, reduction: int, *, output: Tensor | None = None, is_target: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Same as ``multilabel_margin_loss``; also returns which classes are labels."""
        tensor, marked = losses(self, target, reduction)
        if output is not None and is_target is not None:
            return into(output, tensor.array, exact=True), into(is_target, marked.array, exact=True)
        return tensor, marked

    operator("aten::multilabel_margin_loss", since=since)(multilabel_margin_loss)
    operator("aten::multilabel_margin_loss_forward", since=since)(multilabel_margin_loss_forward)


_multilabel("1.0.0", rows=True)
_multilabel("1.5.0", rows=False)


def _classes_apart(self: Tensor, target: Tensor, p: Scalar, margin: Scalar, weight: Tensor | None, reduction: int) -> Tensor:
    """Hinge losses of the target class against every other class."""
    x = self.array.astype(FLOAT64)
    rows = x if x.ndim > 1 else x.reshape(1, -1)
    if not rows.shape[1]:
        raise fail(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}")
    if not x.size and reduction != NONE:
        raise Unsupported("aten::multi_margin_loss reduces no losses to uninitialized memory", code="operator")
    if target.array.dtype != INT64 or (weight is not None and weight.array.dtype != self.array.dtype):
        raise fail("expected scalar type Long for the target, and the dtype of the input for the weight")
    if target.array.size != len(rows):
        raise fail(
            f"multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples. Expected target size [{len(rows)}], but got {list(target.array.shape)}."
        )
    y = target.array.reshape(-1)
    if y.size and not (y.min() >= 0 and y.max() < rows.shape[1]):
        raise fail("multi_margin_loss: target out of range")
    own = rows[np.arange(len(rows)), y]
    if p.real not in {1, 2}:
        raise fail("only p == 1 and p == 2 supported")
    if weight is not None and y.size and y.max() >= weight.array.size:
        raise Unsupported("aten::multi_margin_loss reads past the end of the weight", code="operator")
    hinge = float(margin.real) - own[:, None] + rows
    hinge = np.where(hinge > 0, hinge, 0.0) ** int(p.real)
    if weight is not None:
        hinge = hinge * weight.array.astype(FLOAT64).reshape(-1)[y][:, None]
    hinge[np.arange(len(rows)), y] = 0
    value = hinge.sum(axis=1) / rows.shape[1]
    wanted = reduction if reduction in {NONE, MEAN} else SUM
    return _reduce(value if target.array.ndim or reduction else value[0], wanted, self.array.dtype)


@functional("multi_margin_loss")
def multi_margin_loss_1_0(
    self: Tensor, target: Tensor, p: Scalar = 1, margin: Scalar = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Up to 1.7 an empty batch is refused."""
    if not self.array.size:
        raise fail(f"non-empty vector or matrix expected, got size: {list(self.shape)}")
    return _classes_apart(self, target, p, margin, weight, reduction)


@functional("multi_margin_loss", since="1.8.0")
def multi_margin_loss_1_8(
    self: Tensor, target: Tensor, p: Scalar = 1, margin: Scalar = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """As of 1.8 an empty batch has no losses."""
    return _classes_apart(self, target, p, margin, weight, reduction)


@functional("multi_margin_loss", since="2.1.0")
def multi_margin_loss(
    self: Tensor, target: Tensor, p: Scalar = 1, margin: Scalar = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """As of 2.1 the weight must have one number for each class."""
    classes = self.array.shape[-1] if self.array.ndim else 1
    if weight is not None and weight.array.shape != (classes,):
        raise fail(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    return _classes_apart(self, target, p, margin, weight, reduction)
