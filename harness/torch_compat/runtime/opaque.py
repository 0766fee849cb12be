"""Tensors of a program that NumPy has no array for: quantized ones, and those of dtypes such as ``complex32`` and ``uint3``.

Programs carry them about and hand them out, as their numbers stand in the archive. ``parts`` of such an :class:`OpaqueTensor` are:

* of a quantized tensor ``elements`` (int8, uint8 or int32, in its shape; of ``quint4x2`` and ``quint2x4`` the packed bytes, one axis)
  and ``scheme``, then ``scale`` and ``zero_point``, or ``scales``, ``zero_points`` (a tensor each) and ``axis``;
* of a strided tensor of another dtype ``bytes``: an array of its shape and strides whose elements are the bytes of each element.
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
    """The sizes of any tensor that has them.

    Raises:
        Unsupported: it is a nested tensor, whose sizes are not those of its parts.
    """
    if value.__class__ is OpaqueTensor and value.layout == NESTED:
        raise Unsupported("the reference reader does not support the sizes of a nested tensor", code="value")
    return value.shape


def without_numbers(value: PickledTensor, dtype: Dtype) -> OpaqueTensor:
    """A tensor that is carried about but not shown: a sparse or nested one, or a conjugate view."""
    return OpaqueTensor(f"torch.{value.layout}", dtype, tuple(value.shape), dict(value.parts or {}))


def pickled(value: PickledTensor, dtype: Dtype, base: Array, part: Callable[[Any], Any], where: str) -> OpaqueTensor:
    """A strided tensor of a dtype that NumPy lacks.

    Parameters:
        base: the bytes of its storage, in the byte order of this machine.
        part: makes the tensors of its scales and zero points.

    Raises:
        Corrupt: it reaches beyond its storage, or its quantizer is none.
        Unsupported: its elements are smaller than a byte, and it is only a part of its storage.
    """
    bits = PACKED.get(dtype.name)
    if bits is None:
        kind = ELEMENTS.get(dtype.name) or arrays.sized_dtype("|", f"V{dtype.itemsize}")
        found = arrays.view(base, kind, value.shape, value.strides or (), value.offset, where=where)
    else:
        length = -(-value.numel * bits // 8)
        if value.offset or value.strides != arrays.contiguous_strides(value.shape):
            raise Unsupported(f"has a tensor that is only a part of a storage of {dtype.name}", where=where, code="packed-view")
        if length > base.size:
            said = f"contains {base.size} bytes; a tensor of {dtype.name} and shape {value.shape} needs {length}"
            raise Corrupt(said, where=where, code="storage-too-short")
        found = base[:length]
    parts = {"bytes": found} if value.quantizer is None else {"elements": found, **_quantizer(value.quantizer, part, where)}
    made = OpaqueTensor(STRIDED, dtype, tuple(value.shape), parts)
    made.requires_grad = value.requires_grad
    return made


def _quantizer(quantizer: tuple[Any, ...], part: Callable[[Any], Any], where: str) -> dict[str, Any]:
    """The scheme, and by which numbers elements stand for others."""
    scheme = str(quantizer[0])
    if len(quantizer) == 3 and {type(quantizer[1]), type(quantizer[2])} <= {int, float}:
        return {"scheme": scheme, "scale": quantizer[1], "zero_point": quantizer[2]}
    if len(quantizer) == 4 and quantizer[3].__class__ is int:
        scales, zero_points = (_channels(item, part) for item in quantizer[1:3])
        if scales is not None and zero_points is not None:
            if zero_points.array.dtype.kind == "f":  # torch tells the schemes apart by it alone
                scheme = "per_channel_affine_float_qparams"
            return {"scheme": scheme, "scales": scales, "zero_points": zero_points, "axis": quantizer[3]}
    said = "has a quantized tensor whose scales and zero points are neither numbers nor plain tensors"
    raise Corrupt(said, where=where, code="bad-tensor")


def _channels(item: Any, part: Callable[[Any], Any]) -> Tensor | None:
    """The number of each channel: a tensor; in 1.3 and 1.4 a list."""
    if item.__class__ is list:
        kinds = {type(number) for number in item}
        if kinds == {float}:
            return Tensor(np.array(item, np.float64))
        return Tensor(np.array(item, np.int64)) if kinds == {int} and all(-INT64 <= number < INT64 for number in item) else None
    made = part(item) if item.__class__ is PickledTensor else None
    return made if made.__class__ is Tensor else None
