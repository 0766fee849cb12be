"""Sparse tensors in coordinate format, as far as programs create, take apart, add, multiply and densify them.

Their parts are ``indices``, with a column for each value, ``values``, and ``coalesced``: whether the columns are unique and sorted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.arrays import contiguous_strides
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import Array, any_dtype, cast, fail, on_cpu, to_size
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import raised

__all__ = ["COO", "created", "inside", "parts_of", "summed"]

COO = "torch.sparse_coo"
MATRIX = 2  # dimensions
ALIGNED = 64  # the size of a block of memory in bytes


@operator("aten::sparse_coo_tensor", of="any", gradient=False)
def sparse_coo_tensor_1_0(*args: Any, **keywords: Any) -> OpaqueTensor:
    """Up to 1.1 the interpreter cannot create sparse tensors."""
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
    era: bool = True,
    single: bool = False,
) -> OpaqueTensor:
    """Create a tensor of values whose first coordinates are the columns of ``indices``; up to 1.13 these are checked.

    Parameters:
        era: whether the indices are checked.
        single: whether fewer than two values make it coalesced.
    """
    del layout, pin_memory, is_coalesced
    on_cpu(device)
    if indices.__class__ is not Tensor or values.__class__ is not Tensor:  # the overload with only a size
        raise Unsupported("the reference reader does not support creating a sparse tensor from a size alone", code="value")
    places, elements = indices.array, values.array
    if places.dtype != np.int64:
        raise fail("indices must be an int64 tensor")
    if places.ndim != MATRIX:
        raise fail(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    elements = elements if elements.ndim else elements.reshape(1)
    if places.shape[1] != len(elements):
        raise fail(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: {len(elements)}"
        )
    if size is None:
        raise Unsupported("the reference reader does not support creating a sparse tensor without a size", code="value")
    shape = to_size(size)
    if len(shape) != places.shape[0] + elements.ndim - 1 or shape[places.shape[0] :] != elements.shape[1:]:
        raise fail("number of dimensions must be sparse_dim + dense_dim")
    if places.size and era:
        if places.min() < 0:
            raise fail("found negative index")
        bounds = np.array(shape[: places.shape[0]])[:, None]
        if (places >= bounds).any():
            raise fail("size is inconsistent with indices")
    kind = any_dtype(dtype, elements.dtype)
    coalesced = single and len(elements) < 2
    return created(places, cast(elements, kind), shape, coalesced=coalesced)  # in the memory of the two tensors


@operator("aten::sparse_coo_tensor", since="1.13.0", of="any", gradient=False)
def sparse_coo_tensor_1_13(*args: Any, **keywords: Any) -> OpaqueTensor:
    """As of 1.13 a tensor of no or one value is coalesced."""
    keywords["single"] = True
    return sparse_coo_tensor(*args, **keywords)


@operator("aten::sparse_coo_tensor", since="2.0.0", of="any", gradient=False)
def sparse_coo_tensor_2_0(*args: Any, **keywords: Any) -> OpaqueTensor:
    """As of 2.0 indices are not checked."""
    keywords["era"] = False
    return sparse_coo_tensor_1_13(*args, **keywords)


def _keys(indices: Array, shape: tuple[int, ...]) -> Array:
    """The offsets of indices in a contiguous tensor, in elements; they are outside of it if a coordinate is too large."""
    steps = contiguous_strides(shape)[: len(indices)]
    return np.asarray((indices * np.array(steps, np.int64).reshape(-1, 1)).sum(axis=0), np.int64)


def inside(indices: Array, shape: tuple[int, ...]) -> None:
    """Check that indices are within a shape.

    Raises:
        Unsupported: they are not.
    """
    bounds = np.array(shape[: len(indices)], np.int64).reshape(-1, 1)
    if indices.size and ((indices < 0) | (indices >= bounds)).any():
        raise Unsupported(
            "a sparse tensor has indices out of bounds, with which releases read or write unrelated memory", code="operator"
        )


def created(indices: Array, values: Array, shape: tuple[int, ...], *, coalesced: bool) -> OpaqueTensor:
    """The sparse tensor of these parts."""
    return OpaqueTensor(COO, dtypes.of_numpy(values.dtype), shape, {"indices": indices, "values": values, "coalesced": coalesced})


def parts_of(value: Any, name: str) -> tuple[Array, Array, bool]:
    """The parts of a sparse tensor that a program created.

    Raises:
        Unsupported: the tensor was not created by a program.
    """
    if value.__class__ is not OpaqueTensor or value.layout != COO or "coalesced" not in value.parts:
        raise Unsupported(f"the reference reader does not support aten::{name} for this kind of sparse tensor", code="operator")
    return value.parts["indices"], value.parts["values"], value.parts["coalesced"]


def summed(indices: Array, values: Array, shape: tuple[int, ...]) -> OpaqueTensor:
    """Sum values with the same index in order, and sort the indices."""
    keys = _keys(indices, shape)
    order = np.argsort(keys, kind="stable")
    first = np.ones(len(order), np.bool_)
    first[1:] = keys[order][1:] != keys[order][:-1]
    sums = np.zeros((int(first.sum()), *values.shape[1:]), values.dtype)
    np.add.at(sums, np.cumsum(first) - 1, values[order])
    room = np.empty(indices.shape, np.int64)
    kept = room[:, : len(sums)]
    kept[...] = indices[:, order[first]]
    return created(kept, sums, shape, coalesced=True)


@operator("aten::coalesce", of="opaque", gradient=False)
def coalesce(self: Any) -> OpaqueTensor:
    """Sum values with the same index; a coalesced tensor is returned unchanged."""
    indices, values, coalesced = parts_of(self, "coalesce")
    if coalesced:
        result: OpaqueTensor = self
        return result
    return summed(indices, values, self.shape) if len(values) else created(indices, values, self.shape, coalesced=True)


def _strided_alone(name: str) -> None:
    @operator(f"aten::{name}", gradient=False)
    def refuse(self: Tensor) -> Tensor:
        """Refused: only sparse tensors have these parts."""
        del self
        raise fail(f"{name} expected sparse coordinate tensor layout but got Strided")


for _name in ("coalesce", "indices", "values", "_nnz"):
    _strided_alone(_name)


def _part(name: str) -> None:
    @operator(f"aten::{name}", of="opaque", gradient=False)
    def part(self: Any) -> Tensor:
        """A part of a coalesced tensor."""
        if not parts_of(self, name)[2]:
            raise fail(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
        return Tensor(self.parts[name])

    @operator(f"aten::_{name}", of="opaque", gradient=False)
    def any_part(self: Any) -> Tensor:
        """A part of a sparse tensor, coalesced or not."""
        parts_of(self, name)
        return Tensor(self.parts[name])


for _name in ("indices", "values"):
    _part(_name)


@operator("aten::is_coalesced", of="opaque", gradient=False)
def is_coalesced(self: Any) -> bool:
    """Whether the indices are unique and sorted."""
    return parts_of(self, "is_coalesced")[2]


@operator("aten::_nnz", of="opaque", gradient=False)
def nnz(self: Any) -> int:
    """The number of values."""
    return int(parts_of(self, "_nnz")[0].shape[1])


@operator("aten::sparse_dim", of="opaque", gradient=False)
def sparse_dim(self: Any) -> int:
    """The number of dimensions of the indices."""
    return len(parts_of(self, "sparse_dim")[0])


@operator("aten::dense_dim", of="opaque", gradient=False)
def dense_dim(self: Any) -> int:
    """The number of dense dimensions of the values."""
    return int(parts_of(self, "dense_dim")[1].ndim) - 1


def _to_sparse() -> None:
    for since, ordered, single in (("1.0.0", False, False), ("1.12.0", True, False), ("1.13.0", True, True)):

        def to_sparse(
            self: Tensor, *args: Any, layout: Any = None, ordered: bool = ordered, single: bool = single, **keywords: Any
        ) -> OpaqueTensor:
            """The sparse tensor of the nonzero elements. Up to 1.12 a tensor without nonzero elements is not coalesced."""
            if layout is None and not keywords and not args and not self.ndim:
                kept = self.array.reshape(1)[: int(self.array != 0)]
                return created(np.zeros((0, len(kept)), np.int64), kept.copy(), (), coalesced=single or bool(len(kept)))
            if layout is not None or keywords or len(args) > 1 or not self.ndim:
                raise Unsupported("the reference reader does not support this form of to_sparse", code="operator")
            sparse = args[0] if args else self.ndim
            if not isinstance(sparse, int) or not 0 < sparse <= self.ndim:
                raise fail("sparse_dim must be between 1 and the number of dimensions")
            elsewhere = tuple(range(sparse, self.array.ndim))
            result = np.nonzero((self.array != 0).any(axis=elsewhere) if elsewhere else self.array)
            rows = np.array(result, np.int64).reshape(sparse, -1)
            indices = np.ascontiguousarray(rows) if ordered else np.ascontiguousarray(rows.T).T
            values = np.ascontiguousarray(self.array[result])
            return created(indices, values, self.array.shape, coalesced=single or bool(len(values)))

        operator("aten::to_sparse", of="any", gradient=False, since=since)(to_sparse)


_to_sparse()


@operator("aten::t", of="opaque", gradient=False)
def transposed(self: Any) -> OpaqueTensor:
    """Swap rows and columns."""
    if self.__class__ is OpaqueTensor and "scale" in self.parts and len(self.shape) <= MATRIX:  # quantized
        parts = {**self.parts, "elements": self.parts["elements"].T}
        return OpaqueTensor(self.layout, self.dtype, self.shape[::-1], parts)
    indices, values, _ = parts_of(self, "t")
    if len(self.shape) != len(indices) or len(indices) > 2:
        raise Unsupported("the reference reader does not support transposing this kind of sparse tensor", code="operator")
    return created(indices[::-1].copy(), values.copy(), self.shape[::-1], coalesced=False)


@operator("aten::to_dense", of="any", gradient=False)
def to_dense_1_0(self: Any, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """All elements, with zeros where there are no values; values with the same index are summed. Strided tensors are refused."""
    del masked_grad
    if self.__class__ is not OpaqueTensor or self.layout != COO or "indices" not in self.parts:
        raise raised("RuntimeError", "Could not run 'aten::to_dense' with these arguments from the 'CPU' backend.")
    meter.array(math.prod(self.shape))
    places, values = self.parts["indices"], self.parts["values"]
    result = np.zeros(self.shape, values.dtype)
    if values.ndim > 1:
        inside(places, self.shape)
    keys, room = _keys(places, self.shape), -(-result.nbytes // ALIGNED) * ALIGNED // result.itemsize
    if (keys < 0).any() or (keys >= room).any():
        inside(places, self.shape)
    kept = keys < result.size  # elements beyond are written to the rest of the last memory block, which is never read
    if values.ndim > 1:
        np.add.at(result, tuple(places), values)
    else:
        np.add.at(result.reshape(-1), keys[kept], values[kept])
    return Tensor(cast(result, any_dtype(dtype, result.dtype)))


@operator("aten::to_dense", since="1.12.0")
def to_dense(self: Tensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """As of 1.12 a strided tensor is returned unchanged, or copied to the given dtype."""
    del masked_grad
    kind = any_dtype(dtype, self.array.dtype)
    return self if kind == self.array.dtype else Tensor(cast(self.array, kind))
