"""Sums of products, paid for in advance, since their cost is not proportional to the sizes of inputs and outputs."""

from __future__ import annotations

import math

import numpy as np

from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, fail

__all__ = ["accumulated", "decomposed", "exact", "looped", "multiplied", "sized", "summed"]

FREE = 1 << 20  # fewer multiplications are not charged
ROUND = 10_000  # the cost of an iteration of a Python loop over arrays, in multiplications
MATRIX = 2  # dimensions of a matrix
STEPS = 64  # up to this number of summands, kernels add products one by one
FEW_STEPS = 4  # up to this number of summands, all matrix-vector kernels of MKL use the same order
SMALL = 1 << 15  # up to this number of products, a Python loop is acceptable
NATIVE = 400  # up to this number of products per matrix of a batch, PyTorch computes them itself
FUSED_ROWS, FUSED_COLUMNS = 4, 16  # results with multiples of these sizes use fused multiply-add as of 2.0
FEW_COLUMNS = frozenset({2, 3})
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


def accumulated(a: Array, b: Array) -> Array:
    """The matrix product, row-major as in every release, in a dtype that is wide enough to add more.

    Small float32 products are summed in the order of the kernel that 2.0 and newer choose for their sizes, measured on an AMD processor
    with AVX2 (other processors may use other kernels):

    * one product after the other, including batches with fewer than :data:`NATIVE` products, which PyTorch computes itself;
    * the same for vectors with up to :data:`FEW_STEPS` elements, except that two vectors of four elements use two partial sums;
    * the same with fused multiply-add, if there are several rows and many columns;
    * if the second matrix is the transpose of a contiguous matrix, as in ``linear``: in several partial sums that are added at the end.

    Raises:
        Raised: the work exceeds the budget.
    """
    if a.dtype == b.dtype == FLOAT32 and 1 in {a.ndim, b.ndim} and 0 < a.shape[-1] <= FEW_STEPS and max(a.size, b.size) <= SMALL:
        return _with_vector(a, b)
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or a.ndim < MATRIX or b.ndim < MATRIX or a.shape[-1] != b.shape[-2]:
        return np.asarray(multiplied(exact(a), exact(b)), order="C")
    steps, columns = b.shape[-2:]
    rows = a.shape[-2] if b.ndim > MATRIX else math.prod(a.shape[:-1])
    if not 0 < steps <= STEPS or a.size * columns > SMALL or b.size * a.shape[-2] > SMALL:
        return np.asarray(multiplied(exact(a), exact(b)), order="C")
    native = a.ndim > MATRIX and b.ndim > MATRIX and rows * steps * columns < NATIVE
    if not native and rows >= FUSED_ROWS and columns >= FUSED_COLUMNS:
        total = _one_by_one(a.astype(FLOAT64), b.astype(FLOAT64))
    else:
        turned = not native and rows > 1 and b.strides[-2] == b.itemsize and b.strides[-1] == steps * b.itemsize
        total = _in_lanes(a, b, _lanes(steps, columns) if turned else 1)
    return np.asarray(total.astype(FLOAT64), order="C")


def _with_vector(a: Array, b: Array) -> Array:
    """The product of a matrix and a small vector, or of two small vectors."""
    two = a.ndim == b.ndim == 1
    total = _in_lanes(np.atleast_2d(a), b.reshape(b.shape[0], -1), FEW_STEPS if two and b.size == FEW_STEPS else 1)
    shape = (*a.shape[:-1], *b.shape[1:])
    return np.asarray(total.astype(FLOAT64).reshape(shape), order="C")


def _one_by_one(a: Array, b: Array) -> Array:
    """The sum of products, rounded to float32 after each addition; products of double-precision arguments are exact."""
    total = (a[..., :, 0, None] * b[..., None, 0, :]).astype(FLOAT32)
    for step in range(1, a.shape[-1]):
        total = (a[..., :, step, None] * b[..., None, step, :] + total).astype(FLOAT32)
    return total


def _lanes(steps: int, columns: int) -> int:
    """The number of partial sums that a kernel uses for products of rows with rows."""
    if columns in FEW_COLUMNS:
        return 8 if steps >= 8 else 1
    return 4 if columns >= 4 and steps % 4 == 0 else 1


def _in_lanes(a: Array, b: Array, lanes: int) -> Array:
    """The sum of products in partial sums that are added by halves, followed by the remaining products one after the other."""
    parts = a[..., :, :, None] * b[..., None, :, :]
    steps, columns = parts.shape[-2:]
    whole = steps // lanes * lanes
    sums = np.add.accumulate(parts[..., :whole, :].reshape(*parts.shape[:-2], whole // lanes, lanes, columns), axis=-3)[
        ..., -1, :, :
    ]
    while lanes > 1:
        lanes //= 2
        sums = sums[..., :lanes, :] + sums[..., lanes:, :]
    total: Array = sums[..., 0, :]
    for step in range(whole, steps):
        total = total + parts[..., step, :]
    return total


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
