"""Fourier transforms: the old ones, whose last dimension holds real and imaginary parts (up to 1.7), and those of ``torch.fft``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    HALVES,
    Array,
    any_dtype,
    axis,
    fail,
    floating,
    full_words,
    functional,
    into,
    not_implemented,
    words,
)
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators.factories import check_options
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """The transform of real numbers."""
    array = _checked(self)
    dims = _last(array, signal_ndim)
    transform: Any = np.fft.rfftn if onesided else np.fft.fftn
    return _pairs(self, transform(array, axes=dims, norm=_norm(normalized)))


@operator("aten::irfft")
def irfft(self: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True, signal_sizes: Any = ()) -> Tensor:
    """The inverse transform to real numbers; without sizes, the last size is assumed to be odd."""
    values = _complex(_checked(self))
    dims = _last(values, signal_ndim)
    if signal_sizes and len(signal_sizes) != signal_ndim:
        raise fail(
            f"Expected signal_sizes to be empty (default) or of signal_ndim={signal_ndim}D, but got signal_sizes={list(signal_sizes)}"
        )
    if not onesided:
        return Tensor(np.fft.ifftn(values, axes=dims, norm=_norm(normalized)).real.astype(self.array.dtype))
    sizes = list(signal_sizes) or [*values.shape[values.ndim - signal_ndim : -1], (values.shape[-1] - 1) * 2 + 1]
    if len(sizes) != len(dims) or any(size < 1 for size in sizes):
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
    """The array with as many points as a transform takes: truncated, or padded with zeros. If there is no data, numpy itself pads with
    arbitrary values.

    Parameters:
        back: whether the last transform returns real numbers, computed from half as many points plus one.
    """
    wanted = dict(zip(axes, sizes, strict=True))
    if back and axes:
        wanted[axes[-1]] = sizes[-1] // 2 + 1
    shape = tuple(wanted.get(at, size) for at, size in enumerate(array.shape))
    if any(size < 0 for size in shape):
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


def _scaling(norm: str | None) -> Any:
    """The name of a normalization mode in numpy.

    Raises:
        Raised: the mode is unknown.
    """
    if norm not in {None, "forward", "backward", "ortho"}:
        raise fail(f'Invalid normalization mode: "{norm}"')
    return norm or "backward"


def _one(name: str, transform: Any, *, real: bool) -> None:
    def call(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        array = floating(self.array)
        kinds = _kinds(array)
        at = axis(dim, array.ndim)
        if n is not None and array.ndim:
            if n < 1:
                raise fail(f"Invalid number of data points ({n}) specified")
            array = _fitted(array, [n], [at], back=real)
        elif array.ndim and (points := 2 * (array.shape[at] - 1) if real else array.shape[at]) < 1:
            raise fail(f"Invalid number of data points ({points}) specified")
        value = transform(array, n, at, _scaling(norm))
        return Tensor(np.asarray(value).astype(kinds[0 if real else 1]))

    functional(f"fft_{name}")(call)


def _several(transform: Any, *, real: bool, dims: tuple[int, ...] | None, none: bool = True) -> Callable[..., Tensor]:
    """A transform along several dimensions; along none, where ``none`` allows it, a copy."""

    def call(self: Tensor, s: Any = None, dim: Any = dims, norm: str | None = None) -> Tensor:
        array = floating(self.array)
        kinds = _kinds(array)
        sizes = None if s is None else list(s)
        axes = None if dim is None else [axis(item, array.ndim) for item in ([dim] if dim.__class__ is int else dim)]
        if axes is not None and len(set(axes)) != len(axes):
            raise fail("FFT dims must be unique")
        if axes == [] and not none:
            raise fail("MKL FFT error: Intel MKL DFTI ERROR: Invalid configuration parameters")
        if axes is not None and sizes is not None and len(axes) != len(sizes):
            raise fail("When given, dim and shape arguments must have the same length")
        if axes is None and sizes is not None:
            if len(sizes) > array.ndim:
                raise fail(f"Got shape with {len(sizes)} values but input tensor only has {array.ndim} dimensions.")
            axes = list(range(array.ndim - len(sizes), array.ndim))
        if sizes is not None:
            sizes = [array.shape[at] if size == -1 else size for size, at in zip(sizes, axes or [], strict=True)]
            if real and axes and list(s)[-1] == -1:
                sizes[-1] = 2 * (array.shape[axes[-1]] - 1)
        points = [array.shape[at] for at in (range(array.ndim) if axes is None else axes)] if sizes is None else list(sizes)
        if sizes is None and real and points:
            points[-1] = 2 * (points[-1] - 1)
        if any(point < 1 for point in points):
            raise fail(f"Invalid number of data points ({next(point for point in points if point < 1)}) specified")
        if sizes is not None:
            array = _fitted(array, sizes, axes or [], back=real)
        value = transform(array, sizes, axes, _scaling(norm))
        return Tensor(np.asarray(value).astype(kinds[0 if real else 1]))

    return call


for _name, _real in (("fft", False), ("ifft", False), ("rfft", False), ("irfft", True), ("hfft", True), ("ihfft", False)):
    _one(_name, getattr(np.fft, _name), real=_real)
for _name, _real in (("fft", False), ("ifft", False), ("rfft", False), ("irfft", True)):
    for _since, _none in (("1.0.0", False), ("2.3.0", True)) if _name in {"fft", "ifft"} else (("1.0.0", True),):
        functional(f"fft_{_name}n", since=_since)(_several(getattr(np.fft, f"{_name}n"), real=_real, dims=None, none=_none))
        functional(f"fft_{_name}2", since=_since)(_several(getattr(np.fft, f"{_name}n"), real=_real, dims=(-2, -1), none=_none))


BACK: dict[str | None, Any] = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The normalization of the inverse transform for each normalization of the transform."""


def _hermitian(array: Array, sizes: Any, axes: Any, norm: str | None) -> Array:
    """Real numbers from half of a Hermitian signal, which is the conjugate of its reverse."""
    _not_half(array)
    return np.fft.irfftn(np.conj(array), sizes, axes, BACK[norm])


def _half(array: Array, sizes: Any, axes: Any, norm: str | None) -> Array:
    """The inverse: half of such a signal, from real numbers."""
    _not_half(array)
    if array.dtype.kind == "c":
        raise fail(f"ihfftn expects a real-valued input tensor, but got {words(array.dtype)}")
    return np.conj(np.fft.rfftn(array, sizes, axes, BACK[norm]))


def _not_half(array: Array) -> None:
    if array.dtype in HALVES:
        raise fail(f"Unsupported dtype {words(array.dtype)}")


def _halves(name: str, dims: tuple[int, ...] | None) -> None:
    transform = _several(_half, real=False, dims=dims)

    def call(self: Tensor, s: Any = None, dim: Any = dims, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        """Along a single dimension ``out`` stays unchanged: every release writes elsewhere."""
        result = transform(self, s, dim, norm)
        if out is None:
            return result
        if (self.array.ndim if s is None and dim is None else len(s if dim is None else dim)) != 1:
            return into(out, result.array)
        if out.array.dtype != result.array.dtype:
            raise fail(f"Found dtype {words(result.array.dtype)} but expected {words(out.array.dtype)}")
        return out

    operator(f"aten::{name}")(call)


for _name, _dims in (("n", None), ("2", (-2, -1))):
    functional(f"fft_hfft{_name}")(_several(_hermitian, real=True, dims=_dims))
    _halves(f"fft_ihfft{_name}", _dims)


def _frequencies(n: int, d: float, dtype: Any, out: Tensor | None, *, half: bool, halves: bool) -> Tensor:
    """The frequencies of a transform of n points with spacing d.

    Parameters:
        half: whether to return only the frequencies of a transform of real numbers.
        halves: whether float16 is supported.
    """
    kind = out.array.dtype if out is not None else any_dtype(dtype, dtypes.default_dtype().array)
    if kind.kind in "iub":
        raise fail(f"{'rfftfreq' if half else 'fftfreq'} requires a floating point or complex dtype")
    if kind.kind == "c" or (kind == FLOAT16 and not halves):
        raise not_implemented("arange_cpu", kind)
    count = math.trunc(n / 2) + 1 if half else n
    if count < 0 or (half and n < -1):
        raise fail(f"Trying to create tensor with negative dimension {count}: [{count}]")
    sized(count)
    first = 0 if half else -(n // 2)
    steps: Any = np.arange(first, first + count)
    if not half:
        steps = np.roll(steps, first)
    with np.errstate(all="ignore"):
        scale: Any = np.float64(1) / np.float64(n * d)
        wide: Any = FLOAT64 if kind == FLOAT64 else FLOAT32
        result = (steps.astype(kind).astype(wide) * scale.astype(wide)).astype(kind)
    return Tensor(result) if out is None else into(out, result)


def _registered(name: str, *, half: bool) -> None:
    for since, halves in (("1.0.0", False), ("1.13.0", True)):

        def call(
            n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, out: Tensor | None = None,
            _halves: bool = halves,
        ) -> Tensor:  # fmt: skip
            """Up to 1.12 float16 is not supported."""
            check_options({"layout": layout, "pin_memory": pin_memory, "device": device})
            return _frequencies(n, d, dtype, out, half=half, halves=_halves)

        operator(f"aten::{name}", since=since)(call)


_registered("fft_fftfreq", half=False)
_registered("fft_rfftfreq", half=True)


def _shifted(self: Tensor, dim: Any) -> tuple[int, ...]:
    """The dimensions to shift along; an empty list is refused."""
    ndim = self.array.ndim
    dims = tuple(range(ndim)) if dim is None else tuple(axis(item, ndim) for item in ([dim] if dim.__class__ is int else dim))
    if not dims:
        raise fail("`shifts` required")
    if not ndim:
        raise raised("IndexError", "Dimension specified as 0 but tensor has no dimensions")
    return dims


@operator("aten::fft_fftshift")
def fftshift(self: Tensor, dim: Any = None) -> Tensor:
    """Move zero frequency to the center."""
    return Tensor(np.fft.fftshift(self.array, _shifted(self, dim)))


@operator("aten::fft_ifftshift")
def ifftshift(self: Tensor, dim: Any = None) -> Tensor:
    """The inverse shift."""
    return Tensor(np.fft.ifftshift(self.array, _shifted(self, dim)))


RETURNS_COMPLEX = Release("2.0.0")


def _stft(since: str) -> None:
    """Up to 1.7 the result is pairs of real numbers unless complex numbers are requested; from 2.0 on the program must choose."""

    def call(
        self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, *rest: Any,
        **keywords: Any,
    ) -> Tensor:  # fmt: skip
        names = ["normalized", "onesided", "return_complex", "align_to_window"]
        if "center" in keywords or "pad_mode" in keywords or (len(rest) > 1 and rest[1].__class__ is str):
            names = ["center", "pad_mode", *names]
        given = {**dict(zip(names, rest, strict=False)), **keywords}
        array = self.array
        if array.dtype.kind not in "fc":
            raise fail(
                f"stft({full_words(array.dtype)}{list(array.shape)}, ...): expected a tensor of floating point or complex values"
            )
        if not 1 <= array.ndim <= 2:
            raise fail("stft: expected a 1D or 2D tensor")
        single = array.ndim == 1
        rows = array.reshape(1, -1) if single else array
        if given.get("center", "pad_mode" in names):
            mode = given.get("pad_mode", "reflect")
            rows = np.pad(
                rows,
                ((0, 0), (n_fft // 2, n_fft // 2)),
                {"constant": "constant", "replicate": "edge", "circular": "wrap"}.get(mode, mode),
            )
        hop = n_fft // 4 if hop_length is None else hop_length
        length = n_fft if win_length is None else win_length
        if not 0 < n_fft <= rows.shape[1] or hop <= 0 or not 0 < length <= n_fft:
            raise fail(f"stft: expected 0 < n_fft <= {rows.shape[1]}, hop_length > 0 and 0 < win_length <= n_fft")
        if window is not None and window.array.shape != (length,):
            raise fail(
                f"stft: expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.array.shape)}"
            )
        exact = rows.astype(np.complex128 if rows.dtype.kind == "c" else FLOAT64)
        frames = 1 + (rows.shape[1] - n_fft) // hop
        sized(rows.shape[0], frames, n_fft)
        pieces = np.stack([exact[:, at * hop : at * hop + n_fft] for at in range(looped(frames))], axis=1)
        if window is not None or length < n_fft:
            left = (n_fft - length) // 2
            shape = np.zeros(n_fft, exact.dtype if window is not None and window.array.dtype.kind == "c" else FLOAT64)
            shape[left : left + length] = 1.0 if window is None else window.array
            pieces = pieces * shape
        whole = pieces.dtype.kind == "c"
        onesided = given.get("onesided")
        onesided = not whole if onesided is None else onesided
        if whole and onesided:
            raise fail("Cannot have onesided output if window or input is complex")
        result = (np.fft.rfft if onesided else np.fft.fft)(pieces, axis=-1).swapaxes(1, 2)
        if given.get("normalized"):
            result = result * n_fft**-0.5
        wants = given.get("return_complex")
        if wants is None:
            if Release(since) >= RETURNS_COMPLEX and not whole:
                raise fail(
                    "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release."
                )
            wants = whole
        result = result[0] if single else result
        kind = array.dtype if array.dtype.kind == "c" else _kinds(array)[1]
        if wants:
            return Tensor(result.astype(kind))
        return Tensor(np.stack([result.real, result.imag], axis=-1).astype(_kinds(array)[0] if array.dtype.kind != "c" else kind))

    operator("aten::stft", since=since)(call)


_stft("1.0.0")
_stft("2.0.0")


@operator("aten::istft")
def istft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose windows were transformed; each element is divided by the sum of the squares of the windows that contain it."""
    array = self.array
    values = array.astype(np.complex128) if array.dtype.kind == "c" else _complex(array.astype(FLOAT64))
    single = values.ndim == 2
    values = values[None] if single else values
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    onesided = values.shape[1] != n_fft if onesided is None else onesided
    if values.shape[1] != (n_fft // 2 + 1 if onesided else n_fft) or not values.size or not 0 < hop <= size <= n_fft:
        raise fail("istft: expected the frequency dimension (3rd to the last) and the lengths to match n_fft")
    shape = np.zeros(n_fft)
    left = (n_fft - size) // 2
    shape[left : left + size] = 1.0 if window is None else window.array
    if normalized:
        values = values * n_fft**0.5
    pieces = values.swapaxes(1, 2)
    pieces = np.fft.irfft(pieces, n_fft, axis=-1) if onesided else np.fft.ifft(pieces, axis=-1)
    pieces = pieces if return_complex else pieces.real
    frames = pieces.shape[1]
    total = n_fft + hop * (frames - 1)
    sized(values.shape[0], total)
    signal, weight = np.zeros((values.shape[0], total), pieces.dtype), np.zeros(total)
    for at in range(looped(frames)):
        signal[:, at * hop : at * hop + n_fft] += pieces[:, at] * shape
        weight[at * hop : at * hop + n_fft] += shape * shape
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else (total - n_fft // 2 if center else total)
    signal, weight = signal[:, start:end], weight[start:end]
    if not weight.size or np.abs(weight).min() <= 1e-11:
        raise fail("istft: window overlap add min: 1")
    signal = signal / weight
    if length is not None and signal.shape[1] < length:
        signal = np.pad(signal, ((0, 0), (0, length - signal.shape[1])))
    kind = _kinds(np.empty(0, array.dtype if array.dtype.kind != "c" else FLOAT64 if array.dtype == np.complex128 else FLOAT32))
    return Tensor((signal[0] if single else signal).astype(kind[1] if return_complex else kind[0]))
