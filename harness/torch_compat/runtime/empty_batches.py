"""Convolutions of empty batches, which many releases refuse because their kernels require an element or inspect the weight."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

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
PICTURES = 4
FLOAT32 = np.dtype(np.float32)


def refusing_empty_batches(name: str, call: Callable[..., Any], horizon: Release) -> Callable[..., Any]:
    """Wrap a convolution to refuse empty batches if the release of the horizon does; return any other operator unchanged."""
    if name not in CONVOLUTIONS or horizon >= ANY_WEIGHT:
        return call
    form = "any" if name.endswith("convolution") else "conv_transpose" if "transpose" in name else "conv"
    groups_at, dilation_at = PLACES[form]

    def guard(*args: Any, **keywords: Any) -> Any:
        result = call(*args, **keywords)  # other errors take precedence
        x, weight = (*args, *keywords.values())[:2]
        if x.__class__ is Tensor and weight.__class__ is Tensor and x.array.ndim and not x.array.shape[0]:
            transposed = args[TRANSPOSED] if form == "any" else form == "conv_transpose"
            groups = keywords.get("groups", args[groups_at] if len(args) > groups_at else 1)
            dilation = keywords.get("dilation", args[dilation_at] if len(args) > dilation_at else 1)
            dilated = dilation != 1 if dilation.__class__ is int else any(keyword != 1 for keyword in dilation)
            _refuse(x, weight, bool(transposed), groups, dilated=dilated, horizon=horizon)
        return result

    return guard


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
