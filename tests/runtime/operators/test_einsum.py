"""Sums of products by an equation: what is a view, and how results lie in memory, as releases on both sides of each change gave them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.operators.tables import called, t
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor, owner


def laid(shape: tuple[int, ...], *, reverse: bool = False) -> Tensor:
    """Contiguous, or with its first dimension the fastest."""
    if not reverse:
        return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape[::-1]).transpose())


def given(equation: str, at: str, *operands: Tensor) -> Tensor:
    result: Tensor = resolve("aten::einsum", Release(at))(equation, list(operands))
    return result


@pytest.mark.parametrize(
    ("equation", "shape", "strides"),
    [
        ("ba", (2, 3), (1, 3)),
        ("ij->ji", (2, 3), (1, 3)),
        ("ii->i", (3, 3), (4,)),
        ("iij->ji", (2, 2, 3), (1, 9)),
        ("...->...", (2, 3), (3, 1)),
        ("...i->i...", (2, 3, 4), (1, 12, 4)),
        ("ijj->ij", (2, 3, 3), (9, 4)),
        ("", (), ()),
    ],
)
@pytest.mark.parametrize("at", ["1.5.1", "1.12.1", "2.15.0"])
def test_one_operand_of_which_nothing_is_summed_is_a_view(
    equation: str, shape: tuple[int, ...], strides: tuple[int, ...], at: str
) -> None:
    operand = laid(shape)
    tensor = given(equation, at, operand)
    assert owner(tensor.array) is owner(operand.array)
    assert tensor is not operand
    assert tensor.strides == strides


@pytest.mark.parametrize(("equation", "shape"), [("ij->i", (2, 1)), ("ii", (1, 1)), ("i->", (1,)), ("ijk->ik", (2, 1, 3))])
@pytest.mark.parametrize(("at", "view"), [("1.7.1", False), ("1.8.1", True), ("1.12.1", True), ("1.13.1", False)])
def test_a_sum_over_one_element_is_a_view_from_1_8_to_1_12(equation: str, shape: tuple[int, ...], at: str, view: bool) -> None:
    operand = laid(shape)
    assert (owner(given(equation, at, operand).array) is owner(operand.array)) == view


@pytest.mark.parametrize(
    ("equation", "shapes", "reverse", "eras"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)], True, {"1.5.1": (5, 1), "2.15.0": (5, 1)}),
        ("ij,jk->ki", [(3, 4), (4, 5)], False, {"1.5.1": (1, 5), "2.8.0": (1, 5), "2.9.1": (3, 1)}),
        ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)], False, {"2.8.0": (15, 1, 5), "2.9.1": (15, 3, 1)}),
        ("ij,jkl->kil", [(3, 4), (4, 5, 2)], False, {"2.8.0": (2, 10, 1), "2.9.1": (2, 10, 1)}),
        ("bihd,bjhd->bhij", [(2, 3, 2, 5), (2, 4, 2, 5)], False, {"1.6.0": (24, 12, 4, 1), "2.15.0": (24, 12, 4, 1)}),
        ("bhij,bjhd->bihd", [(2, 2, 3, 4), (2, 4, 2, 5)], False, {"1.6.0": (30, 5, 15, 1), "2.15.0": (30, 5, 15, 1)}),
        ("ij,bjk->bik", [(3, 4), (2, 4, 5)], False, {"1.6.0": (5, 10, 1), "2.15.0": (5, 10, 1)}),
        ("ijk->ki", [(2, 5, 3)], False, {"1.6.0": (2, 1), "1.12.1": (2, 1), "2.15.0": (2, 1)}),
        ("ij,->ji", [(2, 3), ()], False, {"1.6.0": (1, 3), "2.15.0": (1, 3)}),
    ],
)
def test_products_of_batches_decide_how_results_lie(
    equation: str, shapes: list[tuple[int, ...]], reverse: bool, eras: dict[str, tuple[int, ...]]
) -> None:
    operands = [laid(shape, reverse=reverse) for shape in shapes]
    left, _, right = equation.partition("->")
    expected = np.einsum(f"{left}->{right}", *(operand.array for operand in operands))
    for at, strides in eras.items():
        tensor = given(equation, at, *operands)
        assert tensor.strides == strides, at
        np.testing.assert_array_equal(tensor.array, expected)


def test_several_operands_are_taken_one_after_the_other() -> None:
    assert called("einsum", ("i,ij,j->", [t([1.0, 2.0]), t([[1.0, 2.0], [3.0, 4.0]]), t([5.0, 6.0])])) == "float32[][95.0]"


@pytest.mark.parametrize(
    ("equation", "operands", "expected"),
    [
        ("ij,jk->ik", [[[1.0], [3.0]], [[1.0, 2.0], [5.0, 7.0]]], "float32[2, 2][6.0, 9.0, 18.0, 27.0]"),
        ("ij,ij->ij", [[[1.0, 2.0]], [[1.0], [3.0]]], "float32[2, 2][1.0, 2.0, 3.0, 6.0]"),
        ("...i,...i->...", [[[1.0, 2.0]], [3.0, 1.0]], "float32[1][5.0]"),
        ("i...,...->i", [[[1.0, 2.0]], [3.0, 1.0]], "float32[1][5.0]"),
    ],
)
def test_sizes_are_broadcast_since_1_8(equation: str, operands: list[list[float]], expected: str) -> None:
    given = [t(operand) for operand in operands]
    assert [called("einsum", (equation, given), at=at) for at in ("1.7.1", "1.8.1", "2.15.0")] == ["raises", expected, expected]


@pytest.mark.parametrize(
    ("equation", "operands"),
    [
        ("ij,jk->ii", [(2, 2), (2, 3)]),
        ("i,jk->ik", [(2, 2), (2, 3)]),
        ("ii->i", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("ij,ij", [(2, 3)]),
        ("i1->i", [(2, 3)]),
        ("ij,jk", [(2, 3), (2, 3)]),
        ("...", []),
    ],
)
def test_equations_that_do_not_fit(equation: str, operands: list[tuple[int, ...]]) -> None:
    assert called("einsum", (equation, [laid(shape) for shape in operands])) == "raises"


def test_products_of_nothing_since_1_8() -> None:
    for shapes, before in (([(0, 2), (2, 3)], False), ([(2, 0), (0, 3)], False), ([(2, 3), (3, 0)], True)):
        operands = [laid(shape) for shape in shapes]
        assert (called("einsum", ("ij,jk", operands), at="1.7.1") != "raises") == before
        assert (
            given("ij,jk", "1.8.1", *operands).shape == given("ij,jk", "2.15.0", *operands).shape == (shapes[0][0], shapes[1][1])
        )
    assert given("i,j->ij", "1.7.1", laid((0,)), laid((2,))).shape == (0, 2)


def test_capital_letters_name_dimensions_since_1_9() -> None:
    assert called("einsum", ("Ab->bA", [t([[1.0, 2.0]])]), at="1.8.1") == "raises"
    assert called("einsum", ("Ab->bA", [t([[1.0, 2.0]])]), at="1.9.1") == "float32[2, 1][1.0, 2.0]"
