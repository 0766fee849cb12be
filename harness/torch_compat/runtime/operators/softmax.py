"""Softmax and its logarithm; float32 is computed in the same steps as the kernels of each release."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array, any_dtype, axis, cast, fail, functional
from torch_compat.runtime.operators._sums import LANES, lanes_sum
from torch_compat.runtime.operators._vectors import double_exponential, exponential, rounded_exponential
from torch_compat.runtime.operators.activations import floats_only
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["log_softmax_of", "softmax_of"]


def _in_order(powers: Array, at: int) -> Array:
    """Sum along a dimension sequentially, and keep the dimension with size one."""
    result = np.add.accumulate(powers, axis=at, dtype=powers.dtype)
    return np.take(result, [-1], axis=at)


def _across(below: Array, at: int) -> Array:
    """Exponentials for a dimension other than the last: inner elements are computed in vectors, the remaining ones one by one."""
    inner = math.prod(below.shape[at + 1 :])
    whole = np.arange(inner).reshape(below.shape[at + 1 :]) < inner // LANES * LANES
    return np.where(whole, exponential(below), rounded_exponential(below))


def softmax_of(array: Array, at: int, *, pairs: bool = True, narrow: bool = True) -> Array:
    """Exponentials that sum to one; float32 and float64 are computed in the steps of the kernels, other dtypes in double precision.

    Parameters:
        pairs: whether lanes of float32 are added in pairs, as of 1.12.
        narrow: whether sums along dimensions other than the last are in float32, as of 1.10.
    """
    if not array.ndim:
        return np.where(np.isnan(array), array, np.ones((), array.dtype)).astype(array.dtype)
    if array.dtype == FLOAT32 and array.size:
        below = array - array.max(axis=at, keepdims=True)
        if at == array.ndim - 1:
            powers = exponential(below)
            return np.asarray(powers * (np.ones((), FLOAT32) / lanes_sum(powers, at, pairs=pairs)))
        if narrow:
            powers = _across(below, at)
            return np.asarray(powers / _in_order(powers, at))
        wider = rounded_exponential(below).astype(FLOAT64)
        return np.asarray((wider / _in_order(wider, at)).astype(FLOAT32))
    x = array.astype(FLOAT64)
    if not x.size:
        return array.copy()
    powers = double_exponential(x - x.max(axis=at, keepdims=True))
    if array.dtype == FLOAT64:
        if at == array.ndim - 1:
            return np.asarray(powers * (1 / lanes_sum(powers, at, pairs=False)))
        return np.asarray(powers / _in_order(powers, at))
    return (powers / powers.sum(axis=at, keepdims=True)).astype(array.dtype)


def log_softmax_of(array: Array, at: int, *, pairs: bool = True, narrow: bool = True) -> Array:
    """The logarithm of softmax.

    Parameters:
        pairs: the same as for softmax.
        narrow: the same as for softmax, but as of 1.13.
    """
    if array.dtype == FLOAT32 and array.size and array.ndim:
        below = array - array.max(axis=at, keepdims=True)
        if at == array.ndim - 1 or narrow:
            last = at == array.ndim - 1
            total = lanes_sum(exponential(below), at, pairs=pairs) if last else _in_order(_across(below, at), at)
            return np.asarray(below - np.log(total.astype(FLOAT64)).astype(FLOAT32))
        wider = _in_order(rounded_exponential(below).astype(FLOAT64), at)
        return np.asarray((below.astype(FLOAT64) - np.log(wider)).astype(FLOAT32))
    x = array.astype(FLOAT64)
    if not x.size:
        return array.copy()
    if not x.ndim:
        return np.where(np.isfinite(x), 0.0, np.nan).astype(array.dtype)
    shifted = x - x.max(axis=at, keepdims=True)
    powers = double_exponential(shifted)
    if array.dtype == FLOAT64:
        total = lanes_sum(powers, at, pairs=False) if at == array.ndim - 1 else _in_order(powers, at)
    else:
        total = powers.sum(axis=at, keepdims=True)
    return (shifted - np.log(total)).astype(array.dtype)


def _softmax(name: str, compute: Callable[[Array, int], Array], since: str = "1.0.0") -> None:
    def call(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
        array = cast(self.array, any_dtype(dtype, self.array.dtype))
        axis(dim, array.ndim)
        if not array.size and array.dtype.kind in "iub":
            return Tensor(array.copy())
        floats_only(f"{name}_lastdim_kernel_impl" if axis(dim, array.ndim) == array.ndim - 1 else f"{name}_kernel_impl", array)
        computed = compute(array, axis(dim, array.ndim))
        return Tensor(np.asarray(computed, order="C"))  # row-major in all releases, whatever the layout of the input

    def raw(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        if half_to_float:
            raise fail(f"{name} with half to float conversion is not supported on CPU")
        return call(self, dim)

    functional(name, since=since)(call)
    operator(f"aten::special_{name}", since=since)(call)
    functional(f"_{name}", since=since)(raw)


_softmax("softmax", partial(softmax_of, pairs=False, narrow=False))
_softmax("softmax", partial(softmax_of, pairs=False), "1.10.0")
_softmax("softmax", softmax_of, "1.12.0")
_softmax("log_softmax", partial(log_softmax_of, pairs=False, narrow=False))
_softmax("log_softmax", partial(log_softmax_of, narrow=False), "1.12.0")
_softmax("log_softmax", log_softmax_of, "1.13.0")


@operator("aten::softmin")
def softmin(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The softmax of the negated input."""
    return Tensor(softmax_of(-cast(self.array, any_dtype(dtype, self.array.dtype)), axis(dim, self.array.ndim)))
