"""Writes by index that raise halfway: releases check each index when they reach it, so they have written the elements before it.

Measured in 1.2.0 to 2.15.0, which agree for one thread where the indices are visited in memory order: 1-dimensional indices along the first
dimension, ``scatter_`` along the last, ``put_``, and ``index_put_`` with 1-dimensional indices (1.5 and newer). In other cases the order
depends on the release, and the target keeps its elements here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Raised
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["writing_before_errors"]

Call = tuple[Any, ...]


def writing_before_errors(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operator that writes by index to write what precedes an index out of range; return any other operator unchanged."""
    parts = PARTS.get(name)
    if parts is None:
        return call

    def writing(*args: Any, **keywords: Any) -> Any:
        try:
            return call(*args, **keywords)
        except Raised:
            try:
                for part in parts(args):
                    call(*part, **keywords)
            except Raised:  # the call has another fault, which releases check before they write
                pass
            raise

    return writing


def _first_bad(index: Any, size: int, *, negative: bool = False) -> int | None:
    """The position of the first index out of range in memory order; None if there is none, or if it is not an index."""
    if index.__class__ is not Tensor or index.array.dtype != np.int64:
        return None
    flat = index.array.reshape(-1)
    bad = (flat >= size) | (flat < (-size if negative else 0))
    return int(bad.argmax()) if bad.any() else None


def _fits(source: Any, shape: tuple[int, ...]) -> bool:
    """Whether a source has an element, or a row, for each index of this shape; a number has."""
    if source.__class__ is not Tensor or not source.array.ndim:
        return True
    return source.array.ndim >= len(shape) and all(size >= least for size, least in zip(source.array.shape, shape, strict=False))


def _cut(value: Any, count: int) -> Any:
    """The first elements of a tensor along its first dimension; numbers and tensors without dimensions stay."""
    return Tensor(value.array[:count]) if value.__class__ is Tensor and value.array.ndim else value


def _along(args: Call, *, negative: bool = False) -> Iterator[Call]:
    """Of ``(self, dim, index, source or value, ...)`` with a 1-dimensional index."""
    target, dim, index = args[:3]
    if not target.array.ndim or dim not in {0, -target.array.ndim} or index.array.ndim != 1:
        return
    count = _first_bad(index, target.array.shape[0], negative=negative)
    source = args[3]
    if count and (source.__class__ is not Tensor or not source.array.ndim or len(source.array) == len(index.array)):
        yield (target, dim, _cut(index, count), _cut(args[3], count), *args[4:])


def _scattered(args: Call) -> Iterator[Call]:
    """Of ``(self, dim, index, source or value, ...)`` with an index of as many dimensions as the target, along the last."""
    target, dim, index = args[:3]
    if not target.array.ndim or dim not in {-1, target.array.ndim - 1}:
        return
    count = _first_bad(index, target.array.shape[-1])
    if not count or index.array.ndim != target.array.ndim or not _fits(args[3], index.array.shape):
        return
    place = np.unravel_index(count, index.array.shape)
    # the rows before that of the bad index, dimension by dimension, and then the elements before it
    for level, stop in enumerate(place):
        if stop:
            window = (*(slice(int(at), int(at) + 1) for at in place[:level]), slice(0, int(stop)))
            yield (
                _view(target, window[:-1]) if level else target,
                dim,
                _window(index, window),
                _window(args[3], window),
                *args[4:],
            )


def _window(value: Any, window: tuple[slice, ...]) -> Any:
    return Tensor(value.array[window]) if value.__class__ is Tensor and value.array.ndim else value


def _view(target: Tensor, window: tuple[slice, ...]) -> Tensor:
    """The rows of the target that a part of the index writes; it shares the memory."""
    return Tensor(target.array[window])


def _flat(args: Call) -> Iterator[Call]:
    """Of ``(self, index, source, ...)`` with an index into the elements of the target."""
    target, index, source = args[:3]
    count = _first_bad(index, target.array.size, negative=True)
    if count and source.array.size == index.array.size:
        flat = [Tensor(item.array.reshape(-1)[:count]) for item in (index, source)]
        yield (target, *flat, *args[3:])


def _indexed(args: Call) -> Iterator[Call]:
    """Of ``(self, indices, values, ...)`` whose indices are 1-dimensional, of one length, and for the first dimensions."""
    target, indices, values = args[:3]
    if len(indices) > target.array.ndim:
        return
    if (
        any(index.__class__ is not Tensor or index.array.ndim != 1 for index in indices)
        or len({index.shape for index in indices}) != 1
    ):
        return
    bad = [_first_bad(index, size, negative=True) for index, size in zip(indices, target.array.shape, strict=False)]
    count = min((count for count in bad if count is not None), default=0)
    if count:
        several = values.array.ndim == target.array.ndim - len(indices) + 1 and values.array.shape[0] == indices[0].array.size
        yield (target, [_cut(index, count) for index in indices], _cut(values, count) if several else values, *args[3:])


def _masked(args: Call) -> Iterator[Call]:
    """Of ``(self, mask, source)`` with fewer elements in the source than the mask selects."""
    target, mask, source = args[:3]
    if (
        target.__class__ is not Tensor
        or mask.__class__ is not Tensor
        or mask.shape != target.shape
        or mask.array.dtype != np.bool_
    ):
        return
    places = np.flatnonzero(mask.array)
    if source.array.size < places.size:
        kept = np.zeros(mask.array.size, np.bool_)
        kept[places[: source.array.size]] = True
        yield (target, Tensor(kept.reshape(mask.array.shape)), source)


def _of(classes: tuple[type, ...], parts: Callable[[Call], Iterator[Call]], args: Call) -> Iterator[Call]:
    """The parts of a call whose first arguments have these classes; a call with other arguments was refused before anything was written."""
    if len(args) < len(classes) or any(
        cls is not object and arg.__class__ is not cls for arg, cls in zip(args, classes, strict=False)
    ):
        return iter(())
    return parts(args)


ALONG, THREE = (Tensor, int, Tensor, object), (Tensor, Tensor, Tensor)
PARTS: dict[str, Callable[[Call], Iterator[Call]]] = {
    **dict.fromkeys((f"aten::{name}_" for name in ("index_add", "index_copy", "index_reduce")), partial(_of, ALONG, _along)),
    "aten::index_fill_": partial(_of, ALONG, partial(_along, negative=True)),
    **dict.fromkeys((f"aten::{name}_" for name in ("scatter", "scatter_add", "scatter_reduce")), partial(_of, ALONG, _scattered)),
    "aten::put_": partial(_of, THREE, _flat),
    "aten::index_put_": partial(_of, (Tensor, list, Tensor), _indexed),
    "aten::masked_scatter_": partial(_of, THREE, _masked),
}
"""For each operator, the calls that write what precedes the error, from its arguments."""
