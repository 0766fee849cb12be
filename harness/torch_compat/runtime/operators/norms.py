"""Norms of vectors, and distances by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    Array,
    Scalar,
    any_dtype,
    axes,
    axis,
    broadcast,
    cast,
    common,
    dtypes_finfo,
    fail,
    functional,
    words,
)
from torch_compat.runtime.operators.reductions import Dims, once
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor


def norm_of(array: Array, p: float, dims: tuple[int, ...], *, keepdims: bool, alone: bool) -> Array:
    """The p-norm of vectors, in double precision.

    Parameters:
        alone: whether the norm of one element is its absolute value, as from 2.4 on; else its power, which may overflow, and the root of that.
    """
    size = np.abs(array.astype(np.complex128) if array.dtype.kind == "c" else array.astype(FLOAT64))
    if p == math.inf:
        return np.asarray(size.max(axis=dims, keepdims=keepdims))
    if p == -math.inf:
        return np.asarray(size.min(axis=dims, keepdims=keepdims))
    if p == 0:
        return np.asarray((size != 0).sum(axis=dims, keepdims=keepdims).astype(FLOAT64))
    if p == 1:
        return np.asarray(size.sum(axis=dims, keepdims=keepdims))
    if alone and all(size.shape[one] == 1 for one in dims):
        return np.asarray(size.sum(axis=dims, keepdims=keepdims))
    total = np.asarray((size * size if p == 2 else size**p).sum(axis=dims, keepdims=keepdims))
    if _real_type(array.dtype) != FLOAT64:  # what single precision cannot hold, torch has lost
        single = total.astype(FLOAT32)
        total = np.where(np.isfinite(single) & (single != 0), total, single)
    return np.asarray(np.sqrt(total) if p == 2 else total ** (1 / p))


def _real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return FLOAT32 if dtype == np.complex64 else FLOAT64 if dtype.kind == "c" else dtype


@functional("norm")
def norm_1_0(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.6 a dimension may stand twice, and up to 1.7 the greatest of nothing but zeros is the least normal number.

    1.6 squares complex numbers as they are, and takes a root of the sum.
    """
    dims, array = once(dim, self.array.ndim), cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind == "c" and (p is None or float(p.real) == 2):
        wide = array.astype(np.complex128)
        total = (wide * wide).sum(axis=axes(dims, array.ndim), keepdims=keepdim)
        return Tensor(np.asarray(np.sqrt(total)).astype(array.dtype))
    return _of_own_type(norm_1_8(self, p, dims, keepdim, dtype=dtype), array.dtype, p, some=bool(array.size))


def _of_own_type(found: Tensor, dtype: np.dtype[Any], p: Scalar | None, *, some: bool) -> Tensor:
    """Up to 1.7 a length of complex numbers is complex, with nothing imaginary."""
    found = _above_zero(found) if some and p is not None and float(p.real) == math.inf else found
    return Tensor(found.array.astype(dtype)) if dtype.kind == "c" else found


def _above_zero(found: Tensor) -> Tensor:
    array = found.array
    least = np.asarray(dtypes_finfo(array.dtype).smallest_normal, array.dtype)
    return Tensor(np.asarray(np.where(array < least, least, array)))


@functional("norm", since="1.7.0")
def norm_1_7(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The greatest of nothing but zeros is the least normal number, and squares of complex numbers are refused."""
    kind = any_dtype(dtype, self.array.dtype)
    if kind.kind == "c" and (p is None or float(p.real) == 2):
        raise fail("norm with p=2 not supported for complex tensors")
    return _of_own_type(norm_1_8(self, p, dim, keepdim, dtype=dtype), kind, p, some=bool(self.array.size))


@functional("norm", since="1.8.0")
def norm_1_8(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.13 the greatest and the least of nothing are 0."""
    return _norm(self, p, dim, keepdim, dtype, alone=False, refuses=False)


@functional("norm", since="2.0.0")
def norm_2_0(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 2.3 one element is raised to a power as any others."""
    return _norm(self, p, dim, keepdim, dtype, alone=False)


@functional("norm", since="2.4.0")
def norm(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Of vectors, over all dimensions unless told otherwise."""
    return _norm(self, p, dim, keepdim, dtype, alone=True)


def _norm(self: Tensor, p: Scalar | None, dim: Dims, keepdim: bool, dtype: Any, *, alone: bool, refuses: bool = True) -> Tensor:
    array = cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind in "iub":
        raise fail(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {words(array.dtype)}")
    power, dims = 2.0 if p is None else float(p.real), axes(dim, array.ndim)
    if (power < 0 or power == math.inf) and not all(array.shape[one] for one in dims):
        if refuses:
            raise fail(
                f"linalg.vector_norm cannot compute the {power:g} norm on an empty tensor because the operation does not have an identity"
            )
        return Tensor(np.zeros_like(array.sum(axis=dims, keepdims=keepdim), _real_type(array.dtype)))
    return Tensor(norm_of(array, power, dims, keepdims=keepdim, alone=alone).astype(_real_type(array.dtype)))


@functional("linalg_vector_norm")
def linalg_vector_norm_1_0(
    self: Tensor,
    ord: Scalar = 2,  # noqa: A002
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """As :func:`norm_2_0`."""
    return norm_2_0(self, ord, dim, keepdim, dtype=dtype)


@functional("linalg_vector_norm", since="2.4.0")
def linalg_vector_norm(self: Tensor, ord: Scalar = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """As :func:`norm`."""
    return norm(self, ord, dim, keepdim, dtype=dtype)


@functional("frobenius_norm")
def frobenius_norm_1_0(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Up to 1.6 a dimension may stand twice, and of complex numbers only lists of other than one dimension have real norms."""
    if self.array.dtype.kind == "c" and (dim is None or isinstance(dim, int) or len(dim) == 1):
        return norm_1_0(self, 2, dim, keepdim)
    return frobenius_norm_1_7(self, once(dim, self.array.ndim), keepdim)


@functional("frobenius_norm", since="1.7.0")
def frobenius_norm_1_7(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """As :func:`norm_1_8`."""
    return norm_1_8(self, 2, dim, keepdim)


@functional("frobenius_norm", since="2.4.0")
def frobenius_norm(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The 2-norm."""
    return norm(self, 2, dim, keepdim)


@functional("dist", out=False)
def dist_1_0(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """Up to 1.7 as :func:`norm_1_7`."""
    found = dist_1_8(self, other, p)
    kind = common(self, other)[0].dtype
    if kind.kind == "c" and float(p.real) == 2:
        raise fail("norm with p=2 not supported for complex tensors")
    return _of_own_type(found, kind, p, some=bool(self.array.size and other.array.size))


@functional("dist", out=False, since="1.8.0")
def dist_1_8(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """As :func:`norm_1_8`."""
    return norm_1_8(_gap(self, other), p)


@functional("dist", out=False, since="2.0.0")
def dist_2_0(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """As :func:`norm_2_0`."""
    return norm_2_0(_gap(self, other), p)


@functional("dist", out=False, since="2.4.0")
def dist(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """The norm of the difference."""
    return norm(_gap(self, other), p)


def _gap(self: Tensor, other: Tensor) -> Tensor:
    if BOOL in {self.array.dtype, other.array.dtype}:
        raise fail("Subtraction, the `-` operator, with a bool tensor is not supported.")
    x, y = common(self, other)
    broadcast(x, y)
    return Tensor(x - y)


@functional("renorm", inplace=True)
def renorm_1_0(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar) -> Tensor:
    """As :func:`norm_1_8`."""
    return _renorm(self, p, dim, maxnorm, alone=False)


@functional("renorm", inplace=True, since="2.4.0")
def renorm(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar) -> Tensor:
    """Slices whose norm is above a limit are scaled down to it."""
    return _renorm(self, p, dim, maxnorm, alone=True)


def _renorm(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar, *, alone: bool) -> Tensor:
    array = self.array
    at = axis(dim, array.ndim)
    if not float(p.real) > 0:
        raise fail("renorm: non-positive-norm not supported")
    if array.ndim < 2:
        raise fail(f"renorm: input needs at least 2 dimensions, got {array.ndim} dimensions")
    others = tuple(one for one in range(array.ndim) if one != at)
    size = norm_of(array, float(p.real), others, keepdims=True, alone=alone)
    limit = float(maxnorm.real)
    if limit < 0:
        raise fail(f"renorm: expected maxnorm to be >= 0 but got {limit:g}")
    factor = np.where(size > limit, limit / (size + 1e-7), 1.0)
    return Tensor((array * factor.astype(_real_type(array.dtype))).astype(array.dtype))


@operator("aten::native_norm")
def native_norm(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Of sparse tensors alone."""
    del self, p, dim, keepdim, dtype
    raise fail("Could not run 'aten::native_norm' with arguments from the 'CPU' backend.")
