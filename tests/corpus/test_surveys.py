from __future__ import annotations

import ast
import copy
import datetime as dt
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.surveyed import SCHEMAS, section, small_survey
from torch_compat.corpus.surveys import (
    FILES,
    RELEASES,
    Survey,
    SurveySection,
    parse_survey,
    read_survey,
    survey_differences,
    surveyed_releases,
    write_surveys,
)
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / "harness/torch_compat/inside/survey.py", *sorted((ROOT / "fixtures/probes").glob("*.py"))]
DAY = dt.date(2026, 7, 1)
IDENTITY = {"torch": "1.5.1", "git": "3c31d73", "python": "3.8.18"}


def said(release: str = "1.5.1", change: Callable[[dict[str, Any]], None] | None = None) -> Survey:
    tree = small_survey()
    if change is not None:
        change(tree)
    return parse_survey(release, {**IDENTITY, "torch": release}, DAY, tree)


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ------------------------------------------------------------------------------------------------------------- recording


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_surveys(tmp_path, [said()])
    assert read_survey(tmp_path, "1.5.1") == said()
    assert {name: section.entries for name, section in said().sections.items()} == {
        name: told["entries"] for name, told in small_survey().items()
    }
    assert sorted(everything(tmp_path)) == sorted([RELEASES, *(file for file, _ in FILES.values())])


def test_a_fact_is_one_line_with_the_releases_that_it_is_true_of(tmp_path: Path) -> None:
    def other(tree: dict[str, Any]) -> None:
        tree["schemas"]["entries"] = [*SCHEMAS[1:], "aten::op9() -> int"]
        tree["kernels"]["entries"]["aten::a"] = ["CPU", "MPS"]

    write_surveys(tmp_path, [said("1.10.2"), said("1.9.1", other), said("2.0.0", other)])
    assert (tmp_path / "operators/schemas.txt").read_text("utf-8").splitlines() == [
        "# history 1 texts",
        "# releases 1.9.1 1.10.2 2.0.0",
        "# obtained\t1.9.1..\tAsked.",
        f"{SCHEMAS[0]}\t1.10.2",
        *(f"{schema}\t1.9.1.." for schema in SCHEMAS[1:]),
        "aten::op9() -> int\t1.9.1,2.0.0..",
    ]
    assert "aten::a\t1.9.1,2.0.0.. MPS\t1.9.1.. CPU\t1.10.2 CUDA" in (tmp_path / "operators/kernels.txt").read_text("utf-8")


def test_the_order_of_recording_does_not_matter_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    def other(tree: dict[str, Any]) -> None:
        tree["schemas"]["entries"] = SCHEMAS[2:]
        tree["accepts"] = section({"torch-save": {}}, "Another reason.", "In another way.")

    surveys = [said("1.5.1"), said("1.9.1", other), said("1.10.2")]
    write_surveys(tmp_path / "once", surveys)
    for survey in reversed(surveys):
        write_surveys(tmp_path / "singly", [survey])
    before = everything(tmp_path / "once")
    assert everything(tmp_path / "singly") == before
    write_surveys(tmp_path / "once", surveys[1:2])
    assert everything(tmp_path / "once") == before
    for survey in surveys:
        assert read_survey(tmp_path / "once", survey.release) == survey


def test_a_release_that_joins_with_nothing_new_adds_no_line(tmp_path: Path) -> None:
    write_surveys(tmp_path, [said("1.5.1")])
    before = everything(tmp_path)
    write_surveys(tmp_path, [said("1.6.0")])
    for name, data in everything(tmp_path).items():
        if name != RELEASES:
            assert data == before[name].replace(b"# releases 1.5.1", b"# releases 1.5.1 1.6.0")


def test_a_release_that_is_surveyed_anew_is_replaced_whole(tmp_path: Path) -> None:
    def other(tree: dict[str, Any]) -> None:
        for name in ("schemas", "custom_classes"):
            tree[name] = section(["x::y() -> ()"], "New.", "Otherwise.")

    write_surveys(tmp_path, [said("1.5.1"), said("1.6.0")])
    write_surveys(tmp_path, [said("1.5.1", other)])
    write_surveys(tmp_path / "direct", [said("1.5.1", other), said("1.6.0")])
    assert {name: data for name, data in everything(tmp_path).items() if not name.startswith("direct")} == everything(
        tmp_path / "direct"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.pop("kernels"), "has sections"),
        (lambda tree: tree.update(more=section([])), "has sections"),
        (lambda tree: tree["schemas"].pop("obtained"), "section 'schemas' has the keys"),
        (lambda tree: tree["schemas"].update(obtained=""), "section 'schemas' does not say in one line how it was obtained"),
        (lambda tree: tree["schemas"].update(obtained="a\tb"), "section 'schemas' does not say in one line how it was obtained"),
        (lambda tree: tree["schemas"].update(complete="yes"), "does not say whether it is complete"),
        (lambda tree: tree["schemas"].update(complete=False), "section 'schemas': why_incomplete contradicts complete"),
        (lambda tree: tree["kernels"].update(complete=True), "section 'kernels': why_incomplete contradicts complete"),
        (lambda tree: tree["schemas"].update(entries="aten::a"), "neither a list nor an object"),
        (lambda tree: tree["schemas"].update(entries=["a\tb"]), "cannot start a line"),
        (lambda tree: tree["schemas"].update(entries=["# a"]), "cannot start a line"),
        (lambda tree: tree["schemas"].update(entries=["b", "a"]), "cannot be read back"),
        (lambda tree: tree["schemas"].update(entries=[7]), "section 'schemas'"),
        (lambda tree: tree["kernels"].update(entries=["aten::a"]), "do not have the format of that section"),
        (lambda tree: tree["native_functions"]["entries"].pop("path"), "do not have the format of that section"),
        (lambda tree: tree["native_functions"]["entries"].update(more=1), "cannot be read back"),
        (lambda tree: tree["global_names"]["entries"].pop("left_out"), "do not have the format of that section"),
        (lambda tree: tree["accepts"]["entries"].update({"a > b": 1}), "cannot be read back"),
    ],
)
def test_what_is_no_survey_is_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    with pytest.raises(CorpusError, match=re.escape(message)) as caught:
        said(change=change)
    assert caught.value.code == "survey"


def test_what_was_never_recorded_is_missing(tmp_path: Path) -> None:
    assert surveyed_releases(tmp_path) == {}
    with pytest.raises(CorpusError, match=r"no recorded survey of 1\.5\.1") as caught:
        read_survey(tmp_path, "1.5.1")
    assert caught.value.code == "survey-missing"


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        (RELEASES, lambda text: text[:-20] + "\n", "is not JSON"),
        (RELEASES, lambda text: text * 2, "a duplicate entry for 1.5.1"),
        (RELEASES, lambda text: text.replace('"schema_version":1', '"schema_version":2'), "expected 1"),
        (RELEASES, lambda text: text.replace('"identity"', '"idenity"'), "is not an entry for a surveyed release"),
        (RELEASES, lambda text: text.replace("2026-07-01", "2026-07-99"), "recorded is not a date"),
        ("operators/schemas.txt", lambda text: text[:-9], "ends in the middle of a line"),
        ("operators/schemas.txt", lambda _: "", "is empty"),
        ("operators/schemas.txt", lambda text: text.replace("history 1", "history 2"), "expected '# history 1"),
        ("operators/schemas.txt", lambda text: text.replace("1 texts", "1 facts"), "has layout 'facts', expected 'texts'"),
        ("operators/schemas.txt", lambda text: text.replace("# releases 1.5.1", "# releases 1.5.1 1.6.0"), "same releases"),
        (
            "operators/schemas.txt",
            lambda text: text.replace("\t1.5.1..\taten", "\taten").replace("# obtained", "# found"),
            "unknown header line",
        ),
        (
            "operators/schemas.txt",
            lambda text: text.replace("# obtained\t1.5.1..\tAsked.\n", ""),
            "does not state how 1.5.1 was obtained",
        ),
        (
            "operators/schemas.txt",
            lambda text: text.replace("Tensor\t1.5.1..", "Tensor\t1.5.2..", 1),
            "refers to unknown releases",
        ),
        ("operators/schemas.txt", lambda text: text.replace("Tensor\t1.5.1..", "Tensor 1.5.1..", 1), "does not have the layout"),
        (
            "operators/accepts.txt",
            lambda text: text.replace("\t", " ").replace("# obtained ", "# obtained\t"),
            "operators/accepts.txt",
        ),
    ],
)
def test_damage_is_named_with_the_file_and_what_to_do(
    tmp_path: Path, file: str, damage: Callable[[str], str], message: str
) -> None:
    write_surveys(tmp_path, [said()])
    path = tmp_path / file
    text = path.read_text("utf-8")
    assert damage(text) != text
    path.write_text(damage(text), "utf-8")
    with pytest.raises(CorpusError, match=re.escape(message)) as caught:
        read_survey(tmp_path, "1.5.1")
    assert str(path) in str(caught.value.where)
    assert "observe" in str(caught.value)


def test_nothing_is_added_to_damaged_files(tmp_path: Path) -> None:
    write_surveys(tmp_path, [said()])
    (tmp_path / "operators/upgraders.txt").write_bytes(b"\xff\xfe")
    before = everything(tmp_path)
    with pytest.raises(CorpusError, match=re.escape("operators/upgraders.txt")):
        write_surveys(tmp_path, [said("1.6.0")])
    assert everything(tmp_path) == before
    shutil.rmtree(tmp_path / "operators")
    with pytest.raises(CorpusError, match=r"no recorded survey"):
        read_survey(tmp_path, "1.5.1")


# ------------------------------------------------------------------------------------------------------------ differences


def changed(**changes: Any) -> list[str]:
    """The differences after changing attributes of sections: ``schemas={"entries": [...]}``; None removes one."""
    before = said()
    after = dict(before.sections)
    for name, change in changes.items():
        if change is None:
            del after[name]
        else:
            after[name] = replace(after[name], **change) if name in after else SurveySection(**change)
    return survey_differences(before, replace(before, sections=after, recorded=DAY + dt.timedelta(days=9)))


def test_differences() -> None:
    kernels = copy.deepcopy(small_survey()["kernels"]["entries"])
    assert changed() == []
    assert changed(kernels=None) == ["kernels: the section was removed"]
    assert changed(more=small_survey()["schemas"]) == ["more: the section is new"]
    assert changed(kernels={"complete": True, "why_incomplete": None}) == ["kernels: now complete"]
    assert changed(schemas={"complete": False, "why_incomplete": "Lost."}) == ["schemas: no longer complete: Lost."]
    assert changed(kernels={"why_incomplete": "Other."}) == [
        "kernels: incomplete for a different reason: was 'It crashes.', is 'Other.'"
    ]
    assert changed(schemas={"obtained": "Guessed."}) == ["schemas: obtained differently: was 'Asked.', is 'Guessed.'"]
    assert changed(schemas={"entries": [*SCHEMAS[2:], "z"]}) == [
        f"schemas: 2 gone, first {SCHEMAS[0]!r}",
        "schemas: 1 new, first 'z'",
    ]
    assert changed(kernels={"entries": {**kernels, "aten::b": ["CPU"]}}) == ["kernels: 1 changed, first 'aten::b'"]
    assert changed(accepts={"entries": {"torch-save": {"version": {"1": "loads", "9": "loads"}}, "export": {}}}) == [
        "accepts: 1 changed, first 'torch-save > version > 9'"
    ]
    assert changed(accepts={"entries": {"torch-save": {"version": {"1": "loads", "9": "refused: too näw"}}}}) == [
        "accepts: 1 gone, first 'export'"
    ]


def test_a_difference_of_torch_itself_is_named_and_one_of_the_day_or_the_python_is_not() -> None:
    old = Survey("1.5.1", IDENTITY, DAY, {})
    assert survey_differences(old, replace(old, identity={**IDENTITY, "python": "3.7.16"})) == []
    assert survey_differences(old, replace(old, identity={**IDENTITY, "torch": "1.5.1+cpu"})) == [
        "torch: was '1.5.1', is '1.5.1+cpu'"
    ]


# ---------------------------------------------------------------------------------------------------- the scripts themselves


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_for_old_releases_are_python_3_6_and_import_only_the_standard_library_and_torch(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 6))
    assert ast.get_docstring(tree)
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [("." * node.level) + (node.module or "")]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"torch"}
    walrus_and_positional_only = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.NamedExpr) or (isinstance(node, ast.arguments) and node.posonlyargs)
    ]
    assert not walrus_and_positional_only


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures/probes").glob("*.py")), ids=lambda path: path.name)
def test_probes_have_literal_constants_and_a_function_probe(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    since = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["SINCE"]
    ]
    assert len(since) == 1
    assert re.fullmatch(r"\d+\.\d+\.\d+", since[0])
    assert any(isinstance(node, ast.FunctionDef) and node.name == "probe" and not node.args.args for node in tree.body)
