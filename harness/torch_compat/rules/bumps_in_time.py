"""Readers support a new format version before writers write it, and its operators have upgraders.

What: readers support a format version at least one forward window before writers first write it. If no source gives the day, the day
of the release counts. Each operator that changes with a version has an upgrader for that version; if no operators are recorded, this
is not checked. The same applies to versions of planned releases. Events from before the policy was in force were not promised.

Why: if one nightly build writes archives that the nightly of the previous day cannot read, it breaks everybody who trains with one
and serves with the other.

Example: if readers and writers support format version 11 from the same day on, it is 14 days too early.

Reference: torch/csrc/jit/operator_upgraders/README.md, and the policy on forward compatibility.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.operator_changes import NOT_RECORDED
from torch_compat.words import count_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Format, Policy, RuleEntry
    from torch_compat.policy.model import Milestone

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
PARAMETERS: Final = frozenset({"kinds"})


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every version of the format kinds listed in the rule's parameter ``kinds``."""
    upgraded = _upgraded(evidence)
    for entry in evidence.policy.formats:
        if entry.kind not in rule.parameters.get("kinds", ()) or entry.written_from is None:
            continue
        written = _day(evidence.policy, entry.written_from)
        promised = written >= evidence.policy.in_force_from
        yield _in_time(evidence.policy, rule, entry, written, promised=promised)
        for operator in entry.operators or ():
            subject = f"{entry.label}, {operator}"
            if evidence.operators is None:
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause("not recorded", "operators", NOT_RECORDED))
            elif (operator, entry.version) in upgraded:
                yield Judgement(rule.id, Verdict.PASS, subject)
            else:
                text = f"{entry.label}: {operator} changes with this version but has no upgrader"
                cause = Cause("no upgrader", operator, text)
                yield Judgement(rule.id, Verdict.FAIL if promised else Verdict.NO_PROMISE, subject, cause if promised else None)


def _in_time(policy: Policy, rule: RuleEntry, entry: Format, written: dt.date, *, promised: bool) -> Judgement:
    learned = _day(policy, entry.read_from)
    missing = policy.forward_window_days - (written - learned).days
    if missing <= 0:
        return Judgement(rule.id, Verdict.PASS, entry.label)
    if not promised:
        return Judgement(rule.id, Verdict.NO_PROMISE, entry.label)
    days = count_of(missing, "day")
    text = f"{entry.label}: readers support it from {learned}, but writers already write it from {written}, {days} too early"
    return Judgement(rule.id, Verdict.FAIL, entry.label, Cause("too early", entry.label, text))


def _day(policy: Policy, milestone: Milestone) -> dt.date:
    """Return the date of a change: the stated one, else that of the release, real or planned."""
    return milestone.day or policy.day_of(milestone.release)


def _upgraded(evidence: Evidence) -> frozenset[tuple[str, int]]:
    """Return the operators, without overloads, that have an upgrader in some recorded release, each with the version of the bump."""
    if evidence.operators is None:
        return frozenset()
    return frozenset(
        (operator.partition(".")[0], bump)
        for operator, value, _ in evidence.operators.versions.facts()
        for bump, _upgrader, _old in json.loads(value)
    )
