"""The connectionist temporal classification loss; the values are those of 1.5.1, 1.12.1, 2.6.0, 2.13.0 and 2.15.0, which agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

SCORES = np.cos(np.arange(40.0) * 1.7).reshape(5, 2, 4).astype(np.float32)


def losses(
    targets: list[list[int]], lengths: list[int], sizes: list[int], blank: int, *more: Any, at: str = "2.15.0"
) -> list[float]:
    scores = resolve("aten::log_softmax", Release(at))(Tensor(SCORES), 2)
    result = resolve("aten::ctc_loss", Release(at))(scores, Tensor(np.array(targets)), lengths, sizes, blank, 0, *more)
    return [float(value) for value in result.array]


@pytest.mark.parametrize(
    ("targets", "blank", "values"),
    [
        ([[0, 1], [1, 3]], 1, [3.619483, 5.039558]),  # the first target ends with the blank, which is skipped like any label
        ([[1, 3], [1, 1]], 1, [4.562144, 5.833559]),
        ([[0, 0], [2, 3]], 1, [5.777322, 4.458856]),
        ([[0, 1], [0, 0]], 0, [3.483771, 6.297454]),
        ([[2, 2], [1, 3]], 2, [4.69504, 5.137001]),
    ],
)
@pytest.mark.parametrize("at", ["1.5.1", "2.15.0"])
def test_a_target_may_contain_the_blank(targets: list[list[int]], blank: int, values: list[float], at: str) -> None:
    assert losses(targets, [5, 5], [2, 2], blank, at=at) == pytest.approx(values, rel=1e-6)


def test_a_target_without_steps_has_an_infinite_loss_since_2_4() -> None:
    assert losses([[1, 2], [1, 1]], [0, 3], [2, 1], 0, at="2.4.1")[0] == np.inf
    assert losses([[1, 2], [1, 1]], [0, 3], [2, 1], 0, True, at="2.4.1")[0] == 0
    assert losses([[1, 2], [1, 1]], [0, 3], [0, 1], 0, at="2.3.1")[0] == 0
    with pytest.raises(Unsupported, match="reads other memory"):
        losses([[1, 2], [1, 1]], [0, 3], [2, 1], 0, at="2.3.1")
