"""The summation order of a few products with a vector, as in 1.6.0, 2.0.1 and 2.15.0 on an Intel processor: neighbors first."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

FLOAT = np.float32


def neighbors(row: np.ndarray, vector: np.ndarray) -> np.floating:
    parts = [FLOAT(a * b) for a, b in zip(row, vector, strict=True)] + [FLOAT(0)] * (4 - len(row))
    return FLOAT(FLOAT(parts[0] + parts[1]) + FLOAT(parts[2] + parts[3]))


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_matrix_and_a_vector(steps: int) -> None:
    random = np.random.default_rng(steps)
    matrix, vector = random.normal(size=(50, steps)).astype(FLOAT), random.normal(size=steps).astype(FLOAT)
    expected = [neighbors(row, vector) for row in matrix]
    assert resolve("aten::mv")(Tensor(matrix), Tensor(vector)).array.tolist() == expected
    assert resolve("aten::matmul")(Tensor(vector), Tensor(matrix.T)).array.tolist() == expected
    if steps > 2:
        assert expected != (matrix.astype(np.float64) @ vector).astype(FLOAT).tolist()


def test_two_vectors() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        a, b = (random.normal(size=4).astype(FLOAT) for _ in "ab")
        assert resolve("aten::dot")(Tensor(a), Tensor(b)).item() == neighbors(a, b)
        assert resolve("aten::dot")(Tensor(a[:3]), Tensor(b[:3])).item() == neighbors(a[:3], b[:3])
