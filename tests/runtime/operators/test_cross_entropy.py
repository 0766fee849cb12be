"""Cross entropy with weights of the classes: results of the named releases."""

from __future__ import annotations

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


@pytest.mark.parametrize("horizon", ["1.10.2", "2.15.0"])
@pytest.mark.parametrize(
    ("reduction", "ignored", "smoothing", "expected"),
    [
        (1, -100, 0.0, [2.064507]),
        (0, -100, 0.0, [3.928738, 0.613177]),
        (2, -100, 0.0, [4.541914]),
        (1, -100, 0.1, [2.001947]),
        (1, 0, 0.0, [1.964369]),
    ],
)
def test_a_cross_entropy_takes_weights_of_its_own_dtype(
    horizon: str, reduction: int, ignored: int, smoothing: float, expected: list[float]
) -> None:
    loss = resolve("aten::cross_entropy_loss", Release(horizon))
    x = Tensor(np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]], np.float32))
    target, weight = Tensor(np.array([2, 0])), Tensor(np.array([0.2, 1.0, 2.0], np.float32))
    result = loss(x, target, weight, reduction, ignored, smoothing).array
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.reshape(-1), expected, rtol=1e-6)
    for other, words in (("f8", "Double"), ("f2", "Half"), ("i8", "Long")):
        with pytest.raises(Raised, match=f"expected scalar type Float but found {words}"):
            loss(x, target, Tensor(weight.array.astype(other)))
