"""Reductions into indexed slices (``index_reduce``) and of segments of a dimension (``segment_reduce``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_compat.arrays import counted
from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import FLOAT64, Array, Scalar, axis, fail, functional, wide, words
from torch_compat.runtime.operators._products import looped
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

__all__: list[str] = []


def _start(reduce: str, dtype: np.dtype[Any]) -> Any:
    """The initial value of a reduction."""
    if reduce == "prod":
        return 1
    if reduce in {"mean", "sum"}:
        return 0
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
    return -np.inf if reduce == "amax" else np.inf


_UFUNCS: dict[str, Any] = {"prod": np.multiply, "mean": np.add, "sum": np.add, "amax": np.maximum, "amin": np.minimum}


def _together(reduce: str, a: Array, b: Array) -> Array:
    """Reduce two numbers; of zeros with different signs the first is kept."""
    if reduce in {"amax", "amin"}:
        return np.asarray(np.where(np.isnan(b) | ((a < b) if reduce == "amax" else (b < a)), b, a))
    return np.asarray(_UFUNCS[reduce](a, b))


@functional("index_reduce", inplace=True)
def index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """Reduce slices of the source into the indexed positions of a dimension."""
    if reduce not in {"prod", "mean", "amax", "amin"}:
        raise fail(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce[:80]}.")
    x, value, places = self.array, source.array, index.array
    at = axis(dim, x.ndim)
    if places.ndim > 1:
        raise raised(
            "IndexError", f"index_reduce_(): Expected dtype int32/int64 vector for index, but got {places.ndim} dimensions"
        )
    if places.dtype not in (np.int32, np.int64):
        raise fail("index_reduce_(): Expected dtype int32/int64 for index")
    if x.dtype != value.dtype:
        raise fail(f"index_reduce_(): self ({words(x.dtype)}) and source ({words(value.dtype)}) must have the same scalar type")
    full, given = x.reshape(x.shape or (1,)).copy(), value.reshape(value.shape or (1,))
    if (
        given.ndim != full.ndim
        or given.shape[at] != places.size
        or any(item != at and a != b for item, (a, b) in enumerate(zip(full.shape, given.shape, strict=True)))
    ):
        if not places.size:
            raise Unsupported("some releases accept empty slices of a different shape", code="operator")
        raise fail(
            f"index_reduce_(): Number of indices ({places.size}) should be equal to source.size(dim), and all other sizes equal"
        )
    where = places.reshape(-1)
    if where.size and (int(where.min()) < 0 or int(where.max()) >= full.shape[at]):
        raise raised("IndexError", "index out of range in self")
    if x.dtype.kind == "b":
        raise Unsupported("the reference reader does not support index_reduce of bool tensors", code="dtype")
    looped(where.size, given.size // max(1, where.size))
    moved, rows = np.moveaxis(full, at, 0), np.moveaxis(given, at, 0)
    if not include_self:
        moved[where] = _start(reduce, x.dtype)
    for place, row in zip(where, rows, strict=True):
        moved[place] = _together(reduce, moved[place], row)
    if reduce == "mean":
        counts = counted(where, minlength=full.shape[at]) + (1 if include_self else 0)
        counts = np.maximum(counts, 1).reshape(-1, *(1,) * (full.ndim - 1))
        moved[...] = np.floor_divide(moved, counts) if x.dtype.kind in "iu" else moved / counts.astype(wide(moved).dtype)
    return Tensor(full.reshape(x.shape))


_REDUCTIONS = {"max": "amax", "min": "amin", "mean": "mean", "sum": "sum", "prod": "prod"}


@functional("segment_reduce")
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: int = 0,
    unsafe: bool = False, initial: Scalar | None = None,
) -> Tensor:  # fmt: skip
    """Reduce segments of a dimension, given by their lengths or offsets."""
    array = data.array
    if reduce not in _REDUCTIONS:
        raise fail(f"unsupported reduction {reduce[:80]}")
    if indices is not None:
        raise fail("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise fail("segment_reduce(): Either lengths or offsets must be defined.")
    if array.dtype.kind not in {"f", "V"}:
        raise fail(f"\"segment_reduce\" not implemented for '{words(array.dtype)}'")
    given: Array = (lengths if lengths is not None else offsets).array  # type: ignore[union-attr]
    if given.ndim != 1 or axis != 0 or not array.size:
        raise Unsupported("the reference reader reduces segments only along the first dimension", code="operator")
    counts = given if lengths is not None else np.diff(given)
    if not unsafe and lengths is not None:
        if (counts < 0).any():
            raise fail("lengths contains negative value!")
        if int(counts.sum()) != array.shape[0]:
            raise fail(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    starts = np.cumsum(counts) - counts if lengths is not None else given[:-1]
    if (counts < 0).any() or (starts < 0).any() or (starts + counts > array.shape[0]).any():
        raise Unsupported(
            "segments that extend past the end of the tensor are not supported: releases read out of bounds", code="operator"
        )
    looped(array.shape[0] + len(counts), array.size // array.shape[0])
    name = _REDUCTIONS[reduce]
    value = np.empty((max(len(given) - (lengths is None), 0), *array.shape[1:]), FLOAT64)
    for at, (start, count) in enumerate(zip(starts, counts, strict=True)):
        item: Array = np.full(array.shape[1:], _start(name, array.dtype) if initial is None else float(initial.real))
        for row in array[start : start + count].astype(FLOAT64):
            item = _together(name, item, row)
        if name == "mean":
            item = item / count if count else np.where(initial is None, np.nan, item)
        value[at] = item
    return Tensor(value.astype(array.dtype))
