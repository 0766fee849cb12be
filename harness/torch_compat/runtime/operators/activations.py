"""Activation functions, dropout with probability zero, and softmax."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Scalar,
    axis,
    can_cast,
    cast,
    checked_scalar,
    dtypes_finfo,
    fail,
    functional,
    into,
    not_implemented,
    random,
    scalar_as,
    wide,
    words,
    write,
)
from torch_compat.runtime.operators._vectors import (
    double_exponential,
    double_tanh,
    exponentials,
    gelu_in_vectors,
    gelu_of_onednn,
    in_vectors,
)
from torch_compat.runtime.operators.pointwise import erf_of, erfc_of, sigmoid_of
from torch_compat.runtime.operators.rounding import BOUNDS_CUT, whole_bound
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def floats_only(kernel: str, array: Array) -> Array:
    """The array, unless it contains integers or bools.

    Raises:
        Raised: this kernel does not support the dtype of the array.
    """
    if array.dtype.kind in "iub":
        raise not_implemented(kernel, array.dtype)
    return array


def _activation(
    names: tuple[str, ...], kernel: str, compute: Callable[..., Array], since: str = "1.0.0", *, exact: bool = True
) -> None:
    """Register a floating point function; float16 is computed as float32."""

    def call(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        array = floats_only(kernel, self.array)
        return Tensor(compute(wide(array), *args, **keywords).astype(array.dtype))

    functional(*names, inplace=True, since=since, exact=exact)(call)


# ---------------------------------------------------------------------------------------------------------- thresholds


def _relu(self: Tensor, zero: Callable[[Array], Array]) -> Tensor:
    array = self.array
    if array.dtype.kind in "bc":
        raise (
            fail("Boolean inputs not supported for relu")
            if array.dtype.kind == "b"
            else not_implemented("clamp_min_scalar_cpu", array.dtype)
        )
    return Tensor(np.where(zero(array), np.zeros((), array.dtype), array))


# Up to 1.8 a negative zero becomes a positive zero.
functional("relu", inplace=True)(lambda self: _relu(self, lambda x: x <= 0))
functional("relu", inplace=True, since="1.9.0")(lambda self: _relu(self, lambda x: x < 0))


@functional("relu6", inplace=True)
def relu6(self: Tensor) -> Tensor:
    """Clamp to the range 0 to 6."""
    return hardtanh(self, 0, 6)


def _bounds(array: Array, min_val: Scalar, max_val: Scalar) -> tuple[Array, Array]:
    if array.dtype.kind == "b":
        raise fail("Bool inputs not supported for hardtanh")
    if array.dtype.kind == "c":
        raise fail("clamp is not supported for complex types")
    low, high = min_val, max_val
    if array.dtype.kind in "iu":
        low, high = (int(checked_scalar(item, INT64)) for item in (min_val, max_val))
        if array.dtype.kind == "u" and (low < 0 or high < 0):
            raise fail("cannot do hardtanh on an unsigned type with negative limits")
    return checked_scalar(low, array.dtype), checked_scalar(high, array.dtype)


@functional("hardtanh", inplace=True, since="1.5.0")
def hardtanh_1_5(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """Up to 1.7 the lower bound takes precedence."""
    array = self.array
    low, high = _bounds(array, min_val, max_val)
    return Tensor(np.where(array < low, low, np.where(array > high, high, array)))


@operator("aten::hardtanh")
def hardtanh_1_0(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.4 NaN becomes the upper bound where tensors of several dimensions are contiguous, and stays elsewhere."""
    array = self.array
    if array.ndim < 2 or not array.flags.c_contiguous or not (out is None or out.array.flags.c_contiguous):
        result = hardtanh_1_5(self, min_val, max_val)
    else:
        low, high = _bounds(array, min_val, max_val)
        result = Tensor(np.where(array < low, low, np.where(array <= high, array, high)))
    return result if out is None else into(out, result.array)


@operator("aten::hardtanh_")
def hardtanh_in_place_1_0(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """The in-place form keeps NaN."""
    return write(self, hardtanh_1_5(self, min_val, max_val).array)


@functional("hardtanh", inplace=True, since="1.8.0")
def hardtanh_1_8(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """Up to 1.11 a NaN bound is ignored."""
    array = self.array
    low, high = _bounds(array, min_val, max_val)
    above = np.where(array < low, low, array)
    return Tensor(np.where(above > high, high, above))


@functional("hardtanh", inplace=True, since="1.12.0")
def hardtanh(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """Clamp between two bounds; NaN is kept, and a NaN bound makes every element NaN."""
    if self.array.dtype.kind not in "iubc" and (math.isnan(min_val.real) or math.isnan(max_val.real)):
        return Tensor(np.full(self.array.shape, np.nan, self.array.dtype))
    return hardtanh_1_8(self, min_val, max_val)


@functional("hardtanh", inplace=True, since=BOUNDS_CUT)
def hardtanh_2_15(self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """For integer tensors the bounds work as in clamp: they may be negative even for uint8."""
    array = self.array
    if array.dtype.kind not in "iu":
        return hardtanh(self, min_val, max_val)
    low, high = (
        whole_bound(int(checked_scalar(item, INT64)), array.dtype, lower=lower)
        for item, lower in ((min_val, True), (max_val, False))
    )
    above = np.where(array < low, low, array)
    return Tensor(np.where(above > high, high, above))


@functional("threshold", inplace=True)
def threshold(self: Tensor, threshold: Scalar, value: Scalar) -> Tensor:
    """Replace elements that are not above a threshold with a value; NaN is kept."""
    array = self.array
    if array.dtype.kind in "bc":
        raise not_implemented("threshold_cpu", array.dtype)
    x = wide(array)
    return Tensor(np.where(x <= checked_scalar(threshold, x.dtype), checked_scalar(value, array.dtype), array))


def _hardshrink(x: Array, bound: Array) -> Array:
    return np.where((x >= -bound) & (x <= bound), np.zeros((), x.dtype), x)


def _softshrink_1_0(x: Array, bound: Array) -> Array:
    """Up to 2.5 elements within the bounds become zero, including NaN."""
    return np.where(x > bound, x - bound, np.where(x < -bound, x + bound, np.zeros((), x.dtype)))


def _softshrink(x: Array, bound: Array) -> Array:
    return np.where(x > bound, x - bound, np.where(x < -bound, x + bound, x * np.zeros((), x.dtype)))


def _any_bound(_lambd: float, _dtype: np.dtype[Any]) -> None:
    """Accept every bound."""


def _bound_1_5(lambd: float, _dtype: np.dtype[Any]) -> None:
    if not lambd >= 0:
        raise fail(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")


def _bound_2_10(lambd: float, dtype: np.dtype[Any]) -> None:
    largest = float(dtypes_finfo(dtype).max)
    if not 0 <= lambd <= largest:
        raise fail(f"lambda must be in range [0, {largest:g}] for input dtype {words(dtype)}, but found {lambd:g}")


def _shrink(
    name: str,
    compute: Callable[[Array, Array], Array],
    since: str = "1.0.0",
    check: Callable[[float, np.dtype[Any]], None] = _any_bound,
) -> None:
    """Register a function that zeroes elements within a bound, which is converted to the dtype of the tensor."""

    def call(self: Tensor, lambd: Scalar = 0.5) -> Tensor:
        array = floats_only(f"{name}_cpu", self.array)
        if array.dtype.kind == "c":
            raise not_implemented(f"{name}_cpu", array.dtype)
        check(float(lambd.real), array.dtype)
        return Tensor(compute(wide(array), wide(checked_scalar(lambd, array.dtype))).astype(array.dtype))

    functional(name, inplace=True, since=since, exact=True)(call)


_shrink("hardshrink", _hardshrink)
_shrink("softshrink", _softshrink_1_0)
_shrink("softshrink", _softshrink_1_0, "1.5.0", _bound_1_5)
_shrink("softshrink", _softshrink, "2.6.0", _bound_1_5)
_shrink("softshrink", _softshrink, "2.10.0", _bound_2_10)


# -------------------------------------------------------------------------------------------------------------- slopes


def _leaky_relu(x: Array, negative_slope: Scalar = 0.01) -> Array:
    return np.where(x > 0, x, x * scalar_as(negative_slope, x.dtype))


_activation(("leaky_relu",), "leaky_relu_cpu", _leaky_relu)


def _rrelu(self: Tensor, slope: float, *, training: bool) -> Tensor:
    if training:
        raise random("aten::rrelu in training")
    array = floats_only("leaky_relu_cpu", self.array)
    return Tensor(_leaky_relu(wide(array), slope).astype(array.dtype))


def _mean_slope(lower: float, upper: float, era: str) -> float:
    """The slope if none is drawn. 1.5 truncates the mean of two integers, 1.6 refuses to compute it, and later it is a float32."""
    if isinstance(lower, int) and isinstance(upper, int):
        if era == "refused":
            raise fail("Integer division of tensors using div or / is no longer supported")
        if era == "whole":
            return int(abs(lower + upper) // 2 * (1 if lower + upper > 0 else -1))
        if era != "double":
            return float(np.float32(lower + upper) / np.float32(2))
    return (float(lower) + float(upper)) / 2


def _rrelus() -> None:
    for since, era in (
        ("1.0.0", "double"),
        ("1.5.0", "whole"),
        ("1.6.0", "refused"),
        ("1.7.0", "single"),
        ("1.13.0", "ordered"),
        ("2.10.0", "finite"),
    ):

        def rrelu(
            self: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, generator: Any = None, *,
            era: str = era,
        ) -> Tensor:  # fmt: skip
            """Use the mean slope; random slopes are drawn in training."""
            del generator
            if era == "finite" and not (math.isfinite(lower) and math.isfinite(upper)):
                raise fail(f"rrelu: the bounds must be finite, got {lower} and {upper}")
            if era in {"ordered", "finite"} and not lower <= upper:
                raise fail("Lower bound should be less than or equal to the upper bound")
            return _rrelu(self, 0.0 if training else _mean_slope(lower, upper, era), training=training)

        def with_noise(
            self: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, generator: Any = None, *,
            era: str = era,
        ) -> Tensor:  # fmt: skip
            """Same as ``rrelu``, with a tensor that stores the slopes drawn in training."""
            del noise, generator
            return _rrelu(self, 0.0 if training else _mean_slope(lower, upper, era), training=training)

        functional("rrelu", inplace=era != "finite", since=since)(
            rrelu
        )  # since 2.10, rrelu_ does not check its bounds, unlike rrelu
        if era not in {"ordered", "finite"}:
            functional("rrelu_with_noise", inplace=True, since=since)(with_noise)


_rrelus()


@functional("prelu", out=False)
def prelu_1_0(self: Tensor, weight: Tensor) -> Tensor:
    """Up to 1.11 slopes may have any number of dimensions."""
    return prelu(self, Tensor(weight.array.reshape(-1)))


@functional("prelu", out=False, since="1.12.0")
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """Use one slope per channel, or one for all channels."""
    array, slope = self.array, weight.array
    if array.dtype != slope.dtype:
        raise fail(f"prelu: Type promoting not supported. Got {words(array.dtype)} and {words(slope.dtype)}")
    if slope.ndim > 1:
        raise fail(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {slope.ndim}")
    if slope.size != 1:
        if not array.ndim:
            raise fail("Not allow zero-dim input tensor.")
        channels = array.shape[1] if array.ndim >= 2 else 1
        if slope.size != channels:
            raise fail(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {slope.size} and channel size = {channels}."
            )
        slope = slope.reshape((1, channels, *(1,) * (array.ndim - 2)) if array.ndim >= 2 else (channels,))
    else:
        slope = slope.reshape((1,) * array.ndim)
    return Tensor(np.where(array > 0, array, slope * array))


@operator("aten::_prelu_kernel")
def prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    """Slopes are broadcast."""
    return Tensor(np.where(self.array > 0, self.array, weight.array * self.array))


# -------------------------------------------------------------------------------------------------------- exponentials


def _elu_1_0(x: Array, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1) -> Array:
    """Up to 2.7 a negative zero becomes a positive zero."""
    factor = scalar_as(float(alpha.real), x.dtype) * scalar_as(float(scale.real), x.dtype)
    steep = x * scalar_as(float(input_scale.real), x.dtype)
    negative = (
        double_exponential(steep.astype(FLOAT64)).astype(x.dtype) - 1
    ) * factor  # numpy's float32 exp is off by one unit more often
    return np.where(x <= 0, negative, x * scalar_as(float(scale.real), x.dtype))


def _elu_1_5(x: Array, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1) -> Array:
    """Since 1.5 it is computed in whole vectors."""
    if x.dtype != FLOAT32:
        return _elu_1_0(x, alpha, scale, input_scale)
    factor = scalar_as(float(alpha.real), x.dtype) * scalar_as(float(scale.real), x.dtype)
    negative = (exponentials(x * scalar_as(float(input_scale.real), x.dtype), x) - np.ones((), x.dtype)) * factor
    return np.where(x <= 0, negative, x * scalar_as(float(scale.real), x.dtype))


def _elu(x: Array, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1) -> Array:
    factor = scalar_as(float(alpha.real), x.dtype) * scalar_as(float(scale.real), x.dtype)
    negative = np.expm1((x * scalar_as(float(input_scale.real), x.dtype)).astype(FLOAT64)).astype(x.dtype) * factor
    return np.where(x < 0, negative, x * scalar_as(float(scale.real), x.dtype))


def _celu_1_0(x: Array, alpha: Scalar = 1.0) -> Array:
    """Up to 1.6 division by zero is possible."""
    inverse = 1.0 / alpha if alpha else math.copysign(math.inf, float(alpha.real))
    return _elu_1_0(x, alpha, 1.0, inverse)


def _celu(x: Array, alpha: Scalar, form: Any) -> Array:
    if not alpha:
        raise fail("ZeroDivisionError: alpha cannot be 0 for CELU")
    return form(x, alpha, 1.0, 1.0 / alpha)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

_activation(("celu",), "elu_cpu", _celu_1_0)
_form: Any
for _since, _form in (("1.0.0", _elu_1_0), ("1.5.0", _elu_1_5), ("2.8.0", _elu)):
    _activation(("elu",), "elu_cpu", _form, _since)
    _activation(("selu",), "elu_cpu", lambda x, form=_form: form(x, SELU_ALPHA, SELU_SCALE, 1), _since)
for _since, _form in (("1.7.0", _elu_1_5), ("2.8.0", _elu)):
    _activation(("celu",), "elu_cpu", lambda x, alpha=1.0, form=_form: _celu(x, alpha, form), _since)


def _powers(x: Array, of: Array) -> Array:
    return exponentials(x, of) if x.dtype == FLOAT32 else double_exponential(x.astype(FLOAT64)).astype(x.dtype)


def _softplus(x: Array, beta: Scalar = 1, threshold: Scalar = 20) -> Array:
    steep = scalar_as(float(beta.real), x.dtype)
    soft = np.log1p(_powers(x * steep, x).astype(FLOAT64)).astype(x.dtype) / steep
    return np.where(x * steep > scalar_as(float(threshold.real), x.dtype), x, soft)


_activation(("softplus",), "softplus_cpu", _softplus)


def _log_sigmoid_1_0(x: Array) -> Array:
    """Up to 1.10 the result for minus infinity is NaN."""
    most = np.where(np.isnan(x), x, np.maximum(-x, np.zeros((), x.dtype)))
    total = _powers(-most, x) + _powers(-x - most, x)
    return -(most + np.log(total.astype(FLOAT64)).astype(x.dtype))


def _log_sigmoid(x: Array) -> Array:
    least = np.where(np.isnan(x), x, np.minimum(x, np.zeros((), x.dtype)))
    return least - np.log1p(_powers(-np.abs(x), x).astype(FLOAT64)).astype(x.dtype)


for _since, _form in (("1.0.0", _log_sigmoid_1_0), ("1.11.0", _log_sigmoid)):
    _activation(("log_sigmoid",), "log_sigmoid_cpu", _form, _since)

    def _log_sigmoid_forward(self: Tensor, form: Any = _form) -> tuple[Tensor, Tensor]:
        array = floats_only("log_sigmoid_cpu", self.array)
        kept = np.exp(-np.abs(array))
        return Tensor(form(array)), Tensor(kept if form is _log_sigmoid else (kept + 1).astype(array.dtype))

    operator("aten::log_sigmoid_forward", since=_since)(_log_sigmoid_forward)


# --------------------------------------------------------------------------------------------------- smooth activations


def gelu_of(x: Array, approximate: str = "none") -> Array:
    """Exact, by the error function, or by tanh."""
    if x.dtype.kind == "c":
        raise not_implemented("GeluKernelImpl", x.dtype)
    if approximate == "tanh":
        # Computed in the dtype of the kernel: near -1, tanh has few digits left, and torch loses them, too.
        y = x if x.dtype == FLOAT64 else x.astype(np.float32)
        half, item, kappa = (np.asarray(number, y.dtype) for number in (0.5, 1, 0.044715))
        beta = np.asarray(math.sqrt(2.0) * 1.12837916709551257390 * 0.5, y.dtype)
        tangent = np.tanh((beta * (y + kappa * (y * y * y))).astype(FLOAT64)).astype(y.dtype)
        return (half * y * (item + tangent)).astype(x.dtype)
    if approximate != "none":
        raise fail("approximate argument must be either none or tanh.")
    half, item = np.asarray(0.5, x.dtype), np.ones((), x.dtype)
    return x * half * (item + erf_of(x * np.asarray(math.sqrt(0.5), x.dtype)))


def _gelu_1_0(x: Array) -> Array:
    """Up to 1.9 it uses the distribution function of the normal distribution, which does not lose small numbers."""
    if x.dtype.kind == "c":
        raise not_implemented("GeluKernelImpl", x.dtype)
    return np.asarray(x * (0.5 * erfc_of(-x.astype(FLOAT64) * math.sqrt(0.5))).astype(x.dtype))


def _gelu_1_4(x: Array) -> Array:
    """The vectorized kernel keeps the function of 1.0; the scalar kernel already uses the error function."""
    return _gelu_1_0(x) if x.flags.c_contiguous else gelu_of(x)


def _gelu_1_5(x: Array) -> Array:
    """1.5 also iterates in memory order, so that a transposed tensor is processed in whole vectors."""
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return _gelu_1_4(x.transpose(order)).transpose(np.argsort(order)) if x.ndim else _gelu_1_4(x)


_activation(("gelu",), "GeluKernelImpl", _gelu_1_0)
_activation(("gelu",), "GeluKernelImpl", _gelu_1_4, "1.4.0")
_activation(("gelu",), "GeluKernelImpl", _gelu_1_5, "1.5.0")
_activation(("gelu",), "GeluKernelImpl", _gelu_1_4, "1.6.0")
_activation(("gelu",), "GeluKernelImpl", partial(gelu_of, approximate="none"), "1.10.0")


def _gelu_of_singles(x: Array, *, vectors: bool) -> Array:
    if x.flags.c_contiguous and x.size > 1:
        return gelu_of_onednn(x)
    taken = in_vectors(x) if vectors else None
    return gelu_of(x) if taken is None else np.where(taken, gelu_in_vectors(x), gelu_of(x))


def _gelu(since: str, *, vectors: bool) -> None:
    def call(self: Tensor, *, approximate: str = "none") -> Tensor:
        array = floats_only("GeluKernelImpl", self.array)
        if array.dtype == FLOAT32 and approximate == "none":
            return Tensor(_gelu_of_singles(array, vectors=vectors))
        return Tensor(gelu_of(wide(array), approximate).astype(array.dtype))

    functional("gelu", inplace=True, since=since, exact=True)(call)


_gelu("1.12.0", vectors=False)
_gelu("2.0.0", vectors=True)
_activation(("silu",), "silu_cpu", lambda x: x / (1 + _powers(-x, x)))


def _mish(x: Array) -> Array:
    soft = np.log1p(_powers(x, x).astype(FLOAT64)).astype(x.dtype)
    return x * double_tanh(soft.astype(FLOAT64)).astype(x.dtype)


_activation(("mish",), "mish_cpu", _mish)
_activation(("hardsigmoid",), "hardsigmoid_cpu", lambda x: _bounded(x + 3, 6) / np.asarray(6, x.dtype))
_activation(("hardswish",), "hardswish_cpu", lambda x: x * _bounded(x + 3, 6) / np.asarray(6, x.dtype))


def _bounded(x: Array, high: float) -> Array:
    above = np.where(x < 0, np.zeros((), x.dtype), x)
    return np.where(above > high, np.asarray(high, x.dtype), above)


@functional("glu")
def glu(self: Tensor, dim: int = -1) -> Tensor:
    """Multiply one half by the sigmoid of the other half."""
    array = floats_only("glu_cpu", self.array)
    if not array.ndim:
        raise fail("glu does not support 0-dimensional tensors")
    at = axis(dim, array.ndim)
    if array.shape[at] % 2:
        raise fail(f"Halving dimension must be even, but dimension {at} is size {array.shape[at]}")
    a, b = np.split(array, 2, axis=at)
    return Tensor((wide(a) * sigmoid_of(wide(b))).astype(array.dtype))


@operator("aten::glu", since="1.5.0")
def _glu_1_5(self: Tensor, dim: int = -1, *, out: Tensor | None = None) -> Tensor:
    """1.5 computes in the common dtype of the input and ``out``."""
    if out is None:
        return glu(self, dim)
    array = self.array
    if not can_cast(array.dtype, out.array.dtype):
        raise fail(f"result type {words(array.dtype)} can't be cast to the desired output type {words(out.array.dtype)}")
    together = dtypes.promote(self.dtype, out.dtype).array
    return into(out, glu(Tensor(cast(array, together)), dim).array)


functional("glu", since="1.6.0")(glu)


# -------------------------------------------------------------------------------------------------------------- dropout


def _dropouts(*names: str) -> None:
    def call(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002
        _probability(p)
        if not train or p == 0 or not input.array.size:
            return input
        if p == 1:
            return Tensor(input.array * np.zeros((), input.array.dtype))
        raise random(f"aten::{names[0]} in training")

    def in_place(self: Tensor, p: float, train: bool) -> Tensor:
        _probability(p)
        if not train or p == 0 or not self.array.size:
            return self
        if p == 1:
            return write(self, self.array * np.zeros((), self.array.dtype))
        raise random(f"aten::{names[0]}_ in training")

    for name in names:
        operator(f"aten::{name}")(call)
        operator(f"aten::{name}_")(in_place)


def _probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise fail(f"dropout probability has to be between 0 and 1, but got {p}")


_dropouts("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")


@operator("aten::native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:  # noqa: A002
    """Apply dropout, and return the mask, too."""
    if not input.array.size:
        return input, Tensor(np.empty_like(input.array))
    if train is False or p == 0:
        return input, Tensor(np.ones(input.array.shape, np.bool_))
    if p == 1:
        return Tensor(input.array * np.zeros_like(input.array)), Tensor(np.zeros(input.array.shape, np.bool_))
    raise random("aten::native_dropout in training")


__all__ = ["floats_only", "gelu_of"]
