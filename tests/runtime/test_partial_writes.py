"""Elements written before an index out of range; each result is that of 1.5.1, 1.8.1, 1.12.1, 2.0.1 and 2.15.0 with one thread."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.partial_writes import PARTS
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def of(value: Any, dtype: str = "") -> Tensor:
    array = np.array(value)
    return Tensor(array.astype(dtype or ("float32" if array.dtype.kind == "f" else array.dtype)))


INDEX, ONES, ROWS = of([0, 4, 1]), of([1.0, 1.0, 1.0]), of([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
WITHIN = of([[0, 1], [0, 4], [1, 0]])


@pytest.mark.parametrize("at", ["1.5.1", "1.12.1", "2.15.0"])
@pytest.mark.parametrize(
    ("name", "shape", "args", "written"),
    [
        ("index_add_", (4,), (0, INDEX, ONES), [1, 0, 0, 0]),
        ("index_add_", (4, 2), (0, INDEX, ROWS), [[1, 2], [0, 0], [0, 0], [0, 0]]),
        ("index_add_", (4,), (-1, of([0, -5, 1]), ONES), [1, 0, 0, 0]),
        ("index_copy_", (4, 2), (0, INDEX, ROWS), [[1, 2], [0, 0], [0, 0], [0, 0]]),
        ("index_fill_", (4,), (0, INDEX, 1.0), [1, 0, 0, 0]),
        ("scatter_", (4,), (0, INDEX, ONES), [1, 0, 0, 0]),
        ("scatter_", (4,), (0, INDEX, 1.0), [1, 0, 0, 0]),
        ("scatter_", (3, 2), (1, WITHIN, ROWS), [[1, 2], [3, 0], [0, 0]]),
        ("scatter_", (3, 2), (1, WITHIN, 9.0), [[9, 9], [9, 0], [0, 0]]),
        ("scatter_add_", (3, 2), (-1, WITHIN, ROWS), [[1, 2], [3, 0], [0, 0]]),
        ("put_", (2, 2), (WITHIN, ROWS), [[3, 2], [0, 0]]),
        ("put_", (4,), (INDEX, ONES, True), [1, 0, 0, 0]),
        ("index_put_", (4,), ([INDEX], ONES), [1, 0, 0, 0]),
        ("index_put_", (4, 2), ([INDEX], ROWS, True), [[1, 2], [0, 0], [0, 0], [0, 0]]),
        ("index_put_", (3, 2), ([of([0, 1, 4]), of([1, 0, 0])], of([1.0, 2.0, 3.0])), [[0, 1], [2, 0], [0, 0]]),
        ("index_put_", (3, 2), ([of([0, 1, 1]), of([1, 4, 0])], of([1.0, 2.0, 3.0])), [[0, 1], [0, 0], [0, 0]]),
        ("masked_scatter_", (4,), (of([True, True, True, False]), of([1.0, 1.0])), [1, 1, 0, 0]),
    ],
)
def test_elements_before_an_index_out_of_range_are_written(
    name: str, shape: tuple[int, ...], args: tuple[Any, ...], written: list[Any], at: str
) -> None:
    target = Tensor(np.zeros(shape, np.float32))
    with pytest.raises(Raised):
        resolve(f"aten::{name}", Release(at))(target, *args)
    assert target.array.tolist() == written


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("index_add_", (0, INDEX, of([1, 1, 1], "int64"))),  # another dtype
        ("index_add_", (0, INDEX, of([1.0, 1.0]))),  # another length
        ("index_copy_", (0, INDEX, of([1.0, 1.0]))),
        ("index_add_", (0, INDEX, of([1.0, 1.0, 1.0, 1.0]))),
        ("scatter_", (0, INDEX, of([1, 1, 1], "int64"))),
        ("scatter_", (0, INDEX, of([1.0, 1.0]))),
        ("put_", (INDEX, of([1.0, 1.0]))),
        ("index_put_", ([INDEX], of([1.0, 1.0]))),
        ("index_add_", (1, INDEX, ONES)),
    ],
)
def test_a_call_with_another_fault_writes_nothing(name: str, args: tuple[Any, ...]) -> None:
    target = Tensor(np.zeros(4, np.float32))
    with pytest.raises(Raised):
        resolve(f"aten::{name}", Release("2.15.0"))(target, *args)
    assert not target.array.any()


@pytest.mark.parametrize(("at", "written"), [("1.5.1", [0, 0, 0, 0]), ("1.8.1", [0, 0, 0, 1]), ("2.15.0", [0, 0, 0, 1])])
def test_negative_indices_are_filled_where_the_release_accepts_them(at: str, written: list[int]) -> None:
    target = Tensor(np.zeros(4, np.float32))
    with pytest.raises(Raised):
        resolve("aten::index_fill_", Release(at))(target, 0, of([-1, 4, 1]), 1.0)
    assert target.array.tolist() == written


@pytest.mark.parametrize("name", sorted(PARTS))
def test_arguments_of_any_class_are_looked_at(name: str) -> None:
    """A program can pass anything; what the operator refuses must not raise here."""
    target = Tensor(np.zeros(4, np.float32))
    values: list[Any] = [
        None,
        0,
        -1,
        True,
        1.5,
        "a",
        [None],
        [],
        {},
        [INDEX, None],
        (INDEX,),
        target,
        INDEX,
        WITHIN,
        Tensor(np.array(3)),
    ]
    for args in product([target, None, 5], values, values, values):
        for count in range(5):
            list(PARTS[name](args[:count]))


def test_a_result_that_is_not_in_place_does_not_exist() -> None:
    source = Tensor(np.zeros(4, np.float32))
    with pytest.raises(Raised):
        resolve("aten::index_add", Release("2.15.0"))(source, 0, INDEX, ONES)
    assert not source.array.any()
