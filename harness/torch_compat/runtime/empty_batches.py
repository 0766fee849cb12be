"""Convolutions of empty batches and sizes, which releases refuse where their kernels require an element or inspect the weight."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["refusing_empty_batches"]

CONVOLUTIONS = frozenset(
    {f"aten::conv{form}{n}d" for form in ("", "_transpose") for n in (1, 2, 3)} | {"aten::_convolution", "aten::convolution"}
)
PLACES = {"conv": (6, 5), "conv_transpose": (6, 7), "any": (8, 5)}
"""The argument positions of groups and dilation."""
TRANSPOSED = 6
WITH_ONEDNN, DILATED, GROUPED, IN_SPACE, TRANSPOSING, ANY_WEIGHT = (
    Release(since) for since in ("1.0.1", "1.2.0", "1.4.0", "1.3.0", "1.5.0", "2.0.0")
)
"""The first releases that accept an empty batch: with oneDNN; with dilation; with groups; without oneDNN; in a transposed convolution; and
with any weight. Earlier releases than the last view the weight as 1-dimensional."""
CHECKS_PLACES, NO_CHANNELS = Release("1.7.0"), Release("1.11.0")
"""The first releases that refuse an empty image, and that accept no channels."""
PICTURES = 4
NARROW, FEW, MANY = 3, 20480, 16
"""A kernel above this size, an input of more elements than this, or a batch of this size for volumes, is convolved with oneDNN."""
FLOAT32 = np.dtype(np.float32)


def refusing_empty_batches(name: str, call: Callable[..., Any], horizon: Release) -> Callable[..., Any]:
    """Wrap a convolution to refuse what is empty if the release of the horizon does; return any other operator unchanged."""
    if name not in CONVOLUTIONS:
        return call
    form = "any" if name.endswith("convolution") else "conv_transpose" if "transpose" in name else "conv"
    groups_at, dilation_at = PLACES[form]

    def guard(*args: Any, **keywords: Any) -> Any:
        x, weight = (*args, *keywords.values())[:2]
        if x.__class__ is not Tensor or weight.__class__ is not Tensor:
            return call(*args, **keywords)
        transposed = form == "conv_transpose"
        if form == "any":
            transposed = keywords.get("transposed", args[TRANSPOSED] if len(args) > TRANSPOSED else False)
        groups = keywords.get("groups", args[groups_at] if len(args) > groups_at else 1)
        dilation = keywords.get("dilation", args[dilation_at] if len(args) > dilation_at else 1)
        dilated = dilation != 1 if dilation.__class__ is int else any(size != 1 for size in dilation)
        _refuse_sizes(weight, groups)
        result = call(*args, **keywords)  # other errors take precedence
        if x.array.ndim and not x.array.shape[0] and x.array.ndim == weight.array.ndim:
            if horizon < ANY_WEIGHT:
                _refuse(x, weight, bool(transposed), groups, dilated=dilated, horizon=horizon)
        elif not x.array.size:
            return _of_nothing(x, weight, result, bool(transposed), groups, horizon)
        elif not result.array.size and not _onednn(x, weight, groups, dilated=dilated, horizon=horizon):
            raise raised("RuntimeError", f"Calculated output size per channel: {list(result.shape)}. Output size is too small")
        return result

    return guard


def _refuse_sizes(weight: Tensor, groups: Any) -> None:
    """Refuse groups below one, fewer outputs than groups, and kernels without elements.

    Raises:
        Raised: as above.
    """
    shape = weight.array.shape
    if groups.__class__ is int and groups < 1:
        raise raised("RuntimeError", "non-positive groups is not supported")
    if shape and groups.__class__ is int and shape[0] < groups:
        raise raised("RuntimeError", f"Given groups={groups}, expected weight to be at least {groups} at dimension 0")
    if 0 in shape[2:]:
        raise raised("RuntimeError", f"kernel size should be greater than zero, but got {list(shape[2:])}")


def _of_nothing(x: Tensor, weight: Tensor, result: Tensor, transposed: bool, groups: int, horizon: Release) -> Tensor:
    """The convolution of an input without elements in a batch that is not empty.

    Raises:
        Raised: the release refuses it.
    """
    spatial = x.array.shape[-(weight.array.ndim - 2) :]
    if 0 in spatial:
        if transposed or horizon >= CHECKS_PLACES:
            raise raised(
                "RuntimeError", f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
            )
        return result
    if transposed or horizon < NO_CHANNELS:
        raise raised("RuntimeError", f"non-empty weight tensor expected, but got: {list(weight.shape)}")
    at = result.array.ndim - weight.array.ndim + 1
    return Tensor(np.empty((*result.shape[:at], weight.array.shape[1] * groups, *result.shape[at + 1 :]), result.array.dtype))


def _onednn(x: Tensor, weight: Tensor, groups: int, *, dilated: bool, horizon: Release) -> bool:
    """Whether a release computes a transposed convolution with oneDNN in one thread, which accepts an empty result."""
    kernel = weight.array.shape[2:]
    if horizon < ANY_WEIGHT or dilated or x.array.dtype != FLOAT32:
        return False
    batch = x.array.shape[0] if x.array.ndim == weight.array.ndim else 1
    if len(kernel) > 2 and groups > 1:
        raise Unsupported(
            "a transposed convolution of volumes in groups has an empty result, which some kernels refuse", code="operator"
        )
    several = batch >= MANY if len(kernel) > 2 else batch > 1
    return groups > 1 or several or (len(kernel) > 1 and min(kernel[-2:]) > NARROW) or x.array.size > FEW


def _refuse(x: Tensor, weight: Tensor, transposed: bool, groups: int, *, dilated: bool, horizon: Release) -> None:
    """Refuse an empty batch.

    Raises:
        Raised: the release does not accept this batch.
    """
    if horizon >= TRANSPOSING:
        if not _flat(weight):
            raise raised(
                "RuntimeError",
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                "subspaces). Use .reshape(...) instead.",
            )
        return
    with_onednn = x.array.dtype == FLOAT32 and x.array.ndim <= PICTURES and not dilated
    if transposed or horizon < WITH_ONEDNN:
        taken = False
    elif horizon < DILATED:
        taken = with_onednn
    elif dilated:
        taken = True
    elif with_onednn:
        taken = groups == 1 or horizon >= GROUPED
    else:
        taken = horizon >= IN_SPACE
    if not taken:
        raise raised("RuntimeError", f"non-empty input tensor expected but got a tensor with size {list(x.shape)}")


def _flat(tensor: Tensor) -> bool:
    """Whether a tensor can be viewed as 1-dimensional."""
    steps = [(size, step) for size, step in zip(tensor.shape, tensor.strides, strict=True) if size != 1]
    return not tensor.numel or all(step == inner_size * inner_step for (_, step), (inner_size, inner_step) in pairwise(steps))
