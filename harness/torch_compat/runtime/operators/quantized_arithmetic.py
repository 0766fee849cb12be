"""Sums, products and joins of quantized tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.libraries import libraries
from torch_compat.runtime.opaque import ELEMENTS
from torch_compat.runtime.operators._common import Array, fail
from torch_compat.runtime.operators._memory_formats import CHANNELS_LAST, is_formatted
from torch_compat.runtime.operators._products import sized
from torch_compat.runtime.operators._quantized_elements import (
    affine,
    by_elements,
    channels_last,
    integers,
    like,
    numbers,
    quantized_as,
    requantized_whole,
)
from torch_compat.runtime.operators._typed import typed
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

Number = int | float | bool
NUMBERS = frozenset({int, float, bool})
IN_INTEGERS = Release("1.5.0")
"""The first release that multiplies integers; before, the numbers that they represent."""


def _two(qa: OpaqueTensor, qb: OpaqueTensor, name: str) -> tuple[Any, Any]:
    first, second = affine(qa, name), affine(qb, name)
    if qa.dtype != qb.dtype:
        raise fail(f"{name} operands should have same data type.")
    try:
        shape = np.broadcast_shapes(qa.shape, qb.shape)
    except ValueError as error:
        raise fail(f"The size of tensor a {list(qa.shape)} must match the size of tensor b {list(qb.shape)}") from error
    sized(*shape)
    return first, second


def _added(qa: OpaqueTensor, qb: OpaqueTensor, scale: float, zero: int, *, relu: bool) -> OpaqueTensor:
    (a, a_scale, a_zero), (b, b_scale, b_zero) = _two(qa, qb, "Add")

    def add(x: Array, y: Array, *, fused: bool) -> Array:
        total = numbers(x, a_scale, a_zero, fused=fused) + numbers(y, b_scale, b_zero, fused=fused)
        if relu:
            total = np.maximum(total, np.float32(0))
        return integers(total, scale, zero, qa.dtype.name, fused=fused)

    return like(qa, by_elements(add, a, b), scale, zero)


def _multiplied(qa: OpaqueTensor, qb: OpaqueTensor, scale: float, zero: int, *, relu: bool) -> OpaqueTensor:
    (a, a_scale, a_zero), (b, b_scale, b_zero) = _two(qa, qb, "Mul")
    factor = np.float32(np.float32(a_scale) * np.float32(b_scale) * (np.float32(1) / np.float32(scale)))

    def multiply(x: Array, y: Array, *, fused: bool) -> Array:
        if libraries.release < IN_INTEGERS:
            result = numbers(x, a_scale, a_zero, fused=fused) * numbers(y, b_scale, b_zero, fused=fused)
            return integers(np.maximum(result, np.float32(0)) if relu else result, scale, zero, qa.dtype.name, fused=fused)
        product = ((x.astype(np.int64) - a_zero) * (y.astype(np.int64) - b_zero)).astype(np.int32)
        return requantized_whole(np.maximum(product, 0) if relu else product, factor, zero, qa.dtype.name)

    return like(qa, by_elements(multiply, a, b), scale, zero)


def _relu(elements: Array, zero: int, *, relu: bool) -> Array:
    return np.maximum(elements, elements.dtype.type(zero)) if relu else elements.copy(order="K")


def _with_number_added(qa: OpaqueTensor, value: float, *, relu: bool) -> OpaqueTensor:
    """Add a number by moving the zero point; if it would leave the range, the scale grows instead."""
    a, scale, zero = affine(qa, "Add")
    bounds = np.iinfo(ELEMENTS[qa.dtype.name])
    least, most = int(bounds.min), int(bounds.max)
    number = int(np.rint(value / scale)) if scale else 0
    moved = zero - number
    if least <= moved <= most:
        return like(qa, _relu(a, moved, relu=relu), scale, moved)
    if moved < least:
        wider, place = (most - moved) / (most - least) * scale, least
    else:
        wider, place = (moved - least) / (most - least) * scale, most
    factor = np.float32(np.float32(scale) * (np.float32(1) / np.float32(wider)))
    whole = (a.astype(np.int64) - zero + number).astype(np.int32)
    result = requantized_whole(np.maximum(whole, 0) if relu else whole, factor, place, qa.dtype.name)
    return like(qa, result, wider, place)


def _with_number_multiplied(qa: OpaqueTensor, value: float, *, relu: bool) -> OpaqueTensor:
    """Multiply by a number by changing the scale; a negative number mirrors the integers."""
    a, scale, zero = affine(qa, "Mul")
    bounds = np.iinfo(ELEMENTS[qa.dtype.name])
    if value > 0:
        return like(qa, _relu(a, zero, relu=relu), value * scale, zero)
    if value == 0:
        return like(qa, np.zeros_like(a), 1.0, 0)
    place = int(bounds.max) - (zero - int(bounds.min))
    mirrored = (int(bounds.max) + int(bounds.min) - a.astype(np.int64)).astype(a.dtype)
    return like(qa, _relu(mirrored, place, relu=relu), abs(value) * scale, place)


def _number(value: Any) -> float:
    """A number, or the element of a tensor.

    Raises:
        Raised: the value is neither.
    """
    if value.__class__ is Tensor and value.array.size == 1 and value.array.dtype.kind in "iufb":
        value = value.item()
    number = float(value) if isinstance(value, int | float) else math.nan
    if not math.isfinite(number):
        raise fail("expected a finite number or a tensor with one")
    return number


def _written(out: Any, result: OpaqueTensor) -> OpaqueTensor:
    """Write the integers of a result into another tensor.

    Raises:
        Unsupported: the tensor has another shape or dtype.
    """
    if out.__class__ is not OpaqueTensor or out.shape != result.shape or out.dtype != result.dtype:
        raise Unsupported("the reference reader writes quantized results only into tensors of the same shape", code="operator")
    out.parts["elements"][...] = result.parts["elements"]
    out.parts.update(scale=result.parts["scale"], zero_point=result.parts["zero_point"])
    return out


TENSORS = {"add": _added, "mul": _multiplied}
WITH_NUMBERS = {"add": _with_number_added, "mul": _with_number_multiplied}


def _binary(kind: str, *, relu: bool) -> None:
    of_tensors, of_number = TENSORS[kind], WITH_NUMBERS[kind]
    suffix = "_relu" if relu else ""

    @typed(f"quantized::{kind}{suffix}")
    def binary(
        qa: Any, qb: Any = None, scale: Any = None, zero_point: Any = None, *, b: Any = None, out: Any = None
    ) -> OpaqueTensor:
        """Two quantized tensors, or one and a number in either order; with a scale and zero point, or into ``out``."""
        second = b if qb is None else qb
        if qa.__class__ is not OpaqueTensor:
            qa, second = second, qa
        if qa.__class__ is not OpaqueTensor:
            raise fail(f"{kind}{suffix}() expects a quantized tensor")
        if second.__class__ is not OpaqueTensor:
            result = of_number(qa, _number(second), relu=relu)
            target = scale if out is None else out
            return result if target is None else _written(target, result)
        if scale.__class__ is OpaqueTensor or out is not None:
            return into(qa, second, scale if out is None else out)
        if not isinstance(scale, int | float) or zero_point.__class__ is not int:
            raise fail(f"{kind}{suffix}() expects a scale and a zero point")
        return of_tensors(qa, second, float(scale), zero_point, relu=relu)

    @typed(f"quantized::{kind}{suffix}_out")
    def into(qa: OpaqueTensor, qb: OpaqueTensor, out: OpaqueTensor) -> OpaqueTensor:
        """Two quantized tensors; the result has the scale and the zero point of ``out``."""
        _, scale, zero = affine(out, kind)
        return _written(out, of_tensors(qa, qb, scale, zero, relu=relu))

    @typed(f"quantized::{kind}_scalar{suffix}")
    def with_number(qa: OpaqueTensor, b: Any) -> OpaqueTensor:
        """A quantized tensor and a number."""
        return of_number(qa, _number(b), relu=relu)

    @typed(f"quantized::{kind}_scalar{suffix}_out")
    def with_number_into(qa: OpaqueTensor, b: Any, out: OpaqueTensor) -> OpaqueTensor:
        """A quantized tensor and a number; ``out`` gets the scale and the zero point of the result."""
        return _written(out, of_number(qa, _number(b), relu=relu))


for _kind in TENSORS:
    for _with_relu in (False, True):
        _binary(_kind, relu=_with_relu)


# ----------------------------------------------------------------------------------------------------------------- joining


def joined(tensors: list[Any], dim: int, scale: float | None, zero: int | None, *, relu: bool) -> OpaqueTensor:
    """Join quantized tensors; integers with another scale or zero point are converted."""
    if not tensors:
        raise fail("Expected qxs to be a list of quantized tensors")
    given = [affine(item, "Cat", "quint8", "qint8", "qint32") for item in tensors]
    first = tensors[0]
    if any(item.dtype != first.dtype for item in tensors):
        raise fail("All dtypes must be the same.")
    to_scale, to_zero = given[0][1] if scale is None else scale, given[0][2] if zero is None else zero
    ndim = len(first.shape)
    if not -ndim <= dim < ndim:
        raise fail(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    dim %= ndim
    if any(
        item.ndim != ndim or item.shape[:dim] + item.shape[dim + 1 :] != first.shape[:dim] + first.shape[dim + 1 :]
        for item, *_ in given
    ):
        raise fail("Sizes of tensors must match except in dimension")
    sized(*first.shape[:dim], sum(item.shape[dim] for item, *_ in given), *first.shape[dim + 1 :])
    parts = []
    with np.errstate(all="ignore"):
        for elements, own_scale, own_zero in given:
            values = numbers(elements, own_scale, own_zero, fused=False)
            parts.append(Tensor(np.maximum(values, np.float32(0)) if relu else values))
        whole = resolve("aten::cat", libraries.release)(parts, dim).array
        if to_scale.__class__ not in NUMBERS or to_zero.__class__ is not int:
            raise fail("cat() expects a scale and a zero point")
        last = dim == 1 and all(is_formatted(item, CHANNELS_LAST) for item, *_ in given)
        if not last:
            return quantized_as(first, whole, to_scale, to_zero)
        elements = integers(whole, float(to_scale), to_zero, first.dtype.name, fused=False)
    return like(first, channels_last(elements), to_scale, to_zero)


def _cat(name: str, *, relu: bool) -> None:
    @typed(f"quantized::{name}")
    def cat(qx: list[Any], dim: int, scale: float | None, zero_point: int | None) -> OpaqueTensor:
        """Join quantized tensors."""
        return joined(qx, dim, scale, zero_point, relu=relu)

    @typed(f"quantized::{name}_out")
    def cat_out(qx: list[Any], dim: int, out: OpaqueTensor) -> OpaqueTensor:
        """Join quantized tensors into another one, which keeps its scale and zero point."""
        _, scale, zero = affine(out, "Cat")
        return _written(out, joined(qx, dim, scale, zero, relu=relu))


_cat("cat", relu=False)
_cat("cat_relu", relu=True)
