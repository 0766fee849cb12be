"""Waivers for operators are exact.

What: every waiver for operators covers exactly as many as counts.lock states, each of its patterns fits one at least, it shares none with
another waiver, and has not expired. The same holds for what the policy says cannot be known. A waiver since a release that is planned
waits for it, until it expires.

Why: a pattern that fits more than its author thought of hides the next break; one that fits nothing hides that something was mended.

Example: '^aten::_foreach_.*$' is to cover 12 operators, and hides a thirteenth that broke for another reason.

Reference: this project; PyTorch's own list of exceptions matches anywhere in a schema, is not counted, and is cut by date alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.operators.breaks import UNKNOWN
from torch_compat.policy.operator_waivers import wrong
from torch_compat.rules.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.rules.operator_changes import NOT_RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.policy.operator_waivers import OperatorGap, OperatorWaiver
    from torch_compat.rules.evidence import Evidence
    from torch_compat.rules.operator_changes import OperatorChanges

__all__ = ["judge", "unknown_operators"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every waiver for operators by what it covers."""
    for waiver in evidence.policy.operator_waivers:
        yield _judgement(rule, f"waiver {waiver.id}", waiver.id, *_waiver(evidence, waiver))
    for gap in evidence.policy.operator_gaps:
        yield _judgement(rule, f"operator_gap of {gap.release}", gap.release, *_gap(evidence, gap))


def _judgement(rule: RuleEntry, subject: str, name: str, verdict: Verdict, what: str, text: str) -> Judgement:
    return Judgement(rule.id, verdict, subject, Cause(what, name, f"{subject} {text}") if what else None)


def _waiver(evidence: Evidence, waiver: OperatorWaiver) -> tuple[Verdict, str, str]:
    changes = evidence.operator_changes
    if changes is None:
        return Verdict.NOT_CHECKED, "not recorded", f"covers nothing here: {NOT_RECORDED}"
    waits = waiver.since not in evidence.policy.calendar and not waiver.expired(evidence.as_of)
    stated = evidence.policy.counts["operator_waiver", waiver.id]
    what, text = ("", "") if waits else wrong(waiver, changes.applied, stated, as_of=evidence.as_of)
    return (Verdict.FAIL if what else Verdict.PASS), what, text


def _gap(evidence: Evidence, gap: OperatorGap) -> tuple[Verdict, str, str]:
    changes = evidence.operator_changes
    if changes is None:
        return Verdict.NOT_CHECKED, "not recorded", f"covers nothing here: {NOT_RECORDED}"
    count, stated = unknown_operators(changes, gap), evidence.policy.counts["operator_gap", gap.release]
    if count == 0:
        return Verdict.FAIL, "unused", "covers nothing: all of its operators are known, or nothing was promised then"
    if count != stated:
        return Verdict.FAIL, "inexact", f"counts {stated} operators, but {count} are not known"
    return Verdict.PASS, "", ""


def unknown_operators(changes: OperatorChanges, gap: OperatorGap) -> int:
    """How many operators of the release before a gap's release the recorded set cannot tell of."""
    return sum(one.what == UNKNOWN for pair in changes.pairs if pair.newer == gap.release for one in pair.broken)
