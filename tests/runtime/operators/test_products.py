"""In which order small products of matrices are summed: the bits that 2.0.1 and 2.15.0 give of float32, on a processor of AMD."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.runtime.operators._products import accumulated

F32 = np.float32
Array = np.ndarray[Any, Any]


def operands(rows: int, steps: int, columns: int) -> tuple[Array, Array]:
    numbers = [
        np.sin(np.arange(count) * 0.7317 + start).astype(F32) for count, start in ((rows * steps, 0.1), (columns * steps, 0.9))
    ]
    return numbers[0].reshape(rows, steps), numbers[1].reshape(columns, steps)


def one_by_one(a: Array, b: Array) -> Array:
    total = a[:, :1] * b[:1]
    for step in range(1, a.shape[1]):
        total = total + a[:, step : step + 1] * b[step : step + 1]
    return total


def got(a: Array, b: Array) -> Array:
    single: Array = accumulated(a, b).astype(F32)
    return single


@pytest.mark.parametrize(("rows", "steps", "columns"), [(3, 7, 5), (16, 32, 8), (3, 12, 16)])
def test_products_are_added_one_after_the_other(rows: int, steps: int, columns: int) -> None:
    a, w = operands(rows, steps, columns)
    b = np.ascontiguousarray(w.T)
    assert np.array_equal(got(a, b), one_by_one(a, b))
    assert not np.array_equal(one_by_one(a, b), (a.astype(float) @ b).astype(F32))


def test_products_are_fused_where_there_are_many_columns() -> None:
    a, w = operands(4, 5, 16)
    total = np.zeros((4, 16), F32)
    for step in range(5):
        total = (total + a[:, step : step + 1].astype(float) * w.T[step : step + 1]).astype(F32)
    assert np.array_equal(got(a, w.T), total)
    assert not np.array_equal(total, one_by_one(a, w.T))


def test_rows_by_rows_are_added_in_four_or_eight_sums() -> None:
    a, w = operands(2, 16, 8)
    parts = [one_by_one(a[:, lane::4], w.T[lane::4]) for lane in range(4)]
    assert np.array_equal(got(a, w.T), (parts[0] + parts[2]) + (parts[1] + parts[3]))
    a, w = operands(2, 16, 3)
    parts = [one_by_one(a[:, lane::8], w.T[lane::8]) for lane in range(8)]
    halves = [parts[lane] + parts[lane + 4] for lane in range(4)]
    assert np.array_equal(got(a, w.T), (halves[0] + halves[2]) + (halves[1] + halves[3]))


def test_small_batches_are_added_one_after_the_other_in_any_order_of_their_memory() -> None:
    a, w = operands(4, 8, 8)
    assert np.array_equal(got(a[None], w.T[None])[0], one_by_one(a, w.T))
    assert not np.array_equal(got(a, w.T), one_by_one(a, w.T))


@pytest.mark.parametrize(("rows", "steps", "columns"), [(0, 2, 3), (2, 3, 0), (0, 8, 0), (3, 0, 2)])
def test_products_without_elements_are_empty_or_zero(rows: int, steps: int, columns: int) -> None:
    assert got(np.ones((rows, steps), F32), np.ones((steps, columns), F32)).tolist() == np.zeros((rows, columns)).tolist()
