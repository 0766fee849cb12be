"""Sums, products and reductions of sparse tensors in coordinate format, also beside strided ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import Array, common, fail
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.operators.sparse import created, inside, parts_of, summed
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

MATRIX = 2  # dimensions


def _merged(item: tuple[Array, Array, bool], other: tuple[Array, Array, bool], shape: tuple[int, ...]) -> OpaqueTensor:
    """Merge two lists of indices in their orders, and add the values of equal indices at the heads of both."""
    meter.work(item[0].size + other[0].size)
    first, second = item[0].T.tolist(), other[0].T.tolist()
    taken: list[tuple[int, int]] = []
    at, to = 0, 0
    while at < len(first) or to < len(second):
        before = at < len(first) and (to == len(second) or first[at] <= second[to])
        after = to < len(second) and (at == len(first) or second[to] <= first[at])
        taken.append((at if before else -1, to if after else -1))
        at, to = at + before, to + after
    room = np.zeros((len(item[0]), len(first) + len(second)), np.int64)
    values = np.zeros((room.shape[1], *item[1].shape[1:]), item[1].dtype)
    for place, (left, right) in enumerate(taken):
        room[:, place] = item[0][:, left] if left >= 0 else other[0][:, right]
        if left >= 0:
            values[place] += item[1][left]
        if right >= 0:
            values[place] += other[1][right]
    return created(room[:, : len(taken)], values[: len(taken)], shape, coalesced=item[2] and other[2])


def _not_quantized(name: str, *values: Any) -> None:
    """No release has this operator for quantized tensors.

    Raises:
        Raised: a value is one.
    """
    if any(value.__class__ is OpaqueTensor and "elements" in value.parts for value in values):
        raise fail(f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend.")


def _onto_strided(self: Tensor, other: OpaqueTensor, alpha: Any, sign: int) -> Tensor:
    """The sum of a strided and a sparse tensor, which has the common dtype of both.

    Raises:
        Raised: they differ in shape.
    """
    indices, values, _ = parts_of(other, "add")
    if self.shape != other.shape:
        raise fail(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while other has size {list(other.shape)}"
        )
    inside(indices, other.shape)
    x, y = common(self, Tensor(values))
    result = np.array(x, order="C")
    np.add.at(result, tuple(indices), y * np.asarray(sign * alpha, y.dtype))
    return Tensor(result)


def _sum(name: str, sign: int) -> None:
    @operator(f"aten::{name}", of="opaque", gradient=False)
    def add(self: Any, other: Any, alpha: Any = 1) -> Tensor | OpaqueTensor:
        """The sum or difference of two sparse tensors of one shape and dtype; the second operand may be sparse alone, the first may not."""
        _not_quantized(name, self, other)
        if self.__class__ is Tensor:
            return _onto_strided(self, other, alpha, sign)
        first = parts_of(self, name)
        if other.__class__ is not OpaqueTensor:
            raise fail("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        second = parts_of(other, name)
        if self.shape != other.shape:
            raise fail(f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}")
        if len(first[0]) != len(second[0]) or first[1].dtype != second[1].dtype or alpha.__class__ not in {int, float}:
            raise Unsupported("the reference reader does not support adding these kinds of sparse tensors", code="operator")
        scaled = second[1] if sign * alpha == 1 else second[1] * np.asarray(sign * alpha, second[1].dtype)
        return _merged(first, (second[0], scaled, second[2]), self.shape)


_sum("add", 1)
_sum("sub", -1)


def _scaled(name: str, self: Any, other: Any) -> OpaqueTensor:
    indices, values, coalesced = parts_of(self, name)
    if other.__class__ is OpaqueTensor or (other.__class__ is Tensor and other.ndim):
        raise Unsupported("the reference reader does not support multiplying these kinds of sparse tensors", code="operator")
    x, y = common(Tensor(values), other)
    if name == "div" and x.dtype.kind in "iub":
        raise Unsupported("the reference reader does not support dividing a sparse tensor of integers", code="operator")
    return created(indices.copy(), np.asarray(x * y if name == "mul" else x / y), self.shape, coalesced=coalesced)


@operator("aten::mul", of="opaque", gradient=False)
def mul_1_0(self: Any, other: Any) -> OpaqueTensor:
    """Up to 1.8 a program cannot multiply a sparse tensor by a number, only by a 0-dim tensor."""
    _not_quantized("mul", self, other)
    parts_of(self, "mul")
    if other.__class__ not in {Tensor, OpaqueTensor}:
        raise fail("unsupported tensor layout: Sparse")
    return _scaled("mul", self, other)


@operator("aten::mul", of="opaque", since="1.9.0", gradient=False)
def mul(self: Any, other: Any) -> OpaqueTensor:
    """The values times a number."""
    _not_quantized("mul", self, other)
    return _scaled("mul", self, other)


@operator("aten::div", of="opaque", gradient=False)
def div(self: Any, other: Any) -> OpaqueTensor:
    """The values divided by a number."""
    return _scaled("div", self, other)


@operator("aten::neg", of="opaque", gradient=False)
def neg_1_0(self: Any) -> OpaqueTensor:
    """Up to 1.6 refused."""
    parts_of(self, "neg")
    raise fail("Could not run 'aten::neg.out' with arguments from the 'SparseCPU' backend.")


@operator("aten::neg", of="opaque", since="1.7.0", gradient=False)
def neg(self: Any) -> OpaqueTensor:
    """The values with the other sign."""
    indices, values, coalesced = parts_of(self, "neg")
    return created(indices.copy(), -values, self.shape, coalesced=coalesced)


@operator("aten::sum", of="opaque", gradient=False)
def sum_1_0(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.13 refused."""
    del dim, keepdim, dtype
    _not_quantized("sum", self)
    parts_of(self, "sum")
    raise fail("Could not run 'aten::sum' with arguments from the 'SparseCPU' backend.")


@operator("aten::sum", of="opaque", since="2.0.0", gradient=False)
def sum_2_0(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all values."""
    _not_quantized("sum", self)
    if dim is not None or keepdim or dtype is not None:
        raise Unsupported("the reference reader does not support this sum of a sparse tensor", code="operator")
    return sparse_sum(self)


@operator("aten::_sparse_sum", of="opaque", gradient=False)
def sparse_sum(self: Any, dim: Any = None) -> Any:
    """The sum of all values, or along sparse dimensions."""
    indices, values, _ = parts_of(self, "_sparse_sum")
    if dim is None:
        return Tensor(np.asarray(values.sum(dtype=np.int64 if values.dtype.kind in "iub" else values.dtype)))
    rank = len(self.shape)
    dims = {item + rank if item < 0 else item for item in ([dim] if dim.__class__ is int else dim)}
    if values.dtype.kind in "iub" or not dims <= set(range(len(indices))) or not dims:
        raise Unsupported("the reference reader does not support this sum of a sparse tensor", code="operator")
    kept = [index for index in range(len(indices)) if index not in dims]
    if not kept:
        return Tensor(values.sum(axis=0))
    return summed(indices[kept], values, tuple(size for at, size in enumerate(self.shape) if at not in dims))


@operator("aten::mm", "aten::matmul", "aten::_sparse_mm", of="opaque", gradient=False)
def mm(self: Any, mat2: Any) -> Tensor:
    """The product of a sparse and a strided matrix: rows of the second, scaled by values, are added to rows of the result."""
    indices, values, _ = parts_of(self, "mm")
    if mat2.__class__ is not Tensor or len(indices) != MATRIX or values.ndim != 1 or mat2.ndim != MATRIX:
        raise Unsupported("the reference reader does not support multiplying these kinds of sparse tensors", code="operator")
    if mat2.shape[0] != self.shape[1]:
        raise fail(f"addmm: Argument #3 (dense): Expected dim 0 size {self.shape[1]}, got {mat2.shape[0]}")
    if mat2.array.dtype != values.dtype:
        raise fail("addmm: expected both matrices to be of one dtype")
    inside(indices, self.shape)
    sized(self.shape[0], mat2.shape[1])
    meter.work(values.size * mat2.shape[1])
    result = np.zeros((self.shape[0], mat2.shape[1]), values.dtype)
    np.add.at(result, indices[0], values[:, None] * mat2.array[indices[1]])
    return Tensor(result)
