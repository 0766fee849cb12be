"""The recorded observations of the repository, judged: every promise holds or is waived, and the report is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema

import torch_compat
from torch_compat.judging.judgement import Verdict
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.judging.judge import Report

REPOSITORY = Path(__file__).parents[2]
SCHEMAS = Path(torch_compat.__file__).parent / "schemas"


def test_the_repository_is_green(judged: Report) -> None:
    failing = [finding.id for finding in judged.findings if finding.verdict is Verdict.FAIL]
    assert (judged.exit_status, failing, judged.not_checked) == (0, [], ())


def test_every_writer_is_judged_with_every_reader(judged: Report) -> None:
    scope = load_policy(REPOSITORY / "policies" / "torch").corpus
    pairs = {
        (writer.removeprefix("torch-"), reader.removeprefix("torch-").partition("+")[0]) for writer, reader, *_ in judged.outcomes
    }
    assert pairs >= {(writer, reader) for writer in scope.writers for reader in scope.readers}


def test_findings_have_different_ids_and_name_themselves(judged: Report) -> None:
    assert len({(finding.verdict, finding.id, finding.waiver) for finding in judged.findings}) == len(judged.findings)
    for finding in judged.findings:
        assert finding.id.startswith(f"{finding.rule}:")
        assert finding.cause
        assert finding.count > 0
        assert (finding.verdict == Verdict.WAIVED) is bool(finding.waiver)
    for verdict in (Verdict.FAIL, Verdict.WAIVED, Verdict.EXPECTED):
        assert sum(finding.count for finding in judged.findings if finding.verdict is verdict) == judged.counts[verdict]


def test_the_report_matches_its_schema(printed: Callable[[str], str]) -> None:
    schema = json.loads((SCHEMAS / "report.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(json.loads(printed("json")))] == []
