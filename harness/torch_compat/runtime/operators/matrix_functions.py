"""Matrix exponentials, ranks, condition numbers and norms; products of vectors, and powers of their elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    FLOAT64,
    HALVES,
    INT64,
    Array,
    axis,
    broadcast,
    cast,
    fail,
    functional,
    into,
    words,
)
from torch_compat.runtime.operators._products import decomposed, exact, looped, multiplied, sized
from torch_compat.runtime.operators.decompositions import floating_matrices, square
from torch_compat.runtime.operators.norms import norm_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NEAR = 64
"""The distance from a limit, in rounding units of the dtype, within which a singular value is neither above nor below it."""

# ----------------------------------------------------------------------------------------------------------- exponentials

TERMS = 24
"""The number of terms of the series for a matrix whose norm is at most one: the omitted terms are below float64 precision."""


def _exponential(matrices: Array) -> Array:
    """Compute the series of a matrix halved until its norm is at most one, and square the result as many times."""
    norms = np.abs(matrices).sum(axis=-2).max(axis=-1, initial=0.0)
    with np.errstate(all="ignore"):
        halved = np.maximum(0, np.ceil(np.log2(norms)))
    halved = np.where(norms > 0, halved, 0).astype(np.int64)
    scaled = matrices / np.exp2(halved.astype(FLOAT64))[..., None, None]
    total = np.zeros_like(scaled) + np.eye(scaled.shape[-1])
    term = total
    for at in range(1, looped(TERMS, scaled.size) + 1):
        term = multiplied(term, scaled) / at
        total = total + term
    for at in range(looped(int(halved.max(initial=0)), scaled.size)):
        total = np.where((at < halved)[..., None, None], multiplied(total, total), total)
    return total


@functional("linalg_matrix_exp", "matrix_exp")
def matrix_exp_1_7(self: Tensor) -> Tensor:
    """Only in 1.7, complex matrices that are not contiguous give whatever is in the gaps of their memory."""
    if self.array.dtype.kind == "c" and not self.array.flags.c_contiguous:
        raise Unsupported("the reference reader does not support matrix_exp of non-contiguous complex matrices", code="value")
    return matrix_exp_1_8(self)


@functional("linalg_matrix_exp", "matrix_exp", since="1.8.0")
def matrix_exp_1_8(self: Tensor) -> Tensor:
    """Up to 1.10 matrices without rows are refused."""
    if self.array.ndim > 1 and self.array.shape[-2:] == (0, 0):
        raise fail(
            "cannot reshape tensor of 0 elements into shape [-1, 0, 0] because the unspecified dimension size -1 can be any value and is ambiguous"
        )
    return matrix_exp(self)


@functional("linalg_matrix_exp", "matrix_exp", since="1.11.0")
def matrix_exp(self: Tensor) -> Tensor:
    """The exponential of square matrices."""
    array = self.array
    if array.dtype in HALVES:
        raise Unsupported(
            "the reference reader does not support matrix_exp of 16-bit matrices, whose rounding errors accumulate", code="value"
        )
    square("linalg.matrix_exp", array)
    if not np.isfinite(array).all():
        raise Unsupported("the reference reader does not support matrix_exp of matrices with infinities or NaN", code="value")
    with np.errstate(all="ignore"):
        return Tensor(np.ascontiguousarray(_exponential(decomposed(array)).astype(array.dtype)))


# ----------------------------------------------------------------------------------------------------- ranks and conditions


def _real(kind: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, kind).real.dtype


def _values(array: Array, *, hermitian: bool) -> Array:
    """Singular values, the largest first; for Hermitian matrices, the absolute values of eigenvalues."""
    wide = decomposed(array)
    if not np.isfinite(wide).all():
        raise Unsupported(
            "the reference reader does not support singular values of matrices with infinities or NaN", code="value"
        )
    if hermitian:
        return np.sort(np.abs(np.linalg.eigvalsh(wide)), axis=-1)[..., ::-1]
    return np.asarray(np.linalg.svd(wide, compute_uv=False))


def _rank(array: Array, atol: Any, rtol: Any, *, hermitian: bool) -> Array:
    """The number of singular values above both limits.

    Raises:
        Unsupported: a singular value is within rounding errors of its limit.
    """
    values = _values(array, hermitian=hermitian)
    most = values.max(axis=-1, initial=0.0)
    limit = np.maximum(np.asarray(atol, FLOAT64), np.asarray(rtol, FLOAT64) * most)
    rounding = float(np.finfo(array.dtype).eps)
    close = np.abs(values - limit[..., None]) <= 4 * rounding * max(array.shape[-2:]) * most[..., None]
    lowest = rounding * max(array.shape[-2:])  # the default limit, which is well above mere rounding errors
    mere = (values <= lowest / 4 * most[..., None]) & (limit[..., None] >= lowest * 0.99 * most[..., None])
    if (close & ~mere & (most[..., None] > 0)).any():
        raise Unsupported("the reference reader does not support ranks that depend on rounding", code="value")
    return np.asarray((values > limit[..., None]).sum(axis=-1)).astype(INT64)


def _by_default(array: Array) -> float:
    return float(np.finfo(array.dtype).eps) * int(max(array.shape[-2:]))


def _matrices(array: Array) -> None:
    if array.ndim < 2:
        raise fail(f"torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions. Got {array.ndim}")
    floating_matrices("linalg.matrix_rank", array)


def _tolerances(array: Array, atol: Any, rtol: Any) -> tuple[Any, Any]:
    given = [tensor.array if tensor.__class__ is Tensor else tensor for tensor in (atol, rtol)]
    if any(item is not None and np.asarray(item).dtype.kind == "c" for item in given):
        raise fail("torch.linalg.matrix_rank: tolerance tensor of complex type is not supported.")
    low = 0.0 if given[0] is None else given[0]
    if given[1] is None:
        relative: Any = np.where(np.asarray(low) > 0, 0.0, _by_default(array)) if given[0] is not None else _by_default(array)
    else:
        relative = given[1]
    return low, relative


def _linalg_matrix_rank(self: Tensor, atol: Any, rtol: Any, *, hermitian: bool) -> Tensor:
    array = self.array
    if array.ndim > 1 and not array.size:
        return Tensor(np.zeros(array.shape[:-2], INT64))
    _matrices(array)
    low, relative = _tolerances(array, atol, rtol)
    if hermitian:
        square("linalg.matrix_rank", array)
    batch = broadcast(np.empty(array.shape[:-2], bool), np.empty(np.shape(low), bool), np.empty(np.shape(relative), bool))
    return Tensor(np.broadcast_to(_rank(array, low, relative, hermitian=hermitian), batch).copy())


@functional("linalg_matrix_rank")
def linalg_matrix_rank(input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:  # noqa: A002
    """The number of singular values above both limits; up to 1.10 there is one limit, which is absolute."""
    if tol is not None:
        return _linalg_matrix_rank(input, tol, 0.0, hermitian=hermitian)
    return _linalg_matrix_rank(input, atol, rtol, hermitian=hermitian)


def _one_matrix(self: Tensor) -> None:
    if self.array.ndim != 2 or self.array.dtype.kind != "f":
        raise fail(f"matrix_rank({words(self.array.dtype)}{list(self.array.shape)}): expected a 2D tensor of floating types")


@operator("aten::matrix_rank")
def matrix_rank_1_0(self: Tensor, tol: Any = None, symmetric: bool = False) -> Tensor:
    """Up to 1.7 only a single matrix is accepted, which must have elements."""
    _one_matrix(self)
    if not self.array.size:
        raise Unsupported("the reference reader does not support matrix_rank of an empty matrix", code="value")
    return matrix_rank(self, tol, symmetric)


@operator("aten::matrix_rank", since="1.8.0")
def matrix_rank(self: Tensor, tol: Any = None, symmetric: bool = False) -> Tensor:
    """Same as :func:`linalg_matrix_rank`, with one limit."""
    if tol.__class__ is bool:  # the overload without a limit
        tol, symmetric = None, tol
    return linalg_matrix_rank(self, tol, symmetric)


BY_VALUES = (None, 2, -2)
ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@functional("linalg_cond", exact=True)
def linalg_cond_1_8(self: Tensor, p: Any = None) -> Tensor:
    """Only in 1.8, a quotient of singular values has one more dimension."""
    tensor = linalg_cond(self, p)
    by_values = p in BY_VALUES and p.__class__ is not str and self.array.size
    return Tensor(tensor.array[..., None]) if by_values else tensor


@functional("linalg_cond", since="1.9.0")
def linalg_cond(self: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm of a matrix times the norm of its inverse."""
    array = self.array
    if p is not None and p not in ORDERS:
        raise fail(f"linalg.cond got an invalid norm type: {p}")
    kind, batch = _real(array.dtype), array.shape[:-2]
    if array.size or array.ndim < 2:
        floating_matrices("linalg.cond", array)
    if not array.size and p.__class__ is not str:
        return Tensor(np.zeros(batch, kind))
    if p not in BY_VALUES or p.__class__ is str:
        square("linalg.cond", array)
    if not array.size:
        return Tensor(np.zeros(batch, kind))
    values = _values(array, hermitian=False)
    most, least = values.max(axis=-1), values.min(axis=-1)
    if (least <= NEAR * float(np.finfo(array.dtype).eps) * max(array.shape[-2:]) * most).any():
        raise Unsupported(
            "the reference reader does not support the condition number of singular matrices, which depends on rounding",
            code="value",
        )
    if p in BY_VALUES:
        result = least / most if p == -2 else most / least
    elif p == "nuc":
        result = values.sum(axis=-1) * (1 / values).sum(axis=-1)
    else:
        order: Any = p if p.__class__ is str else float(p)
        wide = decomposed(array)
        measure: Any = np.linalg.norm
        result = measure(wide, order, (-2, -1)) * measure(np.linalg.inv(wide), order, (-2, -1))
    return Tensor(np.asarray(result).astype(kind))


# ------------------------------------------------------------------------------------------------------------------ norms


def _check_dtype(where: str, given: np.dtype[Any], wanted: np.dtype[Any], era: int) -> None:
    """Refuse a dtype that narrows the input.

    Raises:
        Raised: the dtype narrows the input.
        Unsupported: a floating-point or complex dtype narrows the input up to 1.12; these releases compute it.
    """
    whole, parts = wanted.kind in "iub", wanted.kind == "c"
    if not whole and parts == (given.kind == "c") and wanted.itemsize >= given.itemsize:
        return
    if not era and not whole:
        raise Unsupported("the reference reader does not support matrix_norm in a narrower dtype", code="value")
    raise fail(
        f"{where}: the dtype of the input ({words(given)}) should be convertible without narrowing to the specified dtype ({words(wanted)})"
    )


_norm_of_numpy: Any = np.linalg.norm


def linalg_norm_1_0(self: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """Up to 2.3 the norm of one element is a root of its power."""
    return _linalg_norm(self, ord, dim, keepdim, dtype, alone=False)


def linalg_norm(self: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
    """Vector and matrix norms."""
    return _linalg_norm(self, ord, dim, keepdim, dtype, alone=True)


def _checked_norm(norm: Callable[..., Tensor], *, vectors: bool, matrices: bool) -> Callable[..., Tensor]:
    """The norm with a check of the dtype in which it is computed.

    Parameters:
        vectors: whether norms of vectors refuse a dtype that drops imaginary parts.
        matrices: whether norms of matrices do, too, and all norms refuse a dtype that adds imaginary parts.
    """

    def call(self: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:  # noqa: A002
        named = dtypes.as_dtype(dtype)
        if named is not None:
            if named.category < dtypes.FLOATING:
                raise fail(f"linalg.norm: dtype should be floating point or complex, but got {words(named.array)}")
            dims = self.array.ndim if dim is None else 1 if dim.__class__ is int else len(dim)
            refuses = matrices if ord is not None and dims > 1 else vectors
            if refuses and named.category < self.dtype.category:
                raise fail(f"linalg.norm: dtype should be complex for complex inputs, but got {words(named.array)}")
            if matrices and named.category > self.dtype.category == dtypes.FLOATING:
                raise fail(f"linalg.norm: dtype should be real for real inputs, but got {words(named.array)}")
        return norm(self, ord, dim, keepdim, dtype=dtype)

    return call


functional("linalg_norm")(_checked_norm(linalg_norm_1_0, vectors=False, matrices=False))
functional("linalg_norm", since="1.9.0")(_checked_norm(linalg_norm_1_0, vectors=True, matrices=False))
functional("linalg_norm", since="1.12.0")(_checked_norm(linalg_norm_1_0, vectors=True, matrices=True))
functional("linalg_norm", since="2.4.0")(_checked_norm(linalg_norm, vectors=True, matrices=True))


def _linalg_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any, *, alone: bool) -> Tensor:  # noqa: A002
    array = self.array if dtype is None else cast(self.array, dtypes.as_dtype(dtype).array)  # type: ignore[union-attr]
    dims = (
        tuple(range(array.ndim))
        if dim is None
        else tuple(axis(item, array.ndim) for item in ([dim] if dim.__class__ is int else dim))
    )
    kind = _real(array.dtype)
    if dim is not None and len(dims) not in {1, 2}:
        raise fail(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None:
        return Tensor(norm_of(array, 2.0, dims, keepdims=keepdim, alone=alone).astype(kind))
    if len(dims) not in {1, 2}:
        raise fail(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {array.ndim}D.")
    if isinstance(ord, str) and len(dims) != 2:
        raise fail(f"linalg.norm: Order {ord} is one of matrices, of two dimensions. Got {len(dims)}.")
    if len(dims) == 2:
        if not isinstance(ord, str) and abs(ord) not in {1, 2, math.inf}:
            raise fail(f"linalg.matrix_norm: Order {ord} not supported.")
        return Tensor(
            np.asarray(_norm_of_numpy(decomposed(array), ord if isinstance(ord, str) else float(ord), dims, keepdim)).astype(kind)
        )
    if (ord < 0 or ord == math.inf) and array.ndim and not array.shape[dims[0]]:
        raise fail(
            f"linalg.vector_norm cannot compute the {ord} norm on the dimension {dims[0]} because this dimension is empty and the operation does not have an "
            "identity"
        )
    return Tensor(norm_of(array, float(ord), dims, keepdims=keepdim, alone=alone).astype(kind))


def _matrix_norm(self: Tensor, ord: Any, dim: Sequence[int], keepdim: bool, dtype: Any, *, era: int) -> Tensor:  # noqa: A002
    array = self.array
    where = "linalg.matrix_norm"
    if array.ndim < 2:
        raise fail(f"{where}: The input tensor A must have at least 2 dimensions.")
    if array.dtype.kind not in "fc" and array.dtype not in HALVES:
        raise fail(f"{where}: Expected a floating point or complex tensor as input. Got {words(array.dtype)}")
    if len(dim) != 2:
        raise fail(f"{where}: dim must be a 2-tuple. Got {list(dim)}")
    places = [axis(item, array.ndim) for item in dim]
    if places[0] == places[1]:
        raise fail(f"{where}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord not in ORDERS:
        raise fail(f"{where}: Order {ord} not supported.")
    if array.dtype in HALVES and (dtype is None or era) and ord in {"nuc", 2, -2}:
        raise fail(f"{where}: Low precision dtypes not supported. Got {words(array.dtype)}")
    told = dtypes.as_dtype(dtype)
    if not era and not array.size:
        raise Unsupported("the reference reader does not support matrix_norm of an empty matrix before 1.13", code="value")
    if told is not None:
        _check_dtype(where, array.dtype, told.array, era)
    if ord == "fro":
        ord = None  # noqa: A001 - None stands for the norm of all elements
    norm = linalg_norm if era > 1 else linalg_norm_1_0
    if array.dtype in HALVES and ord is not None and (told is None or told.array == array.dtype):
        single = Tensor(array.astype(np.float32))
        return Tensor(norm(single, ord, places, keepdim).array.astype(array.dtype))
    return norm(self, ord, places, keepdim, dtype=dtype)


def _matrix_norms() -> None:
    for era, since in enumerate(("1.0.0", "1.13.0", "2.4.0")):

        def call(
            self: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None,  # noqa: A002
            era: int = era,
        ) -> Tensor:  # fmt: skip
            tensor = _matrix_norm(self, ord, dim, keepdim, dtype, era=era)
            return (
                tensor
                if out is None
                else into(out, tensor.array, exact=dtype is not None or (era > 0 and self.array.dtype.kind == "c"))
            )

        operator("aten::linalg_matrix_norm", since=since)(call)


_matrix_norms()


# ---------------------------------------------------------------------------------------------------------------- vectors


@operator("aten::linalg_vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers of each element, starting with the zeroth."""
    array = x.array
    if array.dtype.kind not in "fciu" or array.dtype in HALVES:
        raise fail(f"linalg.vander supports floating point, complex, and integer tensors, but got {words(array.dtype)}")
    array = array.reshape(1) if not array.ndim else array
    count = array.shape[-1] if N is None else N
    if count <= 1:
        raise fail("N must be greater than 1.")
    sized(*array.shape, count)
    wide = array.astype(INT64) if array.dtype.kind in "iu" else exact(array)
    powers = np.empty((*array.shape, count), wide.dtype)
    powers[..., 0] = 1
    powers[..., 1:] = np.cumprod(np.broadcast_to(wide[..., None], (*array.shape, count - 1)), axis=-1)
    return Tensor(powers.astype(INT64 if array.dtype.kind in "iu" else array.dtype))


@operator("aten::linalg_vecdot")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Dot products of vectors along a dimension; the first vectors are conjugated."""
    a, b = x.array, y.array
    if a.dtype.kind not in "fc" and a.dtype not in HALVES:
        raise fail(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {words(a.dtype)}")
    if a.dtype != b.dtype:
        raise fail(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {words(a.dtype)} and y of type {words(b.dtype)} instead"
        )
    if a.ndim == 1 and b.ndim == 1:
        if a.shape != b.shape:
            raise fail(
                f"inconsistent tensor size, expected tensor {list(a.shape)} and src {list(b.shape)} to have the same number of elements"
            )
        if dim not in {0, -1}:
            raise raised("IndexError", f"Dimension out of range (expected to be in range of [-1, 0], but got {dim})")
    shape = broadcast(a, b)
    at = axis(dim, len(shape))
    products = exact(a).conj() * exact(b)
    if a.dtype in HALVES:
        products = exact(products.astype(a.dtype))
    result = np.asarray(products.sum(axis=at) if shape else products).astype(a.dtype)
    return Tensor(result) if out is None else into(out, result)
