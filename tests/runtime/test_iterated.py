"""The memory layout of results; every value is that of the named release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.iterated import order, strides_of
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def laid(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any = np.float32) -> Tensor:
    """A tensor with these strides, its elements from 1 on in the order of memory."""
    room = sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1
    return Tensor(np.arange(1, room + 1).astype(dtype)).as_strided(shape, strides, 0)


TURNED, ROWS = ((2, 3), (1, 2)), ((2, 3), (3, 1))


@pytest.mark.parametrize(
    ("name", "operands", "given"),
    [
        ("add", [TURNED, ROWS], {"1.6.0": (1, 2), "2.15.0": (1, 2)}),
        ("add", [ROWS, TURNED], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("add", [((2, 3), (1, 1)), TURNED], {"1.6.0": (3, 1), "2.15.0": (1, 2)}),
        ("add", [((3, 2), (1, 1)), ((3, 2), (1, 3))], {"1.6.0": (2, 1), "2.15.0": (1, 3)}),
        ("fmod", [TURNED, ROWS], {"1.6.0": (3, 1), "1.8.1": (1, 2), "2.15.0": (1, 2)}),
        ("rsub", [((3, 2), (2, 1)), ((3, 2), (2, 6))], {"1.6.0": (1, 3), "2.15.0": (1, 3)}),
        ("exp", [TURNED], {"1.6.0": (3, 1), "1.8.1": (1, 2), "2.15.0": (1, 2)}),
        ("relu", [TURNED], {"1.6.0": (1, 2), "2.15.0": (1, 2)}),
        ("exp", [((3, 3), (0, 1))], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("neg", [((3, 1, 3), (1, 9, 3))], {"1.8.1": (1, 9, 3), "2.15.0": (1, 9, 3)}),
        ("gelu", [TURNED], {"1.6.0": (3, 1), "1.8.1": (3, 1), "1.12.1": (1, 2), "2.15.0": (1, 2)}),
        ("log_sigmoid", [TURNED], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("cummax", [TURNED, 0], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("amax", [((3, 2, 2), (1, 3, 6)), [1]], {"1.8.1": (2, 1), "2.15.0": (2, 1)}),
        ("sort", [TURNED, -1, False], {"1.6.0": (3, 1), "1.11.0": (3, 1), "1.12.1": (1, 2), "2.15.0": (1, 2)}),
        ("flip", [TURNED, [0]], {"1.12.1": (1, 2), "2.15.0": (1, 2)}),
        ("rot90", [TURNED, 1, [0, 1]], {"1.6.0": (1, 3), "1.10.2": (2, 1)}),
        ("ones_like", [((3, 3), (1, 6))], {"1.6.0": (3, 1), "2.15.0": (1, 3)}),
        ("clone", [((3, 1, 3, 3), (3, 9, 1, 18))], {"1.9.1": (9, 9, 3, 1)}),
        ("index", [((3, 2, 2), (1, 3, 6)), [Tensor(np.zeros(3, np.int64))]], {"1.6.0": (4, 1, 2), "2.15.0": (4, 1, 2)}),
        ("glu", [TURNED, 0], {"2.15.0": (1, 1)}),
        ("_cast_Double", [((2, 3), (0, 1))], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("one_hot", [Tensor(np.zeros((3, 2), np.int64).T), 3], {"1.6.0": (9, 3, 1), "2.15.0": (9, 3, 1)}),
        ("reflection_pad2d", [((1, 2, 4, 4), (32, 1, 8, 2)), [1, 1, 1, 1]], {"2.0.1": (72, 36, 6, 1), "2.1.2": (72, 1, 12, 2)}),
        ("cross", [((3, 2), (1, 3)), ((3, 2), (1, 3))], {"1.6.0": (2, 1), "2.15.0": (2, 1)}),
        ("rot90", [TURNED, 0, [0, 1]], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("gather", [TURNED, 0, Tensor(np.zeros((3, 2), np.int64).T)], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
        ("index_select", [TURNED, 0, Tensor(np.zeros(2, np.int64))], {"1.6.0": (3, 1), "2.15.0": (3, 1)}),
    ],
)
def test_results_lie_as_in_the_release(name: str, operands: list[Any], given: dict[str, tuple[int, ...]]) -> None:
    for release, wanted in given.items():
        args = [laid(*operand) if isinstance(operand, tuple) else operand for operand in operands]
        result = resolve(f"aten::{name}", Release(release))(*args)
        assert (result[0] if isinstance(result, tuple) else result).strides == wanted, release


@pytest.mark.parametrize(
    ("release", "shape", "strides", "wanted"),
    [
        ("1.6.0", (3, 1, 3), (1, 9, 3), (1, 3, 3)),
        ("2.15.0", (3, 1, 3), (1, 9, 3), (1, 9, 3)),
        ("1.6.0", (1, 2), (1, 1), (2, 1)),
        ("2.15.0", (1, 2), (1, 1), (1, 1)),
        ("2.15.0", (1, 2), (2, 1), (2, 1)),
    ],
)
def test_a_number_is_an_operand_without_dimensions(
    release: str, shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert resolve("aten::mul", Release(release))(laid(shape, strides), 2).strides == wanted


def test_values_stay_when_the_layout_changes() -> None:
    turned, rows = laid(*TURNED), laid(*ROWS)
    tensor = resolve("aten::add", Release("2.15.0"))(turned, rows)
    assert tensor.array.tolist() == (turned.array + rows.array).tolist()


def test_the_first_operand_decides_since_1_7() -> None:
    assert order((2, 3), [(1, 2), (3, 1)], first=True) == [0, 1]
    assert order((2, 3), [(3, 1), (1, 2)], first=True) == [1, 0]
    assert order((2, 3), [(0, 1), (1, 2)], first=True) == [0, 1]
    assert strides_of((2, 3), [((2, 3), (1, 2)), ((), ())], first=True) == (1, 2)


def test_what_tracing_expanded_is_taken_out() -> None:
    number = Tensor(np.float32(1))
    assert resolve("aten::expand", Release("2.15.0"))(number, [2], implicit=True) is number
    assert resolve("aten::expand", Release("2.15.0"))(number, [2]).shape == (2,)


def test_the_greater_of_unlike_types_up_to_1_6() -> None:
    floats, integers = Tensor(np.float32(2.5)), Tensor(np.int64(-1))
    with pytest.raises(Raised, match="Expected object of scalar type Float but got scalar type Long for argument 'other'"):
        resolve("aten::max", Release("1.6.0"))(floats, integers)
    assert resolve("aten::max", Release("1.7.1"))(floats, integers).dtype.name == "float32"


def test_percent_writes_floats_of_32_bits() -> None:
    assert resolve("aten::percentFormat", Release("2.15.0"))("%d %f", 3, 1e20) == "3 100000002004087734272.000000"


def test_the_shape_that_two_shapes_have_together() -> None:
    for name in ("_infer_size", "broadcast_shapes"):
        assert resolve(f"aten::{name}", Release("2.15.0"))([3, 2], [2]) == [3, 2]
        with pytest.raises(Raised, match="must match the size"):
            resolve(f"aten::{name}", Release("2.15.0"))([3, 2], [4])


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0, 1)])
def test_halves_are_refused_whatever_the_number_of_dimensions(bounds: tuple[Any, ...]) -> None:
    for shape in ((5,), (2, 2), (1, 2, 2)):
        with pytest.raises(Raised, match="\"clamp_scalar_cpu\" not implemented for 'Half'"):
            resolve("aten::clamp", Release("2.0.1"))(Tensor(np.ones(shape, np.float16)), *bounds)
        assert resolve("aten::clamp", Release("2.15.0"))(Tensor(np.ones(shape, np.float16)), *bounds).shape == shape


@pytest.mark.parametrize("release", ["1.6.0", "2.15.0"])
@pytest.mark.parametrize("dims", [None, [0], [0, 1]])
def test_the_sum_of_one_element_has_memory_of_its_own(release: str, dims: list[int] | None) -> None:
    item = Tensor(np.ones((1, 1), np.float32))
    total = resolve("aten::sum", Release(release))(*([item] if dims is None else [item, dims]))
    assert total.storage is not item.storage


def test_grids_are_views_of_vectors() -> None:
    """The strides that 1.5.1 to 2.15.0 give the dimensions of size 1."""
    number, vector = Tensor(np.array(2.0)), Tensor(np.arange(3.0))
    for release in ("1.6.0", "2.15.0"):
        grid = resolve("aten::meshgrid", Release(release))
        assert [item.strides for item in grid([number, vector])] == [(1, 0), (3, 1)]
        assert [item.strides for item in grid([vector, number])] == [(1, 1), (0, 1)]
