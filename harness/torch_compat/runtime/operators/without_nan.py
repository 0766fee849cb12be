"""Sums and means of the elements other than NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT64, any_dtype, axes, cast, fail, functional, words
from torch_compat.runtime.operators.reductions import Dims, exact_sum, sum_type
from torch_compat.runtime.tensor import Tensor


@functional("nansum", out_type=True)
def nansum(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements other than NaN."""
    array = cast(self.array, sum_type(self.array, dtype))
    if "c" in {self.array.dtype.kind, array.dtype.kind}:
        raise fail("nansum does not support complex inputs")
    kept = np.where(np.isnan(array), np.zeros((), array.dtype), array) if array.dtype.kind not in "iub" else array
    return Tensor(exact_sum(kept, axes(dim, array.ndim), keepdims=keepdim))


@functional("nanmean")
def nanmean(self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements other than NaN."""
    if self.array.dtype.kind in "iub":
        raise fail(f"nanmean(): expected input to have floating point or complex dtype but got {words(self.array.dtype)}")
    array = cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind in "iub":
        raise fail(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {words(array.dtype)}"
        )
    if "c" in {self.array.dtype.kind, array.dtype.kind}:
        raise fail("nansum does not support complex inputs")
    result = axes(dim, array.ndim)
    there = ~np.isnan(array)
    total = exact_sum(np.where(there, array, np.zeros((), array.dtype)), result, keepdims=keepdim)
    return Tensor(np.asarray(total.astype(FLOAT64) / there.sum(axis=result, keepdims=keepdim)).astype(array.dtype))
