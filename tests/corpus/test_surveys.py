from __future__ import annotations

import ast
import datetime as dt
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.corpus.surveys import Section, Survey, read_survey, survey_differences, write_survey
from harness.errors import CorpusError

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / "harness/readers/survey.py", *sorted((ROOT / "fixtures/probes").glob("*.py"))]
DAY = dt.date(2026, 7, 1)
IDENTITY = {"torch": "1.5.1", "git": "3c31d73", "python": "3.8.18"}
SCHEMAS = [f"aten::op{i}(Tensor self, *, Scalar alpha=1) -> Tensor" for i in range(5)]


def sections() -> dict[str, Any]:
    return {
        "schemas": {"obtained": "Asked.", "complete": True, "why_incomplete": None, "entries": list(SCHEMAS)},
        "kernels": {
            "obtained": "Asked.",
            "complete": False,
            "why_incomplete": "It crashes.",
            "entries": {"aten::a": ["CPU", "CUDA"], "aten::b": "crashed: SIGSEGV", "aten::c": []},
        },
        "accepts": {
            "obtained": "Tried.",
            "complete": True,
            "why_incomplete": None,
            "entries": {"torch-save": {"version": {"1": "loads", "9": "refused: too näw"}}, "export": {}},
        },
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "operators" / "torch-1.5.1.json"
    write_survey(path, "1.5.1", IDENTITY, DAY, sections())
    return path


def test_what_was_written_is_read(recorded: Path) -> None:
    survey = read_survey(recorded)
    assert survey == Survey("1.5.1", IDENTITY, DAY, {name: Section(**section) for name, section in sections().items()})


def test_writing_what_was_read_gives_the_same_bytes(recorded: Path, tmp_path: Path) -> None:
    survey = read_survey(recorded)
    again = tmp_path / "again.json"
    write_survey(again, survey.release, survey.identity, survey.recorded, json.loads(recorded.read_text("utf-8"))["sections"])
    assert again.read_bytes() == recorded.read_bytes()


def test_key_order_does_not_matter(recorded: Path, tmp_path: Path) -> None:
    backwards = {name: dict(reversed(section.items())) for name, section in reversed(sections().items())}
    write_survey(tmp_path / "b.json", "1.5.1", dict(reversed(IDENTITY.items())), DAY, backwards)
    assert (tmp_path / "b.json").read_bytes() == recorded.read_bytes()


def test_layout_is_json_with_one_schema_per_line(recorded: Path) -> None:
    text = recorded.read_text("utf-8")
    assert text.endswith("}\n")
    lines = text.splitlines()
    for schema in SCHEMAS:
        assert sum(schema in line for line in lines) == 1
    assert not any(line.count("aten::op") > 1 for line in lines)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not JSON"),
        (lambda text: "", "is not JSON"),
        (lambda text: "[]", "holds no JSON object"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 2'), "schema_version is 2, expected 1"),
        (lambda text: text.replace('"release"', '"relaese"'), "has the keys"),
        (lambda text: text.replace('"release": "1.5.1"', '"release": ""'), "release is not a text"),
        (lambda text: text.replace("2026-07-01", "2026-07-99"), "recorded is not a date"),
        (lambda text: text.replace('"2026-07-01"', "7"), "recorded is not a date"),
        (lambda text: text.replace('"complete": false', '"complete": true'), "section 'kernels': why_incomplete contradicts"),
        (lambda text: text.replace('"why_incomplete": "It crashes."', '"why_incomplete": null'), "why_incomplete contradicts"),
        (lambda text: text.replace('"obtained": "Tried."', '"obtained": ""'), "section 'accepts' does not say how"),
        (lambda text: text.replace('"obtained": "Tried."', '"other": ""'), "section 'accepts' has the keys"),
        (lambda text: re.sub(r'"sections": .*\n\}', '"sections": {}\n}', text, flags=re.DOTALL), "sections is not"),
        (lambda text: re.sub(r'"identity": \{[^}]*\}', '"identity": []', text), "identity is not an object"),
    ],
)
def test_damage_is_named_with_the_file_and_what_to_do(recorded: Path, damage: Any, message: str) -> None:
    text = recorded.read_text("utf-8")
    damaged = damage(text)
    assert damaged != text
    recorded.write_text(damaged, "utf-8")
    with pytest.raises(CorpusError, match=re.escape(message)) as caught:
        read_survey(recorded)
    assert caught.value.where == str(recorded)
    assert "observe that release again" in str(caught.value)


def test_bytes_that_are_no_text_are_damage(recorded: Path) -> None:
    recorded.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorpusError, match="is not JSON"):
        read_survey(recorded)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no recorded survey") as caught:
        read_survey(tmp_path / "torch-9.9.9.json")
    assert caught.value.code == "survey-missing"
    with pytest.raises(CorpusError, match="cannot be read"):
        read_survey(tmp_path)


def test_nothing_is_written_of_what_is_no_survey(tmp_path: Path) -> None:
    path = tmp_path / "torch-1.5.1.json"
    with pytest.raises(CorpusError, match="sections"):
        write_survey(path, "1.5.1", IDENTITY, DAY, {})
    assert not path.exists()


def changed(**changes: Any) -> list[str]:
    """The differences after changing attributes of sections: ``schemas={"entries": [...]}``; None removes one."""
    before = Survey("1.5.1", IDENTITY, DAY, {name: Section(**section) for name, section in sections().items()})
    after = dict(before.sections)
    for name, change in changes.items():
        if change is None:
            del after[name]
        else:
            after[name] = replace(after[name], **change) if name in after else Section(**change)
    return survey_differences(before, replace(before, sections=after, recorded=DAY + dt.timedelta(days=9)))


def test_differences() -> None:
    assert changed() == []
    assert changed(kernels=None) == ["kernels: the section is gone"]
    assert changed(more=sections()["schemas"]) == ["more: the section is new"]
    assert changed(kernels={"complete": True, "why_incomplete": None}) == ["kernels: now complete"]
    assert changed(schemas={"complete": False, "why_incomplete": "Lost."}) == ["schemas: no longer complete: Lost."]
    assert changed(kernels={"why_incomplete": "Other."}) == [
        "kernels: incomplete for another reason: was 'It crashes.', is 'Other.'"
    ]
    assert changed(schemas={"obtained": "Guessed."}) == ["schemas: obtained in another way: was 'Asked.', is 'Guessed.'"]
    assert changed(schemas={"entries": [*SCHEMAS[2:], "z"]}) == [
        f"schemas: 2 gone, first {SCHEMAS[0]!r}",
        "schemas: 1 new, first 'z'",
    ]
    assert changed(kernels={"entries": {"aten::a": ["CPU"], "aten::b": ["CPU"], "aten::c": []}}) == [
        "kernels: 2 changed, first 'aten::a'"
    ]
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


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures/operators").glob("*.json")), ids=lambda path: path.name)
def test_recorded_surveys_are_sound(path: Path) -> None:
    survey = read_survey(path)
    assert path.name == f"torch-{survey.release}.json"
    assert str(survey.identity["torch"]).partition("+")[0] == survey.release
    assert path.stat().st_size < 1_500_000


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
