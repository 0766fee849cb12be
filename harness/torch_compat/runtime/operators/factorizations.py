"""LAPACK factorizations (LU, Cholesky), solvers that use them, and variants that return ``info``.

Where the result depends on rounding (the choice between nearly equal pivots, whether a matrix is singular), the answer is *unsupported*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, broadcast, fail, functional, words
from torch_compat.runtime.operators._products import decomposed, exact, looped
from torch_compat.runtime.operators.decompositions import columns, floating_matrices, linalg_solve, square, transposed
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__ = ["columns", "lu_of", "only_finite", "substituted", "transposed"]

INT32 = np.dtype(np.int32)
NEAR = 64
"""The maximum difference, in rounding units of the dtype, between two numbers that count as equal."""
DYADIC = 1 << 10
"""Quotients that are multiples of its reciprocal have exact products in every release if the numbers are small."""
SMALL = 1 << 10


def _rounding(kind: np.dtype[Any]) -> float:
    return float(np.finfo(kind).eps)


def _ambiguous(what: str) -> Unsupported:
    return Unsupported(f"the reference reader cannot determine {what}: it depends on rounding", code="value")


def only_finite(array: Array) -> Array:
    """Return the matrices unchanged.

    Raises:
        Unsupported: a matrix has infinities or NaN.
    """
    if not np.isfinite(array).all():
        raise Unsupported("the reference reader does not support factors of matrices with infinities or NaN", code="value")
    return array


# --------------------------------------------------------------------------------------------------------------------- LU


def lu_of(matrix: Array, rounding: float) -> tuple[Array, Array, int]:
    """LU with the largest number of each column as pivot, like getrf: both factors in one matrix, pivots from 1 on, and the first zero pivot.

    Parameters:
        rounding: the rounding error of the dtype in which the release computes.

    Raises:
        Unsupported: the choice of a pivot depends on rounding.
    """
    lu = matrix.copy()
    rows, wide = lu.shape
    count = min(rows, wide)
    pivots, info = np.zeros(count, np.int64), 0
    close = NEAR * rounding * max(rows, wide)
    largest = float(np.abs(lu).max(initial=0.0))
    dyadic = _dyadic(lu)
    for k in range(looped(count, rows * wide)):
        sizes = np.abs(lu[k:, k].real) + np.abs(lu[k:, k].imag) if lu.dtype.kind == "c" else np.abs(lu[k:, k])
        best = int(np.argmax(sizes))
        if not dyadic and k:
            if sizes[best] <= close * largest:
                raise _ambiguous("whether a matrix is singular")
            if (np.delete(sizes, best) >= sizes[best] * (1 - close)).any():
                raise _ambiguous("which row is the pivot")
        pivots[k] = k + best + 1
        if sizes[best] == 0:
            info = info or k + 1
            continue
        if best:
            lu[[k, k + best]] = lu[[k + best, k]]
        lu[k + 1 :, k] /= lu[k, k]
        dyadic = dyadic and _dyadic(lu[k + 1 :, k])
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots, info


def _dyadic(array: Array) -> bool:
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    return all(bool(((part * DYADIC) % 1 == 0).all() and (np.abs(part) < SMALL).all()) for part in parts)


def _factors(where: str, A: Tensor, pivot: bool = True) -> tuple[Array, Array, Array]:  # noqa: N803
    """The factors and pivots of each matrix, and the index of its first zero pivot."""
    array = A.array
    if array.size or array.ndim < 2:
        floating_matrices(where, array)
    if not pivot and array.size:
        raise fail(f"{where}: LU without pivoting is not implemented on the CPU")
    batch, count = array.shape[:-2], min(array.shape[-2:])
    wide = only_finite(decomposed(array))
    rounding = _rounding(array.dtype) if array.size else 0.0
    lu, pivots, info = np.empty_like(wide), np.zeros((*batch, count), INT32), np.zeros(batch, INT32)
    looped(math.prod(batch))
    for at in np.ndindex(*batch) if array.size else ():
        lu[at], pivots[at], info[at] = lu_of(wide[at], rounding)
    return columns(lu.astype(array.dtype)), pivots, info


def _refuse_singular(where: str, info: Array) -> None:
    if info.any():
        first = int(info.reshape(-1)[np.flatnonzero(info)[0]])
        raise fail(
            f"{where}: The diagonal element {first} is zero, the factorization or the solve could not be completed because the input matrix is singular."
        )


def _pivoted(A: Tensor, pivot: bool) -> None:  # noqa: N803
    if not pivot:
        raise fail("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    floating_matrices("linalg.lu_factor", A.array)


@functional("linalg_lu_factor_ex", exact=True)
def linalg_lu_factor_ex_1_11(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Up to 1.12 pivoting is required even for empty matrices."""
    _pivoted(A, pivot)
    return linalg_lu_factor_ex(A, pivot=pivot, check_errors=check_errors)


@functional("linalg_lu_factor_ex", exact=True, since="1.13.0")
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Both factors in one matrix, the pivots, and for each matrix the first that is zero."""
    lu, pivots, info = _factors("torch.linalg.lu_factor_ex", A, pivot)
    if check_errors:
        _refuse_singular("torch.linalg.lu_factor_ex", info)
    return Tensor(lu), Tensor(pivots), Tensor(info)


@functional("linalg_lu_factor", exact=True)
def linalg_lu_factor_1_11(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Up to 1.12 pivoting is required even for empty matrices."""
    _pivoted(A, pivot)
    return linalg_lu_factor(A, pivot=pivot)


@functional("linalg_lu_factor", exact=True, since="1.13.0")
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Same as :func:`linalg_lu_factor_ex`, for matrices without a zero pivot."""
    lu, pivots, info = _factors("torch.linalg.lu_factor", A, pivot)
    _refuse_singular("torch.linalg.lu_factor", info)
    return Tensor(lu), Tensor(pivots)


@operator("aten::_lu_with_info")
def lu_with_info_1_0(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 1.3 matrices must be square."""
    square("lu", self.array)
    return lu_with_info_1_4(self, pivot, check_errors)


@operator("aten::_lu_with_info", since="1.4.0")
def lu_with_info_1_4(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 1.12 pivoting is required even for empty matrices."""
    if not pivot:
        raise fail("lu without pivoting is not implemented on the CPU")
    return lu_with_info(self, pivot, check_errors)


@operator("aten::_lu_with_info", since="1.13.0")
def lu_with_info(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Same as :func:`linalg_lu_factor_ex`."""
    return linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors)


def _unpacked(lu: Array) -> tuple[Array, Array]:
    count = min(lu.shape[-2:])
    lower = np.tril(lu[..., :count], -1) + np.eye(lu.shape[-2], count, dtype=lu.dtype)
    return np.ascontiguousarray(lower), np.ascontiguousarray(np.triu(lu[..., :count, :]))


def _order(pivots: Array, rows: int) -> Array:
    """The row of the matrix that each row of its factors comes from.

    Raises:
        Raised: a pivot is not the number of a row.
    """
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= rows):
        raise fail(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?"
        )
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    looped(pivots.size)
    for at in np.ndindex(*pivots.shape[:-1]):
        for k, pivot in enumerate(pivots[at]):
            order[at][[k, pivot - 1]] = order[at][[pivot - 1, k]]
    return order


def _permutation(pivots: Array, rows: int, kind: np.dtype[Any]) -> Array:
    order = _order(pivots, rows)
    return np.ascontiguousarray(transposed(np.eye(rows, dtype=kind)[order]))


@functional("linalg_lu", exact=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """The permutation matrix and both factors."""
    lu, pivots, _ = _factors("linalg.lu", A, pivot)
    lower, upper = _unpacked(lu)
    permutation = _permutation(pivots, lu.shape[-2], lu.dtype) if pivot else np.zeros(0, lu.dtype)
    return Tensor(permutation), Tensor(lower), Tensor(upper)


def _whole_pivots(pivots: Tensor, where: str) -> Array:
    if pivots.array.dtype != INT32:
        raise fail(f"{where}: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function is intended to be used with the output produced by torch.linalg.lu_factor")  # fmt: skip
    return pivots.array


def _lu_unpack(
    LU_data: Tensor,  # noqa: N803
    LU_pivots: Tensor,  # noqa: N803
    unpack_data: bool,
    unpack_pivots: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    lu = LU_data.array
    if lu.ndim < 2:
        raise fail(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(lu.shape)} instead")
    nothing = Tensor(np.zeros(0, lu.dtype))
    permutation = lower = upper = nothing
    if unpack_pivots:
        pivots = _whole_pivots(LU_pivots, "torch.lu_unpack")
        if pivots.shape != (*lu.shape[:-2], min(lu.shape[-2:])):
            raise Unsupported("the reference reader supports only one pivot per column of each matrix", code="value")
        permutation = Tensor(_permutation(pivots, lu.shape[-2], lu.dtype))
    if unpack_data:
        lower, upper = map(Tensor, _unpacked(lu))
    return permutation, lower, upper


@functional("lu_unpack")
def lu_unpack_1_9(
    LU_data: Tensor,  # noqa: N803
    LU_pivots: Tensor,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 1.11 parts that are not requested are undefined tensors."""
    if not unpack_data or not unpack_pivots:
        raise Unsupported(
            "the reference reader does not support lu_unpack with unpack_data or unpack_pivots set to False, which returns undefined tensors",
            code="value",
        )
    return _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@functional("lu_unpack", exact=True, since="1.12.0")
def lu_unpack(
    LU_data: Tensor,  # noqa: N803
    LU_pivots: Tensor,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """The permutation matrix and both factors, unpacked from one matrix."""
    return _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


def substituted(triangle: Array, right: Array, *, upper: bool) -> Array:
    """The solution of triangular systems.

    Raises:
        Unsupported: a system has no solution: the result is infinite or NaN.
    """
    count = triangle.shape[-1]
    if (arrays.diagonal(triangle, 0, -2, -1) == 0).any() and right.size:
        raise Unsupported("the reference reader does not support singular triangular systems", code="value")
    result = np.array(np.broadcast_to(right, (*np.broadcast_shapes(triangle.shape[:-2], right.shape[:-2]), *right.shape[-2:])))
    for k in range(looped(count, right.size)):
        at = count - 1 - k if upper else k
        result[..., at, :] /= triangle[..., at, at][..., None]
        rest = slice(0, at) if upper else slice(at + 1, count)
        result[..., rest, :] -= triangle[..., rest, at][..., None] * result[..., at, :][..., None, :]
    return result


def _by_factors(lu: Array, pivots: Array, right: Array, *, adjoint: bool) -> Array:
    """The solution of systems given their LU factors."""
    count = lu.shape[-1]
    order = _order(pivots, count)
    lower = np.tril(lu, -1) + np.eye(count)
    batch = np.broadcast_shapes(lu.shape[:-2], right.shape[:-2])
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    places = np.broadcast_to(order, (*batch, count))[..., None]
    if not adjoint:
        permuted = np.take_along_axis(right, np.broadcast_to(places, right.shape), -2)
        return substituted(np.triu(lu), substituted(lower, permuted, upper=False), upper=True)
    result = substituted(transposed(np.triu(lu)).conj(), right, upper=False)
    result = substituted(transposed(lower).conj(), result, upper=True)
    back = np.argsort(places, axis=-2)
    return np.take_along_axis(result, np.broadcast_to(back, result.shape), -2)


def _check_factors(where: str, lu: Array, pivots: Array, right: Array) -> None:
    floating_matrices(where, lu)
    square(where, lu)
    if lu.dtype != right.dtype:
        raise fail(
            f"{where}: Expected LU and B to have the same dtype, but found LU of type {words(lu.dtype)} and B of type {words(right.dtype)} instead"
        )
    if pivots.dtype != INT32:
        raise fail(f"{where}: pivots should be a Tensor of scalar type torch.int32")
    if lu.shape[-1] != (pivots.shape[-1] if pivots.ndim else 1) or lu.shape[:-2] != pivots.shape[:-1] or not pivots.ndim:
        raise fail(f"{where}: Number of pivots per batch should be same as the dimension of the matrix")
    if right.ndim < 2:
        raise fail(f"{where}: The tensor B must have at least 2 dimensions.")


@functional("lu_solve")
def lu_solve_1_1(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:  # noqa: N803
    """Up to 1.2 batches must have as many right-hand sides as matrices."""
    if self.array.ndim < 3 and LU_data.array.ndim > 2:
        raise Unsupported(
            "the reference reader does not support lu_solve with a single right-hand side for a batch", code="value"
        )
    if LU_data.array.ndim < 3 or self.array.shape[:-2] != LU_data.array.shape[:-2]:
        raise fail("b and LU_data should have the same number of batches")
    return lu_solve(self, LU_data, LU_pivots)


@functional("lu_solve", since="1.3.0")
def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:  # noqa: N803
    """The solution of systems given their LU factors."""
    return linalg_lu_solve(LU_data, LU_pivots, self)


@functional("linalg_lu_solve", exact=True)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:  # noqa: N803
    """The solution of systems given their LU factors, on either side."""
    lu, right = LU.array, B.array
    _check_factors("linalg.lu_solve", lu, pivots.array, right)
    if right.shape[-2 if left else -1] != lu.shape[-1]:
        raise fail(f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'}")
    broadcast(np.empty(lu.shape[:-2], bool), np.empty(right.shape[:-2], bool))
    wide = decomposed(lu)
    if left:
        return Tensor(columns(_by_factors(wide, pivots.array, exact(right), adjoint=adjoint).astype(lu.dtype)))
    result = _by_factors(wide, pivots.array, transposed(exact(right)).conj(), adjoint=not adjoint)
    return Tensor(np.ascontiguousarray(transposed(result).conj().astype(lu.dtype)))


# -------------------------------------------------------------------------------------------------- variants that return info


def _unspecified(what: str) -> Unsupported:
    return Unsupported(
        f"the reference reader does not support {what} of a matrix for which it does not exist; releases return arbitrary numbers in this case",
        code="value",
    )


def _singular(where: str, A: Tensor, *, check: bool, what: str) -> Array:  # noqa: N803
    """Return 0 for each matrix.

    Raises:
        Raised: a matrix is singular, and errors are checked.
        Unsupported: a matrix is singular.
    """
    square(where, A.array)
    info = _factors(where, A)[2]
    if info.any():
        if check:
            _refuse_singular(where, info)
        raise _unspecified(what)
    return info


@functional("linalg_inv_ex", exact=True)
def linalg_inv_ex(self: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """The inverse, and whether it exists for each matrix."""
    info = _singular("linalg.inv", self, check=check_errors, what="the inverse")
    result = np.linalg.inv(decomposed(self.array)).astype(self.array.dtype)
    return Tensor(columns(result)), Tensor(info)


@functional("linalg_solve_ex")
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:  # noqa: N803
    """The solution, and whether it exists for each matrix."""
    vector = B.array.ndim == 1 or (B.array.ndim == A.array.ndim - 1 and B.array.shape == A.array.shape[:-1])
    if vector and not left:
        raise fail("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    if A.array.dtype != B.array.dtype:
        raise fail(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {words(A.array.dtype)} and B of type {words(B.array.dtype)} instead"
        )
    info = _singular("torch.linalg.solve", A, check=check_errors, what="the solution")
    result = linalg_solve(A, B, left=left).array
    return Tensor(columns(result) if left and not vector else np.ascontiguousarray(result)), Tensor(info)


@functional("linalg_cholesky_ex", exact=True)
def linalg_cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """The Cholesky factor, and whether it exists for each matrix."""
    array = self.array
    square("linalg.cholesky", array)
    triangle = transposed(decomposed(array)).conj() if upper else decomposed(array)
    whole = np.tril(triangle, -1)
    depth = np.arange(array.shape[-1])
    whole = whole + transposed(whole).conj()
    whole[..., depth, depth] = triangle[..., depth, depth].real
    values = np.linalg.eigvalsh(only_finite(whole))
    least, most = values.min(axis=-1, initial=math.inf), np.abs(values).max(axis=-1, initial=0.0)
    if (np.abs(least) <= NEAR * _rounding(array.dtype) * max(1, array.shape[-1]) * most).any():
        raise _ambiguous("whether a matrix is positive definite")
    if (least < 0).any():
        if check_errors:
            raise fail("linalg.cholesky: The factorization could not be completed because the input is not positive-definite.")
        raise _unspecified("the root")
    root = np.linalg.cholesky(whole)
    root = transposed(root).conj() if upper else root
    return Tensor(columns(root.astype(array.dtype))), Tensor(np.zeros(array.shape[:-2], INT32))
