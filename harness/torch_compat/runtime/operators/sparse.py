"""Sparse tensors in coordinate form, as far as programs make one and write it out again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import any_dtype, cast, fail, on_cpu, to_size
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import raised

COO = "torch.sparse_coo"


@operator("aten::sparse_coo_tensor", of="any", gradient=False)
def sparse_coo_tensor_1_0(*args: Any, **keywords: Any) -> OpaqueTensor:
    """Up to 1.1 the interpreter cannot make one."""
    del args, keywords
    raise fail("Must not create a new variable from a variable, use its .data()")


@operator("aten::sparse_coo_tensor", since="1.2.0", of="any", gradient=False)
def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    is_coalesced: bool | None = None,
) -> OpaqueTensor:
    """Values at places: the columns of ``indices`` are the first coordinates of each value."""
    del layout, pin_memory, is_coalesced
    on_cpu(device)
    if indices.__class__ is not Tensor or values.__class__ is not Tensor:  # the overload of a size alone
        raise Unsupported("the reference reader does not support creating a sparse tensor from a size alone", code="value")
    places, elements = indices.array, values.array
    if places.ndim != 2 or not elements.ndim or places.shape[1] != len(elements) or places.dtype.kind not in "iu":
        raise Unsupported("the reference reader does not support a sparse tensor with these indices and values", code="value")
    if size is None:
        raise Unsupported("the reference reader does not support creating a sparse tensor without a size", code="value")
    shape = to_size(size)
    if len(shape) != places.shape[0] + elements.ndim - 1 or shape[places.shape[0] :] != elements.shape[1:]:
        raise fail("number of dimensions must be sparse_dim + dense_dim")
    if places.size:
        if places.min() < 0:
            raise fail("found negative index")
        bounds = np.array(shape[: places.shape[0]])[:, None]
        if (places >= bounds).any():
            raise fail("size is inconsistent with indices")
    kind = any_dtype(dtype, elements.dtype)
    parts = {"indices": places.copy(), "values": cast(elements, kind).copy()}
    return OpaqueTensor(COO, dtypes.of_numpy(kind), shape, parts)


@operator("aten::to_dense", of="any", gradient=False)
def to_dense_1_0(self: Any, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """Every element, those without a value as zero; values at one place are added. Strided tensors are refused."""
    del masked_grad
    if self.__class__ is not OpaqueTensor or self.layout != COO or "indices" not in self.parts:
        raise raised("RuntimeError", "Could not run 'aten::to_dense' with these arguments from the 'CPU' backend.")
    meter.array(math.prod(self.shape))
    places, values = self.parts["indices"], self.parts["values"]
    made = np.zeros(self.shape, values.dtype)
    np.add.at(made, tuple(places), values)
    return Tensor(cast(made, any_dtype(dtype, made.dtype)))


@operator("aten::to_dense", since="1.12.0")
def to_dense(self: Tensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """A strided tensor is itself, or a copy of the dtype given."""
    del masked_grad
    kind = any_dtype(dtype, self.array.dtype)
    return self if kind == self.array.dtype else Tensor(cast(self.array, kind))
