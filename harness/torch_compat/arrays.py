"""The gate for views: every array over memory that was not allocated for exactly its shape is created here.

numpy does not protect its own constructor. The check in ``numpy.ndarray(shape, dtype, buffer, offset, strides)`` adds products of
strides and sizes in 64-bit arithmetic that wraps around; it is skipped for a buffer of 0 bytes; and ``numpy.dtype`` of a record
adds offsets and sizes in 32 bits. ``as_strided`` checks nothing. An archive chooses those numbers, so a view that numpy accepts
may read and write all memory of the process. The functions below compute the first and the last byte that a view can touch with
Python's exact integers, and refuse every view that leaves the existing bytes.

No other module calls ``as_strided``, passes ``buffer=`` or ``strides=`` to an array constructor, calls ``numpy.frombuffer``, or builds a
dtype from parts supplied by an archive; ``tests/repository/test_gate.py`` fails if one does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Corrupt, Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MOST_DIMENSIONS",
    "contiguous_strides",
    "counted",
    "diagonal",
    "elements",
    "extent",
    "nested_dtype",
    "record_dtype",
    "repeated",
    "sized_dtype",
    "view",
]

Array = np.ndarray[Any, np.dtype[Any]]
Memory = bytes | bytearray | memoryview | Array

WIDEST = (1 << 63) - 1  # bytes: the largest count in numpy
LARGEST_ITEM = (1 << 31) - 1  # bytes of one element: numpy counts them in 32 bits
MOST_FIELDS = 4096  # in one record
MOST_DIMENSIONS = 64  # in both numpy and torch
MOST_REPEATED = 1 << 31  # elements produced by repeating or counting
UNIT_BYTES = {"S": 1, "V": 1, "U": 4}  # of dtypes whose code includes a length


def extent(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> tuple[int, int]:
    """The first position that a view touches, and the position after the last; both are ``offset`` for a view without elements.

    Parameters:
        shape: sizes, none negative.
        strides: one per dimension, of either sign, in the same unit as the offset and the result: elements or bytes. In bytes, the second
            result is the start of the last element plus 1.
    """
    low = high = offset
    for size, step in zip(shape, strides, strict=True):
        if size == 0:
            return offset, offset
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high + 1


def _refuse(
    shape: Sequence[int], strides: Sequence[int], offset: int, dtype: np.dtype[Any], room: int, where: str | None
) -> Corrupt:
    first, end = extent(shape, strides, offset)
    message = (
        f"a view of {dtype} with shape {_short(shape)}, strides {_short(strides)} and offset {_number(offset)} needs "
        f"elements {_number(first)} to {_number(end)}; its storage has {room} bytes, {room // (dtype.itemsize or 1)} elements"
    )
    return Corrupt(message, where=where, code="outside-storage")


def view(
    memory: Memory,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    strides: Sequence[int] | None = None,
    offset: int = 0,
    *,
    order: str = "C",
    where: str | None = None,
) -> Array:
    """Create an array over existing memory.

    Parameters:
        memory: contiguous bytes; the array keeps them alive, and is writable if they are.
        dtype: of the elements; not of Python objects.
        shape: sizes.
        strides: in elements, of either sign; row-major by default.
        offset: of the first element, in elements.
        order: ``C`` or ``F``; used if no strides are given.
        where: file and record, for errors.

    Raises:
        Corrupt: the view touches bytes outside the memory, or its numbers do not describe a view.
        Unsupported: numpy has no such array: too many dimensions or too many elements.
    """
    if max(len(shape), len(strides or ())) > MOST_DIMENSIONS:  # computing their product could take forever
        message = f"a view has {max(len(shape), len(strides or ()))} dimensions; numpy has at most {MOST_DIMENSIONS}"
        raise Unsupported(message, where=where, code="numpy-limits")
    size = dtype.itemsize
    if dtype.hasobject or (isinstance(memory, np.ndarray) and memory.dtype.hasobject):
        raise Corrupt("cannot view references to Python objects", where=where, code="bad-tensor")
    room = memory.nbytes if isinstance(memory, memoryview | np.ndarray) else len(memory)
    if strides is None:
        if order == "C" and offset.__class__ is int and offset >= 0:  # nearly every view: one product is the only check needed
            count = 1
            for item in shape:
                if item.__class__ is not int or item <= 0:
                    break
                count *= item
            else:
                if 0 < size * (offset + count) <= room:
                    return np.ndarray(tuple(shape), dtype, memory, offset * size)
        strides = contiguous_strides(shape, order)
    if len(strides) != len(shape):
        raise Corrupt(f"a view of {len(shape)} dimensions has {len(strides)} strides", where=where, code="bad-tensor")
    for number in (*shape, *strides, offset):
        if number.__class__ is not int:
            raise Corrupt(f"expected an integer in a view, got {type(number).__name__}", where=where, code="bad-tensor")
    if any(entry < 0 for entry in shape):
        raise Corrupt(f"a view has shape {_short(shape)}", where=where, code="bad-tensor")
    if 0 in shape:
        if not 0 <= offset * size <= room:
            offset = 0  # a view without elements has no position; torch allows it to begin after the end
    else:
        first, end = extent(shape, strides, offset)
        if first < 0 or end * size > room:
            raise _refuse(shape, strides, offset, dtype, room, where)
    steps = tuple([step * size for step in strides])
    if any(not -WIDEST <= step <= WIDEST for step in steps) or math.prod(shape) * size > WIDEST:
        raise Unsupported(
            f"numpy does not support an array with the shape {_short(shape)} and the strides {_short(strides)}",
            where=where,
            code="numpy-limits",
        )
    try:
        return np.ndarray(tuple(shape), dtype, memory, offset * size, steps)
    except (ValueError, OverflowError, MemoryError) as error:
        message = f"numpy does not support an array of {dtype} with the shape {_short(shape)} and the strides {_short(strides)}: {error}"
        raise Unsupported(message, where=where, code="numpy-limits") from error


def contiguous_strides(shape: Sequence[int], order: str = "C") -> tuple[int, ...]:
    """The strides of an array without gaps, in elements: row-major, or column-major with ``order="F"``."""
    steps = []
    step = 1
    for size in shape if order == "F" else reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(steps if order == "F" else reversed(steps))


def elements(memory: bytes | bytearray | memoryview, dtype: np.dtype[Any]) -> Array:
    """All whole elements in a buffer, as a one-dimensional array; the bytes of a truncated last element are left out.

    The array keeps a view of the memory, so a mapped file stays mapped, and a bytearray cannot shrink, while the array is alive.
    """
    if dtype.hasobject:
        raise Corrupt("cannot view references to Python objects", code="bad-tensor")
    count = len(memory) // dtype.itemsize
    return np.frombuffer(memory, dtype, count) if count else np.zeros(0, dtype)


# ------------------------------------------------------------------------------------------------ functions that do not check
# These numpy functions trust their arguments: two add sizes in 64 bits and write past the end of the array that they then allocate, one
# negates a 32-bit offset that has no negative.


def diagonal(array: Array, offset: int = 0, first: int = 0, second: int = 1) -> Array:
    """Like ``numpy.diagonal``, for any offset; the result is empty if the offset lies outside the array."""
    rows, columns = array.shape[first], array.shape[second]
    return np.diagonal(array, max(-rows, min(columns, offset)), first, second)


def repeated(array: Array, counts: Any, axis: int | None = None) -> Array:
    """Like ``numpy.repeat``, with an exact sum of the repeat counts.

    Raises:
        ValueError: a count is negative, or the result is too large for memory.
    """
    numbers = np.asarray(counts)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise ValueError(f"repeats must be integers, found {numbers.dtype}")
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    places = array.size if axis is None else array.shape[axis]
    total = high * places if numbers.size < 2 else high * numbers.size
    if total > MOST_REPEATED and numbers.size > 1:
        total = sum(numbers.reshape(-1).tolist()) if numbers.size <= MOST_REPEATED else total
    if low < 0 or total > MOST_REPEATED:
        raise ValueError(f"array is too big: {_number(total)} repeats in total, with a minimum of {_number(low)}")
    return np.repeat(array, numbers, axis)


def counted(numbers: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Like ``numpy.bincount``, with a check of the largest number first.

    Raises:
        ValueError: a number is negative, or the result is too large for memory.
    """
    if minlength > MOST_REPEATED or (numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < MOST_REPEATED):
        raise ValueError(
            f"array is too big: minlength is {_number(minlength)}, and the values range from {numbers.min(initial=0)} to {numbers.max(initial=0)}"
        )
    return np.bincount(numbers, weights, minlength)


# ------------------------------------------------------------------------------------------------------------------ dtypes


def sized_dtype(order: str, code: str) -> np.dtype[Any]:
    """The dtype for a code such as ``f8``, ``S5`` or ``U3``.

    Parameters:
        order: ``<``, ``>``, ``|`` or ``=``.

    Raises:
        ValueError: an element is larger than numpy can count.
        TypeError: numpy has no such dtype.
    """
    length = UNIT_BYTES.get(code[:1], 0) * int(code[1:]) if code[:1] in UNIT_BYTES else 0
    if length > LARGEST_ITEM:
        raise ValueError(f"an element of {code} has {length} bytes, more than {LARGEST_ITEM}")
    result = np.dtype(order + code)
    if result.hasobject or not result.itemsize:
        raise TypeError(f"{code} is not a dtype of plain numbers or strings")
    return result


def nested_dtype(base: np.dtype[Any], shape: tuple[int, ...]) -> np.dtype[Any]:
    """The dtype of a field that is itself an array.

    Raises:
        ValueError: a size is negative, or an element is larger than numpy can count.
    """
    if any(size.__class__ is not int or size < 0 for size in shape) or base.itemsize * math.prod(shape) > LARGEST_ITEM:
        raise ValueError(f"a field cannot have shape {_short(shape)}")
    return np.dtype((base, shape))


def record_dtype(fields: Sequence[tuple[str, np.dtype[Any], int]], itemsize: int) -> np.dtype[Any]:
    """The dtype of a record.

    Parameters:
        fields: name, dtype and offset in bytes of each. Fields may overlap.
        itemsize: size of a record in bytes.

    Raises:
        ValueError: a field is outside its record, or a record is larger than numpy can count.
    """
    if not 0 < itemsize <= LARGEST_ITEM or len(fields) > MOST_FIELDS:
        raise ValueError(f"a record cannot have {_number(itemsize)} bytes and {len(fields)} fields")
    for name, dtype, offset in fields:
        if name.__class__ is not str or offset.__class__ is not int or not 0 <= offset <= itemsize - dtype.itemsize:
            message = (
                f"the field {name!r:.40} of {dtype.itemsize} bytes at {_number(offset)} is outside its record of {itemsize} bytes"
            )
            raise ValueError(message)
    names, formats, offsets = ([field[part] for field in fields] for part in range(3))
    result: np.dtype[Any] = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})  # type: ignore[call-overload]
    if result.hasobject:
        raise ValueError("a record cannot contain references to Python objects")
    return result


def _number(number: Any) -> str:
    return str(number) if number.__class__ is not int or abs(number) < 1 << 128 else hex(number)[:40] + "..."


def _short(numbers: Sequence[int]) -> str:
    return "(" + ", ".join(map(_number, numbers[:8])) + (", ...)" if len(numbers) > 8 else ",)" if len(numbers) == 1 else ")")
