"""Quantized tensors: the figures are those of the releases, asked for ties, bounds, NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised
from torch_compat.runtime.tensor import Tensor

TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
ODD = np.array([np.inf, -np.inf, np.nan, 3e9, -3e9], np.float32)
QUINT8, QINT8, QINT32 = 13, 12, 14  # the numbers by which programs name dtypes


def run(source: str, x: Any, horizon: str) -> Any:
    found = program(source, f"reference@{horizon}", version=3 if horizon >= "1.5" else 2).run("forward", (Tensor(x.copy()),))
    return found.array if isinstance(found, Tensor) else found


def quantized(x: Any, zero: int, dtype: int, horizon: str) -> Any:
    source = f"""
def forward(self, x: Tensor) -> Tensor:
  q = torch.quantize_per_tensor(x, 1., {zero}, {dtype})
  return torch.int_repr(q)
"""
    return run(source, x, horizon=horizon)


@pytest.mark.parametrize(
    ("horizon", "found"),
    [
        ("1.4.0", [4, 4, 6, 2, 2]),
        ("1.5.1", [4, 4, 6, 2, 2]),
        ("1.6.0", [3, 5, 5, 3, 1]),
        ("2.12.1", [3, 5, 5, 3, 1]),
        ("2.13.0", [4, 4, 6, 2, 2]),
        ("2.14.1", [3, 5, 5, 3, 1]),
        ("2.15.0", [3, 5, 5, 3, 1]),
    ],
)
def test_ties_are_those_of_the_number_or_of_both_together(horizon: str, found: list[int]) -> None:
    assert quantized(TIES, 3, QUINT8, horizon).tolist() == found


@pytest.mark.parametrize(
    ("horizon", "dtype", "found"),
    [
        ("1.5.1", QUINT8, [255, 0, 0, 255, 0]),
        ("1.6.0", QUINT8, [255, 0, 255, 255, 0]),
        ("1.5.1", QINT8, [127, -128, -128, 127, -128]),
        ("2.15.0", QINT8, [127, -128, 127, 127, -128]),
        ("1.4.0", QINT32, [-(2**31), -(2**31), -(2**31), 2**31 - 1, -(2**31)]),
        ("1.5.1", QINT32, [2**31 - 1, -(2**31), -(2**31), 2**31 - 1, -(2**31)]),
        ("2.15.0", QINT32, [2**31 - 1, -(2**31), -(2**31), 2**31 - 1, -(2**31)]),
    ],
)
def test_numbers_out_of_range(horizon: str, dtype: int, found: list[int]) -> None:
    made = quantized(ODD, 0, dtype, horizon)
    assert made.tolist() == found
    assert made.dtype == {QUINT8: np.uint8, QINT8: np.int8, QINT32: np.int32}[dtype]


@pytest.mark.parametrize(
    ("horizon", "zero", "words"),
    [
        ("1.5.1", 300, "quantize_tensor zero_point 300 is out of range"),
        ("1.9.1", -1, "quantize_tensor_per_tensor_affine zero_point -1 is out of range"),
        ("1.10.2", 300, "zero_point 300 is above upper bound"),
        ("2.15.0", -1, "zero_point -1 is below lower bound"),
    ],
)
def test_a_zero_point_out_of_range(horizon: str, zero: int, words: str) -> None:
    with pytest.raises(Raised, match=words):
        quantized(TIES, zero, QUINT8, horizon)


@pytest.mark.parametrize(("horizon", "words"), [("1.10.2", r"Float Tensor\."), ("1.11.0", "Float Tensor, got Double")])
def test_only_float32_is_quantized(horizon: str, words: str) -> None:
    with pytest.raises(Raised, match=words):
        quantized(TIES.astype(np.float64), 3, QUINT8, horizon)


def test_numbers_come_back() -> None:
    source = """
def forward(self, x: Tensor) -> Tuple[Tensor, float, int, bool, bool]:
  q = torch.quantize_per_tensor(x, 0.29999999999999999, 5, 13)
  return (torch.dequantize(q), torch.q_scale(q), torch.q_zero_point(q), ops.prim.is_quantized(q), ops.prim.is_sparse(q))
"""
    numbers, scale, zero, quantized, sparse = run(source, np.array([0.05, -1.5, 2.5], np.float32), horizon="2.15.0")
    assert numbers.array.tolist() == [0.0, -1.5, np.float32(8 * np.float32(0.3)).item()]
    assert (scale, zero, quantized, sparse) == (0.3, 5, True, False)


@pytest.mark.parametrize(("horizon", "raises"), [("1.8.1", True), ("1.9.1", False)])
def test_what_is_not_quantized_comes_back_since_1_9(horizon: str, raises: bool) -> None:
    source = "def forward(self, x: Tensor) -> Tensor:\n  return torch.dequantize(x)"
    if raises:
        with pytest.raises(Raised, match=r"aten::dequantize\.self"):
            run(source, TIES, horizon=horizon)
    else:
        assert run(source, TIES.astype(np.float64), horizon=horizon).dtype == np.float32


@pytest.mark.parametrize(
    ("horizon", "found"),
    [
        ("1.5.1", [1.0, 1.0, 3.0, -1.0, -1.0]),
        ("1.6.0", [0.0, 2.0, 2.0, 0.0, -2.0]),
        ("2.13.0", [0.0, 2.0, 2.0, 0.0, -2.0]),
    ],
)
def test_ties_of_what_is_rounded_as_if_quantized(horizon: str, found: list[float]) -> None:
    source = "def forward(self, x: Tensor) -> Tensor:\n  return torch.fake_quantize_per_tensor_affine(x, 1., 3, 0, 255)"
    assert run(source, TIES, horizon=horizon).tolist() == found


@pytest.mark.parametrize(("horizon", "infinity"), [("2.8.0", -3.0), ("2.9.1", 252.0)])
def test_infinity_rounded_as_if_quantized(horizon: str, infinity: float) -> None:
    source = "def forward(self, x: Tensor) -> Tensor:\n  return torch.fake_quantize_per_tensor_affine(x, 1., 3, 0, 255)"
    assert run(source, ODD, horizon=horizon).tolist() == [infinity, -3.0, -3.0, 252.0, -3.0]
