"""Waivers for operators are exact.

What: every operator that a waiver names changed in the release and in the way that the waiver states, and its new schema is the
one that counts.lock pins. No other waiver covers the same change, and the waiver has not expired. Each gap of the policy covers
as many operators as counts.lock states. A waiver for a planned release waits for that release, until it expires.

Why: a waiver that covers more than its author reviewed hides the next break. A waiver for an operator that did not change hides
that it was fixed.

Example: 40 operators were to be annotated as writing to a list, and one of them is removed instead.

Reference: this project. PyTorch's own list of exceptions consists of patterns, which match anywhere in a schema and for any
change, and are limited only by date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.operator_changes import NOT_RECORDED, operator_changes, unknown_operators
from torch_compat.policy.operator_waivers import wrong
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.operator_waivers import OperatorWaiver

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge what every waiver for operators covers."""
    for waiver in evidence.policy.operator_waivers:
        yield _judgement(rule, f"waiver {waiver.id}", waiver.id, *_waiver(evidence, waiver))
    for release in evidence.policy.operator_gaps:
        yield _judgement(rule, f"operator_gap of {release}", release, *_gap(evidence, release))


def _judgement(rule: RuleEntry, subject: str, name: str, verdict: Verdict, what: str, text: str) -> Judgement:
    return Judgement(rule.id, verdict, subject, Cause(what, name, f"{subject} {text}") if what else None)


def _waiver(evidence: Evidence, waiver: OperatorWaiver) -> tuple[Verdict, str, str]:
    changes = evidence.derived(operator_changes)
    if changes is None:
        return Verdict.NOT_CHECKED, "not recorded", f"covers nothing here: {NOT_RECORDED}"
    waits = waiver.since not in evidence.policy.calendar and not waiver.expired(evidence.as_of)
    what, text = ("", "") if waits else wrong(waiver, changes.applied, evidence.policy.became, as_of=evidence.as_of)
    return (Verdict.FAIL if what else Verdict.PASS), what, text


def _gap(evidence: Evidence, release: str) -> tuple[Verdict, str, str]:
    changes = evidence.derived(operator_changes)
    if changes is None:
        return Verdict.NOT_CHECKED, "not recorded", f"covers nothing here: {NOT_RECORDED}"
    count, stated = unknown_operators(changes, release), evidence.policy.counts["operator_gap", release]
    if count == 0:
        return Verdict.FAIL, "unused", "covers nothing: all of its operators are known, or no promise applied at that time"
    if count != stated:
        return (
            Verdict.FAIL,
            "inexact",
            f"declares {count_of(stated, 'operator')}, but {count} {'is' if count == 1 else 'are'} unknown",
        )
    return Verdict.PASS, "", ""
