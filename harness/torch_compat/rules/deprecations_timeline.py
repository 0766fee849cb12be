"""Deprecations keep the timeline of their kind.

What: each event of a deprecation follows the step that must precede it, by at least the number of releases and days that the
timeline of its kind requires, and on nightlies, if both events name a nightly, by at least the number of days. Events from before
the policy was in force were not promised. A planned event that would come too early fails now, while it can still be moved.

Why: the timeline gives people who see the warning time to change their programs. An earlier removal breaks correct programs.

Example: a function first warns in 1.8.0 of 4 March 2021. It may be removed in 1.10.0 of 21 October, which is two releases and 231
days later; not in 1.9.0, which is one release and 103 days later.

Reference: the policy's page, sections "Changing the behavior of a mode" and "Making an arg keyword-only";
policies/torch/timelines.toml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.policy.timeline import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.timeline import DeprecationHistory

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every event that has happened, or is planned, by the given day."""
    for history in histories(evidence.policy):
        yield from _judge(evidence, rule, history)


def _judge(evidence: Evidence, rule: RuleEntry, history: DeprecationHistory) -> Iterator[Judgement]:
    snapshot, name = history.at(evidence.as_of), history.deprecation.id
    known = {id(breach) for breach in snapshot.breaches}
    for happened in (*snapshot.happened, *snapshot.planned):
        subject = f"{name}/{happened.event.what}"
        breaches = [breach for breach in happened.breaches if id(breach) in known]
        for breach in breaches:
            if not breach.promised:
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=breach.release)
                continue
            cause = Cause(breach.kind, subject, f"{history.deprecation.subject} {breach.text}")
            reproduce, where = f"torch-compat explain {name}", breach.release
            yield Judgement(rule.id, Verdict.FAIL, subject, cause, reader=where, at=where, reproduce=reproduce)
        ahead = [breach for breach in happened.breaches if id(breach) not in known]
        if happened.point.planned and ahead:
            cause = Cause("planned too early", subject, f"{history.deprecation.subject} {ahead[0].text}")
            yield Judgement(rule.id, Verdict.FAIL, subject, cause)
        elif happened.point.planned and happened.point.day <= evidence.as_of:
            text = f"{subject} is planned for {happened.point.release}, which was due on {happened.point.day} but is not in the calendar"
            yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause("plan past", subject, text))
        elif not breaches:
            yield Judgement(rule.id, Verdict.PASS, subject)
    if not snapshot.happened and not snapshot.planned:
        yield Judgement(rule.id, Verdict.NO_PROMISE, name)
