"""Dtype conversion and writing elements into a tensor: ``to``, ``copy_``, ``fill_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.runtime import dtypes
from torch_compat.runtime.operators._common import (
    Array,
    Scalar,
    broadcast,
    cast,
    checked_filler,
    fail,
    filled_scalar,
    into,
    on_cpu,
    write,
)
from torch_compat.runtime.operators._memory_formats import PRESERVE, check_rank, formatted
from torch_compat.runtime.registry import grad, operator
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Device
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    Element = Callable[[Scalar, np.dtype[Any], int], Array]


HALF_AND_FLOAT = frozenset({np.dtype(np.float16), np.dtype(np.float32)})


def to_type(self: Tensor, kind: np.dtype[Any], *, copy: bool = False, memory_format: int | None = None) -> Tensor:
    """Return the tensor itself if nothing changes, else a copy."""
    array = self.array
    if array.dtype == kind and not copy and memory_format in {None, 0, 1}:
        return self
    changed = cast(array, kind)
    return Tensor(formatted(changed, memory_format) if changed is array or memory_format not in {None, PRESERVE} else changed)


def _strided(layout: int | None) -> None:
    """Refuse a layout other than that of a strided tensor (0)."""
    if layout:
        raise fail(
            f"to(options) doesn't support converting to a different layout, but got self.layout being Strided and options.layout set as {layout}"
        )


@operator("aten::to")
def to(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """The overloads differ in their arguments: a device, the number of a dtype, or another tensor, then flags."""
    kind: np.dtype[Any] = self.array.dtype
    flags: list[bool] = []
    memory_format = keywords.pop("memory_format", None)
    for value in args:
        if value is None or value.__class__ is str or value.__class__ is Device:
            on_cpu(value)
        elif value.__class__ is Tensor:
            kind = value.array.dtype
        elif value.__class__ is bool:
            flags.append(value)
        elif len(flags) >= 2:
            memory_format = value
        else:
            kind = dtypes.as_dtype(value).array  # type: ignore[union-attr]
    if keywords.get("other") is not None:
        kind = keywords["other"].array.dtype
    if keywords.get("dtype") is not None:
        kind = dtypes.as_dtype(keywords["dtype"]).array  # type: ignore[union-attr]
    _strided(keywords.get("layout"))
    on_cpu(keywords.get("device"))
    copy = keywords.get("copy", flags[1] if len(flags) > 1 else False)
    return to_type(self, kind, copy=copy, memory_format=memory_format)


@operator("aten::_to_copy")
def to_copy(
    self: Tensor, *, dtype: Any = None, memory_format: int | None = None, out: Tensor | None = None, **options: Any
) -> Tensor:
    """Copy to another dtype."""
    if out is not None:
        check_rank(self.array.ndim, memory_format)
        return into(out, self.array)
    _strided(options.get("layout"))
    on_cpu(options.get("device"))
    tensor = dtypes.as_dtype(dtype)
    return to_type(self, self.array.dtype if tensor is None else tensor.array, copy=True, memory_format=memory_format)


@operator("aten::type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype of the other tensor."""
    return to_type(self, other.array.dtype)


@operator("aten::cpu")
def cpu(self: Tensor) -> Tensor:
    """Return the tensor itself."""
    return self


@operator("aten::pin_memory")
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Not supported: there is no accelerator to pin memory for."""
    del self, device
    raise fail("Cannot access accelerator device when none is available.")


def _casts() -> None:
    for row in DTYPES.values():
        if row.word not in {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"}:
            continue
        array_type = dtypes.DTYPES[row.name].array

        def call(self: Tensor, non_blocking: bool = False, *, array_type: Any = array_type) -> Tensor:
            del non_blocking
            return to_type(self, array_type)

        operator(f"aten::_cast_{row.word}")(call)


_casts()


# ----------------------------------------------------------------------------------------------------------------- writing


def overwrite(self: Tensor, value: Array) -> Tensor:
    """Write elements, converted to the dtype of the tensor."""
    return write(self, cast(value, self.array.dtype))


@operator("aten::copy_")
def copy_1_0(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Up to 2.7 a number must be in the range of the dtype."""
    return _copied(self, src, checked_filler, non_blocking)


@operator("aten::copy_", since="1.8.0")
def copy_1_8(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Up to 1.13 contiguous tensors of float16 and float32 are copied by the number of elements of self, whatever the two shapes are."""
    if src.__class__ is Tensor and _by_count(self.array, src.array):
        if src.array.size < self.array.size:
            raise Unsupported(
                "aten::copy_ reads past the end of a float16 or float32 source with fewer elements", code="operator"
            )
        return overwrite(self, src.array.reshape(-1)[: self.array.size].reshape(self.array.shape))
    return copy_1_0(self, src, non_blocking)


def _by_count(target: Array, source: Array) -> bool:
    if target.shape == source.shape or not (target.flags.c_contiguous and source.flags.c_contiguous):
        return False
    return {target.dtype, source.dtype} == HALF_AND_FLOAT


@operator("aten::copy_", since="2.0.0")
def copy_2_0(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Up to 2.7 a number must be in the range of the dtype; tensors are broadcast, whatever their dtypes."""
    return _copied(self, src, checked_filler, non_blocking)


@operator("aten::copy_", since="2.8.0")
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of the other tensor."""
    return _copied(self, src, filled_scalar, non_blocking)


def _copied(self: Tensor, src: Any, element: Element, non_blocking: bool) -> Tensor:
    del non_blocking
    if src.__class__ is not Tensor:
        return _fill(self, src, element)
    if broadcast(self.array, src.array) != self.array.shape:
        raise fail(
            f"output with shape {list(self.array.shape)} doesn't match the broadcast shape {list(broadcast(self.array, src.array))}"
        )
    return overwrite(self, src.array)


@operator("aten::copy", of="tensor")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """A tensor with the shape and dtype of the first and the elements of the other."""
    del non_blocking
    return Tensor(np.broadcast_to(cast(src.array, self.array.dtype), self.array.shape).copy())


def _fill(self: Tensor, value: Any, element: Element, *, checks: bool = False) -> Tensor:
    """Fill with a number; ``checks``: a tensor's value must be in range, too."""
    if value.__class__ is Tensor:
        if value.array.ndim:
            raise fail(f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions.")
        if checks:
            return _fill(self, value.item(), element)
        not_a_leaf(self)
        self.array[...] = cast(value.array, self.array.dtype)
        return self
    not_a_leaf(self)
    self.array[...] = element(value, self.array.dtype, self.array.size)
    return self


def _fills() -> None:
    def version(since: str, element: Element, *, checks: bool = False) -> None:
        def in_place(self: Tensor, value: Any) -> Tensor:
            return _fill(self, value, element, checks=checks)

        def call(self: Tensor, value: Any) -> Tensor:
            return _fill(Tensor(np.empty_like(self.array)), value, element, checks=checks)

        def diagonal(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
            number = element(fill_value, self.array.dtype, min(self.array.shape, default=0))
            np.fill_diagonal(self.array, number, wrap)
            return self

        operator("aten::fill_", since=since)(in_place)
        operator("aten::fill", since=since)(call)
        if since != "2.2.0":  # which is about tensors
            operator("aten::fill_diagonal_", since=since)(diagonal)

    version("1.0.0", checked_filler, checks=True)
    version("2.2.0", checked_filler)
    version("2.8.0", filled_scalar)


_fills()


@operator("aten::zero_")
def zero_(self: Tensor) -> Tensor:
    """Fill with zeros."""
    not_a_leaf(self)
    self.array[...] = 0
    return self


@operator("aten::zero")
def zero(self: Tensor) -> Tensor:
    """A new tensor of zeros."""
    return Tensor(np.zeros_like(self.array))


def not_a_leaf(self: Tensor) -> None:
    """Refuse to write into a parameter.

    Raises:
        Raised: the tensor is a parameter that requires gradients.
    """
    if self.requires_grad and self.is_parameter and grad.enabled:
        raise fail("a leaf Variable that requires grad is being used in an in-place operation.")


@operator("aten::result_type", gradient=False)
def result_type(tensor: Any, other: Any) -> int:
    """The promoted dtype of two operands, as the number of a ScalarType."""
    return dtypes.result_type((tensor, other)).code


@operator("aten::promote_types", gradient=False)
def promote_types(type1: Any, type2: Any) -> int:
    """The promoted dtype of two dtypes, as the number of a ScalarType."""
    return dtypes.promote(dtypes.as_dtype(type1), dtypes.as_dtype(type2)).code  # type: ignore[arg-type]


@operator("aten::can_cast", gradient=False)
def can_cast_1_0(from_: Any, to: Any) -> bool:
    """Up to 1.5, complex numbers can be cast to every dtype but bool."""
    a, b = dtypes.as_dtype(from_), dtypes.as_dtype(to)
    return can_cast(from_, to) or (a.category == dtypes.COMPLEX64.category and b.category > 0)  # type: ignore[union-attr]


@operator("aten::can_cast", since="1.6.0", gradient=False)
def can_cast(from_: Any, to: Any) -> bool:
    """Whether a result of one dtype can be cast to another."""
    a, b = dtypes.as_dtype(from_), dtypes.as_dtype(to)
    return a.category <= b.category  # type: ignore[union-attr]
