"""Deprecations are documented at every step.

What: in each release that takes a step which must be documented, the documentation of the deprecated feature mentions it: that
the feature is deprecated and since when, that a mode was removed, or that it was restored. The timeline of the kind says which
steps must be documented. The documentation of each release was recorded with the probe, and another rule compares the policy file
with it.

Why: a warning reaches the people who run a program; the documentation reaches the people who write the next one.

Example: a function warns since 1.8.0, and its docstring does not mention it before 1.9.0: the step of 1.8.0 is undocumented.

Reference: the policy's page: "update foo's documentation to indicate that Mode A is deprecated, when it was deprecated, and what
the alternatives to it are", and again when it is removed and restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.timelines import statement_of
from torch_compat.policy.timeline import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every step that was taken by the given day and must be documented."""
    for history in histories(evidence.policy):
        deprecation, points = history.deprecation, list(history.axis.points)
        for occurrence in history.at(evidence.as_of).happened:
            step = history.timeline.step(occurrence.event.what)
            if step is None or not step.documented:
                continue
            subject, release = f"{deprecation.id}/{occurrence.event.what}", occurrence.point.release
            message = statement_of(deprecation, points, release)
            if message is not None and message.holds is not None:
                yield Judgement(rule.id, Verdict.PASS, subject, reader=release)
            elif occurrence.point.day < history.in_force:
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=release)
            else:
                text = f"{deprecation.subject}: {occurrence.event.what} in {release}, but the documentation of that release does not say so"
                cause = Cause("undocumented", subject, text)
                reproduce = f"torch-compat explain {deprecation.id}"
                yield Judgement(rule.id, Verdict.FAIL, subject, cause, reader=release, at=release, reproduce=reproduce)
