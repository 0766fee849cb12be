"""Activations of quantized tensors: on the integers themselves, or on the numbers that they represent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, fail
from torch_compat.runtime.operators._quantized_elements import affine, by_elements, integers, like, numbers, single
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.registration import operator
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

Number = int | float | bool
ONE, ZERO = np.float32(1), np.float32(0)


def of_opaque(*names: str, since: str = "1.0.0") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as an operator on tensors without an array."""
    return operator(*names, since=since, of="opaque", gradient=False)


def applied(
    value: Any, name: str, function: Callable[[Array], Array], scale: float | None = None, zero: int | None = None
) -> OpaqueTensor:
    """The result of a function of the numbers, quantized again.

    Parameters:
        scale, zero: those of the result; None for those of the argument.
    """
    elements, own_scale, own_zero = affine(value, name)
    to_scale = own_scale if scale is None else scale
    to_zero = own_zero if zero is None else zero

    def compute(x: Array, *, fused: bool) -> Array:
        result = function(numbers(x, own_scale, own_zero, fused=fused))
        return integers(result.astype(np.float32), to_scale, to_zero, value.dtype.name, fused=fused)

    return like(value, by_elements(compute, elements), to_scale, to_zero)


# ----------------------------------------------------------------------------------------------------------------- bounds


def _bounded(value: Any, name: str, least: Any, most: Any) -> OpaqueTensor:
    """Keep integers within the integers of two numbers."""
    elements, scale, zero = affine(value, name)
    for bound in (least, most):
        if bound is not None and bound.__class__ not in {int, float, bool}:
            raise fail(f"{name}() expects numbers as bounds")
    kind = elements.dtype.type
    result = elements.copy(order="K")
    if least is not None:
        result = np.maximum(result, kind(single(float(least), scale, zero, value.dtype.name)))
    if most is not None:
        result = np.minimum(result, kind(single(float(most), scale, zero, value.dtype.name)))
    if least is None and most is None:
        raise fail("Both min and max is None")
    return like(value, result, scale, zero)


@of_opaque("aten::clamp", "aten::hardtanh")
def clamp(self: OpaqueTensor, min: Any = None, max: Any = None, *, min_val: Any = None, max_val: Any = None) -> OpaqueTensor:  # noqa: A002
    """Keep numbers within bounds."""
    return _bounded(self, "clamp", min if min_val is None else min_val, max if max_val is None else max_val)


@typed("quantized::clamp")
def quantized_clamp(qx: OpaqueTensor, min: Number | None = None, max: Number | None = None) -> OpaqueTensor:  # noqa: A002
    """Keep numbers within bounds."""
    return _bounded(qx, "clamp", min, max)


def _overwritten(value: OpaqueTensor, result: OpaqueTensor) -> OpaqueTensor:
    value.parts["elements"][...] = result.parts["elements"]
    return value


def _six(value: OpaqueTensor) -> OpaqueTensor:
    elements, scale, zero = affine(value, "relu6")
    kind = elements.dtype.type
    result = np.minimum(np.maximum(elements, kind(zero)), kind(single(6.0, scale, zero, value.dtype.name)))
    return like(value, result, scale, zero)


@typed("quantized::relu6")
def relu6(qx: OpaqueTensor, inplace: bool = False) -> OpaqueTensor:
    """Keep numbers from zero to six."""
    result = _six(qx)
    return _overwritten(qx, result) if inplace else result


@of_opaque("aten::relu6")
def aten_relu6(self: OpaqueTensor) -> OpaqueTensor:
    """Keep numbers from zero to six."""
    return _six(self)


@of_opaque("aten::relu_")
def relu_(self: OpaqueTensor) -> OpaqueTensor:
    """Replace integers that represent negative numbers with the zero point, in place."""
    elements, _, zero = affine(self, "relu_")
    np.maximum(elements, elements.dtype.type(zero), out=elements)
    return self


def _threshold(value: Any, threshold: Any, replacement: Any) -> OpaqueTensor:
    if threshold.__class__ not in {int, float} or replacement.__class__ not in {int, float}:
        raise fail("threshold() expects numbers")
    return applied(value, "threshold", lambda x: np.where(x > np.float32(threshold), x, np.float32(replacement)))


@typed("quantized::threshold")
def quantized_threshold(qx: OpaqueTensor, threshold: Number, value: Number) -> OpaqueTensor:
    """Replace numbers that are not above a threshold."""
    return _threshold(qx, threshold, value)


@of_opaque("aten::threshold", since="1.6.0")
def threshold_of(self: OpaqueTensor, threshold: Any, value: Any) -> OpaqueTensor:
    """Replace numbers that are not above a threshold."""
    return _threshold(self, threshold, value)


# ----------------------------------------------------------------------------------------------------------------- curves


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def _hardsigmoid(x: Array) -> Array:
    return np.minimum(np.maximum(x + np.float32(3), ZERO), np.float32(6)) / np.float32(6)


def _range_of_unit(value: OpaqueTensor) -> tuple[float, int]:
    """The scale and zero point for numbers from zero to one."""
    name = value.dtype.name
    if name == "qint32":
        return 1.0 / (1 << 32), 0
    return 1.0 / 256, -128 if name == "qint8" else 0


@of_opaque("aten::sigmoid")
def sigmoid(self: OpaqueTensor) -> OpaqueTensor:
    """The sigmoid, with the scale that covers its range."""
    return applied(self, "sigmoid", _sigmoid, *_range_of_unit(self))


@of_opaque("aten::hardsigmoid", since="1.6.0")
def hardsigmoid(self: OpaqueTensor) -> OpaqueTensor:
    """The piecewise linear sigmoid, with the scale that covers its range."""
    return applied(self, "hardsigmoid", _hardsigmoid, *_range_of_unit(self))


@of_opaque("aten::tanh")
def tanh(self: OpaqueTensor) -> OpaqueTensor:
    """The hyperbolic tangent, with the scale that covers its range."""
    wide = self.dtype.name == "qint32"
    scale, zero = (2.0 / (1 << 32), 0) if wide else (2.0 / 256, 0 if self.dtype.name == "qint8" else 128)
    return applied(self, "tanh", lambda x: np.tanh(x.astype(np.float64)).astype(np.float32), scale, zero)


@typed("quantized::sigmoid")
def quantized_sigmoid(qx: OpaqueTensor, output_scale: float, output_zero_point: int) -> OpaqueTensor:
    """The sigmoid, with a given scale and zero point."""
    return applied(qx, "sigmoid", _sigmoid, output_scale, output_zero_point)


@typed("quantized::hardswish")
def hardswish(input: OpaqueTensor, output_scale: float, output_zero_point: int) -> OpaqueTensor:  # noqa: A002
    """The numbers times their piecewise linear sigmoid."""

    def function(x: Array) -> Array:
        return x * np.minimum(np.maximum(x + np.float32(3), ZERO), np.float32(6)) / np.float32(6)

    return applied(input, "hardswish", function, output_scale, output_zero_point)


def _leaky(slope: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x > 0, x, x * np.float32(slope))


@typed("quantized::leaky_relu")
def quantized_leaky_relu(
    qx: OpaqueTensor, negative_slope: Number, inplace: bool, output_scale: float, output_zero_point: int
) -> OpaqueTensor:
    """Multiply negative numbers by a slope."""
    del inplace
    return applied(qx, "leaky_relu", _leaky(float(negative_slope)), output_scale, output_zero_point)


@of_opaque("aten::leaky_relu")
def leaky_relu(self: OpaqueTensor, negative_slope: Any = 0.01) -> OpaqueTensor:
    """Multiply negative numbers by a slope."""
    if negative_slope.__class__ not in {int, float}:
        raise fail("leaky_relu() expects a number")
    return applied(self, "leaky_relu", _leaky(float(negative_slope)))


@of_opaque("aten::leaky_relu_")
def leaky_relu_(self: OpaqueTensor, negative_slope: Any = 0.01) -> OpaqueTensor:
    """Multiply negative numbers by a slope, in place."""
    return _overwritten(self, leaky_relu(self, negative_slope))


@of_opaque("aten::gelu", since="1.12.0")
def gelu(self: OpaqueTensor, *, approximate: str = "none") -> OpaqueTensor:
    """The Gaussian error linear unit."""
    if approximate != "none":
        raise Unsupported("the reference reader does not support approximations of gelu for quantized tensors", code="operator")

    def function(x: Array) -> Array:
        wide = x.astype(np.float64)
        return np.asarray(wide * 0.5 * (1 + resolve("aten::erf")(Tensor(wide * math.sqrt(0.5))).array)).astype(np.float32)

    return applied(self, "gelu", function, float(np.float32(self.parts.get("scale", 1.0))))


def _elu(alpha: float, scale: float, input_scale: float) -> Callable[[Array], Array]:
    negative, positive, inside = np.float32(alpha * scale), np.float32(scale), np.float32(input_scale)

    def function(x: Array) -> Array:
        raised = np.exp((x * inside).astype(np.float64)).astype(np.float32) - ONE
        return np.where(x >= 0, x * positive, raised * negative)

    return function


@typed("quantized::elu")
def elu(
    self: OpaqueTensor, output_scale: float, output_zero_point: int, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> OpaqueTensor:  # fmt: skip
    """The exponential linear unit."""
    function = _elu(float(alpha), float(scale), float(input_scale))
    return applied(self, "elu", function, output_scale, output_zero_point)


@of_opaque("aten::elu")
def aten_elu(self: OpaqueTensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> OpaqueTensor:
    """The exponential linear unit."""
    if any(item.__class__ not in {int, float} for item in (alpha, scale, input_scale)):
        raise fail("elu() expects numbers")
    return applied(self, "elu", _elu(float(alpha), float(scale), float(input_scale)))


@typed("quantized::celu")
def celu(self: OpaqueTensor, output_scale: float, output_zero_point: int, alpha: Number = 1) -> OpaqueTensor:
    """The exponential linear unit with a continuous derivative."""
    if not alpha:
        raise fail("ZeroDivisionError: alpha cannot be 0 for CELU")
    function = _elu(float(alpha), 1.0, 1.0 / float(alpha))
    return applied(self, "celu", function, output_scale, output_zero_point)
