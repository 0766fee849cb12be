"""Whole archives: those of the corpus, and the errors for invalid ones."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import HEAD, archive, described, program
from torch_compat.corpus.manifest import Fixture, read_manifest
from torch_compat.errors import Corrupt, HarnessError, Raised, Refused, Unsupported
from torch_compat.releases.release import Release
from torch_compat.runtime import upgraders
from torch_compat.runtime.encoding import Encoder, module_state, perform
from torch_compat.runtime.load import load
from torch_compat.runtime.module import Module
from torch_compat.runtime.registry import NEWEST
from torch_compat.runtime.tensor import Tensor
from torch_compat.values.compare import compare

FIXTURES = Path(__file__).parents[2] / "fixtures"
LANGUAGE = frozenset({
    "attribute_dict", "attributes", "control_flow", "dicts", "enums", "exceptions", "extra_files", "float_constants_whole", "hooks",
    "integer_arithmetic", "interface", "mobile_containers", "mobile_flatbuffer", "mobile_flatbuffer_state", "mobile_state",
    "module_with_buffers", "named_tuple", "optionals", "script_class", "string_utf8", "submodules", "tuples",
})  # fmt: skip
WRITERS = sorted(folder.name.removeprefix("torch-") for folder in FIXTURES.glob("torch-*"))


def programs(writer: str) -> list[Fixture]:
    result = read_manifest(FIXTURES / f"torch-{writer}" / "manifest.jsonl").fixtures
    return [fixture for fixture in result if fixture.recipe in LANGUAGE]


@pytest.mark.parametrize("writer", WRITERS)
def test_at_the_writers_horizon_a_program_does_what_its_writer_read_back(writer: str) -> None:
    """Programs about the language; operators have their own tests. Strides, and the last bits of floats, are not looked at here."""
    looked_at = 0
    for fixture in programs(writer):
        wanted = fixture.golden if isinstance(fixture.readback, str) else fixture.readback
        got = perform(FIXTURES / f"torch-{writer}" / fixture.file, fixture.family, fixture.calls, f"reference@{writer}")
        result = compare(wanted, got)
        grave = [
            item
            for item in result.extent
            if item["kind"] != "strides" and not (item["kind"] == "value" and item["frontier"] is not None)
        ]
        assert result.result in {"same", "differs"}, (fixture.id, result)
        assert not grave, (fixture.id, result)
        looked_at += 1
    assert looked_at >= 3


@pytest.mark.parametrize("writer", [writer for writer in WRITERS if Release(writer) >= Release("1.6.0")])
@pytest.mark.sampled(3)
def test_the_parameters_and_buffers_of_a_mobile_archive_are_those_of_its_writer(writer: str) -> None:
    """The lite interpreter shows none to Python, so no observation has them. Up to 1.5 the source does not say which are buffers."""
    looked_at = 0
    for fixture in read_manifest(FIXTURES / f"torch-{writer}" / "manifest.jsonl").fixtures:
        if fixture.recipe not in {"mobile_state", "dtypes_mobile"}:
            continue
        module = load(FIXTURES / f"torch-{writer}" / fixture.file, f"reference@{writer}")
        assert isinstance(module, Module)
        pairs = fixture.golden["state"]["dict"]
        if Release(writer) <= Release("1.8.1"):  # in its memory every attribute that is a tensor is a buffer
            pairs = [pair for pair in pairs if not pair[0].endswith(".attribute")]
        rest: dict[str, Any] = {"state_after": None, "calls": []}
        result = compare({"state": {"dict": pairs}, **rest}, {"state": module_state(Encoder(), module), **rest})
        assert result.result == "same", (fixture.id, result)
        looked_at += 1
    assert looked_at


def test_a_module_takes_and_gives_arrays() -> None:
    module = program("def forward(self, x: Tensor, n: int=2) -> Tuple[Tensor, List[int]]:\n  return (torch.mul(x, n), [n])")
    given = np.array([1.0, 2.0], np.float32)
    result, listed = module(given)
    assert result.tolist() == [2, 4]
    assert result.dtype == np.float32
    assert listed == [2]
    assert module.forward(given, n=3)[0].tolist() == [3, 6]
    with pytest.raises(AttributeError):
        _ = module.backward
    assert module.attribute("training") is False


def test_writing_in_place_reaches_the_callers_array_when_the_call_ends_and_no_more_of_it() -> None:
    whole = np.array([1.0, 2.0, 3.0])
    given = whole[:1]
    assert program("def forward(self, x: Tensor) -> Tensor:\n  return torch.add_(x, 1)")(given) is given
    assert whole.tolist() == [2, 2, 3]


def test_copies_of_a_module_do_not_ask_for_ever() -> None:
    module = program("def forward(self) -> int:\n  return 1")
    assert copy.copy(module).run("forward") == 1


def test_the_runtime_is_imported_without_what_it_does_not_need() -> None:
    message = "import sys, torch_compat.runtime.encoding; print(sorted({'pydantic', 'click', 'rich', 'torch', 'jinja2'} & set(sys.modules)))"
    judged = subprocess.run([sys.executable, "-c", message], capture_output=True, text=True, check=True, cwd=FIXTURES.parent)
    assert judged.stdout.strip() == "[]"


def test_equal_results_of_1_0_are_one() -> None:
    source = "def forward(self, a: Tensor) -> Tuple[Tensor, Tensor]:\n  return torch.mul(a, 2), torch.mul(a, 2)"
    for horizon, shared in (("reference@1.0.0", True), ("reference@1.1.0", False)):
        item, other = described(source, horizon).run("forward", (Tensor(np.ones(2)),))
        assert (item.storage is other.storage) is shared


def test_extra_files_are_there() -> None:
    data = archive({"__torch__/m.py": "class Model(Module):\n  training : bool\n"})
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as result:
        result.writestr("m/extra/notes.txt", b"hello")
    assert load(stream.getvalue()).program.extra == {"notes.txt": b"hello"}


def test_a_mobile_archive_says_that_its_source_was_run() -> None:
    module = load(FIXTURES / "torch-2.13.0" / "mobile.ptl")
    assert "TorchScript source" in module.program.notes[0]


def test_a_file_of_no_program_is_unsupported() -> None:
    for name in ("state_dict.pt", "state_dict_stream.pt", "save_floats.pt"):
        with pytest.raises((Unsupported, Corrupt, Refused)):
            load(FIXTURES / "torch-1.5.1" / name)


@pytest.mark.parametrize(
    ("version", "horizon", "read"),
    [
        (3, "1.5.1", True),
        (4, "1.5.1", False),
        (10, "1.12.0", True),
        (10, "1.11.0", False),
        (11, "reference", False),
        (3, "2020-03-01", False),
    ],
)
def test_file_format_versions_are_read_when_a_release_read_them(version: int, horizon: str, read: bool) -> None:
    def attempt() -> Any:
        return program(
            "def forward(self) -> int:\n  return 1", f"reference@{horizon}".removesuffix("@reference"), version=version
        )

    if read:
        assert attempt().run("forward") == 1
    else:
        with pytest.raises(Refused):
            attempt()


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ({"m/version": b"3\n"}, Unsupported),
        ({"m/data.pkl": b"\x80\x02N."}, Corrupt),
        ({"m/version": b"3\n", "m/data.pkl": b"\x80\x02N."}, Refused),
        ({"m/version": b"x\n", "m/data.pkl": b"\x80\x02N."}, Corrupt),
        ({"m/version": b"3\n", "m/data.pkl": b"\x80\x02c__torch__.m\nModel\n)\x81}b."}, Refused),
        ({"m/version": b"3\n", "m/data.pkl": b"\x80\x02cos\nsystem\n)\x81}b."}, Refused),
        ({"m/version": b"1\n", "m/model.json": b"{"}, Corrupt),
        ({"m/version": b"1\n", "m/model.json": b"[]"}, Corrupt),
        ({"m/version": b"1\n", "m/model.json": b'{"mainModule": {"torchscriptArena": {"key": "code/x.py"}}}'}, Corrupt),
        ({"m/version": b"1\n", "m/model.json": b'{"mainModule": {"parameters": [{"name": "w", "tensorId": "4"}]}}'}, Corrupt),
        ({"m/version": b"1\n", "m/model.json": b'{"mainModule": {}, "tensors": [{"dataType": "FLOAT", "data": {"key": "tensors/0"}}]}'}, Corrupt),
    ],
)  # fmt: skip
def test_broken_archives_end_in_errors_of_ours(records: dict[str, bytes], error: type[HarnessError]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        for name, data in records.items():
            result.writestr(name, data)
    with pytest.raises(error):
        load(stream.getvalue())


def test_any_byte_of_a_flatbuffer_may_be_wrong() -> None:
    data = bytearray((FIXTURES / "torch-2.13.0" / "mobile_flatbuffer_state.ptl").read_bytes())
    for place in range(0, len(data), 37):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        try:
            load_flatbuffer(bytes(broken))
        except HarnessError:
            continue


def load_flatbuffer(data: bytes) -> Any:
    from torch_compat.runtime.flatbuffer import Flatbuffer  # noqa: PLC0415
    from torch_compat.runtime.horizons import horizon  # noqa: PLC0415
    from torch_compat.runtime.limits import LIMITS  # noqa: PLC0415
    from torch_compat.runtime.program import Program  # noqa: PLC0415

    return Program(Flatbuffer(memoryview(data), "broken"), horizon("reference"), LIMITS, "broken")


def test_any_byte_of_model_json_may_be_wrong(tmp_path: Path) -> None:
    with zipfile.ZipFile(FIXTURES / "torch-1.0.0" / "submodules.pt") as whole:
        parts = {info.filename: whole.read(info) for info in whole.infolist()}
    (name,) = [part for part in parts if part.endswith("model.json")]
    text = parts[name]
    for place in range(0, len(text), 29):
        parts[name] = text[:place] + b"9" + text[place + 1 :]
        path = tmp_path / f"{place}.pt"
        with zipfile.ZipFile(path, "w") as result:
            for record, data in parts.items():
                result.writestr(record, data)
        try:
            load(path)
        except HarnessError:
            continue


# ----------------------------------------------------------------------------------------------------------- upgraders


def test_old_division_of_integers_is_kept_by_the_upgrader_and_said() -> None:
    source = "def forward(self, a: Tensor, b: Tensor) -> Tensor:\n  return torch.div(a, b)"
    given = (Tensor(np.array([7, -7])), Tensor(np.array([2, 2])))
    old = program(source, version=3)
    assert old.run("forward", given).array.tolist() == [3, -3]
    assert [(name, upgrader) for _, _, name, upgrader in old.program.applied] == [("aten::div", "div_0_3")]
    new = program(source, version=4)
    assert new.run("forward", given).array.tolist() == [3.5, -3.5]
    assert new.program.applied == []


def test_the_old_operator_and_its_upgrader_agree() -> None:
    source = "def forward(self, a: Tensor, b: Tensor) -> Tensor:\n  return torch.div(a, b)"
    for a in ([7, -7, 9], [7.5, -7.5, 0.0]):
        for b in ([2, -2, 4], [2.5, -2.0, 4.0]):
            given = (Tensor(np.array(a)), Tensor(np.array(b)))
            if given[0].dtype is not given[1].dtype:
                continue
            was = program(source, "reference@1.5.1", version=2).run("forward", given)
            now = program(source, version=2).run("forward", given)
            assert was.array.tolist() == now.array.tolist()
            assert was.dtype is now.dtype


def test_upgraders_are_those_that_the_release_of_the_horizon_states() -> None:
    newest, none = upgraders.recorded(NEWEST), upgraders.recorded(Release("1.5.1"))
    assert none.bodies == ()
    for body in newest.bodies:
        result = newest.find(body.operator, body.bump - 1)
        assert result is not None
        assert body in result.bodies
        assert newest.find(body.operator, body.bump) is None
        assert none.find(body.operator, body.bump - 1) is None
        assert result.call(NEWEST) is not None
    assert {body.name for body in newest.bodies} >= {"div_Tensor_0_3", "full_0_4", "linspace_out_0_7", "gelu_0_9"}
    assert "full_names_0_4" in {body.name for body in upgraders.recorded(Release("2.12.1")).bodies}


@pytest.mark.parametrize("horizon", ["1.6.0", "1.8.1", "1.10.2", "1.11.0", "1.12.1", "2.15.0"])
def test_each_release_with_upgraders_runs_its_own_bodies(horizon: str) -> None:
    table = upgraders.recorded(Release(horizon))
    for body in table.bodies:
        if "_test_serialization" not in body.name:
            assert table.find(body.operator, body.first).call(Release(horizon)) is not None  # type: ignore[union-attr]
    source = "def forward(self, a: Tensor, b: Tensor) -> Tensor:\n  return torch.div(a, b)"
    module = program(source, f"reference@{horizon}", version=3)
    assert module.run("forward", (Tensor(np.array([7, -7])), Tensor(np.array([2, 2])))).array.tolist() == [3, -3]
    scalar = program("def forward(self, a: Tensor) -> Tensor:\n  return torch.div(a, 2.)", f"reference@{horizon}", version=3)
    assert scalar.run("forward", (Tensor(np.array([7, -7])),)).array.tolist() == [3.5, -3.5]


def test_the_overload_is_chosen_by_the_old_schema() -> None:
    source = "def forward(self, a: Tensor, out: Tensor) -> Tensor:\n  return torch.div(a, a, out=out)"
    given = (Tensor(np.array([7, -7])), Tensor(np.array([0, 0])))
    table = upgraders.UpgraderTable(
        body._replace(text=body.text.replace("trunc", "floor"))
        for body in upgraders.recorded(NEWEST).bodies
        if body.overload == "out"
    )
    module = load(
        archive({"__torch__/m.py": HEAD.encode() + b"  " + source.replace("\n", "\n  ").encode()}, version=3), table=table
    )
    assert module.run("forward", given).array.tolist() == [1, 1]
    assert module.program.applied[0][3] == "div_0_3"


def test_an_upgrader_whose_parameters_its_old_schema_lacks_is_refused() -> None:
    (body,) = (item for item in upgraders.recorded(NEWEST).bodies if item.name == "gelu_0_9")
    wrong = upgraders.UpgraderTable([body._replace(text=body.text.replace("self", "input"))])
    result = wrong.find("aten::gelu", 9)
    assert result is not None
    with pytest.raises(Refused, match="takes input; its old schema has self"):
        result.call(NEWEST)


def test_modules_described_in_json_are_read_without_attributes() -> None:
    source = "def forward(self,\n    n: int) -> int:\n  return torch.add(n, 1)\n"
    assert described(source, "reference").run("forward", (2,)) == 3
    with pytest.raises(Refused, match=r"model\.json"):
        described(source, "reference@2.13.0")


def test_a_horizon_refuses_what_its_release_refuses() -> None:
    source = "def forward(self, n: int) -> NoneType:\n  return None"
    assert program(source, "reference@1.9.0").run("forward", (1,)) is None
    with pytest.raises(Refused, match="NoneType"):
        program(source, "reference@1.8.1")


def test_keywords_may_skip_arguments_that_have_defaults() -> None:
    module = program("def forward(self, a: int, b: int=20, c: int=3, d: int=4) -> List[int]:\n  return [a, b, c, d]")
    assert module(1) == [1, 20, 3, 4]
    assert module(1, c=5) == [1, 20, 5, 4]
    assert module(1, d=6, b=7) == [1, 7, 3, 6]
    assert module(a=8, d=9) == [8, 20, 3, 9]
    with pytest.raises(Raised, match="missing value for argument 'a'"):
        module(c=5)
    with pytest.raises(Raised, match="Unknown keyword argument 'a'"):
        module(1, a=2)


def packed_program(methods: str) -> bytes:
    """The archive of a release with packed layers, with other methods."""
    kept = io.BytesIO()
    with zipfile.ZipFile(FIXTURES / "torch-1.6.0/packed_parameters.pt") as given, zipfile.ZipFile(kept, "w") as result:
        for name in given.namelist():
            data = given.read(name)
            if name.endswith("/packed_parameters.py"):
                head, mark, _ = data.partition(b"  def forward")
                assert mark
                data = head + methods.encode()
            result.writestr(name, data)
    return kept.getvalue()


def test_a_program_that_does_not_look_into_an_object_of_torch_classes_runs() -> None:
    result = load(FIXTURES / "torch-1.6.0/packed_parameters.pt", "reference@1.6.0")
    assert result(np.array([1.0, -2.0], np.float32)).tolist() == [2.0, -1.0]


def test_what_looks_into_an_object_of_torch_classes_is_not_supported() -> None:
    result = load(
        packed_program(
            "  def forward(self: __torch__.packed_parameters.Model) -> Tensor:\n"
            "    weight, bias, = (self.linear).weights()\n    return weight\n"
        ),
        "reference",
    )
    with pytest.raises(Unsupported, match=r"no support for class __torch__\.torch\.classes\.quantized\.LinearPackedParamsBase"):
        result()


def test_a_program_reads_the_weight_of_a_packed_layer() -> None:
    result = load(
        packed_program(
            "  def forward(self: __torch__.packed_parameters.Model) -> int:\n"
            "    weight, bias, = (self.linear).unpack()\n    return torch.dim(weight)\n"
        ),
        "reference",
    )
    assert result() == 2


def test_an_object_of_torch_classes_that_a_program_gives_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "packed_parameters.pt"
    path.write_bytes(
        packed_program(
            "  def forward(self: __torch__.packed_parameters.Model) -> __torch__.torch.classes.quantized.LinearPackedParamsBase:\n"
            "    return self.linear\n"
        )
    )
    with pytest.raises(
        Unsupported, match=r"cannot show a value of class __torch__\.torch\.classes\.quantized\.LinearPackedParamsBase"
    ):
        perform(path, "torchscript", [{"method": "forward", "args": []}], "reference@1.6.0")
