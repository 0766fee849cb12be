"""Fourier transforms: the old ones, whose last dimension holds the parts (up to 1.7), and those of ``torch.fft``."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array, axis, fail, floating, full_words, functional
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised


def _checked(self: Tensor) -> Array:
    if self.array.dtype not in {FLOAT32, FLOAT64}:
        raise fail(
            f"Expected an input tensor of floating types, but got input={full_words(self.array.dtype)}{list(self.array.shape)}"
        )
    return self.array.astype(FLOAT64)


def _norm(normalized: bool) -> Any:
    return "ortho" if normalized else "backward"


def _pairs(self: Tensor, value: Array) -> Tensor:
    return Tensor(np.stack([value.real, value.imag], axis=-1).astype(self.array.dtype))


def _complex(array: Array) -> Array:
    if array.shape[-1] != 2:
        raise fail("Expected an input tensor with a last dimension of size 2 representing real + imaginary components")
    return array[..., 0] + 1j * array[..., 1]


MOST_DIMENSIONS = 3


def _last(array: Array, count: int) -> tuple[int, ...]:
    """The dimensions of a signal."""
    if not 1 <= count <= MOST_DIMENSIONS:
        raise fail(f"Expected signal_ndim to be 1, 2, or 3, but got signal_ndim={count}")
    return tuple(range(array.ndim - count, array.ndim))


@operator("aten::rfft")
def rfft(self: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> Tensor:
    """Of real numbers."""
    array = _checked(self)
    dims = _last(array, signal_ndim)
    transform: Any = np.fft.rfftn if onesided else np.fft.fftn
    return _pairs(self, transform(array, axes=dims, norm=_norm(normalized)))


@operator("aten::irfft")
def irfft(self: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True, signal_sizes: Any = ()) -> Tensor:
    """Back to real numbers; without sizes the last one is taken for odd."""
    values = _complex(_checked(self))
    dims = _last(values, signal_ndim)
    if not onesided:
        return Tensor(np.fft.ifftn(values, axes=dims, norm=_norm(normalized)).real.astype(self.array.dtype))
    sizes = list(signal_sizes) or [*values.shape[values.ndim - signal_ndim : -1], (values.shape[-1] - 1) * 2 + 1]
    if len(sizes) != len(dims) or any(one < 1 for one in sizes):
        raise fail(f"Given signal_ndim={signal_ndim}, expected as many sizes of at least 1, but got {sizes}")
    values = _fitted(values, sizes, dims, back=True)
    return Tensor(np.fft.irfftn(values, s=sizes, axes=dims, norm=_norm(normalized)).astype(self.array.dtype))


def _whole(name: str, transform: Any) -> None:
    def call(self: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
        values = _complex(_checked(self))
        return _pairs(self, transform(values, axes=_last(values, signal_ndim), norm=_norm(normalized)))

    operator(f"aten::{name}")(call)


_whole("fft", np.fft.fftn)
_whole("ifft", np.fft.ifftn)


# -------------------------------------------------------------------------------------------------------------- torch.fft


def _fitted(array: Array, sizes: Any, axes: Any, *, back: bool) -> Array:
    """The array with as many points as a transform takes: cut, or filled up with zeros. numpy itself fills up with whatever it finds
    where there is nothing.

    Parameters:
        back: whether the last transform makes real numbers, of half as many points and one.
    """
    wanted = dict(zip(axes, sizes, strict=True))
    if back and axes:
        wanted[axes[-1]] = sizes[-1] // 2 + 1
    shape = tuple(wanted.get(at, size) for at, size in enumerate(array.shape))
    if any(one < 0 for one in shape):
        raise fail(f"Invalid number of data points ({min(shape)}) specified")
    sized(*shape)
    if shape == array.shape:
        return array
    fitted = np.zeros(shape, array.dtype)
    both = tuple(slice(0, min(here, there)) for here, there in zip(array.shape, shape, strict=True))
    fitted[both] = array[both]
    return fitted


def _kinds(array: Array) -> tuple[np.dtype[Any], np.dtype[Any]]:
    double = array.dtype in {FLOAT64, np.dtype(np.complex128)}
    return (FLOAT64, np.dtype(np.complex128)) if double else (FLOAT32, np.dtype(np.complex64))


def _one(name: str, transform: Any, *, real: bool) -> None:
    def call(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        array = floating(self.array)
        kinds = _kinds(array)
        at = axis(dim, array.ndim)
        if n is not None and array.ndim:
            if n < 1:
                raise fail(f"Invalid number of data points ({n}) specified")
            array = _fitted(array, [n], [at], back=real)
        value = transform(array, n, at, norm or "backward")
        return Tensor(np.asarray(value).astype(kinds[0 if real else 1]))

    functional(f"fft_{name}")(call)


def _several(name: str, transform: Any, *, real: bool, dims: tuple[int, ...] | None) -> None:
    def call(self: Tensor, s: Any = None, dim: Any = dims, norm: str | None = None) -> Tensor:
        array = floating(self.array)
        kinds = _kinds(array)
        sizes = None if s is None else list(s)
        axes = None if dim is None else [axis(one, array.ndim) for one in ([dim] if dim.__class__ is int else dim)]
        if axes is not None and len(set(axes)) != len(axes):
            raise fail("FFT dims must be unique")
        if axes is not None and sizes is not None and len(axes) != len(sizes):
            raise fail("When given, dim and shape arguments must have the same length")
        if axes is None and sizes is not None:
            if len(sizes) > array.ndim:
                raise fail(f"Got shape with {len(sizes)} values but input tensor only has {array.ndim} dimensions.")
            axes = list(range(array.ndim - len(sizes), array.ndim))
        if sizes is not None:
            sizes = [array.shape[at] if one == -1 else one for one, at in zip(sizes, axes or [], strict=True)]
            if real and axes and list(s)[-1] == -1:
                sizes[-1] = 2 * (array.shape[axes[-1]] - 1)
        points = [array.shape[at] for at in (range(array.ndim) if axes is None else axes)] if sizes is None else list(sizes)
        if sizes is None and real and points:
            points[-1] = 2 * (points[-1] - 1)
        if any(one < 1 for one in points):
            raise fail(f"Invalid number of data points ({next(one for one in points if one < 1)}) specified")
        if sizes is not None:
            array = _fitted(array, sizes, axes or [], back=real)
        value = transform(array, sizes, axes, norm or "backward")
        return Tensor(np.asarray(value).astype(kinds[0 if real else 1]))

    functional(f"fft_{name}")(call)


for _name, _real in (("fft", False), ("ifft", False), ("rfft", False), ("irfft", True), ("hfft", True), ("ihfft", False)):
    _one(_name, getattr(np.fft, _name), real=_real)
for _name, _real in (("fft", False), ("ifft", False), ("rfft", False), ("irfft", True)):
    _several(f"{_name}n", getattr(np.fft, f"{_name}n"), real=_real, dims=None)
    _several(f"{_name}2", getattr(np.fft, f"{_name}n"), real=_real, dims=(-2, -1))


def _shifted(self: Tensor, dim: Any) -> tuple[int, ...]:
    """The dimensions to shift along; to shift along none is refused."""
    ndim = self.array.ndim
    dims = tuple(range(ndim)) if dim is None else tuple(axis(one, ndim) for one in ([dim] if dim.__class__ is int else dim))
    if not dims:
        raise fail("`shifts` required")
    if not ndim:
        raise raised("IndexError", "Dimension specified as 0 but tensor has no dimensions")
    return dims


@operator("aten::fft_fftshift")
def fftshift(self: Tensor, dim: Any = None) -> Tensor:
    """Zero frequency in the middle."""
    return Tensor(np.fft.fftshift(self.array, _shifted(self, dim)))


@operator("aten::fft_ifftshift")
def ifftshift(self: Tensor, dim: Any = None) -> Tensor:
    """The other way round."""
    return Tensor(np.fft.ifftshift(self.array, _shifted(self, dim)))
