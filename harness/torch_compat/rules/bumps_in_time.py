"""Readers learn a new format version before writers write it, and its operators have upgraders.

What: between the day on which readers learn a version of a format and the first day on which writers write it lies at least the
forward window. A day that no source dates is that of the release. Each operator that changes with a version has an upgrader of that
version; where no operators are recorded, this is not checked. Versions that a planned release is to bring are held to the same. What
happened before the policy was in force is no promise.

Why: a nightly build of one day that writes what the nightly build of the day before cannot read breaks whoever trains with the one
and serves with the other.

Example: format version 11 that readers and writers learn on the same day is 14 days early.

Reference: torch/csrc/jit/operator_upgraders/README.md, and the policy on forward compatibility.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.operator_changes import NOT_RECORDED

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
    """Judge every version of the kinds of formats that the rule's parameter ``kinds`` lists."""
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
                text = f"{entry.label}: {operator} changes with this version and has no upgrader"
                cause = Cause("no upgrader", operator, text)
                yield Judgement(rule.id, Verdict.FAIL if promised else Verdict.NO_PROMISE, subject, cause if promised else None)


def _in_time(policy: Policy, rule: RuleEntry, entry: Format, written: dt.date, *, promised: bool) -> Judgement:
    learned = _day(policy, entry.read_from)
    missing = policy.forward_window_days - (written - learned).days
    if missing <= 0:
        return Judgement(rule.id, Verdict.PASS, entry.label)
    if not promised:
        return Judgement(rule.id, Verdict.NO_PROMISE, entry.label)
    days = "1 day" if missing == 1 else f"{missing} days"
    text = f"{entry.label}: readers support it from {learned}, but writers already write it from {written}, {days} too early"
    return Judgement(rule.id, Verdict.FAIL, entry.label, Cause("too early", entry.label, text))


def _day(policy: Policy, milestone: Milestone) -> dt.date:
    """The day of a change: the stated one, else that of the release, real or planned."""
    return milestone.day or policy.day_of(milestone.release)


def _upgraded(evidence: Evidence) -> frozenset[tuple[str, int]]:
    """The operators, without overloads, that some recorded release has an upgrader for, each with the version of the bump."""
    if evidence.operators is None:
        return frozenset()
    return frozenset(
        (operator.partition(".")[0], bump)
        for operator, value, _ in evidence.operators.versions.facts()
        for bump, _upgrader, _old in json.loads(value)
    )
