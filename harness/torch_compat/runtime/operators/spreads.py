"""Variances and standard deviations, alone or together with the mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array, Scalar, axes, fail, functional, into, words
from torch_compat.runtime.operators.reductions import once
from torch_compat.runtime.tensor import Tensor


def spread(array: Array, dims: tuple[int, ...], correction: float, *, keepdims: bool, whole: bool = False) -> tuple[Array, Array]:
    """Variance and mean in double precision (squares of complex64 in single precision), not yet rounded to the tensor's dtype.

    Parameters:
        whole: whether the mean of all elements is rounded to their dtype first, in which their sum may overflow.
    """
    if array.dtype.kind in "iub":
        raise fail("std and var only support floating point and complex dtypes")
    exact = array.astype(np.complex128 if array.dtype.kind == "c" else FLOAT64)
    count = np.asarray(float(math.prod(array.shape[dim] for dim in dims)))
    total = exact.sum(axis=dims, keepdims=True)
    if whole:
        center = (total.astype(array.dtype) / count.astype(array.dtype)).astype(FLOAT64)
    else:
        center = np.where(np.isinf(total), (exact / count).sum(axis=dims, keepdims=True), total / count)
    gap, rest = exact - center, np.asarray(max(0.0, float(count) - correction))  # NaN gives 0
    # Complex variances are the sum over both parts; 0 / 0 is NaN.
    parts = [gap.real, gap.imag] if array.dtype.kind == "c" else [gap]
    if array.dtype == np.complex64:
        parts = [part.astype(FLOAT32) for part in parts]
    value = sum((part * part).astype(FLOAT64).sum(axis=dims, keepdims=keepdims) / rest for part in parts)
    return np.asarray(value), np.asarray(center if keepdims else center.reshape(np.shape(value)))


def _spreads(name: str, *, root: bool, with_mean: bool) -> None:
    def call_1_0(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        """Up to 1.5 the sum of all float64 elements may overflow; the root of an infinite complex variance has a NaN imaginary part."""
        return first(
            self,
            once(dim, self.array.ndim),
            unbiased,
            keepdim,
            correction=correction,
            sums=whole(dim) and not with_mean and self.array.dtype == FLOAT64,
        )

    def call_1_6(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        return first(self, once(dim, self.array.ndim), unbiased, keepdim, correction=correction, sums=False)

    def first(self: Tensor, dim: Any, unbiased: bool, keepdim: bool, *, correction: Scalar | None, sums: bool) -> Any:
        result = of_own_type(compute(self, dim, unbiased, keepdim, correction, sums=sums), self, whole=whole(dim))
        value = (result[0] if with_mean else result).array
        if root and value.dtype.kind == "c":
            value[np.isinf(value.real)] = complex(math.inf, math.nan)
        return result

    def call_1_7(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        if self.array.dtype.kind == "c" and self.array.size and not with_mean and whole(dim):
            raise fail(f"_th_{name} not supported on CPUType for {words(self.array.dtype)}")
        return of_own_type(
            compute(self, dim, unbiased, keepdim, correction, sums=whole(dim) and not with_mean), self, whole=whole(dim)
        )

    def whole(dim: Any) -> bool:
        """Whether a call uses the overload without dimensions."""
        return dim is None or dim.__class__ is bool

    def of_own_type(item: Any, self: Tensor, *, whole: bool) -> Any:
        """Up to 1.8 results for complex numbers are complex, with an imaginary part of 0."""
        if self.array.dtype.kind != "c":
            return item
        first, *others = item if with_mean else (item,)
        value = first.array.astype(self.array.dtype)
        first = Tensor(root_of_nan(value) if root and (self.array.size or with_mean or not whole) else value)
        return (first, *others) if with_mean else first

    def root_of_nan(value: Array) -> Array:
        """The root of a complex NaN is NaN in both parts."""
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
        """As of 1.9 roots are taken in the dtype of ``out``, which may be complex."""
        tensor = call(self, dim, unbiased, keepdim, correction=correction)
        if out is None:
            return tensor
        return into(
            out, root_of_nan(tensor.array.astype(out.array.dtype)) if root and out.array.dtype.kind == "c" else tensor.array
        )

    def call(
        self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Scalar | None = None
    ) -> Any:
        """Compute results; over all elements, the mean is rounded first."""
        dims = axes(None if dim.__class__ is bool else dim, self.array.ndim)
        single = all(self.array.shape[at] == 1 for at in range(self.array.ndim) if at not in dims)
        return compute(self, dim, unbiased, keepdim, correction, sums=single and not with_mean)

    def compute(self: Tensor, dim: Any, unbiased: bool, keepdim: bool, correction: Scalar | None, *, sums: bool) -> Any:
        """Compute results; with ``sums``, the sum of all float32 or float64 elements may overflow."""
        if dim.__class__ is bool:  # the overload without dimensions
            dim, unbiased = None, dim
        array = self.array
        amount = float(correction.real) if correction is not None else float(unbiased)
        if not array.size:
            amount = 0.0  # 0 / 0, whatever the correction
        variance, center = spread(
            array, axes(dim, array.ndim), amount, keepdims=keepdim, whole=sums and array.dtype in (FLOAT32, FLOAT64)
        )
        value = np.sqrt(variance) if root else variance
        real = np.dtype(np.float32) if array.dtype == np.complex64 else (FLOAT64 if array.dtype.kind == "c" else array.dtype)
        first = Tensor(np.asarray(value).astype(real))
        return (first, Tensor(center.astype(array.dtype))) if with_mean else first

    functional(name)(call_1_0)
    if not with_mean:
        functional(name, since="1.6.0")(call_1_6)
    functional(name, since="1.7.0")(call_1_7)
    functional(name, since="1.9.0")(call if with_mean else call_1_9)


_spreads("std", root=True, with_mean=False)
_spreads("var", root=False, with_mean=False)
_spreads("std_mean", root=True, with_mean=True)
_spreads("var_mean", root=False, with_mean=True)
