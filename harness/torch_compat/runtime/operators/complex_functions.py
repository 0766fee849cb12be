"""Functions of complex numbers that releases up to 2.6 compute with formulas of their own: asin, acos and rsqrt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import Array, floating, functional, not_implemented, wide
from torch_compat.runtime.operators.pointwise import through_double
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


TAKES_INTEGERS = Release("1.8.0")
"""As of this release, integers are converted to the default dtype."""


def _made(dtype: np.dtype[Any], real: Array, imag: Array) -> Array:
    """A complex array from its parts."""
    result = np.empty(np.shape(real), dtype)
    result.real, result.imag = real, imag
    return result


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
    """Since 1.9, only complex128 is computed as ``pi / 2 - asin(z)``."""
    return _acos_1_0(array) if array.dtype == np.complex128 else _acos(array)


_asin, _acos = through_double(np.arcsin), through_double(np.arccos)


def _rsqrt(array: Array) -> Array:
    """The reciprocal of the square root, which is rounded first."""
    x = wide(array) if array.dtype.kind != "c" else array
    return np.asarray(np.ones((), x.dtype) / np.sqrt(x)).astype(array.dtype)


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


def _rsqrt_2_0(array: Array) -> Array:
    """Up to 2.6, complex numbers that are zero or infinite are not modeled.

    Raises:
        Unsupported: a complex number is zero or infinite; vectors and single elements differ.
    """
    if array.dtype.kind == "c" and (np.isinf(array) | (array == 0)).any():
        raise Unsupported(
            "the reference reader does not support aten::rsqrt of zero or infinite complex numbers up to 2.6", code="operator"
        )
    return _rsqrt(array)


def _register(names: tuple[str, ...], eras: dict[str, Callable[[Array], Array]]) -> None:
    """Register the versions of a function by their first release; up to 1.7 integers are refused."""

    def version(function: Callable[[Array], Array], *, integers: bool) -> Callable[[Tensor], Tensor]:
        def call(self: Tensor) -> Tensor:
            if not integers and self.array.dtype.kind in "iub":
                raise not_implemented(f"{names[0]}_vml_cpu", self.array.dtype)
            return Tensor(np.asarray(function(floating(self.array))))

        call.__doc__ = function.__doc__
        return call

    for since, function in eras.items():
        functional(*names, inplace=True, since=since)(version(function, integers=Release(since) >= TAKES_INTEGERS))


_register(("asin", "arcsin"), {"1.0.0": _asin_1_0, "1.8.0": _asin_1_0, "2.7.0": _asin})
_register(("acos", "arccos"), {"1.0.0": _acos_1_0, "1.8.0": _acos_1_0, "1.9.0": _acos_1_9, "2.7.0": _acos})
_register(("rsqrt",), {"1.0.0": _rsqrt_1_0, "1.8.0": _rsqrt_1_0, "2.0.0": _rsqrt_2_0, "2.7.0": _rsqrt})
