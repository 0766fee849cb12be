"""A report as JSON, in the form of harness/torch_compat/schemas/report.schema.json."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from torch_compat.judging.judgement import Verdict
from torch_compat.report.baseline import beside_json

if TYPE_CHECKING:
    from torch_compat.judging.judge import Report
    from torch_compat.report.baseline import BaselineDiff

__all__ = ["report_json"]

SCHEMA_VERSION = 1
PIECES = 1 << 14  # pieces of text joined at a time


def report_json(report: Report, diff: BaselineDiff | None = None) -> str:
    """The report, indented, with sorted keys and a newline at its end: the same evidence gives the same bytes.

    Parameters:
        diff: the difference from a baseline, if there is one.
    """
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "as_of": report.as_of,
        "evidence": report.evidence,
        "exit_status": report.exit_status,
        "counts": _counts(report.counts),
        "values_right": {direction: _counts(counts) for direction, counts in report.questions.items()},
        "asked": {str(asks): _counts(counts) for asks, counts in report.asked.items()},
        "modelled": {str(verdict): report.modelled.get(verdict, 0) for verdict in Verdict},
        "matrix": [
            {
                "writer": writer,
                "reader": reader,
                "family": family,
                "options": options,
                "counts": {str(outcome): count for outcome, count in sorted(counts.items())},
            }
            for (writer, reader, family, options), counts in sorted(report.outcomes.items())
        ],
        "findings": [
            {
                "id": finding.id,
                "rule": finding.rule,
                "verdict": str(finding.verdict),
                "count": finding.count,
                "title": finding.title,
                "cause": finding.cause,
                "what": finding.what,
                "families": list(finding.families),
                "options": finding.options or None,
                "first_reader": finding.first_reader or None,
                "readers": list(finding.readers),
                "writers": list(finding.writers),
                "smallest": finding.smallest,
                "reproduce": finding.reproduce,
                "waiver": finding.waiver or None,
                "announced_by": finding.bump or None,
                "modelled": finding.modelled,
            }
            for finding in report.findings
        ],
        "not_checked": [{"what": what, "reason": why, "count": count} for what, why, count in report.not_checked],
        "no_promise": [{"what": what, "reason": why or None, "count": count} for what, why, count in report.no_promise],
        "notes": list(report.notes),
        "observed_now": [source.reader for source in report.sources if source.now],
        "sources": [
            {
                "reader": source.reader,
                "from": "now" if source.now else "recorded",
                "observed": source.observed,
                "age_days": source.age_days,
            }
            for source in report.sources
        ],
    }
    if diff is not None:
        document["baseline"] = beside_json(diff)
    return _text(document) + "\n"


def _text(document: dict[str, Any]) -> str:
    """The document as JSON. json.dumps keeps all pieces of text at once, which takes eight times the memory of a long report."""
    pieces = json.JSONEncoder(indent=2, sort_keys=True, ensure_ascii=True).iterencode(document)
    return "".join("".join(some) for some in iter(lambda: list(islice(pieces, PIECES)), []))


def _counts(counts: dict[Verdict, int]) -> dict[str, int]:
    return {str(verdict): count for verdict, count in counts.items()}
