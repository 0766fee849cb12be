"""Concatenation, repetition, flips, rotation, and padding of tensors."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from torch_compat import arrays
from torch_compat.arrays import repeated
from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.iterated import suggests_channels_last
from torch_compat.runtime.operators._common import (
    FLOAT32,
    INT64,
    Array,
    axis,
    cast,
    checked_scalar,
    fail,
    functional,
    into,
    not_implemented,
    words,
)
from torch_compat.runtime.operators._products import looped, sized
from torch_compat.runtime.operators.views import atleast_1d, atleast_2d, atleast_3d
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import raised

MOST_DIMENSIONS = 32  # maximum number of dimensions of an array in every NumPy


ROW_MAJOR, AS_FIRST, AS_ALL = range(3)
"""The memory layout of the result: row-major up to 1.5; like the first tensor up to 1.11; after that, the common layout of all tensors."""


def _joined(tensors: Any, dim: int, *, promote: bool, layout: int = ROW_MAJOR) -> Array:
    arrays = [tensor.array for tensor in tensors]
    if not arrays:
        raise fail("torch.cat(): expected a non-empty list of Tensors")
    for place, array in enumerate(arrays):
        if not array.ndim:
            raise fail(f"zero-dimensional tensor (at position {place}) cannot be concatenated")
    if promote:
        kind = dtypes.result_type(tensors).array
    else:
        kind = arrays[0].dtype
        for place, array in enumerate(arrays):
            if array.dtype != kind:
                raise fail(
                    f"Expected object of scalar type {words(kind)} but got scalar type {words(array.dtype)} for sequence element {place} in sequence "
                    "argument at position #1 'tensors'"
                )
    # Empty 1-dim tensors are allowed anywhere, regardless of the shapes of the others.
    kept = [item for item in arrays if item.shape != (0,)]
    if not kept:  # for any dimension
        return np.empty(0, kind)
    at = axis(dim, kept[0].ndim)
    for place, array in enumerate(kept):
        if array.ndim != kept[0].ndim:
            raise fail(f"Tensors must have same number of dimensions: got {kept[0].ndim} and {array.ndim}")
        for where, (a, b) in enumerate(zip(kept[0].shape, array.shape, strict=True)):
            if a != b and where != at:
                raise fail(
                    f"Sizes of tensors must match except in dimension {at}. Expected size {a} but got size {b} for tensor number {place} in the list."
                )
    sized(sum(item.size for item in kept))
    parts = [cast(item, kind) for item in kept]
    deciding = kept if layout == AS_ALL else kept[:1] if layout == AS_FIRST else []
    if deciding and all(suggests_channels_last(item.shape, item.strides) for item in deciding):
        apart = np.concatenate([np.moveaxis(part, 1, -1) for part in parts], axis=-1 if at == 1 else max(at - 1, 0))
        return np.moveaxis(np.ascontiguousarray(apart), -1, 1)
    return np.ascontiguousarray(np.concatenate(parts, axis=at))


def _nothing(tensors: list[Tensor]) -> bool:
    """Whether all tensors are skipped; up to 1.11 `out` is then unchanged, whatever its shape."""
    return all(tensor.array.shape == (0,) for tensor in tensors)


def _cats() -> None:
    for since, promote, layout in (("1.0.0", False, ROW_MAJOR), ("1.6.0", True, AS_FIRST), ("1.12.0", True, AS_ALL)):

        def call(
            tensors: Any, dim: int = 0, *, out: Tensor | None = None, promote: bool = promote, _layout: int = layout
        ) -> Tensor:
            array = _joined(tensors, dim, promote=promote, layout=_layout)
            if out is not None and _layout != AS_ALL and _nothing(tensors):
                return out
            return Tensor(array) if out is None else into(out, array)

        def stacked(tensors: Any, dim: int = 0, *, out: Tensor | None = None, promote: bool = promote) -> Tensor:
            if not tensors:
                raise fail("stack expects a non-empty TensorList")
            first = tensors[0].array
            for place, tensor in enumerate(tensors):
                if tensor.array.shape != first.shape:
                    raise fail(
                        f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(tensor.array.shape)} at entry {place}"
                    )
            at = axis(dim, first.ndim + 1)
            array = _joined([Tensor(np.expand_dims(item.array, at)) for item in tensors], at, promote=promote)
            return Tensor(array) if out is None else into(out, array)

        operator("aten::cat", "aten::concat", "aten::concatenate", "aten::_cat", since=since)(call)
        if layout != AS_ALL:
            operator("aten::stack", "aten::_stack", since=since)(stacked)


_cats()


def _stacks(name: str, shape_up: Any, dim_of: Any, since: str = "1.0.0", *, keeps: bool = False) -> None:
    """Register a stacking operator as of a release.

    Parameters:
        keeps: whether `out` is unchanged if all tensors are skipped.
    """

    def call(tensors: list[Tensor], *, out: Tensor | None = None) -> Tensor:
        parts = shape_up(list(tensors))
        array = _joined(parts, dim_of(parts[0].array.ndim), promote=True)
        if out is not None and keeps and _nothing(parts):
            return out
        return Tensor(array) if out is None else into(out, array)

    operator(f"aten::{name}", since=since)(call)


def _as_columns(tensors: list[Tensor]) -> list[Tensor]:
    if not tensors:
        raise fail("column_stack expects a non-empty TensorList")
    return [tensor if tensor.array.ndim > 1 else Tensor(tensor.array.reshape(-1, 1)) for tensor in tensors]


_stacks("hstack", atleast_1d, lambda ndim: 0 if ndim == 1 else 1, keeps=True)
_stacks("hstack", atleast_1d, lambda ndim: 0 if ndim == 1 else 1, "1.12.0")
_stacks("vstack", atleast_2d, lambda _ndim: 0)
_stacks("column_stack", _as_columns, lambda _ndim: 1)
_stacks("row_stack", atleast_2d, lambda _ndim: 0)
_stacks("dstack", atleast_3d, lambda _ndim: 2)


@functional("block_diag")
def block_diag(tensors: list[Tensor]) -> Tensor:
    """A block diagonal matrix."""
    if not tensors:
        return Tensor(np.zeros((1, 0), FLOAT32))
    parts = [tensor.array if tensor.array.ndim == 2 else tensor.array.reshape(1, -1) for tensor in tensors]
    shape = sum(item.shape[0] for item in parts), sum(item.shape[1] for item in parts)
    sized(*shape)
    whole = np.zeros(shape, dtypes.result_type(tensors).array)
    row = column = 0
    for part in parts:
        whole[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return Tensor(whole)


@operator("aten::meshgrid")
def meshgrid(tensors: list[Tensor], *, indexing: str = "ij") -> list[Tensor]:
    """Coordinates of a grid."""
    if indexing not in {"ij", "xy"}:
        raise fail(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise fail("meshgrid expects a non-empty TensorList")
    if any(item.ndim > 1 for item in tensors):
        raise fail("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if any(item.array.dtype != tensors[0].array.dtype for item in tensors):
        raise fail("torch.meshgrid: Expected all tensors to have the same dtype")
    shape = [item.numel for item in tensors]
    sized(*shape, len(shape))
    places = list(range(len(shape)))
    if indexing == "xy" and len(shape) > 1:
        shape[0], shape[1], places[0], places[1] = shape[1], shape[0], 1, 0
    results = []
    for place, tensor in zip(places, tensors, strict=True):
        step = tensor.strides[0] if tensor.ndim else 1
        steps = [0 if size != 1 else step * tensor.numel if at < place else step for at, size in enumerate(shape)]
        steps[place] = step
        results.append(tensor.as_strided(tuple(shape), tuple(steps)))  # a view of it, in every release
    return results


@operator("aten::cartesian_prod")
def cartesian_prod(tensors: list[Tensor]) -> Tensor:
    """The Cartesian product, one combination per row."""
    for tensor in tensors:
        if tensor.array.ndim != 1:
            raise fail(f"Expect a 1D vector, but got shape {list(tensor.array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    if any(item.array.dtype != tensors[0].array.dtype for item in tensors):
        raise fail("meshgrid expects all tensors to have the same dtype")
    sized(*(item.array.size for item in tensors), len(tensors))
    return Tensor(np.stack([item.reshape(-1) for item in np.meshgrid(*(item.array for item in tensors), indexing="ij")], axis=1))


@operator("aten::combinations")
def combinations_1_3(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Up to 1.11 combinations of zero elements are not supported."""
    if r < 1:
        raise fail(f"Expect a positive number, but got {r}")
    return combinations(self, r, with_replacement)


@operator("aten::combinations", since="1.12.0")
def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of some elements, one per row."""
    from itertools import combinations as without  # noqa: PLC0415
    from itertools import combinations_with_replacement  # noqa: PLC0415

    if self.array.ndim != 1:
        raise fail(f"Expect a 1D vector, but got shape {list(self.array.shape)}")
    if r < 0:
        raise fail(f"Expect a non-negative number, but got {r}")
    if self.array.size > 1 and (
        r >= 63 or self.array.size**r >= 1 << 63
    ):  # the release creates all combinations, including repetitions, and selects some
        raise fail("numel: integer multiplication overflow")
    if r == 0:
        return Tensor(np.empty(0, self.array.dtype))
    choose: Any = combinations_with_replacement if with_replacement else without
    looped(math.comb(self.array.size + (r - 1 if with_replacement else 0), r), r * 100)
    places = np.asarray(list(choose(range(self.array.size), r)), INT64).reshape(-1, r)
    return Tensor(self.array[places])


# --------------------------------------------------------------------------------------------------------------- repeating


def _tiled(array: Array, repeats: list[int]) -> Array:
    """Repeat the array along each dimension, the last ones first."""
    shape = (1,) * (len(repeats) - array.ndim) + array.shape
    times = (1,) * (len(shape) - len(repeats)) + tuple(repeats)
    if 0 in times or 0 in shape:
        return np.empty([size * by for size, by in zip(shape, times, strict=True)], array.dtype)
    sized(*shape, *times)
    spread = [item for size, by in zip(shape, times, strict=True) for item in (by, size)]
    if len(spread) > MOST_DIMENSIONS:
        raise Unsupported(
            f"the reference reader repeats only tensors with up to {MOST_DIMENSIONS // 2} dimensions", code="operator"
        )
    whole = np.broadcast_to(array.reshape([item for size in shape for item in (1, size)]), spread)
    return np.array(whole.reshape([size * by for size, by in zip(shape, times, strict=True)]), order="C")  # memory of its own


@operator("aten::repeat")
def repeat(self: Tensor, repeats: list[int]) -> Tensor:
    """Repeat the tensor along each dimension."""
    array = self.array
    if len(repeats) < array.ndim:
        raise fail("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    _not_negative(array, repeats)
    return Tensor(_tiled(array, [max(item, 0) for item in repeats]))


@operator("aten::tile")
def tile(self: Tensor, dims: list[int]) -> Tensor:
    """Same as :func:`repeat`, also with fewer numbers than dimensions."""
    _not_negative(self.array, dims)
    return Tensor(_tiled(self.array, [max(dim, 0) for dim in dims]))


def _not_negative(array: Array, repeats: list[int]) -> None:
    """Refuse a negative size; an empty dimension stays empty for any number of repetitions.

    Raises:
        Raised: the size is negative.
    """
    shape = (*(1,) * (len(repeats) - array.ndim), *array.shape)
    for size, by in zip(reversed(shape), reversed(repeats), strict=False):
        if size * by < 0:
            raise fail(f"Trying to create tensor with negative dimension {size * by}")


def _repeated(array: Array, counts: Any, at: int | None = None) -> Array:
    places = array.size if at is None else array.shape[at]
    numbers = np.asarray(counts)
    total = (
        int(numbers.sum(dtype=np.float64)) if numbers.size > 1 else places * int(numbers.sum())
    )  # accurate enough for the memory check
    sized(total, array.size // max(1, places))
    return repeated(array, counts, axis=at)


@operator("aten::repeat_interleave")
def repeat_interleave(self: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Repeat each element; a given output size must match."""
    if repeats is None:  # repeat_interleave.Tensor(Tensor repeats): returns indices
        if self.array.ndim != 1:
            raise fail("repeat_interleave only accept 1D vector as repeat")
        return _as_large(_repeated(np.arange(self.array.size, dtype=self.array.dtype), self.array), self.array, 0, output_size)
    counts = repeats.array if repeats.__class__ is Tensor else repeats
    if np.min(counts, initial=0) < 0:
        raise fail("repeats can not be negative")
    array = self.array
    if dim is not None and not array.ndim:
        raise raised("IndexError", f"Dimension specified as {dim} but tensor has no dimensions")
    at = 0 if dim is None else axis(dim, array.ndim)
    if repeats.__class__ is Tensor:
        if counts.dtype.kind not in "iu":
            raise not_implemented("repeat_interleave_cpu", counts.dtype)
        if counts.ndim == 1 and counts.size not in {1, array.size if dim is None else array.shape[at]}:
            raise fail("repeats must have the same size as input along dim")
    return _as_large(_repeated(array.reshape(-1) if dim is None else array, counts, at), counts, at, output_size)


def _as_large(array: Array, counts: Any, at: int, output_size: int | None) -> Tensor:
    """Check the given output size of a repetition; it is ignored if nothing is repeated.

    Raises:
        Raised: the size does not match.
    """
    if output_size is not None and output_size != array.shape[at] and np.size(counts):
        raise fail(f"allocated size does not match required size: {output_size}, {array.shape[at]}")
    return Tensor(array)


# ------------------------------------------------------------------------------------------------------------ turned around


@functional("flip")
def flip(self: Tensor, dims: Any) -> Tensor:
    """A copy reversed along dimensions."""
    array = self.array
    result = tuple(axis(dim, array.ndim) for dim in dims)
    if len(set(result)) != len(result):
        raise fail(f"dim {result[0]} appears multiple times in the list of dims")
    return Tensor(np.flip(array, result).copy() if array.ndim else array.copy())


@operator("aten::fliplr")
def fliplr(self: Tensor) -> Tensor:
    """Flip left to right."""
    return Tensor(np.fliplr(self.array).copy())


@operator("aten::flipud")
def flipud(self: Tensor) -> Tensor:
    """Flip upside down."""
    return Tensor(np.flipud(self.array).copy())


@operator("aten::roll")
def roll(self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Shift along dimensions; elements that leave one end enter at the other."""
    array = self.array
    by = [shifts] if shifts.__class__ is int else list(shifts)
    at = [dims] if dims.__class__ is int else list(dims)
    if not by:
        raise fail("`shifts` required")
    if not at and len(by) == 1:
        return Tensor(np.roll(array, by[0]))
    if len(at) != len(by):
        raise fail(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(at)}")
    if not array.size:  # torch does not check the dimensions then
        return Tensor(array.copy())
    if not array.ndim:
        raise raised("IndexError", "Dimension specified as 0 but tensor has no dimensions")
    looped(len(by))
    pushed: dict[int, int] = {}
    for shift, dim in zip(by, at, strict=True):
        place = axis(dim, array.ndim)
        pushed[place] = pushed.get(place, 0) + shift
    for place, shift in pushed.items():  # NumPy's roll over several dimensions takes exponential time
        array = np.roll(array, shift % array.shape[place], place)
    return Tensor(array)


@operator("aten::rot90")
def rot90_1_0(self: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Up to 1.9 the flipped result is row-major."""
    return _turned(self, k, dims, "C")


@operator("aten::rot90", since="1.10.0")
def rot90(self: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by right angles."""
    return _turned(self, k, dims, "K")


def _turned(self: Tensor, k: int, dims: Any, order: Literal["C", "K"]) -> Tensor:
    ndim = self.array.ndim
    if len(dims) != 2:
        raise fail(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise fail(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise fail(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    item, other = axis(dims[0], ndim), axis(dims[1], ndim)
    if k % 2:  # odd quarter turns swap the dimensions
        return Tensor(np.flip(self.array, other if k % 4 == 1 else item).copy(order=order).swapaxes(item, other))
    return Tensor(np.rot90(self.array, k, (item, other)).copy(order=order if k % 4 else "C"))


@functional("diag")
def diag_1_0(self: Tensor, diagonal: int = 0) -> Tensor:
    """Up to 1.13 a diagonal outside the matrix has a negative size."""
    if self.array.ndim == 2:
        rows, columns = self.array.shape
        if min(rows + min(diagonal, 0), columns - max(diagonal, 0)) < 0:
            raise fail(f"diag(): the diagonal {diagonal} is outside of the matrix")
    return diag(self, diagonal)


@functional("diag", since="2.0.0")
def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal, or the diagonal of a matrix."""
    if self.array.ndim not in {1, 2}:
        raise fail("diag(): Supports 1D or 2D tensors. Got " + str(self.array.ndim) + "D")
    if self.array.ndim == 1:
        return diagflat(self, diagonal)
    return Tensor(arrays.diagonal(self.array, diagonal).copy())


@functional("diag_embed")
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Create matrices with the given diagonals."""
    array = self.array
    size = array.shape[-1] + abs(offset)
    sized(*array.shape[:-1], size, size)
    whole = np.zeros((*array.shape[:-1], size, size), array.dtype)
    places = np.arange(array.shape[-1])
    whole[..., places + max(-offset, 0), places + max(offset, 0)] = array
    a, b = axis(dim1, whole.ndim), axis(dim2, whole.ndim)
    return Tensor(np.moveaxis(whole, (-2, -1), (a, b)))


@operator("aten::diagflat")
def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """A diagonal matrix of all elements."""
    flat = self.array.reshape(-1)
    size = flat.size + abs(offset)
    sized(size, size)
    whole = np.zeros((size, size), flat.dtype)
    places = np.arange(flat.size)
    whole[places + max(-offset, 0), places + max(offset, 0)] = flat
    return Tensor(whole)


# ------------------------------------------------------------------------------------------------------- pixels and sequences


@operator("aten::pixel_shuffle")
def pixel_shuffle_1_0(self: Tensor, upscale_factor: int) -> Tensor:
    """Up to 1.11 the result is a view if its elements are in the same order in memory as the input."""
    result = _shuffled(self.array, upscale_factor)
    return Tensor(result if np.may_share_memory(result, self.array) else result.copy())


@operator("aten::pixel_shuffle", since="1.12.0")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels to a higher resolution."""
    return Tensor(_shuffled(self.array, upscale_factor).copy())


def _picture(array: Array, name: str, factor: int) -> None:
    """Refuse fewer than three dimensions and factors below one.

    Raises:
        Raised: as above.
    """
    if array.ndim < 3:
        raise fail(f"{name} expects input to have at least 3 dimensions, but got input with {array.ndim} dimension(s)")
    if factor < 1:
        scale = "upscale_factor" if name == "pixel_shuffle" else "downscale_factor"
        raise fail(f"{name} expects a positive {scale}, but got {factor}")


def _shuffled(array: Array, r: int) -> Array:
    _picture(array, "pixel_shuffle", r)
    *lead, c, h, w = array.shape
    if c % (r * r):
        raise fail(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    parts = array.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    return parts.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)


@operator("aten::pad_sequence", of="list")
def pad_sequence(
    sequences: list[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad sequences to the same length at one end."""
    if not sequences:
        raise fail("received an empty list of sequences")
    if padding_side not in {"left", "right"}:
        raise fail(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    parts = [sequence.array for sequence in sequences]
    trailing = parts[0].shape[1:]
    if any(not item.ndim for item in parts):
        raise fail("pad_sequence: expected tensors with at least one dimension")
    longest = max(len(item) for item in parts)
    sized(len(parts), longest, *trailing)
    out = np.full((len(parts), longest, *trailing), checked_scalar(padding_value, parts[0].dtype), parts[0].dtype)
    for row, part in zip(out, parts, strict=True):
        place = row[longest - len(part) if padding_side == "left" else 0 :][: len(part)]
        wanted = place.shape[max(0, place.ndim - part.ndim) :]  # a sequence is broadcast like in copy_
        if part.ndim > place.ndim or any(have not in {1, want} for have, want in zip(part.shape, wanted, strict=True)):
            raise fail(f"The expanded size of the tensor {list(place.shape)} must match the existing size {list(part.shape)}")
        place[...] = cast(part, out.dtype)
    return Tensor(out if batch_first else np.ascontiguousarray(out.swapaxes(0, 1)))


@operator("aten::pixel_unshuffle")
def pixel_unshuffle_1_8(self: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange a higher resolution to channels."""
    return Tensor(_unshuffled(self.array, downscale_factor).copy())


@operator("aten::pixel_unshuffle", since="1.13.0")
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    """As of 1.13 an empty tensor keeps its shape."""
    result = _unshuffled(self.array, downscale_factor)
    return Tensor((result if result.size else self.array).copy())


def _unshuffled(array: Array, r: int) -> Array:
    _picture(array, "pixel_unshuffle", r)
    *lead, c, h, w = array.shape
    if h % r or w % r:
        raise fail(f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but they are {h} and {w}, {r}")
    parts = array.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    return parts.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


def _channels_shuffled(self: Tensor, groups: int) -> Tensor:
    array = self.array
    if array.ndim < 3:
        raise fail(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(array.shape)}")
    if groups < 1:
        raise fail(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    b, c, *rest = array.shape
    if c % groups:
        raise fail(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return Tensor(array.reshape(b, groups, c // groups, *rest).swapaxes(1, 2).reshape(array.shape).copy())


@operator("aten::channel_shuffle")
def channel_shuffle_1_0(self: Tensor, groups: int) -> Tensor:
    """Up to 1.10 a tensor without batch or channels cannot be shuffled."""
    result = _channels_shuffled(self, groups)
    if 0 in self.array.shape[:2]:
        raise fail(
            "cannot reshape tensor of 0 elements, because the unspecified dimension size -1 can be any value and is ambiguous"
        )
    return result


@operator("aten::channel_shuffle", since="1.11.0")
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """Interleave the channels of groups."""
    return _channels_shuffled(self, groups)


@operator("aten::native_channel_shuffle")
def native_channel_shuffle_1_11(self: Tensor, groups: int) -> Tensor:
    """Up to 2.7 the groups are not checked."""
    if self.array.ndim > 2 and groups and (groups < 0 or self.array.shape[1] % groups):
        raise Unsupported(
            "aten::native_channel_shuffle reads other memory if the groups do not divide the channels", code="operator"
        )
    return _channels_shuffled(self, groups)


operator("aten::native_channel_shuffle", since="2.8.0")(channel_shuffle)
