"""Parts of a tensor as views of its memory: selected, sliced, split, diagonal and unfolded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from torch_compat import arrays
from torch_compat.runtime.operators._common import (
    axis,
    fail,
)
from torch_compat.runtime.operators.views import END, count_views, of_view
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised


@operator("aten::select")
def select(self: Tensor, dim: int, index: int) -> Tensor:
    """One index of a dimension."""
    array = self.array
    if not array.ndim:
        raise raised("IndexError", "select() cannot be applied to a 0-dim tensor.")
    at = axis(dim, array.ndim)
    place = int(index)
    count = array.shape[at]
    if not -count <= place < count:
        raise raised(
            "IndexError", f"select(): index {place} out of range for tensor of size {list(array.shape)} at dimension {at}"
        )
    return of_view(self, array[place, ...] if not at else array[(slice(None),) * at + (place, ...)])


@operator("aten::slice")
def slice_(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A slice of a dimension."""
    array = self.array
    if not array.ndim:
        raise fail("slice() cannot be applied to a 0-dim tensor.")
    at = axis(dim, array.ndim)
    if step <= 0:
        raise fail("slice step must be positive")
    piece = slice(0 if start is None else start, END if end is None else end, step)
    return of_view(self, array[piece] if not at else array[(slice(None),) * at + (piece,)])


@operator("aten::narrow")
def narrow(self: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A slice of a dimension, given by start and length."""
    array = self.array
    if not array.ndim:
        raise fail("narrow() cannot be applied to a 0-dim tensor.")
    if start.__class__ is Tensor and (start.array.ndim or start.array.dtype.kind not in "iu"):
        raise fail("start must be an 0-dim integral Tensor.")
    at, first = axis(dim, array.ndim), int(start.array) if start.__class__ is Tensor else start
    count = array.shape[at]
    if length < 0:
        raise fail("narrow(): length must be non-negative.")
    if not -count <= first <= count:
        raise raised("IndexError", f"start out of range (expected to be in range of [{-count}, {count}], but got {first})")
    first += count if first < 0 else 0
    if first + length > count:
        raise fail(f"start ({first}) + length ({length}) exceeds dimension size ({count}).")
    return of_view(self, array[(slice(None),) * at + (slice(first, first + length),)])


@operator("aten::unbind")
def unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    """All slices along a dimension, without that dimension."""
    array = self.array
    if not array.ndim:
        raise raised("IndexError", "Dimension specified as 0 but tensor has no dimensions")
    lead: tuple[Any, ...] = (slice(None),) * axis(dim, array.ndim)
    count_views(array.shape[len(lead)])
    return [of_view(self, array[(*lead, place, ...)]) for place in range(array.shape[len(lead)])]


def _pieces(self: Tensor, at: int, sizes: list[int]) -> list[Tensor]:
    count_views(len(sizes))
    lead, start, findings = (slice(None),) * at, 0, []
    for size in sizes:
        findings.append(of_view(self, self.array[(*lead, slice(start, start + size))]))
        start += size
    return findings


@operator("aten::split", "aten::split_with_sizes", "aten::unsafe_split", "aten::unsafe_split_with_sizes")
def split(self: Tensor, split_size: Any = None, dim: int = 0, *, split_sizes: Any = None) -> list[Tensor]:
    """Pieces of one size, or of given sizes."""
    array = self.array
    wanted = split_sizes if split_size is None else split_size
    if not array.ndim:
        raise fail("split expects at least a 1-dimensional tensor")
    at = axis(dim, array.ndim)
    count = array.shape[at]
    if wanted.__class__ is not int:
        if sum(wanted) != count or any(size < 0 for size in wanted):
            raise fail(
                f"split_with_sizes expects split_sizes to sum exactly to {count} (input tensor's size at dimension {at}), but got split_sizes={list(wanted)}"
            )
        return _pieces(self, at, list(wanted))
    if wanted < 0 or (not wanted and count):
        raise fail(f"split expects split_size be non-negative, but got split_size={wanted}")
    if not count:
        return [of_view(self, array[...])]
    count_views(-(-count // wanted))
    return _pieces(self, at, [min(wanted, count - start) for start in range(0, count, wanted)])


@operator("aten::chunk", "aten::unsafe_chunk")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """At most ``chunks`` pieces of equal size; the last may be smaller."""
    array = self.array
    if not array.ndim:
        raise fail("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise fail(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = axis(dim, array.ndim)
    count = array.shape[at]
    each = -(-count // chunks)
    count_views(min(chunks, count))
    if not each:
        count_views(chunks)
        return [of_view(self, array[...]) for _ in range(chunks)]
    return _pieces(self, at, [min(each, count - start) for start in range(0, count, each)])


@operator("prim::ConstantChunk")
def constant_chunk(self: Tensor, chunks: int, dim: int) -> list[Tensor]:
    """Same as :func:`chunk`."""
    return chunk(self, chunks, dim)


@operator("aten::tensor_split")
def tensor_split(
    self: Tensor, sections: Any = None, dim: int = 0, *, indices: Any = None, tensor_indices_or_sections: Any = None
) -> list[Tensor]:
    """A number of pieces, or pieces between indices."""
    if not self.array.ndim:
        raise fail("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = axis(dim, self.array.ndim)
    wanted = next(item for item in (sections, indices, tensor_indices_or_sections) if item is not None)
    if wanted.__class__ is Tensor:
        wanted = wanted.array.tolist()
    count = self.array.shape[at]
    if wanted.__class__ is int:
        if wanted < 1:
            raise fail(f"number of sections must be larger than 0, got {wanted}")
        count_views(wanted)
        each, more = divmod(count, wanted)
        return _pieces(self, at, [each + (place < more) for place in range(wanted)])
    lead: tuple[Any, ...] = (slice(None),) * at
    count_views(len(wanted))
    bounds = [0, *wanted, END]
    return [of_view(self, self.array[(*lead, slice(a, b))]) for a, b in pairwise(bounds)]


def _split_at(name: str, least: int, dim: int) -> None:
    """Register a split along a dimension of tensors with at least ``least`` dimensions; a vector is split along its only dimension."""

    def call(self: Tensor, sections: Any = None, *, indices: Any = None) -> list[Tensor]:
        ndim = self.array.ndim
        if ndim < least:
            raise fail(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!"
            )
        at = min(dim, ndim - 1)
        if sections.__class__ is int and sections >= 0 and (not sections or self.array.shape[at] % sections):
            raise fail(
                f"torch.{name} attempted to split along dimension {at}, but the size of the dimension {self.array.shape[at]} is not divisible by the "
                f"split_size {sections}!"
            )
        return tensor_split(self, sections, at, indices=indices)

    operator(f"aten::{name}")(call)


_split_at("hsplit", 1, 1)
_split_at("vsplit", 2, 0)
_split_at("dsplit", 3, 2)


@operator("aten::linalg_diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """The diagonal of the last two dimensions."""
    return diagonal(A, offset, dim1, dim2)


@operator("aten::diagonal")
def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as the last dimension."""
    array = self.array
    first, second = axis(dim1, array.ndim), axis(dim2, array.ndim)
    if first == second:
        raise fail(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    result = arrays.diagonal(array, offset, first, second)
    steps = tuple(step // array.itemsize for step in result.strides)
    if not result.size:
        own = self.strides
        others = (step for at, step in enumerate(own) if at not in {first, second})
        return self.as_strided(result.shape, (*others, own[first] + own[second]))
    shift = int(result.__array_interface__["data"][0] - array.__array_interface__["data"][0]) // array.itemsize
    return self.as_strided(result.shape, steps, self.storage_offset + shift)  # numpy's own view is read-only


@operator("aten::unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows that slide along a dimension."""
    array = self.array
    at = axis(dimension, array.ndim)
    count = array.shape[at] if array.ndim else 1
    if size > count:
        raise fail(f"maximum size for tensor at dimension {at} is {count} but size is {size}")
    if step <= 0:
        raise fail(f"step is {step} but must be > 0")
    steps = self.strides
    if not array.ndim:
        return self.as_strided((size,), (1,))
    shape = [*array.shape, size]
    shape[at] = (count - size) // step + 1
    return self.as_strided(tuple(shape), (*steps[:at], steps[at] * step, *steps[at + 1 :], steps[at]))


@operator("aten::flatten_dense_tensors", of="list")
def flatten_dense_tensors(tensors: list[Tensor]) -> Tensor:
    """The elements of all tensors in one dimension."""
    joined: Tensor = resolve("aten::cat")([Tensor(tensor.array.reshape(-1)) for tensor in tensors])
    return joined


def _unflattened(flat: Tensor, tensors: list[Tensor], *, shaped: bool) -> list[Tensor]:
    """Split a 1-D tensor into parts with the shapes of the tensors.

    Parameters:
        shaped: whether a part without elements has the shape of its tensor.
    """
    count_views(len(tensors))
    findings, start = [], 0
    for tensor in tensors:
        count = tensor.numel
        if not count:
            findings.append(Tensor(np.empty(tensor.shape if shaped else 0, flat.array.dtype)))
            continue
        if start + count > flat.array.size or flat.array.ndim != 1:
            raise fail(f"start ({start}) + length ({count}) exceeds dimension size ({flat.array.size}).")
        findings.append(of_view(flat, flat.array[start : start + count].reshape(tensor.shape)))
        start += count
    return findings


operator("aten::unflatten_dense_tensors")(lambda flat, tensors: _unflattened(flat, tensors, shaped=False))
operator("aten::unflatten_dense_tensors", since="2.10.0")(lambda flat, tensors: _unflattened(flat, tensors, shaped=True))
