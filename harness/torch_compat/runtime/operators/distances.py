"""Distances and similarities of rows. Each step is computed in torch's dtype, so that powers overflow and underflow in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    axis,
    fail,
    functional,
    not_implemented,
    wide,
    words,
)
from torch_compat.runtime.operators._operands import common_float
from torch_compat.runtime.operators.norms import NORMS
from torch_compat.runtime.operators.reductions import exact_sum
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PAIRWISE", "rounded", "sum_of_products"]

MANY_ROWS = 25
"""With more rows, distances are computed with a matrix product, unless the call selects another mode."""
AS_PRODUCT, AS_PAIRS = 1, 2  # compute_mode


def rounded(value: Array, kind: np.dtype[Any]) -> Array:
    """A value rounded to a dtype; 16-bit elements are returned as float32, in which the next operator computes."""
    return wide(np.asarray(value).astype(kind))


def sum_of_products(a: Array, b: Array, at: int, *, keepdims: bool = False) -> Array:
    """The sum of products along a dimension; each product has the promoted dtype of its factors."""
    kind = dtypes.result_type((Tensor(a), Tensor(b))).array
    products = (rounded(a, kind) * rounded(b, kind)).astype(kind)
    return wide(exact_sum(products, (axis(at, products.ndim),) if products.ndim else (), keepdims=keepdims))


def _operands(where: str, *tensors: Tensor) -> tuple[np.dtype[Any], list[Array]]:
    """The promoted dtype of the tensors, and their arrays; 16-bit arrays are converted to float32."""
    kind = common_float(where, *tensors)
    return kind, [rounded(tensor.array, kind) for tensor in tensors]


PAIRWISE: dict[str, Callable[..., Tensor]] = {}
"""The implementations of ``pairwise_distance``, keyed by their first release."""


def _pairwise_distances(since: str, norm: Callable[..., Tensor]) -> None:
    """Register ``pairwise_distance`` from one release on, with its norms."""

    def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
        """Norms of differences over the last dimension; integers give floats because ``eps`` is a float."""
        if x1.array.dtype.kind in "iu" and x2.array.dtype.kind in "iu":
            x1, x2 = (Tensor(operand.array.astype(FLOAT32)) for operand in (x1, x2))
        kind, (a, b) = _operands("pairwise_distance", x1, x2)
        gap = rounded(a - b, kind)
        return norm(Tensor((gap + gap.dtype.type(eps)).astype(kind)), float(p), [-1], keepdim)

    PAIRWISE[since] = pairwise_distance
    operator("aten::pairwise_distance", since=since)(pairwise_distance)


for _since, _norm in NORMS.items():
    _pairwise_distances(_since, _norm)


# ------------------------------------------------------------------------------------------------------------- similarities


def _refuse_halves(x1: Tensor, x2: Tensor) -> None:
    """Up to 2.0 the similarity of two float16 tensors is not supported.

    Raises:
        Raised: both tensors are float16.
    """
    if x1.array.dtype == x2.array.dtype == np.float16:
        raise not_implemented("clamp_min_cpu", x1.array.dtype)


def _over_lengths(products: Array, lengths: Array, kind: np.dtype[Any]) -> Tensor:
    """Up to 1.9 norms are computed before broadcasting."""
    if np.broadcast_shapes(products.shape, lengths.shape) != products.shape:
        raise fail(f"output with shape {list(products.shape)} doesn't match the broadcast shape {list(lengths.shape)}")
    return Tensor(np.asarray(products / lengths).astype(kind))


@operator("aten::cosine_similarity")
def cosine_similarity_1_0(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """1.0 divides by the product of two norms, which is at least ``eps``."""
    kind, (a, _) = _operands("cosine_similarity", x1, x2)
    first, second = (NORMS["1.0.0"](operand, 2, [axis(dim, operand.array.ndim)]).array for operand in (x1, x2))
    lengths = _at_least(first * second, a.dtype.type(eps))
    return _over_lengths(sum_of_products(x1.array, x2.array, dim), lengths, kind)


def _at_least(lengths: Array, least: Any) -> Array:
    """The larger of two numbers as C++ computes it: a NaN bound has no effect."""
    return np.where(lengths < least, least, lengths)


@operator("aten::cosine_similarity", since="1.1.0")
def cosine_similarity_1_1(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Up to 1.9 the product of the sums of squares is at least the square of ``eps``."""
    _refuse_halves(x1, x2)
    kind, (a, _) = _operands("cosine_similarity", x1, x2)
    first, second = (_sum_of_squares(operand.array, dim) for operand in (x1, x2))
    lengths = rounded(np.sqrt(_at_least(rounded(first * second, kind), a.dtype.type(eps * eps))), kind)
    return _over_lengths(sum_of_products(x1.array, x2.array, dim), lengths, kind)


def _sum_of_squares(array: Array, dim: int) -> Array:
    """Integers and bools are computed as integers, whose squares wrap around in their dtype."""
    if array.dtype.kind in "iub":
        return np.asarray((array * array).sum(axis=axis(dim, array.ndim), dtype=INT64))
    return sum_of_products(array, array, dim)


@operator("aten::cosine_similarity", since="1.10.0")
def cosine_similarity_1_10(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Up to 1.11 sums are computed after broadcasting."""
    _refuse_halves(x1, x2)
    first, second = _broadcast("cosine_similarity", x1, x2)
    return cosine_similarity_1_1(first, second, dim, eps)


def _broadcast(where: str, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    kind, (a, b) = _operands(where, x1, x2)
    shape = np.broadcast_shapes(a.shape, b.shape)
    return Tensor(np.broadcast_to(a, shape).astype(kind)), Tensor(np.broadcast_to(b, shape).astype(kind))


@operator("aten::cosine_similarity", since="1.12.0")
def cosine_similarity_1_12(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Up to 2.0 rows are divided by the roots of their sums of squares, which are at least the square of ``eps``."""
    _refuse_halves(x1, x2)
    first, second = _broadcast("cosine_similarity", x1, x2)
    at, kind = axis(dim, first.array.ndim), first.array.dtype
    parts = []
    for side in (first, second):
        squares = sum_of_products(side.array, side.array, at, keepdims=True)
        lengths = rounded(np.sqrt(np.maximum(squares, squares.dtype.type(eps * eps))), kind)
        parts.append(rounded(wide(side.array) / lengths, kind).astype(kind))
    return Tensor(sum_of_products(parts[0], parts[1], at).astype(kind))


def _cosine_similarities(since: str, norm: Callable[..., Tensor], *, checked: bool = False) -> None:
    """Register from one release on, with its norms; ``checked`` tells whether a negative or NaN ``eps`` is refused."""

    def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
        """Divide rows by their norms, which are at least ``eps``, each in the dtype of its tensor."""
        if checked and not eps >= 0:
            raise fail(f"eps must be non-negative, got: {eps:g}")
        kind, (a, b) = _operands("cosine_similarity", x1, x2)
        shape = np.broadcast_shapes(a.shape, b.shape)
        at = axis(dim, len(shape))
        parts = []
        for operand in (x1, x2):
            rows = np.broadcast_to(operand.array if operand.array.dtype.kind not in "iub" else operand.array.astype(kind), shape)
            lengths = norm(Tensor(np.asarray(rows)), 2, [at], True).array
            lengths = np.maximum(wide(lengths), wide(np.asarray(eps).astype(lengths.dtype)))
            parts.append(rounded(wide(rows) / lengths, rows.dtype).astype(kind))
        return Tensor(sum_of_products(parts[0], parts[1], at).astype(kind))

    operator("aten::cosine_similarity", since=since)(cosine_similarity)


for _since in ("2.1.0", "2.4.0"):
    _cosine_similarities(_since, NORMS[_since])
_cosine_similarities("2.11.0", NORMS["2.4.0"], checked=True)


# ----------------------------------------------------------------------------------------------------------------- all pairs


def _lengths(gap: Array, p: float) -> Array:
    """The norms of differences, in their dtype."""
    size = np.abs(gap)
    if p == np.inf:
        return np.asarray(size.max(axis=-1))
    if p == 0:
        return np.asarray((size != 0).sum(axis=-1).astype(size.dtype))
    powers = size if p == 1 else size * size if p == 2 else size ** size.dtype.type(p)
    total = np.asarray(powers.astype(FLOAT64).sum(axis=-1)).astype(size.dtype)
    return np.asarray(total if p == 1 else np.sqrt(total) if p == 2 else total.astype(FLOAT64) ** (1 / p))


def _by_product(a: Array, b: Array) -> Array:
    """Distances as roots of ``aa - 2ab + bb``, where a term may overflow although the difference does not, and both squares may underflow.

    In all other cases this is the length of the difference: the rounding of the sum depends on the matrix product.
    """
    result = _lengths(a[..., :, None, :] - b[..., None, :, :], 2)
    first, second = (np.asarray((operand * operand).astype(FLOAT64).sum(axis=-1)).astype(operand.dtype) for operand in (a, b))
    squares = first[..., :, None] + second[..., None, :]
    whole = (a * a.dtype.type(-2)) @ np.swapaxes(b, -1, -2) + squares
    return np.where(np.isfinite(whole), np.where(squares == 0, 0, result), np.sqrt(np.maximum(whole, 0)))


@functional("_euclidean_dist")
def euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances between all pairs of rows; the first may be a single row."""
    if x1.array.ndim == 1 and x2.array.ndim > 1:
        return Tensor(np.squeeze(cdist(Tensor(x1.array[None]), x2, 2.0, AS_PRODUCT).array, -2))
    return cdist(x1, x2, 2.0, AS_PRODUCT)


@functional("cdist")
def cdist_1_0(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """Up to 1.3 every distance is the norm of a difference."""
    return cdist(x1, x2, p, AS_PAIRS)


@functional("cdist", since="1.4.0")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """Distances between all pairs of rows."""
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor.array.ndim < 2:
            raise fail(f"cdist only supports at least 2D tensors, {name} got: {tensor.array.ndim}D")
        if tensor.array.dtype.kind not in "fV":
            raise fail(f"cdist only supports floating-point dtypes, {name} got: {words(tensor.array.dtype)}")
    if not p >= 0:
        raise fail("cdist only supports non-negative p values")
    a, b = (rounded(operand.array, x1.array.dtype) for operand in (x1, x2))
    if a.shape[-1] != b.shape[-1]:
        raise fail(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if a.size and b.size and x1.array.dtype != x2.array.dtype:  # dtypes are not checked if nothing is computed
        raise fail(f"expected scalar type {words(x1.array.dtype)} but found {words(x2.array.dtype)}")
    many = max(a.shape[-2], b.shape[-2]) > MANY_ROWS
    if float(p) == 2 and compute_mode != AS_PAIRS and (many or compute_mode == AS_PRODUCT):
        return Tensor(_by_product(a, b).astype(x1.array.dtype))
    return Tensor(_lengths(a[..., :, None, :] - b[..., None, :, :], float(p)).astype(x1.array.dtype))


@operator("aten::pdist")
def pdist(self: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of rows, each pair once."""
    if self.array.ndim != 2:
        raise fail(f"pdist only supports 2D tensors, got: {self.array.ndim}D")
    if not p >= 0:
        raise fail("pdist only supports non-negative p values")
    rows, columns = np.triu_indices(self.array.shape[0], 1)
    known = wide(self.array)
    return Tensor(_lengths(known[rows] - known[columns], float(p)).astype(self.array.dtype))
