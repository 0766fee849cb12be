"""The connectionist temporal classification loss."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import (
    FLOAT64,
    Array,
    fail,
    not_implemented,
)
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators._sums import mean_of
from torch_compat.runtime.operators.losses import MEAN, SUM
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor


@operator("aten::ctc_loss")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = MEAN, zero_infinity: bool = False
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of label sequences, over all alignments with blanks in longer sequences."""
    array = log_probs.array
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        raise not_implemented("ctc_loss_cpu", array.dtype)
    alone = array.ndim == 2
    whole = array[:, None] if alone else array
    lengths, sizes = (
        [int(v) for v in np.reshape(tensor.array, -1)] if tensor.__class__ is Tensor else list(tensor)
        for tensor in (input_lengths, target_lengths)
    )
    steps, batch, labels = whole.shape
    if len(lengths) != batch or len(sizes) != batch:
        raise fail("input_lengths and target_lengths must be of size batch_size")
    if not 0 <= blank < labels:
        raise fail("blank must be in label range")
    given = targets.array
    if given.ndim == 2 and given.shape[0] != batch:
        raise fail(
            f"Expected tensor to have size {batch} at dimension 0, but got size {given.shape[0]} for argument #2 'targets'"
        )
    if given.ndim == 1 and not alone:
        starts = np.cumsum([0, *sizes])
        if starts[-1] != given.size:
            raise fail(f"Expected targets to have {starts[-1]} elements")
        rows = [given[a:b] for a, b in pairwise(starts)]
    else:
        rows = [row[:size] for row, size in zip(given.reshape(batch, -1), sizes, strict=True)]
        if any(len(row) < size for row, size in zip(rows, sizes, strict=True)):
            raise fail("Expected tensor to have size at least target_lengths")
    if any(not 0 <= length <= steps for length in lengths):
        raise fail(f"Expected input_lengths to have value at most {steps}")
    result = np.empty(batch)
    with np.errstate(all="ignore"):
        for at in range(looped(batch, steps * (2 * max(sizes, default=0) + 1))):
            result[at] = -_paths(whole[: lengths[at], at].astype(FLOAT64), [int(row) for row in rows[at]], blank)
    if zero_infinity:
        result[np.isinf(result)] = 0.0
    if reduction == MEAN:
        return Tensor(np.asarray(mean_of(result / np.maximum(sizes, 1))).astype(array.dtype))
    if reduction == SUM:
        return Tensor(np.asarray(result.sum()).astype(array.dtype))
    return Tensor(np.asarray(result[0] if alone else result).astype(array.dtype))


def _paths(scores: Array, target: list[int], blank: int) -> float:
    """The log-probability of a sequence of labels."""
    states = [blank]
    for number in target:
        states += [number, blank]
    if not len(scores):
        return 0.0 if not target else -np.inf
    now = np.full(len(states), -np.inf)
    now[0] = scores[0, blank]
    if target:
        now[1] = scores[0, target[0]]
    for row in scores[1:]:
        after = now.copy()
        after[1:] = np.logaddexp(after[1:], now[:-1])
        for at in range(2, len(states)):
            if states[at] != blank and states[at] != states[at - 2]:
                after[at] = np.logaddexp(after[at], now[at - 2])
        now = after + row[states]
    return float(now[0] if not target else np.logaddexp(now[-1], now[-2]))
