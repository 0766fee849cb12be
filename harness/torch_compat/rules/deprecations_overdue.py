"""Deprecated features are removed when their removal was announced.

What: if the end of a deprecation was announced for a named release, the deprecation ends in that release, or in the first release
that its timeline allows, if that is later. From the date of that release on, a feature that still exists is overdue. It stays
recorded as late after it is removed.

Why: a warning that names a release but is not acted on teaches people to ignore the next warning. A timeline can be broken in
both directions: the feature can be removed too early, or still exist after it should have been removed.

Example: a warning says "will be removed in 1.10", but 1.10.0 still only warns. The rule fails from the date of 1.10.0 on.

Reference: this project; the file of the deprecation names the announced release and quotes the words that announce it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.policy.timeline import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every deprecation whose removal was announced for a release."""
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
