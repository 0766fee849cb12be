"""Every ``--format json`` has a published schema, and the real output matches it."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import click
import jsonschema
import pytest

import torch_compat
from tests.deprecated_tree import make_deprecated_tree
from tests.miniatures.index import FakeIndex
from tests.recordings import folder_of, reader_of, readers_of
from tests.small_tree import RELEASES
from torch_compat.cli import main, top_level
from torch_compat.corpus.corpus import load_corpus
from torch_compat.errors import EnvironmentUnavailable
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Verdict
from torch_compat.policy import Family, load_policy
from torch_compat.policy.deprecations import KINDS
from torch_compat.readers.environments import Environment
from torch_compat.replay.produce import Produced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import ObservedReader

    Run: TypeAlias = Callable[..., tuple[int, dict[str, Any]]]

SCHEMAS = Path(torch_compat.__file__).parent / "schemas"
SCHEMA_OF = {
    "inspect": "inspect",
    "judge": "report",
    "report": "release-report",
    "accept": "accept",
    "replay": "report",
    "observe": "observe",
    "produce": "produce",
    "admit": "admit",
    "readers list": "readers-list",
    "readers build": "readers-build",
    "readers remove": "readers-remove",
    "readers available": "readers-available",
    "new recipe": "new",
    "new deprecation": "new-begun",
    "new rule": "new-begun",
    "new upgrader": "new-upgrader",
    "new waiver": "new-begun",
    "deprecations": "deprecations",
    "plan": "plan",
    "prove": "prove",
    "explain": "explain",
    "run": "run",
    "candidate": "candidate",
    "extension record": "extension-manifest",
    "extension check": "extension-check",
    "extension dispatch": "extension-dispatch",
    "operators": "operators",
    "operators diff": "operators-diff",
    "operators history": "operators-history",
    "operators check": "operators-check",
}
LINES = ("run-lines",)
"""Schemas of what ``--output`` writes; tests/report/machine validates it."""
BUILT: dict[str, Any] = {
    "torch": "1.5.1",
    "git_revision": None,
    "python": "3.8.18",
    "numpy": "1.24.4",
    "wheel": "torch-1.5.1-cp38-cp38-manylinux1_x86_64.whl",
    "wheel_sha256": "0" * 64,
    "cuda": "none",
    "stubs": [],
    "built": "2026-11-20",
    "size": 1_500_000_000,
    "seconds": 50.2,
}


def schema(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return results


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name), format_checker=jsonschema.FormatChecker())


def parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(item)


def enums(name: str) -> list[set[str | None]]:
    return [set(part["enum"]) for part in parts(schema(name)) if isinstance(part.get("enum"), list)]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with ``--format json``; its exit status, and its output, which the command's schema accepts."""

    def run_command(command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as stopped:
            main([*command.split(), *arguments, "--format", "json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        validator(SCHEMA_OF[command]).validate(document)
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, document

    return run_command


def recordings(root: Path) -> list[Path]:
    return sorted(folder_of(root).glob("torch-*.txt"))


def observed_by(root: Path, version: str) -> ObservedReader:
    """What a release is recorded to have done."""
    return reader_of(root, version)


@pytest.fixture
def root(small_tree: Path, tmp_path: Path) -> Path:
    """Real evidence, where a run may write its own."""
    for name in ("fixtures", "policies", "reports/observations", "reports/proofs"):
        shutil.copytree(small_tree / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has 1.5.1, cannot build 1.6.0 and is just building 1.2.0."""

    class Environments:
        there = Environment("1.5.1", Path("/e"), Path("/e/bin/python"), BUILT)

        def get(self, version: str) -> Environment | None:
            return self.there if version == "1.5.1" else None

        def build(self, release: Any, **_: Any) -> Environment:
            if release.version != "1.5.1":
                raise EnvironmentUnavailable("needs 6 GB of disk", code="disk-short")
            return self.there

        def remove(self, version: str) -> int:
            if version == "1.2.0":
                raise EnvironmentUnavailable("is being built", code="busy")
            return 1_500_000_000 if version == "1.5.1" else 0

    monkeypatch.setattr(importlib.import_module("torch_compat.cli.readers"), "Environments", Environments)


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[ObservedReader], None]:
    """Lets ``observe`` observe what is given, without any torch."""
    module = importlib.import_module("torch_compat.replay.recording")

    def observe_this(observed: ObservedReader) -> None:
        monkeypatch.setattr(module, "built", lambda _release: None)
        monkeypatch.setattr(module, "observe_release", lambda *_, **__: observed)

    return observe_this


# ---------------------------------------------------------------------------------------------------------- the schemas


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        if command.invoke_without_command:
            yield name, command
        context = click.Context(command)
        for child in command.list_commands(context):
            result = command.get_command(context, child)
            assert result is not None
            yield from commands(result, f"{name} {child}".strip())
    else:
        yield name, command


def test_every_command_with_json_has_a_schema() -> None:
    speaking = {name for name, command in commands(top_level) if any("--format" in option.opts for option in command.params)}
    assert speaking == set(SCHEMA_OF)
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in (*SCHEMA_OF.values(), *LINES)}


@pytest.mark.parametrize("name", sorted({*SCHEMA_OF.values(), *LINES}))
def test_a_schema_is_strict_and_explains_itself(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    for part in parts(schema(name)):
        if "properties" in part and part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert set(part["required"]) <= set(part["properties"])
            for key, value in part["properties"].items():
                assert value.get("description") or "$ref" in value, key


@pytest.mark.parametrize("name", ["report", "observe"])
def test_outcomes_are_those_of_the_code(name: str) -> None:
    assert {str(outcome) for outcome in Outcome} in enums(name)


def test_verdicts_and_families_are_those_of_the_code() -> None:
    for counted in ("counts", "modelled"):
        assert set(schema("report")["properties"][counted]["properties"]) == {str(verdict) for verdict in Verdict}
    assert set(get_args(Family)) in enums("report")


# ----------------------------------------------------------------------------------------------------- real output of all


def test_judge(run: Run, small_tree: Path) -> None:
    status, document = run("judge", "--root", str(small_tree))
    assert document["exit_status"] == status
    assert document["counts"]["pass"] > 1000
    assert {row["reader"] for row in document["matrix"]} == set(readers_of(small_tree))


def test_report(run: Run, small_tree: Path) -> None:
    status, document = run("report", "2.13.0", "--since", "1.12.1", "--root", str(small_tree))
    assert (document["exit_status"], document["release"], document["since"]) == (status, "2.13.0", "1.12.1")
    assert sum(document["counts"].values()) == len(document["items"]) > 0


def test_accept(run: Run, small_tree: Path, root: Path) -> None:
    status, document = run("accept", "--root", str(small_tree))
    assert (status, document["changes"], document["unused"], document["not_checked"]) == (0, [], [], [])
    lock = root / "policies/torch/counts.lock"
    lock.write_text("".join(line for line in lock.read_text().splitlines(True) if " op-rrelu-noise " not in line))
    status, document = run("accept", "--root", str(root))
    assert (status, [change["became"][0]["change"] for change in document["changes"]]) == (1, [["alias-annotation"]] * 3)
    lock.unlink()
    status, document = run("accept", "--root", str(root))
    assert status == document["exit_status"] == 1
    assert {change["old"] for change in document["changes"]} == {None}


def test_replay(run: Run, root: Path) -> None:
    _, document = run("replay", "--recorded", "--root", str(root))
    kept = json.loads((root / "reports" / "latest" / "report.json").read_text(encoding="utf-8"))
    assert document == kept


def test_a_report_of_what_is_missing(run: Run, root: Path) -> None:
    shutil.rmtree(root / "reports" / "observations")
    status, document = run("judge", "--root", str(root))
    assert status == document["exit_status"]
    assert status in {1, 4}
    assert document["not_checked"]


def test_a_report_is_held_to_the_schema(run: Run, small_tree: Path) -> None:
    _, document = run("judge", "--root", str(small_tree))
    finding = document["findings"][0]
    wrong = [
        {**document, "extra": 1},
        {**document, "exit_status": 2},
        {**document, "as_of": "today"},
        {**document, "counts": {**document["counts"], "green": 1}},
        {**document, "findings": [{**finding, "verdict": "fine"}]},
        {**document, "matrix": [{**document["matrix"][0], "counts": {"good": 1}}]},
        {key: value for key, value in document.items() if key != "not_checked"},
    ]
    assert not [index for index, planted in enumerate(wrong) if validator("report").is_valid(planted)]


@pytest.mark.parametrize("version", RELEASES)
def test_observe(run: Run, pretend: Callable[[ObservedReader], None], version: str, root: Path) -> None:
    observed = observed_by(root, version)
    pretend(observed)
    status, document = run("observe", "--reader", f"torch-{observed.release}", "--root", str(root))
    assert status == 0
    assert len(document["cells"]) == len(observed.cells)


def test_replay_with_the_reference_reader(run: Run, root: Path) -> None:
    status, document = run("replay", "--reader", "reference", "--root", str(root))
    programs = sum(
        fixture.family in {"torchscript", "mobile"} and fixture.release != "synthetic"
        for fixture in load_corpus(root / "fixtures").fixtures.values()
    )
    assert sum(document["modelled"].values()) == programs
    assert sum(sum(row["counts"].values()) for row in document["matrix"] if row["reader"].startswith("reference@")) == programs
    if document["modelled"]["pass"] == programs - document["modelled"]["no-promise"]:
        assert status == 0


def test_observe_with_the_reference_reader(run: Run, root: Path) -> None:
    status, document = run("observe", "--reader", "reference", "--fixture", "torch-1.5.1/div", "--root", str(root))
    assert (status, document["reader"], document["identity"]["reader"]) == (0, "reference", "reference")
    assert [cell["reproduced"] for cell in document["cells"]] == [True]


def test_observe_what_was_never_recorded(run: Run, root: Path, pretend: Callable[[ObservedReader], None]) -> None:
    observed = observed_by(root, "1.5.1")
    pretend(observed)
    shutil.rmtree(root / "reports" / "observations")
    status, document = run("observe", "--reader", f"torch-{observed.release}", "--root", str(root))
    assert status == 4
    assert {cell["recorded"] for cell in document["cells"]} == {None}


def test_observe_a_contradiction(run: Run, pretend: Callable[[ObservedReader], None], root: Path) -> None:
    observed = observed_by(root, "1.12.1")
    cells = {name: replace(cell, result="timed-out", stage="call") for name, cell in observed.cells.items()}
    pretend(replace(observed, cells=cells))
    status, document = run("observe", "--reader", f"torch-{observed.release}", "--root", str(root))
    assert status == 1
    assert False in {cell["reproduced"] for cell in document["cells"]}


@pytest.mark.real_torch("2.13.0")
def test_observe_for_real(run: Run, root: Path) -> None:
    status, document = run("observe", "--reader", "torch-2.13.0", "--fixture", "torch-1.5.1/div", "--again", "--root", str(root))
    assert status == 0
    assert document["identity"]["torch"].startswith("2.13.0")
    assert [cell["reproduced"] for cell in document["cells"]] == [True]


def test_run(run: Run, small_tree: Path, tmp_path: Path) -> None:
    archive = str(small_tree / "fixtures" / "torch-1.5.1" / "div.pt")
    items = {"tensor": {"dtype": "float64", "shape": [2], "data": [1.5, -0.0]}}
    (tmp_path / "args.json").write_text(json.dumps([items, items]), encoding="utf-8")
    status, document = run("run", archive, "--args", str(tmp_path / "args.json"), "--explain")
    assert (status, document["outcome"], document["reader"]) == (0, "loaded", "reference")
    data = [part["tensor"] for part in document["value"]["tuple"]]
    assert data == [{"dtype": "float64", "shape": [2], "data": [1.0, "nan"]}] * 2
    assert [upgrader["upgrader"] for upgrader in document["upgraders"]] == ["div_0_3"]
    status, document = run("run", archive)
    assert (status, document["outcome"]) == (1, "raised")


def test_run_is_held_to_the_schema() -> None:
    good = {"schema_version": 1, "outcome": "loaded", "value": None, "reader": "reference", "method": "forward", "notes": []}
    error = {"code": "x", "message": "y", "where": None}
    assert validator("run").is_valid(good)
    wrong = [
        {**good, "outcome": "raised"},
        {**good, "error": error},
        {**good, "value": 1.5},
        {**good, "value": {"float": 1.0, "tuple": []}},
        {**good, "value": {"tensor": {"dtype": "int64", "shape": [1], "data": [None]}}},
        {key: value for key, value in good.items() if key != "value"},
    ]
    assert not [index for index, planted in enumerate(wrong) if validator("run").is_valid(planted)]


def test_operators(run: Run) -> None:
    status, document = run("operators", "--reference")
    assert status == 0
    by_name = {row["operator"]: row["overloads"] for row in document["operators"]}
    assert list(by_name) == sorted(by_name)
    assert {"aten::add", "aten::conv2d", "prim::device"} <= set(by_name)
    assert {item["first_argument"] for item in by_name["aten::add"]} >= {"tensor", "scalar"}


def test_operators_diff(run: Run) -> None:
    status, document = run("operators diff", "1.4.0", "1.5.0")
    assert status == 0
    assert (document["old"], document["new"]) == ("1.4.0", "1.5.0")
    (bag,) = (change for change in document["changes"] if change["operator"] == "aten::_embedding_bag")
    assert (bag["kind"], bag["backward"], bag["forward"], bag["reason"]) == ("changed", True, True, None)
    assert {change["kind"] for change in document["changes"]} == {"added", "changed", "removed"}
    _, document = run("operators diff", "2.12.1", "2.13.0", "--breaks")
    assert {change["kind"] for change in document["changes"]} == {"changed", "unknown"}
    assert [row["release"] for row in document["incomplete"]] == ["2.13.0"]


def test_operators_history(run: Run) -> None:
    status, document = run("operators history", "aten::gelu")
    assert status == 0
    assert {row["operator"] for row in document["schemas"]} >= {"aten::gelu", "aten::gelu.out"}
    assert {row["upgrader"] for row in document["upgraders"]} == {"gelu_0_9", "gelu_out_0_9"}
    assert document["changes"]
    assert "reference" not in document
    status, document = run("operators history", "aten::gelu", "--reference")
    assert status == 0
    assert max(len(row["versions"]) for row in document["reference"]) > 1
    assert document["kernels"]
    assert document["declared"]
    assert document["tags"]


def test_operators_check(run: Run, small_tree: Path, tmp_path: Path) -> None:
    status, document = run("operators check", "--old", "2.12.1", "--new", "2.14.1", "--root", str(small_tree))
    assert (status, document["exit_status"], document["broken"]) == (0, 0, [])
    assert document["waived"]
    status, document = run("operators check", "--old", "1.10.2", "--new", "1.11.0", "--no-waivers")
    assert status == 1
    assert document["broken"]
    assert {row["operator"] for row in document["upgraded"]} >= {"aten::linspace", "aten::logspace"}
    assert document["draft"].startswith("[operator_waiver]")
    status, document = run("operators check", "--old", "2.12.1", "--new", "2.13.0", "--no-waivers")
    assert status == 1
    assert document["unknown"]
    assert document["incomplete"]


def test_produce(run: Run, monkeypatch: pytest.MonkeyPatch, small_tree: Path) -> None:
    corpus = load_corpus(small_tree / "fixtures")
    fixture: Fixture = corpus.fixtures["torch-1.5.1/div"]
    entry = next(iter(corpus.not_writable.values()))
    module = importlib.import_module("torch_compat.cli.produce")
    monkeypatch.setattr(module, "built", lambda _release: None)
    monkeypatch.setattr(module, "TorchRelease", lambda _environment: contextlib.nullcontext())
    produced = Produced((fixture, entry), ("torch-1.5.1/div",), (("torch-1.5.1/full", ("golden", "content")),))
    monkeypatch.setattr(module, "run_recipes", lambda *_: produced)
    status, document = run("produce", "torch-1.5.1", "--root", str(small_tree))
    assert status == 1
    assert document["added"] == [fixture.id]
    assert document["not_writable"][0]["id"] == entry.id


def test_admit(run: Run, root: Path) -> None:
    status, document = run("admit", "torch-2.99.0", "--dry-run", "--root", str(root))
    assert (status, {row["state"] for row in document["steps"]}) == (0, {"to-do"})
    assert document["environments"]["build"][0] == "torch-2.99.0"
    status, document = run("admit", "torch-2.13.0", "--only", "produce", "--only", "documents", "--root", str(root))
    assert [row["state"] for row in document["steps"]] == ["there", "there"]
    assert status == 0


def test_readers_list(run: Run, root: Path) -> None:
    status, document = run("readers list", "--root", str(root))
    assert status == 0
    assert {"torch-1.0.0", "torch-1.5.1", "torch-2.13.0"} <= {row["name"] for row in document["readers"]}


@pytest.mark.usefixtures("environments")
def test_readers_list_of_what_is_built(run: Run, root: Path) -> None:
    _, document = run("readers list", "--root", str(root))
    assert [row["environment"] for row in document["readers"] if row["built"]] == [BUILT]


@pytest.mark.usefixtures("environments")
def test_readers_build(run: Run, root: Path) -> None:
    status, document = run("readers build", "torch-1.5.1", "torch-1.6.0", "--root", str(root))
    assert status == 4
    assert [row["error"] and row["error"]["code"] for row in document["readers"]] == [None, "disk-short"]


@pytest.mark.usefixtures("environments")
def test_readers_remove(run: Run, root: Path) -> None:
    status, document = run("readers remove", "torch-1.5.1", "torch-1.2.0", "torch-1.6.0", "--root", str(root))
    assert status == 4
    assert [row["freed"] for row in document["removed"]] == [1_500_000_000, 0]


def test_readers_available(run: Run, monkeypatch: pytest.MonkeyPatch, small_tree: Path) -> None:
    index = FakeIndex.of(load_policy(small_tree / "policies" / "torch").calendar)
    monkeypatch.setattr(importlib.import_module("torch_compat.cli.readers"), "run_command", index)
    status, document = run("readers available", "--root", str(small_tree))
    assert (status, document["missing"]) == (0, [])
    index.releases["9.0.0"] = (dt.datetime.now(dt.UTC).date(), ("3.14",))
    for index.tells_dates in (True, False):
        status, document = run("readers available", "--root", str(small_tree))
        (row,) = document["missing"]
        assert (status, row["name"], row["date"] is None) == (1, "torch-9.0.0", not index.tells_dates)


@pytest.mark.parametrize("family", get_args(Family))
def test_new_recipe(run: Run, small_tree: Path, tmp_path: Path, family: str) -> None:
    shutil.copytree(small_tree / "policies", tmp_path / "policies")
    status, document = run("new recipe", "mine", "--family", family, "--root", str(tmp_path))
    assert (status, document["path"]) == (0, "fixtures/recipes/mine.py")


def test_families_of_new_are_those_of_the_code() -> None:
    assert set(get_args(Family)) in enums("new")


@pytest.fixture
def deprecated(tmp_path: Path) -> Path:
    """A root of deprecations with generated evidence."""
    make_deprecated_tree(tmp_path / "tree")
    return tmp_path / "tree"


def test_deprecations(run: Run, deprecated: Path) -> None:
    status, document = run("deprecations", "--root", str(deprecated))
    assert (status, document["exit_status"]) == (0, 0)
    assert {deprecation["verdict"] for deprecation in document["deprecations"]} == {"kept", "broken", "no-promise"}
    assert {deprecation["kind"] for deprecation in document["deprecations"]} == set(KINDS)
    status, document = run("deprecations", "--profile", "strict", "--as-of", "1.7.0", "--root", str(deprecated))
    assert (status, document["profile"], document["as_of"]) == (1, "strict", "2021-12-01")


def test_deprecations_swept(run: Run, deprecated: Path) -> None:
    status, document = run("deprecations", "--sweep", "2020-01-01..1.11.0", "--root", str(deprecated))
    assert status == 4  # this tree has no fixtures
    assert document["spans"][-1]["to"] == "2023-01-05"


@pytest.mark.parametrize("name", ["mode", "early-and-known", "deprecations-timeline", "1.3.0", "1.12.0", "strict", "default"])
def test_explain(run: Run, deprecated: Path, name: str) -> None:
    status, document = run("explain", name, "--root", str(deprecated))
    assert status == 0
    assert name in {item["id"] for item in document["found"]}


@pytest.mark.parametrize("kind", ["operator", "mode", "keyword-only", "removal", "rename", "default", "behaviour", "file-format"])
def test_plan(run: Run, deprecated: Path, kind: str) -> None:
    status, document = run("plan", kind, "aten::gelu", "--from", "1.2.0", "--root", str(deprecated))
    assert (status, document["complete"]) == (0, True)
    status, document = run("plan", kind, "aten::gelu", "--from", "1.14.0", "--root", str(deprecated))
    assert status == (0 if kind == "file-format" else 4)


def test_new_of_policies(run: Run, deprecated: Path) -> None:
    (deprecated / "harness" / "torch_compat" / "rules").mkdir(parents=True)
    root = str(deprecated)
    for begun, arguments in (("deprecation", ("--kind", "removal")), ("waiver", ()), ("rule", ())):
        status, document = run(f"new {begun}", "mine", *arguments, "--root", root)
        assert (status, document["begun"]) == (0, begun)
        for file in document["files"]:
            path = deprecated / file["path"]
            assert file["replace"]
            if path.name == "promises.toml":
                continue
            path.unlink()


@pytest.mark.parametrize("arguments", [("gelu_0_9",), ("div_out_0_3", "--count", "48"), ("gelu_out_0_9", "--mutate")])
def test_prove(run: Run, arguments: tuple[str, ...]) -> None:
    status, document = run("prove", *arguments)
    assert status == document["exit_status"]
    assert len(document["proofs"]) + len(document["mutants"]) == 1


def test_new_upgrader(run: Run, root: Path) -> None:
    status, document = run("new upgrader", "aten::square", "--root", str(root))
    assert (status, document["upgrader"]) == (0, "square_0_10")
    assert "policies/torch/upgraders.toml" in document["files"]
    assert not any(step["done"] for step in document["steps"])
