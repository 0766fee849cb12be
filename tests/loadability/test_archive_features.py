"""The features of an archive."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.archives import archive
from torch_compat.formats.facts import read_facts
from torch_compat.formats.model import Facts
from torch_compat.loadability import integer_constants, of
from torch_compat.loadability.archive_features import _holds_none, not_looked_at, signs_of
from torch_compat.pickles import Tensor, unpickle
from torch_compat.releases.behavior import OF_ARCHIVES

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ASKED = {
    "record": frozenset({"model.json", "data/", "none/"}),
    "field": frozenset({"attributes", "isQuantized"}),
    "type": frozenset({"NoneType", "Final"}),
    "call": frozenset({"aten::add/2", "aten::add/3"}),
    "newer": frozenset({"export-schema:8.2"}),
    "none-in": frozenset({"attributes.pkl"}),
    "no-tensor-in": frozenset({"constants.pkl"}),
    "dtype": frozenset({"UNDEFINED"}),
    "storage": frozenset({"quint4x2"}),
}


def signs(**given: Any) -> set[str]:
    facts = Facts("some.pt", 1, **given)
    facts.records = frozenset(facts.names)
    result, _ = signs_of(facts, ASKED)
    assert {sign.partition(":")[0] for sign in result} <= OF_ARCHIVES
    return set(result)


def test_family_container_and_versions_are_signs() -> None:
    result = signs(family="mobile", container="zip", versions={"bytecode": 8})
    assert result == {"family:mobile", "container:zip", "version:bytecode"}


def test_a_folder_is_there_if_any_record_of_it_is() -> None:
    result = signs(names=("model.json", "data/0", "database"))
    assert {"record:model.json", "record:data/"} <= result
    assert "record:none/" not in result


def test_fields_are_found_at_any_depth() -> None:
    model = {"mainModule": {"submodules": [{"attributes": []}]}, "tensors": [{"dims": [1]}]}
    assert "field:attributes" in signs(extra={"model": model})
    assert "field:isQuantized" not in signs(extra={"model": model})


def test_the_dtypes_that_a_model_states() -> None:
    assert "dtype:UNDEFINED" in signs(extra={"model": {"tensors": [{"dataType": "FLOAT"}, {"dataType": "UNDEFINED"}]}})
    assert "dtype:UNDEFINED" not in signs(extra={"model": {"tensors": [{"dataType": "FLOAT"}]}})
    assert "dtype:UNDEFINED" not in signs(extra={"model": {"tensors": "UNDEFINED"}})


@pytest.mark.parametrize(("version", "newer"), [("8.2", False), ("8.1", False), ("7", False), ("8.10", True), ("9", True)])
def test_schema_versions_are_compared_as_numbers(version: str, newer: bool) -> None:
    assert ("newer:export-schema:8.2" in signs(export_schema=version)) is newer


@pytest.mark.parametrize(
    ("fixture", "expected"),
    [
        ("torch-2.3.1/export_dynamic_batch", {"range-from:2"}),
        ("torch-2.4.1/export_dynamic_batch", {"range-from:0"}),
        ("torch-2.4.1/export_indexing", {"argument:as_optional_tensors"}),
        (
            "torch-2.1.2/export_indexing",
            {"argument:as_optional_tensors"},
        ),  # it states every kind of argument, and null for all but one
        ("torch-2.4.1/export_without_inputs", set()),
    ],
)
def test_arguments_and_ranges_of_exported_programs(fixture: str, expected: set[str]) -> None:
    asked = {"argument": frozenset({"as_optional_tensors"}), "range-from": frozenset({"0", "2"})}
    result, _ = signs_of(read_facts(FIXTURES / f"{fixture}.pt2"), asked)
    assert {sign for sign in result if sign.partition(":")[0] in asked} == expected


def test_source_counts_where_it_is_compiled() -> None:
    source = "class A(Enum):\n  x : NoneType\n  def f(self: A, a: Tensor) -> float:\n    b = torch.add(a, a, 1)\n    return 30000000000\n"
    expected = {"type:NoneType", "base:Enum", "call:aten::add/3", "whole-floats"}
    assert expected <= signs(family="torchscript", sources={"code/a.py": source})
    assert expected <= signs(family="package", sources={".data/ts_code/0/a.py": source})
    assert not expected & signs(family="package", sources={"code/a.py": source}), "that is a module of Python"
    assert not expected & signs(family="mobile", sources={"code/a.py": source}), "the bytecode is run"


def test_a_call_knows_its_record() -> None:
    facts = Facts("some.pt", 1, family="torchscript", sources={"code/a.py": "torch.add(x, 1)"})
    result, shapes = signs_of(facts, ASKED)
    assert result["call:aten::add/2"] == "code/a.py"
    assert set(shapes.values()) == {"code/a.py"}


def test_none_in_a_pickle() -> None:
    def unpickled(value: Any) -> Any:
        return unpickle(pickle.dumps(value, 2), where="attributes.pkl")

    assert "none-in:attributes.pkl" in signs(pickles={"attributes.pkl": unpickled((1, [None]))})
    assert "none-in:attributes.pkl" not in signs(pickles={"attributes.pkl": unpickled((1, [2]))})
    assert "protocol:2" in signs(pickles={"data.pkl": unpickled(1)})


def test_what_is_no_tensor_among_the_constants() -> None:
    def unpickled(value: Any) -> Any:
        return unpickle(pickle.dumps(value, 2), where="constants.pkl")

    assert "no-tensor-in:constants.pkl" in signs(pickles={"constants.pkl": unpickled(("\u00df",))})
    assert "no-tensor-in:constants.pkl" not in signs(pickles={"constants.pkl": unpickled(())})
    assert "no-tensor-in:constants.pkl" not in signs(pickles={"data.pkl": unpickled(("\u00df",))})


def test_tensors_among_the_constants_are_what_is_expected() -> None:
    facts = read_facts(Path(__file__).parents[2] / "fixtures" / "torch-1.8.1" / "traced.pt", verify=False)
    assert facts.pickles["constants.pkl"].value
    assert "no-tensor-in:constants.pkl" not in signs_of(facts, ASKED)[0]


def rebuilt(path: Path, function: bytes, arguments: bytes) -> set[str]:
    """The signs of an archive of torch.save whose pickle calls a function."""
    module, name = function.rsplit(b".", 1)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02c" + module + b"\n" + name + b"\n(" + arguments + b"tR.")
        archive.writestr("a/version", "3\n")
    result, _ = signs_of(read_facts(path), ASKED)
    return set(result)


def test_how_many_arguments_rebuild_a_tensor(tmp_path: Path) -> None:
    result = rebuilt(tmp_path / "a.pt", b"torch._utils._rebuild_tensor_v2", b"NNNNNNN")
    assert "args:torch._utils._rebuild_tensor_v2/7" in result


@pytest.mark.parametrize(("family", "counted"), [("torch-save", True), ("package", True), ("torchscript", False)])
def test_how_many_arguments_rebuild_a_tensor_matters_where_python_does_it(family: str, counted: bool) -> None:
    unpickled = unpickle(b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n(NNNNNNNtR.", where="o.pkl")
    result = signs(family=family, pickles={"o.pkl": unpickled})
    assert ("args:torch._utils._rebuild_tensor_v3/7" in result) is counted


@pytest.mark.parametrize(("name", "sign"), [(b"QUInt4x2Storage", True), (b"QUInt8Storage", False)])
def test_the_dtypes_of_storages(name: bytes, sign: bool) -> None:
    data = b"\x80\x02(X\x07\x00\x00\x00storagectorch\n" + name + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ."
    unpickled = unpickle(data, where="data.pkl")
    assert ("storage:quint4x2" in signs(family="torchscript", pickles={"data.pkl": unpickled})) is sign


def test_layout_of_a_sparse_tensor(tmp_path: Path) -> None:
    tensor = b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(K\x02tK\x01\x85\x89tR"
    layout = b"ctorch.serialization\n_get_layout\n(U\x10torch.sparse_cootR"
    result = rebuilt(
        tmp_path / "b.pt", b"torch._utils._rebuild_sparse_tensor", layout + b"(" + tensor + tensor + b"K\x03\x85\x89t"
    )
    assert {"sparse:coo", "sparse:coalesced"} <= result


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("  return __torch__.net.Point(x, n)\n", True),
        ("  p = __torch__.net.deep.Point(x)\n", True),
        ("    p: __torch__.net.Point) -> Tensor:\n", False),
        ("  return __torch__.nets.Point(x, n)\n", False),
        ("  return __torch__.other.net.Point(x, n)\n", False),
        ('  return "__torch__.net.Point(x)"\n', False),
    ],
)
def test_what_is_made_below_the_name_of_the_program(source: str, own: bool) -> None:
    """As 1.5.1, 1.7.1 and 1.9.1 refuse or take variants of torch-1.2.0/named_tuple.pt."""
    result = signs(family="torchscript", sources={"code/net.py": source}, extra={"model": {"mainModule": {"name": "net"}}})
    assert ("own-name" in result) is own


def test_a_nested_tensor_that_holds_no_tensor_is_a_sign() -> None:
    def nested(shape: tuple[int, ...]) -> set[str]:
        sizes = Tensor(None, "int64", shape, None, 0, False, "cpu", "f")
        result = Tensor(None, "float32", (), None, 0, False, "cpu", "f", "nested", parts={"sizes": sizes})
        assert result.parts is not None
        return {"nested:none"} if _holds_none(result) else set()

    assert nested(()) == nested((0, 2)) == {"nested:none"}
    assert nested((2, 2)) == set()


def test_source_that_is_too_large_to_be_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts("some.pt", 1, family="torchscript", container="zip")
    facts.sources = {"code/__torch__/m.py": "def f() -> float:\n  return 30000000000000000\n"}
    assert not_looked_at(facts) == {}
    assert "whole-floats" in signs_of(facts, ASKED)[0]
    monkeypatch.setattr(integer_constants, "MOST_PARSED", 10)
    assert "whole-floats" not in signs_of(facts, ASKED)[0]
    assert list(not_looked_at(facts)) == ["whole floats"]
    facts.sources = {"code/__torch__/m.py": "def f() -> float:\n  return 3.\n"}
    assert not_looked_at(facts) == {}


@pytest.mark.parametrize(
    ("value", "readers"),
    [
        ("annotate(Optional[List[int]], [1])", "1.10.0.."),
        ("annotate(Optional[List[int]], [])", "1.10.0.."),
        ("annotate(Optional[List[List[int]]], [[1], [2]])", "1.10.0.."),
        ("annotate(Optional[List[int]], [i for i in [1, 2]])", "1.10.0.."),
        ("annotate(Optional[Dict[str, int]], {})", "1.10.0.."),
        ("annotate(Optional[List[int]], annotate(List[int], [1]))", "1.5.0.."),
        ('annotate(Optional[Dict[str, int]], {"a": 1})', "1.5.0.."),
        ("annotate(Optional[Tuple[int, int]], (1, 2))", "1.5.0.."),
        ("annotate(List[Optional[int]], [1, 2])", "1.5.0.."),
        ("annotate(Optional[List[int]], y)", "1.5.0.."),
    ],
)
def test_a_list_has_an_optional_type_since_1_10(value: str, readers: str, tmp_path: Path) -> None:
    """Loaded by 1.5.1, 1.6.0, 1.7.1, 1.8.1, 1.9.1, 1.10.2, 1.11.0, 1.12.1, 2.0.1 and 2.15.0."""
    path = tmp_path / "a.pt"
    source = (
        "class Model(Module):\n  def forward(self,\n    x: Tensor) -> Tensor:\n    y = [1]\n    z = " + value + "\n    return x\n"
    )
    path.write_bytes(archive({"__torch__/m.py": source}))
    assert str(of(read_facts(path)).readers) == readers


@pytest.mark.parametrize(
    ("body", "readers"),
    [
        ("    z : Optional[List[int]] = [1]\n    return x\n", "1.10.0.."),
        ("    z : Optional[Dict[str, int]] = {}\n    return x\n", "1.10.0.."),
        ("    z : Optional[List[int]] = [i for i in [1]]\n    return x\n", "1.10.0.."),
        ("    z : Optional[List[int]] = annotate(List[int], [])\n    return x\n", "1.5.0.."),
        ("    z : Optional[List[int]] = None\n    z = [1]\n    return x\n", "1.5.0.."),
        ('    z : Optional[Dict[str, int]] = {"a": 1}\n    return x\n', "1.5.0.."),
        ("    return x\n  def g(self) -> Optional[List[int]]:\n    return [1]\n", "1.5.0..1.7.1, 1.10.0.."),
        ("    return x\n  def g(self) -> Optional[Dict[str, int]]:\n    return {}\n", "1.10.0.."),
        ("    return x\n  def g(self,\n    y: Optional[List[int]]) -> int:\n    return 1\n", "1.5.0.."),
        (
            "    return x\n  def g(self) -> Optional[List[int]]:\n    return None\n  def h(self) -> List[int]:\n    return [1]\n",
            "1.5.0..",
        ),
    ],
)
def test_an_annotated_list_has_an_optional_type_since_1_10(body: str, readers: str, tmp_path: Path) -> None:
    """Loaded by 1.5.1, 1.6.0, 1.7.1, 1.8.1, 1.9.1, 1.10.2 and 2.15.0."""
    path = tmp_path / "a.pt"
    source = "class Model(Module):\n  training : bool\n  def forward(self,\n    x: Tensor) -> Tensor:\n" + body
    path.write_bytes(archive({"__torch__/m.py": source}))
    assert str(of(read_facts(path)).readers) == readers
