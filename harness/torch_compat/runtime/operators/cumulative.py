"""Cumulative sums, products, extrema, and log-sum-exp."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime.dtypes import as_dtype
from torch_compat.runtime.operators._common import (
    FLOAT32,
    FLOAT64,
    HALVES,
    INT64,
    axis,
    cast,
    fail,
    functional,
    not_implemented,
)
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators.reductions import sum_type
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor


def _running(name: str, accumulate: Any) -> None:
    def call(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        array = cast(self.array, sum_type(self.array, dtype))
        at = axis(dim, array.ndim)
        if not array.ndim:
            return Tensor(array.copy())
        exact = array.astype(FLOAT64) if array.dtype == FLOAT32 or array.dtype in HALVES else array
        running = accumulate(exact, axis=at, dtype=exact.dtype)
        if accumulate is np.cumsum:
            running = running + np.zeros((), exact.dtype)  # a sum starts at zero, which is not negative
        return Tensor(running.astype(array.dtype))

    functional(name, out_type=True)(call)

    def in_place(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        named = as_dtype(dtype)
        if named is not None and named is not self.dtype:
            raise fail(
                f"Bad in-place call: input tensor dtype {self.dtype.name} and output tensor dtype {named.name} should match"
            )
        return _store(self, call(self, dim, dtype=dtype))

    operator(f"aten::{name}_")(in_place)


def _store(self: Tensor, value: Tensor) -> Tensor:
    self.array[...] = cast(value.array, self.array.dtype)
    return self


_running("cumsum", np.cumsum)
_running("cumprod", np.cumprod)


@functional("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """The logarithm of cumulative sums of exponentials."""
    array = self.array
    if array.dtype.kind in "iub":
        raise not_implemented("logcumsumexp_out_cpu", array.dtype)
    axis(dim, array.ndim)
    if not array.ndim:
        return Tensor(array.copy())
    if array.dtype.kind == "c":
        return Tensor(np.log(np.cumsum(np.exp(array.astype(np.complex128)), axis=axis(dim, array.ndim))).astype(array.dtype))
    return Tensor(np.logaddexp.accumulate(array.astype(FLOAT64), axis=axis(dim, array.ndim)).astype(array.dtype))


def _running_extreme(name: str, since: str, *, largest: bool, checked: bool) -> None:
    """Register from one release on; up to 2.6 a zero-dimensional tensor accepts any ``dim``."""

    def call(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        array = self.array
        if not array.ndim and not checked:
            return Tensor(array.copy()), Tensor(np.zeros((), INT64))
        at = axis(dim, array.ndim)
        if not array.ndim:
            return Tensor(array.copy()), Tensor(np.zeros((), INT64))
        moved = np.moveaxis(array, at, 0)
        values, places = np.empty_like(moved), np.zeros(moved.shape, INT64)
        for step in range(looped(moved.shape[0])):
            if not step:
                values[0] = moved[0]
                continue
            row, best = moved[step], values[step - 1]
            better = row >= best if largest else row <= best
            if array.dtype.kind not in "iub":
                better = (better & ~np.isnan(best)) | np.isnan(row)
            values[step] = np.where(better, row, best)
            places[step] = np.where(better, step, places[step - 1])
        return Tensor(np.moveaxis(values, 0, at)), Tensor(np.moveaxis(places, 0, at))

    functional(name, since=since)(call)


for _since, _checked in (("1.0.0", False), ("2.7.0", True)):
    _running_extreme("cummax", _since, largest=True, checked=_checked)
    _running_extreme("cummin", _since, largest=False, checked=_checked)
