"""Numbers that are rounded as if they were quantized, with one scale and zero point or with one for each channel.

Ties of the sum of the scaled number and the zero point are rounded to even up to 1.5, and ties of the scaled number since 1.6. Zero points
of channels that are floating-point numbers, which 1.10 and newer accept, are added before rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.dtypes import BFLOAT16
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, INT64, Array, cast, fail, not_implemented, words
from torch_compat.runtime.operators._memory_formats import CHANNELS_LAST, CONTIGUOUS, is_formatted, laid_as
from torch_compat.runtime.operators.quantized import scaled
from torch_compat.runtime.registration import grad
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__: list[str] = []

Kinds = frozenset[np.dtype[Any]]
FLOAT16: np.dtype[Any] = np.dtype(np.float16)
ONLY_FLOAT32: Kinds = frozenset({FLOAT32})
FLOATS: Kinds = frozenset({FLOAT16, FLOAT32, FLOAT64})
ALL_FLOATS: Kinds = FLOATS | {BFLOAT16.array}
INTEGERS: Kinds = frozenset({np.dtype(np.int32)})
LOST = 2.0**63
"""As of this number, converting to a 64-bit integer gives the smallest one."""


@dataclass(frozen=True)
class _Manner:
    """How a release rounds.

    Attributes:
        together: whether the sum of the number and the zero point is rounded, not the number alone.
        of: the dtypes that are accepted.
        narrow: whether one scale rounds in float32 without an integer, so that infinity becomes the largest number.
        places: the dtypes of the zero points of channels; None if others are converted.
        converts: whether other dtypes of the scales of channels are converted.
        ordered: whether a tensor with channels must be contiguous or channels-last.
        reads: whether the kernel for channels reads tensors of other dtypes as if they had the right one.
        bounded: whether zero points of channels must be within the bounds even if they are floating-point numbers.
    """

    together: bool
    of: Kinds
    narrow: bool = False
    places: Kinds | None = None
    converts: bool = False
    ordered: bool = False
    reads: bool = False
    bounded: bool = True


def _check(array: Array, quant_min: int, quant_max: int, of: Kinds, kernel: str) -> None:
    """Refuse other dtypes, and bounds that are crossed.

    Raises:
        Raised: as above.
    """
    if array.dtype not in of:
        if len(of) == 1:
            raise fail("Expected self.scalar_type() == ScalarType::Float to be true, but got false.")
        raise not_implemented(kernel, array.dtype)
    if quant_min > quant_max:
        raise fail("`quant_min` should be less than or equal to `quant_max`.")


def _precise(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _per_tensor(since: str, manner: _Manner) -> None:
    def rounded(self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
        """The rounded numbers, and which of them are within the bounds."""
        array = self.array
        scale = _item(scale)
        zero_point = int(_item(zero_point))
        _check(array, quant_min, quant_max, manner.of, "fake_quantize_tensor_cachemask_kernel_type_handling")
        if not quant_min <= zero_point <= quant_max:
            raise fail("`zero_point` must be between `quant_min` and `quant_max`.")
        precise = _precise(array)
        numbers = scaled(precise, scale, zero_point, together=manner.together)
        lost = np.isnan(numbers) | (np.abs(numbers) >= LOST)
        inside = ~lost & (numbers >= quant_min) & (numbers <= quant_max)
        if manner.narrow:
            numbers, lost = numbers.astype(np.float32), np.isnan(numbers)
        number = numbers.dtype.type
        with np.errstate(all="ignore"):
            result = np.where(lost, number(quant_min), np.clip(numbers, number(quant_min), number(quant_max)))
            if not manner.narrow:
                result = result + number(0)  # an integer has no negative zero
            result = (result - number(zero_point)) * number(np.float32(scale))
        return _laid(self, result, array.dtype), _laid(self, inside, inside.dtype)

    def fake_quantize_per_tensor_affine(self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
        """Round numbers to those that quantized integers within bounds can represent."""
        return rounded(self, scale, zero_point, quant_min, quant_max)[0]

    operator("aten::fake_quantize_per_tensor_affine", since=since)(fake_quantize_per_tensor_affine)
    if not manner.together:
        operator("aten::fake_quantize_per_tensor_affine_cachemask", since=since)(rounded)


def _laid(self: Tensor, values: Array, kind: np.dtype[Any]) -> Tensor:
    """The values with the strides of a tensor."""
    result = laid_as(self.array, kind, None)
    result[...] = cast(values, kind)
    return Tensor(result)


def _item(value: Any) -> Any:
    """The number of a scale or zero point.

    Raises:
        Raised: it is a tensor that does not have exactly one element.
    """
    if value.__class__ is not Tensor:
        return value
    if value.array.size != 1:
        raise fail(f"a Tensor with {value.array.size} elements cannot be converted to Scalar")
    return value.array.item()


def _per_channel(since: str, manner: _Manner) -> None:
    def rounded(
        self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
    ) -> tuple[Tensor, Tensor]:
        """The rounded numbers, and which of them are within the bounds."""
        array = self.array
        _check_channels(self, scale, zero_point, axis, manner)
        _check(array, quant_min, quant_max, manner.of, "fake_quantize_channel_cachemask_cpu_type_handling")
        shape = tuple(-1 if at == axis else 1 for at in range(array.ndim))
        whole = manner.places is None or zero_point.array.dtype.kind == "i"
        places = zero_point.array.astype(np.int64 if whole else np.float32)
        if (whole or manner.bounded) and (int(places.min()) < quant_min or int(places.max()) > quant_max):
            raise fail("`zero_point` must be between `quant_min` and `quant_max`.")
        scales, zeros = (item.reshape(shape) for item in (scale.array.astype(np.float32), places.astype(np.float32)))
        precise = _precise(array)
        number = precise.dtype.type
        with np.errstate(all="ignore"):
            numbers = precise * (np.float32(1) / scales).astype(number)
            zeros = zeros.astype(number)
            numbers = np.rint(zeros + numbers) if manner.together or not whole else zeros + np.rint(numbers)
            lost = np.isnan(numbers) | (np.abs(numbers) >= LOST)
            inside = ~lost & (numbers >= quant_min) & (numbers <= quant_max)
            kept = np.where(lost, number(quant_min), np.clip(numbers, number(quant_min), number(quant_max))) + number(0)
            result = (kept - zeros) * scales.astype(number)
        return _laid(self, result, array.dtype), _laid(self, inside, inside.dtype)

    def fake_quantize_per_channel_affine(
        self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
    ) -> Tensor:
        """Round numbers to those that quantized integers within bounds can represent, with a scale for each channel."""
        return rounded(self, scale, zero_point, axis, quant_min, quant_max)[0]

    operator("aten::fake_quantize_per_channel_affine", since=since)(fake_quantize_per_channel_affine)
    if not manner.together:
        operator("aten::fake_quantize_per_channel_affine_cachemask", since=since)(rounded)


def _check_channels(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, manner: _Manner) -> None:
    """Refuse scales and zero points that do not fit.

    Raises:
        Raised: as above.
        Unsupported: the release reads their memory as another dtype.
    """
    if grad.enabled and (scale.requires_grad or zero_point.requires_grad):
        raise fail("fake_quantize_per_channel_affine is not differentiable with respect to argument 'scale'.")
    ndim = self.array.ndim
    if scale.array.ndim != 1 or zero_point.array.ndim != 1:
        raise fail("scale and zero point should be 1-D tensors")
    if len(scale.array) != len(zero_point.array):
        raise fail("scale and zero-point need to have the same dimensions")
    if not 0 <= axis < ndim or self.array.shape[axis] != len(scale.array):
        raise fail("dimensions of scale and zero-point are not consistent with input tensor")
    if not scale.array.size:
        raise fail("min(): Expected reduction dim to be specified for input.numel() == 0.")
    other = manner.places is not None and zero_point.array.dtype not in manner.places
    if scale.array.dtype != FLOAT32 and not manner.converts:
        other = True
    if other and manner.reads:
        raise Unsupported(
            "aten::fake_quantize_per_channel_affine reads scales and zero points of another dtype as if they were float32 and int64",
            code="operator",
        )
    if other:
        raise fail(f"Zero-point or scale of another dtype: {words(zero_point.array.dtype)}, {words(scale.array.dtype)}")
    if manner.ordered and not (is_formatted(self.array, CONTIGUOUS) or is_formatted(self.array, CHANNELS_LAST)):
        raise fail("undefined behavior of the preserve format, source tensor neither channels last nor contiguous")


OLDEST = _Manner(together=True, of=ONLY_FLOAT32)
SINCE_1_6 = replace(OLDEST, together=False)
SINCE_1_9 = replace(SINCE_1_6, of=FLOATS)
SINCE_2_6 = replace(SINCE_1_9, of=ALL_FLOATS)
_per_tensor("1.0.0", OLDEST)
_per_tensor("1.6.0", SINCE_1_6)
_per_tensor("1.9.0", SINCE_1_9)
_per_tensor("2.6.0", SINCE_2_6)
_per_tensor("2.9.0", replace(SINCE_2_6, narrow=True))
LONG: Kinds = frozenset({INT64})
SHORT: Kinds = INTEGERS | {FLOAT16, FLOAT32}
_per_channel("1.0.0", replace(OLDEST, converts=True, ordered=True))
_per_channel("1.4.0", replace(OLDEST, converts=True))
_per_channel("1.5.0", replace(OLDEST, places=LONG, reads=True))
_per_channel("1.6.0", replace(SINCE_1_6, places=LONG))
_per_channel("1.9.0", replace(SINCE_1_9, places=LONG))
_per_channel("1.10.0", replace(SINCE_1_9, places=SHORT))
_per_channel("1.11.0", replace(SINCE_1_9, places=SHORT, bounded=False))
_per_channel("2.6.0", replace(SINCE_2_6, places=SHORT, bounded=False))
