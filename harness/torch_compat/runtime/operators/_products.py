"""Sums of products, paid for in advance, since their cost is not proportional to the sizes of inputs and outputs."""

from __future__ import annotations

import math

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, fail
from torch_compat.runtime.operators._double_kernels import FEW_ROWS, double_dot_product, double_product, fused_sum
from torch_compat.runtime.operators._matrix_kernels import (
    UP_TO_1_13,
    added_columns,
    by_columns,
    dot_product,
    is_turned,
    matrix_product,
    one_by_one,
)

__all__ = ["UNFOLDED", "accumulated", "added_to", "decomposed", "exact", "looped", "multiplied", "sized", "summed"]

FREE = 1 << 20  # fewer multiplications are not charged
ROUND = 10_000  # the cost of an iteration of a Python loop over arrays, in multiplications
ORDERED = frozenset({FLOAT32, FLOAT64})
MOST_ADDED = 64  # up to this number of summands, the order of a single row or column is known
MATRIX, BATCH = 2, 3  # dimensions of a matrix and of a batch of matrices
NATIVE = 400  # up to this number of products per matrix of a batch, PyTorch computes them itself
MOST_PRODUCTS = 1 << 22  # up to this number of products, they are added in the order of a release
UNFOLDED = Release("2.1.0")  # the first release that does not copy a batch to multiply it as one matrix
DECOMPOSITION = 10  # the cost of a decomposition relative to a matrix product


def exact(array: Array) -> Array:
    """Convert an array to a dtype that is wide enough for sums of many products."""
    meter.array(array.size)
    if array.dtype == FLOAT32 or array.dtype in HALVES:
        return array.astype(FLOAT64)
    return array.astype(np.complex128) if array.dtype == np.complex64 else array


def multiplied(a: Array, b: Array) -> Array:
    """The matrix product, like ``numpy.matmul``.

    Raises:
        Raised: the work exceeds the budget, or the sizes do not match.
    """
    if a.ndim and b.ndim and a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise fail(f"mat1 and mat2 shapes cannot be multiplied ({list(a.shape)} and {list(b.shape)})")
    if a.ndim and b.ndim and (a.size * b.size > FREE or not a.shape[-1]):
        rows = a.shape[-2] if a.ndim > 1 else 1
        columns = b.shape[-1] if b.ndim > 1 else 1
        batch = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
        sized(batch, rows, columns)
        meter.work(batch * rows * columns * a.shape[-1])
    return np.asarray(np.matmul(a, b))


def accumulated(a: Array, b: Array, *, folds: bool = False) -> Array:
    """The matrix product, row-major as in every release, in a dtype that is wide enough to add more.

    Products of float32 and float64 are summed in the order of the release (:mod:`torch_compat.runtime.operators._matrix_kernels`,
    :mod:`torch_compat.runtime.operators._double_kernels`), where it is known:
    PyTorch itself adds batches with fewer than :data:`NATIVE` products one after the other, and MKL computes the others. A batch of
    matrices and a single matrix or vector are one product of matrices, except as of 2.1 if the batch would have to be copied for this.

    Parameters:
        folds: whether the operand that is not a batch requires gradients; then 2.1 copies the batch.

    Raises:
        Raised: the work exceeds the budget.
    """
    result = _ordered(a, b, folds=folds) if a.dtype == b.dtype and a.dtype in ORDERED and a.size and b.size else None
    return np.asarray(multiplied(exact(a), exact(b)) if result is None else result, order="C")


def added_to(base: Array, a: Array, b: Array) -> Array | None:
    """``base + a @ b``, if the kernel of the release starts with ``base``; None if it adds the rounded product, or is not known.

    Kernels that add columns to a single row or column of results start with it, and so do PyTorch's own for small batches up to 2.0, and
    all kernels for a single summand.
    """
    if a.ndim == b.ndim == BATCH and base.dtype == a.dtype == b.dtype and a.dtype in ORDERED and libraries.release < UNFOLDED:
        meter.work(a.size * b.shape[-1])
        return one_by_one(a, b, base) if a.shape[1] * a.shape[2] * b.shape[2] < NATIVE else None
    if not (base.dtype == a.dtype == b.dtype and a.dtype in ORDERED and a.ndim == MATRIX and b.ndim and a.size and b.size):
        return None
    y = b if b.ndim > 1 else b[:, None]
    if base.shape != (*a.shape[:1], *b.shape[1:]) or a.shape[1] != b.shape[0] or a.shape[1] > MOST_ADDED:
        return None
    start, double = base.reshape(a.shape[0], y.shape[1]), a.dtype == FLOAT64
    if a.shape[1] == 1:
        value = fused_sum(a, y, start) if double else None
    elif double and libraries.period == UP_TO_1_13 and a.shape[0] == FEW_ROWS < y.shape[1] + 1 and not is_turned(y):
        value = fused_sum(a, y, start)
    elif 1 not in start.shape or not by_columns(a, y, libraries.period, vector=b.ndim == 1):
        return None
    elif double:
        value = fused_sum(a, y, start)
    elif start.shape[0] == 1:
        value = added_columns(a, y, libraries.period, start)
    else:
        value = added_columns(y.T, a.T, libraries.period, start.T).T
    return None if value is None else value.reshape(base.shape)


def _ordered(a: Array, b: Array, *, folds: bool) -> Array | None:
    """The product of float32 or float64 arrays in the order of the release; None if it is not known, or the sizes do not match."""
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        return None
    period = libraries.period
    double = a.dtype == FLOAT64
    if a.ndim == b.ndim == 1:
        return double_dot_product(a, b, period) if double else dot_product(a, b, period)
    x, y = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ())
    steps = a.shape[-1]
    if math.prod(shape) * steps > MOST_PRODUCTS:
        return None
    meter.work(math.prod(shape) * steps)
    if MATRIX in {x.ndim, y.ndim} and x.ndim + y.ndim > 2 * MATRIX:
        folds = folds or libraries.release < UNFOLDED
        if x.ndim > MATRIX and (folds or _is_matrix(x)):
            x = np.ascontiguousarray(x).reshape(-1, steps)
        elif folds:  # the transposed product of the transposed batch
            rows = np.ascontiguousarray(np.swapaxes(y, -1, -2)).reshape(-1, steps)
            result = double_product(rows, x.T, period) if double else matrix_product(rows, x.T, period)
            if result is None:
                return None
            return np.swapaxes(result.reshape(*y.shape[:-2], y.shape[-1], x.shape[0]), -1, -2).reshape(shape)
    if max(x.ndim, y.ndim) > MATRIX and x.shape[-2] * steps * y.shape[-1] < NATIVE:
        return one_by_one(x, y).astype(FLOAT64).reshape(shape)
    result = double_product(x, y, period, vector=b.ndim == 1) if double else matrix_product(x, y, period, vector=b.ndim == 1)
    return None if result is None else result.reshape(shape)


def _is_matrix(batch: Array) -> bool:
    """Whether the rows of a batch of matrices are the rows of one matrix, without a copy."""
    strides, shape = batch.strides, batch.shape
    return all(strides[at] == strides[at + 1] * shape[at + 1] for at in range(batch.ndim - 2))


def summed(equation: str, *arrays: Array) -> Array:
    """Sums of products given by an equation, like ``numpy.einsum``, which visits every combination of indices.

    Raises:
        Raised: the work exceeds the budget.
        ValueError: the equation does not match the arrays.
    """
    terms, arrow, result = equation.partition("->")
    if not arrow:  # all letters that occur once, in alphabetical order
        letters = terms.replace(",", "").replace(".", "")
        result = ("..." if "..." in terms else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    sizes: dict[str, int] = {}
    rest: dict[int, int] = {}  # sizes of the ellipsis dimensions, counted from the last
    for term, array in zip(terms.split(","), arrays, strict=False):
        before, dots, after = term.partition("...")
        for name, size in zip(before, array.shape, strict=False):
            sizes[name] = max(size, sizes.get(name, 1))
        for name, size in zip(reversed(after), reversed(array.shape), strict=False):
            sizes[name] = max(size, sizes.get(name, 1))
        if dots:
            inner = array.shape[len(before) : array.ndim - len(after)]
            for place, size in enumerate(reversed(inner)):
                rest[place] = max(size, rest.get(place, 1))
    around = math.prod(rest.values())
    if result:
        sized(*(sizes.get(name, 1) for name in result if name != "."), around if "..." in result else 1)
    meter.work(math.prod(sizes.values()) * around * max(1, len(arrays) - 1))
    return np.asarray(np.einsum(equation, *arrays))


def decomposed(array: Array) -> Array:
    """Convert matrices to a dtype for solving, inverting or decomposing, and pay for this.

    Raises:
        Raised: the work exceeds the budget.
    """
    if array.ndim > 1 and array.size:
        meter.work(DECOMPOSITION * array.size * max(array.shape[-2:]))
    return exact(array)


def looped(count: int, each: int = 0) -> int:
    """Pay for ``count`` iterations of a Python loop with ``each`` multiplications per iteration; returns ``count``.

    Raises:
        Raised: the work exceeds the budget.
    """
    meter.work(count * (ROUND + each))
    return count


def sized(*sizes: int) -> None:
    """Check that an array with these sizes can be created.

    Raises:
        Raised: the array would be too large.
    """
    meter.array(math.prod(size or 1 for size in sizes))
