"""The order in which MKL sums float64 products of matrices and vectors, measured like that of float32.

The periods are those of :mod:`torch_compat.runtime.operators._matrix_kernels`, and so are most kernels, with vectors of four numbers. A
product is added with fused multiply-add unless stated otherwise.

* Four or more rows by five or more columns are added one product after the other, in blocks of six rows and eight columns. Otherwise even
  and odd products are summed separately, unfused for one or two rows. From 1.7 to 1.13 all are added one product after the other, except
  up to three rows by a transposed matrix, which are rows by vectors, and few columns of a transposed matrix, which are summed in lanes.
* A row of a matrix times a vector is summed in four lanes; up to 1.6 and from 2.0 to 2.4 two vectors at a time, from 1.7 to 1.13 even and
  odd vectors apart, or four sums for rows that are left of four.
* A column times a number is added to the result.

Other orders are not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torch_compat.runtime.operators._common import FLOAT64, Array
from torch_compat.runtime.operators._matrix_kernels import NEWEST, UP_TO_1_13, blocks_of_rows, by_columns, is_turned

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FEW_ROWS", "double_dot_product", "double_product", "fused", "fused_sum"]

LANES = 4
BLOCK_COLUMNS = 2 * LANES
COLUMNS_IN_LANES = 7  # from 1.7 to 1.13, up to this number of columns of a transposed matrix
FEW_ROWS, PAIRED_ROWS = 2, 3
ROWS_TOGETHER = 4  # rows of a matrix that are multiplied with a vector at once
MOST_STEPS, MOST_STEPS_DOT = 64, 31
SPLITTER = float(2**27 + 1)
"""Splits a double into two 26-bit parts (Veltkamp), whose products are exact (Dekker 1971)."""


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error (Knuth 1969)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _parts(a: Array) -> tuple[Array, Array]:
    high = SPLITTER * a
    high = high - (high - a)
    return high, a - high


def fused(a: Array, b: Array, total: Array) -> Array:
    """``a * b + total`` rounded once (Boldo and Melquiond 2008); rounded twice where a step overflows."""
    with np.errstate(all="ignore"):
        plain = a * b + total
        product = a * b
        (a_high, a_low), (b_high, b_low) = _parts(a), _parts(b)
        error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
        high, low = _sum(total, error)
        value, rest = _sum(product, high)
        odd, missed = _sum(low, rest)
        even = odd.view(np.int64) & 1 == 0
        nearer = np.where(even & (missed != 0), np.nextafter(odd, np.where(missed > 0, np.inf, -np.inf)), odd)
        # an inexact sum is rounded to an odd number: the even neighbor is replaced by the one on the side of the error
        result = value + nearer
    return np.asarray(np.where(np.isfinite(result), result, plain))


def double_product(a: Array, b: Array, period: int, *, vector: bool = False) -> Array | None:
    """The product of float64 matrices ``[..., m, k]`` and ``[..., k, n]``; None if the order is not known.

    Parameters:
        vector: whether ``b`` is a vector.
    """
    rows, steps, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if steps > MOST_STEPS:
        return None
    turned_a, turned_b = is_turned(a), is_turned(b)
    if 1 in {rows, columns} and by_columns(a, b, period, vector=vector):
        return fused_sum(a, b)
    if columns == 1:
        return np.swapaxes(_rows_by_vector(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2), period), -1, -2)
    if rows == 1:
        return _rows_by_vector(a, b, period)
    if period == UP_TO_1_13:
        if turned_b and (turned_a or steps > MOST_STEPS_DOT):
            return None
        if turned_b and PAIRED_ROWS < rows < columns <= COLUMNS_IN_LANES and 1 < steps <= columns:
            return _in_lanes(a, b) if steps <= LANES else None
        if turned_b and rows <= PAIRED_ROWS:
            return np.concatenate([_rows_by_vector(a[..., at, None, :], b, period) for at in range(rows)], axis=-2)
        return _chain(a, b, range(steps))
    value = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns), FLOAT64)
    for top, bottom in blocks_of_rows(rows, 2 if turned_b else 1):
        part, place = a[..., top:bottom, :], slice(top, bottom)
        rest = columns % BLOCK_COLUMNS
        whole = 0 if bottom - top <= PAIRED_ROWS else columns - rest if rest <= LANES else columns
        if whole:
            value[..., place, :whole] = _chain(part, b[..., :whole], range(steps))
        if whole < columns:
            value[..., place, whole:] = _pairs(part, b[..., whole:], unfused=bottom - top <= FEW_ROWS)
    return value


def double_dot_product(a: Array, b: Array, period: int) -> Array | None:
    """The product of two float64 vectors; None if the order is not known."""
    steps = a.size
    if steps > (MOST_STEPS if period == NEWEST else MOST_STEPS_DOT):
        return None
    x, y = _vectors(a[None], b[:, None])
    whole = steps // LANES
    if period == UP_TO_1_13:
        sums = _four_sums(x, y, whole // 4 * 4)
        total = (sums[0] + sums[2]) + (sums[1] + sums[3])
        return np.asarray((total[..., 0, :] + total[..., 2, :]) + (total[..., 1, :] + total[..., 3, :]))[0, 0]
    sums = _four_sums(x, y, whole // 4 * 4, whole // 2 * 2)
    return _neighbors((sums[0] + sums[1]) + (sums[2] + sums[3]))[0, 0]


def fused_sum(a: Array, b: Array, start: Array | None = None) -> Array:
    """The product of float64 matrices, whose products are added one after the other, to a matrix if there is one."""
    return _chain(a, b, range(a.shape[-1]), start=start)


def _chain(a: Array, b: Array, steps: Iterable[int], *, unfused: bool = False, start: Array | None = None) -> Array:
    """The sum of products, one after the other."""
    total = start
    for step in steps:
        x, y = a[..., :, step, None], b[..., step, None, :]
        total = x * y if total is None else total + x * y if unfused else fused(x, y, total)
    return np.asarray(total)


def _pairs(a: Array, b: Array, *, unfused: bool) -> Array:
    """Even and odd products are summed apart."""
    steps = a.shape[-1]
    even = steps // 2 * 2
    if not even:
        return _chain(a, b, range(steps))
    total = _chain(a, b, range(0, even, 2), unfused=unfused) + _chain(a, b, range(1, even, 2), unfused=unfused)
    if even == steps:
        return total
    x, y = a[..., :, even, None], b[..., even, None, :]
    return total + x * y if unfused else fused(x, y, total)


def _vectors(a: Array, b: Array) -> tuple[Array, Array]:
    """The summands as vectors, filled up with zeros: [..., m, vectors, lanes] and [..., vectors, lanes, n]."""
    steps = a.shape[-1]
    count = -(-steps // LANES)
    x, y = np.zeros((*a.shape[:-1], count * LANES)), np.zeros((*b.shape[:-2], count * LANES, b.shape[-1]))
    x[..., :steps], y[..., :steps, :] = a, b
    return x.reshape(*a.shape[:-1], count, LANES), y.reshape(*b.shape[:-2], count, LANES, b.shape[-1])


def _added(x: Array, y: Array, at: int, total: Array | None) -> Array:
    left, right = x[..., at, :, None], y[..., None, at, :, :]
    return np.asarray(left * right) if total is None else fused(left, right, total)


def _four_sums(x: Array, y: Array, fours: int, twos: int | None = None) -> list[Array]:
    """Vectors added to four sums: up to ``fours`` to all of them in turn, up to ``twos`` to the first two, and others to the first."""
    sums: list[Array | None] = [None] * 4
    for at in range(x.shape[-2]):
        place = at % 4 if at < fours else at % 2 if twos is None or at < twos else 0
        sums[place] = _added(x, y, at, sums[place])
    return [np.zeros(1) if item is None else item for item in sums]


def _in_lanes(a: Array, b: Array) -> Array:
    """Unfused sums of up to four products, the upper half to the lower half."""
    r = [a[..., :, at, None] * b[..., at, None, :] if at < a.shape[-1] else np.zeros(1) for at in range(LANES)]
    return np.asarray((r[0] + r[2]) + (r[1] + r[3]))


def _neighbors(lanes: Array) -> Array:
    return np.asarray((lanes[..., 0, :] + lanes[..., 1, :]) + (lanes[..., 2, :] + lanes[..., 3, :]))


def _rows_by_vector(a: Array, b: Array, period: int) -> Array:
    """A vector [..., 1, k] times rows of k numbers, which are the columns of ``b``."""
    x, y = _vectors(a, b)
    count, whole = x.shape[-2], a.shape[-1] // LANES
    total: Array | None = None
    if period == NEWEST:
        for at in range(count):
            total = _added(x, y, at, total)
        return _neighbors(np.asarray(total))
    together = b.shape[-1] // ROWS_TOGETHER * ROWS_TOGETHER
    if 0 < together < b.shape[-1]:
        return np.concatenate([_rows_by_vector(a, part, period) for part in (b[..., :together], b[..., together:])], axis=-1)
    if period == UP_TO_1_13:
        sums = _four_sums(x, y, 0 if together else whole // 4 * 4)
        return _neighbors((sums[0] + sums[2]) + (sums[1] + sums[3]))
    for at in range(0, whole // 2 * 2, 2):
        pair = _added(x, y, at, _added(x, y, at + 1, None))
        total = pair if total is None else total + pair
    for at in range(whole // 2 * 2, count):
        total = total + _added(x, y, at, None) if at < whole and not together and total is not None else _added(x, y, at, total)
    return _neighbors(np.asarray(total))
