"""Sums of products, paid for before they are computed: their cost is not in proportion to the tensors that go in and come out."""

from __future__ import annotations

import math

import numpy as np

from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array, fail

__all__ = ["accumulated", "decomposed", "exact", "looped", "multiplied", "sized", "summed"]

FREE = 1 << 20  # multiplications that are not worth being counted
ROUND = 10_000  # multiplications that take as long as one round of a loop of Python over arrays
MATRIX = 2  # dimensions
STEPS = 64  # products in a sum, up to which kernels take them one by one
FEW_STEPS = 4  # products in a sum with a vector, up to which the kernels of MKL have one order for all
SMALL = 1 << 15  # products that are worth a loop of Python
NATIVE = 400  # products in one matrix of a batch, up to which PyTorch computes them itself
FUSED_ROWS, FUSED_COLUMNS = 4, 16  # of a result whose sums are fused with the products since 2.0
FEW_COLUMNS = frozenset({2, 3})
DECOMPOSITION = 10  # how many times as long as a matrix product a decomposition takes


def exact(array: Array) -> Array:
    """Wide enough to sum many products in."""
    meter.array(array.size)
    if array.dtype == FLOAT32 or array.dtype in HALVES:
        return array.astype(FLOAT64)
    return array.astype(np.complex128) if array.dtype == np.complex64 else array


def multiplied(a: Array, b: Array) -> Array:
    """The matrix product, as ``numpy.matmul``.

    Raises:
        Raised: it is more work than a program may do, or the sizes do not fit, which no release multiplies.
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
    """The product of matrices, row-major as in every release, wide enough for more to be added.

    Small ones of float32 are summed in the order of the kernel that releases from 2.0 on choose for their sizes, as measured on a processor
    of AMD with AVX2; on others they may choose another:

    * one product after the other; so do batches of less than :data:`NATIVE` products, which PyTorch computes itself;
    * a vector of up to :data:`FEW_STEPS` elements likewise, and two of them of four elements in two sums;
    * likewise, but the product is not rounded before it is added, if there are several rows and many columns;
    * where the second matrix is the transpose of a contiguous one, as in ``linear``: in several sums, which are added in the end.

    Raises:
        Raised: it is more work than a program may do.
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
    """The product with a vector, or of two, of few elements."""
    two = a.ndim == b.ndim == 1
    total = _in_lanes(np.atleast_2d(a), b.reshape(b.shape[0], -1), FEW_STEPS if two and b.size == FEW_STEPS else 1)
    shape = (*a.shape[:-1], *b.shape[1:])
    return np.asarray(total.astype(FLOAT64).reshape(shape), order="C")


def _one_by_one(a: Array, b: Array) -> Array:
    """The sum of products, which is rounded to float32 after each; arguments in double precision are multiplied exactly."""
    total = (a[..., :, 0, None] * b[..., None, 0, :]).astype(FLOAT32)
    for step in range(1, a.shape[-1]):
        total = (a[..., :, step, None] * b[..., None, step, :] + total).astype(FLOAT32)
    return total


def _lanes(steps: int, columns: int) -> int:
    """In how many sums a kernel adds the products of rows by rows."""
    if columns in FEW_COLUMNS:
        return 8 if steps >= 8 else 1
    return 4 if columns >= 4 and steps % 4 == 0 else 1


def _in_lanes(a: Array, b: Array, lanes: int) -> Array:
    """The sum of products in as many sums, of which halves are added to each other; then what is left over, one after the other."""
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
    """Sums of products by an equation, as ``numpy.einsum``, which goes through every combination of places.

    Raises:
        Raised: it is more work than a program may do.
        ValueError: the equation does not fit.
    """
    terms, arrow, result = equation.partition("->")
    if not arrow:  # each letter that stands once, in the order of the alphabet
        letters = terms.replace(",", "").replace(".", "")
        result = ("..." if "..." in terms else "") + "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    sizes: dict[str, int] = {}
    rest: dict[int, int] = {}  # of the dimensions that dots stand for, counted from the last
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
    """Matrices, wide enough to be solved, inverted or decomposed, which has been paid for.

    Raises:
        Raised: it is more work than a program may do.
    """
    if array.ndim > 1 and array.size:
        meter.work(DECOMPOSITION * array.size * max(array.shape[-2:]))
    return exact(array)


def looped(count: int, each: int = 0) -> int:
    """The number of rounds of a loop of Python, each of which does so many multiplications, which has been paid for.

    Raises:
        Raised: it is more work than a program may do.
    """
    meter.work(count * (ROUND + each))
    return count


def sized(*sizes: int) -> None:
    """Make sure that an array of these sizes, which an operator is about to make, is not too large.

    Raises:
        Raised: it is.
    """
    meter.array(math.prod(size or 1 for size in sizes))
