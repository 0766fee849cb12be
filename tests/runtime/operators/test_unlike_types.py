"""Two tensors of different dtypes in 1.5.1 to 2.15.0: products and distances reject them, losses have the dtype of one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

FLOATS = np.array([[0.5, -1.5], [2.0, 3.0]], np.float32)
DOUBLES = np.array([[1.0, 2.0], [3.0, 0.5]])
INTEGERS = np.array([[1, 2], [3, 0]])
HORIZONS = ("1.5.1", "2.15.0")


def called(name: str, *given: Any, at: str, **words: Any) -> Any:
    args = [Tensor(item) if isinstance(item, np.ndarray) else item for item in given]
    return resolve(f"aten::{name}", Release(at))(*args, **words)


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("cdist", (FLOATS, DOUBLES)),
        ("cdist", (DOUBLES, FLOATS, 1.0)),
        ("cross", (np.ones((2, 3), np.float32), np.ones((2, 3)), 1)),
        ("cross", (np.ones((0, 3), np.float32), np.ones((0, 3)), 1)),
        ("chain_matmul", ([Tensor(FLOATS), Tensor(DOUBLES)],)),
        ("chain_matmul", ([Tensor(FLOATS), Tensor(FLOATS[:1])],)),
        ("nll_loss", (FLOATS, np.array([0, 1]), DOUBLES[0], 1, -100)),
        ("binary_cross_entropy_with_logits", (FLOATS, INTEGERS, None, None, 1)),
        ("binary_cross_entropy", (np.array([np.nan], np.float32), np.array([0.5], np.float32), None, 1)),
    ],
)
def test_what_every_release_refuses(name: str, given: tuple[Any, ...], horizon: str) -> None:
    with pytest.raises(Raised):
        called(name, *given, at=horizon)


def test_what_every_release_takes() -> None:
    for horizon in HORIZONS:
        assert called("cdist", FLOATS[:0], DOUBLES, at=horizon).shape == (0, 2)
        assert called("cdist", FLOATS, FLOATS, at=horizon).shape == (2, 2)
        assert called("nll_loss", FLOATS, np.array([0, 1]), FLOATS[0], 1, -100, at=horizon).shape == ()


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("name", ["hinge_embedding_loss", "soft_margin_loss"])
def test_a_loss_has_the_type_of_its_input(name: str, horizon: str) -> None:
    for target in (DOUBLES, INTEGERS):
        assert called(name, FLOATS, target, at=horizon).array.dtype == np.float32
    assert called(name, DOUBLES, FLOATS, at=horizon).array.dtype == np.float64


def test_a_target_that_is_not_a_number_is_refused_since_2_1() -> None:
    given = (np.array([0.5], np.float32), np.array([np.nan], np.float32), None, 1)
    assert np.isnan(called("binary_cross_entropy", *given, at="2.0.1").array)
    with pytest.raises(Raised):
        called("binary_cross_entropy", *given, at="2.4.1")


@pytest.mark.parametrize("horizon", ["2.4.1", "2.15.0"])
def test_attention_refuses_keys_of_another_width(horizon: str) -> None:
    x = np.ones((2, 3, 4), np.float32)
    assert called("scaled_dot_product_attention", x, x, x, at=horizon).shape == (2, 3, 4)
    with pytest.raises(Raised):
        called("scaled_dot_product_attention", x, x[:, :, :2], x, at=horizon)
