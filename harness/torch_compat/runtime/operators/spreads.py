"""Variances and standard deviations, alone or beside the mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT64, Array, Scalar, axes, fail, functional, into, words
from torch_compat.runtime.operators.reductions import once
from torch_compat.runtime.tensor import Tensor


def spread(array: Array, dims: tuple[int, ...], correction: float, *, keepdims: bool) -> tuple[Array, Array]:
    """Variance and mean, in double precision; not rounded to the tensor's type yet."""
    if array.dtype.kind in "iub":
        raise fail("std and var only support floating point and complex dtypes")
    exact = array.astype(np.complex128 if array.dtype.kind == "c" else FLOAT64)
    count = math.prod(array.shape[one] for one in dims)
    center = exact.sum(axis=dims, keepdims=True) / np.asarray(float(count))
    gap, rest = exact - center, np.asarray(max(count - correction, 0.0))
    # Of complex numbers, both parts have their variance, which is NaN where nothing is divided by nothing.
    parts = [gap.real, gap.imag] if array.dtype.kind == "c" else [gap]
    value = sum((one * one).sum(axis=dims, keepdims=keepdims) / rest for one in parts)
    return np.asarray(value), np.asarray(center if keepdims else center.reshape(np.shape(value)))


def _spreads(name: str, *, root: bool, with_mean: bool) -> None:
    def call_1_0(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        found = call(self, once(dim, self.array.ndim), unbiased, keepdim, correction=correction)
        return of_own_type(found, self, whole=whole(dim))

    def call_1_7(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        if self.array.dtype.kind == "c" and self.array.size and not with_mean and whole(dim):
            raise fail(f"_th_{name} not supported on CPUType for {words(self.array.dtype)}")
        return of_own_type(call(self, dim, unbiased, keepdim, correction=correction), self, whole=whole(dim))

    def whole(dim: Any) -> bool:
        """Whether a call is of the overload without dimensions."""
        return dim is None or dim.__class__ is bool

    def of_own_type(found: Any, self: Tensor, *, whole: bool) -> Any:
        """Up to 1.8 what complex numbers have is complex, with nothing imaginary."""
        if self.array.dtype.kind != "c":
            return found
        first, *others = found if with_mean else (found,)
        value = first.array.astype(self.array.dtype)
        first = Tensor(root_of_nan(value) if root and (self.array.size or with_mean or not whole) else value)
        return (first, *others) if with_mean else first

    def root_of_nan(value: Array) -> Array:
        """The root of a complex number that is not a number has no part that is one."""
        return np.asarray(np.where(np.isnan(value.real), np.asarray(complex(math.nan, math.nan), value.dtype), value))

    def call_1_9(
        self: Tensor,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Scalar | None = None,
        out: Tensor | None = None,
    ) -> Any:
        """Roots are taken in ``out``, which may be complex."""
        found = call(self, dim, unbiased, keepdim, correction=correction)
        if out is None:
            return found
        return into(
            out, root_of_nan(found.array.astype(out.array.dtype)) if root and out.array.dtype.kind == "c" else found.array
        )

    def call(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        if dim.__class__ is bool:  # the overload without dimensions
            dim, unbiased = None, dim
        array = self.array
        amount = float(correction.real) if correction is not None else float(unbiased)
        if not array.size:
            amount = 0.0  # nothing over nothing, whatever is taken off
        variance, center = spread(array, axes(dim, array.ndim), amount, keepdims=keepdim)
        value = np.sqrt(variance) if root else variance
        real = np.dtype(np.float32) if array.dtype == np.complex64 else (FLOAT64 if array.dtype.kind == "c" else array.dtype)
        first = Tensor(np.asarray(value).astype(real))
        return (first, Tensor(center.astype(array.dtype))) if with_mean else first

    functional(name)(call_1_0)
    functional(name, since="1.7.0")(call_1_7)
    functional(name, since="1.9.0")(call if with_mean else call_1_9)


_spreads("std", root=True, with_mean=False)
_spreads("var", root=False, with_mean=False)
_spreads("std_mean", root=True, with_mean=True)
_spreads("var_mean", root=False, with_mean=True)
