"""Convolutions of one to three dimensions and their transposes, by windows and matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.operators._common import BOOL, FLOAT32, Array, fail, not_implemented, sizes, words
from torch_compat.runtime.operators._convolution_order import LIBRARY, LIBRARY_1_6, MATRICES, MATRICES_1_8, ordered
from torch_compat.runtime.operators._products import exact, looped, multiplied, sized, summed
from torch_compat.runtime.operators._transposed_order import transposed_in_order
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

Sizes = int | list[int]
VOLUMES = 3  # number of spatial dimensions of a volume
ALONE = "1.11.0"
"""Before this release, a contiguous input without a batch gets a batch dimension in place, which is visible to the program."""
ERAS = (
    ("1.0.0", LIBRARY),
    ("1.6.0", LIBRARY_1_6),
    ("1.7.0", MATRICES),
    ("1.8.0", MATRICES_1_8),
    (ALONE, MATRICES_1_8),
)
"""The order in which products are added, by release; see :mod:`torch_compat.runtime.operators._convolution_order`."""


def windows(
    array: Array, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], out: tuple[int, ...]
) -> Array:
    """A view of the last dimensions as windows: of ``[..., *spatial]``, ``[..., *out, *kernel]``."""
    n = len(kernel)
    tensor = Tensor(array)
    lead, steps = array.shape[:-n], tensor.strides
    shape = (*lead, *out, *kernel)
    strides = (
        *steps[:-n],
        *(step * s for step, s in zip(steps[-n:], stride, strict=True)),
        *(step * d for step, d in zip(steps[-n:], dilation, strict=True)),
    )
    return tensor.as_strided(shape, strides).array


def convolve(
    x: Array,
    w: Array,
    b: Array | None,
    stride: tuple[int, ...],
    padding: list[tuple[int, int]],
    dilation: tuple[int, ...],
    groups: int,
    era: int,
) -> Array:
    """``x`` is [batch, channels, *spatial], ``w`` is [outputs, channels / groups, *kernel]."""
    kernel = w.shape[2:]
    spatial = x.shape[2:]
    out = tuple(
        (size + before + after - d * (k - 1) - 1) // s + 1
        for size, (before, after), d, k, s in zip(spatial, padding, dilation, kernel, stride, strict=True)
    )
    if any(size < 1 for size in out):
        padded = [size + a + c for size, (a, c) in zip(spatial, padding, strict=True)]
        raise fail(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: ({' x '.join(map(str, kernel))}). Kernel size "
            "can't be greater than actual input size"
        )
    wide = exact(x)
    around = any(pair != (0, 0) for pair in padding)
    sized(*wide.shape[:2], *(size + sum(pair) for size, pair in zip(wide.shape[2:], padding, strict=True)))
    wide = np.pad(wide, [(0, 0), (0, 0), *padding]) if around else np.ascontiguousarray(wide)
    batch, outputs, each = x.shape[0], w.shape[0], w.shape[1]
    seen = windows(wide, kernel, stride, dilation, out)
    n = len(kernel)
    if x.dtype == FLOAT32 and n < VOLUMES and np.isfinite(w).all():
        strided, dilated = max(stride) > 1, max(dilation) > 1
        result = ordered(seen, w, b, x.size, groups, era, padded=around, strided=strided, dilated=dilated)
        if result is not None:
            return result
    count = math.prod(kernel)
    places = math.prod(out)
    weights = exact(w).reshape(groups, outputs // groups, each * count)
    sized(batch, groups, each, count, places)
    # [batch, groups, channels of a group * kernel, places]
    columns = seen.reshape(batch, groups, each, *out, *kernel)
    columns = columns.transpose(0, 1, 2, *range(3 + n, 3 + 2 * n), *range(3, 3 + n)).reshape(batch, groups, each * count, places)
    value = multiplied(weights, columns).reshape(batch, outputs, *out)
    if b is not None:
        value = value + exact(b).reshape(1, outputs, *(1,) * n)
    return value.astype(x.dtype, copy=False)


def convolve_transposed(
    x: Array, w: Array, b: Array | None, stride: tuple[int, ...], padding: tuple[int, ...], output_padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int,
) -> Array:  # fmt: skip
    """``w`` is [channels, outputs / groups, *kernel]; every input element adds its part to a window of the output."""
    kernel, spatial = w.shape[2:], x.shape[2:]
    n = len(kernel)
    full = tuple(
        (size - 1) * s + d * (k - 1) + 1 + extra
        for size, s, d, k, extra in zip(spatial, stride, dilation, kernel, output_padding, strict=True)
    )
    left = min(size - 2 * p for size, p in zip(full, padding, strict=True))
    if left < 0:
        result = " x ".join(str(size - 2 * p) for size, p in zip(full, padding, strict=True))
        raise fail(
            f"Given input size per channel: ({' x '.join(map(str, spatial))}). Calculated output size per channel: ({result}). Output size is too small"
        )
    batch, channels, each = x.shape[0], x.shape[1], w.shape[1]
    wide = exact(x).reshape(batch, groups, channels // groups, *spatial)
    weights = exact(w).reshape(groups, channels // groups, each, *kernel)
    sized(batch, groups, each, *full)
    ordered_value = transposed_in_order(x, w, stride, padding, dilation, full, groups) if x.dtype == FLOAT32 else None
    value = np.zeros((batch, groups, each, *full), wide.dtype) if ordered_value is None else ordered_value
    looped(math.prod(kernel))
    for place in np.ndindex(*kernel) if ordered_value is None else ():
        share = summed("bgc...,gco->bgo...", wide, weights[(slice(None), slice(None), slice(None), *place)])
        where = tuple(
            slice(p * d, p * d + (size - 1) * s + 1, s) for p, d, size, s in zip(place, dilation, spatial, stride, strict=True)
        )
        value[(slice(None), slice(None), slice(None), *where)] += share
    cut = tuple(slice(p, size - p) for p, size in zip(padding, full, strict=True))
    value = value[(slice(None), slice(None), slice(None), *cut)].reshape(
        batch, groups * each, *(size - 2 * p for size, p in zip(full, padding, strict=True))
    )
    if b is not None:
        value = value + (exact(b) if ordered_value is None else b).reshape(1, -1, *(1,) * n)
    return value.astype(x.dtype, copy=False)


def _checked(x: Array, w: Array, b: Array | None) -> None:
    if x.dtype != w.dtype:
        raise fail(f"Input type ({words(x.dtype)}) and weight type ({words(w.dtype)}) should be the same")
    if b is not None and b.dtype != x.dtype:
        raise fail(f"Input type ({words(x.dtype)}) and bias type ({words(b.dtype)}) should be the same")
    if x.dtype == BOOL:
        raise not_implemented("slow_conv2d_cpu", x.dtype)


def convolution_of(
    x: Array,
    w: Array,
    b: Array | None,
    stride: Sizes,
    padding: Any,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *,
    spatial: int | None,
    era: int = MATRICES_1_8,
) -> Array:
    """Any convolution. Inputs of ``spatial + 1`` dimensions have no batch, those of ``spatial + 2`` do; if ``spatial`` is None, all do."""
    _checked(x, w, b)
    n = w.ndim - 2
    if spatial is not None and x.ndim not in {spatial + 1, spatial + 2}:
        raise fail(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input, but got input of size: {list(x.shape)}"
        )
    if n < 1:
        raise fail("weight should have at least three dimensions")
    alone = spatial is not None and x.ndim == spatial + 1
    if x.ndim + alone != n + 2:
        raise fail(
            f"Expected {n + 2}-dimensional input for {n + 2}-dimensional weight {list(w.shape)}, but got {x.ndim}-dimensional input of size {list(x.shape)} instead"
        )
    full = x[None] if alone else x
    s, d = sizes(stride, n), sizes(dilation, n)
    if not isinstance(output_padding, int) and len(output_padding) not in {1, n}:
        raise fail(
            f"expected output_padding to be a single integer value or a list of {n} values to match the convolution dimensions, but got "
            f"output_padding={list(output_padding)}"
        )
    more = sizes(output_padding, n)
    if not isinstance(padding, str) and any(size < 0 for size in sizes(padding, n)):
        raise fail("negative padding is not supported")
    if any(size < 0 for size in more):
        raise fail("negative output_padding is not supported")
    if any(item <= 0 for item in s):
        raise fail("non-positive stride is not supported")
    if any(item <= 0 for item in d):
        raise fail("dilation should be greater than zero")
    if transposed and any(size >= step and size >= apart for size, step, apart in zip(more, s, d, strict=True)):
        raise fail(
            f"output padding must be smaller than either stride or dilation, but got output_padding: {list(more)} stride: {list(s)} dilation: {list(d)}"
        )
    if b is not None and b.ndim != 1:
        raise fail(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional, but got bias of size {list(b.shape)} instead"
        )
    wanted = w.shape[0] if transposed else w.shape[1] * groups
    if full.shape[1] != wanted:
        raise fail(
            f"Given groups={groups}, weight of size {list(w.shape)}, expected input{list(full.shape)} to have {wanted} channels, but got "
            f"{full.shape[1]} channels instead"
        )
    if b is not None and b.size != (w.shape[1] * groups if transposed else w.shape[0]):
        raise fail(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {w.shape[0]} elements, but got bias of size {list(b.shape)} instead"
        )
    if transposed:
        value = convolve_transposed(full, w, b, s, sizes(padding, n), more, d, groups)
    else:
        if isinstance(padding, str):
            if padding == "valid":
                pads = [(0, 0)] * n
            else:
                if padding != "same":
                    raise fail(f"Invalid padding string: '{padding[:80]}'")
                if not all(w.shape[2:]):
                    raise fail("padding='same' requires a non-empty kernel")
                if any(item != 1 for item in s):
                    raise fail("padding='same' is not supported for strided convolutions")
                totals = [item * (k - 1) for item, k in zip(d, w.shape[2:], strict=True)]
                pads = [(total // 2, total - total // 2) for total in totals]
        else:
            pads = [(size, size) for size in sizes(padding, n)]
        value = convolve(full, w, b, s, pads, d, groups, era)
    return value[0] if alone else value


def _convolutions(n: int) -> None:
    # Inputs without a batch dimension are accepted since 1.11.
    for since, era in ERAS if n < VOLUMES else (ERAS[0], (ALONE, MATRICES_1_8)):
        spatial = n if Release(since) >= Release(ALONE) else None

        def call(
            input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1,  # noqa: A002
            spatial: int | None = spatial, era: int = era,
        ) -> Tensor:  # fmt: skip
            b = None if bias is None else bias.array
            return Tensor(
                convolution_of(
                    input.array, weight.array, b, stride, padding, dilation, False, 0, groups, spatial=spatial, era=era
                )
            )

        def transposed(
            input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,  # noqa: A002
            groups: int = 1, dilation: Sizes = 1, spatial: int | None = spatial,
        ) -> Tensor:  # fmt: skip
            b = None if bias is None else bias.array
            return Tensor(
                convolution_of(
                    input.array, weight.array, b, stride, padding, dilation, True, output_padding, groups, spatial=spatial
                )
            )

        operator(f"aten::conv{n}d", since=since)(call)
        if since in {"1.0.0", ALONE}:
            operator(f"aten::conv_transpose{n}d", since=since)(transposed)


for _n in (1, 2, 3):
    _convolutions(_n)


def _general() -> None:
    for since, era in ERAS:
        if since == ALONE:
            continue

        def convolution(
            input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, transposed: bool, output_padding: Sizes,  # noqa: A002
            groups: int, *flags: bool, era: int = era,
        ) -> Tensor:  # fmt: skip
            """Called by traced programs; the flags choose between libraries."""
            del flags
            b = None if bias is None else bias.array
            result = convolution_of(
                input.array, weight.array, b, stride, padding, dilation, transposed, output_padding, groups, spatial=None, era=era
            )
            return Tensor(result)

        operator("aten::_convolution", "aten::convolution", "aten::convolution_overrideable", since=since)(convolution)


_general()


@operator("aten::conv_tbc")
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve [time, batch, channels]; negative padding crops the input."""
    x, w = self.array.transpose(1, 2, 0), weight.array.transpose(2, 1, 0)
    if pad < 0:
        x, pad = x[..., -pad : x.shape[-1] + pad], 0
        if x.shape[-1] == w.shape[-1] - 1 and x.size:  # no output is left
            return Tensor(np.empty((0, x.shape[0], w.shape[0]), x.dtype))
    return Tensor(convolution_of(x, w, bias.array, 1, pad, 1, False, 0, 1, spatial=None).transpose(2, 0, 1))


def _two(**given: Any) -> None:
    for name, value in given.items():
        if len(value) != 2:
            raise fail(f"It is expected {name} equals to 2, but got size {len(value)}")
        if name != "padding" and any(item <= 0 for item in value):
            raise fail(f"{name} should be greater than zero, but got {list(value)}")
        if any(item < 0 for item in value):
            raise fail(f"{name} should be non-negative, but got {list(value)}")


def _give_batch(self: Tensor, ndim: int) -> None:
    if self.array.ndim == ndim and self.array.flags.c_contiguous:
        self.array = self.array[None]


def _blocks(
    size: tuple[int, ...], kernel: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[int, ...], stride: tuple[int, ...]
) -> tuple[int, ...]:
    """The number of windows along each dimension, possibly zero."""
    return tuple(
        (number + 2 * b - e * (c - 1) - 1) // f + 1
        for number, b, e, c, f in zip(size, padding, dilation, kernel, stride, strict=True)
    )


@operator("aten::im2col", since=ALONE)
@operator("aten::unfold_nd")
def im2col(self: Tensor, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Windows as columns."""
    _two(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    x = self.array
    alone = x.ndim == 3
    full = x[None] if alone else x
    k, d, p, s = (sizes(item, 2) for item in (kernel_size, dilation, padding, stride))
    out = _blocks(full.shape[2:], k, d, p, s)
    if min(out) < 1:
        raise fail(
            f"Given input with spatial size {full.shape[2:]}, kernel_size={k}, dilation={d}, padding={p}, calculated shape of the array of "
            f"sliding blocks as {out}, but its components must be at least one."
        )
    sized(*full.shape[:2], full.shape[2] + 2 * p[0], full.shape[3] + 2 * p[1])
    wide = np.pad(full, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
    seen = windows(wide, k, s, d, out).transpose(0, 1, 4, 5, 2, 3)
    value = seen.reshape(full.shape[0], full.shape[1] * k[0] * k[1], out[0] * out[1])
    return Tensor(value[0] if alone else value)


@operator("aten::col2im", since=ALONE)
def col2im(self: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Sum columns into the positions of their windows."""
    _two(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    x = self.array
    alone = x.ndim == 2
    if x.ndim not in {2, 3}:
        raise fail(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
            f"{list(x.shape)}"
        )
    full = x[None] if alone else x
    o, k, d, p, s = (sizes(item, 2) for item in (output_size, kernel_size, dilation, padding, stride))
    out = _blocks(o, k, d, p, s)
    if full.shape[1] % (k[0] * k[1]):
        raise fail(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={full.shape[1]} and kernel_size={k}."
        )
    if full.shape[2] != math.prod(out):
        raise fail(
            f"Given output_size={o}, kernel_size={k}, dilation={d}, padding={p}, stride={s}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {out[0]} * {out[1]} = {math.prod(out)}, but got input.size(2)={full.shape[2]}."
        )
    channels = full.shape[1] // (k[0] * k[1])
    parts = full.reshape(full.shape[0], channels, k[0], k[1], *out)
    sized(full.shape[0], channels, o[0] + 2 * p[0], o[1] + 2 * p[1])
    value = np.zeros((full.shape[0], channels, o[0] + 2 * p[0], o[1] + 2 * p[1]), full.dtype)
    looped(math.prod(k), parts.size // max(1, math.prod(k)))
    for i, j in np.ndindex(*k):
        rows = slice(i * d[0], i * d[0] + s[0] * (out[0] - 1) + 1, s[0])
        columns = slice(j * d[1], j * d[1] + s[1] * (out[1] - 1) + 1, s[1])
        value[:, :, rows, columns] += parts[:, :, i, j]
    value = np.ascontiguousarray(value[:, :, p[0] : p[0] + o[0], p[1] : p[1] + o[1]])
    return Tensor(value[0] if alone else value)


@operator("aten::im2col")
def im2col_1_0(self: Tensor, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Up to 1.10 a batch dimension is added to an input without one."""
    result = im2col(self, kernel_size, dilation, padding, stride)
    _give_batch(self, 3)
    return result


@operator("aten::col2im")
def col2im_1_0(self: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    """Up to 1.10 a batch dimension is added to an input without one."""
    result = col2im(self, output_size, kernel_size, dilation, padding, stride)
    _give_batch(self, 2)
    return result
