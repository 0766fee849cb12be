"""Machine-readable formats: each is read with its schema or by an independent reader, and all have the same counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import junitparser
import pytest
from markdown_it import MarkdownIt
from pydantic import ValidationError
from sarif_pydantic import Sarif

import torch_compat
from tests.report.release.test_report import HOSTILE
from torch_compat.cli import main
from torch_compat.judging.judgement import Verdict
from torch_compat.report.machine.entries import ERROR, NOTE, WARNING, CommandReport, FindingEntry, of_report
from torch_compat.report.machine.forms import FORMS, MOST_ANNOTATIONS, MOST_OF_A_SUMMARY

if TYPE_CHECKING:
    from torch_compat.judging.judge import Report

SCHEMAS = Path(torch_compat.__file__).parent / "schemas"
RULES = {"newer-loads": "Archives load.", "waivers-exact": "Waivers are exact.", "reference-agrees": "It agrees."}
LEVELS = {"none", "note", "warning", "error"}


@pytest.fixture
def run(report: Report) -> CommandReport:
    """A judgement with failures, one waived finding, and things that were not checked."""
    judged = replace(report, notes=("reference-agrees was not checked, because it did not run",))
    return of_report(judged, RULES, {"torch-1.0.0/add": "torch-1.0.0/add file.pt"}, "the matrix\n")


def junit_of(run: CommandReport, folder: Path) -> junitparser.JUnitXml:
    path = folder / "junit.xml"
    path.write_text(FORMS["junit"](run), encoding="utf-8")
    return junitparser.JUnitXml.fromfile(str(path))


def lines_of(run: CommandReport) -> list[dict[str, Any]]:
    schema = json.loads((SCHEMAS / "run-lines.schema.json").read_text(encoding="utf-8"))
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    results = [json.loads(line) for line in FORMS["jsonl"](run).splitlines()]
    for line in results:
        checker.validate(line)
    return results


def sarif_of(run: CommandReport) -> dict[str, Any]:
    """A SARIF log that has what the standard requires."""
    return sarif_of_text(FORMS["sarif"](run))


def sarif_of_text(text: str) -> dict[str, Any]:
    """A SARIF log that an independent reader takes, and that has what the standard (OASIS SARIF 2.1.0) requires of each object."""
    assert Sarif.model_validate_json(text).version == "2.1.0"
    log: dict[str, Any] = json.loads(text)
    assert log["version"] == "2.1.0"  # 3.13.2
    (item,) = log["runs"]  # 3.13.4
    driver = item["tool"]["driver"]  # 3.14.6, 3.18.2
    assert driver["name"]  # 3.19.8
    ids = [rule["id"] for rule in driver["rules"]]  # 3.49.3
    assert len(set(ids)) == len(ids)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])  # 3.12.3
    assert [type(call["executionSuccessful"]) for call in item["invocations"]] == [bool]  # 3.20.14
    for result in item["results"]:
        assert result["message"]["text"]  # 3.27.11
        assert result["level"] in LEVELS  # 3.27.10
        assert ids[result["ruleIndex"]] == result["ruleId"]  # 3.27.6
        for location in result.get("locations", []):
            artifact = location["physicalLocation"]["artifactLocation"]  # 3.29.2
            assert re.fullmatch(r"(file://)?[A-Za-z0-9._~/%+-]+", artifact["uri"])  # 3.4.3: a URI
            absolute = artifact["uri"].startswith("file://")
            assert ("uriBaseId" in artifact) is not absolute  # 3.4.4
            assert absolute or artifact["uriBaseId"] in item["originalUriBaseIds"]  # 3.14.14
        for suppression in result.get("suppressions", []):
            assert suppression["kind"] in {"inSource", "external"}  # 3.35.2
    return log


def test_all_forms_count_the_same(run: CommandReport, tmp_path: Path) -> None:
    errors, warnings, notes = (len(run.of(level)) for level in (ERROR, WARNING, NOTE))
    assert min(errors, notes) > 0
    head, *entries = lines_of(run)
    assert (head["entries"], len(entries)) == (len(run.entries),) * 2
    results = sarif_of(run)["runs"][0]["results"]
    for level, count in ((ERROR, errors), (WARNING, warnings), (NOTE, notes)):
        assert [entry["level"] for entry in entries].count(level) == [result["level"] for result in results].count(level) == count
    message = FORMS["github"](run).splitlines()
    assert sum(line.startswith("::error ") for line in message) == errors
    assert sum(line.startswith("::warning ") for line in message) == warnings
    text = FORMS["summary"](run)
    assert re.findall(r"^### Broken \((\d+)\)$", text, re.MULTILINE) == [str(errors)]
    xml = junit_of(run, tmp_path)
    failing = {
        (case.classname, case.name)
        for suite in xml
        for case in suite
        if any(type(item).__name__ == "Failure" for item in case.result)
    }
    assert failing == {(item.rule, reader) for item in run.of(ERROR) for reader in item.readers or ("all",)}
    assert xml.failures == len(failing)
    for verdict in Verdict:
        assert head["totals"][verdict] == sarif_of(run)["runs"][0]["properties"]["totals"][verdict] == run.totals[verdict]


@pytest.mark.parametrize("spoil", ["level", "driver", "runs"])
def test_the_reader_of_sarif_refuses_what_is_none(run: CommandReport, spoil: str) -> None:
    log = sarif_of(run)
    if spoil == "level":
        log["runs"][0]["results"][0]["level"] = "terrible"
    else:
        (log["runs"][0]["tool"] if spoil == "driver" else log).pop(spoil)
    with pytest.raises(ValidationError):
        sarif_of_text(json.dumps(log))


def test_a_rule_that_was_not_asked_is_no_pass(run: CommandReport, tmp_path: Path) -> None:
    cases = {case.classname: case for suite in junit_of(run, tmp_path) for case in suite if case.name == "all"}
    assert [type(item).__name__ for item in cases["reference-agrees"].result] == ["Skipped"]
    assert cases["waivers-exact"].result == []


def test_what_is_accepted_is_suppressed_with_its_reason(run: CommandReport) -> None:
    suppressed = [result for result in sarif_of(run)["runs"][0]["results"] if "suppressions" in result]
    assert {result["suppressions"][0]["justification"] for result in suppressed} == {
        entry.accepted for entry in run.entries if entry.accepted
    }
    assert not [result for result in suppressed if result["level"] == "error"]


def hostile(count: int = 1) -> CommandReport:
    entry = FindingEntry(HOSTILE, HOSTILE[:50], "fail", ERROR, HOSTILE, 1, (HOSTILE[:30],), HOSTILE[:40], "", HOSTILE)
    rules = {HOSTILE[:50]: HOSTILE, "]]>": "]]>"}
    return CommandReport(
        HOSTILE[:60], "2026-11-22", "0" * 64, 1, {"fail": 1}, (entry,) * count, rules, "x\n" * 1_000_000, ("]]>",)
    )


def test_hostile_text_is_harmless_in_every_form(tmp_path: Path) -> None:
    run = hostile()
    assert set(FORMS) == {"junit", "sarif", "github", "summary", "jsonl"}
    for form in FORMS.values():
        text = form(run)
        assert not [character for character in text if not character.isprintable() and character != "\n"]
    assert junit_of(run, tmp_path).failures == 1
    assert "<script" not in MarkdownIt().render(FORMS["summary"](run))
    assert len(FORMS["github"](run).splitlines()) == 2
    sarif_of(run)
    lines_of(run)


def test_a_workflow_command_holds_no_other(run: CommandReport) -> None:
    entry = FindingEntry("a", "rule,x:y", "fail", ERROR, "50% of\n::error::all", 1)
    (line, _) = FORMS["github"](replace(run, entries=(entry,))).splitlines()
    assert line == "::error title=rule%2Cx%3Ay::1 × 50%25 of\\n::error::all"


def test_annotations_and_summaries_keep_their_limits() -> None:
    lines = FORMS["github"](hostile(500)).splitlines()
    assert len(lines) == MOST_ANNOTATIONS + 1
    assert "451 more are not annotated" in lines[-2]
    text = FORMS["summary"](hostile())
    assert len(text.encode()) <= MOST_OF_A_SUMMARY
    assert text.endswith("The rest is left out: a step summary has at most 1 MiB.\n")


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([*arguments])
    return int(stopped.value.code or 0)


def test_one_run_writes_every_form(small_tree: Path, tmp_path: Path) -> None:
    forms = (*FORMS, "json", "markdown")
    outputs = [part for form in forms for part in ("--output", f"{form}={tmp_path / form}")]
    assert ended("judge", "--root", str(small_tree), *outputs) == 0
    head = json.loads((tmp_path / "jsonl").read_text(encoding="utf-8").splitlines()[0])
    document = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert head["totals"] == document["counts"]
    assert head["entries"] == len(document["findings"]) + len(document["not_checked"])
    assert ended("report", "2.13.0", "--root", str(small_tree), *outputs) == 0
    report = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    head = json.loads((tmp_path / "jsonl").read_text(encoding="utf-8").splitlines()[0])
    counts = {section: count for section, count in report["counts"].items() if count}
    assert {name: count for name, count in head["totals"].items() if name != "not-checked"} == counts


@pytest.mark.parametrize("given", ["junit", "junit=", "xml=x", "=x", "json=a"])
def test_outputs_that_are_none(given: str, small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--output", f"junit={tmp_path}/a"] if given == "json=a" else []
    given = f"json={tmp_path}/a" if more else given
    assert ended("judge", "--root", str(small_tree), *more, "--output", given) == 2
    assert "--output: " in capsys.readouterr().err
