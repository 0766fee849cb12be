"""Normalization of quantized tensors."""

from __future__ import annotations

import math

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, Array, fail
from torch_compat.runtime.operators._quantized_elements import affine, channels_last, integers, like
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.tensor import OpaqueTensor, Tensor  # noqa: TC001 - the annotations are checked in calls

ONE = np.float32(1)
WITH_RELU = Release("1.6.0")
"""The first release whose batch norms with a ReLU apply it."""


def _parameter(name: str, value: Tensor | None, count: int) -> Array | None:
    if value is None:
        return None
    if value.array.dtype != FLOAT32 or value.array.shape != (count,):
        raise fail(f"Expected {name} to be a vector of size equal to the number of channels in input: {count}")
    return value.array


def _batch_norm(
    qx: OpaqueTensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: float,
    zero: int,
    *,
    relu: bool,
) -> OpaqueTensor:
    x, x_scale, x_zero = affine(qx, "batch_norm", "quint8", "qint8")
    if x.ndim < 2:
        raise fail("quantized::batch_norm expects an input with channels")
    channels = x.shape[1]
    middle, spread = _parameter("mean", mean, channels), _parameter("var", var, channels)
    w, b = _parameter("weight", weight, channels), _parameter("bias", bias, channels)
    if middle is None or spread is None:
        raise fail("quantized::batch_norm expects the means and variances of channels")
    with np.errstate(all="ignore"):
        inverse = ONE / np.sqrt(spread + np.float32(eps))
        factor = inverse if w is None else inverse * w
        alpha = factor * np.float32(x_scale / scale)
        beta = ((np.float32(0) if b is None else b) - middle * factor) / np.float32(scale)
        along = (1, -1, *(1,) * (x.ndim - 2))
        whole = (x.astype(np.int64) - x_zero).astype(np.float64)
        values = np.rint((whole * alpha.reshape(along) + beta.reshape(along)).astype(np.float32)).astype(np.float64) + zero
    bounds = np.iinfo(x.dtype)
    relu = relu and libraries.release >= WITH_RELU
    result = np.clip(
        np.where(np.isnan(values), bounds.min, values), max(zero, int(bounds.min)) if relu else bounds.min, bounds.max
    )
    return like(qx, channels_last(result.astype(x.dtype)), scale, zero)


def _normalized(
    value: OpaqueTensor,
    rows: Array,
    zero_in: int,
    eps: float,
    weights: Array | None,
    biases: Array | None,
    scale: float,
    zero: int,
) -> Array:
    """Normalize each row of integers.

    Parameters:
        rows: the integers, one row for each mean.
        weights, biases: broadcast to the rows.
    """
    x_scale = np.float32(value.parts["scale"])
    count = np.float32(rows.shape[1])
    shifted = rows.astype(np.int64) - zero_in
    with np.errstate(all="ignore"):
        mean = shifted.sum(1, keepdims=True).astype(np.float32) / count
        spread = np.maximum((shifted * shifted).sum(1, keepdims=True).astype(np.float32) / count - mean * mean, np.float32(0))
        factor = x_scale / np.sqrt(spread * x_scale * x_scale + np.float32(eps))

        def normalize(x: Array, means: Array, factors: Array, gamma: Array, beta: Array) -> Array:
            numbers = (x.astype(np.float32) - means) * factors
            return np.asarray((numbers.astype(np.float64) * gamma + beta).astype(np.float32))

        gamma = np.float32(1) if weights is None else weights
        beta = np.float32(0) if biases is None else biases
        result = normalize(shifted, mean, factor, np.asarray(gamma), np.asarray(beta))
        return integers(result, scale, zero, value.dtype.name, fused=True)


def _vector(name: str, value: Tensor | None, count: int) -> Array | None:
    if value is None:
        return None
    if value.array.dtype != FLOAT32 or value.array.size != count:
        raise fail(f"Expected {name} to have {count} elements of float32")
    return value.array.reshape(-1)


@typed("quantized::layer_norm")
def layer_norm(
    input: OpaqueTensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float,  # noqa: A002
    output_zero_point: int,
) -> OpaqueTensor:  # fmt: skip
    """Normalize over the last dimensions."""
    x, _, x_zero = affine(input, "layer_norm", "quint8", "qint8")
    n = len(normalized_shape)
    if not n or list(x.shape[x.ndim - n :]) != normalized_shape or not x.size:
        raise fail(
            f"Given normalized_shape={normalized_shape}, expected input with the same last dimensions, but got {list(x.shape)}"
        )
    count = math.prod(normalized_shape)
    w, b = _vector("weight", weight, count), _vector("bias", bias, count)
    result = _normalized(input, x.reshape(-1, count), x_zero, eps, w, b, output_scale, output_zero_point)
    return like(input, result.reshape(x.shape), output_scale, output_zero_point)


def _by_groups(
    name: str, value: OpaqueTensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero: int
) -> OpaqueTensor:
    x, _, x_zero = affine(value, name, "quint8", "qint8")
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups or not x.size:
        raise fail(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)}")
    channels = x.shape[1]
    places = math.prod(x.shape[2:])
    w, b = (
        None
        if item is None
        else np.broadcast_to(item.reshape(1, groups, -1, 1), (len(x), groups, channels // groups, places)).reshape(
            len(x) * groups, -1
        )
        for item in (_vector("weight", weight, channels), _vector("bias", bias, channels))
    )
    rows = np.ascontiguousarray(x).reshape(len(x) * groups, -1)
    result = _normalized(value, rows, x_zero, eps, w, b, scale, zero)
    return like(value, result.reshape(x.shape), scale, zero)


@typed("quantized::group_norm")
def group_norm(
    input: OpaqueTensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float,  # noqa: A002
    output_zero_point: int,
) -> OpaqueTensor:  # fmt: skip
    """Normalize groups of channels."""
    return _by_groups("group_norm", input, num_groups, weight, bias, eps, output_scale, output_zero_point)


@typed("quantized::instance_norm")
def instance_norm(
    input: OpaqueTensor, weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float, output_zero_point: int  # noqa: A002
) -> OpaqueTensor:  # fmt: skip
    """Normalize each channel."""
    if len(input.shape) < 2:
        raise fail("quantized::instance_norm expects an input with channels")
    return _by_groups("instance_norm", input, input.shape[1], weight, bias, eps, output_scale, output_zero_point)


def _norms(name: str, *, relu: bool) -> None:
    @typed(f"quantized::{name}")
    def batch_norm(
        qx: OpaqueTensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, output_scale: float,
        output_zero_point: int,
    ) -> OpaqueTensor:  # fmt: skip
        """Normalize channels with given means and variances; the result has its channels last in memory."""
        return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, relu=relu)


for _dimensions in ("", "1d", "2d", "3d"):
    _norms(f"batch_norm{_dimensions}", relu=False)
    _norms(f"batch_norm{_dimensions}_relu", relu=True)
