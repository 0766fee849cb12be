"""Other views of the same memory, properties of shapes and strides, and copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.opaque import sizes_of
from torch_compat.runtime.operators._common import (
    Array,
    axes,
    axis,
    broadcast,
    fail,
    functional,
    whole_numbers,
)
from torch_compat.runtime.operators._memory_formats import PRESERVE, format_of, formatted, is_formatted, resized_as
from torch_compat.runtime.registry import operator
from torch_compat.runtime.tensor import Tensor, owner
from torch_compat.runtime.values import bounded, raised

END = 9223372036854775807


def of_view(source: Tensor, array: Array) -> Tensor:
    """Create a view of a tensor."""
    tensor = Tensor(array, source.requires_grad)
    tensor.is_detached = source.is_detached
    tensor.root = source.root
    return tensor


# -------------------------------------------------------------------------------------------------------------- questions


@operator("aten::size", gradient=False)
def size(self: Tensor, dim: int | None = None) -> list[int] | int:
    """The sizes, or the size of one dimension."""
    shape = sizes_of(self)
    return list(shape) if dim is None else shape[_real_axis(dim, len(shape))]


def _real_axis(dim: int, ndim: int) -> int:
    if not ndim:
        raise raised(
            "IndexError",
            "Dimension specified as 0 but tensor has no dimensions"
            if not dim
            else f"Dimension specified as {dim} but tensor has no dimensions",
        )
    return axis(dim, ndim)


@operator("aten::sym_size", gradient=False)
def sym_size(self: Tensor, dim: int | None = None) -> list[int] | int:
    """Same as :func:`size`."""
    return size(self, dim)


@operator("aten::dim", "aten::ndimension", gradient=False)
def dim_(self: Tensor) -> int:
    """The number of dimensions."""
    return len(sizes_of(self))


@operator("aten::numel", "aten::sym_numel", gradient=False)
def numel(self: Tensor) -> int:
    """The number of elements."""
    return math.prod(sizes_of(self))


@operator("aten::stride", gradient=False)
def stride(self: Tensor, dim: int | None = None) -> list[int] | int:
    """The strides, in elements."""
    result = self.strides
    return list(result) if dim is None else result[_real_axis(dim, len(result))]


@operator("aten::storage_offset", gradient=False)
def storage_offset(self: Tensor) -> int:
    """The offset of the first element in its storage."""
    return self.storage_offset


@operator("aten::element_size", gradient=False)
def element_size(self: Tensor) -> int:
    """The number of bytes of an element."""
    return self.dtype.itemsize


@operator("aten::is_contiguous", gradient=False)
def is_contiguous(self: Tensor, memory_format: int | None = None) -> bool:
    """Whether the memory order of the elements is that of the memory format."""
    return is_formatted(self.array, memory_format or 0)


@operator("aten::is_floating_point", gradient=False)
def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is floating-point."""
    return self.dtype.is_floating_point


@operator("aten::is_complex", gradient=False)
def is_complex(self: Tensor) -> bool:
    """Whether the dtype is complex."""
    return self.dtype.is_complex


@operator("aten::is_signed", gradient=False)
def is_signed(self: Tensor) -> bool:
    """Whether the dtype is signed."""
    return self.array.dtype.kind not in "ub"


@operator("aten::is_same_size", gradient=False)
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return bool(self.array.shape == other.array.shape)


@operator("aten::is_neg", "aten::is_conj", "aten::is_inference", "aten::is_distributed", "aten::_is_zerotensor", gradient=False)
def never(_self: Tensor) -> bool:
    """Always false: tensors of this reader never have these properties."""
    return False


# ----------------------------------------------------------------------------------------------------------------- shapes


def resolved(shape: Any, count: int) -> tuple[int, ...]:
    """Infer the single -1 of a shape.

    Raises:
        Raised: the shape does not fit.
    """
    sizes = list(whole_numbers(shape))
    if -1 in sizes:
        if sizes.count(-1) > 1:
            raise fail("only one dimension can be inferred")
        rest = math.prod(entry for entry in sizes if entry != -1)
        if not rest:
            raise fail(
                f"cannot reshape tensor of 0 elements into shape {sizes} because the unspecified dimension size -1 can be any value and is ambiguous"
            )
        if count % rest:
            raise fail(f"shape '{sizes}' is invalid for input of size {count}")
        sizes[sizes.index(-1)] = count // rest
    for item in sizes:
        if item < 0:
            raise fail(f"invalid shape dimension {item}")
    if math.prod(sizes) != count:
        raise fail(f"shape '{sizes}' is invalid for input of size {count}")
    return tuple(sizes)


@operator("aten::_reshape_alias")
def reshape_alias(self: Tensor, size: list[int], stride: list[int]) -> Tensor:
    """The same memory with a precomputed shape and strides."""
    if len(stride) != len(size):
        raise fail(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    return as_strided(self, size, stride)


@operator("aten::view", "aten::_unsafe_view")
def view(self: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """Another shape of the same memory, or its bytes as another dtype."""
    array = self.array
    if dtype is not None or size.__class__ is int or size.__class__ is dtypes.Dtype:
        return of_view(self, _bytes_as(array, dtypes.as_dtype(size if dtype is None else dtype)))
    shape = resolved(size, array.size)
    if shape == array.shape:
        return of_view(self, array.view())
    other = array.reshape(shape)
    if array.size and owner(other) is not owner(array):
        raise fail(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). "
            "Use .reshape(...) instead."
        )
    return of_view(self, other)


def _bytes_as(array: Array, dtype: Any) -> Array:
    kind = dtype.array
    if kind.itemsize != array.itemsize and (not array.ndim or array.strides[-1] != array.itemsize):
        raise fail("self.stride(-1) must be 1 to view another element size")
    return array.view(kind)


@operator("aten::reshape")
def reshape(self: Tensor, shape: Any) -> Tensor:
    """A view if possible, else a copy."""
    array = self.array
    return of_view(self, array.reshape(resolved(shape, array.size)))


@operator("aten::view_as")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of another tensor."""
    return view(self, list(other.array.shape))


@operator("aten::reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of another tensor."""
    return reshape(self, list(other.array.shape))


def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    array = self.array
    if not array.ndim:
        return of_view(self, array.reshape(1))
    first, last = axis(start_dim, array.ndim), axis(end_dim, array.ndim)
    if first > last:
        raise fail("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return self
    return of_view(
        self, array.reshape((*array.shape[:first], math.prod(array.shape[first : last + 1]), *array.shape[last + 1 :]))
    )


# Up to 1.2 a 0-dim tensor stays 0-dim.
operator("aten::flatten")(lambda self, start_dim=0, end_dim=-1: _flatten(self, start_dim, end_dim) if self.array.ndim else self)
operator("aten::flatten", since="1.3.0")(_flatten)


@operator("aten::unflatten")
def unflatten(self: Tensor, dim: int, sizes: list[int], names: Any = None) -> Tensor:
    """Split one dimension into several; up to 1.12 they can be named."""
    if names is not None:
        raise Unsupported("the reference reader does not support named tensors", code="operator")
    array = self.array
    at = axis(dim, array.ndim)
    inner = resolved(sizes, array.shape[at])
    return view(self, [*array.shape[:at], *inner, *array.shape[at + 1 :]])


@operator("aten::ravel")
def ravel(self: Tensor) -> Tensor:
    """Flatten to one dimension."""
    return of_view(self, self.array.reshape(-1))


@operator("aten::squeeze")
def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """Remove dimensions of size 1."""
    array = self.array
    if dim is None:
        return of_view(self, array.squeeze())
    dims = set(axes([dim] if dim.__class__ is int else dim, max(array.ndim, 1), empty_is_all=False))
    return of_view(self, array.reshape(tuple(size for at, size in enumerate(array.shape) if size != 1 or at not in dims)) if array.flags.c_contiguous
                   else array.squeeze(tuple(at for at in dims if array.ndim and array.shape[at] == 1)))  # fmt: skip


@operator("aten::unsqueeze")
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1."""
    at = axis(dim, self.array.ndim + 1)
    shape, strides = self.array.shape, self.strides
    step = shape[at] * strides[at] if at < len(shape) else 1
    return self.as_strided((*shape[:at], 1, *shape[at:]), (*strides[:at], step, *strides[at:]))


def _changes(name: str, function: Any) -> None:
    def in_place(self: Tensor, *args: Any) -> Tensor:
        self.array = function(self, *args).array
        return self

    operator(f"aten::{name}_")(in_place)


@operator("aten::transpose", "aten::swapaxes", "aten::swapdims")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions."""
    array = self.array
    a, b = axis(dim0, array.ndim), axis(dim1, array.ndim)
    return of_view(self, array.swapaxes(a, b) if array.ndim else array[...])


@operator("aten::t")
def t(self: Tensor) -> Tensor:
    """The transpose of a matrix."""
    if self.array.ndim > 2:
        raise fail(f"t() expects a tensor with <= 2 dimensions, but self is {self.array.ndim}D")
    return of_view(self, self.array.T)


@operator("aten::numpy_T", "prim::T")
def numpy_t(self: Tensor) -> Tensor:
    """Reverse the order of all dimensions."""
    return of_view(self, self.array.T)


@operator("aten::matrix_H")
def matrix_h(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.array.ndim not in {0, 2}:
        raise fail(f"tensor.H is only supported on matrices (2-D tensors). Got {self.array.ndim}-D tensor.")
    return m_h(self)


@operator("aten::mH", "aten::adjoint", "prim::mH")
def m_h(self: Tensor) -> Tensor:
    """The conjugate transpose of each matrix."""
    tensor = m_t(self)
    if self.array.dtype.kind != "c":
        return tensor
    result = Tensor(np.conj(tensor.array))
    result.mirrors = tensor.array
    return result


@operator("aten::mT", "prim::mT")
def m_t(self: Tensor) -> Tensor:
    """The transpose of each matrix."""
    if not self.array.ndim:
        return self
    if self.array.ndim < 2:
        raise fail("tensor.mT is only supported on matrices or batches of matrices.")
    return of_view(self, self.array.swapaxes(-1, -2))


@operator("aten::permute")
def permute(self: Tensor, dims: Any, *more: int) -> Tensor:
    """Reorder dimensions."""
    wanted = [dims, *more] if dims.__class__ is int else dims
    if len(wanted) != self.array.ndim:
        raise fail(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {self.array.ndim} is not equal to len(dims) = {len(wanted)}"
        )
    order = [axis(dim, self.array.ndim) for dim in wanted]
    if len(set(order)) != len(order):
        raise fail("permute(): duplicate dims are not allowed.")
    return of_view(self, self.array.transpose(order))


@operator("aten::movedim", "aten::moveaxis")
def movedim(self: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dimensions to other positions."""
    for item in (source, destination):
        axes(item, max(self.array.ndim, 1), empty_is_all=False)
    if not self.array.ndim:
        return of_view(self, self.array[...])
    return of_view(self, np.moveaxis(self.array, source, destination))


for _name, _function in (
    ("squeeze", squeeze),
    ("unsqueeze", unsqueeze),
    ("transpose", transpose),
    ("t", t),
    ("swapaxes", transpose),
    ("swapdims", transpose),
):
    _changes(_name, _function)


@operator("aten::expand")
def expand(self: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    """Repeat dimensions of size 1 without copying; expansions that tracing inserted for another operator (``implicit``) are ignored."""
    if implicit:
        return self
    array = self.array
    sizes = list(whole_numbers(size))
    lead = len(sizes) - array.ndim
    if lead < 0:
        raise fail(
            f"expand({words_of(self)}{{{list(array.shape)}}}, size={sizes}): the number of sizes provided ({len(sizes)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({array.ndim})"
        )
    shape, steps = [], []
    own = self.strides
    for at, wanted in enumerate(sizes):
        if at < lead:
            if wanted < 0:
                raise fail(f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {at}")
            shape.append(wanted)
            steps.append(0)
            continue
        size_here, step = array.shape[at - lead], own[at - lead]
        if wanted in {-1, size_here}:
            shape.append(size_here)
            steps.append(step)
        elif size_here == 1:
            shape.append(wanted)
            steps.append(0)
        else:
            raise fail(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({size_here}) at non-singleton dimension {at}.  "
                f"Target sizes: {sizes}.  Tensor sizes: {list(array.shape)}"
            )
    return self.as_strided(tuple(shape), tuple(steps))


def words_of(tensor: Tensor) -> str:
    """The legacy tensor type of a tensor."""
    from torch_compat.runtime.operators._common import full_words  # noqa: PLC0415

    return full_words(tensor.array.dtype)


@operator("aten::expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor."""
    return expand(self, list(other.array.shape))


@operator("aten::broadcast_to")
def broadcast_to(self: Tensor, size: list[int]) -> Tensor:
    """Same as :func:`expand`."""
    return expand(self, size)


@operator("aten::broadcast_tensors")
def broadcast_tensors(tensors: list[Tensor]) -> list[Tensor]:
    """Expand to the common broadcast shape."""
    count_views(len(tensors))
    shape = list(broadcast(*(tensor.array for tensor in tensors)))
    return [expand(tensor, shape) for tensor in tensors]


@operator("aten::as_strided")
def as_strided(self: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Tensor:
    """Create any view of the storage."""
    whole_numbers(size)
    if any(number < 0 for number in size):
        raise fail(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if any(step < 0 for step in stride):
        raise fail(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if len(size) != len(stride):
        raise fail(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    start = self.storage_offset if storage_offset is None else storage_offset
    if math.prod(size):
        last = start + sum((number - 1) * step for number, step in zip(size, stride, strict=True))
        room = owner(self.array).nbytes // self.array.itemsize
        if last >= room or start < 0:
            raise fail(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and itemsize {self.array.itemsize} requiring a "
                f"storage size of {(last + 1) * self.array.itemsize} are out of bounds for storage of size {owner(self.array).nbytes}"
            )
    return self.as_strided(tuple(size), tuple(stride), start)


def _as_strided_in_place(self: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Tensor:
    self.array = as_strided(self, size, stride, storage_offset).array
    return self


operator("aten::as_strided_")(_as_strided_in_place)


def count_views(count: int) -> None:
    """Refuse to create too many tensors: each takes as much memory as 64 items of a list."""
    bounded(64 * count)


# ---------------------------------------------------------------------------------------------------------------- copies


@operator("aten::contiguous")
def contiguous_(self: Tensor, *, memory_format: int = 0) -> Tensor:
    """The tensor itself if it is contiguous, else a copy."""
    return self if is_formatted(self.array, memory_format) else Tensor(formatted(self.array, memory_format or 0))


@functional("clone")
def clone(self: Tensor, *, memory_format: int | None = None) -> Tensor:
    """A copy."""
    return Tensor(formatted(self.array, memory_format))


@operator("aten::detach", "aten::data", "aten::_detach", gradient=False)
def detach(self: Tensor) -> Tensor:
    """The same memory, without gradients."""
    tensor = Tensor(self.array[...])
    tensor.is_detached = True
    return tensor


@operator("aten::detach_", gradient=False)
def detach_in_place(self: Tensor) -> Tensor:
    """Detach from gradients in place."""
    self.requires_grad = False
    self.is_detached = True
    return self


@operator("aten::requires_grad_", gradient=False)
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether gradients are required."""
    if requires_grad and self.dtype.category < 2:
        raise fail("only Tensors of floating point dtype can require gradients")
    self.requires_grad = requires_grad
    return self


@operator("aten::alias", "aten::lift_fresh", "aten::lift")
def alias(self: Tensor) -> Tensor:
    """Another view of the whole tensor."""
    return of_view(self, self.array[...])


@operator("aten::resize_", gradient=False)
def resize_(self: Tensor, size: Any, *, memory_format: int | None = None) -> Tensor:
    """Change the shape; memory is allocated if necessary."""
    return resized_as(self, whole_numbers(size), memory_format)


@operator("aten::resize_as_", gradient=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: int | None = None) -> Tensor:
    """Change to the shape of another tensor, and to its memory order if the format is to be preserved."""
    wanted = format_of(the_template.array) if memory_format == PRESERVE else memory_format
    return resized_as(self, the_template.array.shape, wanted)


@operator("aten::atleast_1d")
def atleast_1d(self: Any) -> Any:
    """Add dimensions up to at least one."""
    if self.__class__ is list:
        count_views(len(self))
        return [atleast_1d(item) for item in self]
    return self if self.array.ndim else of_view(self, self.array.reshape(1))


@operator("aten::atleast_2d")
def atleast_2d(self: Any) -> Any:
    """Add dimensions up to at least two."""
    if self.__class__ is list:
        count_views(len(self))
        return [atleast_2d(item) for item in self]
    return self if self.array.ndim > 1 else of_view(self, self.array.reshape(1, -1))


@operator("aten::atleast_3d")
def atleast_3d(self: Any) -> Any:
    """Add dimensions up to at least three."""
    if self.__class__ is list:
        count_views(len(self))
        return [atleast_3d(item) for item in self]
    array = self.array
    return self if array.ndim > 2 else of_view(self, array[..., None] if array.ndim == 2 else array.reshape(1, -1, 1))
