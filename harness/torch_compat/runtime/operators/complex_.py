"""Complex numbers: real and imaginary parts, angles, conjugates, and views as pairs of real numbers."""

from __future__ import annotations

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, broadcast, fail, floating, functional, words
from torch_compat.runtime.operators.views import of_view
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

HALF = np.dtype(np.float16)


def _half() -> Unsupported:
    """Pairs of float16 numbers are complex32, which numpy does not have; some releases refuse them (1.6 and 1.11 views, up to 1.11 pairs)."""
    return Unsupported("the reference reader cannot compute with torch.complex32", code="dtype")


def _refusing(self: Tensor) -> Tensor:
    if self.array.dtype.kind != "c":
        raise fail("real is not implemented for tensors with non-complex dtypes.")
    return of_view(self, self.array.real)


# Real tensors were refused from 1.6 to 1.10.
operator("aten::real")(lambda self: of_view(self, self.array.real) if self.array.dtype.kind == "c" else self)
operator("aten::real", since="1.6.0")(_refusing)
operator("aten::real", since="1.11.0")(lambda self: of_view(self, self.array.real) if self.array.dtype.kind == "c" else self)


@operator("aten::imag")
def imag(self: Tensor) -> Tensor:
    """A view of the imaginary part."""
    if self.array.dtype.kind != "c":
        raise fail("imag is not implemented for tensors with non-complex dtypes.")
    return of_view(self, self.array.imag)


@functional("conj", "_conj", "conj_physical", "_conj_physical")
def conj(self: Tensor) -> Tensor:
    """The conjugate; real tensors are returned as they are."""
    return Tensor(np.conj(self.array)) if self.array.dtype.kind == "c" else self


@functional("conj", "_conj", since="1.10.0")
def conj_1_10(self: Tensor) -> Tensor:
    """Since 1.10 the result is a view of the memory; here, later writes to one of the two do not reach the other."""
    if self.mirrors is not None:
        return Tensor(self.mirrors)
    tensor = conj(self)
    if tensor is not self:
        tensor.mirrors = self.array
    return tensor


@operator("aten::resolve_conj", "aten::resolve_neg")
def resolve(self: Tensor) -> Tensor:
    """The tensor itself, or a copy of a conjugate view."""
    return self if self.mirrors is None else Tensor(self.array.copy())


@functional("angle")
def angle_1_0(self: Tensor) -> Tensor:
    """Up to 1.7 the angle of real numbers is zero."""
    array = self.array
    return angle(self) if array.dtype.kind == "c" else Tensor(np.zeros_like(array))


@functional("angle", since="1.8.0")
def angle(self: Tensor) -> Tensor:
    """The angle of complex numbers; pi for negative real numbers."""
    array = floating(self.array)
    if array.dtype.kind == "c":
        return Tensor(np.angle(array).astype(FLOAT32 if array.dtype == np.complex64 else FLOAT64))
    return Tensor(np.where(np.isnan(array), array, np.where(array < 0, np.pi, 0.0)).astype(array.dtype))


@operator("aten::view_as_real")
def view_as_real(self: Tensor) -> Tensor:
    """View complex numbers as pairs of real numbers."""
    array = self.array
    if array.dtype.kind != "c":
        raise fail("view_as_real is only supported for complex tensors")
    kind = FLOAT32 if array.dtype == np.complex64 else FLOAT64
    return of_view(self, array[..., None].view(kind))


@operator("aten::view_as_complex")
def view_as_complex(self: Tensor) -> Tensor:
    """View pairs of real numbers as complex numbers."""
    array = self.array
    if array.dtype == HALF:
        raise _half()
    if array.dtype not in {FLOAT32, FLOAT64}:
        raise fail(
            f"view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: {words(array.dtype)}"
        )
    if not array.ndim or array.shape[-1] != 2:
        raise fail("Tensor must have a last dimension of size 2")
    if array.strides[-1] != array.itemsize:
        raise fail("Tensor must have a last dimension with stride 1")
    return of_view(self, array.view(np.complex64 if array.dtype == FLOAT32 else np.complex128)[..., 0])


@functional("complex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from real and imaginary parts."""
    if real.array.dtype == imag.array.dtype == HALF:
        raise _half()
    if real.array.dtype != imag.array.dtype or real.array.dtype not in {FLOAT32, FLOAT64}:
        raise fail(
            f"Expected both inputs to be Half, Float or Double tensors but got {words(real.array.dtype)} and {words(imag.array.dtype)}"
        )
    result = np.empty(broadcast(real.array, imag.array), np.complex64 if real.array.dtype == FLOAT32 else np.complex128)
    result.real, result.imag = real.array, imag.array
    return Tensor(result)


@functional("polar")
def polar(abs: Tensor, angle: Tensor) -> Tensor:  # noqa: A002
    """Complex numbers from absolute value and angle."""
    if abs.array.dtype != angle.array.dtype:
        raise fail(
            f"Expected object of scalar type {words(abs.array.dtype)} but got scalar type {words(angle.array.dtype)} for second argument"
        )
    if abs.array.dtype == HALF:  # torch's kernel does not support float16 up to 2.13
        raise _half()
    if abs.array.dtype not in {FLOAT32, FLOAT64}:
        raise fail(
            f"Expected both inputs to be Half, Float or Double tensors but got {words(abs.array.dtype)} and {words(angle.array.dtype)}"
        )
    broadcast(abs.array, angle.array)
    value = abs.array.astype(FLOAT64) * np.exp(1j * angle.array.astype(FLOAT64))
    return Tensor(value.astype(np.complex64 if abs.array.dtype == FLOAT32 else np.complex128))
