"""Products of vectors and matrices, sums with such products, and covariances.

Floats of 32 bits or fewer are multiplied and summed in double precision and rounded once, which is as close as any order of summation gets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    Array,
    Scalar,
    axis,
    broadcast,
    can_cast,
    checked_scalar,
    common,
    copied_into,
    fail,
    full_words,
    functional,
    into,
    not_implemented,
    resized,
    words,
    write,
)
from torch_compat.runtime.operators._products import accumulated, added_to, exact, multiplied, sized, summed
from torch_compat.runtime.operators.reductions import sum_type
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor


def product(a: Array, b: Array, kernel: str = "addmm_impl_cpu_", *, folds: bool = False) -> Array:
    """The matrix product of arrays of the same dtype; see :func:`accumulated`.

    Raises:
        Raised: the dtypes or shapes do not match.
    """
    if a.dtype != b.dtype:
        raise fail(f"expected m1 and m2 to have the same dtype, but got: {words(a.dtype)} != {words(b.dtype)}")
    if a.dtype == BOOL:
        raise not_implemented(kernel, a.dtype)
    return accumulated(a, b, folds=folds).astype(a.dtype, copy=False)


def _matrices(a: Array, b: Array) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise fail("self must be a matrix" if a.ndim != 2 else "mat2 must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise fail(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})")


@functional("mm", exact=True)
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _matrices(self.array, mat2.array)
    return Tensor(product(self.array, mat2.array))


@functional("bmm", exact=True)
def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """The products of batches of matrices."""
    _batches(self.array, mat2.array)
    return Tensor(product(self.array, mat2.array, "bmm"))


def _batches(a: Array, b: Array) -> None:
    if a.ndim != 3 or b.ndim != 3:
        raise fail("batch1 must be a 3D tensor" if a.ndim != 3 else "batch2 must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise fail(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )


@functional("mv", exact=True)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    a, b = self.array, vec.array
    if a.ndim != 2 or b.ndim != 1:
        raise fail(f"vector + matrix @ vector expected, got 1, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise fail(f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})")
    return Tensor(product(a, b))


@functional("vdot", exact=True)
def vdot(self: Tensor, other: Tensor) -> Tensor:
    """The dot product of two vectors; the first is conjugated."""
    return dot(Tensor(np.conj(self.array)) if self.array.dtype.kind == "c" else self, other)


@functional("dot", "inner_1d", exact=True)
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """The dot product of two vectors."""
    a, b = self.array, tensor.array
    if a.ndim != 1 or b.ndim != 1:
        raise fail(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise fail(f"dot : expected both vectors to have same dtype, but found {words(a.dtype)} and {words(b.dtype)}")
    if a.shape != b.shape:
        raise fail(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the same number of elements, but got {a.shape[0]} and {b.shape[0]} elements respectively"
        )
    return Tensor(product(a, b, "dot"))


@functional("matmul", "linalg_matmul", "__matmul__", exact=True)
def matmul(self: Tensor, other: Tensor) -> Tensor:
    """The product of vectors, matrices, or batches of matrices."""
    a, b = self.array, other.array
    if not a.ndim or not b.ndim:
        raise fail(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        if a.ndim <= 2 and b.ndim <= 2:
            raise fail(
                f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a.shape))} and {'x'.join(map(str, b.shape))})"
            )
        raise fail(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[-1]}] but got: {list(b.shape[-2:])}."
        )
    if a.ndim > 2 and b.ndim > 2:
        broadcast(np.empty(a.shape[:-2], BOOL), np.empty(b.shape[:-2], BOOL))
    folds = (other if b.ndim <= a.ndim else self).requires_grad
    return Tensor(product(a, b, "dot" if a.ndim == b.ndim == 1 else "addmm_impl_cpu_", folds=folds))


def _inner(a: Array, b: Array) -> Array:
    if a.shape[-1]:
        meter.work(a.size * (b.size // b.shape[-1]) if b.shape[-1] else 0)
    return np.asarray(np.inner(a, b))


@operator("aten::inner")
def inner_1_8(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Up to 1.8 the result is copied into ``out``, which keeps its shape and dtype."""
    return copied_into(out, inner(self, other))


@functional("inner", since="1.9.0", exact=True)
def inner(self: Tensor, other: Tensor) -> Tensor:
    """Sums of products over the last dimensions."""
    a, b = self.array, other.array
    if a.dtype != b.dtype:
        raise fail("both inputs should have same dtype")
    if not a.ndim or not b.ndim:
        x, y = common(self, other)
        return Tensor(x * y)
    return Tensor(_inner(exact(a), exact(b)).astype(a.dtype))


@functional("ger", "outer")
def outer(self: Tensor, vec2: Tensor) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    a, b = self.array, vec2.array
    if a.ndim != 1 or b.ndim != 1:
        raise fail(
            f"outer: Expected 1-D argument self, but got {a.ndim}-D"
            if a.ndim != 1
            else f"outer: Expected 1-D argument vec2, but got {b.ndim}-D"
        )
    kind = dtypes.result_type((self, vec2)).array
    sized(a.size, b.size)
    return Tensor(np.multiply.outer(a.astype(kind), b.astype(kind)))


# ------------------------------------------------------------------------------------------------------- sums with products


def _sum_with(self: Array, computed: Array, kind: np.dtype[Any], beta: Scalar, alpha: Scalar, *, nothing: bool = True) -> Array:
    """``beta * self + alpha * computed``; if beta is 0, only the shape of ``self`` matters."""
    scaled = computed if alpha == 1 else computed * checked_scalar(alpha, kind).astype(computed.dtype)
    whole = _expanded(self, scaled.shape)
    if beta == 0 and nothing:
        return scaled.astype(kind)
    base = exact(whole) if beta == 1 else exact(whole) * checked_scalar(beta, kind).astype(scaled.dtype)
    return np.asarray(base + scaled).astype(kind)


def _expanded(array: Array, shape: tuple[int, ...]) -> Array:
    """Same as ``expand``.

    Raises:
        Raised: the array has more dimensions than the shape, or a dimension of another size.
    """
    if array.ndim > len(shape):
        raise fail(
            f"expand({full_words(array.dtype)}{{{list(array.shape)}}}, size={list(shape)}): the number of sizes provided ({len(shape)}) must be greater or "
            f"equal to the number of dimensions in the tensor ({array.ndim})"
        )
    for at in range(-1, -array.ndim - 1, -1):
        if array.shape[at] not in {1, shape[at]}:
            raise fail(
                f"The expanded size of the tensor ({shape[at]}) must match the existing size ({array.shape[at]}) at non-singleton dimension "
                f"{len(shape) + at}.  Target sizes: {list(shape)}.  Tensor sizes: {list(array.shape)}"
            )
    return np.broadcast_to(array, shape)


def _same(*arrays: Array) -> np.dtype[Any]:
    first: np.dtype[Any] = arrays[0].dtype
    for other in arrays[1:]:
        if other.dtype != first:
            raise fail(f"self and mat2 must have the same dtype, but got {words(first)} and {words(other.dtype)}")
    return first


@functional("addmm", inplace=True, exact=True)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """``beta * self + alpha * mat1 @ mat2``."""
    a, b = mat1.array, mat2.array
    _matrices(a, b)
    if beta == 1 and alpha == 1 and self.array.dtype != a.dtype == b.dtype and {self.array.dtype.kind, a.dtype.kind} == {"f"}:
        x, y = common(self, Tensor(product(a, b)))  # programs run the product and the sum as two operators
        return Tensor(x + _expanded(y, broadcast(x, y)))
    return Tensor(_multiplied_onto(self.array, a, b, beta, alpha))


@functional("addmv", inplace=True, exact=True)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """``beta * self + alpha * mat @ vec``."""
    a, b = mat.array, vec.array
    _same(self.array, a, b)
    if self.array.ndim > 1:
        raise fail(f"vector + matrix @ vector expected, got {self.array.ndim}, {a.ndim}, {b.ndim}")
    if a.ndim != 2 or b.ndim != 1 or a.shape[1] != b.shape[0]:
        raise fail(f"size mismatch, got input ({self.array.size}), mat ({'x'.join(map(str, a.shape))}), vec ({b.size})")
    return Tensor(_multiplied_onto(self.array, a, b, beta, alpha))


def _multiplied_onto(base: Array, a: Array, b: Array, beta: Scalar, alpha: Scalar, *, nothing: bool = True) -> Array:
    """``beta * base + alpha * a @ b``."""
    kind = _same(base, a, b)
    if beta == alpha == 1 and base.ndim <= b.ndim:
        shape = (*a.shape[:-1], *b.shape[max(1, a.ndim - 1) :])
        value = added_to(_expanded(base, shape), a, b)
        if value is not None:
            return value
    return _sum_with(base, accumulated(a, b), kind, beta, alpha, nothing=nothing)


def _addr(
    self: Tensor, vec1: Tensor, vec2: Tensor, beta: Scalar, alpha: Scalar, *, grows: bool = False, checked: bool = False
) -> Tensor:
    """``beta * self + alpha * outer(vec1, vec2)``.

    Parameters:
        grows: whether the outer product may be expanded, too.
        checked: whether floating-point factors of integers are refused.
    """
    for name, tensor in (("vec1", vec1), ("vec2", vec2)):
        if tensor.array.ndim != 1:
            raise fail(f"addr: Expected 1-D argument {name}, but got {tensor.array.ndim}-D")
    kind = dtypes.result_type((self, vec1, vec2)).array
    if kind.kind in "iub" and grows:  # beta and alpha take part in type promotion
        kind = dtypes.result_type((self, vec1, vec2, *(item for item in (beta, alpha) if isinstance(item, float)))).array
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if checked and kind.kind in "iub" and isinstance(factor, float):
            raise fail(f"For integral input tensors, argument {name} must not be a floating point number.")
    sized(vec1.array.size, vec2.array.size)
    pairs = np.multiply.outer(exact(vec1.array.astype(kind)), exact(vec2.array.astype(kind)))
    if grows and beta != 0:
        pairs = np.broadcast_to(pairs, broadcast(self.array, pairs))
    return Tensor(_sum_with(self.array.astype(kind), pairs, kind, beta, alpha))


# Only in 1.7, the first tensor may have more dimensions than the outer product and be larger.
functional("addr", inplace=True)(lambda self, vec1, vec2, *, beta=1, alpha=1: _addr(self, vec1, vec2, beta, alpha))
functional("addr", inplace=True, since="1.7.0")(
    lambda self, vec1, vec2, *, beta=1, alpha=1: _addr(self, vec1, vec2, beta, alpha, grows=True)
)
functional("addr", inplace=True, since="1.8.0")(
    lambda self, vec1, vec2, *, beta=1, alpha=1: _addr(self, vec1, vec2, beta, alpha, checked=True)
)


def _baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, *, nothing: bool) -> Tensor:
    a, b = batch1.array, batch2.array
    _same(self.array, a, b)
    _batches(a, b)
    return Tensor(np.asarray(_multiplied_onto(self.array, a, b, beta, alpha, nothing=nothing), order="C"))


# Up to 1.10 a NaN in the first tensor is kept, even if beta is 0.
functional("baddbmm", inplace=True)(
    lambda self, batch1, batch2, *, beta=1, alpha=1: _baddbmm(self, batch1, batch2, beta, alpha, nothing=False)
)
functional("baddbmm", inplace=True, since="1.11.0")(
    lambda self, batch1, batch2, *, beta=1, alpha=1: _baddbmm(self, batch1, batch2, beta, alpha, nothing=True)
)


@functional("addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """``beta * self + alpha`` times the sum of the products of a batch."""
    a, b = batch1.array, batch2.array
    kind = _same(self.array, a, b)
    _batches(a, b)
    return Tensor(_sum_with(self.array, multiplied(exact(a), exact(b)).sum(axis=0), kind, beta, alpha))


# In place, the first tensor must have the shape of the result up to 1.6; since 1.7 it is resized to that shape.
operator("aten::addbmm_")(
    lambda self, batch1, batch2, *, beta=1, alpha=1: write(self, addbmm(self, batch1, batch2, beta=beta, alpha=alpha).array)
)


@operator("aten::addbmm_", since="1.7.0")
def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """As of 1.7 the first tensor is resized to the shape of the result."""
    value = addbmm(self, batch1, batch2, beta=beta, alpha=alpha).array
    if not self.array.ndim and beta != 0:
        raise fail(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the "
            "tensor before performing the operation."
        )
    return write(resized(self, value.shape), value)


def _linear(a: Array, weight: Tensor, bias: Tensor | None, era: int) -> Array:
    """``a @ w.T + bias``; the permitted shapes of the bias depend on whether all rows are multiplied as one matrix, see :func:`_biased`."""
    w = weight.array
    if a.dtype != w.dtype:
        raise fail(f"mat1 and mat2 must have the same dtype, but got {words(a.dtype)} and {words(w.dtype)}")
    if not a.ndim or not w.ndim:
        raise fail(f"both arguments to linear need to be at least 1D, but they are {a.ndim}D and {w.ndim}D")
    if w.ndim > 2:
        raise fail(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D")
    if a.shape[-1] != w.shape[-1]:
        rows = int(np.prod(a.shape[:-1]))
        raise fail(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {'x'.join(map(str, w.shape[::-1]))})")
    if a.dtype == BOOL:
        raise not_implemented("addmm_impl_cpu_", a.dtype)
    value = accumulated(a, w.T, folds=weight.requires_grad)
    if bias is not None:
        value = _biased(value, a, w, bias.array, era)
    return value.astype(a.dtype, copy=False)


def _biased(value: Array, a: Array, w: Array, b: Array, era: int) -> Array:
    """Add the bias to the product.

    If all rows are multiplied as one matrix, the bias is expanded to the shape of that product. This applies always to a matrix; since
    1.12 (era 1) to contiguous 3-D inputs; since 2.10 (era 2) to contiguous inputs of any rank, if the bias is contiguous and is 1-D or
    has one dimension whose size is not 1. Otherwise the bias is added in place. Era -1 is the form with ``out``, which always adds it
    in place, except to a matrix.
    """
    if era < 2:
        as_rows = era == 1 and a.ndim == 3 and a.flags.c_contiguous
    else:
        larger = sum(size != 1 for size in b.shape)
        as_rows = (b.ndim == 1 or larger == 1) and b.flags.c_contiguous and a.flags.c_contiguous
    if a.ndim == 2 or as_rows:
        if w.ndim != 2:
            raise fail(f"mat2 must be a matrix, got {w.ndim}-D tensor")
        if b.dtype != a.dtype:
            raise fail(f"self and mat2 must have the same dtype, but got {words(b.dtype)} and {words(a.dtype)}")
        rows = value.reshape(math.prod(value.shape[:-1]), w.shape[0])
        base = _expanded(b, rows.shape)
        whole = added_to(base, a.reshape(len(rows), w.shape[1]), w.T)
        return (rows + exact(base) if whole is None else whole).reshape(value.shape)
    shape = broadcast(value, b)
    if shape != value.shape:
        raise fail(f"output with shape {list(value.shape)} doesn't match the broadcast shape {list(shape)}")
    if not can_cast(b.dtype, a.dtype):
        raise fail(f"result type {words(b.dtype)} can't be cast to the desired output type {words(a.dtype)}")
    return exact(value.astype(a.dtype)) + exact(b)


def _linears() -> None:
    for era, since in enumerate(("1.0.0", "1.12.0", "2.10.0")):

        def linear(
            input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None, era: int = era,  # noqa: A002
        ) -> Tensor:  # fmt: skip
            value = _linear(input.array, weight, bias, era if out is None else -1)
            return Tensor(value) if out is None else into(out, value, exact=True)

        operator("aten::linear", since=since)(linear)


_linears()


def _check_bilinear(
    first: tuple[int, ...], second: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...] | None
) -> None:
    """Refuse inputs whose shapes do not fit; the same in all releases.

    Raises:
        Raised: the numbers of dimensions or the batches differ, or a size does not match the weight.
    """
    if len(first) != len(second):
        raise fail(f"bilinear(): input dimensions do not match: got {len(first)} and {len(second)}")
    for at, (item, other) in enumerate(zip(first[:-1], second[:-1], strict=True)):
        if item != other:
            raise fail(f"bilinear(): input batch dimensions do not match at dim {at}: got {item} and {other}")
    if len(weight) != 3:
        raise fail(f"bilinear(): weight has {len(weight)} dimensions instead of 3")
    for name, size, wanted in (("input1", first[-1:], weight[1]), ("input2", second[-1:], weight[2])):
        if size != (wanted,):
            raise fail(f"bilinear(): {name} size does not match weight size: got {list(size)} but expected {wanted}")
    if bias is not None and bias != weight[:1]:
        raise fail(f"bilinear(): bias size does not match weight size: got {list(bias)} but expected {weight[0]}")


@operator("aten::bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A bilinear form of two inputs for every output feature."""
    _check_bilinear(input1.shape, input2.shape, weight.shape, None if bias is None else bias.shape)
    a, b, w = exact(input1.array), exact(input2.array), exact(weight.array)
    value = summed("...i,oij,...j->...o", a, w, b)
    if bias is not None:
        value = value + exact(bias.array)
    return Tensor(value.astype(input1.array.dtype))


@operator("aten::tensordot")
def tensordot_1_0(self: Tensor, other: Tensor, dims_self: list[int], dims_other: list[int]) -> Tensor:
    """Up to 2.0 integers that are summed for a dimension of size 1 become int64, and dtypes are compared after that."""
    return _contracted(self.array, other.array, dims_self, dims_other, keeps_type=False)


@operator("aten::tensordot", since="2.1.0")
def tensordot(self: Tensor, other: Tensor, dims_self: list[int], dims_other: list[int]) -> Tensor:
    """Sums of products over the given dimensions."""
    if self.array.dtype != other.array.dtype:
        raise fail("both inputs should have same dtype")
    return _contracted(self.array, other.array, dims_self, dims_other, keeps_type=True)


def _contracted(a: Array, b: Array, dims_self: list[int], dims_other: list[int], *, keeps_type: bool) -> Tensor:
    for x, y in zip(dims_self, dims_other, strict=True):
        if b.shape[y] == 1:  # size 1 stands for the size of the other dimension
            a = a.sum(axis=x, keepdims=True, dtype=a.dtype if keeps_type else sum_type(a, None))
        elif a.shape[x] == 1:
            b = b.sum(axis=y, keepdims=True, dtype=b.dtype if keeps_type else sum_type(b, None))
        if a.shape[x] != b.shape[y]:
            raise fail(
                f"contracted dimensions need to match, but first has size {a.shape[x]} in dim {x} and second has size {b.shape[y]} in dim {y}"
            )
    if a.dtype != b.dtype:
        raise fail(f"expected scalar type {words(a.dtype)} but found {words(b.dtype)}")
    kept = math.prod(b.shape) // max(1, math.prod(b.shape[y] for y in dims_other))
    sized(math.prod(a.shape) // max(1, math.prod(a.shape[x] for x in dims_self)), kept)
    if a.size * kept > meter.limits.elements:
        meter.work(a.size * kept)
    return Tensor(np.asarray(np.tensordot(exact(a), exact(b), (list(dims_self), list(dims_other)))).astype(a.dtype))


@functional("linalg_multi_dot")
def linalg_multi_dot(tensors: list[Tensor]) -> Tensor:
    """The product of several matrices; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise fail(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    value = exact(tensors[0].array)
    for tensor in tensors[1:]:
        value = multiplied(value, exact(tensor.array))
    return Tensor(np.asarray(value).astype(tensors[0].array.dtype))


@functional("chain_matmul")
def chain_matmul(matrices: list[Tensor]) -> Tensor:
    """The product of several matrices."""
    if any(tensor.array.ndim != 2 for tensor in matrices):
        raise fail(f"Tensor dimension is {matrices[0].array.ndim}, expected 2 instead.")
    value = exact(matrices[0].array)
    for matrix in matrices[1:]:
        if matrix.array.dtype != matrices[0].array.dtype:
            raise fail(
                f"expected m1 and m2 to have the same dtype, but got: {words(matrices[0].array.dtype)} != {words(matrix.array.dtype)}"
            )
        if matrix.array.shape[0] != value.shape[1]:
            raise fail(
                f"mat1 and mat2 shapes cannot be multiplied ({value.shape[0]}x{value.shape[1]} and {matrix.array.shape[0]}x{matrix.array.shape[1]})"
            )
        value = multiplied(value, exact(matrix.array))
    return Tensor(value.astype(matrices[0].array.dtype))


@functional("kron")
def kron(self: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product."""
    kind = dtypes.result_type((self, other)).array
    sized(self.array.size, other.array.size)
    return Tensor(np.kron(self.array.astype(kind), other.array.astype(kind)))


def _cross(self: Tensor, other: Tensor, dim: int | None, *, broadcasts: bool = False) -> Tensor:
    a, b = self.array, other.array
    if a.dtype != b.dtype:
        raise fail(f"linalg.cross: expected all tensors to have the same dtype, but found {words(a.dtype)} and {words(b.dtype)}")
    if broadcasts and a.ndim != b.ndim:
        own = next((item for item, size in enumerate(a.shape) if size == 3), None) if dim is None else axis(dim, a.ndim)
        dim = own  # found in the first tensor, before it is broadcast
        a, b = np.broadcast_arrays(a, b) if broadcast(a, b) else (a, b)
    if dim is None:
        results = [item for item, size in enumerate(a.shape) if size == 3]
        if not results:
            raise fail("no dimension of size 3 in input")
        dim = results[0]
    if a.ndim != b.ndim:
        raise fail("linalg.cross: inputs must have the same number of dimensions.")
    at = axis(dim, a.ndim)
    if a.shape[at] != 3 or b.shape[axis(dim, b.ndim)] != 3:
        raise fail(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[at]} and {b.shape[axis(dim, b.ndim)]}")
    broadcast(a, b)
    if a.dtype == b.dtype == FLOAT32:  # one product is rounded, the other is added with a single rounding
        a, b = (np.moveaxis(array, at, -1) for array in np.broadcast_arrays(a, b))
        pairs = [
            (a[..., item].astype(FLOAT64) * b[..., two], a[..., two] * b[..., item]) for item, two in ((1, 2), (2, 0), (0, 1))
        ]
        return Tensor(np.moveaxis(np.stack([(first - second).astype(FLOAT32) for first, second in pairs], axis=-1), -1, at))
    return Tensor(np.cross(a, b, axis=at).astype(a.dtype))


functional("cross")(lambda self, other, dim=None: _cross(self, other, dim))
functional("cross", since="1.11.0")(
    lambda self, other, dim=None: _cross(self, other, dim, broadcasts=True)
)  # also for different numbers of dimensions
functional("cross", since="1.13.0")(lambda self, other, dim=None: _cross(self, other, dim))
functional("linalg_cross")(lambda self, other, *, dim=-1: _cross(self, other, dim))


@functional("vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of the elements of a vector, the highest first unless ``increasing``."""
    array = x.array
    if array.ndim != 1:
        raise fail("x must be a one-dimensional tensor.")
    count = array.shape[0] if N is None else N
    if count < 0:
        raise fail("N must be non-negative.")
    sized(*array.shape, count)
    kind = array.dtype if array.dtype.kind in "fcV" else np.dtype(np.int64)
    powers = np.arange(count)
    result = np.power(exact(array.astype(kind))[..., None], powers if increasing else powers[::-1])
    return Tensor(np.asarray(result).astype(kind))


def _step(array: Array, kind: np.dtype[Any]) -> Array:
    """Round an intermediate result between two operators to its dtype."""
    return exact(array.astype(kind))


@operator("aten::cov")
def cov(self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariance matrix of variables; each row is a variable."""
    if fweights is not None or aweights is not None:
        raise Unsupported("the reference reader does not support cov with weights", code="operator")
    array = self.array
    if array.ndim > 2:
        raise fail(f"cov(): expected input to have two or fewer dimensions but got an input with {array.ndim} dimensions")
    if array.dtype == BOOL:
        raise fail("cov(): bool dtype is not supported for input")
    kind = array.dtype if array.dtype.kind in "fcV" else np.dtype(np.float32)
    rows = exact(array.astype(kind)).reshape((1, -1) if array.ndim < 2 else array.shape)
    count = rows.shape[1]
    with np.errstate(all="ignore"):  # integers are summed as integers, which may overflow
        sums = array.reshape(rows.shape).sum(axis=1) if array.dtype.kind in "iu" else _step(rows.sum(axis=1), kind)
        apart = _step(rows - _step(sums / np.float64(count), kind)[:, None], kind)
        result = _step(multiplied(apart, np.conj(apart).T), kind) / np.float64(max(count - correction, 0))
    return Tensor(np.asarray(result.reshape(()) if result.size == 1 else result).astype(kind))


@operator("aten::corrcoef")
def corrcoef(self: Tensor) -> Tensor:
    """The matrix of correlation coefficients of variables; each row is a variable."""
    if self.array.ndim > 2:
        raise fail(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.array.ndim} dimensions"
        )
    tensor = cov(self)
    if not tensor.array.ndim:
        return Tensor(tensor.array / tensor.array)
    kind = tensor.array.dtype
    value = exact(tensor.array)
    with np.errstate(all="ignore"):
        deep = _step(np.sqrt(arrays.diagonal(value).real), kind).real
        value = _step(_step(value / deep[:, None], kind) / deep[None, :], kind)
    return Tensor(np.clip(value, -1, 1).astype(kind) if value.dtype.kind != "c" else value.astype(kind))
