"""Copies of what a view would show, and variants of in-place operators that leave their tensor unchanged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import cast, contiguous, fail, functional, into
from torch_compat.runtime.operators._memory_formats import PRESERVE, format_of, formatted, resized_as
from torch_compat.runtime.operators.casting import copy_1_8, copy_2_0
from torch_compat.runtime.operators.embedding import embedding_renorm_, embedding_renorm_1_0_
from torch_compat.runtime.operators.indexing import put_
from torch_compat.runtime.operators.views import resolved, view
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor, owner, strided

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def _copied(view: Tensor) -> Tensor:
    return Tensor(np.array(view.array, order="C"))


def _resized_into(out: Tensor, view: Tensor) -> Tensor:
    return into(out, np.array(view.array, order="C"), exact=True)


def _view(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    keywords.pop("implicit", None)  # an argument that tracing adds, which a copy does not have
    return resolve(f"aten::{name}")(*(args[:2] if name == "expand" else args), **keywords)


def _copy_of_view(name: str) -> None:
    """Register the copy of a view. Up to 1.13 it is broadcast into ``out``; since 2.0 ``out`` must have the same dtype, and is resized."""

    def call_1_0(*args: Any, out: Any = None, **keywords: Any) -> Any:
        result = _view(name, args, keywords)
        return _copied(result) if out is None else copy_1_8(out, result)

    def call(*args: Any, out: Any = None, **keywords: Any) -> Any:
        result = _view(name, args, keywords)
        return _copied(result) if out is None else _resized_into(out, result)

    operator(f"aten::{name}_copy")(call_1_0)
    operator(f"aten::{name}_copy", since="2.0.0")(call)


def _copy_of_views(name: str, form: str, steps: dict[str, Callable[[Tensor, Tensor], object]]) -> None:
    """Register the copy of several views, each into its tensor of ``out``; ``steps`` has the function to use from each release on."""

    def version(step: Callable[[Tensor, Tensor], object]) -> Callable[..., Any]:
        def call(*args: Any, out: list[Tensor] | None = None, **keywords: Any) -> Any:
            result = _view(name, args, keywords)
            if out is None:
                return [_copied(item) for item in result]
            if len(out) != len(result):
                raise fail(f"{name}_copy{form}_out() expected an out= argument of size {len(result)}, got size {len(out)}")
            for target, shown in zip(out, result, strict=True):
                step(target, shown)
            return None

        return call

    for since, step in steps.items():
        operator(f"aten::{name}_copy", since=since)(version(step))


for _name in (
    "alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "squeeze", "t", "transpose", "unfold",
    "unsqueeze", "view_as_complex", "view_as_real",
):  # fmt: skip
    _copy_of_view(_name)
_copy_of_views("split", "_Tensor", {"1.0.0": copy_1_8, "2.0.0": copy_2_0})
_copy_of_views("unbind", "_int", {"1.0.0": copy_1_8, "2.0.0": copy_2_0, "2.7.0": _resized_into})
_copy_of_views("split_with_sizes", "", {"1.0.0": copy_1_8, "2.0.0": copy_2_0, "2.3.0": _resized_into})


@operator("aten::view_copy")
def view_copy_1_12(self: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """In 1.12, same as ``view``, which refuses tensors with incompatible strides."""
    result = view(self, size)
    return _copied(result) if out is None else copy_1_8(out, result)


@operator("aten::view_copy", since="1.13.0")
def view_copy_1_13(self: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """In 1.13, ``out`` is not resized."""
    result = view_copy(self, size)
    return result if out is None else copy_1_8(out, result)


@operator("aten::view_copy", since="2.0.0")
def view_copy(self: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """A copy of another shape, or of the same bytes as another type."""
    if size.__class__ is list:
        result = Tensor(contiguous(self.array).reshape(resolved(size, self.array.size)).copy())
    else:
        result = _copied(view(self, size))
    return result if out is None else _resized_into(out, result)


@operator("aten::as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the memory of a tensor, with a view of it written."""
    base = owner(self.array)
    memory = np.array(base if base.flags.c_contiguous else base.ravel(order="K"))
    kept = strided(memory, self.shape, self.strides, self.storage_offset)
    offset = self.storage_offset if storage_offset is None else storage_offset
    if any(step < 0 for step in stride):
        raise fail(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    part = strided(memory, tuple(size), tuple(stride), offset)
    if part.shape != src.array.shape:
        raise fail(
            f"expected src to have a size equal to the slice of self. src size = {list(src.array.shape)}, slice size = {list(part.shape)}"
        )
    part[...] = cast(src.array, part.dtype)
    return Tensor(kept) if out is None else into(out, kept)


@functional("put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with elements written by linear index."""
    return put_(Tensor(self.array.copy()), index, source, accumulate)


def _of_floats(self: Tensor, indices: Tensor) -> Tensor:
    if self.array.dtype.kind in "iub" and indices.array.size:
        raise fail("norm(): input dtype should be either floating point or complex")
    return Tensor(self.array.copy())


@functional("embedding_renorm")
def embedding_renorm_1_12(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Up to 2.3 the norm of one element is a root of its power."""
    return embedding_renorm_1_0_(_of_floats(self, indices), indices, max_norm, norm_type)


@functional("embedding_renorm", since="2.4.0")
def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """A copy where rows with a norm above a limit are scaled down to the limit."""
    return embedding_renorm_(_of_floats(self, indices), indices, max_norm, norm_type)


@operator("aten::resize")
def resize(self: Tensor, size: list[int], *, memory_format: int | None = None, out: Tensor | None = None) -> Tensor:
    """A copy, in the order of the tensor's memory, with another shape."""
    if math.prod(size) > self.array.size:
        raise Unsupported(
            "aten::resize returns more elements than the tensor has; the additional memory is uninitialized", code="operator"
        )
    tensor = resized_as(Tensor(formatted(self.array, PRESERVE)), tuple(size), memory_format)
    return tensor if out is None else into(out, tensor.array)


@operator("aten::resize_as")
def resize_as(self: Tensor, the_template: Tensor, *, memory_format: int | None = None, out: Tensor | None = None) -> Tensor:
    """A copy with the shape of the other tensor, and with its memory order if the format is preserved."""
    wanted = format_of(the_template.array) if memory_format == PRESERVE else memory_format
    return resize(self, list(the_template.array.shape), memory_format=wanted, out=out)
