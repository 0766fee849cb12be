"""Convolutions with weights of 8 bits, as fbgemm computes them.

Padding is the zero point of the input. Results of pictures and volumes are laid out with the channels last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.arrays import repeated
from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import DTYPES
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, Array, fail
from torch_compat.runtime.operators._products import looped, multiplied, sized
from torch_compat.runtime.operators._requantized import activations, per_tensor, quantized_dynamically, requantized
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.operators.convolution import windows
from torch_compat.runtime.operators.quantized import dequantized
from torch_compat.runtime.packed import PackedConvolution
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

LINES, PICTURES, VOLUMES = 1, 2, 3


# ----------------------------------------------------------------------------------------------------------------- packing


def _raised_to_pictures(weight: OpaqueTensor) -> OpaqueTensor:
    """The weight of a convolution of lines as that of pictures with one row."""
    elements = weight.parts.get("elements")
    if elements is not None and elements.ndim == 4:
        return weight
    if elements is None or elements.ndim != 3 or weight.parts.get("axis", 0) > 1:
        raise fail("Weights are expected to have 3 dimensions")
    return OpaqueTensor(
        weight.layout,
        weight.dtype,
        (*weight.shape[:2], 1, weight.shape[2]),
        {**weight.parts, "elements": elements[:, :, None, :]},
    )


def _prepack(name: str, spatial: int, *, since: str = "1.0.0") -> None:
    lines = spatial == LINES

    @typed(f"quantized::{name}", since=since)
    def prepack(
        weight: OpaqueTensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int], groups: int
    ) -> PackedConvolution:
        """Pack the weight and the options of a convolution."""
        parts = [_options(item, lines=lines, rest=rest) for item, rest in ((stride, 1), (padding, 0), (dilation, 1))]
        return PackedConvolution(
            _raised_to_pictures(weight) if lines else weight, bias, max(spatial, 2), stride=parts[0], padding=parts[1],
            dilation=parts[2], output_padding=[0] * max(spatial, 2), groups=groups, transposed=False,
        )  # fmt: skip


def _options(values: list[int], *, lines: bool, rest: int) -> list[int]:
    return [rest, *values] if lines and len(values) == 1 else values


def _prepack_transposed(name: str, spatial: int) -> None:
    lines = spatial == LINES

    @typed(f"quantized::{name}")
    def prepack(
        weight: OpaqueTensor, bias: Tensor | None, stride: list[int], padding: list[int], output_padding: list[int],
        dilation: list[int], groups: int,
    ) -> PackedConvolution:  # fmt: skip
        """Pack the weight and the options of a transposed convolution."""
        given = ((stride, 1), (padding, 0), (output_padding, 0), (dilation, 1))
        parts = [_options(item, lines=lines, rest=rest) for item, rest in given]
        return PackedConvolution(
            _raised_to_pictures(weight) if lines else weight, bias, max(spatial, 2), stride=parts[0], padding=parts[1],
            output_padding=parts[2], dilation=parts[3], groups=groups, transposed=True,
        )  # fmt: skip


def _unpack(name: str, *, lines: bool = False) -> None:
    @typed(f"quantized::{name}")
    def unpack(packed_weights: PackedConvolution) -> tuple[Any, Any]:
        """The weight and the bias."""
        weight, bias = packed_weights.m_unpack()
        if lines:
            elements = weight.parts["elements"][:, :, 0]
            weight = OpaqueTensor(weight.layout, weight.dtype, elements.shape, {**weight.parts, "elements": elements})
        return weight, bias


def _property(name: str, prefix: str) -> None:
    @typed(f"quantized::{prefix}_{name}")
    def found(packed_weights: PackedConvolution) -> Any:
        """An option of a packed convolution."""
        return getattr(packed_weights, f"m_{name}")()


_prepack("conv_prepack", PICTURES)
_unpack("conv_unpack")
for _spatial in (LINES, PICTURES, VOLUMES):
    _prepack(f"conv{_spatial}d_prepack", _spatial)
    _prepack_transposed(f"conv_transpose{_spatial}d_prepack", _spatial)
    for _prefix in (f"conv{_spatial}d", f"conv_transpose{_spatial}d"):
        _unpack(f"{_prefix}_unpack", lines=_spatial == LINES)
        if _spatial != LINES:
            for _name in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
                _property(_name, _prefix)


# ----------------------------------------------------------------------------------------------------------------- sums


def _sums(x: Array, zero: int, packed: PackedConvolution) -> Array:
    """The sums of products without the parts of the zero points: [batch, *places, outputs] as int32."""
    n = packed.spatial
    if x.ndim != n + 2:
        raise fail(f"quantized::conv expects an input with {n + 2} dimensions, but got {x.ndim}")
    if x.shape[1] != packed.inputs:
        raise fail(f"The number of channels in the input ({x.shape[1]}) should be equal to that of the weight: {packed.inputs}")
    spread = x.astype(np.float64) - zero  # padding is zero
    weight = packed.weight.parts["elements"].astype(np.float64)
    if packed.zeros.any():
        along = [1] * weight.ndim
        along[1 if packed.transposed else 0] = -1
        weight = weight - (packed.zeros.reshape(along) if packed.zeros.ndim else packed.zeros)
    if packed.transposed:
        if _by_onednn(packed) and packed.inputs > packed.groups < packed.outputs:
            raise Unsupported(
                "oneDNN computes this transposed convolution on some processors, with other results", code="operator"
            )
        spread, weight, padding = _turned(spread, weight, packed)
        stride = (1,) * n
    else:
        padding, stride = [(item, item) for item in packed.padding], packed.stride
    kernel = weight.shape[2:]
    out = tuple(
        (size + sum(pair) - d * (k - 1) - 1) // s + 1
        for size, pair, d, k, s in zip(spread.shape[2:], padding, packed.dilation, kernel, stride, strict=True)
    )
    if any(size < 1 for size in out):
        raise fail(f"[QConv{n}D] each dimension of output tensor should be greater than 0")
    sized(*spread.shape[:2], *(size + sum(pair) for size, pair in zip(spread.shape[2:], padding, strict=True)))
    wide = np.pad(spread, [(0, 0), (0, 0), *padding])
    seen = windows(wide, kernel, stride, packed.dilation, out)
    batch, groups, outputs = x.shape[0], packed.groups, weight.shape[0]
    places, count = math.prod(out), math.prod(kernel)
    sized(batch, places, weight.shape[1] * groups, count)
    sized(batch, places, outputs)
    looped(groups)
    result = np.empty((batch, places, outputs), np.float64)
    if _by_depth(packed, kernel):
        return (_depthwise(seen + zero, packed, out) - _offsets(seen, packed, zero)).astype(np.int32)
    each, per = weight.shape[1], outputs // groups
    for group in range(groups):
        part = seen[:, group * each : (group + 1) * each]
        columns = part.transpose(0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n)).reshape(batch, places, each * count)
        rows = weight[group * per : (group + 1) * per].reshape(per, -1)
        result[:, :, group * per : (group + 1) * per] = multiplied(columns, rows.T)
    return result.astype(np.int64).astype(np.int32).reshape(batch, *out, outputs)


def _by_depth(packed: PackedConvolution, kernel: tuple[int, ...]) -> bool:
    """Whether fbgemm computes a convolution by a kernel for single channels."""
    shape = packed.weight.shape
    return (
        not packed.transposed
        and shape[1] == 1
        and (shape[0] == packed.groups or (shape[0] == 2 * packed.groups and libraries.release >= TWO_OUTPUTS))
        and packed.groups % LANES == 0
        and kernel[-2] == kernel[-1]
        and all(size in {3, 5} and padding == size // 2 for size, padding in zip(kernel, packed.padding, strict=True))
        and set(packed.dilation) == {1}
        and max(packed.stride) <= 2
        and (len(kernel) == PICTURES or set(kernel) == {3} or libraries.release >= LARGER_VOLUMES)
    )


TWO_OUTPUTS, LARGER_VOLUMES = Release("1.6.0"), Release("1.7.0")
"""The first releases that have such kernels for two outputs of each channel, and for volumes of 5."""
LANES = 8


def _by_onednn(packed: PackedConvolution) -> bool:
    """Whether the default engine lets oneDNN compute a convolution on processors with 8-bit dot products."""
    symmetric = not packed.zeros.any() and not any(packed.output_padding)
    return libraries.release >= X86 and symmetric and packed.groups <= MOST_GROUPS


X86, MOST_GROUPS = Release("2.0.0"), 100
"""The first release whose default engine is ``x86``, and the most groups that it leaves to oneDNN."""


def _depthwise(seen: Array, packed: PackedConvolution, out: tuple[int, ...]) -> Array:
    """The sums of products for single channels: [batch, *places, channels].

    fbgemm saturates the sum of two products at 16 bits, on all processors.

    Parameters:
        seen: the integers of the input in windows, [batch, channels, *places, *kernel].
    """
    batch, channels = seen.shape[0], packed.outputs
    count = math.prod(packed.weight.shape[2:])
    parts = repeated(seen.reshape(batch, -1, *out, count).astype(np.int64), channels // packed.groups, 1)
    weight = packed.weight.parts["elements"].reshape(channels, *(1,) * len(out), count).astype(np.int64)
    terms = parts * weight
    exact = terms[..., 0:-1:2] + terms[..., 1::2]
    pairs = np.clip(exact, -32768, 32767)
    if _by_onednn(packed) and not np.array_equal(exact, pairs):
        raise Unsupported(
            "oneDNN computes sums of quantized products that exceed 16 bits exactly on some processors", code="operator"
        )
    return np.moveaxis(pairs.sum(-1) + terms[..., -1], 1, -1)


def _offsets(seen: Array, packed: PackedConvolution, zero: int) -> Array:
    """The parts of the zero points of the sums of products for single channels: [batch, *places, channels]."""
    n, channels = packed.spatial, packed.outputs
    count = math.prod(packed.weight.shape[2:])
    sums = packed.weight.parts["elements"].reshape(channels, -1).sum(-1, dtype=np.int64) - count * packed.zeros
    rows = seen.reshape(*seen.shape[: 2 + n], -1).sum(-1).astype(np.int64) + count * zero
    rows = repeated(rows, channels // packed.groups, 1)
    return zero * sums + np.moveaxis(rows, 1, -1) * packed.zeros


def _turned(x: Array, weight: Array, packed: PackedConvolution) -> tuple[Array, Array, list[tuple[int, int]]]:
    """A transposed convolution as one of an input that is spread by the strides, with the weight turned around."""
    n, groups = packed.spatial, packed.groups
    spatial = tuple((size - 1) * s + 1 if size else 0 for size, s in zip(x.shape[2:], packed.stride, strict=True))
    sized(*x.shape[:2], *spatial)
    wide = np.zeros((*x.shape[:2], *spatial), x.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, s) for s in packed.stride))] = x
    channels, each = weight.shape[:2]
    turned = weight.reshape(groups, channels // groups, each, *weight.shape[2:]).swapaxes(1, 2)
    turned = np.flip(turned, tuple(range(3, 3 + n))).reshape(groups * each, channels // groups, *weight.shape[2:])
    padding = []
    for d, k, p, more in zip(packed.dilation, weight.shape[2:], packed.padding, packed.output_padding, strict=True):
        whole = d * (k - 1) - p
        if whole < 0:
            cut = -whole
            raise fail(f"the padding of a transposed convolution exceeds its kernel by {cut}")
        padding.append((whole, whole + more))
    return wide, turned, padding


def _laid(result: Array) -> Array:
    """[batch, *places, outputs] as [batch, outputs, *places], with the channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(result), -1, 1)


def _bias(packed: PackedConvolution) -> Array | None:
    return None if packed.bias is None else packed.bias.array


# ----------------------------------------------------------------------------------------------------------------- operators


def convolved(
    name: str, value: Any, packed: PackedConvolution, scale: float, zero: int, *, relu: bool, lines: bool
) -> OpaqueTensor:
    """The result of a convolution, transposed or not."""
    x, x_scale, x_zero = activations(value, f"quantized::{name}")
    if lines:
        if x.ndim != 3:
            raise fail("Input shape must be `(N, C, L)`.")
        x = x[:, :, None, :]
    sums = _sums(x, x_zero, packed)
    result = _laid(requantized(sums, _bias(packed), x_scale * packed.scales, scale, zero, relu=relu))
    return per_tensor(result[:, :, 0] if lines else result, "quint8", scale, zero)


def _static(name: str, spatial: int, *, relu: bool = False) -> None:
    lines = spatial == LINES

    @typed(f"quantized::{name}")
    def conv(qx: OpaqueTensor, packed_weight: PackedConvolution, *options: Any, **keywords: Any) -> OpaqueTensor:
        """A convolution of quantized activations; up to 1.5 the call repeats the options of the packed weight."""
        words = ("stride", "padding", "dilation", "groups", "output_scale", "output_zero_point")
        given = [*options, *(keywords.pop(word) for word in words if word in keywords)]
        if keywords or len(given) not in {2, len(words)}:
            raise fail(f"{name}() does not take these arguments")
        scale, zero = given[-2:]
        if scale.__class__ not in {float, int} or zero.__class__ is not int:
            raise fail(f"{name}(): the scale and the zero point of the result must be numbers")
        return convolved(name, qx, packed_weight, float(scale), zero, relu=relu, lines=lines)


def _dynamic(name: str, spatial: int) -> None:
    lines = spatial == LINES

    @typed(f"quantized::{name}")
    def conv_dynamic(qx: Tensor, packed_weight: PackedConvolution, reduce_range: bool = False) -> Tensor:
        """A convolution of numbers, which are quantized by their own range; the result is clipped to the same range."""
        if qx.array.dtype != FLOAT32:
            raise fail("expected scalar type Float")
        _, chosen = quantized_dynamically(qx.array, reduce_range=reduce_range)
        quantize = resolve("aten::quantize_per_tensor", libraries.release)
        integers = quantize(Tensor(np.ascontiguousarray(qx.array)), chosen.scale, chosen.zero, DTYPES["quint8"].code)
        result = convolved(name, integers, packed_weight, chosen.scale, chosen.zero, relu=False, lines=lines)
        return dequantized(result)


for _spatial in (LINES, PICTURES, VOLUMES):
    _static(f"conv{_spatial}d", _spatial)
    _static(f"conv{_spatial}d_relu", _spatial, relu=True)
    _static(f"conv_transpose{_spatial}d", _spatial)
    _dynamic(f"conv{_spatial}d_dynamic", _spatial)
    _dynamic(f"conv_transpose{_spatial}d_dynamic", _spatial)
