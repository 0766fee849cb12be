"""Running statistics of a batch norm in training, which gets no elements: results of the named releases."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


@pytest.mark.parametrize("shape", [(0, 2), (0, 2, 3), (1, 2, 0), (2, 2, 0)])
@pytest.mark.parametrize(("horizon", "kept"), [("1.3.1", False), ("1.4.0", True), ("1.10.2", True), ("2.15.0", True)])
def test_an_empty_input_keeps_the_running_statistics(shape: tuple[int, ...], horizon: str, kept: bool) -> None:
    mean, var, ones = (Tensor(np.array(items, np.float32)) for items in ([1, 2], [3, 4], [1, 1]))
    batch_norm = resolve("aten::batch_norm", Release(horizon))
    with np.errstate(all="ignore"):  # as in a call of a program
        result = batch_norm(Tensor(np.ones(shape, np.float32)), ones, ones, mean, var, True, 0.1, 1e-5, False)
    assert result.shape == shape
    assert (mean.array.tolist() == [1, 2]) is kept
    if kept:
        assert var.array.tolist() == [3, 4]
    else:
        assert np.isnan(mean.array).all()
