"""Tensors without a NumPy array: what a program returns from them is in the archive, and nothing outside of a storage is read."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import run
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.pickles import Tensor as PickledTensor
from torch_compat.runtime import dtypes, opaque
from torch_compat.runtime.encoding import Encoder
from torch_compat.runtime.tensor import OpaqueTensor, Tensor


def pickled(
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    base: np.ndarray[Any, Any],
    quantizer: tuple[Any, ...] | None = None,
    *,
    offset: int = 0,
    requires_grad: bool = False,
) -> OpaqueTensor:
    """A tensor of these numbers over a storage; scales and zero points are given as tensors of the runtime."""
    value = PickledTensor(None, dtype, shape, strides, offset, requires_grad, "cpu", "_rebuild_qtensor", quantizer=quantizer)
    scales = {
        id(item): Tensor(np.array(item.parts["numbers"]))
        for item in quantizer or ()
        if isinstance(item, PickledTensor) and item.parts
    }
    return opaque.pickled(value, dtypes.DTYPES[dtype], base, lambda item: scales[id(item)], "m.pt, record 'data/0'")


def channels(numbers: list[Any]) -> PickledTensor:
    return PickledTensor(
        None, "float64", (len(numbers),), (1,), 0, False, "cpu", "_rebuild_tensor_v2", parts={"numbers": numbers}
    )


def elements(part: dict[str, Any], kind: str) -> list[Any]:
    results: list[Any] = np.frombuffer(base64.b64decode(part["tensor"]["bytes"]), kind).tolist()
    return results


def test_a_quantized_tensor_is_shown_by_its_integers() -> None:
    result = pickled("qint8", (2, 2), (1, 2), np.arange(4, dtype=np.int8), ("per_tensor_affine", 0.5, -3))
    shown = Encoder().encode(result)["object"]
    assert shown["type"] == "torch.strided"
    state = dict(shown["state"]["dict"])
    assert elements(state.pop("int_repr"), "i1") == [0, 2, 1, 3]
    assert state == {
        "qscheme": "torch.per_tensor_affine", "scale": {"float": 0.5}, "zero_point": -3, "dtype": "torch.qint8", "shape": [2, 2]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("zero_points", "scheme"), [([1, -1], "per_channel_affine"), ([0.0, 0.25], "per_channel_affine_float_qparams")]
)
def test_channels_have_scales_of_their_own(zero_points: list[Any], scheme: str) -> None:
    quantizer = ("per_channel_affine", channels([0.5, 2.0]), channels(zero_points), 1)
    state = dict(
        Encoder().encode(pickled("qint32", (1, 2), (2, 1), np.array([7, -7], np.int32), quantizer))["object"]["state"]["dict"]
    )
    assert (state["qscheme"], state["axis"]) == (f"torch.{scheme}", 1)
    assert elements(state["scales"], "f8") == [0.5, 2.0]
    assert elements(state["zero_points"], "f8" if isinstance(zero_points[0], float) else "i8") == zero_points
    assert elements(state["int_repr"], "i4") == [7, -7]


def test_scales_in_a_list_are_read_too() -> None:
    result = pickled("quint8", (2,), (1,), np.arange(2, dtype=np.uint8), ("per_channel_affine", [0.5, 1.0], [0, 1], 0))
    assert result.parts["scales"].array.tolist() == [0.5, 1.0]
    assert result.parts["zero_points"].array.dtype == np.int64


def test_a_tensor_without_numpy_dtype_is_shown_by_its_bytes() -> None:
    base = np.arange(8, dtype=np.uint16)
    result = pickled("complex32", (2,), (2,), base, offset=1, requires_grad=True)
    body = Encoder().encode(result)["tensor"]
    assert np.frombuffer(base64.b64decode(body["bytes"]), np.uint16).tolist() == [2, 3, 6, 7]
    assert (body["dtype"], body["strides"], body["offset"], body["requires_grad"]) == ("complex32", [2], 1, True)


def test_views_of_one_storage_share_it() -> None:
    base = np.arange(4, dtype=np.uint8)
    encoder = Encoder()
    first, second = (encoder.encode(pickled("uint3", (2,), (1,), base, offset=offset))["tensor"] for offset in (0, 2))
    assert (first["storage"], first["offset"]) == (0, 0)
    assert (second["storage"], second["offset"]) == (0, 2)


def test_several_numbers_in_a_byte_are_the_bytes_of_the_storage() -> None:
    result = pickled("quint4x2", (3,), (1,), np.array([1, 2, 9], np.uint8), ("per_tensor_affine", 1.0, 0))
    assert result.parts["elements"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "offset", "error", "code"),
    [
        ("qint8", (5,), (1,), 0, Corrupt, "outside-storage"),
        ("qint8", (1,), (1,), 4, Corrupt, "outside-storage"),
        ("uint3", (2, 2), (4, 1), 0, Corrupt, "outside-storage"),
        ("complex32", (3,), (1,), 0, Corrupt, "outside-storage"),
        ("quint4x2", (9,), (1,), 0, Corrupt, "storage-too-short"),
        ("quint4x2", (1 << 62,), (1,), 0, Corrupt, "storage-too-short"),
        ("quint2x4", (2,), (1,), 1, Unsupported, "packed-view"),
        ("quint2x4", (2, 2), (1, 2), 0, Unsupported, "packed-view"),
    ],
)
def test_nothing_outside_of_the_storage_is_read(
    dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, error: type[Exception], code: str
) -> None:
    quantizer = None if dtype in {"uint3", "complex32"} else ("per_tensor_affine", 1.0, 0)
    base = np.arange(4, dtype=np.uint8)
    with pytest.raises(error) as raised:
        pickled(dtype, shape, strides, base, quantizer, offset=offset)
    assert raised.value.code == code  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "quantizer",
    [
        ("per_tensor_affine", "0.5", 0),
        ("per_tensor_affine", 0.5),
        ("per_channel_affine", [0.5], [], 0),
        ("per_channel_affine", [None], [1], 0),
        ("per_channel_affine", [0.5], [1], 0.0),
        ("per_channel_affine", [0.5], [1 << 70], 0),
    ],
)
def test_a_quantizer_that_is_none_is_corrupt(quantizer: tuple[Any, ...]) -> None:
    with pytest.raises(Corrupt, match="scales and zero points") as raised:
        pickled("qint8", (1,), (1,), np.zeros(1, np.int8), quantizer)
    assert raised.value.code == "bad-tensor"


def test_the_sizes_of_an_opaque_tensor_can_be_asked_for() -> None:
    result = pickled("quint4x2", (1, 3), (3, 1), np.array([1, 2], np.uint8), ("per_tensor_affine", 1.0, 0))
    text = """
def forward(self, x: Tensor) -> Tuple[List[int], int, int, int, int, bool, bool]:
  return (torch.size(x), torch.size(x, -1), torch.dim(x), torch.numel(x), torch.element_size(x), torch.is_floating_point(x), ops.prim.is_quantized(x))
"""
    assert run(text, result) == ([1, 3], 3, 2, 3, 1, False, True)


def test_a_nested_tensor_has_no_sizes() -> None:
    with pytest.raises(Unsupported, match="nested tensor"):
        opaque.sizes_of(OpaqueTensor("torch.nested", dtypes.FLOAT32, (2,), {"tensors": []}))


def test_up_to_1_11_releases_cannot_look_into_complex_halves() -> None:
    result = pickled("complex32", (1,), (1,), np.zeros(2, np.uint16))
    assert Encoder(complex_halves=False).encode(result) == {
        "object": {"type": "torch.Tensor", "state": "<raises builtins.RuntimeError when looked at>"}
    }
