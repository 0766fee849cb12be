"""Systems of linear equations: triangular systems, least squares, and systems of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat import arrays
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import Array, axis, broadcast, cast, fail, functional, words
from torch_compat.runtime.operators._products import decomposed, exact, multiplied
from torch_compat.runtime.operators.decompositions import floating_matrices, inverse, linalg_solve, square
from torch_compat.runtime.operators.factorizations import columns, substituted, transposed
from torch_compat.runtime.operators.reflections import reflected, reflectors
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
NEAR = 64
"""The distance from a limit, in rounding units of the dtype, within which a singular value is neither above nor below it."""


@functional("linalg_solve_triangular", exact=True)
def linalg_solve_triangular(self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:  # noqa: N803
    """Solve triangular systems, from either side, in the dtype of the triangular matrix."""
    where = "linalg.solve_triangular"
    a, b = self.array, cast(B.array, self.array.dtype)
    floating_matrices(where, a)
    square(where, a)
    if b.ndim < 2:
        raise fail(f"{where}: The input tensor B must have at least 2 dimensions.")
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise fail(
            f"{where}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({list(a.shape)} and {list(b.shape)})"
        )
    broadcast(np.empty(a.shape[:-2], bool), np.empty(b.shape[:-2], bool))
    wide = decomposed(a)
    triangle = np.triu(wide, 1 if unitriangular else 0) if upper else np.tril(wide, -1 if unitriangular else 0)
    if unitriangular:
        triangle = triangle + np.eye(a.shape[-1])
    if left:
        result = substituted(triangle, exact(b), upper=upper)
    else:
        result = transposed(substituted(transposed(triangle), transposed(exact(b)), upper=not upper))
    return Tensor(columns(result.astype(a.dtype)))


# ---------------------------------------------------------------------------------------------------------- least squares


@functional("linalg_lstsq")
def linalg_lstsq(self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """The least-squares solution with the smallest norm; also residuals, ranks and singular values, as far as the driver returns them."""
    where, a, right = "torch.linalg.lstsq", self.array, b.array
    if a.ndim < 2:
        raise fail(f"{where}: input must have at least 2 dimensions.")
    if not right.ndim:
        raise fail(f"{where}: other must have at least 1 dimension.")
    vector = a.ndim - right.ndim == 1
    if not 0 <= a.ndim - right.ndim <= 1:
        raise fail(f"{where}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    if vector and right.ndim > 1 and right.shape != a.shape[:-1]:
        raise Unsupported(
            "the reference reader does not support lstsq if the batch shapes of vectors and matrices differ", code="value"
        )
    right = right[..., None] if vector else right
    if a.shape[-2] != right.shape[-2]:
        raise fail(f"{where}: input.size(-2) should match other.size({-1 if vector else -2})")
    if a.dtype != right.dtype:
        raise fail(
            f"{where}: Expected input and other to have the same dtype, but got input's dtype {words(a.dtype)} and other's dtype {words(right.dtype)}"
        )
    floating_matrices(where, a)
    driver = driver or "gelsy"
    if driver not in DRIVERS:
        raise fail(f"{where}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    batch = broadcast(np.empty(a.shape[:-2], bool), np.empty(right.shape[:-2], bool))
    return _least_squares(
        np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(right, (*batch, *right.shape[-2:])), rcond, driver, vector
    )


def _least_squares(a: Array, right: Array, rcond: float | None, driver: str, vector: bool) -> tuple[Tensor, ...]:
    kind = a.dtype
    real = np.empty(0, kind).real.dtype
    rows, wide = a.shape[-2:]
    whole, given = decomposed(a), exact(right)
    if not (np.isfinite(whole).all() and np.isfinite(given).all()):
        raise Unsupported("the reference reader does not support least squares of infinities or NaN", code="value")
    u, values, vh = np.linalg.svd(whole, full_matrices=False)
    eps = float(np.finfo(kind).eps)
    limit = (eps * max(rows, wide) if rcond is None else rcond) * values.max(axis=-1, initial=0.0, keepdims=True)
    if (
        np.abs(values - limit) <= NEAR * eps * max(rows, wide) * values.max(axis=-1, initial=0.0, keepdims=True)
    ).any() and values.any():
        raise Unsupported("the reference reader does not support least squares if the rank depends on rounding", code="value")
    counts = values > limit
    if driver == "gels" and not counts.all():
        raise Unsupported("the reference reader does not support driver='gels' for rank-deficient matrices", code="value")
    inverted = np.where(counts, 1 / np.where(counts, values, 1), 0)
    result = multiplied(transposed(vh).conj(), inverted[..., None] * multiplied(transposed(u).conj(), given))
    rank = counts.sum(axis=-1)
    nothing = np.zeros(0, real)
    left = nothing
    if rows > wide and driver != "gelsy" and (rank == wide).all():
        left = (np.abs(given - multiplied(whole, result)) ** 2).sum(axis=-2)
    solution = _solution(result.astype(kind), max(rows, wide))
    return (
        Tensor(solution[..., 0] if vector else solution), Tensor(np.asarray(left).astype(real)),
        Tensor(np.zeros(0, np.int64) if driver == "gels" else np.asarray(rank).astype(np.int64)),
        Tensor(np.asarray(values).astype(real) if driver in {"gelsd", "gelss"} else nothing),
    )  # fmt: skip


def _solution(array: Array, rows: int) -> Array:
    """The solution as LAPACK stores it: the first rows of a column-major array with ``rows`` rows, the larger of equations and unknowns."""
    room = np.zeros((*array.shape[:-2], array.shape[-1], rows), array.dtype)
    room[..., : array.shape[-2]] = transposed(array)
    return transposed(room)[..., : array.shape[-2], :]


@functional("lstsq")
def lstsq(self: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Same as gels: the solution, with residuals in the basis of the factors below, and QR (LQ for fewer equations) as in LAPACK."""
    b, a = self.array, A.array
    if a.ndim != 2 or not a.size:
        raise fail(f"A should have 2 dimensions, but has {a.ndim}")
    b = b[:, None] if b.ndim == 1 else b
    if b.ndim != 2 or b.shape[0] != a.shape[0] or not b.size:
        raise fail(
            f"Expected A and b to have same size at dim 0, but A has {a.shape[0]} rows and B has {b.shape[0] if b.ndim else 0} rows"
        )
    if a.dtype != b.dtype:
        raise fail(f"Expected object of scalar type {words(b.dtype)} but got scalar type {words(a.dtype)} for argument #2 'A'")
    if a.dtype.kind != "f":
        raise fail(f'"lstsq" not implemented for {words(a.dtype)}')
    floating_matrices("lstsq", a)
    given, fewer = exact(b), a.shape[0] < a.shape[1]
    factors, taus = reflectors(transposed(decomposed(a)) if fewer else decomposed(a))
    count = min(a.shape)
    corner = np.triu(factors[:count])
    sizes = np.abs(arrays.diagonal(corner))
    if sizes.min() <= NEAR * float(np.finfo(a.dtype).eps) * sizes.max():
        raise Unsupported("the reference reader does not support lstsq of a rank-deficient matrix", code="value")
    if fewer:
        result = np.zeros((a.shape[1], b.shape[1]))
        result[:count] = substituted(transposed(corner), given, upper=False)
        result, factors = reflected(factors, taus, result, adjoint=False), transposed(factors)
    else:
        result = reflected(factors, taus, given, adjoint=True)
        result[:count] = substituted(corner, result[:count], upper=True)
    return Tensor(columns(result.astype(a.dtype))), Tensor(columns(factors.astype(a.dtype)))


# ---------------------------------------------------------------------------------------------------------------- tensors


@functional("linalg_tensorinv")
def linalg_tensorinv(self: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor viewed as a matrix whose rows are the first dimensions."""
    if ind <= 0:
        raise fail("Expected a strictly positive integer for 'ind'")
    first, last = self.array.shape[:ind], self.array.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise fail(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {math.prod(last)} != {math.prod(first)}"
        )
    matrix = self.array.reshape(math.prod(last), math.prod(first))
    return Tensor(columns(inverse(Tensor(matrix)).array).reshape(*last, *first))


@functional("linalg_tensorsolve")
def linalg_tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Solve a system whose matrix is a tensor; its first dimensions are those of ``other``."""
    array, right = self.array, other.array
    if dims is not None:
        moved = [axis(dim, array.ndim) for dim in dims]
        if len(set(moved)) != len(moved):
            raise fail("movedim: repeated dim in `source`")
        array = np.moveaxis(array, moved, range(array.ndim - len(moved), array.ndim))
    if right.ndim > array.ndim:
        raise Unsupported(
            "the reference reader does not support tensorsolve if the right-hand side has more dimensions", code="value"
        )
    shape = array.shape[right.ndim :]
    count = math.prod(shape)
    if count != right.size:
        raise fail(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {count} != {right.size}"
        )
    if array.size != count * count:
        raise fail(f"shape '[{count}, {count}]' is invalid for input of size {array.size}")
    if array.dtype != right.dtype:
        raise fail(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {words(array.dtype)} and B of type {words(right.dtype)} instead"
        )
    tensor: Any = linalg_solve(Tensor(array.reshape(count, count)), Tensor(right.reshape(-1)))
    return Tensor(tensor.array.reshape(shape))
