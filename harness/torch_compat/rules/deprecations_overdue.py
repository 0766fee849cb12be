"""What was announced to go does not stay too long.

What: a deprecation whose end was announced for a release, by name, is over in that release, or in the first one that its timeline
allows, if that is later. From the day of that release on, a thing that is still there is overdue, and stays on record as late when
it goes.

Why: a warning that names a release and is not meant teaches people to disregard the next one. A policy fails on both sides: when
something goes too early, and when it is still there after it should be gone.

Example: a warning says "will be removed in 1.10"; 1.10.0 comes, and it only warns. The rule fails from the day of 1.10.0 on.

Reference: this project; the release that was announced stands in the file of the deprecation, with the words that name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.policy.timeline import histories
from torch_compat.rules.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Evidence

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every deprecation whose end was announced for a release."""
    for history in histories(evidence.policy):
        name = history.deprecation.id
        if history.deprecation.announced is None:
            continue
        late = [breach for breach in history.at(evidence.as_of).breaches if breach.kind == "too-long"]
        if not late:
            yield Judgement(rule.id, Verdict.PASS, name)
        for breach in late:
            if breach.promised:
                cause = Cause(breach.kind, name, f"{history.deprecation.subject}: {breach.text}")
                reproduce = f"torch-compat explain {name}"
                yield Judgement(rule.id, Verdict.FAIL, name, cause, reader=breach.release, at=breach.release, reproduce=reproduce)
            else:
                yield Judgement(rule.id, Verdict.NO_PROMISE, name, reader=breach.release)
