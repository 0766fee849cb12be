"""The order in memory of products and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


@pytest.mark.parametrize("horizon", ["1.5.1", "2.13.0"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_softmax_are_row_major_whatever_their_input_is(dtype: Any, horizon: str) -> None:
    """Asked of 1.0.0 to 2.15.0 with the same tensors."""
    ones = {shape: Tensor(np.ones(shape, dtype)) for shape in ((4, 3), (3, 4), (4,), (2, 3, 4), (2, 5, 4))}
    turned = Tensor(np.ones((5, 2, 3), dtype).transpose(1, 0, 2))
    results = [
        resolve("aten::linear", Release(horizon))(turned, ones[4, 3], ones[4,]),
        resolve("aten::linear", Release(horizon))(turned, ones[4, 3], None),
        resolve("aten::matmul", Release(horizon))(turned, ones[3, 4]),
        resolve("aten::bmm", Release(horizon))(turned, ones[2, 3, 4]),
        resolve("aten::baddbmm", Release(horizon))(ones[2, 5, 4], turned, ones[2, 3, 4]),
    ]
    assert [result.strides for result in results] == [(20, 4, 1)] * 5
    for name in ("softmax", "log_softmax"):
        assert [resolve(f"aten::{name}", Release(horizon))(turned, dim, None).strides for dim in (0, 1, 2)] == [(15, 3, 1)] * 3


@pytest.mark.parametrize("horizon", ["1.0.0", "1.10.2", "2.15.0"])
def test_a_dimension_more_has_the_step_of_all_that_follows_it(horizon: str) -> None:
    """Asked of 1.0.0, 1.5.1, 1.8.1, 1.10.2, 1.13.1, 2.0.1, 2.1.2, 2.6.0 and 2.15.0."""
    unsqueeze = resolve("aten::unsqueeze", Release(horizon))
    wide = Tensor(np.zeros((2, 3), np.float32))
    turned, empty, narrow = Tensor(wide.array.T), Tensor(np.zeros((0, 3), np.float32)), Tensor(np.zeros((3, 0), np.float32))
    assert [unsqueeze(wide, dim).strides for dim in (0, 1, 2)] == [(6, 3, 1), (3, 3, 1), (3, 1, 1)]
    assert [unsqueeze(turned, dim).strides for dim in (0, 1, 2)] == [(3, 1, 3), (1, 6, 3), (1, 3, 1)]
    assert [unsqueeze(empty, dim).strides for dim in (0, 1, 2)] == [(0, 3, 1), (3, 3, 1), (3, 1, 1)]
    assert unsqueeze(narrow, 1).strides == (1, 0, 1)
    assert unsqueeze(Tensor(np.float32(1)), 0).strides == (1,)
    tensor = unsqueeze(turned, 1)
    assert tensor.shape == (3, 1, 2)
    assert tensor.storage is wide.storage


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [
        ("1.0.0", [(1, 1), (2, 1), (2, 1), (1, 1), (1, 1), (1, 1)]),
        ("1.8.1", [(1, 1), (2, 1), (2, 1), (1, 1), (1, 1), (1, 1)]),
        ("1.10.2", [(1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 3)]),
        ("2.15.0", [(1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 3)]),
    ],
)
def test_places_are_in_rows_and_since_1_10_in_columns_also_where_there_are_none(
    horizon: str, expected: list[tuple[int, ...]]
) -> None:
    """Asked of 1.0.0, 1.5.1, 1.8.1, 1.10.2, 1.13.1, 2.0.1, 2.1.2, 2.6.0 and 2.15.0."""
    nonzero = resolve("aten::nonzero", Release(horizon))
    given = [np.zeros(shape) for shape in ((3,), (2, 3), (0, 3), ())] + [np.ones(()), np.ones(3)]
    assert [nonzero(Tensor(item.astype(np.float32))).strides for item in given] == expected
