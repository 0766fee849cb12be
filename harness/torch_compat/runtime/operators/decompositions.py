"""Matrix decompositions, solvers and inverses based on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT16,
    Array,
    axis,
    broadcast,
    copied_into,
    fail,
    functional,
    words,
)
from torch_compat.runtime.operators._products import decomposed, exact, looped, multiplied
from torch_compat.runtime.operators.norms import norm_of
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised


def transposed(array: Array) -> Array:
    """Transpose matrices."""
    return np.swapaxes(array, -1, -2)


def columns(array: Array) -> Array:
    """The same matrices in column-major order, as LAPACK expects and leaves them, and as every release returns them."""
    return transposed(np.ascontiguousarray(transposed(array))) if array.size else array


def square(where: str, a: Array) -> None:
    """Refuse anything but square matrices of floating point or complex dtype.

    Raises:
        Raised: the tensor is anything else.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise fail(
            f"{where}: A must be batches of square matrices, but they are {a.shape[-2] if a.ndim > 1 else 1} by {a.shape[-1] if a.ndim else 1} matrices"
        )
    _floating(where, a)


def _floating(where: str, a: Array) -> None:
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise fail(f"{where}: Expected a floating point or complex tensor as input. Got {words(a.dtype)}")


def _matrix(where: str, a: Array) -> None:
    if a.ndim < 2:
        raise fail(f"{where}: The input tensor must have at least 2 dimensions.")


def floating_matrices(where: str, a: Array) -> None:
    """Refuse anything but matrices of floating point or complex dtype.

    Raises:
        Raised: the tensor is anything else.
    """
    _matrix(where, a)
    _floating(where, a)


def _factored(matrix: Array) -> tuple[Array, list[int], int]:
    """LU with the largest pivot of each column, like LAPACK's getrf: both factors in one matrix, the rows, and the first zero pivot."""
    lu = matrix.copy()
    n = lu.shape[0]
    rows = list(range(n))
    zero = 0
    for k in range(looped(n, n * n)):
        best = k + int(np.argmax(np.abs(lu[k:, k])))
        if lu[best, k] == 0:
            zero = zero or k + 1
            continue
        if best != k:
            lu[[k, best]] = lu[[best, k]]
            rows[k], rows[best] = rows[best], rows[k]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, rows, zero


def _each(function: Any, a: Array) -> Array:
    try:
        return function(decomposed(a))
    except np.linalg.LinAlgError as error:
        raise raised(
            "RuntimeError",
            f"linalg: The diagonal element is zero, the inversion could not be completed because the input matrix is singular ({error}).",
        ) from error


def _fitting(name: str, a: Array, b: Array) -> None:
    """Check the shapes of a system ``A X = B``.

    Raises:
        Raised: one of the two is not a matrix, A is not square, the rows of B do not match, or the batches do not broadcast.
    """
    for operand in (b, a):
        if operand.ndim < 2:
            raise fail(f"{name}: b should have at least 2 dimensions, but has {operand.ndim} dimensions instead")
    square(name, a)
    if a.shape[-1] != b.shape[-2]:
        sizes = f"each A matrix is {a.shape[-1]} by {a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        raise fail(f"Incompatible matrix sizes for {name}: {sizes}")
    broadcast(np.empty(a.shape[:-2]), np.empty(b.shape[:-2]))


@operator("aten::solve", "aten::gesv")
def solve(self: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:  # noqa: N803
    """The solution of ``A X = self`` and the factors of A."""
    b, a = self.array, A.array
    _fitting("solve", a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    solution, factors = np.empty_like(b), np.empty_like(a)
    looped(math.prod(batch))
    for index in np.ndindex(*batch):
        lu, rows, zero = _factored(exact(a[index]))
        if zero:
            raise fail(f"solve_cpu: U({zero},{zero}) is zero, singular U.")
        lower = np.tril(lu, -1) + np.eye(lu.shape[0])
        solution[index] = np.linalg.solve(np.triu(lu), np.linalg.solve(lower, exact(b[index])[rows]))
        factors[index] = lu
    return Tensor(columns(solution)), Tensor(columns(factors))


@operator("aten::linalg_solve")
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803
    """The solution of ``A X = B``."""
    a, b = A.array, B.array
    square("linalg.solve", a)
    _same_dtype("linalg.solve", "A", a, "B", b)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    right = exact(b)[..., None] if vector else exact(b)
    _fitting("linalg.solve", a, right if left else np.swapaxes(right, -1, -2))
    if not left:
        result = np.swapaxes(_each(lambda x: np.linalg.solve(np.swapaxes(x, -1, -2), np.swapaxes(right, -1, -2)), a), -1, -2)
    else:
        result = _each(lambda x: np.linalg.solve(x, right), a)
    result = result.astype(a.dtype)
    return Tensor(result[..., 0] if vector else columns(result))


def _symeig(self: Tensor, eigenvectors: bool, upper: bool, *, zeros: bool) -> tuple[Tensor, Tensor]:
    a = self.array
    square("symeig", a)
    values, vectors = np.linalg.eigh(decomposed(a), UPLO="U" if upper else "L")
    nothing = np.zeros(a.shape if zeros else (0,), a.dtype)
    return Tensor(values.astype(_real(a.dtype))), Tensor(columns(vectors.astype(a.dtype)) if eigenvectors else nothing)


# Up to 1.3 eigenvectors that were not requested are a matrix of zeros, later an empty tensor.
operator("aten::symeig")(lambda self, eigenvectors=False, upper=True: _symeig(self, eigenvectors, upper, zeros=True))
operator("aten::symeig", since="1.4.0")(
    lambda self, eigenvectors=False, upper=True: _symeig(self, eigenvectors, upper, zeros=False)
)


@operator("aten::linalg_eigh", "aten::_linalg_eigh")
def linalg_eigh(self: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Eigenvalues and eigenvectors of symmetric matrices."""
    square("linalg.eigh", self.array)
    decompose: Any = np.linalg.eigh
    values, vectors = decompose(decomposed(self.array), UPLO=UPLO)
    result = columns(vectors.astype(self.array.dtype)) if compute_v else np.zeros(0, self.array.dtype)
    return Tensor(values.astype(_real(self.array.dtype))), Tensor(result)


@operator("aten::linalg_eigvalsh")
def linalg_eigvalsh(self: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803
    """Eigenvalues of symmetric matrices."""
    return linalg_eigh(self, UPLO)[0]


@operator("aten::inverse")
def inverse_1_0(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copies the result into ``out``, which keeps its shape and dtype."""
    return copied_into(out, inverse(self))


@functional("inverse", since="1.9.0")
@functional("linalg_inv")
def inverse(self: Tensor) -> Tensor:
    """The inverses of square matrices."""
    square("linalg.inv", self.array)
    return Tensor(columns(_each(np.linalg.inv, self.array).astype(self.array.dtype)))


@functional("det", "linalg_det")
def det(self: Tensor) -> Tensor:
    """Determinants."""
    square("linalg.det", self.array)
    return Tensor(np.asarray(np.linalg.det(decomposed(self.array))).astype(self.array.dtype))


@operator("aten::logdet")
def logdet(self: Tensor) -> Tensor:
    """Logarithms of determinants."""
    square("logdet", self.array)
    return Tensor(np.log(np.asarray(np.linalg.det(decomposed(self.array)))).astype(self.array.dtype))


@operator("aten::slogdet", "aten::linalg_slogdet")
def slogdet(self: Tensor) -> tuple[Tensor, Tensor]:
    """Signs and logarithms of determinants."""
    square("linalg.slogdet", self.array)
    sign, size = np.linalg.slogdet(decomposed(self.array))
    return Tensor(np.asarray(sign).astype(self.array.dtype)), Tensor(np.asarray(size).astype(_real(self.array.dtype)))


@operator("aten::cholesky")
def cholesky_1_0(self: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Copy the result into ``out``, which keeps its shape and dtype."""
    return copied_into(out, cholesky(self, upper))


@functional("cholesky", since="1.9.0")
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices; an empty tensor of any shape is copied."""
    if not self.array.size:
        return Tensor(self.array.copy())
    square("cholesky", self.array)
    try:
        given = decomposed(self.array)  # only one triangle is read
        result = np.linalg.cholesky(np.swapaxes(given, -1, -2) if upper else given).astype(self.array.dtype)
    except np.linalg.LinAlgError as error:
        raise fail("cholesky: The factorization could not be completed because the input is not positive-definite.") from error
    return Tensor(columns(transposed(result) if upper else result))


@functional("linalg_cholesky")
def linalg_cholesky(self: Tensor, *, upper: bool = False) -> Tensor:
    """Same as :func:`cholesky`, for square matrices only."""
    square("linalg.cholesky", self.array)
    return cholesky(self, upper)


def _qr(a: Array, *, some: bool, by_columns: bool) -> tuple[Tensor, Tensor]:
    _floating("qr", a)
    _matrix("qr", a)
    q, r = (item.astype(a.dtype) for item in np.linalg.qr(decomposed(a), mode="reduced" if some else "complete"))
    return Tensor(columns(q)), Tensor(columns(r) if by_columns else np.ascontiguousarray(r))


def _triangular_factors(since: str, *, by_columns: bool) -> None:
    """Up to 1.8 the triangular factor is row-major."""

    def qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
        """Orthogonal and triangular factors."""
        return _qr(self.array, some=some, by_columns=by_columns)

    def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:  # noqa: N803
        """Same as :func:`qr`; mode ``r`` computes only the second matrix."""
        if mode not in {"reduced", "complete", "r"}:
            raise fail(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
        q, r = _qr(A.array, some=mode != "complete", by_columns=by_columns)
        return (Tensor(np.zeros(0, A.array.dtype)) if mode == "r" else q), r

    operator("aten::qr", since=since)(qr)
    operator("aten::linalg_qr", since=since)(linalg_qr)


_triangular_factors("1.0.0", by_columns=False)
_triangular_factors("1.9.0", by_columns=True)


def _finite(array: Array) -> Array:
    """Matrices without infinities and NaN, with which LAPACK's singular values may never end.

    Raises:
        Raised: a matrix has infinities or NaN.
    """
    if not np.isfinite(array).all():
        raise fail("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.")
    return array


@operator("aten::svd")
def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Singular vectors and singular values."""
    del compute_uv
    _floating("svd", self.array)
    _matrix("svd", self.array)
    u, s, vh = np.linalg.svd(_finite(decomposed(self.array)), full_matrices=not some)
    kind = self.array.dtype
    return Tensor(columns(u.astype(kind))), Tensor(s.astype(kind)), Tensor(transposed(columns(vh.conj().astype(kind))))


@operator("aten::linalg_svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Singular vectors and singular values."""
    del driver
    _matrix("linalg.svd", A.array)
    u, s, vh = np.linalg.svd(_finite(decomposed(A.array)), full_matrices=full_matrices)
    kind = A.array.dtype
    return Tensor(columns(u.astype(kind))), Tensor(s.astype(kind)), Tensor(columns(vh.astype(kind)))


@operator("aten::linalg_svdvals")
def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:  # noqa: N803
    """Singular values."""
    del driver
    _matrix("linalg.svdvals", A.array)
    result = np.linalg.svd(_finite(decomposed(A.array)), compute_uv=False)
    return Tensor(result.astype(_real(A.array.dtype)))


@operator("aten::pinverse", "aten::linalg_pinv")
def pinverse(self: Tensor, rcond: Any = 1e-15, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudoinverse; singular values below both tolerances count as zero."""
    _matrix("pinverse", self.array)
    _floating("pinverse", self.array)
    array = _finite(decomposed(self.array))
    if atol is None and rtol is None:
        cut = rcond.array if rcond.__class__ is Tensor else rcond
    else:
        given = [0.0 if tensor is None else tensor.array if tensor.__class__ is Tensor else tensor for tensor in (atol, rtol)]
        if rtol is None and not np.any(np.asarray(given[0]) > 0):
            given[1] = max(array.shape[-2:]) * np.finfo(self.array.dtype).eps
        largest = np.linalg.norm(array, 2, (-2, -1))
        with np.errstate(all="ignore"):
            cut = np.maximum(np.asarray(given[0]) / largest, given[1])
    whole = np.broadcast_to(array, (*np.broadcast_shapes(np.shape(cut), array.shape[:-2]), *array.shape[-2:]))
    return Tensor(np.linalg.pinv(whole, cut, hermitian).astype(self.array.dtype))


@operator("aten::matrix_power", "aten::linalg_matrix_power")
def matrix_power(self: Tensor, n: int) -> Tensor:
    """Integer powers of square matrices."""
    array = self.array
    if array.ndim < 2:
        raise fail("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if array.shape[-1] != array.shape[-2]:
        if n == 1:
            raise Unsupported(
                "the reference reader does not support the first power of a nonsquare matrix", code="value"
            )  # up to 1.8 a copy
        rows, columns = array.shape[-2:]
        raise fail(f"linalg.matrix_power: A must be batches of square matrices, but they are {rows} by {columns} matrices")
    result = _each(lambda a: np.linalg.matrix_power(a, n), array).astype(array.dtype)
    if result.dtype.kind in "fc" and np.isfinite(array).all() and not np.isfinite(result).all():
        raise Unsupported(
            "aten::matrix_power overflows: the order of products determines whether the result is infinity or NaN", code="value"
        )
    return Tensor(result)


def _real(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of complex numbers; other dtypes unchanged."""
    return np.dtype(np.float32 if kind == np.complex64 else np.float64) if kind.kind == "c" else kind


def _same_dtype(where: str, first: str, a: Array, second: str, b: Array) -> None:
    if a.dtype != b.dtype:
        raise fail(
            f"{where}: Expected {first} and {second} to have the same dtype, but found {first} of type {words(a.dtype)} and {second} of type "
            f"{words(b.dtype)} instead"
        )


@operator("aten::nuclear_norm")
def nuclear_norm_1_0(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Up to 1.6 one dimension is kept instead of two."""
    dims, keepdim = (None, dim) if dim.__class__ is bool else (dim, keepdim)
    if dims is not None and any(item < 0 for item in dims):
        raise fail(f"duplicate or invalid axis in 'dim' argument for tensor with ndim=={self.array.ndim}")
    tensor = nuclear_norm(self, dims)
    return Tensor(tensor.array[..., None]) if keepdim else tensor


@operator("aten::nuclear_norm", since="1.7.0")
def nuclear_norm(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of singular values."""
    if dim.__class__ is bool:  # the overload without dimensions
        dim, keepdim = None, dim
    dims = (-2, -1) if dim is None else tuple(dim)
    return Tensor(np.asarray(np.linalg.norm(decomposed(self.array), "nuc", dims, keepdim)).astype(_real(self.array.dtype)))


@operator("aten::triangular_solve")
def triangular_solve(
    self: Tensor,
    A: Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """The solution of a triangular system."""
    b = exact(self.array)
    for name, tensor in (("b", self), ("A", A)):
        if tensor.array.ndim < 2:
            raise fail(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {tensor.array.ndim} dimensions instead"
            )
    if A.array.shape[-1] != A.array.shape[-2]:
        raise fail(
            f"triangular_solve: A must be batches of square matrices, but they are {A.array.shape[-2]} by {A.array.shape[-1]} matrices"
        )
    _same_dtype("torch.triangular_solve", "b", self.array, "A", A.array)
    if b.shape[-2] != A.array.shape[-1]:
        raise fail(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.array.shape[-1]} by {A.array.shape[-1]} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )
    _floating("triangular_solve", self.array)
    batch = broadcast(np.empty(b.shape[:-2], BOOL), np.empty(A.array.shape[:-2], BOOL))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    given = np.broadcast_to(A.array, (*batch, *A.array.shape[-2:]))  # the second result is as large as the first
    a = decomposed(given)
    triangle = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        n = a.shape[-1]
        triangle = triangle - triangle * np.eye(n) + np.eye(n)
    if transpose:
        triangle = np.swapaxes(triangle, -1, -2)
    result = _substituted(triangle, b, upper=upper is not transpose)
    return Tensor(columns(result.astype(self.array.dtype))), Tensor(columns(given.copy()))


def _substituted(triangle: Array, b: Array, *, upper: bool) -> Array:
    """The solution of a triangular system by substitution, without the pivoting of a general solver."""
    if upper:
        return np.linalg.solve(triangle, b)
    return np.linalg.solve(triangle[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]  # a lower triangle becomes an upper triangle


@functional("cholesky_solve")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The solution of a system given its Cholesky factor, by two triangular systems."""
    _fitting("cholesky_solve", input2.array, self.array)
    root = np.triu(decomposed(input2.array)) if upper else np.tril(decomposed(input2.array))
    other = np.swapaxes(root.conj(), -1, -2)
    lower, higher = (other, root) if upper else (root, other)
    half = _substituted(lower, exact(self.array), upper=False)
    return Tensor(columns(_substituted(higher, half, upper=True).astype(self.array.dtype)))


@functional("cholesky_inverse")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix given its Cholesky factor."""
    square("cholesky_inverse", self.array)
    root = np.triu(decomposed(self.array)) if upper else np.tril(decomposed(self.array))
    other = np.swapaxes(root.conj(), -1, -2)
    result = _each(np.linalg.inv, multiplied(other, root) if upper else multiplied(root, other))
    return Tensor(columns(result.astype(self.array.dtype)))


@functional("linalg_eigvals")
def linalg_eigvals(self: Tensor) -> Tensor:
    """Eigenvalues of general matrices."""
    square("linalg.eig", self.array)
    return Tensor(np.linalg.eigvals(_finite(decomposed(self.array))).astype(_complex_of(self.array.dtype)))


@operator("aten::linalg_eig")
def linalg_eig(self: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of general matrices."""
    square("linalg.eig", self.array)
    kind = _complex_of(self.array.dtype)
    values, vectors = np.linalg.eig(_finite(decomposed(self.array)))
    return Tensor(values.astype(kind)), Tensor(vectors.astype(kind))


def _complex_of(kind: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex64 if kind.itemsize <= 4 else np.complex128) if kind.kind != "c" else kind


@operator("aten::norm_except_dim")
def norm_except_dim_1_0(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:  # noqa: A002
    """Up to 2.3 the norm of one element is a root of its power."""
    return _norm_except_dim(v, pow, dim, alone=False)


@operator("aten::norm_except_dim", since="2.4.0")
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:  # noqa: A002
    """Norms over all dimensions except one, which is kept; over all dimensions if that is -1."""
    return _norm_except_dim(v, pow, dim, alone=True)


def _norm_except_dim(v: Tensor, pow: int, dim: int, *, alone: bool) -> Tensor:  # noqa: A002
    array = v.array
    if not array.size:
        raise Unsupported("the reference reader does not support norm_except_dim of an empty tensor", code="operator")
    if dim == -1:
        return Tensor(
            norm_of(array, float(pow), tuple(range(array.ndim)), keepdims=False, alone=alone).astype(_real(array.dtype))
        )
    if not array.ndim:
        raise raised("IndexError", f"Dimension specified as {dim} but tensor has no dimensions")
    at = axis(dim, array.ndim)
    others = tuple(index for index in range(array.ndim) if index != at)
    return Tensor(norm_of(array, float(pow), others, keepdims=True, alone=alone).astype(_real(array.dtype)))


@operator("aten::_weight_norm")
def weight_norm_1_0(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """A weight from its direction and its length, which are broadcast to any common shape."""
    length = exact(norm_except_dim_1_0(v, 2, dim).array)
    broadcast(g.array, length)
    scale = exact(g.array) / length
    broadcast(v.array, scale)
    return Tensor((exact(v.array) * scale).astype(dtypes.result_type((v, g)).array))


@operator("aten::_weight_norm", since="1.12.0")
def weight_norm_1_12(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Same as :func:`weight_norm`, but float16 is not computed by the kernel."""
    if FLOAT16 in {v.array.dtype, g.array.dtype}:
        return weight_norm_1_0(v, g, dim)
    return weight_norm(v, g, dim)


@operator("aten::_weight_norm", since="2.8.0")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Along the first or the last dimension, lengths are taken in the order of their elements.

    Raises:
        Unsupported: there are fewer lengths than slices: releases read past the end of the lengths in memory.
    """
    if dim not in {0, v.array.ndim - 1}:
        return weight_norm_1_0(v, g, dim)
    if v.array.dtype != g.array.dtype:
        raise fail(f"expected scalar type {words(v.array.dtype)} but found {words(g.array.dtype)}")
    length = norm_except_dim_1_0(v, 2, dim).array
    if g.array.size < length.size:
        raise Unsupported("aten::_weight_norm reads norms out of bounds", code="operator")
    return weight_norm_1_0(v, Tensor(g.array.reshape(-1)[: length.size].reshape(length.shape)), dim)
