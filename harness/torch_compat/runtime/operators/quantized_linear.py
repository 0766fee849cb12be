"""Linear layers with weights of 8 bits, or of 16-bit floating-point numbers, as fbgemm computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, Array, fail
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators._requantized import (
    activations,
    per_tensor,
    products,
    quantized_dynamically,
    represented,
    requantized,
)
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.packed import PackedHalves, PackedLinear
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

Packed = PackedLinear | PackedHalves


@typed("quantized::linear_prepack", "quantized::linear_prepack_legacy")
def linear_prepack(W: OpaqueTensor, B: Tensor | None = None) -> PackedLinear:  # noqa: N803
    """Pack a weight of 8 bits."""
    return PackedLinear(W, B)


@typed("quantized::linear_prepack_fp16", "quantized::linear_prepack_fp16_legacy")
def linear_prepack_fp16(W: Tensor, B: Tensor | None = None) -> PackedHalves:  # noqa: N803
    """Pack a weight in float16."""
    return PackedHalves(W, B)


@typed("quantized::linear_unpack")
def linear_unpack(W_prepack: PackedLinear | PackedHalves) -> tuple[Any, Any]:  # noqa: N803
    """The weight and the bias."""
    return W_prepack.m_unpack()


@typed("quantized::linear_unpack_fp16")
def linear_unpack_fp16(W_prepack: PackedLinear | PackedHalves) -> tuple[Any, Any]:  # noqa: N803
    """The weight and the bias."""
    return W_prepack.m_unpack()


def _rows(array: Array, inputs: int) -> Array:
    """The input as a matrix.

    Raises:
        Raised: it does not have rows of this length.
    """
    if not array.ndim:
        raise fail("The dimension (0) of the input tensor should be larger than or equal to 1.")
    if array.shape[-1] != inputs:
        raise fail(f"The number of columns in the input ({array.shape[-1]}) should be equal to K: {inputs}")
    return np.ascontiguousarray(array).reshape(-1, inputs)


def _bias(packed: Packed) -> Array | None:
    return None if packed.bias is None else packed.bias.array


def _static(name: str, *, relu: bool) -> None:
    @typed(f"quantized::{name}")
    def linear(X: OpaqueTensor, W_prepack: PackedLinear, Y_scale_i: float, Y_zero_point_i: int) -> OpaqueTensor:  # noqa: N803
        """A linear layer on quantized activations, with a quantized result."""
        x, scale, zero = activations(X, f"quantized::{name}")
        rows = _rows(x, W_prepack.weight.shape[1])
        sums = products(rows, W_prepack.integers, zero, W_prepack.zeros)
        factors = scale * W_prepack.scales
        result = requantized(sums, _bias(W_prepack), factors, Y_scale_i, Y_zero_point_i, relu=relu)
        return per_tensor(result.reshape(*x.shape[:-1], -1), "quint8", Y_scale_i, Y_zero_point_i)


_static("linear", relu=False)
_static("linear_relu", relu=True)


def linear_of(x: Array, packed: PackedLinear, *, reduce_range: bool, relu: bool = False) -> Array:
    """The result of a linear layer of 8 bits on numbers, which are quantized by their own range."""
    if x.dtype != FLOAT32:
        raise fail("expected scalar type Float")
    rows = _rows(x, packed.weight.shape[1])
    integers, chosen = quantized_dynamically(rows, reduce_range=reduce_range)
    sums = products(integers, packed.integers, chosen.zero, packed.zeros)
    factors = np.float32(chosen.scale) * packed.scales
    return represented(sums, _bias(packed), factors, relu=relu).reshape(*x.shape[:-1], -1)


def _dynamic(name: str, *, relu: bool) -> None:
    @typed(f"quantized::{name}")
    def linear_dynamic(X: Tensor, W_prepack: PackedLinear, reduce_range: bool = False) -> Tensor:  # noqa: N803
        """A linear layer on numbers, which are quantized by their own range; the result is not quantized."""
        return Tensor(linear_of(X.array, W_prepack, reduce_range=reduce_range, relu=relu))


_dynamic("linear_dynamic", relu=False)
_dynamic("linear_relu_dynamic", relu=True)


BLOCK = 512
"""The number of products that are added before the sum is stored."""


def linear_of_halves(x: Array, packed: PackedHalves, *, relu: bool = False) -> Array:
    """The product in float32 with a weight in float16: each product is added to the sum with one rounding."""
    if x.dtype != FLOAT32:
        raise fail("expected scalar type Float")
    weight = packed.weight.array
    rows = _rows(x, weight.shape[1])
    sized(rows.shape[0], weight.shape[0])
    looped(weight.shape[1], rows.shape[0] * weight.shape[0])
    total = np.full((rows.shape[0], weight.shape[0]), -0.0 if weight.shape[1] else 0.0, FLOAT32)
    left, right = rows.astype(np.float64), weight.astype(np.float64)
    with np.errstate(all="ignore"):
        for at in range(weight.shape[1]):
            total = (left[:, at, None] * right[:, at] + total).astype(FLOAT32)
        if packed.bias is not None:
            total = total + packed.bias.array
    result = np.maximum(total, np.float32(0)) if relu else total
    return result.reshape(*x.shape[:-1], -1)


def _halves(name: str, *, relu: bool) -> None:
    @typed(f"quantized::{name}")
    def linear_dynamic_fp16(X: Tensor, W_prepack: PackedHalves) -> Tensor:  # noqa: N803
        """A linear layer whose weight has 16-bit numbers."""
        return Tensor(linear_of_halves(X.array, W_prepack, relu=relu))


_halves("linear_dynamic_fp16", relu=False)
_halves("linear_relu_dynamic_fp16", relu=True)
