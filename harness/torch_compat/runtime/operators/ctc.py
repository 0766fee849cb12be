"""The connectionist temporal classification loss."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
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
def ctc_loss_1_0(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *args: Any, **keywords: Any
) -> Tensor:
    """Up to 2.3 a sequence without steps that has a target reads other memory."""
    lengths, sizes = _lengths(input_lengths), _lengths(target_lengths)
    if len(lengths) == len(sizes) and any(size and not length for length, size in zip(lengths, sizes, strict=True)):
        raise Unsupported("aten::ctc_loss reads other memory for a sequence without steps that has a target", code="operator")
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, *args, **keywords)


@operator("aten::ctc_loss", since="2.4.0")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = MEAN, zero_infinity: bool = False
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of label sequences, over all alignments with blanks in longer sequences."""
    array = log_probs.array
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        raise not_implemented("ctc_loss_cpu", array.dtype)
    alone = array.ndim == 2
    whole = array[:, None] if alone else array
    lengths, sizes = _lengths(input_lengths), _lengths(target_lengths)
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
    result = np.empty(batch, array.dtype)
    with np.errstate(all="ignore"):
        for at in range(looped(batch, steps * (2 * max(sizes, default=0) + 1))):
            result[at] = -_paths(whole[: lengths[at], at], [int(row) for row in rows[at]], blank)
        if zero_infinity:
            result[np.isinf(result)] = 0.0
        if reduction == MEAN:
            return Tensor(np.asarray(mean_of(result / np.maximum(sizes, 1).astype(array.dtype))).astype(array.dtype))
    if reduction == SUM:
        return Tensor(np.asarray(result.sum(dtype=array.dtype)))
    return Tensor(np.asarray(result[0] if alone else result))


def _lengths(value: Any) -> list[int]:
    return [int(v) for v in np.reshape(value.array, -1)] if value.__class__ is Tensor else list(value)


def _paths(scores: Array, target: list[int], blank: int) -> Any:
    """The log-probability of a sequence of labels, in the dtype of the scores and the order of ``ctc_loss_cpu``.

    A target may contain the blank; releases then still skip the blank before it.
    """
    states = [blank]
    for number in target:
        states += [number, blank]
    least = scores.dtype.type(-np.inf)
    if not len(scores):
        return scores.dtype.type(0) if not target else least
    now = np.full(len(states), least)
    now[0] = scores[0, blank]
    if target:
        now[1] = scores[0, target[0]]
    skips = np.array([at > 1 and states[at] != states[at - 2] for at in range(len(states))])
    for row in scores[1:]:
        before = np.concatenate([[least], now[:-1]])
        skipped = np.where(skips, np.concatenate([[least, least], now])[: len(now)], least)
        now = _logsumexp(now, before, skipped) + row[states]
    return _logsumexp(now[-1:], now[-2:-1])[0] if target else now[0]


def _logsumexp(*terms: Array) -> Array:
    greatest = np.maximum.reduce(terms)
    greatest = np.where(np.isneginf(greatest), greatest.dtype.type(0), greatest)
    total = np.zeros_like(greatest)
    for term in terms:
        total = total + _rounded(np.exp, term - greatest)
    return np.asarray(_rounded(np.log, total) + greatest)


def _rounded(function: np.ufunc, values: Array) -> Array:
    """A function of the C library, which is correctly rounded for float32 but for very few numbers."""
    return np.asarray(function(values.astype(FLOAT64))).astype(values.dtype)
