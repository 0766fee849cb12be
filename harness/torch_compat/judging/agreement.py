"""Decide whether a reader reproduced its record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.judging.judgement import Verdict
from torch_compat.values.compare import compare

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.evidence import Evidence

__all__ = ["agreement"]


def _crashes(observation: Observation) -> bool:
    return observation.result == "crashed" or any(item.result == "crashed" for item in observation.both)


def agreement(evidence: Evidence, fixture: Fixture, before: Observation, now: Observation) -> tuple[Verdict, str]:
    """Return whether a fresh observation agrees with the recorded one of the same reader, as a verdict, and a message."""
    if before.heard != now.heard:
        before, now = before.unheard(), now.unheard()
    if before.contradicts(now):
        old, new = evidence.outcome(fixture, before), evidence.outcome(fixture, now)
        if {old, new} <= {"same", "close"}:
            return Verdict.EXPECTED, f"{fixture.recipe}: {new} now, {old} when recorded: within the tolerance"
        if _crashes(before) and (_crashes(now) or new in {"refused", "raised"}):
            return (
                Verdict.EXPECTED,
                f"{fixture.recipe}: {new} now, {old} when recorded: corrupted memory does not always have the same effect",
            )
        return Verdict.FAIL, f"{fixture.recipe}: {new} now, {old} when recorded"
    if before.digest != now.digest:
        if before.departures and now.departures:
            between = (before.own_result(fixture.golden), now.own_result(fixture.golden))
            result = compare(*between)
            apart = replace(now, result=result.result, extent=result.extent)
            if evidence.outcome(fixture, apart, between) not in {"same", "close"}:
                return Verdict.FAIL, f"{fixture.recipe}: the same outcome, but different values than recorded"
        return Verdict.EXPECTED, f"{fixture.recipe}: the same outcome, but not bitwise equal to the record"
    return Verdict.PASS, ""
