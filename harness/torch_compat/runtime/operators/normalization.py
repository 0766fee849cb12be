"""Normalisation by means and variances: of batches, layers, groups, instances, neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT64, Array, cast, fail, not_implemented, words
from torch_compat.runtime.operators._moments import ROUNDINGS, Roundings, normed_rows
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators._sums import mean_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised


def _shaped(vector: Tensor | None, ndim: int, otherwise: float) -> Array:
    """A number for every channel, ready to broadcast."""
    if vector is None:
        return np.asarray(otherwise, FLOAT64)
    return vector.array.astype(FLOAT64).reshape((1, -1, *(1,) * (ndim - 2)) if ndim >= 2 else (-1,))


def _batch_norm(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    asks: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalized, with the statistics used.

    Parameters:
        asks: whether something is asked of the statistics of nothing, as up to 1.3.
    """
    x = input.array
    if x.dtype.kind in "iub":
        raise not_implemented("batch_norm", x.dtype)
    if not x.size and not training and not asks:
        nothing = np.zeros(0, x.dtype)
        return Tensor(np.zeros(x.shape, x.dtype)), Tensor(nothing), Tensor(nothing)
    if x.ndim < 2:
        raise raised(
            "IndexError",
            f"Dimension out of range (expected to be in range of [-{max(x.ndim, 1)}, {max(x.ndim, 1) - 1}], but got 1)",
        )
    channels = x.shape[1] if x.ndim > 1 else x.shape[0]
    for name, one in (("running_mean", mean), ("running_var", var), ("weight", weight), ("bias", bias)):
        if one is not None and one.array.size != channels:
            raise fail(f"{name} should contain {channels} elements not {one.array.size}")
        if one is not None and one.array.dtype != x.dtype and x.dtype.kind == "f" and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(one.array.dtype)}")
    wide = x.astype(FLOAT64)
    dims = (0, *range(2, x.ndim))
    if training:
        count = x.size // max(channels, 1)
        center = mean_of(wide, axis=dims)
        spread = mean_of((wide - _shaped(Tensor(center), x.ndim, 0.0)) ** 2, axis=dims)
        if mean is not None:
            mean.array[...] = cast((1 - momentum) * mean.array.astype(FLOAT64) + momentum * center, mean.array.dtype)
        if var is not None:
            unbiased = spread * count / (count - 1) if count > 1 else spread * np.nan
            var.array[...] = cast((1 - momentum) * var.array.astype(FLOAT64) + momentum * unbiased, var.array.dtype)
    else:
        if mean is None or var is None:
            raise fail("Expected running_mean and running_var to be defined when training=False")
        center, spread = mean.array.astype(FLOAT64), var.array.astype(FLOAT64)
    inverse = 1 / np.sqrt(spread + eps)
    value = (wide - _shaped(Tensor(center), x.ndim, 0.0)) * _shaped(Tensor(inverse), x.ndim, 1.0) * _shaped(
        weight, x.ndim, 1.0
    ) + _shaped(bias, x.ndim, 0.0)
    return Tensor(value.astype(x.dtype)), Tensor(center.astype(x.dtype)), Tensor(inverse.astype(x.dtype))


@operator("aten::batch_norm")
def batch_norm_1_0(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,  # noqa: A002
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """Up to 1.3 as many statistics as channels are needed also where nothing is normalized."""
    del cudnn_enabled
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, asks=True)[0]


@operator("aten::batch_norm", since="1.4.0")
def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,  # noqa: A002
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """By the statistics of the batch, which the running ones learn of, or by the running ones."""
    del cudnn_enabled
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@operator("aten::_native_batch_norm_legit")
def native_batch_norm_legit(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    *rest: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`native_batch_norm`, with and without running statistics."""
    return native_batch_norm(input, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)))


@operator("aten::native_batch_norm")
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,  # noqa: A002
    momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """With the statistics used."""
    found, center, inverse = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    nothing = Tensor(np.zeros(0, input.array.dtype))
    return (found, center, inverse) if training else (found, nothing, nothing)


@operator("aten::instance_norm")
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: bool,  # noqa: A002
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """Every channel of every sample by itself."""
    del cudnn_enabled
    x = input.array
    if not use_input_stats:
        return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)[0]
    dims = tuple(range(2, x.ndim))
    wide = x.astype(FLOAT64)
    center = mean_of(wide, axis=dims, keepdims=True)
    spread = mean_of((wide - center) ** 2, axis=dims, keepdims=True)
    count = math.prod(x.shape[2:])
    if running_mean is not None:
        running_mean.array[...] = cast(
            (1 - momentum) * running_mean.array.astype(FLOAT64) + momentum * mean_of(center.reshape(x.shape[:2]), axis=0),
            running_mean.array.dtype,
        )
    if running_var is not None:
        unbiased = mean_of(spread.reshape(x.shape[:2]), axis=0) * np.divide(count, count - 1)
        running_var.array[...] = cast(
            (1 - momentum) * running_var.array.astype(FLOAT64) + momentum * unbiased, running_var.array.dtype
        )
    value = (wide - center) / np.sqrt(spread + eps) * _shaped(weight, x.ndim, 1.0) + _shaped(bias, x.ndim, 0.0)
    return Tensor(value.astype(x.dtype))


def _layer_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    how: Roundings | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    x = input.array
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise fail(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size{list(x.shape)}"
        )
    if x.dtype.kind in "iub":
        raise not_implemented("LayerNormKernelImpl", x.dtype)
    for name, one in (("weight", weight), ("bias", bias)):
        if one is not None and one.array.shape != shape:
            raise fail(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(one.array.shape)} and normalized_shape = {list(shape)}"
            )
        if one is not None and one.array.dtype != x.dtype and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(one.array.dtype)}")
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    ordered = None
    if how is not None and x.size:
        scale, shift = (None if one is None else one.array.reshape(-1) for one in (weight, bias))
        ordered = normed_rows(x.reshape(-1, math.prod(shape)), scale, shift, eps, how)
    if ordered is not None:
        one_each = x.shape[: dims[0]] + (1,) * len(shape)
        return Tensor(ordered[0].reshape(x.shape)), Tensor(ordered[1].reshape(one_each)), Tensor(ordered[2].reshape(one_each))
    wide = x.astype(FLOAT64)
    center = mean_of(wide, axis=dims, keepdims=True)
    inverse = 1 / np.sqrt(mean_of((wide - center) ** 2, axis=dims, keepdims=True) + eps)
    value = (wide - center) * inverse
    if weight is not None:
        value = value * weight.array.astype(FLOAT64)
    if bias is not None:
        value = value + bias.array.astype(FLOAT64)
    return Tensor(value.astype(x.dtype)), Tensor(center.astype(x.dtype)), Tensor(inverse.astype(x.dtype))


@operator("aten::layer_norm")
def layer_norm_1_0(
    input: Tensor,  # noqa: A002
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Up to 1.1 there is no norm of no rows."""
    if 0 in input.array.shape[: input.array.ndim - len(normalized_shape)]:
        raise fail("cannot reshape tensor of 0 elements into shape [1, 0, -1]")
    return layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)


@operator("aten::layer_norm", since="1.2.0")
def layer_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Over the last dimensions."""
    del cudnn_enable
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


@operator("aten::native_layer_norm")
def native_layer_norm_1_0(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    M: int,  # noqa: N803
    N: int,  # noqa: N803
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 1.7 the sizes are numbers of rows and of columns."""
    shape, count = input.array.shape, 1
    inner: list[int] = []
    while shape[: len(shape) - len(inner)] and count < N:
        inner.insert(0, shape[len(shape) - len(inner) - 1])
        count *= inner[0]
    if count != N or input.array.size != M * N or not inner:
        raise Unsupported(
            "the reference reader does not normalize by sizes that are not those of last dimensions", code="operator"
        )
    return _layer_norm(input, inner, weight, bias, eps)


@operator("aten::native_layer_norm", since="1.8.0")
def native_layer_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """With means and inverse deviations."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def _layer_norms(since: str, how: Roundings) -> None:
    """From a release on, with its order and roundings."""

    def layer_norm(
        input: Tensor,  # noqa: A002
        normalized_shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-05,
        cudnn_enable: bool = True,
    ) -> Tensor:
        """Over the last dimensions."""
        del cudnn_enable
        return _layer_norm(input, normalized_shape, weight, bias, eps, how)[0]

    def native_layer_norm(
        input: Tensor,  # noqa: A002
        normalized_shape: Any,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """With means and inverse deviations."""
        return _layer_norm(input, normalized_shape, weight, bias, eps, how)

    operator("aten::layer_norm", since=since)(layer_norm)
    operator("aten::native_layer_norm", since=since)(native_layer_norm)


for _since, _how in ROUNDINGS.items():
    _layer_norms(_since, _how)


@operator("aten::rms_norm")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:  # noqa: A002
    """By the root of the mean square over the last dimensions."""
    x = input.array
    wide = x.astype(FLOAT64)
    if not len(normalized_shape):
        raise fail(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )
    if list(x.shape[x.ndim - len(normalized_shape) :]) != list(normalized_shape) or len(normalized_shape) > x.ndim:
        said = ", ".join(map(str, normalized_shape))
        raise fail(f"Given normalized_shape=[{said}], expected input with shape [*{said}], but got input of size{list(x.shape)}")
    if weight is not None and list(weight.array.shape) != list(normalized_shape):
        raise fail(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.array.shape)} and normalized_shape = {list(normalized_shape)}"
        )
    dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    smallest = float(np.finfo(x.dtype if x.dtype.itemsize > 2 else np.float32).eps) if eps is None else eps
    value = wide / np.sqrt(mean_of(wide * wide, axis=dims, keepdims=True) + smallest)
    return Tensor((value if weight is None else value * weight.array.astype(FLOAT64)).astype(x.dtype))


@operator("aten::group_norm")
def group_norm(
    input: Tensor,  # noqa: A002
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Over groups of channels."""
    del cudnn_enabled
    x = input.array
    if x.ndim < 2:
        raise fail(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    batch, channels = x.shape[:2]
    if num_groups <= 0:
        raise fail(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise fail(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and num_groups={num_groups}"
        )
    for name, one in (("weight", weight), ("bias", bias)):
        if one is not None and one.array.shape != (channels,):
            raise fail(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {list(one.array.shape)} and "
                f"input of shape {list(x.shape)}"
            )
        if one is not None and one.array.dtype != x.dtype and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(one.array.dtype)}")
    if x.dtype.kind in "iubc":
        raise not_implemented("GroupNormKernelImpl", x.dtype)
    if not x.size:
        return Tensor(x.copy())
    parts = x.astype(FLOAT64).reshape(batch, num_groups, channels // num_groups * math.prod(x.shape[2:]))
    center = mean_of(parts, axis=2, keepdims=True)
    inverse = 1 / np.sqrt(mean_of((parts - center) ** 2, axis=2, keepdims=True) + eps)
    value = ((parts - center) * inverse).reshape(x.shape) * _shaped(weight, x.ndim, 1.0) + _shaped(bias, x.ndim, 0.0)
    return Tensor(value.astype(x.dtype))


@operator("aten::local_response_norm")
def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:  # noqa: A002
    """By the squares of neighbouring channels."""
    x = input.array
    sized(x.shape[0], x.shape[1] + size, *x.shape[2:])
    looped(size, x.size)
    squares = np.pad(x.astype(FLOAT64) ** 2, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    sums = sum(squares[:, at : at + x.shape[1]] for at in range(size))
    return Tensor((x / (k + alpha / size * sums) ** beta).astype(x.dtype))
