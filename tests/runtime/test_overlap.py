"""In-place writes into memory that is also read, with the results of 1.2.0 to 2.15.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor, dense

ROW = np.arange(1.0, 7.0, dtype=np.float32)


def refused(name: str, horizon: str, target: Any, source: Any, *rest: Any) -> bool:
    """Whether the operator refuses these two views."""
    try:
        resolve(f"aten::{name}", Release(horizon))(Tensor(target), Tensor(source), *rest)
    except Raised as error:
        return "refer to a single memory location. Please clone() the tensor" in str(error)
    return False


@pytest.mark.parametrize(
    ("name", "since", "before"),
    [
        ("copy_", "1.3.1", "1.2.0"),
        ("add_", "1.3.1", "1.2.0"),
        ("bitwise_xor_", "1.4.0", "1.3.1"),
        ("fmod_", "1.5.0", "1.4.0"),
        ("atan2_", "1.7.1", "1.6.0"),
    ],
)
def test_a_part_of_the_memory_is_refused_from_a_release_on(name: str, since: str, before: str) -> None:
    row = ROW.astype(np.int64) if name.startswith("bitwise") else ROW.copy()
    assert refused(name, since, row[1:], row[:-1])
    assert not refused(name, before, row[1:], row[:-1])


def test_what_shares_no_part_or_has_holes_is_written() -> None:
    row, rows = ROW.copy(), np.arange(12.0, dtype=np.float32).reshape(3, 4).copy()
    assert not refused("add_", "2.15.0", row[3:], row[:3])
    assert not refused("copy_", "2.15.0", rows[:, 1:], rows[:, :-1])
    assert not refused("copy_", "2.15.0", row[1:], row[:-1].astype(np.int32))
    assert not refused("add_", "2.15.0", row, row[:])


def test_the_same_memory_in_another_order_is_refused_since_1_10() -> None:
    square = np.arange(9.0, dtype=np.float32).reshape(3, 3).copy()
    assert not refused("add_", "1.9.1", square, square.T)
    assert refused("add_", "1.10.2", square, square.T)


@pytest.mark.parametrize(
    ("array", "expected"),
    [(ROW, True), (ROW[::2], False), (np.zeros((2, 3, 4)).transpose(1, 2, 0), True), (np.broadcast_to(ROW, (2, 6)), False)],
)
def test_dense_arrays_have_no_holes(array: Any, expected: bool) -> None:
    assert dense(array) is expected


def test_halves_are_made_of_floats() -> None:
    cast = resolve("aten::to", Release("2.15.0"))
    wide = np.float64(2049 + 1e-9)
    assert np.float16(wide) == 2050, "numpy rounds once"
    assert float(cast(Tensor(np.array([wide])), 5).array[0]) == 2048
