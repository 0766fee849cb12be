"""The order in which few products with a vector are summed: as 1.6.0, 2.0.1 and 2.13.0 gave them, one by one, and four of two vectors in two sums."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

FLOAT = np.float32


def one_by_one(row: np.ndarray, vector: np.ndarray) -> np.floating:
    total = row[0] * vector[0]
    for a, b in zip(row[1:], vector[1:], strict=True):
        total = FLOAT(total + FLOAT(a * b))
    return FLOAT(total)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_matrix_and_a_vector(steps: int) -> None:
    random = np.random.default_rng(steps)
    matrix, vector = random.normal(size=(50, steps)).astype(FLOAT), random.normal(size=steps).astype(FLOAT)
    expected = [one_by_one(row, vector) for row in matrix]
    assert resolve("aten::mv")(Tensor(matrix), Tensor(vector)).array.tolist() == expected
    assert resolve("aten::matmul")(Tensor(vector), Tensor(matrix.T)).array.tolist() == expected
    if steps > 2:
        assert expected != (matrix.astype(np.float64) @ vector).astype(FLOAT).tolist()


def test_two_vectors() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        a, b = (random.normal(size=4).astype(FLOAT) for _ in "ab")
        parts = a * b
        expected = (parts[0] + parts[2]) + (parts[1] + parts[3])
        assert resolve("aten::dot")(Tensor(a), Tensor(b)).item() == expected
        assert resolve("aten::dot")(Tensor(a[:3]), Tensor(b[:3])).item() == one_by_one(a[:3], b[:3])
