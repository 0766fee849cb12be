"""Functions of complex numbers that releases up to 2.6 compute with formulas of their own: asin, acos and rsqrt."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT64, Array, floating, functional
from torch_compat.runtime.operators.pointwise import single, through_double
from torch_compat.runtime.tensor import Tensor


def _made(dtype: np.dtype[Any], real: Array, imag: Array) -> Array:
    """A complex array from its parts."""
    made = np.empty(np.shape(real), dtype)
    made.real, made.imag = real, imag
    return made


def _asin_1_0(array: Array) -> Array:
    """Up to 2.6, complex numbers are computed as ``-i * log(i * z + sqrt(1 - z * z))`` in their own precision.

    The formula is inaccurate for large numbers and small results (``Vectorized<c10::complex<T>>::asin`` in
    ``aten/src/ATen/cpu/vec/vec256/vec256_complex_double.h``).
    """
    if array.dtype.kind != "c":
        return _asin(array)
    a, b = array.real, array.imag
    half = -(a * b)
    root = np.sqrt(_made(array.dtype, 1 - (a * a - b * b), half + half))
    logarithm = np.log(_made(array.dtype, -b + root.real, a + root.imag))
    return _made(array.dtype, logarithm.imag, -logarithm.real)


def _acos_1_0(array: Array) -> Array:
    """Up to 2.6, complex numbers are computed as ``pi / 2 - asin(z)``; complex64 up to 1.8."""
    if array.dtype.kind != "c":
        return _acos(array)
    sine = _asin_1_0(array)
    return _made(array.dtype, sine.real.dtype.type(np.pi / 2) - sine.real, 0 - sine.imag)


def _acos_1_9(array: Array) -> Array:
    """As of 1.9, only complex128 is computed as ``pi / 2 - asin(z)``."""
    return _acos_1_0(array) if array.dtype == np.complex128 else _acos(array)


_asin, _acos = through_double(np.arcsin), through_double(np.arccos)
single(("asin", "arcsin"), _asin_1_0)
single(("acos", "arccos"), _acos_1_0)


@functional("acos", "arccos", inplace=True, since="1.9.0")
def acos_1_9(self: Tensor) -> Tensor:
    """As of 1.9, complex64 is computed accurately; complex128 as before."""
    return Tensor(np.asarray(_acos_1_9(floating(self.array))))


@functional("asin", "arcsin", inplace=True, since="2.7.0")
def asin(self: Tensor) -> Tensor:
    """The inverse sine; complex numbers are computed accurately."""
    return Tensor(np.asarray(_asin(floating(self.array))))


@functional("acos", "arccos", inplace=True, since="2.7.0")
def acos(self: Tensor) -> Tensor:
    """The inverse cosine; complex numbers are computed accurately."""
    return Tensor(np.asarray(_acos(floating(self.array))))


def _rsqrt(array: Array) -> Array:
    return (1 / np.sqrt(array.astype(FLOAT64) if array.dtype.kind != "c" else array)).astype(array.dtype)


def _rsqrt_1_0(array: Array) -> Array:
    """Up to 1.13, the result for a complex zero is NaN.

    Raises:
        Unsupported: a complex number is infinite; vectors and single elements differ.
    """
    if array.dtype.kind != "c":
        return _rsqrt(array)
    if np.isinf(array).any():
        raise Unsupported(
            "the reference reader does not support aten::rsqrt of infinite complex numbers up to 1.13", code="operator"
        )
    return np.where(array == 0, array.dtype.type(complex(np.nan, np.nan)), _rsqrt(array))


single(("rsqrt",), _rsqrt_1_0)


@functional("rsqrt", inplace=True, since="2.0.0")
def rsqrt_2_0(self: Tensor) -> Tensor:
    """Up to 2.6, complex numbers that are zero or infinite are not modeled.

    Raises:
        Unsupported: a complex number is zero or infinite; vectors and single elements differ.
    """
    if self.array.dtype.kind == "c" and (np.isinf(self.array) | (self.array == 0)).any():
        raise Unsupported(
            "the reference reader does not support aten::rsqrt of zero or infinite complex numbers up to 2.6", code="operator"
        )
    return rsqrt(self)


@functional("rsqrt", inplace=True, since="2.7.0")
def rsqrt(self: Tensor) -> Tensor:
    """The reciprocal of the square root."""
    return Tensor(np.asarray(_rsqrt(floating(self.array))))
