"""Norms of vectors, and distances computed from norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import as_dtype, promote
from torch_compat.runtime.operators._common import (
    BOOL,
    FLOAT32,
    FLOAT64,
    HALVES,
    Array,
    Scalar,
    any_dtype,
    axes,
    axis,
    broadcast,
    cast,
    common,
    dtypes_finfo,
    fail,
    functional,
    words,
)
from torch_compat.runtime.operators._sums import LANES
from torch_compat.runtime.operators.reductions import Dims, once
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.dtypes import Dtype

FLOATING = 2
LARGEST = 1 << 12  # elements of a row up to which a Python loop over them is acceptable
FOUR = 4
PLAIN, FUSED, IN_LANES, IN_FOURS = range(4)
"""Orders of sums of squares.

Up to 1.4 sums are sequential; as of 1.5 each square and its sum are rounded once; as of 1.12 this is done in eight lanes; as of 2.8
squares are rounded separately in the lanes, and in groups of four of the remaining elements.
"""


def norm_of(
    array: Array,
    p: float,
    dims: tuple[int, ...],
    *,
    keepdims: bool,
    alone: bool,
    own: bool = False,
    exact: bool = False,
    order: int = IN_FOURS,
) -> Array:
    """The p-norm of vectors; powers and their sums are in single precision, so that they overflow and underflow as in torch.

    Parameters:
        alone: whether the norm of one element is its absolute value, as of 2.4; else it is the root of its power, which may overflow.
        own: whether 16-bit elements are raised to powers and summed in their own dtype, as up to 2.0 (bfloat16: up to 1.11).
        exact: whether squares are summed in double precision, as in 1.0 if no dimension is given.
        order: the order in which rows of squares are summed, see :data:`PLAIN`.
    """
    real = _real_type(array.dtype)
    kind = FLOAT64 if exact or real == FLOAT64 else FLOAT32
    size = np.abs(array) if array.dtype.kind == "c" else np.abs(array.astype(kind))
    if p == math.inf:
        return np.asarray(size.max(axis=dims, keepdims=keepdims))
    if p == -math.inf:
        return np.asarray(size.min(axis=dims, keepdims=keepdims))
    if p == 0:
        return np.asarray((size != 0).sum(axis=dims, keepdims=keepdims).astype(FLOAT64))
    if alone and all(size.shape[dim] == 1 for dim in dims):
        return np.asarray(size.sum(axis=dims, keepdims=keepdims))
    if p == 2 and array.dtype == FLOAT32 and not exact and dims == (array.ndim - 1,) and 0 < array.shape[-1] <= LARGEST:
        result = np.sqrt(_squares(array, order))
        return np.expand_dims(result, dims) if keepdims else np.asarray(result)
    powers = size if p == 1 else size * size if p == 2 else size ** kind.type(p)
    if own and real in HALVES:
        total = _added_in_turn(powers.astype(real), dims, keepdims=keepdims).astype(FLOAT64)
    else:
        total = np.asarray(powers.astype(FLOAT64).sum(axis=dims, keepdims=keepdims)).astype(kind).astype(FLOAT64)
    return np.asarray(total if p == 1 else np.sqrt(total) if p == 2 else total ** (1 / p))


def _squares(array: Array, order: int) -> Array:
    """Sums of float32 squares over the last dimension, in the order of the kernels of a release.

    Elements that are not adjacent in memory are summed sequentially; each square and its sum are rounded once.
    """
    columns = np.moveaxis(array, -1, 0)
    beside = array.strides[-1] == array.itemsize
    if order == PLAIN:
        return np.asarray(np.add.accumulate(columns * columns, axis=0)[-1])
    whole = len(columns) // LANES * LANES if order >= IN_LANES and beside else 0
    total: Array = np.zeros(columns.shape[1:], FLOAT32)
    if whole:
        lanes = np.zeros((LANES, *columns.shape[1:]), FLOAT32)
        for at in range(0, whole, LANES):
            more = columns[at : at + LANES]
            lanes = _fused_square(more, lanes) if order == IN_LANES else lanes + more * more
        total = np.add.accumulate(lanes, axis=0)[-1]
    if order == IN_FOURS and beside:
        last = whole + (len(columns) - whole) // FOUR * FOUR
        for column in columns[whole:last]:
            total = total + column * column
        whole = last
    for column in columns[whole:]:
        total = _fused_square(column, total)
    return total


def _fused_square(array: Array, total: Array) -> Array:
    wider = array.astype(FLOAT64)
    return (wider * wider + total).astype(FLOAT32)


def _added_in_turn(array: Array, dims: tuple[int, ...], *, keepdims: bool) -> Array:
    """Sum over dimensions sequentially, and round each partial sum to the dtype."""
    kept = [at for at in range(array.ndim) if at not in dims]
    rows = array.transpose([*kept, *dims]).reshape(*(array.shape[at] for at in kept), -1)
    total = np.add.accumulate(rows, axis=-1)[..., -1] if rows.shape[-1] else np.zeros(rows.shape[:-1], array.dtype)
    return np.expand_dims(total, dims) if keepdims else np.asarray(total)


def _real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return FLOAT32 if dtype == np.complex64 else FLOAT64 if dtype.kind == "c" else dtype


class _Era(NamedTuple):
    """How releases compute norms, from a release on.

    Attributes:
        alone: whether the norm of one element is its absolute value.
        refuses: whether the maximum and the minimum of no elements are refused; else they are 0.
        own: 16-bit dtypes whose elements are raised to powers and summed in that dtype.
        order: the order in which squares are summed.
    """

    alone: bool = False
    refuses: bool = True
    own: tuple[Any, ...] = ()
    order: int = IN_LANES


PLAINLY = _Era(refuses=False, own=HALVES, order=PLAIN)
FIRST = PLAINLY._replace(order=FUSED)
ERAS = {
    "1.8.0": FIRST, "1.12.0": _Era(refuses=False, own=HALVES[:1]), "2.0.0": _Era(own=HALVES[:1]), "2.1.0": _Era(), "2.4.0": _Era(alone=True),
    "2.8.0": _Era(alone=True, order=IN_FOURS),
}  # fmt: skip


@functional("norm")
def norm_1_0(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """1.0 sums squares in double precision if no dimension is given, or for a 0-dim tensor."""
    power = 2 if p is None else p
    return _norm(self, power, dim, keepdim, dtype, PLAINLY, exact=(dim is None or not self.array.ndim) and float(power.real) == 2)


@functional("norm", since="1.1.0")
def norm_1_1(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Up to 1.6 a dimension may occur twice, and up to 1.7 the maximum norm of zeros is the smallest normal number.

    1.6 squares complex numbers without taking absolute values, and takes the root of the sum.
    """
    return _norm_1_1(self, p, dim, keepdim, dtype, PLAINLY)


def _norm_1_1(self: Tensor, p: Scalar | None, dim: Dims, keepdim: bool, dtype: Any, era: _Era) -> Tensor:
    dims, array = once(dim, self.array.ndim), cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind == "c" and (p is None or float(p.real) == 2):
        total = (array * array).astype(np.complex128).sum(axis=axes(dims, array.ndim), keepdims=keepdim)
        return Tensor(np.asarray(np.sqrt(total)).astype(array.dtype))
    return _of_own_type(_norm(self, p, dims, keepdim, dtype, era), array.dtype, p, some=bool(array.size))


@functional("norm", since="1.5.0")
def norm_1_5(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """As of 1.5 each square and its sum are rounded once."""
    return _norm_1_1(self, p, dim, keepdim, dtype, FIRST)


def _of_own_type(tensor: Tensor, dtype: np.dtype[Any], p: Scalar | None, *, some: bool) -> Tensor:
    """Up to 1.7 the norm of complex numbers is complex, with an imaginary part of 0."""
    tensor = _above_zero(tensor) if some and p is not None and float(p.real) == math.inf else tensor
    return Tensor(tensor.array.astype(dtype)) if dtype.kind == "c" else tensor


def _above_zero(tensor: Tensor) -> Tensor:
    array = tensor.array
    least = np.asarray(dtypes_finfo(array.dtype).smallest_normal, array.dtype)
    return Tensor(np.asarray(np.where(array < least, least, array)))


@functional("norm", since="1.7.0")
def norm_1_7(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """In 1.7 the maximum norm of zeros is the smallest normal number, and the 2-norm of complex numbers is refused."""
    kind = any_dtype(dtype, self.array.dtype)
    if kind.kind == "c" and (p is None or float(p.real) == 2):
        raise fail("norm with p=2 not supported for complex tensors")
    return _of_own_type(_norm(self, p, dim, keepdim, dtype, FIRST), kind, p, some=bool(self.array.size))


def _norm(self: Tensor, p: Scalar | None, dim: Dims, keepdim: bool, dtype: Any, era: _Era, *, exact: bool = False) -> Tensor:
    array = cast(self.array, any_dtype(dtype, self.array.dtype))
    if array.dtype.kind in "iub":
        raise fail(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {words(array.dtype)}")
    power, dims = 2.0 if p is None else float(p.real), axes(dim, array.ndim)
    if (power < 0 or power == math.inf) and not all(array.shape[item] for item in dims):
        if era.refuses:
            raise fail(
                f"linalg.vector_norm cannot compute the {power:g} norm on an empty tensor because the operation does not have an identity"
            )
        return Tensor(np.zeros_like(array.sum(axis=dims, keepdims=keepdim), _real_type(array.dtype)))
    named = not array.ndim and dim is not None and dim != []  # a 0-dim tensor with a dimension is no row of one element
    result = norm_of(
        array,
        power,
        dims,
        keepdims=keepdim,
        alone=era.alone and not named,
        own=array.dtype in era.own,
        exact=exact,
        order=era.order,
    )
    return Tensor(result.astype(_real_type(array.dtype)))


@functional("frobenius_norm")
def frobenius_norm_1_0(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """1.0 computes the norm over one dimension, or over all dimensions if none is given, as in :func:`norm_1_0`."""
    if dim is None or isinstance(dim, int) or len(dim) == 1:
        return norm_1_0(self, 2, dim, keepdim)
    _at_most_two(dim)
    return frobenius_norm_1_7(self, once(dim, self.array.ndim), keepdim)


@functional("frobenius_norm", since="1.1.0")
def frobenius_norm_1_1(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Up to 1.6 a dimension may occur twice, and complex numbers have real norms only for lists that do not have exactly one dimension."""
    if self.array.dtype.kind == "c" and (dim is None or isinstance(dim, int) or len(dim) == 1):
        return norm_1_1(self, 2, dim, keepdim)
    _at_most_two(dim)
    return frobenius_norm_1_7(self, once(dim, self.array.ndim), keepdim)


def _at_most_two(dim: Dims) -> None:
    if dim.__class__ is list and len(dim) > 2:
        raise fail(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")


@functional("frobenius_norm", since="1.7.0")
def frobenius_norm_1_7(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The 2-norm, including complex numbers, up to 1.7."""
    return _norm(self, 2, dim, keepdim, None, FIRST)


@functional("dist", out=False)
def dist_1_0(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """Up to 1.4 the maximum norm of zeros is 0."""
    return _norm(_gap(self, other), p, None, False, None, FIRST)


@functional("dist", out=False, since="1.5.0")
def dist_1_5(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """Up to 1.7 the norm of the difference is computed as in :func:`norm_1_7`."""
    result = dist_1_0(self, other, p)
    kind = common(self, other)[0].dtype
    if kind.kind == "c" and float(p.real) == 2:
        raise fail("norm with p=2 not supported for complex tensors")
    return _of_own_type(result, kind, p, some=bool(self.array.size and other.array.size))


NAMED_IN_NORM = Release("2.0.0")
"""As of this release, ``norm`` refuses the dtypes that ``linalg_vector_norm`` refuses."""


def _refuse_narrowing(own: Dtype, named: Any) -> None:
    """Refuse a given dtype that cannot hold the elements.

    Raises:
        Raised: the dtype cannot hold the elements.
    """
    dtype = as_dtype(named)
    if dtype is None or own.category < FLOATING:
        return
    if dtype.category < FLOATING:
        raise fail(f"linalg.vector_norm: dtype should be floating point or complex, but got {words(dtype.array)}")
    if dtype.category < own.category:
        raise fail(f"linalg.vector_norm: dtype should be complex for complex inputs, but got {words(dtype.array)}")
    if promote(own, dtype) is not dtype:
        raise fail(
            f"linalg.vector_norm: the dtype of the input ({words(own.array)}) should be convertible without narrowing to the specified dtype "
            f"({words(dtype.array)})"
        )


NORMS: dict[str, Callable[..., Tensor]] = {"1.0.0": norm_1_0, "1.1.0": norm_1_1}
"""The implementations of ``norm`` for real numbers, keyed by their first release."""


def _norms(since: str, era: _Era) -> None:
    """Register the norms of a release."""

    def norm(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """The norm of vectors, over all dimensions if none is given."""
        if Release(since) >= NAMED_IN_NORM:
            _refuse_narrowing(self.dtype, dtype)
        return _norm(self, p, dim, keepdim, dtype, era)

    def linalg_vector_norm(
        self: Tensor,
        ord: Scalar = 2,  # noqa: A002
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Same as ``norm``."""
        _refuse_narrowing(self.dtype, dtype)
        return _norm(self, ord, dim, keepdim, dtype, era)

    def frobenius_norm(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """The 2-norm."""
        return _norm(self, 2, dim, keepdim, None, era)

    def dist(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
        """The norm of the difference."""
        return _norm(_gap(self, other), p, None, False, None, era)

    NORMS[since] = norm
    functional("norm", since=since)(norm)
    functional("dist", out=False, since=since)(dist)
    if since != "1.8.0":  # unchanged in 1.8
        functional("linalg_vector_norm", since=since)(linalg_vector_norm)
    if since not in {"1.8.0", "2.0.0"}:
        functional("frobenius_norm", since=since)(frobenius_norm)


@functional("linalg_vector_norm")
def linalg_vector_norm_1_9(
    self: Tensor,
    ord: Scalar = 2,  # noqa: A002
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Up to 1.11 16-bit elements are raised to powers and summed in their own dtype."""
    return _norm(self, ord, dim, keepdim, dtype, FIRST._replace(refuses=True))


for _since, _era in ERAS.items():
    _norms(_since, _era)


def _gap(self: Tensor, other: Tensor) -> Tensor:
    if BOOL in {self.array.dtype, other.array.dtype}:
        raise fail("Subtraction, the `-` operator, with a bool tensor is not supported.")
    x, y = common(self, other)
    broadcast(x, y)
    return Tensor(x - y)


@functional("renorm", inplace=True)
def renorm_1_0(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar) -> Tensor:
    """Up to 2.3 norms are computed as in :func:`norm_1_8`."""
    return _renorm(self, p, dim, maxnorm, alone=False)


@functional("renorm", inplace=True, since="2.4.0")
def renorm(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar) -> Tensor:
    """Scale slices whose norm is above a limit down to that limit."""
    return _renorm(self, p, dim, maxnorm, alone=True)


def _renorm(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar, *, alone: bool) -> Tensor:
    array = self.array
    at = axis(dim, array.ndim)
    if not float(p.real) > 0:
        raise fail("renorm: non-positive-norm not supported")
    if array.ndim < 2:
        raise fail(f"renorm: input needs at least 2 dimensions, got {array.ndim} dimensions")
    others = tuple(index for index in range(array.ndim) if index != at)
    size = norm_of(array, float(p.real), others, keepdims=True, alone=alone)
    limit = float(maxnorm.real)
    if not limit >= 0:
        raise fail(f"renorm: expected maxnorm to be >= 0 but got {limit:g}")
    factor = np.where(size > limit, limit / (size + 1e-7), 1.0)
    return Tensor((array * factor.astype(_real_type(array.dtype))).astype(array.dtype))


@operator("aten::native_norm")
def native_norm(self: Tensor, p: Scalar | None = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Refused: only sparse tensors have this norm."""
    del self, p, dim, keepdim, dtype
    raise fail("Could not run 'aten::native_norm' with arguments from the 'CPU' backend.")
