"""The order in which MKL sums float32 products of matrices and vectors, revealed by summands that absorb all others.

Measured on an Intel processor with ``MKL_CBWR=AVX2`` and one thread, which is what every reader of this repository sets; MKL promises
these bits only for Intel processors, and others differ in the last places. There are four periods: up to 1.6, 1.7 to 1.13, 2.0 to 2.4,
and 2.5 and newer. In all periods except the second:

* Rows of the result are divided into parts of 48, and as soon as fewer than 96 remain, one part of up to 72 or two halves; all three
  numbers are doubled if the second matrix is transposed. Within a part, rows are computed in blocks of six, and columns in blocks of
  sixteen. Four or more rows by nine or more columns are added
  one product after the other with fused multiply-add. Otherwise even and odd products are summed separately, unfused for one or two rows.
* A row of a matrix times a vector is summed in the eight lanes of vectors, and a column times a number is added to the result.
* As of 2.0, results of two or three columns with fewer than 32 elements, whose second matrix is transposed, use a separate kernel.

From 1.7 to 1.13 products are fused and added one after the other, except for vectors and for a transposed second matrix with few columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "NEWEST",
    "UP_TO_1_6",
    "UP_TO_1_13",
    "added_columns",
    "blocks_of_rows",
    "by_columns",
    "dot_product",
    "is_turned",
    "matrix_product",
    "one_by_one",
]

UP_TO_1_6, UP_TO_1_13, UP_TO_2_4, NEWEST = range(4)
LANES = 8  # float32 numbers in a vector
BLOCK_ROWS, BLOCK_COLUMNS = 6, 16
PART_OF_ROWS, MOST_ROWS = 48, 72
FEW_ROWS, PAIRED_ROWS, PAIRED_COLUMNS = 2, 3, 8
MOST_STEPS, MOST_STEPS_TURNED, MOST_STEPS_FEW, MOST_STEPS_DOT = 256, 96, 64, 64
"""Up to these numbers of summands they are one block. Matrices have two blocks up to twice as many; the blocks of more are not known."""
MOST_STEPS_1_7, TWO_BLOCKS_1_7 = 384, 512
"""The same for one and for two blocks of matrices, from 1.7 to 1.13."""
FEW_COLUMNS, FEW_RESULTS = frozenset({2, 3}), 32
COLUMNS_IN_LANES = 11  # from 1.7 to 1.13, up to this number of columns
SQUARE = 6  # the width of a square matrix with its own kernel
TWO_ROWS, STEPS_OF_TWO_ROWS = 2, 40
ROWS_TOGETHER = 4  # rows of a matrix that are multiplied with a vector at once


def matrix_product(a: Array, b: Array, period: int, *, vector: bool = False) -> Array | None:
    """The product of float32 matrices ``[..., m, k]`` and ``[..., k, n]``; None if the order is not known.

    The result is float64: if there is one summand, it is not rounded, since a fused kernel does not round it before it adds a bias.

    Parameters:
        period: see the module.
        vector: whether ``b`` is a vector.
    """
    rows, steps, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    turned_a, turned_b = is_turned(a), is_turned(b)
    if steps == 1:
        return a.astype(FLOAT64) * b
    if 1 in {rows, columns}:
        if steps > MOST_STEPS_FEW:
            return None
        if by_columns(a, b, period, vector=vector):
            value = added_columns(a, b, period)
        elif columns == 1:
            value = np.swapaxes(_rows_by_vector(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2), period), -1, -2)
        else:
            value = _rows_by_vector(a, b, period)
        return value.astype(FLOAT64)
    if period == UP_TO_1_13:
        if turned_b and not turned_a and rows < columns and 1 < steps <= columns <= COLUMNS_IN_LANES:
            return _in_lanes(a, b).astype(FLOAT64)
        if (turned_b and (turned_a or steps > MOST_STEPS_FEW)) or (rows == TWO_ROWS and steps > STEPS_OF_TWO_ROWS):
            return None
        return _halves(lambda x, y: _chain(x, y, fused=True).astype(FLOAT64), a, b, MOST_STEPS_1_7, TWO_BLOCKS_1_7)
    if turned_b and not turned_a and period >= UP_TO_2_4 and columns in FEW_COLUMNS and rows * columns < FEW_RESULTS:
        return _few_columns(a, b).astype(FLOAT64) if steps <= MOST_STEPS_FEW else None
    if steps == columns == SQUARE and not turned_a and not turned_b:
        return None
    most = MOST_STEPS_TURNED if turned_a else MOST_STEPS
    return _halves(_blocks, a, b, most, 2 * most)


def _halves(product: Callable[[Array, Array], Array], a: Array, b: Array, most: int, most_of_two: int) -> Array | None:
    """The product of one block of summands, or the sum of two blocks; None if there are more."""
    steps = a.shape[-1]
    if steps <= most:
        return product(a, b)
    if steps > most_of_two:
        return None
    half = -(-steps // 2)
    first = product(a[..., :half], b[..., :half, :]).astype(FLOAT32)
    return (first + product(a[..., half:], b[..., half:, :]).astype(FLOAT32)).astype(FLOAT64)


def one_by_one(a: Array, b: Array, start: Array | None = None) -> Array:
    """The product of matrices ``[..., m, k]`` and ``[..., k, n]`` whose products are added one after the other, each rounded."""
    if start is None:
        return _chain(a, b, fused=False)
    for step in range(a.shape[-1]):
        start = start + a[..., :, step, None] * b[..., step, None, :]
    return start


def dot_product(a: Array, b: Array, period: int) -> Array | None:
    """The product of two float32 vectors as float64; None if the order is not known."""
    steps = a.size
    if steps > (MOST_STEPS_DOT if period != UP_TO_1_13 else 2 * LANES):
        return None
    x, y = _vectors(a[None], b[:, None])
    sums: list[Array | None] = [None] * 4
    for at, place in enumerate(_places_of_dot(steps)):
        sums[place] = _vector_added(x, y, at, sums[place])
    known = [np.zeros((1, LANES, 1), FLOAT32) if item is None else item for item in sums]
    total = (known[0] + known[1]) + (known[2] + known[3])
    return (_neighbors(total) if period != UP_TO_1_13 else _upper_half(total)).astype(FLOAT64)[0, 0]


def _places_of_dot(steps: int) -> list[int]:
    """Which of four sums each vector of a dot product is added to."""
    whole, places = steps // LANES, []
    places = [at % 4 for at in range(whole // 4 * 4)]
    places += [at % 2 for at in range((whole % 4) // 2 * 2)]
    return [*places, *(0 for _ in range(len(places), -(-steps // LANES)))]


def is_turned(array: Array) -> bool:
    """Whether a matrix is the transpose of a row-major matrix."""
    item = array.itemsize
    if array.strides[-1] == item and array.strides[-2] >= item * max(1, array.shape[-1]):
        return False
    return bool(array.strides[-2] == item and array.strides[-1] >= item * max(1, array.shape[-2]))


def _fused(a: Array, b: Array, total: Array) -> Array:
    return np.asarray((a.astype(FLOAT64) * b + total).astype(FLOAT32))


# ------------------------------------------------------------------------------------------------------------- matrices


def _chain(a: Array, b: Array, *, fused: bool, steps: Sequence[int] | None = None, start: Array | None = None) -> Array:
    """The sum of products, one after the other; a single product of a fused chain without a start is exact."""
    places = range(a.shape[-1]) if steps is None else steps
    if start is not None:
        for step in places:
            start = _fused(a[..., :, step, None], b[..., step, None, :], start)
        return start
    first, *rest = places
    if fused:
        exact: Array = a[..., :, first, None].astype(FLOAT64) * b[..., first, None, :]
        if not rest and steps is None:
            return exact
        total: Array = exact.astype(FLOAT32)
        for step in rest:
            total = _fused(a[..., :, step, None], b[..., step, None, :], total)
        return total
    total = a[..., :, first, None] * b[..., first, None, :]
    for step in rest:
        total = total + a[..., :, step, None] * b[..., step, None, :]
    return total


def _pairs(a: Array, b: Array, *, fused: bool) -> Array:
    """Even and odd products are summed apart."""
    steps = a.shape[-1]
    even = steps // 2 * 2
    if not even:
        return _chain(a, b, fused=fused)
    total = _chain(a, b, fused=fused, steps=range(0, even, 2)) + _chain(a, b, fused=fused, steps=range(1, even, 2))
    if even == steps:
        return total
    last, other = a[..., :, even, None], b[..., even, None, :]
    return _fused(last, other, total) if fused else total + last * other


def _blocks(a: Array, b: Array) -> Array:
    """Blocks of rows and columns, each in its own order."""
    rows, columns = a.shape[-2], b.shape[-1]
    value = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns), FLOAT64)
    for top, bottom in blocks_of_rows(rows, 2 if is_turned(b) else 1):
        part, place = a[..., top:bottom, :], slice(top, bottom)
        count = bottom - top
        if count <= PAIRED_ROWS:
            value[..., place, :] = _pairs(part, b, fused=count > FEW_ROWS)
            continue
        rest = columns % BLOCK_COLUMNS
        whole = columns - rest if rest <= PAIRED_COLUMNS else columns
        if whole:
            value[..., place, :whole] = _chain(part, b[..., :whole], fused=True)
        if whole < columns:
            value[..., place, whole:] = _pairs(part, b[..., whole:], fused=True)
    return value


def blocks_of_rows(rows: int, factor: int) -> Iterable[tuple[int, int]]:
    """The first row of each block of rows and the row after it; the sizes of the parts are multiplied by a factor."""
    at, part, most = 0, factor * PART_OF_ROWS, factor * MOST_ROWS
    while at < rows:
        left = rows - at
        size = left if left <= most else part if left >= 2 * part else -(-left // 2)
        for top in range(at, at + size, BLOCK_ROWS):
            yield top, min(top + BLOCK_ROWS, at + size)
        at += size


def _halved(vectors: Array, at: int) -> Array:
    """The sum of the lanes along a dimension, upper half to lower half."""
    lanes = np.moveaxis(vectors, at, 0)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return np.asarray(lanes[0])


def _in_lanes(a: Array, b: Array) -> Array:
    """Unfused sums in eight lanes, from 1.7 to 1.13."""
    parts = a[..., :, :, None] * b[..., None, :, :]
    steps = parts.shape[-2]
    sums = parts[..., :LANES, :]
    if steps < LANES:
        sums = np.concatenate([sums, np.zeros((*sums.shape[:-2], LANES - steps, sums.shape[-1]), FLOAT32)], axis=-2)
    elif steps > LANES:
        sums = sums.copy()
        sums[..., : steps - LANES, :] += parts[..., LANES:, :]
    return _halved(sums, -2)


def _few_columns(a: Array, b: Array) -> Array:
    """The kernel for two or three columns: two rows at a time, of which the first is fused."""
    rows, steps = a.shape[-2:]
    if steps < LANES:
        return _chain(a, b, fused=False)
    results = []
    for row in range(rows):
        second, alone = row % 2 == 1, row % 2 == 0 and row + 1 == rows
        results.append(_row_of_few(a[..., row, :], b, fused=not second, alone=alone))
    return np.stack(results, axis=-2)


def _row_of_few(a: Array, b: Array, *, fused: bool, alone: bool) -> Array:
    """One row: two vectors at a time, then a vector, then the rest one by one.

    Parameters:
        fused: whether the two vectors have sums of their own, which are fused.
        alone: whether the row has no second row; then no single vector is added.
    """
    steps = a.shape[-1]
    parts = a[..., :, None] * b
    whole = steps // (2 * LANES) * 2 * LANES
    total: Array | None = None
    if whole:
        vectors = [slice(at, at + LANES) for at in range(0, whole, LANES)]
        sums = [parts[..., entry, :] for entry in vectors[: 2 if fused else 1]]
        for at, item in enumerate(vectors[len(sums) :], len(sums)):
            if fused:
                sums[at % 2] = _fused(a[..., item, None], b[..., item, :], sums[at % 2])
            else:
                sums[0] = sums[0] + parts[..., item, :]
        total = _halved(sums[0] + sums[1] if fused else sums[0], -2)
    at = whole
    if steps - at >= LANES and not alone:
        vector = parts[..., at : at + LANES, :].copy()
        if total is not None:
            vector[..., 0, :] += total
        total = _halved(vector, -2)
        at += LANES
    for step in range(at, steps):
        total = parts[..., step, :] if total is None else total + parts[..., step, :]
    return np.asarray(total)


# -------------------------------------------------------------------------------------------------- matrices and vectors


def _vectors(a: Array, b: Array) -> tuple[Array, Array]:
    """The summands as vectors, filled up with zeros: [..., m, vectors, lanes] and [..., vectors, lanes, n]."""
    steps = a.shape[-1]
    count = -(-steps // LANES)
    x = np.zeros((*a.shape[:-1], count * LANES), FLOAT32)
    y = np.zeros((*b.shape[:-2], count * LANES, b.shape[-1]), FLOAT32)
    x[..., :steps], y[..., :steps, :] = a, b
    return x.reshape(*a.shape[:-1], count, LANES), y.reshape(*b.shape[:-2], count, LANES, b.shape[-1])


def _vector_added(x: Array, y: Array, at: int, total: Array | None, *, fused: bool = True) -> Array:
    """Add the products of one vector to sums in lanes."""
    left, right = x[..., at, :, None], y[..., None, at, :, :]
    if total is None:
        return np.asarray(left * right)
    return _fused(left, right, total) if fused else np.asarray(total + left * right)


def _neighbors(lanes: Array) -> Array:
    """The sum of eight lanes [..., lanes, n], neighbors first."""
    r = [lanes[..., at, :] for at in range(LANES)]
    return np.asarray(((r[0] + r[1]) + (r[4] + r[5])) + ((r[2] + r[3]) + (r[6] + r[7])))


def _upper_half(lanes: Array) -> Array:
    """The sum of eight lanes [..., lanes, n], the upper half first and then neighbors."""
    r = [lanes[..., at, :] + lanes[..., at + 4, :] for at in range(4)]
    return np.asarray((r[0] + r[1]) + (r[2] + r[3]))


def _upper_half_crossed(lanes: Array) -> Array:
    r = [lanes[..., at, :] + lanes[..., at + 4, :] for at in range(4)]
    return np.asarray((r[0] + r[2]) + (r[1] + r[3]))


def _rows_by_vector(a: Array, b: Array, period: int) -> Array:
    """A vector [..., 1, k] times rows of k numbers, which are the columns of ``b``: lanes of eight."""
    together = b.shape[-1] // ROWS_TOGETHER * ROWS_TOGETHER
    if period == NEWEST:
        x, y = _vectors(a, b)
        total = _vector_added(x, y, 0, None)
        for at in range(1, x.shape[-2]):
            total = _vector_added(x, y, at, total)
        return _neighbors(total)
    parts = []
    if period != UP_TO_1_13:
        if together:
            parts.append(_two_vectors(a, b[..., :together], fused=True))
        if together < b.shape[-1]:
            parts.append(_two_vectors(a, b[..., together:], fused=False))
        return np.concatenate(parts, axis=-1)
    if together:
        parts.append(_after_the_first(a, b[..., :together]))
    for column in range(together, b.shape[-1]):
        paired = column - together == 1
        parts.append(_beside_the_first(a, b[..., column : column + 1], four=not paired))
    return np.concatenate(parts, axis=-1)


def _two_vectors(a: Array, b: Array, *, fused: bool) -> Array:
    """Up to 1.6 and from 2.0 to 2.4: two whole vectors at a time; a whole vector that is left is fused only for four rows at once."""
    x, y = _vectors(a, b)
    whole = a.shape[-1] // LANES
    total: Array | None = None
    for at in range(0, whole // 2 * 2, 2):
        pair = _vector_added(x, y, at, _vector_added(x, y, at + 1, None))
        total = pair if total is None else total + pair
    for at in range(whole // 2 * 2, x.shape[-2]):
        total = _vector_added(x, y, at, total, fused=fused or at >= whole)
    return _neighbors(np.asarray(total))


def _after_the_first(a: Array, b: Array) -> Array:
    """From 1.7 to 1.13, four rows at once: the first product, then vectors whose first lane starts with the sum so far."""
    total = a[..., :, 0, None] * b[..., 0, None, :]
    steps = a.shape[-1]
    if steps == 1:
        return np.asarray(total)
    x, y = _vectors(a[..., 1:], b[..., 1:, :])
    pairs = (steps - 1) // (2 * LANES)
    start = np.zeros((*total.shape[:-1], LANES, total.shape[-1]), FLOAT32)
    if pairs:
        even, odd = start.copy(), start
        even[..., 0, :] = total
        for at in range(pairs):
            even, odd = _vector_added(x, y, 2 * at, even), _vector_added(x, y, 2 * at + 1, odd)
        total = _upper_half_crossed(even + odd)
    if 2 * pairs < x.shape[-2]:
        rest = start.copy()
        rest[..., 0, :] = total
        rest = _vector_added(x, y, 2 * pairs, rest)
        if 2 * pairs + 1 < x.shape[-2]:
            rest = _vector_added(x, y, 2 * pairs + 1, rest, fused=False)
        total = _upper_half_crossed(rest)
    return np.asarray(total)


def _beside_the_first(a: Array, b: Array, *, four: bool) -> Array:
    """From 1.7 to 1.13, a row that is left: vectors in two or four sums, to which the first product is added.

    Parameters:
        four: whether four vectors at a time have sums of their own; not for the second of two rows.
    """
    first = a[..., :, 0, None] * b[..., 0, None, :]
    steps = a.shape[-1] - 1
    if not steps:
        return np.asarray(first)
    x, y = _vectors(a[..., 1:], b[..., 1:, :])
    whole, at = steps // LANES, 0
    zero = np.zeros((*first.shape[:-1], LANES, first.shape[-1]), FLOAT32)
    sums = [zero] * 4
    while four and at + 4 <= whole:
        sums = [_vector_added(x, y, at + place, item) for place, item in enumerate(sums)]
        at += 4
    even, odd = sums[0] + sums[2], sums[1] + sums[3]
    while at + 2 <= whole:
        even, odd = _vector_added(x, y, at, even), _vector_added(x, y, at + 1, odd)
        at += 2
    if at < x.shape[-2]:
        even = _vector_added(x, y, at, even)
    if at + 1 < x.shape[-2]:
        odd = _vector_added(x, y, at + 1, odd)
    return np.asarray(first + _upper_half_crossed(even + odd))


def by_columns(a: Array, b: Array, period: int, *, vector: bool) -> bool:
    """Whether a single row or column of results is the sum of columns; if not, each result is a row times a vector.

    Parameters:
        vector: whether ``b`` is a vector; up to 1.6 a transposed matrix is copied to multiply it with a vector.
    """
    rows, columns = a.shape[-2], b.shape[-1]
    if vector:
        return is_turned(a) and period != UP_TO_1_6
    return rows == columns == 1 or (is_turned(a) if columns == 1 else rows == 1 and not is_turned(b))


def added_columns(a: Array, b: Array, period: int, start: Array | None = None) -> Array:
    """A single row or column of results ``[..., m, n]``: multiples of columns are added to it.

    From 1.7 to 1.13 eight columns are added at a time in whole blocks of sixteen results.

    Parameters:
        start: what the products are added to, if there is a single row.
    """
    results = max(a.shape[-2], b.shape[-1])
    whole = results // BLOCK_COLUMNS * BLOCK_COLUMNS
    if period != UP_TO_1_13 or not whole or a.shape[-1] < LANES or results == 1:
        return _chain(a, b, fused=True, start=start)
    if a.shape[-2] > 1:
        return np.swapaxes(added_columns(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2), period), -1, -2)
    first, rest = (None, None) if start is None else (start[..., :whole], start[..., whole:])
    blocks = _eight_columns(a, b[..., :whole], first)
    if whole == results:
        return blocks
    return np.concatenate([blocks, _chain(a, b[..., whole:], fused=True, start=rest)], axis=-1)


def _eight_columns(a: Array, b: Array, start: Array | None) -> Array:
    total = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), 1, b.shape[-1]), FLOAT32) if start is None else start

    def added(at: int, to: Array) -> Array:
        return _fused(a[..., :, at, None], b[..., at, None, :], to)

    def pair(at: int, other: int) -> Array:
        return added(at, a[..., :, other, None] * b[..., other, None, :])

    steps = a.shape[-1] // LANES * LANES
    for at in range(0, steps, LANES):
        last = added(at + 4, added(at + 6, total)) + pair(at + 5, at + 7)
        total = last + (pair(at, at + 2) + pair(at + 1, at + 3))
    for at in range(steps, a.shape[-1]):
        total = added(at, total)
    return total
