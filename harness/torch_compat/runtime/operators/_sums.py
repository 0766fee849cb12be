"""Sums of float32 and float64 in torch's summation order, so that results are bit-exact.

As of 1.7 rows are added in cascades, with the lanes of a vector in parallel (eight float32, four float64) if elements are adjacent. Before,
four vectors are added at a time, and rows too short for that one element after the other. Other memory layouts and large arrays are summed
in double precision and rounded once, which is as close as any other order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array

__all__ = ["LANES", "lanes_sum", "mean_of", "ordered_product", "ordered_sum"]

VECTOR = 32  # bytes per vector in the recorded releases
LANES = VECTOR // 4  # float32 lanes per vector
LEVELS = 4
LARGEST = 1 << 14  # maximum number of elements for a Python loop


def mean_of(array: Array, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Array:
    """Like ``numpy.mean``, but the mean of an empty array is NaN without a warning, as in torch."""
    if array.size:
        return np.asarray(array.mean(axis=axis, keepdims=keepdims))
    total = np.asarray(array.sum(axis=axis, keepdims=keepdims))
    return np.full(total.shape, np.nan, total.dtype if total.dtype.kind in "fc" else FLOAT64)


def ordered_sum(array: Array, dims: tuple[int, ...], *, keepdims: bool = False, cascades: bool = True) -> Array | None:
    """The sum of a float32 or float64 array over dimensions; None if the order is not known or the array is too large.

    Parameters:
        cascades: whether to use the order of 1.7 and newer.
    """
    if array.dtype not in (FLOAT32, FLOAT64) or not 0 < array.size <= LARGEST:
        return None
    order = sorted(range(array.ndim), key=lambda at: -array.strides[at])  # dimensions in memory order
    turned = array.transpose(order)
    if not turned.flags.c_contiguous:
        return None
    summed = [place for place, at in enumerate(order) if at in dims]
    if not summed or summed != list(range(summed[0], summed[-1] + 1)):
        return None
    before, count, after = (math.prod(turned.shape[part]) for part in _parts(summed))
    if after == 1:
        result = _inner(turned.reshape(before, count), cascades=cascades)
    else:
        result = np.stack([_outer(part, cascades=cascades) for part in turned.reshape(before, count, after)])
    kept = [at for at in order if at not in dims]
    result = result.reshape([array.shape[at] for at in kept]).transpose([kept.index(at) for at in sorted(kept)])
    shape = [1 if at in dims else size for at, size in enumerate(array.shape) if keepdims or at not in dims]
    return np.array(result, array.dtype, order="C").reshape(shape)  # a copy, even of a single element


def ordered_product(array: Array, dims: tuple[int, ...], *, keepdims: bool = False) -> Array:
    """The product over dimensions with each step rounded to the dtype, so that it overflows and underflows like in releases.

    Elements are multiplied one after the other, or four vectors at a time if they are adjacent and fill four vectors.
    """
    kept = [at for at in range(array.ndim) if at not in dims]
    rows = array.transpose([*kept, *dims]).reshape(*(array.shape[at] for at in kept), math.prod(array.shape[at] for at in dims))
    if not rows.shape[-1] or not rows.size:
        result = np.ones(rows.shape[:-1], array.dtype)
    else:
        wide = 4 * VECTOR // rows.itemsize
        whole = rows.shape[-1] // wide * wide if not kept or array.strides[dims[-1]] == array.itemsize else 0
        parts = [rows[..., whole:]]
        if whole:
            vectors = np.multiply.accumulate(rows[..., :whole].reshape(*rows.shape[:-1], -1, 4, wide // 4), axis=-3)[
                ..., -1, :, :
            ]
            lanes = (vectors[..., 0, :] * vectors[..., 1, :]) * (vectors[..., 2, :] * vectors[..., 3, :])
            parts.insert(0, lanes)
        result = np.multiply.accumulate(np.concatenate(parts, axis=-1), axis=-1)[..., -1]
    return np.array(np.expand_dims(result, dims) if keepdims else result, array.dtype)


def _parts(summed: list[int]) -> tuple[slice, slice, slice]:
    return slice(0, summed[0]), slice(summed[0], summed[-1] + 1), slice(summed[-1] + 1, None)


def _inner(rows: Array, *, cascades: bool) -> Array:
    """Sums of rows with adjacent elements."""
    size = rows.shape[1]
    columns = np.ascontiguousarray(rows.T)
    if not cascades:
        return _by_four(columns)
    wide = VECTOR // rows.itemsize
    if size < wide:
        return _row(columns)
    whole = size // wide * wide
    lanes = _row(columns[:whole].reshape(-1, wide, len(rows)))
    return _one_by_one(np.concatenate([columns[whole:], lanes]))


def _one_by_one(rows: Array) -> Array:
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return np.asarray(total)


def _outer(rows: Array, *, cascades: bool) -> Array:
    """Sums of columns: adds rows, four vectors or elements of a row at a time, and the rest of a row separately."""
    if not cascades:
        return _one_by_one(rows)
    columns = rows.shape[1]
    wide = VECTOR // rows.itemsize
    width = 4 * wide if columns >= wide else 4
    whole = columns // width * width
    parts: list[Any] = []
    if whole:
        parts.append(_cascade(rows[:, :whole]))
    if whole < columns:
        parts.append(_row(rows[:, whole:]))
    return np.concatenate(parts)


def _cascade(rows: Array) -> Array:
    """Add one row after the other, carrying partial sums to the next level at fixed intervals."""
    size = len(rows)
    power = max(4, (math.ceil(math.log2(size)) if size > 1 else 0) // LEVELS)
    step = 1 << power
    levels = [np.zeros(rows.shape[1:], rows.dtype) for _ in range(LEVELS)]
    at = 0
    while at + step <= size:
        for _ in range(step):
            levels[0] = levels[0] + rows[at]
            at += 1
        for level in range(1, LEVELS):
            levels[level] = levels[level] + levels[level - 1]
            levels[level - 1] = np.zeros_like(levels[level - 1])
            if at & ((step - 1) << (level * power)):
                break
    for row in rows[at:]:
        levels[0] = levels[0] + row
    for sums in levels[1:]:
        levels[0] = levels[0] + sums
    return levels[0]


def _row(rows: Array) -> Array:
    """Add every fourth row into four partial sums, then add these."""
    count = len(rows) // 4
    sums = _cascade(rows[: count * 4].reshape(count, 4, *rows.shape[1:])) if count else np.zeros((4, *rows.shape[1:]), rows.dtype)
    total = sums[0]
    for row in (*rows[count * 4 :], *sums[1:]):
        total = total + row
    return np.asarray(total)


def _by_four(columns: Array) -> Array:
    """The order up to 1.6: four vectors at a time, then the rest one after the other."""
    wide = VECTOR // columns.itemsize
    whole = len(columns) // (4 * wide) * 4 * wide
    if not whole:
        return _one_by_one(columns)
    sums = _one_by_one(columns[:whole].reshape(-1, 4, wide, *columns.shape[1:]))
    lanes = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return _one_by_one(np.concatenate([_one_by_one(lanes)[None], columns[whole:]]))


def lanes_sum(array: Array, at: int, *, pairs: bool = True) -> Array:
    """The sum along a dimension in the order of softmax: per lane, keeping the dimension with size one.

    Parameters:
        pairs: whether lanes are added in pairs, as of 1.12, instead of one after the other.
    """
    rows = np.moveaxis(array, at, 0)
    size = len(rows)
    if array.dtype not in {FLOAT32, FLOAT64} or size > LARGEST:
        return np.asarray(array.astype(FLOAT64).sum(axis=at, keepdims=True)).astype(array.dtype)
    count = VECTOR // array.itemsize
    if size < count:
        total = _one_by_one(rows)
    else:
        lanes = rows[:count].copy()
        for start in range(count, size, count):
            more = rows[start : start + count]
            lanes[: len(more)] = lanes[: len(more)] + more
        while pairs and len(lanes) > 1:
            half = len(lanes) // 2
            lanes = lanes[:half] + lanes[half:]
        total = _one_by_one(lanes)
    return np.expand_dims(np.asarray(total), at)
