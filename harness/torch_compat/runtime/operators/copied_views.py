"""Copies of what a view would show, and forms of operators that write in place which leave their tensor as it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime.operators._common import cast, fail, functional, into
from torch_compat.runtime.operators._memory_formats import PRESERVE, format_of, formatted, resized_as
from torch_compat.runtime.operators.embedding import embedding_renorm_, embedding_renorm_1_0_
from torch_compat.runtime.operators.indexing import put_
from torch_compat.runtime.registry import operator, resolve
from torch_compat.runtime.tensor import Tensor, owner, strided

__all__: list[str] = []


def _copied(view: Tensor) -> Tensor:
    return Tensor(np.array(view.array, order="C"))


def _copy_of_view(name: str) -> None:
    def call(*args: Any, out: Any = None, **keywords: Any) -> Any:
        keywords.pop("implicit", None)  # of what tracing puts in, which a copy has not
        found = resolve(f"aten::{name}")(*(args[:2] if name == "expand" else args), **keywords)
        if found.__class__ is list:
            if out is not None:
                raise Unsupported("copies of several views into tensors that are given are not modelled", code="operator")
            return [_copied(one) for one in found]
        return _copied(found) if out is None else into(out, np.array(found.array, order="C"), exact=True)

    operator(f"aten::{name}_copy")(call)


for _name in (
    "alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes", "squeeze",
    "t", "transpose", "unbind", "unfold", "unsqueeze", "view_as_complex", "view_as_real",
):  # fmt: skip
    _copy_of_view(_name)


@operator("aten::as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the memory of a tensor, of which a view is written."""
    base = owner(self.array)
    memory = np.array(base if base.flags.c_contiguous else base.ravel(order="K"))
    kept = strided(memory, self.shape, self.strides, self.storage_offset)
    offset = self.storage_offset if storage_offset is None else storage_offset
    if any(one < 0 for one in stride):
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
    """A copy with elements written by their number in order."""
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
    """A copy in which rows whose norm is above a limit are scaled down to it."""
    return embedding_renorm_(_of_floats(self, indices), indices, max_norm, norm_type)


@operator("aten::resize")
def resize(self: Tensor, size: list[int], *, memory_format: int | None = None, out: Tensor | None = None) -> Tensor:
    """A copy, in the order of the tensor's memory, with another shape."""
    if math.prod(size) > self.array.size:
        raise Unsupported("aten::resize copies into more memory than the tensor has, which nothing writes", code="operator")
    found = resized_as(Tensor(formatted(self.array, PRESERVE)), tuple(size), memory_format)
    return found if out is None else into(out, found.array)


@operator("aten::resize_as")
def resize_as(self: Tensor, the_template: Tensor, *, memory_format: int | None = None, out: Tensor | None = None) -> Tensor:
    """A copy with the other's shape, and its order in memory where the format is to be preserved."""
    wanted = format_of(the_template.array) if memory_format == PRESERVE else memory_format
    return resize(self, list(the_template.array.shape), memory_format=wanted, out=out)
