"""Weights of exported programs in the three layouts, and damage in them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.exported.documents import document, node, saved, tensor
from torch_compat.errors import Corrupt, Unsupported
from torch_compat.runtime.load import load

FIXTURES = Path(__file__).parents[3] / "fixtures"
META: dict[str, Any] = {
    "dtype": 7, "sizes": [{"as_int": 3}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "requires_grad": False,
    "device": {"type": "cpu", "index": None}, "layout": 7,
}  # fmt: skip


@pytest.mark.parametrize("release", ["2.1.2", "2.2.2", "2.3.1", "2.5.1", "2.8.0", "2.9.1", "2.15.0"])
def test_every_layout_holds_the_same_weights(release: str) -> None:
    result = load(FIXTURES / f"torch-{release}" / "export_conv_linear.pt2")
    state = result.state()
    results = {name.removeprefix("L__self___"): value for name, value in state.items()}
    assert results["conv.weight"].tolist() == [[[-0.1875, -0.0625]], [[0.0625, 0.1875]]]
    assert results["linear.bias"].tolist() == [-0.75]


def pt2(entry: dict[str, Any], data: bytes = struct.pack("<4f", 1, 2, 3, 4), *, records: dict[str, bytes] | None = None) -> bytes:
    """An archive of 2.9 with one buffer."""
    buffer = {"buffer": {"arg": {"name": "b"}, "buffer_name": "table", "persistent": True}}
    program = document(
        ["b", "x"],
        [node("torch.ops.aten.add.Tensor", "y", "b", "x")],
        ["y"],
        input_specs=[buffer, {"user_input": {"arg": tensor("x")}}],
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        result.writestr("m/archive_format", "pt2")
        result.writestr("m/archive_version", "0")
        result.writestr("m/.data/version", "6")
        result.writestr("m/models/model.json", json.dumps(program))
        result.writestr("m/data/weights/weight_0", data)
        result.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": {"table": entry}}))
        result.writestr("m/data/constants/model_constants_config.json", json.dumps({"config": {}}))
        for name, content in (records or {}).items():
            result.writestr(f"m/{name}", content)
    return stream.getvalue()


def entry(**changes: Any) -> dict[str, Any]:
    """What the configuration says of a weight."""
    meta = {**META, **changes.pop("meta", {})}
    return {"path_name": "weight_0", "is_param": False, "use_pickle": False, "tensor_meta": meta, **changes}


def test_a_weight_is_a_view_of_its_record() -> None:
    result = load(pt2(entry(meta={"sizes": [{"as_int": 2}], "strides": [{"as_int": 2}], "storage_offset": {"as_int": 1}})))
    assert result.state()["table"].tolist() == [2, 4]


def test_a_record_of_no_bytes_stands_for_zeros() -> None:
    assert load(pt2(entry(), b"")).state()["table"].tolist() == [0, 0, 0]


def test_a_pickled_weight_is_read_without_being_called() -> None:
    with pytest.raises(Corrupt):
        load(pt2(entry(use_pickle=True), b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00exittR."))


@pytest.mark.parametrize(
    "changes",
    [
        {"meta": {"sizes": [{"as_int": 5}]}},
        {"meta": {"storage_offset": {"as_int": 2}}},
        {"meta": {"sizes": [{"as_int": -1}]}},
        {"meta": {"strides": [{"as_int": 1 << 62}]}},
        {"meta": {"sizes": [{"as_int": 1 << 70}]}},
        {"meta": {"dtype": 99}},
        {"meta": {"sizes": [{"as_expr": {"expr_str": "s0"}}]}},
        {"path_name": "weight_9"},
        {"path_name": "../../archive_format"},
        {"path_name": 7},
        {"tensor_meta": None},
    ],
)
def test_a_weight_that_is_not_as_its_record_is_damage(changes: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        load(pt2(entry(**changes)))


def test_a_constant_of_a_custom_class_is_named() -> None:
    with pytest.raises(Unsupported, match="custom class"):
        load(pt2({"path_name": "weight_0", "is_param": False, "use_pickle": True, "tensor_meta": None}))


def test_weights_of_torch_save_in_the_archive() -> None:
    result = load(pt2(entry(), records={"data/weights/model.pt": saved({"table": [5.0, 6.0, 7.0]})}))
    assert result.forward(np.ones(3, np.float32)).tolist() == [6, 7, 8]
