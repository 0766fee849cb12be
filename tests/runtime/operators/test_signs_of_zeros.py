"""Which of two zeros with different signs an elementwise maximum or minimum returns, as releases answer (AVX2, one thread)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import named
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from torch_compat.runtime.operators._common import Array

FIRST, SECOND = "1", "2"


def chosen(name: str, x: Array, y: Array, at: str, *more: Any) -> str:
    """For each element, whether the zero of the first or of the second operand is returned, in the order of indices."""
    result = resolve(f"aten::{name}", Release(at))(Tensor(x), *more[:1], Tensor(y), *more[1:]).array
    second = np.broadcast_to(np.signbit(y), result.shape)
    return "".join(SECOND if item else FIRST for item in (np.signbit(result) == second).reshape(-1).tolist())


def zeros(*shape: int, kind: str = "float64") -> tuple[Array, Array]:
    dtype = named(kind)
    assert dtype is not None
    plus = np.zeros(shape).astype(dtype.array)
    return -plus, plus


@pytest.mark.parametrize(("kind", "whole"), [("float64", 8), ("float32", 16), ("float16", 32), ("bfloat16", 32)])
@pytest.mark.parametrize("name", ["maximum", "minimum", "clamp_min", "clamp_max"])
@pytest.mark.parametrize("release", ["1.12.1", "2.15.0"])
def test_whole_vectors_return_the_second_operand(name: str, kind: str, whole: int, release: str) -> None:
    for x, y in (zeros(whole + 3, kind=kind), zeros(whole + 3, kind=kind)[::-1]):
        assert chosen(name, x, y, release) == SECOND * whole + FIRST * 3


@pytest.mark.parametrize("release", ["1.5.1", "1.7.1", "2.15.0"])
def test_vectors_are_filled_along_dimensions_that_are_adjacent_in_all_operands(release: str) -> None:
    """The patterns of 1.5.1, 1.7.1, 1.8.1, 1.12.1 and 2.15.0 for the same operands."""
    x, y = zeros(20)
    assert chosen("max", x, y, release) == SECOND * 16 + FIRST * 4
    assert chosen("max", x, y[0], release) == chosen("max", x[0], y, release) == SECOND * 16 + FIRST * 4
    rows, other_rows = zeros(2, 10)
    assert chosen("max", rows, zeros(10)[1], release) == (SECOND * 8 + FIRST * 2) * 2
    turned = zeros(10, 2)[1].T
    assert chosen("max", turned, rows, release) == FIRST * 20
    assert chosen("max", turned, -turned, release) == (SECOND * 8 + FIRST * 2) * 2
    assert chosen("max", zeros(2, 20)[1][:, ::2], rows, release) == FIRST * 20
    assert chosen("max", other_rows[:1, :1], rows[:1, :1], release) == FIRST


def test_up_to_1_4_the_second_operand_is_returned() -> None:
    x, y = zeros(20)
    assert chosen("max", x, y, "1.2.0") == chosen("min", x, y, "1.2.0") == SECOND * 20


@pytest.mark.parametrize("release", ["1.12.1", "2.15.0"])
def test_bounds_that_are_tensors(release: str) -> None:
    x, y = zeros(12)
    low, high = Tensor(np.full(12, -0.5)), Tensor(np.full(12, 0.5))
    assert chosen("clamp", x, y, release, low) == chosen("clamp", y, x, release, low) == SECOND * 8 + FIRST * 4
    clamp = resolve("aten::clamp", Release(release))
    assert np.signbit(clamp(Tensor(x), Tensor(y), high).array).tolist() == [False] * 8 + [True] * 4
    assert np.signbit(clamp(Tensor(x), Tensor(y[0]), Tensor(high.array[0])).array).all()  # two operands are broadcast
    assert np.signbit(clamp(Tensor(x), 0.0, 0.5).array).all()


@pytest.mark.parametrize(
    ("kind", "release", "expected"),
    [
        ("float64", "1.8.1", SECOND), ("float64", "2.7.1", SECOND), ("bfloat16", "2.7.1", SECOND), ("float16", "2.8.0", FIRST),
        ("float64", "2.8.0", FIRST), ("float32", "2.15.0", FIRST), ("bfloat16", "2.15.0", SECOND),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_fmax_and_fmin_return_the_second_zero_up_to_2_7(name: str, kind: str, release: str, expected: str) -> None:
    for x, y in (zeros(35, kind=kind), zeros(35, kind=kind)[::-1]):
        assert chosen(name, x, y, release) == expected * 35
