"""The gate: a view lies within its memory or is refused; compared with numpy on small numbers and with exact arithmetic on large ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.fence.oracle import bounds, inside
from torch_compat import arrays
from torch_compat.errors import ArchiveError, Corrupt, Unsupported

U1 = np.dtype(np.uint8)
I8 = np.dtype(np.int64)
SMALL = st.integers(-6, 6)
ANY = (
    SMALL
    | st.sampled_from([2**n + d for n in (15, 16, 29, 31, 32, 53, 59, 60, 61, 62, 63, 64, 65) for d in (-1, 0, 1)])
    | st.integers()
)
SHAPES = st.lists(st.integers(0, 5) | ANY.map(abs), max_size=5)


@settings(max_examples=400, deadline=None)
@given(
    SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), st.lists(ANY, min_size=len(shape), max_size=len(shape)))),
    ANY,
    st.sampled_from(["u1", "i2", "i8", "c16"]),
)
def test_a_view_lies_within_its_memory_or_is_refused(numbers: tuple[list[int], list[int]], offset: int, code: str) -> None:
    shape, strides = numbers
    dtype, memory = np.dtype(code), bytearray(96)
    fits = all(size > 0 for size in shape)
    low = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if step < 0)
    high = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if step > 0)
    fits = fits and low >= 0 and (high + 1) * dtype.itemsize <= len(memory)
    try:
        array = arrays.view(memory, dtype, shape, strides, offset)
    except Corrupt:
        assert not fits
        assert 0 not in shape
    except Unsupported:  # numbers that numpy has no room for: huge strides of a dimension of 1, sizes beside a 0
        assert max(math.prod(size or 1 for size in shape), *map(abs, [*strides, 0])) * dtype.itemsize >= 1 << 62
    else:
        assert fits or 0 in shape
        assert array.shape == tuple(shape)
        assert inside(array)
        if array.size and array.size < 10_000:
            array[...] = 1  # it can be written to, and nothing dies


@settings(max_examples=400, deadline=None)
@given(SHAPES, SMALL | ANY, st.sampled_from(["u1", "i2", "i8", "c16", "V0"]))
def test_a_view_without_strides_is_the_one_with_those_of_its_shape(shape: list[int], offset: int, code: str) -> None:
    def answer(strides: Any) -> Any:
        try:
            result = arrays.view(memory, np.dtype(code), shape, strides, offset)
        except ArchiveError as error:
            return type(error), str(error)
        return result.shape, result.strides, result.__array_interface__["data"], result.flags.writeable

    memory = bytearray(96)
    assert answer(None) == answer(arrays.contiguous_strides(shape))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 4), max_size=3).flatmap(
        lambda shape: st.tuples(st.just(shape), st.lists(st.integers(-3, 3), min_size=len(shape), max_size=len(shape)))
    ),
    st.integers(0, 20),
)
def test_a_view_is_the_one_of_numpy(numbers: tuple[list[int], list[int]], offset: int) -> None:
    shape, strides = numbers
    memory = np.arange(24, dtype=np.int32)
    first, end = arrays.extent(shape, strides, offset)
    if first < 0 or end > memory.size:
        with pytest.raises(Corrupt):
            arrays.view(memory, memory.dtype, shape, strides, offset)
        return
    result = arrays.view(memory, memory.dtype, shape, strides, offset)
    assert result.tolist() == np.lib.stride_tricks.as_strided(memory[offset:], shape, [4 * step for step in strides]).tolist()
    low, high = bounds(result)
    start = memory.__array_interface__["data"][0]
    assert (low - start, high - start) == (4 * first, 4 * end)


@pytest.mark.parametrize(
    ("memory", "dtype", "shape", "strides", "offset"),
    [
        (bytearray(64), U1, [2**60 + 1], [16], 0),  # the last byte wraps around to 0
        (bytearray(64), I8, [2**29 + 1, 2**29 + 2], [2**31 - 1, 1], 0),  # the sum of two dimensions does
        (bytearray(64), U1, [257, 2, 2, 2, 2, 2], [1, 2**62, 2**62, -(2**62), -(2**62), -256], 0),
        (b"", U1, [4], [1], 0),  # numpy asks nothing of a buffer of 0 bytes
        (b"", U1, [10**6], [0], 0),
        (bytearray(64), I8, [8], [1], 1),
        (bytearray(64), I8, [2], [-1], 0),
        (bytearray(64), I8, [1], [1], -1),
        (bytearray(64), I8, [1], [1], 2**63),
        (bytearray(64), I8, [-1], [1], 0),
        (bytearray(64), I8, [2, 2], [1], 0),
        (bytearray(64), I8, [2.0], [1], 0),
        (bytearray(64), I8, [True], [1], 0),
        (np.array([None, 1]), I8, [2], [1], 0),  # references are no numbers
        (bytearray(64), np.dtype(object), [2], [1], 0),
    ],
)  # fmt: skip
def test_what_is_no_view_is_refused(memory: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> None:
    with pytest.raises(Corrupt):
        arrays.view(memory, dtype, shape, strides, offset)


def test_an_error_says_what_was_needed_and_what_is_there() -> None:
    with pytest.raises(Corrupt, match=r"needs elements 2 to 12; its storage has 64 bytes, 8 elements") as caught:
        arrays.view(bytes(64), I8, (10,), (1,), 2, where="a.pt, record 'data/0'")
    assert caught.value.where == "a.pt, record 'data/0'"
    assert caught.value.code == "outside-storage"


def test_elements_are_those_that_are_whole() -> None:
    assert arrays.elements(bytes(17), I8).tolist() == [0, 0]
    assert arrays.elements(b"", I8).size == 0
    with pytest.raises(Corrupt):
        arrays.elements(bytes(16), np.dtype(object))


# ------------------------------------------------------------------------------------------------------------------ dtypes


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["u1", "i8", "S5", "U3"]), ANY), min_size=1, max_size=4), ANY)
def test_fields_lie_within_their_record(fields: list[tuple[str, int]], size: int) -> None:
    given_fields = [(f"f{n}", arrays.sized_dtype("<", code), offset) for n, (code, offset) in enumerate(fields)]
    right = 0 < size < 2**31 and all(0 <= offset <= size - dtype.itemsize for _, dtype, offset in given_fields)
    if not right:
        with pytest.raises(ValueError, match=r"cannot have|is outside"):
            arrays.record_dtype(given_fields, size)
        return
    result = arrays.record_dtype(given_fields, size)
    assert result.itemsize == size
    if size < 10_000:
        assert all(inside(np.zeros(3, result)[name]) for name in result.names or ())


@pytest.mark.parametrize("code", ["S2147483648", "U536870912", "V9999999999", "O", "O8", "S0", "U0", "i3", "b9"])
def test_codes_that_numpy_miscounts_or_has_not(code: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        arrays.sized_dtype("<", code)


@pytest.mark.parametrize("shape", [(2**31,), (2**16, 2**16), (-1,), (2**62, 4), (1.0,)])
def test_fields_that_are_arrays_are_counted(shape: Any) -> None:
    with pytest.raises(ValueError, match="cannot have"):
        arrays.nested_dtype(U1, shape)


# -------------------------------------------------------------------------------------- functions of numpy that do not count


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-1, 5) | st.integers(2**60, 2**63 - 1), min_size=4, max_size=4))
def test_repeats_are_added_exactly(counts: list[int]) -> None:
    array = np.arange(4)
    if min(counts) < 0 or sum(counts) > 100:
        with pytest.raises(ValueError, match="too big"):
            arrays.repeated(array, np.array(counts))
    else:
        assert arrays.repeated(array, np.array(counts)).tolist() == np.repeat(array, counts).tolist()


@pytest.mark.parametrize(
    "counts", [2**62 + 2, -1, np.array([2**62] * 3 + [2**62 + 5]), np.array([2**63 - 1]), np.array([1.0]), [2**70, 1, 1, 1]]
)
def test_repeats_that_wrap_around(counts: Any) -> None:
    with pytest.raises(ValueError, match=r"too big|integers"):
        arrays.repeated(np.arange(4), counts)


@pytest.mark.parametrize(("numbers", "least"), [([2**63 - 1], 0), ([-1], 0), ([1], 2**62), ([2**31], 0)])
def test_counts_that_wrap_around(numbers: list[int], least: int) -> None:
    with pytest.raises(ValueError, match="too big"):
        arrays.counted(np.array(numbers), None, least)


def test_counts() -> None:
    assert arrays.counted(np.array([1, 1, 3]), None, 6).tolist() == [0, 2, 0, 1, 0, 0]
    assert arrays.counted(np.zeros(0, np.int64)).tolist() == []


def test_strides_of_arrays_without_holes() -> None:
    for shape in [(), (3,), (2, 3, 4), (2, 0, 3)]:
        for order in ("C", "F"):
            result = np.zeros(shape, np.uint8, order=order)
            if result.size:
                assert arrays.contiguous_strides(shape, order) == result.strides
    assert math.prod(arrays.contiguous_strides((2, 0, 3))) == 9


def test_refusals_are_of_the_family() -> None:
    assert issubclass(Corrupt, ArchiveError)
    with pytest.raises(Unsupported):
        arrays.view(bytes(8), U1, (1,) * 70, (1,) * 70)
