"""Integers quantized with one scale and zero point.

Ties are rounded to even: ties of the scaled number since 1.6; ties of the sum of the scaled number and the zero point up to 1.5, and
again in 2.13. The recipe ``quantised_and_back`` shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import dtypes
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.opaque import ELEMENTS, STRIDED
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, WORDS, Array, cast, fail, words
from torch_compat.runtime.operators._memory_formats import CONTIGUOUS, format_of
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import raised

MATRIX = 2
KEPT = Release("1.7.0")
"""The first release that keeps the memory format of pictures when it quantizes numbers or computes the numbers of quantized integers."""


@dataclass(frozen=True)
class _Manner:
    """How a release quantizes.

    Attributes:
        together: whether the sum of the number and the zero point is rounded, not the number alone.
        nan_is_most: whether NaN becomes the largest 8-bit integer; else it becomes the smallest one, as it always does in 32 bits.
        saturates: whether infinity becomes the largest 32-bit integer; else it becomes the smallest one.
        only_floats, no_such, zero_above, zero_below: the error messages for other inputs.
    """

    together: bool
    nan_is_most: bool
    saturates: bool
    only_floats: str
    no_such: str
    zero_above: str
    zero_below: str


def scaled(array: Array, scale: float, zero: int, *, together: bool) -> Array:
    """Scale numbers and round to integers; the reciprocal of the scale is rounded to float32 first."""
    number = array.dtype.type
    with np.errstate(all="ignore"):
        scaled = array * number(np.float32(1) / np.float32(scale))
        return np.rint(number(zero) + scaled) if together else number(zero) + np.rint(scaled)


LANES = 8


def _divided(array: Array, scale: Any, zero: Any) -> Array:
    """Divide numbers by the scale and add the zero point, in float32."""
    with np.errstate(all="ignore"):
        return np.asarray(np.float32(zero) + array / np.asarray(scale, np.float32))


def _fused(array: Array, scale: Any, zero: Any) -> Array:
    """Scale numbers, add the zero point with one rounding in float32, and round to integers."""
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.asarray(scale, np.float32)
        return np.rint((array.astype(np.float64) * inverse + zero).astype(np.float32))


def _integers(numbers: Array, elements: np.dtype[Any], manner: _Manner) -> Array:
    """Convert whole numbers to an integer dtype; numbers out of range become the nearest bound."""
    least, most = (int(bound) for bound in (np.iinfo(elements).min, np.iinfo(elements).max))
    narrow = elements.itemsize == 1
    with np.errstate(all="ignore"):
        result = np.clip(numbers.astype(np.float64), least, most)
    result = np.where(np.isnan(numbers), most if narrow and manner.nan_is_most else least, result)
    if not narrow and not manner.saturates:
        result = np.where(np.isinf(numbers), least, result)
    return result.astype(elements)


def _per_tensor(since: str, manner: _Manner) -> None:
    def quantize_per_tensor(self: Tensor, scale: float, zero_point: int, dtype: Any) -> OpaqueTensor:
        """Quantize every number with one scale and zero point."""
        kind = dtypes.as_dtype(dtype)
        elements = ELEMENTS.get(kind.name) if kind is not None else None
        if kind is None or elements is None:
            raise fail(manner.no_such.format(WORDS.get(kind.name, kind.name) if kind is not None else "Undefined"))
        if self.array.dtype != FLOAT32:
            raise fail(manner.only_floats.format(words(self.array.dtype)))
        if zero_point > np.iinfo(elements).max:
            raise fail(manner.zero_above.format(zero_point))
        if zero_point < np.iinfo(elements).min:
            raise fail(manner.zero_below.format(zero_point))
        array = self.array if libraries.release >= KEPT else np.asarray(self.array, order="C")
        if manner.together and elements.itemsize == 1:
            numbers = _fused(array, scale, zero_point)
            if since == "1.0.0":  # what remains after whole vectors is divided
                last = numbers.reshape(-1)[array.size // LANES * LANES :]
                last[...] = np.rint(_divided(array.reshape(-1)[array.size // LANES * LANES :], scale, zero_point))
        elif manner.together and libraries.release < KEPT:
            numbers = np.rint(_divided(array, scale, zero_point))
        else:
            numbers = scaled(array, scale, zero_point, together=manner.together)
        result = _integers(numbers, elements, manner)
        return OpaqueTensor(
            STRIDED,
            kind,
            self.shape,
            {"elements": result, "scheme": "per_tensor_affine", "scale": scale, "zero_point": zero_point},
        )

    operator("aten::quantize_per_tensor", since=since, gradient=False)(quantize_per_tensor)


OUT_OF_RANGE = "quantize_tensor zero_point {} is out of range."
OF_AFFINE = "quantize_tensor_per_tensor_affine zero_point {} is out of range."
MANNER_1_4 = _Manner(
    together=True,
    nan_is_most=False,
    saturates=False,
    only_floats="quantize only works on Float Tensor.",
    no_such="ScalarType is not supported in new_qtensor_cpu.",
    zero_above=OUT_OF_RANGE,
    zero_below=OUT_OF_RANGE,
)
MANNER_1_5 = replace(MANNER_1_4, saturates=True)
MANNER_1_6 = replace(
    MANNER_1_5,
    together=False,
    nan_is_most=True,
    no_such="ScalarType is not supported in new_qtensor.",
    zero_above=OF_AFFINE,
    zero_below=OF_AFFINE,
)
MANNER_1_10 = replace(
    MANNER_1_6,
    zero_above="quantize_tensor_per_tensor_affine zero_point {} is above upper bound.",
    zero_below="quantize_tensor_per_tensor_affine zero_point {} is below lower bound.",
)
MANNER_1_11 = replace(
    MANNER_1_10,
    only_floats="Quantize only works on Float Tensor, got {}",
    no_such="ScalarType {} is not supported in new_qtensor.",
)
_per_tensor("1.0.0", MANNER_1_4)
_per_tensor("1.5.0", MANNER_1_5)
_per_tensor("1.6.0", MANNER_1_6)
_per_tensor("1.10.0", MANNER_1_10)
_per_tensor("1.11.0", MANNER_1_11)
_per_tensor("2.13.0", replace(MANNER_1_11, together=True))
_per_tensor("2.14.0", MANNER_1_11)


def _per_channel(since: str, *, together: bool) -> None:
    def quantize_per_channel(self: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any) -> OpaqueTensor:
        """Quantize every number with the scale and zero point of its channel; NaN becomes 0, or the smallest integer in 32 bits."""
        kind = dtypes.as_dtype(dtype)
        elements = ELEMENTS.get(kind.name) if kind is not None else None
        if kind is None or elements is None:
            raise fail("ScalarType is not supported in new_qtensor.")
        if self.array.dtype != FLOAT32:
            raise fail("quantize_tensor_per_channel_affine expects a Float Tensor.")
        if zero_points.array.dtype.kind not in "iub":
            if together and since == WHOLE_ZEROS:
                raise fail("zero_points tensor must have integral type")
            raise Unsupported("the reference reader does not support zero points that are not integers", code="value")
        if scales.ndim != 1 or zero_points.ndim != 1 or scales.numel != zero_points.numel:
            raise fail("number of elements in scales and zero_points must match")
        if not 0 <= axis < self.ndim:
            raise fail(f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {self.ndim})")
        if scales.numel != self.shape[axis]:
            raise fail("length of scales must equal to channel")
        bounds = np.iinfo(elements)
        zeros = cast(zero_points.array, INT64)
        if ((zeros < bounds.min) | (zeros > bounds.max)).any():
            raise fail("quantize_tensor_per_channel_affine zero_point is out of range.")
        if not self.array.flags.c_contiguous:
            raise Unsupported(
                "the reference reader does not support per-channel quantization of tensors with a different memory order",
                code="value",
            )
        precise = cast(scales.array, FLOAT64)
        along = [1] * self.ndim
        along[axis] = -1
        inverse = (np.float32(1) / precise.astype(np.float32)).reshape(along)
        with np.errstate(all="ignore"):
            scaled, offset = self.array * inverse, zeros.reshape(along).astype(np.float32)
            numbers = np.rint(offset + scaled) if together else offset + np.rint(scaled)
            if together and since == WHOLE_ZEROS:
                numbers = np.rint(offset + self.array / precise.astype(np.float32).reshape(along))
        result = _integers(numbers, elements, MANNER_1_5)
        if elements.itemsize == 1:
            result[np.isnan(numbers)] = 0
        parts = {"scales": Tensor(precise), "zero_points": Tensor(zeros), "axis": axis}
        return OpaqueTensor(STRIDED, kind, self.shape, {"elements": result, "scheme": "per_channel_affine", **parts})

    operator("aten::quantize_per_channel", since=since, gradient=False)(quantize_per_channel)


WHOLE_ZEROS = "1.5.0"
_per_channel(WHOLE_ZEROS, together=True)
_per_channel("1.6.0", together=False)
_per_channel("2.13.0", together=True)
_per_channel("2.14.0", together=False)


def _of_channels(name: str, part: str) -> None:
    @operator(f"aten::{name}", of="any", since=WHOLE_ZEROS, gradient=False)
    def found(self: Any) -> Any:
        """A part of a tensor that is quantized per channel; it shares the tensor's memory."""
        if self.__class__ is not OpaqueTensor or part not in self.parts:
            raise fail("Expected quantizer->qscheme() == kPerChannelAffine to be true, but got false.")
        value = self.parts[part]
        return Tensor(value.array) if value.__class__ is Tensor else value


_of_channels("q_per_channel_scales", "scales")
_of_channels("q_per_channel_zero_points", "zero_points")
_of_channels("q_per_channel_axis", "axis")


def _quantized(name: str, value: Any, *, notice: str = "NotImplementedError") -> OpaqueTensor:
    if value.__class__ is OpaqueTensor and "axis" in value.parts:
        if name in WHOLE:
            raise fail("Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.")
    elif value.__class__ is not OpaqueTensor or "zero_point" not in value.parts:
        raise raised(notice, f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.")
    return value


WHOLE = frozenset({"q_scale", "q_zero_point"})
"""The properties of a tensor that is quantized per tensor."""


def _ordered(elements: Array) -> Array:
    """The same integers, row-major unless the channels are last, which only newer releases keep."""
    keeps = libraries.release >= KEPT and format_of(elements) != CONTIGUOUS
    return elements if keeps else np.asarray(elements, order="C")


def dequantized(value: OpaqueTensor) -> Tensor:
    """The numbers that quantized integers represent, in the same memory order."""
    parts = value.parts
    scale: Any
    zero: Any
    elements, scale, zero = (
        _ordered(parts["elements"]).reshape(value.shape),
        parts.get("scale"),
        parts.get("zero_point"),
    )
    if "axis" in parts:
        if parts["zero_points"].array.dtype.kind == "f":
            raise Unsupported("the reference reader does not support zero points that are not integers", code="value")
        along = [1] * elements.ndim
        along[parts["axis"]] = -1
        scale, zero = (parts[name].array.reshape(along) for name in ("scales", "zero_points"))
    whole = elements.astype(np.int64) - zero
    with np.errstate(all="ignore"):
        if "axis" in parts:
            numbers = (whole * np.asarray(scale, np.float64)).astype(np.float32)
        else:
            numbers = whole.astype(np.float32) * np.asarray(scale, np.float32)
    if (
        elements.ndim > MATRIX and not elements.flags.c_contiguous
    ):  # the strides of dimensions with one element are those of the release
        lasting = np.moveaxis(np.empty((elements.shape[0], *elements.shape[2:], elements.shape[1]), np.float32), -1, 1)
        lasting[...] = numbers
        return Tensor(lasting)
    return Tensor(numbers)


@operator("aten::dequantize", of="any", gradient=False)
def dequantize(self: Any) -> Tensor:
    """The numbers that quantized integers represent."""
    return dequantized(_quantized("dequantize.self", self, notice="RuntimeError"))


@operator("aten::dequantize", of="any", since="1.9.0", gradient=False)
def dequantize_1_9(self: Any) -> Tensor:
    """As of 1.9 tensors that are not quantized are accepted and converted to float32."""
    return Tensor(cast(self.array, FLOAT32)) if self.__class__ is Tensor else dequantized(_quantized("dequantize.self", self))


def _property(name: str, part: str) -> None:
    for since, notice in (("1.0.0", "RuntimeError"), ("1.9.0", "NotImplementedError")):
        operator(f"aten::{name}", of="any", since=since, gradient=False)(_part(name, part, notice))


def _part(name: str, part: str, notice: str) -> Any:
    def found(self: Any) -> Any:
        """A part of a quantized tensor."""
        value = _quantized(name, self, notice=notice).parts[part]
        return Tensor(value.copy(order="K")) if isinstance(value, np.ndarray) else value

    return found


_property("int_repr", "elements")
_property("q_scale", "scale")
_property("q_zero_point", "zero_point")


def _of_elements(name: str) -> None:
    @operator(f"aten::{name}", of="opaque", gradient=False)
    def call(self: OpaqueTensor, *args: Any, **keywords: Any) -> OpaqueTensor:
        """Apply the operator to the integers of a tensor quantized per tensor; scale and zero point are kept."""
        parts = self.parts
        if "elements" not in parts or "axis" in parts or parts["elements"].shape != self.shape:
            raise Unsupported(f"the reference reader does not support aten::{name} for this kind of tensor", code="operator")
        array = resolve(f"aten::{name}")(Tensor(parts["elements"]), *args, **keywords).array
        return OpaqueTensor(STRIDED, self.dtype, array.shape, {**parts, "elements": array})


for _name in ("view", "transpose", "select", "slice", "narrow", "clone", "reshape", "permute", "unsqueeze", "squeeze", "contiguous", "flatten",
              "detach", "expand", "max", "min", "channel_shuffle", "repeat"):  # fmt: skip
    _of_elements(_name)


def _parts_of_elements(name: str) -> None:
    @operator(f"aten::{name}", of="opaque", gradient=False)
    def call(self: OpaqueTensor, *args: Any, **keywords: Any) -> list[OpaqueTensor]:
        """Parts of the integers of a tensor quantized per tensor, with its scale and zero point."""
        parts = self.parts
        if "elements" not in parts or "axis" in parts or parts["elements"].shape != self.shape:
            raise Unsupported(f"the reference reader does not support aten::{name} for this kind of tensor", code="operator")
        results = resolve(f"aten::{name}")(Tensor(parts["elements"]), *args, **keywords)
        return [OpaqueTensor(STRIDED, self.dtype, item.shape, {**parts, "elements": item.array}) for item in results]


for _name in ("chunk", "split", "split_with_sizes", "unbind"):
    _parts_of_elements(_name)


@operator("aten::relu", of="opaque", gradient=False)
def relu(self: OpaqueTensor) -> OpaqueTensor:
    """Replace integers that represent negative numbers with the zero point."""
    parts = self.parts
    if "zero_point" not in parts or parts["elements"].shape != self.shape:
        raise Unsupported("the reference reader does not support aten::relu for this kind of tensor", code="operator")
    return OpaqueTensor(
        STRIDED,
        self.dtype,
        self.shape,
        {**parts, "elements": np.maximum(parts["elements"], parts["elements"].dtype.type(parts["zero_point"]))},
    )


def _compared(name: str) -> None:
    @operator(f"aten::{name}", of="opaque", gradient=False)
    def compare(self: OpaqueTensor, other: Any) -> Tensor:
        """Compare the numbers that the integers represent."""
        if other.__class__ is not OpaqueTensor or any("zero_point" not in operand.parts for operand in (self, other)):
            raise Unsupported(f"the reference reader does not support aten::{name} for these kinds of tensors", code="operator")
        return resolve(f"aten::{name}")(dequantized(self), dequantized(other))  # type: ignore[no-any-return]


_compared("eq")
_compared("ne")
