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
    assert [one.strides for one in results] == [(20, 4, 1)] * 5
    for name in ("softmax", "log_softmax"):
        assert [resolve(f"aten::{name}", Release(horizon))(turned, dim, None).strides for dim in (0, 1, 2)] == [(15, 3, 1)] * 3
