"""Tensors that take over the memory of others, and elements that are visited in memory order, as releases gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor


def called(name: str, horizon: str, *args: Any, **keywords: Any) -> Any:
    return resolve(f"aten::{name}", Release(horizon))(*args, **keywords)


@pytest.mark.parametrize(
    ("source", "shape", "strides", "elements"),
    [
        (np.arange(3), (3,), (1,), [0, 0, 1]),
        (np.arange(6)[2:5], (3,), (1,), [1, 0, 2]),
        (np.arange(12).reshape(3, 4).T, (4, 3), (1, 4), [[0, 2, 4], [0, 0, 0], [1, 3, 5], [0, 0, 0]]),
    ],
)
def test_the_bytes_of_another_dtype_are_read(
    source: Any, shape: tuple[int, ...], strides: tuple[int, ...], elements: Any
) -> None:
    """As all of 1.6.0, 1.13.1, 2.0.1 and 2.15.0 gave them."""
    target = Tensor(np.zeros(2, np.float32))
    result = called("set_", "2.15.0", target, Tensor(source))
    assert result is target
    assert (target.array.shape, target.strides, target.array.view(np.int32).tolist()) == (shape, strides, elements)
    source[...] = 7
    assert target.array.view(np.int32).max() == 7  # the memory is shared


def test_sizes_of_elements_differ() -> None:
    target = Tensor(np.zeros(2, np.uint8))
    assert called("set_", "1.6.0", target, Tensor(np.ones(3, np.float32))).array.tolist() == [0, 0, 128]
    assert called("set_", "1.6.0", Tensor(np.zeros(2)), Tensor(np.zeros(0, np.float32))).array.shape == (0,)
    with pytest.raises(Unsupported, match="uninitialized memory"):
        called("set_", "1.6.0", Tensor(np.zeros(2)), Tensor(np.ones(3, np.float32)))


@pytest.mark.parametrize(
    ("horizon", "kind", "message"),
    [
        ("1.2.0", Raised, "Expected object of scalar type Float but got scalar type Long for argument #2 'source'$"),
        ("1.4.0", Raised, "scalar type Long for argument #2 'source' in call to _th_set_$"),
        ("1.5.1", Unsupported, "not modeled"),
    ],
)
def test_another_dtype_is_refused_up_to_1_5(horizon: str, kind: type[Exception], message: str) -> None:
    target = Tensor(np.zeros(2, np.float32))
    with pytest.raises(kind, match=message):
        called("set_", horizon, target, Tensor(np.arange(3)))
    assert called("set_", horizon, target, Tensor(np.ones(3, np.float32))).array.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("horizon", "rows"), [("1.7.1", False), ("1.8.1", True), ("2.0.1", True), ("2.1.2", False)])
def test_elements_are_scattered_in_memory_order(horizon: str, rows: bool) -> None:
    held = np.zeros((2, 3), np.float32)
    mask = Tensor(np.array([[True, True], [True, False], [False, True]]))
    called("masked_scatter_", horizon, Tensor(held.T), mask, Tensor(np.arange(1, 9, dtype=np.float32)))
    assert held.tolist() == ([[1, 2, 0], [3, 0, 4]] if rows else [[1, 3, 0], [2, 0, 4]])
    wide = called(
        "masked_scatter", horizon, Tensor(np.zeros((2, 3), np.float32).T), mask, Tensor(np.arange(1, 9, dtype=np.float32))
    )
    assert wide.array.tolist() == [[1, 2], [3, 0], [0, 4]]


@pytest.mark.parametrize("horizon", ["1.5.1", "2.15.0"])
def test_products_onto_elements_that_they_read_are_not_modeled(horizon: str) -> None:
    held = np.arange(9, dtype=np.float32).reshape(3, 3)
    with pytest.raises(Unsupported, match="writes to elements that the library reads"):
        called("addmv_", horizon, Tensor(held[:, 0]), Tensor(held[:, :2]), Tensor(np.ones(2, np.float32)))
    called("addmv_", horizon, Tensor(held[:, 0]), Tensor(held[:, 1:]), Tensor(np.ones(2, np.float32)))  # of one memory, but apart
    assert held[:, 0].tolist() == [3, 12, 21]
