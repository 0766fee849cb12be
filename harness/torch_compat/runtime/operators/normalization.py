"""Normalization by means and variances: of batches, layers, groups, instances and neighbors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, cast, fail, not_implemented, words
from torch_compat.runtime.operators._memory_formats import CHANNELS_LAST, is_formatted
from torch_compat.runtime.operators._moments import (
    LANES,
    ROUNDINGS,
    Roundings,
    fused,
    moments_of,
    normed_by_squares,
    normed_rows,
    plain,
)
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators._sums import mean_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable


IN_LANES = Release("1.5.0")
"""The first release that sums the rows of layer norms in lanes."""


class _BatchSteps(NamedTuple):
    """How releases compute batch normalization, from a release on.

    Attributes:
        asks: whether an empty input and its statistics are checked outside of training, and change the running statistics in training.
        narrow: whether squares are computed in float32, where they overflow; in 1.9 squares and sums are in double precision.
        stored: whether the sum of squares is stored as float32 before it is divided, and the variance, too; then a single element per channel is
            also summed in float32.
        mean: whether means are computed in float32.
        scales: whether training scales and shifts elements by one number each per channel, instead of centering them first.
        evaluated: the same for running statistics. Both apply only if all tensors are contiguous.
        fuses: whether scaling and shifting is rounded once.
    """

    asks: bool = False
    narrow: bool = True
    stored: bool = False
    mean: bool = False
    scales: bool = False
    evaluated: bool = True
    fuses: bool = True


ERAS = {
    "1.0.0": _BatchSteps(asks=True, evaluated=False), "1.1.0": _BatchSteps(asks=True, fuses=False), "1.4.0": _BatchSteps(fuses=False), "1.5.0": _BatchSteps(),
    "1.9.0": _BatchSteps(narrow=False, mean=True), "1.10.0": _BatchSteps(stored=True, scales=True),
}  # fmt: skip


ASKS_NOTHING = "1.4.0"
"""The release in which only ``batch_norm`` changes."""


def _statistics(x: Array, dims: tuple[int, ...], kind: np.dtype[Any], era: _BatchSteps) -> tuple[Array, Array]:
    """The means (in a dtype) and the variances (in double precision) of the channels of a batch."""
    total, count = np.asarray(x.astype(FLOAT64).sum(axis=dims, keepdims=True)), math.prod(x.shape[at] for at in dims)
    single = era.stored and math.prod(x.shape[2:]) == 1
    own = era.mean or single or (era.stored and not x.flags.c_contiguous)
    center = ((total.astype(kind) if own else total) / np.asarray(count, kind if own else FLOAT64)).astype(kind)
    gap = x.astype(kind) - center if era.narrow else x.astype(FLOAT64) - center
    squares = np.asarray((gap * gap).astype(FLOAT64).sum(axis=dims))
    if not era.stored:
        return center.reshape(-1), squares / np.asarray(count, FLOAT64)
    return center.reshape(-1), (squares.astype(kind).astype(FLOAT64) / np.asarray(count, FLOAT64)).astype(kind).astype(FLOAT64)


def _batch_norm(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    era: _BatchSteps,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a batch; also returns the statistics used."""
    x = input.array
    if x.dtype.kind in "iub":
        raise not_implemented("batch_norm", x.dtype)
    if not x.size and not training and not era.asks:
        nothing = np.zeros(0, x.dtype)
        return Tensor(np.zeros(x.shape, x.dtype)), Tensor(nothing), Tensor(nothing)
    if x.ndim < 2:
        raise raised(
            "IndexError",
            f"Dimension out of range (expected to be in range of [-{max(x.ndim, 1)}, {max(x.ndim, 1) - 1}], but got 1)",
        )
    channels = x.shape[1] if x.ndim > 1 else x.shape[0]
    for name, tensor in (("running_mean", mean), ("running_var", var), ("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.array.size != channels:
            raise fail(f"{name} should contain {channels} elements not {tensor.array.size}")
        if tensor is not None and tensor.array.dtype != x.dtype and x.dtype.kind == "f" and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(tensor.array.dtype)}")
    kind = FLOAT64 if x.dtype == FLOAT64 else FLOAT32
    dims = (0, *range(2, x.ndim))
    if training:
        count = x.size // max(channels, 1)
        center, spread = _statistics(x, dims, kind, era)
        if mean is not None:
            mean.array[...] = cast((1 - momentum) * mean.array.astype(FLOAT64) + momentum * center, mean.array.dtype)
        if var is not None:
            unbiased = spread * count / (count - 1) if count > 1 else spread * np.nan
            var.array[...] = cast((1 - momentum) * var.array.astype(FLOAT64) + momentum * unbiased, var.array.dtype)
    else:
        if mean is None or var is None:
            raise fail("Expected running_mean and running_var to be defined when training=False")
        center, spread = mean.array.astype(kind), var.array.astype(kind)
    if not training:
        inverse = kind.type(1) / np.sqrt(spread + kind.type(eps))
    else:  # the statistics are in double precision; a variance and an epsilon of zero give zero
        inverse = np.where((spread == 0) & (eps == 0), 0, 1 / np.sqrt(spread + eps)).astype(kind)
    factor = inverse if weight is None else inverse * weight.array.astype(kind)
    shift = np.zeros((), kind) if bias is None else bias.array.astype(kind)
    given = (item.array for item in (input, weight, bias, mean, var) if item is not None)
    if (era.scales if training else era.evaluated) and all(array.flags.c_contiguous for array in given):
        step = _fused if era.fuses else plain
        shift = step(-center, factor, np.broadcast_to(shift, factor.shape))
        value = step(x.astype(kind), _for_channels(factor, x), _for_channels(shift, x))
    else:
        value = (x.astype(kind) - _for_channels(center, x)) * _for_channels(inverse, x)
        if weight is not None:
            value = value * _for_channels(weight.array.astype(kind), x)
        value = value + _for_channels(shift, x)
    return Tensor(value.astype(x.dtype)), Tensor(center.astype(x.dtype)), Tensor(inverse.astype(x.dtype))


def _fused(x: Array, factor: Array, shift: Array) -> Array:
    """``x * factor + shift``, rounded once; in float64, only where the product overflows and would give NaN."""
    if x.dtype == FLOAT32:
        return fused(x, factor, shift)
    value = x * factor + shift
    lost = np.isnan(value) & np.isfinite(x) & np.isfinite(factor) & np.isinf(shift)
    return np.where(lost, shift, value)


def _for_channels(vector: Array, x: Array) -> Array:
    """Reshape a vector with a number for each channel, so that it broadcasts with the array."""
    return vector.reshape(-1, *(1,) * (x.ndim - 2)) if vector.ndim else vector


def _batch_norms(since: str, era: _BatchSteps) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Register the batch norms of a release; returns ``native_batch_norm``."""

    def batch_norm(
        input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,  # noqa: A002
        momentum: float, eps: float, cudnn_enabled: bool = False,
    ) -> Tensor:  # fmt: skip
        """Normalize by the statistics of the batch, which update the running statistics, or by the running statistics."""
        del cudnn_enabled
        if training and not input.array.size and not era.asks:
            running_mean, running_var = (
                None if item is None else Tensor(item.array.copy()) for item in (running_mean, running_var)
            )
        return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, era)[0]

    def native_batch_norm(
        input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,  # noqa: A002
        momentum: float, eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Same as ``batch_norm``; also returns the statistics used."""
        result, center, inverse = _batch_norm(
            input, weight, bias, running_mean, running_var, training, momentum, eps, era._replace(asks=False)
        )
        nothing = Tensor(np.zeros(0, input.array.dtype))
        return (result, center, inverse) if training else (result, nothing, nothing)

    def native_batch_norm_legit(
        input: Tensor,  # noqa: A002
        weight: Tensor | None,
        bias: Tensor | None,
        *rest: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Same as ``native_batch_norm``, with or without running statistics."""
        return native_batch_norm(input, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)))

    def instance_norm(
        input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: bool,  # noqa: A002
        momentum: float, eps: float, cudnn_enabled: bool = False,
    ) -> Tensor:  # fmt: skip
        """Normalize every channel of every sample on its own, as a channel of a batch of one."""
        del cudnn_enabled
        x = input.array
        if not use_input_stats:
            return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, era)[0]
        samples = x.shape[0]

        def repeated(entry: Tensor | None) -> Tensor | None:
            return None if entry is None else Tensor(np.concatenate([entry.array] * samples) if samples else entry.array[:0])

        mean, var = repeated(running_mean), repeated(running_var)
        tensor = _batch_norm(
            Tensor(np.ascontiguousarray(x).reshape(1, samples * x.shape[1], *x.shape[2:])), repeated(weight), repeated(bias), mean, var, True,
            momentum, eps, era,
        )[0]  # fmt: skip
        for running, item in ((running_mean, mean), (running_var, var)):
            if running is not None and item is not None:
                known = mean_of(item.array.reshape(samples, -1).astype(FLOAT64), axis=0)
                running.array[...] = cast(known, running.array.dtype)
        return Tensor(tensor.array.reshape(x.shape))

    operator("aten::batch_norm", since=since)(batch_norm)
    if since != ASKS_NOTHING:
        operator("aten::native_batch_norm", since=since)(native_batch_norm)
        operator("aten::instance_norm", since=since)(instance_norm)
    if since == max(ERAS, key=Release):
        operator("aten::_native_batch_norm_legit", since=since)(native_batch_norm_legit)
    return native_batch_norm


for _since, _era in ERAS.items():
    native_batch_norm = _batch_norms(_since, _era)


def _of_channels(input: Tensor, size: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:  # noqa: A002
    """Normalize rows of ``size`` elements as channels of a batch, as up to 1.8."""
    rows = Tensor(np.ascontiguousarray(input.array).reshape(1, -1, size))
    result = _batch_norm(rows, None, None, None, None, True, 0.0, eps, ERAS["1.0.0"])[0].array.reshape(input.array.shape)
    for tensor, joined in ((weight, np.multiply), (bias, np.add)):
        if tensor is not None:
            result = joined(result, tensor.array)
    return Tensor(result.astype(input.array.dtype))


def _overflowed(x: Array, dims: tuple[int, ...], center: Array, inverse: Array, how: Roundings | None) -> tuple[Array, Array]:
    """The means and inverse deviations of rows; where float32 sums overflow in a release, its results replace the given ones.

    Up to 1.9 (``how`` is None) the variance is the mean of squares minus the square of the mean; later see :func:`moments_of`.
    """
    if how is None:
        count = np.float32(math.prod(x.shape[at] for at in dims))
        single = x.astype(FLOAT32)
        mean, squares = (
            np.asarray(item.astype(FLOAT64).sum(axis=dims, keepdims=True)).astype(FLOAT32) / count
            for item in (single, single * single)
        )
        variance = squares - mean * mean
    else:
        rows = x.astype(FLOAT32).reshape(-1, math.prod(x.shape[at] for at in dims))
        if not rows.shape[1]:
            return center, inverse
        lanes = 2 * LANES if x.dtype in HALVES else LANES  # 16-bit vectors have twice as many elements
        mean, variance = (moment.reshape(center.shape) for moment in moments_of(rows, how, lanes))
    lost = ~(np.isfinite(mean) & np.isfinite(variance))
    inverse = inverse.copy()
    inverse[lost] = 1 / np.sqrt(variance[lost])
    return np.where(lost, mean, center), inverse


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
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.array.shape != shape:
            raise fail(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(tensor.array.shape)} and normalized_shape = {list(shape)}"
            )
        if tensor is not None and tensor.array.dtype != x.dtype and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(tensor.array.dtype)}")
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    ordered = None
    if x.size:
        rows = x.reshape(-1, math.prod(shape))
        scale, shift = (None if operand is None else operand.array.reshape(-1) for operand in (weight, bias))
        if how is None:
            ordered = normed_by_squares(rows, scale, shift, eps, lanes=libraries.release >= IN_LANES)
        else:
            ordered = normed_rows(rows, scale, shift, eps, how)
    if ordered is not None:
        one_each = x.shape[: dims[0]] + (1,) * len(shape)
        return Tensor(ordered[0].reshape(x.shape)), Tensor(ordered[1].reshape(one_each)), Tensor(ordered[2].reshape(one_each))
    wide = x.astype(FLOAT64)
    center = mean_of(wide, axis=dims, keepdims=True)
    inverse = 1 / np.sqrt(mean_of((wide - center) ** 2, axis=dims, keepdims=True) + eps)
    if x.size and x.dtype != FLOAT64:
        center, inverse = _overflowed(x, dims, center, inverse, how)
    value = (wide - center) * inverse + 0.0  # adding 0.0 makes zeros positive
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
    """Up to 1.1 inputs without rows are refused, and rows are normalized as channels of a batch, where only squares overflow."""
    if 0 in input.array.shape[: input.array.ndim - len(normalized_shape)]:
        raise fail("cannot reshape tensor of 0 elements into shape [1, 0, -1]")
    result = layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
    return result if not input.array.size else _of_channels(input, math.prod(normalized_shape), weight, bias, eps)


@operator("aten::layer_norm", since="1.2.0")
def layer_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalize over the last dimensions."""
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
    """Up to 1.7 the sizes are given as the numbers of rows and columns."""
    shape, count = input.array.shape, 1
    inner: list[int] = []
    while shape[: len(shape) - len(inner)] and count < N:
        inner.insert(0, shape[len(shape) - len(inner) - 1])
        count *= inner[0]
    if count != N or input.array.size != M * N or not inner:
        raise Unsupported(
            "the reference reader supports normalized_shape only if it matches the last dimensions", code="operator"
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
    """Same as ``layer_norm``; also returns means and inverse deviations."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def _layer_norms(since: str, how: Roundings) -> None:
    """Register the layer norms of a release, with its order of sums and its roundings."""

    def layer_norm(
        input: Tensor,  # noqa: A002
        normalized_shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-05,
        cudnn_enable: bool = True,
    ) -> Tensor:
        """Normalize over the last dimensions."""
        del cudnn_enable
        return _layer_norm(input, normalized_shape, weight, bias, eps, how)[0]

    def native_layer_norm(
        input: Tensor,  # noqa: A002
        normalized_shape: Any,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Same as ``layer_norm``; also returns means and inverse deviations."""
        return _layer_norm(input, normalized_shape, weight, bias, eps, how)

    operator("aten::layer_norm", since=since)(layer_norm)
    operator("aten::native_layer_norm", since=since)(native_layer_norm)


for _since, _how in ROUNDINGS.items():
    _layer_norms(_since, _how)


@operator("aten::rms_norm")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:  # noqa: A002
    """Divide by the root mean square over the last dimensions."""
    x = input.array
    wide: Array = x.astype(FLOAT64 if x.dtype == FLOAT64 else FLOAT32)
    if not len(normalized_shape):
        raise fail(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )
    if list(x.shape[x.ndim - len(normalized_shape) :]) != list(normalized_shape) or len(normalized_shape) > x.ndim:
        message = ", ".join(map(str, normalized_shape))
        raise fail(
            f"Given normalized_shape=[{message}], expected input with shape [*{message}], but got input of size{list(x.shape)}"
        )
    if weight is not None and list(weight.array.shape) != list(normalized_shape):
        raise fail(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.array.shape)} and normalized_shape = {list(normalized_shape)}"
        )
    dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    smallest = float(np.finfo(x.dtype if x.dtype.itemsize > 2 else np.float32).eps) if eps is None else eps
    count: Array = np.asarray(math.prod(x.shape[at] for at in dims), wide.dtype)
    squares: Array = np.asarray((wide * wide).astype(FLOAT64).sum(axis=dims, keepdims=True)).astype(wide.dtype) / count
    value: Array = wide * (1 / np.sqrt(squares + wide.dtype.type(smallest)))
    return Tensor((value if weight is None else value * weight.array.astype(wide.dtype)).astype(x.dtype))


def _group_norm(
    input: Tensor,  # noqa: A002
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    how: Roundings | None,
    *,
    batches: bool,
) -> Tensor:
    """Normalize over groups of channels.

    Parameters:
        how: the order of sums, as of 1.10.
        batches: whether groups are normalized as channels of a batch, as up to 1.5.
    """
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
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.array.shape != (channels,):
            raise fail(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {list(tensor.array.shape)} and "
                f"input of shape {list(x.shape)}"
            )
        if tensor is not None and tensor.array.dtype != x.dtype and x.dtype.itemsize > 2:
            raise fail(f"expected scalar type {words(x.dtype)} but found {words(tensor.array.dtype)}")
    if x.dtype.kind in "iubc":
        raise not_implemented("GroupNormKernelImpl", x.dtype)
    if not x.size:
        return Tensor(x.copy())
    parts = x.reshape(batch, num_groups, channels // num_groups * math.prod(x.shape[2:]))
    factor, shift = (
        np.asarray(other) if item is None else _for_channels(item.array.astype(FLOAT64), x)
        for item, other in ((weight, 1.0), (bias, 0.0))
    )
    if batches:
        result = _of_channels(Tensor(parts), parts.shape[2], None, None, eps).array.astype(FLOAT64)
        return Tensor((result.reshape(x.shape) * factor + shift).astype(x.dtype))
    if how is not None and x.dtype == FLOAT32 and (x.flags.c_contiguous or not is_formatted(x, CHANNELS_LAST)):
        return Tensor(_grouped(x, parts, weight, bias, eps, how))
    wide = parts.astype(FLOAT64)
    center = mean_of(wide, axis=2, keepdims=True)
    inverse = 1 / np.sqrt(mean_of((wide - center) ** 2, axis=2, keepdims=True) + eps)
    if x.dtype != FLOAT64:
        center, inverse = _overflowed(parts, (2,), center, inverse, how)
    return Tensor((((wide - center) * inverse).reshape(x.shape) * factor + shift).astype(x.dtype))


def _grouped(x: Array, parts: Array, weight: Tensor | None, bias: Tensor | None, eps: float, how: Roundings) -> Array:
    """Normalize contiguous float32 groups, exact to the last bit; since 2.0 roots are computed in double precision.

    Parameters:
        parts: the elements of each group of each sample.
    """
    samples, groups, size = parts.shape
    mean, variance = moments_of(parts.reshape(samples * groups, size), how)
    variance = np.maximum(variance, np.float32(0))
    precise = how.vectors
    inverse = (
        (1 / np.sqrt(variance.astype(FLOAT64) + eps)).astype(FLOAT32)
        if precise
        else np.float32(1) / np.sqrt(variance + np.float32(eps))
    )
    if weight is None and bias is None:
        centred = parts - mean.reshape(samples, groups, 1)
        return np.asarray((centred * inverse.reshape(samples, groups, 1)).reshape(x.shape))
    channels = x.shape[1]
    by_group = (samples, groups, channels // groups)
    mean, inverse = (np.broadcast_to(item.reshape(samples, groups, 1), by_group) for item in (mean, inverse))
    factor = inverse if weight is None else inverse * weight.array.reshape(by_group[1:])
    beta = np.zeros((), FLOAT32) if bias is None else bias.array.reshape(by_group[1:])
    shift = (fused if precise else plain)(-factor, mean, np.broadcast_to(beta, by_group))
    shape = (samples, channels, *(1,) * (x.ndim - 2))
    return fused(x, factor.reshape(shape), shift.reshape(shape))


def _group_norms(since: str, how: Roundings | None, *, batches: bool) -> Callable[..., Tensor]:
    """Register the group norms of a release; returns ``group_norm``."""

    def group_norm(
        input: Tensor,  # noqa: A002
        num_groups: int,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-05,
        cudnn_enabled: bool = True,
    ) -> Tensor:
        """Normalize over groups of channels."""
        del cudnn_enabled
        return _group_norm(input, num_groups, weight, bias, eps, how, batches=batches)

    operator("aten::group_norm", since=since)(group_norm)
    return group_norm


_group_norms("1.0.0", None, batches=True)
_group_norms("1.6.0", None, batches=False)
for _since in ("1.10.0", "2.0.0", "2.8.0", "2.10.0"):
    _how = ROUNDINGS[_since]
    group_norm = _group_norms(_since, _how, batches=False)


@operator("aten::local_response_norm")
def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:  # noqa: A002
    """Normalize by the squares of neighboring channels."""
    x = input.array
    sized(x.shape[0], x.shape[1] + size, *x.shape[2:])
    looped(size, x.size)
    squares = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    sums = sum(squares[:, at : at + x.shape[1]] for at in range(size))
    return Tensor((x / (k + alpha / size * sums) ** beta).astype(x.dtype))
