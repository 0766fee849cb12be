"""Nested tensors and their padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.runtime import dtypes
from torch_compat.runtime.opaque import NESTED
from torch_compat.runtime.operators._common import (
    any_dtype,
    cast,
    checked_scalar,
    fail,
    on_cpu,
    to_size,
)
from torch_compat.runtime.registry import FLOATING, grad, operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import raised

NOTHING_REFUSED = "2.2.0"
"""As of this release, a nested tensor without elements cannot be padded."""


@operator("aten::_nested_tensor_from_tensor_list", of="list")
def nested_from_list(
    list: Any,  # noqa: A002 - the name in the schema
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> OpaqueTensor:
    """Combine tensors of any sizes into a nested tensor; all are cast to the dtype of the first unless one is given."""
    del layout, pin_memory
    on_cpu(device)
    rank = list[0].array.ndim if list else 0
    for place, tensor in enumerate(list):
        if tensor.array.ndim != rank:
            raise fail(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {tensor.array.ndim} for Tensor at index {place} and dimension {rank} for Tensor at index 0."
            )
    kind = any_dtype(dtype, list[0].array.dtype if list else dtypes.default_dtype().array)
    result = OpaqueTensor(
        NESTED, dtypes.of_numpy(kind), (len(list),), {"tensors": [cast(item.array, kind).copy() for item in list]}
    )
    result.requires_grad = (
        grad.enabled and dtypes.of_numpy(kind).category >= FLOATING and any(item.requires_grad for item in list)
    )
    return result


def _padded(since: str, *, nothing: bool) -> None:
    def call(self: Any, padding: float, output_size: Any = None) -> Tensor:
        """Pad nested tensors into one tensor: each is put at the start of its row and followed by the padding value."""
        if self.__class__ is not OpaqueTensor or self.layout != NESTED:
            raise raised("NotImplementedError", "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend.")
        parts = self.parts["tensors"]
        if not parts:
            return Tensor(np.zeros(0, self.dtype.array))
        if not parts[0].ndim:
            raise fail("sizes_size_1 > 0 INTERNAL ASSERT FAILED: a nested tensor of numbers is not padded")
        if not nothing and not any(item.size for item in parts):
            raise fail("to_padded_tensor: at least one constituent tensor should have non-zero numel")
        shape = [len(parts), *map(max, zip(*(item.shape for item in parts), strict=True))]
        if output_size is not None:
            asked = to_size(output_size)
            if len(asked) != len(shape):
                raise fail("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
            if any(given < least for given, least in zip(asked, shape, strict=True)):
                raise fail("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            shape = [*asked]
        result = np.full(to_size(shape), checked_scalar(padding, self.dtype.array), self.dtype.array)
        for place, part in enumerate(parts):
            there: tuple[Any, ...] = (place, *map(slice, part.shape))
            result[there] = part
        tensor = Tensor(result, requires_grad=self.requires_grad)
        tensor.is_leaf = not self.requires_grad
        return tensor

    operator("aten::to_padded_tensor", since=since, of="any")(call)


_padded("1.0.0", nothing=True)
_padded(NOTHING_REFUSED, nothing=False)
