"""Quantized tensors, with the results of the releases for ties, bounds, NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime.dtypes import DTYPES
from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor

TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
ODD = np.array([np.inf, -np.inf, np.nan, 3e9, -3e9], np.float32)
QUINT8, QINT8, QINT32 = 13, 12, 14  # the numbers by which programs name dtypes


def run(source: str, x: Any, horizon: str) -> Any:
    tensor = program(source, f"reference@{horizon}", version=3 if horizon >= "1.5" else 2).run("forward", (Tensor(x.copy()),))
    return tensor.array if isinstance(tensor, Tensor) else tensor


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
    result = quantized(ODD, 0, dtype, horizon)
    assert result.tolist() == found
    assert result.dtype == {QUINT8: np.uint8, QINT8: np.int8, QINT32: np.int32}[dtype]


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


CHANNELS = np.array([[0.5, 1.5, 2.5, -0.5], [np.inf, -np.inf, np.nan, 3e9]], np.float32)


def per_channel(x: Any, scales: Any, zeros: Any, axis: int, dtype: int, horizon: str, result: str = "torch.int_repr(q)") -> Any:
    source = f"""
def forward(self, x: Tensor, s: Tensor, z: Tensor) -> Any:
  q = torch.quantize_per_channel(x, s, z, {axis}, {dtype})
  return {result}
"""
    given = (Tensor(x.copy()), Tensor(np.array(scales, np.float32)), Tensor(np.array(zeros)))
    tensor = program(source, f"reference@{horizon}").run("forward", given)
    return tensor.array.tolist() if isinstance(tensor, Tensor) else tensor


@pytest.mark.parametrize(
    ("horizon", "ties"),
    [
        ("1.5.1", [4, 4, 6, 2]),
        ("1.6.0", [3, 5, 5, 3]),
        ("2.12.1", [3, 5, 5, 3]),
        ("2.13.0", [4, 4, 6, 2]),
        ("2.15.0", [3, 5, 5, 3]),
    ],
)
def test_channels_have_scales_of_their_own(horizon: str, ties: list[int]) -> None:
    """What is no number is 0, otherwise than in a tensor that is quantized as a whole."""
    assert per_channel(CHANNELS, [1, 1], [3, 2], 0, QINT8, horizon) == [ties, [127, -128, 0, 127]]
    assert per_channel(CHANNELS, [1, 1], [3, 2], 0, QUINT8, horizon) == [ties, [255, 0, 0, 255]]
    least, most = -(2**31), 2**31 - 1
    assert per_channel(CHANNELS, [1, 1], [3, 2], 0, QINT32, horizon) == [ties, [most, least, least, most]]
    result = per_channel(CHANNELS[:1, :2], [0.5, 1.0], [0, -3], 1, QINT8, horizon, "torch.dequantize(q)")
    assert result == [[0.5, 1.0 if horizon in {"1.5.1", "2.13.0"} else 2.0]]


@pytest.mark.parametrize(
    ("zeros", "axis", "said"),
    [
        ([300, 2], 0, "is out of range"),
        ([0], 0, "number of elements in scales and zero_points must match"),
        ([0, 1], 1, "length of scales must equal to channel"),
        ([0, 1], -1, "Channel axis out of range"),
        ([0, 1], 2, "Channel axis out of range"),
    ],
)
def test_channels_that_do_not_fit_are_refused(zeros: list[int], axis: int, said: str) -> None:
    with pytest.raises(Raised, match=said):
        per_channel(CHANNELS, [0.3, 1.0], zeros, axis, QINT8, "2.15.0")


def test_the_zero_points_of_channels_are_the_memory_that_was_given() -> None:
    source = "\ndef forward(self, x: Tensor, s: Tensor, z: Tensor) -> Tensor:\n  q = torch.quantize_per_channel(x, s, z, 0, 12)\n  return torch.q_per_channel_zero_points(q)\n"
    zeros = Tensor(np.array([0, 1]))
    result = program(source, "reference@2.15.0").run("forward", (Tensor(CHANNELS), Tensor(np.ones(2, np.float32)), zeros))
    assert result.storage is zeros.storage


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("torch.int_repr(torch.transpose(q, 0, 1))", [[0, 12], [10, 10], [35, 127]]),
        ("torch.int_repr(torch.select(q, 0, 0))", [0, 10, 35]),
        ("torch.int_repr(torch.view(q, [-1]))", [0, 10, 35, 12, 10, 127]),
        ("torch.int_repr(torch.slice(q, 1, 1))", [[10, 35], [10, 127]]),
        ("torch.int_repr(torch.relu(q))", [[10, 10, 35], [12, 10, 127]]),
        ("torch.int_repr(torch.max(q))", 127),
        ("torch.eq(q, q)", [[True] * 3] * 2),
        ("torch.q_zero_point(torch.clone(q))", 10),
    ],
)
def test_parts_of_quantized_tensors_have_their_scale(body: str, found: Any) -> None:
    """Written by 1.5.1 and 2.13.0, read by 1.6.0 and 2.15.0."""
    source = f"\ndef forward(self, x: Tensor) -> Any:\n  q = torch.quantize_per_tensor(x, 0.1, 10, {QINT8})\n  return {body}\n"
    numbers = np.array([[-1.0, 0.05, 2.5], [0.15, -0.0, 100.0]], np.float32)
    for horizon in ("1.6.0", "2.15.0"):
        result = run(source, numbers, horizon)
        assert (result.tolist() if isinstance(result, np.ndarray) else result) == found


@pytest.mark.parametrize(
    "body",
    ["torch.mm(x, q)", "torch.cat([q, q])", "float(q)", "torch.eq(q, 1)", "torch.where(torch.gt(x, 0), x, q)"],
)
def test_no_operator_of_numbers_fails_of_a_quantized_tensor(body: str) -> None:
    source = f"\ndef forward(self, x: Tensor) -> Any:\n  q = torch.quantize_per_tensor(x, 0.1, 10, {QINT8})\n  return {body}\n"
    with pytest.raises(Unsupported, match=r"does not support|does not take") as raised:
        run(source, np.ones((2, 2), np.float32), "2.15.0")
    assert "fails in" not in raised.value.message


@pytest.mark.parametrize(
    ("horizon", "found"),
    [
        ("1.5.1", [[-98, -98, -96, -96, -94, -94, -92, -92, -90, -90], [-88, -88, -86, -86, -84, -84, -82, -82, -80, -80]]),
        ("2.15.0", [[-98, -98, -96, -96, -94, -94, -92, -91, -90, -89], [-88, -88, -87, -86, -85, -84, -82, -82, -80, -80]]),
    ],
)
def test_ties_of_channels_are_divided_by_the_scale_up_to_1_5(horizon: str, found: list[list[int]]) -> None:
    scale = np.float32(0.08934503357651719)
    x = ((np.arange(20, dtype=np.float32) - np.float32(10.5)) * scale).reshape(2, 10)
    call = resolve("aten::quantize_per_channel", Release(horizon))
    result = call(Tensor(x), Tensor(np.full(2, scale)), Tensor(np.full(2, -88)), 0, QINT8)
    assert result.parts["elements"].tolist() == found


@pytest.mark.parametrize("horizon", ["1.5.1", "2.15.0"])
def test_numbers_of_channels_are_multiplied_in_float64(horizon: str) -> None:
    """The releases give these numbers; the products in float32 are larger."""
    parts = {
        "elements": np.array([[9, 13, 18]], np.int8), "scheme": "per_channel_affine", "scales": Tensor(np.array([0.1])),
        "zero_points": Tensor(np.array([0])), "axis": 0,
    }  # fmt: skip
    value = OpaqueTensor("torch.strided", DTYPES["qint8"], (1, 3), parts)
    result = resolve("aten::dequantize", Release(horizon))(value).array
    assert result.tolist() == [[0.8999999761581421, 1.2999999523162842, 1.7999999523162842]]


def test_parts_of_a_quantized_tensor() -> None:
    value = resolve("aten::quantize_per_tensor")(Tensor(np.arange(4, dtype=np.float32)), 1.0, 3, QUINT8)
    parts = resolve("aten::chunk")(value, 2)
    assert [part.parts["elements"].tolist() for part in parts] == [[3, 4], [5, 6]]
    assert [part.parts["zero_point"] for part in parts] == [3, 3]


@pytest.mark.parametrize("at", ["1.3.1", "1.6.0", "1.7.1", "2.15.0"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (1, 1)])
def test_shapes_stay(shape: tuple[int, ...], at: str) -> None:
    """Up to 1.6 the numbers are first copied in memory order, which must not add a dimension."""
    x = Tensor(np.ones(shape, np.float32))
    value = resolve("aten::quantize_per_tensor", Release(at))(x, 0.5, 1, 13)
    assert value.shape == shape
    assert resolve("aten::int_repr", Release(at))(value).array.shape == shape
    assert resolve("aten::dequantize", Release(at))(value).array.shape == shape
