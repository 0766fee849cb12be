"""Layer norms of float32 rows with the order and roundings of torch's kernel, so that results are bit-exact.

As of 1.10 (``aten/src/ATen/native/cpu/moments_utils.h``) the mean and the sum of squares of a row are updated element by element in float32,
with eight vector lanes in parallel, in chunks of sixteen vectors that are merged in pairs. The rest of a row is updated separately, and the
lanes are merged at the end. So squares beyond float32 become infinite, and infinity times the zero count of an empty lane gives NaN.

From 1.5 to 1.9 the elements and their squares are summed in eight lanes, which are added one after the other, and up to 1.4 without lanes;
the variance is the mean of squares minus the square of the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torch_compat.runtime.operators._common import FLOAT32, FLOAT64, Array
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.operators._sums import lanes_sum

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LANES", "ROUNDINGS", "Roundings", "fused", "moments_of", "normed_by_squares", "normed_rows", "plain"]

LANES = 8  # lanes of the 32-byte vectors that the recorded releases use
CHUNK = 16  # vectors per chunk
ROUNDS = 64  # the cost of merging two chunks, in multiplications


class Roundings(NamedTuple):
    """The places where a release rounds once instead of twice, because its compiler fused a product and a sum.

    Attributes:
        rest: whether this applies to the elements that do not fill a vector.
        vectors: whether this applies to vectors and to merging lanes.
        centred: whether the mean is subtracted before the element is scaled, instead of being scaled itself.
        skips: whether the first elements of a vector are kept instead of being merged with an empty state.
    """

    rest: bool
    vectors: bool
    centred: bool
    skips: bool


ROUNDINGS: dict[str, Roundings] = {
    "1.10.0": Roundings(rest=False, vectors=False, centred=False, skips=False),
    "2.0.0": Roundings(rest=True, vectors=True, centred=False, skips=False),
    "2.2.0": Roundings(rest=True, vectors=True, centred=True, skips=False),
    "2.8.0": Roundings(rest=False, vectors=True, centred=True, skips=False),
    "2.10.0": Roundings(rest=False, vectors=True, centred=True, skips=True),
}
"""Keyed by the first release; measured with rows of 2 to 2,500 elements in eighteen releases."""


def fused(a: Any, b: Any, c: Any) -> Array:
    """``a * b + c`` rounded once: the product of two float32 values is exact in double precision."""
    return np.asarray(np.asarray(a, FLOAT64) * np.asarray(b, FLOAT64) + np.asarray(c, FLOAT64)).astype(FLOAT32)


def plain(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` rounded twice."""
    return a * b + c


class _Moments(NamedTuple):
    """The number of processed elements of each row, their mean, and the sum of squared deviations."""

    number: int
    mean: Array
    squares: Array


def _seen(moments: _Moments, x: Array, inverse: Array | None, product: Callable[[Array, Array, Array], Array]) -> _Moments:
    """Add an element to each row; ``inverse`` is the reciprocal of their number, used as a factor for vectors."""
    apart = x - moments.mean
    count = moments.number + 1
    mean = moments.mean + apart / np.float32(count) if inverse is None else product(apart, inverse, moments.mean)
    return _Moments(count, mean, product(apart, x - mean, moments.squares))


def _merged(more: _Moments, moments: _Moments, product: Callable[[Array, Array, Array], Array]) -> _Moments:
    count = moments.number + more.number
    share = np.full_like(moments.mean, np.float32(more.number) / np.float32(count) if count else 0)
    apart = more.mean - moments.mean
    squares = moments.squares + product(apart * apart * share, np.full_like(apart, moments.number), more.squares)
    return _Moments(count, product(share, apart, moments.mean), squares)


def _merged_chunks(more: _Moments, moments: _Moments, how: Roundings) -> _Moments:
    """Merge the moments of whole vectors; 2.10 rounds the steps differently and keeps the first chunk unchanged."""
    if not how.skips:
        return _merged(more, moments, fused if how.vectors else plain)
    if not moments.number:
        return more
    count = moments.number + more.number
    share = np.full_like(moments.mean, np.float32(more.number) / np.float32(count))
    apart = more.mean - moments.mean
    squares = fused(apart * apart * share, np.full_like(apart, moments.number), moments.squares + more.squares)
    return _Moments(count, plain(share, apart, moments.mean), squares)


def _chunks(vectors: Array, product: Callable[[Array, Array, Array], Array]) -> list[_Moments]:
    """The moments of each chunk of vectors per lane: all whole chunks at once, then the remaining vectors."""
    rows, count, width = vectors.shape
    whole = count // CHUNK
    results = []
    for part in (
        vectors[:, : whole * CHUNK].reshape(rows, whole, CHUNK, width),
        vectors[:, whole * CHUNK :].reshape(rows, 1, -1, width),
    ):
        nothing = np.zeros((rows, part.shape[1], width), FLOAT32)
        lanes = _Moments(0, nothing, nothing)
        for number in range(part.shape[2] if part.shape[1] else 0):
            x = part[:, :, number]
            lanes = _seen(lanes, x, np.full_like(x, np.float32(1) / np.float32(number + 1)), product)
        if lanes.number:
            results += [_Moments(lanes.number, lanes.mean[:, at], lanes.squares[:, at]) for at in range(part.shape[1])]
    return results


def moments_of(rows: Array, how: Roundings, width: int = LANES) -> tuple[Array, Array]:
    """Mean and variance of each float32 row.

    Chunks of vectors are merged pairwise in a cascade, like sums.

    Parameters:
        width: elements per vector.
    """
    size = rows.shape[1]
    whole = size // width
    vector, single = (fused if how.vectors else plain), (fused if how.rest else plain)
    nothing = np.zeros((len(rows), width), FLOAT32)
    empty = _Moments(0, nothing, nothing)
    chunks = _chunks(rows[:, : whole * width].reshape(len(rows), whole, width), vector)
    levels = [empty] * max(1, (len(chunks) - 1).bit_length())
    looped(len(chunks), ROUNDS * width)
    for chunk, lanes in enumerate(chunks):
        levels[0] = _merged_chunks(lanes, levels[0], how)
        carried, level = chunk + 1, 1
        while level < len(levels) and not carried & 1:
            levels[level], levels[level - 1] = _merged_chunks(levels[level - 1], levels[level], how), empty
            carried, level = carried >> 1, level + 1
    lanes = levels[0]
    for level in range(1, len(levels)):
        lanes = lanes if not levels[level].number and how.skips else _merged_chunks(levels[level], lanes, how)
    moments = _Moments(0, nothing[:, 0], nothing[:, 0])
    for place in range(whole * width, size):
        moments = _seen(moments, rows[:, place], None, single)
    for lane in range(width):
        moments = _merged(_Moments(whole, lanes.mean[:, lane], lanes.squares[:, lane]), moments, vector)
    return moments.mean, moments.squares / np.float32(size)


def normed_rows(
    rows: Array, weight: Array | None, bias: Array | None, eps: float, how: Roundings
) -> tuple[Array, Array, Array] | None:
    """Normalize each row and apply weight and bias; returns the result, the means, and the reciprocals of the standard deviations.

    Parameters:
        rows: a 2-dim float32 array.
        weight, bias: arrays with the size of a row.

    Returns:
        None if the order is not known: for rows with another dtype, and for empty rows.
    """
    if rows.dtype != FLOAT32 or not rows.shape[1]:
        return None
    mean, variance = (moment[:, np.newaxis] for moment in moments_of(rows, how))
    inverse = np.float32(1) / np.sqrt(variance + np.float32(eps))
    result = (rows - mean) * inverse if how.centred else fused(rows, inverse, -inverse * mean)
    if weight is not None and bias is not None:
        result = fused(result, weight, bias)
    elif weight is not None:
        result = result * weight
    elif bias is not None:
        result = result + bias
    return result.astype(FLOAT32), mean, inverse


def normed_by_squares(
    rows: Array, weight: Array | None, bias: Array | None, eps: float, *, lanes: bool
) -> tuple[Array, Array, Array] | None:
    """The same up to 1.9.

    Parameters:
        lanes: whether rows are summed in lanes, as of 1.5.
    """
    count = rows.shape[1]
    if rows.dtype != FLOAT32 or not count:
        return None
    looped(count)
    unit = np.float32(1)
    if lanes:
        mean = lanes_sum(rows, 1, pairs=False)
        squares = rows[:, :LANES] * rows[:, :LANES]
        for at in range(LANES, count, LANES):
            more = rows[:, at : at + LANES]
            squares[:, : more.shape[1]] = fused(more, more, squares[:, : more.shape[1]])
        squares = np.add.accumulate(squares, axis=1, dtype=FLOAT32)[:, -1:]
    else:
        mean, squares = (np.zeros((len(rows), 1), FLOAT32) for _ in range(2))
        for at in range(count):
            item = rows[:, at : at + 1]
            mean, squares = mean + item, fused(item, item, squares)
    mean = mean * (unit / np.float32(count))
    variance = np.maximum(fused(squares, unit / np.float32(count), -(mean * mean)), np.float32(0))
    inverse = unit / np.sqrt(variance + np.float32(eps))
    scale, shift = unit if weight is None else weight, np.float32(0) if bias is None else bias
    return fused(fused(rows, inverse, -inverse * mean), scale, shift), mean, inverse
