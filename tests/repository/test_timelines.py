"""The repository's own deprecations, as of any day: nothing is broken, missing or expired without a waiver."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.sweep import sweep
from torch_compat.judging.timeline_evidence import gather_deprecations, judge_deprecations
from torch_compat.judging.timelines import rows
from torch_compat.policy.timeline import TimelineState, histories
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence

ROOT = Root(Path(__file__).parents[2])
FIRST, LAST = dt.date(2017, 1, 1), dt.date(2026, 12, 31)
READERS = 20  # real releases that each deprecation must be judged against
DEPRECATIONS = 25


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return gather_deprecations(ROOT, ROOT.policy(), as_of=None)


def test_each_is_judged_against_enough_releases_and_none_is_unclear(evidence: Evidence) -> None:
    result = rows(evidence, evidence.as_of)
    assert len(result) >= DEPRECATIONS
    for row in result:
        assert len(row.states) >= READERS, row.history.deprecation.id
        assert row.verdict is not TimelineState.CANNOT_TELL, row.why


def test_every_kind_of_verdict_is_met(evidence: Evidence) -> None:
    assert {row.verdict for row in rows(evidence, evidence.as_of)} == {
        TimelineState.KEPT,
        TimelineState.BROKEN,
        TimelineState.NO_PROMISE,
    }


def test_no_day_of_ten_years_gives_an_alarm() -> None:
    with uncollected():
        everything = gather(ROOT, ROOT.policy(), as_of=None)
    bad = {
        (name, what)
        for _, day in sweep(everything, FIRST, LAST)
        for name, result in (("broken", day.broken - day.waived), ("missing", day.missing), ("expired", day.expired))
        for what in result
    }
    assert bad == set()


def test_judging_any_day_of_change_gives_none_either(evidence: Evidence) -> None:
    days = sorted(
        {day for history in histories(evidence.policy) for day in history.changes if day >= evidence.policy.in_force_from}
    )
    for day in days[:: max(1, len(days) // 6)]:
        report = judge_deprecations(replace(evidence, as_of=day))
        assert [finding.id for finding in report.findings if finding.verdict is Verdict.FAIL] == [], day


def test_a_profile_asks_for_more(evidence: Evidence) -> None:
    (strict,) = (profile for profile in evidence.policy.profiles if profile.id == "strict")
    broken = [
        sum(row.verdict is TimelineState.BROKEN for row in rows(evidence, evidence.as_of, policy))
        for policy in (evidence.policy, evidence.policy.under(strict))
    ]
    assert 0 < broken[0] < broken[1]


def test_the_plans_are_ahead_of_the_evidence(evidence: Evidence) -> None:
    """A plan whose day is past is a release that the calendar lacks, or a plan that moved."""
    assert all(item.date > evidence.as_of for item in evidence.policy.planned)
