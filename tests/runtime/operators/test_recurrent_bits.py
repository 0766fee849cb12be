"""float32 recurrent cells and layers, and batches multiplied as one matrix: the bits of releases on an Intel processor."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from torch_compat.releases.release import Release
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import Tensor

Array = np.ndarray[Any, Any]
BEFORE, AFTER = ("1.6.0", "2.0.1"), ("2.1.2", "2.15.0")
"""Releases that copy a batch to multiply it as one matrix, and releases that do so only if the other operand requires gradients."""


def matrix(rows: int, columns: int, start: int) -> Array:
    numbers = np.arange(rows * columns, dtype=np.int64) + start
    return (((numbers * 7919) % 1009).astype(float) / 1009 - 0.5).astype(np.float32).reshape(rows, columns)


def digest(result: Any) -> str:
    """The CRC-32 of the bits of one or several results."""
    outcome = 0
    for item in result if isinstance(result, tuple) else (result,):
        outcome = zlib.crc32(np.ascontiguousarray(item.array).tobytes(), outcome)
    return f"{outcome:08x}"


def tensor(array: Array, *, grad: bool = False) -> Tensor:
    result = Tensor(array)
    result.requires_grad = grad
    return result


def weights(gates: int, *, grad: bool = False) -> list[Tensor]:
    results = [matrix(gates * 5, 6, 1), matrix(gates * 5, 5, 2), matrix(1, gates * 5, 3)[0], matrix(1, gates * 5, 4)[0]]
    return [tensor(item, grad=grad) for item in results]


@pytest.mark.parametrize("release", BEFORE + AFTER)
@pytest.mark.parametrize(
    ("name", "gates", "expected"),
    [("lstm_cell", 4, "470deebe"), ("gru_cell", 3, "79bf05e4"), ("rnn_tanh_cell", 1, "53bd4150")],
)
def test_cells(name: str, gates: int, expected: str, release: str) -> None:
    x, h, c = matrix(3, 6, 5), matrix(3, 5, 6), matrix(3, 5, 7)
    state = [Tensor(h), Tensor(c)] if gates == 4 else Tensor(h)
    assert digest(resolve(f"aten::{name}", Release(release))(Tensor(x), state, *weights(gates))) == expected


@pytest.mark.parametrize(
    ("name", "gates", "folded", "apart"), [("gru", 3, "cc00607f", "67083a1a"), ("rnn_tanh", 1, "f280473a", "16c08031")]
)
def test_layers(name: str, gates: int, folded: str, apart: str) -> None:
    x, h = matrix(12, 6, 8).reshape(3, 4, 6), matrix(3, 5, 6)[None]

    def layer(release: str, *, grad: bool) -> str:
        called = resolve(f"aten::{name}", Release(release))
        return digest(called(Tensor(x), Tensor(h), weights(gates, grad=grad), True, 1, 0.0, False, False, True))

    assert {layer(release, grad=grad) for release in BEFORE for grad in (False, True)} == {folded}
    assert {layer(release, grad=True) for release in AFTER} == {folded}
    assert {layer(release, grad=False) for release in AFTER} == {apart}


@pytest.mark.parametrize(
    ("name", "folded", "apart"),
    [("left", "fdfafce2", "0ab55bb4"), ("right", "c93946e1", "f6e84ef7"), ("linear", "f1df3e47", "2baaa92a")],
)
def test_batches_that_would_be_copied(name: str, folded: str, apart: str) -> None:
    x, y = matrix(20, 7, 1).reshape(5, 4, 7).transpose(1, 0, 2), matrix(15, 7, 4).reshape(3, 5, 7)

    def call(release: str, *, grad: bool) -> str:
        matmul, linear = (resolve(f"aten::{item}", Release(release)) for item in ("matmul", "linear"))
        if name == "left":
            return digest(matmul(Tensor(x), tensor(matrix(7, 6, 2), grad=grad)))
        if name == "right":
            return digest(matmul(tensor(matrix(8, 5, 3), grad=grad), Tensor(y)))
        return digest(linear(Tensor(x), tensor(matrix(6, 7, 2), grad=grad), Tensor(matrix(1, 6, 3)[0])))

    assert {call(release, grad=grad) for release in BEFORE for grad in (False, True)} == {folded}
    assert {call(release, grad=True) for release in AFTER} == {folded}
    assert {call(release, grad=False) for release in AFTER} == {apart}
