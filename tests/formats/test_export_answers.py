"""What ``inspect`` reports about exported programs: AOTInductor packages, several programs, operators, semantic changes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.runtime.exported.documents import LEAF, archive, arguments, document, node, tensor, tree
from torch_compat.inspection import inspect

if TYPE_CHECKING:
    from pathlib import Path


def pt2(path: Path, records: dict[str, bytes | str]) -> Path:
    """A pt2 archive with these records."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        for name, content in {"archive_format": "pt2", "archive_version": "0", ".data/version": "6", **records}.items():
            result.writestr(f"m/{name}", content)
    path.write_bytes(stream.getvalue())
    return path


def test_an_aotinductor_package_is_named_with_its_platform_and_its_native_code_is_a_danger(tmp_path: Path) -> None:
    metadata = {"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64"}
    folder = "data/aotinductor/model"
    result = inspect(
        pt2(tmp_path / "a.pt2", {f"{folder}/c.wrapper.so": b"\x7fELF", f"{folder}/c.wrapper_metadata.json": json.dumps(metadata)})
    )
    assert result["name"] == "AOTInductor package (zip, file format 6, linux x86_64, cpu)"
    assert result["readable_by"] == []
    assert [(danger["global"], danger["record"]) for danger in result["dangers"]] == [("native code", f"{folder}/c.wrapper.so")]
    assert any("aoti_load_package" in reason["because"] for reason in result["reasons"])


ELF = b"\x7fELF\2\1\1" + bytes(11) + b"\xb7\0" + bytes(44)
MACH = b"\xcf\xfa\xed\xfe\x0c\0\0\x01" + bytes(24)
PE = b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0\x64\x86" + bytes(20)


@pytest.mark.parametrize(
    ("library", "named"),
    [
        (ELF, "linux aarch64, cpu"),
        (MACH, "darwin arm64, cpu"),
        (PE, "win32 AMD64, cpu"),
        (PE[:64], "win32, cpu"),
        (ELF[:19], "platform not stated, cpu"),
        (b"", "platform not stated, cpu"),
    ],
)
def test_what_the_metadata_of_2_8_do_not_state_the_header_of_the_library_does(tmp_path: Path, library: bytes, named: str) -> None:
    folder = "data/aotinductor/model"
    result = inspect(
        pt2(
            tmp_path / "a.pt2",
            {f"{folder}/c.wrapper.so": library, f"{folder}/c.wrapper_metadata.json": '{"AOTI_DEVICE_KEY": "cpu"}'},
        )
    )
    assert result["name"] == f"AOTInductor package (zip, file format 6, {named})"


def test_hostile_metadata_of_a_package_is_no_crash_and_no_control_character(tmp_path: Path) -> None:
    folder = "data/aotinductor/model"
    for metadata in ('{"AOTI_PLATFORM": "\\u001b[31m", "AOTI_MACHINE": [1]}', "[]", "{", "\x00" * 100):
        result = inspect(pt2(tmp_path / "a.pt2", {f"{folder}/c.so": b"", f"{folder}/metadata.json": metadata}))
        assert "\x1b" not in str(result["name"] or "").replace("\\x1b", "")


def test_a_file_with_two_programs_says_so_and_torch_export_load_refuses_it(tmp_path: Path) -> None:
    program = json.dumps(document(["x"], [], ["x"]))
    result = inspect(pt2(tmp_path / "a.pt2", {"models/first.json": program, "models/second.json": program}))
    assert result["name"] == "torch.export (zip, file format 6, schema 8.2, 2 programs)"
    assert result["readable_by"] == []
    assert any("load_pt2" in reason["because"] for reason in result["reasons"])


@pytest.mark.parametrize(
    ("target", "first"),
    [("cond", "2.6.0"), ("wrap_with_set_grad_enabled", "2.7.0"), ("switch", "2.14.0")],
)
def test_the_first_release_that_imports_a_higher_order_operator(tmp_path: Path, target: str, first: str) -> None:
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(document(["x"], [node(f"torch.ops.higher_order.{target}", "y", "x")], ["y"]), samples=True))
    result = inspect(path)
    assert result["minimum_release"] == first
    assert result["operators"] == [f"higher_order::{target}"]


@pytest.mark.parametrize(
    ("result", "first"), [({"as_int": 1}, "2.6.0"), ({"as_bool": True}, "2.7.0"), ({"as_string": "x"}, None)]
)
def test_the_first_release_that_knows_a_kind_of_result(tmp_path: Path, result: dict[str, object], first: str | None) -> None:
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(document(["x"], [], ["x", result]), samples=True))
    assert inspect(path)["minimum_release"] == first


def test_a_named_tuple_is_known_only_where_it_was_registered(tmp_path: Path) -> None:
    point = tree("collections.namedtuple", "m.Point", LEAF)
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(document(["x"], [], ["x"], in_spec=arguments(point)), samples=True))
    result = inspect(path)
    assert result["readable_by"] == []
    assert any("registered" in reason["because"] for reason in result["reasons"])


@pytest.mark.parametrize(
    ("dtype", "parameter", "refused"), [(5, True, True), (12, True, True), (7, True, False), (5, False, False)]
)
def test_a_parameter_of_integers_is_refused_by_2_9_alone(tmp_path: Path, dtype: int, parameter: bool, refused: bool) -> None:
    meta = {"dtype": dtype, "sizes": [], "strides": [], "storage_offset": {"as_int": 0}}
    weight = {"path_name": "weight_0", "is_param": parameter, "use_pickle": False, "tensor_meta": meta}
    records: dict[str, bytes | str] = {
        "models/model.json": json.dumps(document(["x"], [], ["x"])),
        "data/weights/model_weights_config.json": json.dumps({"config": {"w": weight}}),
        "data/weights/weight_0": b"",
    }
    result = inspect(pt2(tmp_path / "a.pt2", records))
    spans = [(item["from"], item["to"]) for item in result["readable_by"]]
    assert (spans[0][0] == "2.10.0") is refused
    assert any("cannot" in reason["because"] for reason in result["reasons"]) is refused


def test_operators_that_change_their_meaning_are_told_with_the_release(tmp_path: Path) -> None:
    call = node("torch.ops.aten.arange.start", "y", {"as_int": 0}, {"as_float": 3.7}, dtype={"as_scalar_type": 5})
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(document(["x"], [call], ["y"]), samples=True))
    changes = {change["id"]: change for change in inspect(path)["changes_of_meaning"]}
    assert changes["arange-length"]["since"] == "2.14.0"
    assert changes["arange-length"]["operator"] == "aten::arange"


def test_a_result_without_a_name_is_damage(tmp_path: Path) -> None:
    program = document(["x"], [], ["x"])
    program["graph_module"]["graph"]["outputs"] = [{**tensor("x"), "as_int": 1}]
    path = tmp_path / "a.pt2"
    path.write_bytes(archive(program))
    assert inspect(path)["error"]["code"] == "bad-program"
