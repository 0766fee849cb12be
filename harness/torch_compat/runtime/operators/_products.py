"""Sums of products, paid for before they are computed: their cost is not in proportion to the tensors that go in and come out."""

from __future__ import annotations

import math

import numpy as np

from torch_compat.runtime.limits import meter
from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, HALVES, Array

__all__ = ["accumulated", "decomposed", "exact", "looped", "multiplied", "sized", "summed"]

FREE = 1 << 20  # multiplications that are not worth being counted
ROUND = 10_000  # multiplications that take as long as one round of a loop of Python over arrays
MATRIX = 2  # dimensions
STEPS = 32  # products in a sum, up to which kernels take them one by one
SMALL = 1 << 12  # products that are worth a loop of Python
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
        Raised: it is more work than a program may do.
    """
    if a.ndim and b.ndim and (a.size * b.size > FREE or not a.shape[-1]):
        rows = a.shape[-2] if a.ndim > 1 else 1
        columns = b.shape[-1] if b.ndim > 1 else 1
        batch = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
        sized(batch, rows, columns)
        meter.work(batch * rows * columns * a.shape[-1])
    return np.asarray(np.matmul(a, b))


def accumulated(a: Array, b: Array) -> Array:
    """The product of matrices, row-major as in every release, wide enough for more to be added. Small ones of float32 as a kernel of the
    recorded releases computes them: one product after the other is added to the sum and both are rounded at once.

    Raises:
        Raised: it is more work than a program may do.
    """
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or a.ndim < MATRIX or b.ndim < MATRIX or a.shape[-1] != b.shape[-2]:
        return np.asarray(multiplied(exact(a), exact(b)), order="C")
    steps = a.shape[-1]
    if not 0 < steps <= STEPS or a.size * b.shape[-1] > SMALL or b.size * a.shape[-2] > SMALL:
        return np.asarray(multiplied(exact(a), exact(b)), order="C")
    parts = a.astype(FLOAT64)[..., :, :, None] * b.astype(FLOAT64)[..., None, :, :]
    total = parts[..., 0, :].astype(FLOAT32)
    for step in range(1, steps):
        total = (parts[..., step, :] + total).astype(FLOAT32)
    return np.asarray(total.astype(FLOAT64), order="C")


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
