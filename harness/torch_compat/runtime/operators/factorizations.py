"""Factors of matrices as LAPACK leaves them (LU, Cholesky, QR by reflectors), and what is solved by them with a count of failures.

A choice that is left to roundings (which of nearly equal numbers is the pivot, whether a matrix is singular) is answered with *unsupported*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, broadcast, fail, functional, words
from torch_compat.runtime.operators._products import decomposed, exact, looped, multiplied
from torch_compat.runtime.operators.decompositions import floating_matrices, linalg_solve, square
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

__all__ = ["columns", "lu_of", "reflected", "reflectors", "substituted", "transposed"]

INT32 = np.dtype(np.int32)
NEAR = 64
"""Roundings of a type that may stand between two numbers which are equal."""
DYADIC = 1 << 10
"""What quotients are multiples of, of whose products no release rounds any, where the numbers are small."""
SMALL = 1 << 10


def transposed(array: Array) -> Array:
    """Matrices with rows for columns."""
    return np.swapaxes(array, -1, -2)


def columns(array: Array) -> Array:
    """The same matrices column by column in memory, as LAPACK wants and leaves them."""
    return transposed(np.ascontiguousarray(transposed(array)))


def _rounding(kind: np.dtype[Any]) -> float:
    return float(np.finfo(kind).eps)


def _ambiguous(what: str) -> Unsupported:
    return Unsupported(f"the reference reader does not support {what} that is a matter of rounding", code="value")


def _finite(array: Array) -> Array:
    if not np.isfinite(array).all():
        raise Unsupported("the reference reader does not support factors of matrices with infinities or NaN", code="value")
    return array


# --------------------------------------------------------------------------------------------------------------------- LU


def lu_of(matrix: Array, rounding: float) -> tuple[Array, Array, int]:
    """LU with the largest number of each column as pivot, as getrf: both factors in one matrix, pivots from 1 on, and the first that is zero.

    Parameters:
        rounding: of the type in which the release computes.

    Raises:
        Unsupported: a pivot is a matter of rounding.
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
                raise _ambiguous("a singular matrix")
            if (np.delete(sizes, best) >= sizes[best] * (1 - close)).any():
                raise _ambiguous("a pivot")
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
    return all(bool(((one * DYADIC) % 1 == 0).all() and (np.abs(one) < SMALL).all()) for one in parts)


def _factors(where: str, A: Tensor, pivot: bool = True) -> tuple[Array, Array, Array]:  # noqa: N803
    """Factors of each matrix, pivots, and the first pivot that is zero."""
    array = A.array
    if array.size or array.ndim < 2:
        floating_matrices(where, array)
    if not pivot and array.size:
        raise fail(f"{where}: LU without pivoting is not implemented on the CPU")
    batch, count = array.shape[:-2], min(array.shape[-2:])
    wide = _finite(decomposed(array))
    rounding = _rounding(array.dtype) if array.size else 0.0
    lu, pivots, info = np.empty_like(wide), np.zeros((*batch, count), INT32), np.zeros(batch, INT32)
    looped(math.prod(batch))
    for at in np.ndindex(*batch):
        lu[at], pivots[at], info[at] = lu_of(wide[at], rounding)
    return columns(lu.astype(array.dtype)), pivots, info


def _refuse_singular(where: str, info: Array) -> None:
    if info.any():
        first = int(info.reshape(-1)[np.flatnonzero(info)[0]])
        raise fail(
            f"{where}: The diagonal element {first} is zero, the factorization or the solve could not be completed because the input matrix is singular."
        )


@functional("linalg_lu_factor_ex", exact=True)
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Both factors in one matrix, the pivots, and for each matrix the first that is zero."""
    lu, pivots, info = _factors("torch.linalg.lu_factor_ex", A, pivot)
    if check_errors:
        _refuse_singular("torch.linalg.lu_factor_ex", info)
    return Tensor(lu), Tensor(pivots), Tensor(info)


@functional("linalg_lu_factor", exact=True)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    """As :func:`linalg_lu_factor_ex`, of matrices without a pivot that is zero."""
    lu, pivots, info = _factors("torch.linalg.lu_factor", A, pivot)
    _refuse_singular("torch.linalg.lu_factor", info)
    return Tensor(lu), Tensor(pivots)


@operator("aten::_lu_with_info")
def lu_with_info_1_0(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Up to 1.10 pivots are wanted also of nothing."""
    if not pivot:
        raise fail("lu without pivoting is not implemented on the CPU")
    return lu_with_info(self, pivot, check_errors)


@operator("aten::_lu_with_info", since="1.11.0")
def lu_with_info(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`linalg_lu_factor_ex`."""
    return linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors)  # type: ignore[no-any-return]


def _unpacked(lu: Array) -> tuple[Array, Array]:
    count = min(lu.shape[-2:])
    lower = np.tril(lu[..., :count], -1) + np.eye(lu.shape[-2], count, dtype=lu.dtype)
    return np.ascontiguousarray(lower), np.ascontiguousarray(np.triu(lu[..., :count, :]))


def _order(pivots: Array, rows: int) -> Array:
    """Which row of a matrix each row of its factors is.

    Raises:
        Raised: a pivot is no row.
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
    """A permutation, and the factors."""
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
            raise Unsupported(
                "the reference reader does not support other pivots than one for each column of each matrix", code="value"
            )
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
    """Up to 1.11 what is not wanted is no tensor."""
    if not unpack_data or not unpack_pivots:
        raise Unsupported(
            "the reference reader does not support lu_unpack of a part, which gives undefined tensors", code="value"
        )
    return _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@functional("lu_unpack", exact=True, since="1.12.0")
def lu_unpack(
    LU_data: Tensor,  # noqa: N803
    LU_pivots: Tensor,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """A permutation and two factors, of the factors in one matrix."""
    return _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


def substituted(triangle: Array, right: Array, *, upper: bool) -> Array:
    """The solution of triangular systems.

    Raises:
        Unsupported: one has none: what comes of it is infinite, or no number.
    """
    count = triangle.shape[-1]
    if (arrays.diagonal(triangle, 0, -2, -1) == 0).any() and right.size:
        raise Unsupported("the reference reader does not support triangular systems without a solution", code="value")
    found = np.array(np.broadcast_to(right, (*np.broadcast_shapes(triangle.shape[:-2], right.shape[:-2]), *right.shape[-2:])))
    for k in range(looped(count, right.size)):
        at = count - 1 - k if upper else k
        found[..., at, :] /= triangle[..., at, at][..., None]
        rest = slice(0, at) if upper else slice(at + 1, count)
        found[..., rest, :] -= triangle[..., rest, at][..., None] * found[..., at, :][..., None, :]
    return found


def _by_factors(lu: Array, pivots: Array, right: Array, *, adjoint: bool) -> Array:
    """The solution of systems whose factors are given."""
    count = lu.shape[-1]
    order = _order(pivots, count)
    lower = np.tril(lu, -1) + np.eye(count)
    batch = np.broadcast_shapes(lu.shape[:-2], right.shape[:-2])
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    places = np.broadcast_to(order, (*batch, count))[..., None]
    if not adjoint:
        permuted = np.take_along_axis(right, np.broadcast_to(places, right.shape), -2)
        return substituted(np.triu(lu), substituted(lower, permuted, upper=False), upper=True)
    found = substituted(transposed(np.triu(lu)).conj(), right, upper=False)
    found = substituted(transposed(lower).conj(), found, upper=True)
    back = np.argsort(places, axis=-2)
    return np.take_along_axis(found, np.broadcast_to(back, found.shape), -2)


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
def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:  # noqa: N803
    """The solution of systems whose factors are given."""
    return linalg_lu_solve(LU_data, LU_pivots, self)  # type: ignore[no-any-return]


@functional("linalg_lu_solve")
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:  # noqa: N803
    """The solution of systems whose factors are given, on either side."""
    lu, right = LU.array, B.array
    _check_factors("linalg.lu_solve", lu, pivots.array, right)
    if right.shape[-2 if left else -1] != lu.shape[-1]:
        raise fail(f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'}")
    broadcast(np.empty(lu.shape[:-2], bool), np.empty(right.shape[:-2], bool))
    wide = decomposed(lu)
    if left:
        return Tensor(columns(_by_factors(wide, pivots.array, exact(right), adjoint=adjoint).astype(lu.dtype)))
    found = _by_factors(wide, pivots.array, transposed(exact(right)).conj(), adjoint=not adjoint)
    return Tensor(np.ascontiguousarray(transposed(found).conj().astype(lu.dtype)))


# --------------------------------------------------------------------------------------------------- with a count of failures


def _unspecified(what: str) -> Unsupported:
    return Unsupported(
        f"the reference reader does not support {what} of a matrix that has none, in whose place releases leave numbers",
        code="value",
    )


def _singular(where: str, A: Tensor, *, check: bool, what: str) -> Array:  # noqa: N803
    """For each matrix 0.

    Raises:
        Raised: one is singular, and that is to be checked.
        Unsupported: one is singular.
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
    """The inverse, and for each matrix whether there is one."""
    info = _singular("linalg.inv", self, check=check_errors, what="the inverse")
    found = np.linalg.inv(decomposed(self.array)).astype(self.array.dtype)
    return Tensor(columns(found)), Tensor(info)


@functional("linalg_inv_ex", exact=True, since="1.13.0")
def linalg_inv_ex_1_13(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:  # noqa: N803
    """With another name of its argument."""
    return linalg_inv_ex(A, check_errors=check_errors)  # type: ignore[no-any-return]


@functional("linalg_solve_ex")
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:  # noqa: N803
    """The solution, and for each matrix whether there is one."""
    vector = B.array.ndim == 1 or (B.array.ndim == A.array.ndim - 1 and B.array.shape == A.array.shape[:-1])
    if vector and not left:
        raise fail("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    if A.array.dtype != B.array.dtype:
        raise fail(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {words(A.array.dtype)} and B of type {words(B.array.dtype)} instead"
        )
    info = _singular("torch.linalg.solve", A, check=check_errors, what="the solution")
    found = linalg_solve(A, B, left=left).array
    return Tensor(columns(found) if left and not vector else np.ascontiguousarray(found)), Tensor(info)


@functional("linalg_cholesky_ex", exact=True)
def linalg_cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """The triangular root, and for each matrix whether there is one."""
    array = self.array
    square("linalg.cholesky", array)
    triangle = transposed(decomposed(array)).conj() if upper else decomposed(array)
    whole = np.tril(triangle, -1)
    depth = np.arange(array.shape[-1])
    whole = whole + transposed(whole).conj()
    whole[..., depth, depth] = triangle[..., depth, depth].real
    values = np.linalg.eigvalsh(_finite(whole))
    least, most = values.min(axis=-1, initial=math.inf), np.abs(values).max(axis=-1, initial=0.0)
    if (np.abs(least) <= NEAR * _rounding(array.dtype) * max(1, array.shape[-1]) * most).any():
        raise _ambiguous("whether a matrix is positive definite,")
    if (least < 0).any():
        if check_errors:
            raise fail("linalg.cholesky: The factorization could not be completed because the input is not positive-definite.")
        raise _unspecified("the root")
    root = np.linalg.cholesky(whole)
    root = transposed(root).conj() if upper else root
    return Tensor(columns(root.astype(array.dtype))), Tensor(np.zeros(array.shape[:-2], INT32))


# ------------------------------------------------------------------------------------------------------ QR, by reflectors


def reflectors(matrices: Array) -> tuple[Array, Array]:
    """As geqrf: R above the diagonal, below it what the columns are reflected by, and the factor of each reflection."""
    found = matrices.copy()
    rows, wide = found.shape[-2:]
    count = min(rows, wide)
    taus = np.zeros((*found.shape[:-2], count), found.dtype)
    for k in range(looped(count, found.size)):
        first, rest = found[..., k, k].copy(), found[..., k + 1 :, k]
        length = np.sqrt(np.abs(first) ** 2 + (np.abs(rest) ** 2).sum(axis=-1))
        still = ((rest == 0).all(axis=-1)) & (first.imag == 0)
        beta = np.where(still, first.real, -np.copysign(length, first.real))
        with np.errstate(all="ignore"):
            taus[..., k] = np.where(still, 0, (beta - first) / np.where(still, 1, beta))
            rest = np.where(still[..., None], 0, rest / np.where(still, 1, first - beta)[..., None])
        reflection = np.concatenate([np.ones((*found.shape[:-2], 1), found.dtype), rest], axis=-1)[..., None]
        below = found[..., k:, k + 1 :]
        found[..., k:, k + 1 :] = below - taus[..., k].conj()[..., None, None] * reflection * (
            transposed(reflection).conj() @ below
        )
        found[..., k, k] = beta
        found[..., k + 1 :, k] = rest
    return found, taus


def reflected(factors: Array, taus: Array, target: Array, *, adjoint: bool) -> Array:
    """What the product of reflections makes of matrices, from the left."""
    found = target.copy()
    rows = factors.shape[-2]
    count = taus.shape[-1]
    for step in range(looped(count, target.size)):
        k = step if adjoint else count - 1 - step
        below = factors[..., k + 1 :, k]
        reflection = np.concatenate([np.ones((*factors.shape[:-2], 1), factors.dtype), below], axis=-1)[..., None]
        tau = (taus[..., k].conj() if adjoint else taus[..., k])[..., None, None]
        part = found[..., k:rows, :]
        found[..., k:rows, :] = part - tau * reflection * multiplied(transposed(reflection).conj(), part)
    return found


def _one_matrix(*arrays: Array, floats: bool = False) -> None:
    """What operators of TH take: matrices, and factors of reflections, with elements.

    Parameters:
        floats: whether complex numbers are refused.

    Raises:
        Raised: it is something else.
        Unsupported: there are holes in the memory of one, of which something else is read.
    """
    for array in arrays:
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise Unsupported(
                "the reference reader does not support factors with holes in memory, beside which releases read", code="value"
            )
        if floats and array.dtype.kind == "c":
            raise fail(f"not supported on CPUType for {words(array.dtype)}")
    for array in arrays[:1] + arrays[2:]:
        if array.ndim != 2:
            raise fail("invalid argument 1: A should be 2 dimensional")
        if not array.size:
            raise fail("invalid argument 1: A should not be empty")


@functional("geqrf")
def geqrf_1_0(self: Tensor) -> tuple[Tensor, Tensor]:
    """Up to 1.8 of one matrix, with elements."""
    _one_matrix(self.array, floats=True)
    return geqrf(self)  # type: ignore[no-any-return]


@functional("geqrf", since="1.9.0")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """QR as LAPACK leaves it."""
    array = self.array
    floating_matrices("torch.geqrf", array)
    found, taus = reflectors(_finite(decomposed(array)))
    return Tensor(columns(found.astype(array.dtype))), Tensor(taus.astype(array.dtype))


def _product(where: str, factors: Array, taus: Array) -> Tensor:
    """The orthogonal matrix whose reflections are given."""
    if factors.ndim < 2:
        raise fail(f"{where}: input must have at least 2 dimensions.")
    if factors.shape[-2] < factors.shape[-1]:
        raise fail(f"{where}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if not taus.ndim or factors.shape[-1] < taus.shape[-1]:
        raise fail(f"{where}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if factors.ndim - taus.ndim != 1:
        raise fail(
            f"{where}: Expected tau to have one dimension less than input, but got tau.ndim equal to {taus.ndim} and input.ndim is equal to {factors.ndim}"
        )
    if factors.shape[:-2] != taus.shape[:-1]:
        raise fail(f"{where}: Expected batch of tau to be equal to input.shape[:-2]")
    if taus.dtype != factors.dtype:
        raise fail(f"{where}: tau dtype {words(taus.dtype)} does not match input dtype {words(factors.dtype)}")
    floating_matrices(where, factors)
    start = np.broadcast_to(np.eye(*factors.shape[-2:], dtype=exact(factors).dtype), factors.shape)
    found = reflected(decomposed(factors), exact(taus), start, adjoint=False)
    return Tensor(columns(found.astype(factors.dtype)))


@functional("linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:  # noqa: A002
    """The first columns of a product of reflections."""
    return _product("torch.linalg.householder_product", input.array, tau.array)


@functional("orgqr")
def orgqr_1_0(self: Tensor, input2: Tensor) -> Tensor:
    """Up to 1.7 of one matrix, and up to 1.6 columns without a reflection stay as they are."""
    _one_matrix(self.array, input2.array)
    if self.array.shape[-1] != input2.array.size:
        raise Unsupported("the reference reader does not support orgqr of columns without a reflection", code="value")
    return orgqr(self, input2)  # type: ignore[no-any-return]


@functional("orgqr", since="1.8.0")
def orgqr_1_8(self: Tensor, input2: Tensor) -> Tensor:
    """In 1.8 alone factors with holes in memory are read as if there were none."""
    for array in (self.array, input2.array):
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise Unsupported(
                "the reference reader does not support factors with holes in memory, beside which releases read", code="value"
            )
    return orgqr(self, input2)  # type: ignore[no-any-return]


@functional("orgqr", since="1.9.0")
def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    """As :func:`linalg_householder_product`."""
    return _product("orgqr", self.array, input2.array)


@functional("ormqr")
def ormqr_1_0(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Up to 1.8 of one matrix, whatever its other rows are; rows that follow each other in memory are read as columns."""
    _one_matrix(self.array, input2.array, input3.array, floats=True)
    if not self.array.flags.f_contiguous:
        raise Unsupported(
            "the reference reader does not support factors that lie row by row, which releases read as columns", code="value"
        )
    if self.array.shape[0] != input3.array.shape[0 if left else 1] or input2.array.ndim != 1:
        raise Unsupported(
            "the reference reader does not support reflections of other lengths than those of the matrix", code="value"
        )
    return ormqr_1_9(self, input2, input3, left, transpose)  # type: ignore[no-any-return]


@functional("ormqr", since="1.9.0")
def ormqr_1_9(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of reflections times a matrix, on either side."""
    factors, taus, other = self.array, input2.array, input3.array
    where = "torch.ormqr"
    if factors.ndim < 2 or other.ndim < 2:
        raise fail(f"{where}: input must have at least 2 dimensions.")
    side = other.shape[-2 if left else -1]
    if side != factors.shape[-2] or not taus.ndim or side < taus.shape[-1]:
        raise fail(
            f"{where}: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], and not less than tau.shape[-1]"
        )
    if taus.shape[-1] > factors.shape[-1]:
        raise fail(f"{where}: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if factors.shape[:-2] != taus.shape[:-1] or factors.shape[:-2] != other.shape[:-2]:
        raise fail(f"{where}: Expected batch of tau and of other to be equal to input.shape[:-2]")
    if len({factors.dtype, taus.dtype, other.dtype}) > 1:
        raise fail(f"{where}: Expected input, tau and other to have the same dtype")
    floating_matrices(where, factors)
    wide, given, scale = decomposed(factors), exact(other), exact(taus)
    if left:
        found = reflected(wide, scale, given, adjoint=transpose)
    else:
        found = transposed(reflected(wide, scale, transposed(given).conj(), adjoint=not transpose)).conj()
    return Tensor(columns(found.astype(factors.dtype)))


@functional("ormqr", since="2.9.0")
def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """As many reflections as there can be."""
    found = ormqr_1_9(self, input2, input3, left, transpose)
    count = min(input3.array.shape[-2 if left else -1], self.array.shape[-1])
    if input2.array.shape[-1] != count:
        raise fail(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])")
    return found  # type: ignore[no-any-return]
