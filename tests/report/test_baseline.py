"""A judgement compared with an older one is a plain difference of findings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from torch_compat.cli import main
from torch_compat.errors import UsageError
from torch_compat.judging.judgement import Verdict
from torch_compat.report.baseline import beside, beside_json, beside_lines, read_baseline
from torch_compat.report.to_json import report_json

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.judging.judge import Report


def before(report: Report) -> dict[str, tuple[tuple[str, int, str], ...]]:
    return read_baseline(report_json(report).encode(), "run.json")


def test_the_same_report_has_nothing_new(report: Report) -> None:
    diff = beside(report, before(report))
    assert (diff.new, diff.gone, diff.changed, diff.exit_status) == ({}, {}, {}, 0)
    assert diff.same == len(before(report)) > 1


def test_new_gone_and_changed(report: Report) -> None:
    first, second, *rest = report.findings
    later = replace(report, findings=(replace(first, id="new:one@3.0.0"), replace(second, count=99), *rest))
    diff = beside(later, before(report))
    assert (list(diff.new), list(diff.gone), list(diff.changed)) == (["new:one@3.0.0"], [first.id], [second.id])
    assert diff.exit_status == 1
    lines = list(beside_lines(diff))
    assert lines[0].startswith("Compared with the baseline: 1 new, 1 gone, 1 changed, ")
    assert f"  gone: {first.id}: 3 fail" in lines
    assert f"  changed: {second.id}: 3 fail; now 99 fail" in lines
    assert json.loads(report_json(later, diff))["baseline"] == beside_json(diff)


def test_only_what_is_new_counts(report: Report) -> None:
    waived = tuple(
        replace(finding, id=f"new:{at}", verdict=Verdict.WAIVED, waiver="w1") for at, finding in enumerate(report.findings)
    )
    assert beside(replace(report, findings=(*report.findings, *waived)), before(report)).exit_status == 0
    unknown = replace(report, not_checked=(*report.not_checked, ("pairs-observed", "nobody asked", 3)))
    assert beside(unknown, before(report)).exit_status == 4


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": 1}', '{"schema_version": 1, "findings": [1], "not_checked": []}', "[" * 100_000]
)
def test_a_baseline_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a report from torch-compat judge"):
        read_baseline(text.encode(), "run.json")


def test_the_command(small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(["judge", "--root", str(small_tree), *arguments])
        text = capsys.readouterr()
        return int(stopped.value.code or 0), text.out + text.err

    path = tmp_path / "run.json"
    assert run("--output", f"json={path}")[0] == 0
    status, message = run("--baseline", str(path))
    assert (status, " 0 new, 0 gone, 0 changed, " in message) == (0, True)
    document = json.loads(path.read_text(encoding="utf-8"))
    lost = document["findings"].pop()
    path.write_text(json.dumps(document), encoding="utf-8")
    status, message = run("--baseline", str(path), "--fail-on-new")
    assert (status, f"  new: {lost['id']}: " in message) == (0, True)
    assert run("--baseline", str(tmp_path / "nothing.json"))[0] == 2
    assert run("--fail-on-new")[0] == 2
