"""Tensors that NumPy cannot represent: quantized tensors, and dtypes such as ``complex32`` and ``uint3``.

Programs can pass such tensors around and return them with their contents from the archive. The ``parts`` of an :class:`OpaqueTensor` are:

* for a quantized tensor, ``elements`` (int8, uint8 or int32 in the shape of the tensor; for ``quint4x2`` and ``quint2x4`` the packed bytes
  in one dimension) and ``scheme``, then ``scale`` and ``zero_point``, or ``scales``, ``zero_points`` (tensors) and ``axis``;
* for a strided tensor of another dtype, ``bytes``: an array with its shape and strides whose items are the bytes of each element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.pickles import Tensor as PickledTensor
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.values.dtypes import DTYPES, PACKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.dtypes import Dtype

    Array = np.ndarray[Any, Any]

__all__ = ["ELEMENTS", "STRIDED", "pickled", "sizes_of", "without_numbers"]

STRIDED, NESTED = "torch.strided", "torch.nested"
INT64 = 1 << 63
ELEMENTS = {row.name: arrays.sized_dtype("=", row.numpy) for row in DTYPES.values() if row.kind == "quantized" and row.numpy}
"""The integer dtype of each quantized dtype that NumPy supports."""


def sizes_of(value: Tensor | OpaqueTensor) -> tuple[int, ...]:
    """The sizes of a tensor.

    Raises:
        Unsupported: the tensor is nested; its components have sizes of their own.
    """
    if value.__class__ is OpaqueTensor and value.layout == NESTED:
        raise Unsupported("the reference reader does not support the sizes of a nested tensor", code="value")
    return value.shape


def without_numbers(value: PickledTensor, dtype: Dtype) -> OpaqueTensor:
    """A tensor that is passed around without its contents: sparse, nested, or a conjugate view."""
    return OpaqueTensor(f"torch.{value.layout}", dtype, tuple(value.shape), dict(value.parts or {}))


def pickled(value: PickledTensor, dtype: Dtype, base: Array, part: Callable[[Any], Any], where: str) -> OpaqueTensor:
    """Create a strided tensor with a dtype that NumPy lacks.

    Parameters:
        base: the bytes of the storage, in the byte order of this machine.
        part: creates the tensors of scales and zero points.

    Raises:
        Corrupt: the tensor extends beyond its storage, or its quantizer is invalid.
        Unsupported: its elements are smaller than a byte, and it does not cover its whole storage.
    """
    bits = PACKED.get(dtype.name)
    if bits is None:
        kind = ELEMENTS.get(dtype.name) or arrays.sized_dtype("|", f"V{dtype.itemsize}")
        result = arrays.view(base, kind, value.shape, value.strides or (), value.offset, where=where)
    else:
        length = -(-value.numel * bits // 8)
        if value.offset or value.strides != arrays.contiguous_strides(value.shape):
            raise Unsupported(f"has a tensor that is only a part of a storage of {dtype.name}", where=where, code="packed-view")
        if length > base.size:
            message = f"contains {base.size} bytes; a tensor of {dtype.name} and shape {value.shape} needs {length}"
            raise Corrupt(message, where=where, code="storage-too-short")
        result = base[:length]
    parts = {"bytes": result} if value.quantizer is None else {"elements": result, **_quantizer(value.quantizer, part, where)}
    product = OpaqueTensor(STRIDED, dtype, tuple(value.shape), parts)
    product.requires_grad = value.requires_grad
    return product


def _quantizer(quantizer: tuple[Any, ...], part: Callable[[Any], Any], where: str) -> dict[str, Any]:
    """The quantization scheme with its scales and zero points."""
    scheme = str(quantizer[0])
    if len(quantizer) == 3 and {type(quantizer[1]), type(quantizer[2])} <= {int, float}:
        return {"scheme": scheme, "scale": quantizer[1], "zero_point": quantizer[2]}
    if len(quantizer) == 4 and quantizer[3].__class__ is int:
        scales, zero_points = (_channels(item, part) for item in quantizer[1:3])
        if scales is not None and zero_points is not None:
            if zero_points.array.dtype.kind == "f":  # the only difference between the schemes in torch
                scheme = "per_channel_affine_float_qparams"
            return {"scheme": scheme, "scales": scales, "zero_points": zero_points, "axis": quantizer[3]}
    message = "has a quantized tensor whose scales and zero points are neither numbers nor plain tensors"
    raise Corrupt(message, where=where, code="bad-tensor")


def _channels(item: Any, part: Callable[[Any], Any]) -> Tensor | None:
    """The numbers per channel: a tensor, or a list in 1.3 and 1.4."""
    if item.__class__ is list:
        kinds = {type(number) for number in item}
        if kinds == {float}:
            return Tensor(np.array(item, np.float64))
        return Tensor(np.array(item, np.int64)) if kinds == {int} and all(-INT64 <= number < INT64 for number in item) else None
    result = part(item) if item.__class__ is PickledTensor else None
    return result if result.__class__ is Tensor else None
