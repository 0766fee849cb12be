"""Systems of equations with mismatched shapes, which 1.6, 1.12 and 2.15 reject."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("name", "first", "second", "words"),
    [
        ("cholesky_solve", (3, 1), (7, 7), "each A matrix is 7 by 7 but each b matrix is 3 by 1"),
        ("cholesky_solve", (3,), (3, 3), "should have at least 2 dimensions"),
        ("cholesky_solve", (2, 3, 1), (3, 3, 3), "must match"),
        ("solve", (3, 1), (4, 4), "each A matrix is 4 by 4 but each b matrix is 3 by 1"),
        ("solve", (3,), (3, 3), "should have at least 2 dimensions"),
        ("linalg_solve", (3, 3), (4, 1), "each A matrix is 3 by 3 but each b matrix is 4 by 1"),
        ("linalg_solve", (2, 3, 3), (3, 3, 1), "must match"),
    ],
)
def test_refused(name: str, first: Any, second: Any, words: str) -> None:
    with pytest.raises(Raised, match=words):
        resolve(f"aten::{name}")(ones(*first), ones(*second))
