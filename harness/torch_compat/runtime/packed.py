"""Packed parameters: objects of the ``torch.classes`` classes that hold the weights of quantized networks.

A release packs a weight for the kernels of fbgemm, and unpacks it to the same numbers; so an object holds the weight and its options. Up
to 1.5 a packed weight is a tensor that no program can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Refused
from torch_compat.operators.types import CLASS_PREFIX
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import CustomObject, raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.tensor import Array

__all__ = ["PackedCell", "PackedConvolution", "PackedEmbedding", "PackedHalves", "PackedLinear", "channels_of", "made"]

LINEAR = "quantized.LinearPackedParamsBase"
LARGEST_HALF = 65504.0
LARGEST_ZERO = 1 << 31


def _wrong(message: str) -> Exception:
    return raised("RuntimeError", message)


def is_quantized(value: Any, *dtypes: str) -> bool:
    """Whether a value is a quantized tensor with its integers, of one of these dtypes if any are given."""
    if value.__class__ is not OpaqueTensor or (dtypes and value.dtype.name not in dtypes):
        return False
    parts = value.parts
    if "elements" not in parts or parts["elements"].shape != value.shape:
        return False
    return "axis" in parts or (parts["zero_point"].__class__ is int and abs(parts["zero_point"]) <= LARGEST_ZERO)


@np.errstate(over="ignore")  # a scale beyond float32 becomes infinite, as in C++
def channels_of(weight: OpaqueTensor, axis: int) -> tuple[Array, Array]:
    """The scales (float32) and zero points (int64) of a weight: without dimensions, or one for each channel along an axis.

    Raises:
        Raised: the weight is quantized along another axis, or with zero points that are not integers.
    """
    parts = weight.parts
    if "axis" not in parts:
        return np.array(parts["scale"], np.float32), np.array(parts["zero_point"], np.int64)
    scales, zeros = parts["scales"].array, parts["zero_points"].array
    if parts["axis"] != axis or scales.shape != (weight.shape[axis],) or zeros.shape != scales.shape or zeros.dtype.kind != "i":
        raise _wrong("Unsupported qscheme: the weight is not quantized with a scale and an integer for each output channel")
    return scales.astype(np.float32), zeros.astype(np.int64)


def _bias(bias: Any, count: int) -> Array | None:
    if bias is None:
        return None
    if bias.__class__ is not Tensor or bias.array.dtype != np.float32:
        raise _wrong("expected scalar type Float for the bias")
    if bias.array.ndim != 1:
        raise _wrong("bias should be a vector (1D Tensor)")
    if bias.array.size != count:
        raise _wrong(f"bias should have N elements: {count}")
    return np.ascontiguousarray(bias.array)


class PackedLinear(CustomObject):
    """The weight of a linear layer in 8 bits.

    Attributes:
        weight: [outputs, inputs].
        bias: the bias, None if there is none.
        scales, zeros: one each, or one for each output.
        integers: the weight's integers.
    """

    __slots__ = ("bias", "integers", "scales", "weight", "zeros")

    def __init__(self, weight: Any, bias: Any, where: str = "") -> None:
        super().__init__(CLASS_PREFIX + LINEAR, where)
        if not is_quantized(weight, "qint8"):
            raise _wrong("quantized::linear_prepack expects a weight of dtype qint8")
        if len(weight.shape) != 2:
            raise _wrong("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
        self.weight = weight
        self.scales, self.zeros = channels_of(weight, 0)
        self.integers = weight.parts["elements"]
        self.bias = bias
        _bias(bias, weight.shape[0])

    def m_unpack(self) -> tuple[Any, Any]:
        """The weight and the bias."""
        return self.weight, self.bias

    def m_bias(self) -> Any:
        """The bias."""
        return self.bias


class PackedHalves(CustomObject):
    """The weight of a linear layer in float16; numbers out of its range become its largest ones.

    Attributes:
        weight: [outputs, inputs], rounded to float16 and converted to float32.
        bias: the bias, None if there is none.
    """

    __slots__ = ("bias", "weight")

    def __init__(self, weight: Any, bias: Any, where: str = "") -> None:
        super().__init__(CLASS_PREFIX + LINEAR, where)
        if weight.__class__ is not Tensor or weight.array.dtype != np.float32:
            raise _wrong("quantized::linear_prepack_fp16 expects a weight of dtype float32")
        if weight.array.ndim != 2:
            raise _wrong("The weight tensor for quantized::linear_prepack_fp16 (fbgemm) should be 2-dimensional.")
        clipped = np.clip(weight.array, -LARGEST_HALF, LARGEST_HALF)
        self.weight = Tensor(clipped.astype(np.float16).astype(np.float32))
        self.bias = bias
        _bias(bias, weight.shape[0])

    def m_unpack(self) -> tuple[Any, Any]:
        """The weight in float32 and the bias."""
        return Tensor(self.weight.array.copy()), self.bias

    def m_bias(self) -> Any:
        """The bias."""
        return self.bias


def packed_linear(weight: Any, bias: Any, where: str = "") -> PackedLinear | PackedHalves:
    """Pack the weight of a linear layer as its dtype demands."""
    return (PackedHalves if weight.__class__ is Tensor else PackedLinear)(weight, bias, where)


class PackedConvolution(CustomObject):
    """The weight and the options of a convolution in 8 bits.

    Attributes:
        weight: [outputs, inputs / groups, *kernel]; [inputs, outputs / groups, *kernel] if transposed.
        bias: the bias, None if there is none.
        scales, zeros: one each, or one for each output.
        stride, padding, output_padding, dilation: for each spatial dimension.
        groups: the number of groups.
        transposed: whether it is a transposed convolution.
    """

    __slots__ = ("bias", "dilation", "groups", "output_padding", "padding", "scales", "stride", "transposed", "weight", "zeros")

    def __init__(
        self, weight: Any, bias: Any, spatial: int, *, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int,
        transposed: bool, where: str = "",
    ) -> None:  # fmt: skip
        super().__init__(f"{CLASS_PREFIX}quantized.Conv{spatial}dPackedParamsBase", where)
        if not is_quantized(weight, "qint8"):
            raise _wrong("quantized::conv_prepack expects a weight of dtype qint8")
        if len(weight.shape) != spatial + 2:
            raise _wrong(f"Weights are expected to have {spatial + 2} dimensions")
        for name, value in (("stride", stride), ("padding", padding), ("output_padding", output_padding), ("dilation", dilation)):
            if len(value) != spatial or not all(item.__class__ is int for item in value):
                raise _wrong(f"{name} should contain {spatial} elements for {spatial}D convolution.")
        if groups < 1 or weight.shape[0] % groups:
            raise _wrong("the number of channels must be divisible by the number of groups")
        if min(stride) < 1 or min(dilation) < 1 or min(padding) < 0 or min(output_padding) < 0:
            raise _wrong("strides and dilations must be positive, and paddings must not be negative")
        self.weight, self.bias = weight, bias
        self.scales, self.zeros = channels_of(weight, 1 if transposed else 0)
        if transposed and self.scales.size > 1 and groups > 1:
            raise _wrong("Per Channel Quantization is currently disabled for transposed conv")
        self.stride, self.padding, self.output_padding, self.dilation = (
            tuple(item) for item in (stride, padding, output_padding, dilation)
        )
        self.groups, self.transposed = groups, transposed
        _bias(bias, self.outputs)

    @property
    def spatial(self) -> int:
        """The number of spatial dimensions."""
        return len(self.stride)

    @property
    def outputs(self) -> int:
        """The number of output channels."""
        shape = self.weight.shape
        return int(shape[1] * self.groups if self.transposed else shape[0])

    @property
    def inputs(self) -> int:
        """The number of input channels."""
        shape = self.weight.shape
        return int(shape[0] if self.transposed else shape[1] * self.groups)

    def m_unpack(self) -> tuple[Any, Any]:
        """The weight and the bias."""
        return self.weight, self.bias

    def m_weight(self) -> Any:
        """The weight."""
        return self.weight

    def m_bias(self) -> Any:
        """The bias."""
        return self.bias

    def m_stride(self) -> list[int]:
        """The strides."""
        return list(self.stride)

    def m_padding(self) -> list[int]:
        """The padding."""
        return list(self.padding)

    def m_output_padding(self) -> list[int]:
        """The padding of the output of a transposed convolution."""
        return list(self.output_padding)

    def m_dilation(self) -> list[int]:
        """The dilations."""
        return list(self.dilation)

    def m_groups(self) -> int:
        """The number of groups."""
        return self.groups

    def m_transpose(self) -> bool:
        """Whether it is a transposed convolution."""
        return self.transposed


CELLS: dict[str, type] = {"quantized_dynamic": PackedLinear, "quantized_fp16": PackedHalves}
"""The kinds of cells, with the class of their weights."""


class PackedCell(CustomObject):
    """The weights of a layer of a recurrent network in one direction.

    Attributes:
        kind: ``quantized_dynamic`` or ``quantized_fp16``.
        inputs, hidden: the weights for the inputs and for the hidden state.
        reduce_range: whether numbers are quantized to 7 bits.
    """

    __slots__ = ("hidden", "inputs", "kind", "reduce_range")

    def __init__(self, kind: str, inputs: Any, hidden: Any, *, reduce_range: bool = False, where: str = "") -> None:
        super().__init__(f"{CLASS_PREFIX}rnn.CellParamsBase", where)
        expected = CELLS[kind]
        if inputs.__class__ is not expected or hidden.__class__ is not expected:
            raise _wrong(f"a cell of the kind {kind} has weights of another kind")
        self.kind, self.inputs, self.hidden, self.reduce_range = kind, inputs, hidden, reduce_range


class PackedEmbedding(CustomObject):
    """The weight of an embedding in 8 bits, with a scale and a floating-point zero point for each row.

    Attributes:
        weight: [rows, columns].
    """

    __slots__ = ("weight",)

    def __init__(self, weight: Any, where: str = "") -> None:
        super().__init__(f"{CLASS_PREFIX}quantized.EmbeddingPackedParamsBase", where)
        if not is_quantized(weight, "quint8"):
            raise _wrong("quantized::embedding_bag_prepack expects a weight of dtype quint8")
        parts = weight.parts
        if len(weight.shape) != 2 or parts.get("axis") != 0 or parts["zero_points"].array.dtype.kind != "f":
            raise _wrong("Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams")
        if {parts[name].array.shape for name in ("scales", "zero_points")} != {(weight.shape[0],)}:
            raise _wrong("the weight has another number of scales and zero points than rows")
        self.weight = weight

    def m_unpack(self) -> Any:
        """The weight."""
        return self.weight

    def m_bit_rate(self) -> int:
        """The number of bits of an element."""
        return 8

    def m_version(self) -> int:
        """The version of the state."""
        return 1


# ----------------------------------------------------------------------------------------------------------------- archives


class _StateError(Exception):
    """The state of an object does not have the form of any release."""


def _linear(state: Any, where: str) -> CustomObject:
    weight, bias = state
    return packed_linear(weight, bias, where)


def _whole(value: Any) -> int:
    if value.__class__ is Tensor and value.array.size == 1:
        value = value.item()
    if value.__class__ is not int:
        raise _StateError
    return int(value)


def _convolution(spatial: int) -> Callable[[Any, str], CustomObject]:
    def convolution(state: Any, where: str) -> CustomObject:
        """The state is a tuple of tensors in 1.6, tagged with ``2`` and one tensor of options as of 1.7, or with 3 and a list."""
        tag = state[0]
        if tag.__class__ is not str and tag.__class__ is not int:
            weight, bias, stride, padding, dilation, groups = state
            options = [[_whole(item) for item in part] for part in (stride, padding, dilation)]
            return PackedConvolution(
                weight, bias, spatial, stride=options[0], padding=options[1], dilation=options[2], output_padding=[0] * spatial,
                groups=_whole(groups), transposed=False, where=where,
            )  # fmt: skip
        if str(tag) == "2":
            (config, weight), (bias,) = state[1], state[2]
            numbers = [int(item) for item in config.array.reshape(-1).tolist()]
        elif str(tag) == "3":
            numbers = [_whole(item) for item in state[1]]
            _, weight, bias = state[2]
        else:
            raise _StateError
        if len(numbers) not in {4 * spatial + 3, 4 * spatial + 2} or numbers[0] != spatial:
            raise _StateError
        stride, padding, dilation, output_padding = (numbers[1 + at * spatial :][:spatial] for at in range(4))
        return PackedConvolution(
            weight, bias, spatial, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding,
            groups=numbers[1 + 4 * spatial], transposed=bool(numbers[2 + 4 * spatial :] == [1]), where=where,
        )  # fmt: skip

    return convolution


def _cell(state: Any, where: str) -> CustomObject:
    kind, _, _, integers, weights = state
    if kind not in CELLS:
        return CustomObject(f"{CLASS_PREFIX}rnn.CellParamsBase", where)
    inputs, hidden = weights
    return PackedCell(kind, inputs, hidden, reduce_range=bool(integers and integers[0]), where=where)


def _embedding(state: Any, where: str) -> CustomObject:
    _, (weight,), _, _ = state
    if weight.__class__ is OpaqueTensor and weight.dtype.name != "quint8":
        return CustomObject(f"{CLASS_PREFIX}quantized.EmbeddingPackedParamsBase", where)
    return PackedEmbedding(weight, where)


MAKERS: dict[str, Callable[[Any, str], CustomObject]] = {
    LINEAR: _linear,
    "quantized.Conv2dPackedParamsBase": _convolution(2),
    "quantized.Conv3dPackedParamsBase": _convolution(3),
    "quantized.EmbeddingPackedParamsBase": _embedding,
    "rnn.CellParamsBase": _cell,
}
"""What creates an object of a class from its state and the name of the archive."""


def made(name: str, state: Callable[[], Any], where: str) -> CustomObject:
    """An object of a ``torch.classes`` class, from its state in an archive.

    Parameters:
        name: the name of the class.
        state: gives the state, which is not looked at for other classes.

    Raises:
        Refused: the state does not have the form of any release.
        Raised: the class refuses the weight.
    """
    maker = MAKERS.get(name.removeprefix(CLASS_PREFIX))
    if maker is None:
        return CustomObject(name, where)
    try:
        return maker(state(), where)
    except (_StateError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise Refused(f"an object of {name} has a state that no release writes", where=where, code="pickle") from error
