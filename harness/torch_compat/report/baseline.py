"""The comparison of a judgement with an older one: findings that are new, gone, changed or the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch_compat.errors import UsageError
from torch_compat.judging.judgement import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.judge import Report

__all__ = ["BaselineDiff", "beside", "beside_json", "beside_lines", "read_baseline"]

_VERDICTS = frozenset(str(verdict) for verdict in Verdict)
Told = tuple[str, int, str]
"""Verdict, count and waiver of a finding."""


@dataclass(frozen=True)
class BaselineDiff:
    """The difference between two judgements, by the ids of findings.

    Attributes:
        new, gone: findings, with their verdicts.
        changed: findings, with the old and the new verdicts.
        same: the number of unchanged findings.
    """

    new: dict[str, tuple[Told, ...]]
    gone: dict[str, tuple[Told, ...]]
    changed: dict[str, tuple[tuple[Told, ...], tuple[Told, ...]]]
    same: int

    @property
    def exit_status(self) -> int:
        """1 if a finding fails that did not fail before, 4 if something new was not checked, otherwise 0."""
        fresh = [
            *self.new.values(),
            *(tuple(item for item in now if item not in before) for before, now in self.changed.values()),
        ]
        verdicts = {verdict for told in fresh for verdict, _, _ in told}
        return 1 if str(Verdict.FAIL) in verdicts else 4 if str(Verdict.NOT_CHECKED) in verdicts else 0


def read_baseline(data: bytes, where: str) -> dict[str, tuple[Told, ...]]:
    """The verdicts of each finding in a report in the form of schemas/report.schema.json.

    Raises:
        UsageError: it is not such a report.
    """
    hint = "use the output of `torch-compat judge --format json`, or reports/latest/report.json"
    try:
        document: Any = json.loads(data)
        if document["schema_version"] != 1:
            raise UsageError(
                f"has report version {document['schema_version']!r}, expected 1", where=where, hint=hint, code="baseline"
            )
        told = [
            (finding["id"], (finding["verdict"], finding["count"], finding["waiver"] or "")) for finding in document["findings"]
        ]
        told += [
            (_unchecked(item["what"], item["reason"]), (str(Verdict.NOT_CHECKED), item["count"], ""))
            for item in document["not_checked"]
        ]
        good = all(
            isinstance(name, str) and verdict in _VERDICTS and isinstance(count, int) and isinstance(waiver, str)
            for name, (verdict, count, waiver) in told
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise UsageError("is not a report from torch-compat judge", where=where, hint=hint, code="baseline")
    return _grouped(told)


def beside(report: Report, baseline: dict[str, tuple[Told, ...]]) -> BaselineDiff:
    """Compare a report with an older one."""
    told = [(finding.id, (str(finding.verdict), finding.count, finding.waiver)) for finding in report.findings]
    told += [(_unchecked(what, why), (str(Verdict.NOT_CHECKED), count, "")) for what, why, count in report.not_checked]
    now = _grouped(told)
    return BaselineDiff(
        new={name: item for name, item in now.items() if name not in baseline},
        gone={name: item for name, item in baseline.items() if name not in now},
        changed={name: (baseline[name], item) for name, item in now.items() if name in baseline and baseline[name] != item},
        same=sum(baseline.get(name) == item for name, item in now.items()),
    )


def _unchecked(what: str, why: str) -> str:
    return f"{what}:not-checked:{why}"


def _grouped(told: list[tuple[str, Told]]) -> dict[str, tuple[Told, ...]]:
    """Group by id and sort: one cause may be waived in one part, and fail in another."""
    results: dict[str, list[Told]] = {}
    for name, item in told:
        results.setdefault(name, []).append(item)
    return {name: tuple(sorted(results[name])) for name in sorted(results)}


def beside_json(diff: BaselineDiff) -> dict[str, Any]:
    """The difference as included in a report."""
    return {"new": list(diff.new), "gone": list(diff.gone), "changed": list(diff.changed), "same": diff.same}


def beside_lines(diff: BaselineDiff) -> Iterator[str]:
    """The difference as text, with a line for each finding that is not the same."""
    yield f"Compared with the baseline: {len(diff.new)} new, {len(diff.gone)} gone, {len(diff.changed)} changed, {diff.same} the same"
    yield from (f"  new: {name}: {_said(item)}" for name, item in diff.new.items())
    yield from (f"  gone: {name}: {_said(item)}" for name, item in diff.gone.items())
    yield from (f"  changed: {name}: {_said(before)}; now {_said(now)}" for name, (before, now) in diff.changed.items())


def _said(told: tuple[Told, ...]) -> str:
    return ", ".join(f"{count} {verdict}{f' ({waiver})' if waiver else ''}" for verdict, count, waiver in told)
