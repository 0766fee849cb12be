"""Evidence about deprecations alone, gathered without reading any archive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.corpus.corpus import Corpus, load_deprecations
from torch_compat.judging.evidence import Evidence
from torch_compat.judging.judge import judge
from torch_compat.judging.timelines import TimelineRow
from torch_compat.policy.timeline import histories
from torch_compat.workspace import newest_known

if TYPE_CHECKING:
    import datetime as dt

    from torch_compat.judging.judge import Report
    from torch_compat.policy import Policy
    from torch_compat.workspace import Root

__all__ = ["RULES", "gather_deprecations", "judge_deprecations", "judge_timelines", "timeline_rows"]

RULES = "deprecations-"
OF_TIMELINES = frozenset({"deprecations-overdue", "deprecations-timeline"})
"""The rules that need only the policy and the calendar, not the recorded behavior of releases."""
NO_EVIDENCE = "the behavior of releases is recorded in a checkout of torch-compat, but this directory is not in a checkout"
WAIVERS_EXACT = "waivers-exact"


def gather_deprecations(place: Root, policy: Policy, *, as_of: dt.date | None) -> Evidence:
    """Read what releases did with deprecated features, as of the given day, or else of the newest known day."""
    corpus = load_deprecations(place.fixtures)
    result = place.observations()
    if as_of is None:
        as_of = newest_known(policy, result.readers.values())
    stripped = {name: replace(reader, cells={}, probes={}) for name, reader in result.readers.items()}
    return Evidence(policy, corpus, stripped, {}, as_of, result.unreadable)


def judge_deprecations(evidence: Evidence) -> Report:
    """Run the rules about deprecations, with the waivers of their findings."""
    policy = evidence.policy
    waivers = tuple(
        waiver
        for waiver in policy.waivers
        if waiver.covers is None and all(name.startswith(RULES) for name in waiver.findings or ())
    )
    wanted = tuple(rule for rule in policy.rules if rule.id.startswith(RULES) or (rule.id == WAIVERS_EXACT and waivers))
    asked = replace(policy.without_gaps(), rules=wanted, waivers=waivers, operator_waivers=(), messages=policy.warnings)
    return judge(replace(evidence, policy=asked))


# ---------------------------------------------------------------------------------------------------------- outside a tree


def timeline_rows(policy: Policy, as_of: dt.date) -> tuple[TimelineRow, ...]:
    """Every deprecation as of a day by the policy and the calendar alone, without any records of releases."""
    results = (
        TimelineRow(history, history.at(as_of), history.at(as_of).verdict, (), {}, fits=True) for history in histories(policy)
    )
    return tuple(results)


def judge_timelines(policy: Policy, as_of: dt.date) -> Report:
    """Run the rules that need no evidence. Whether releases do what the policy says is not checked, so the result is never a pass."""
    waivers = tuple(
        waiver
        for waiver in policy.waivers
        if waiver.covers is None and all(name.partition(":")[0] in OF_TIMELINES for name in waiver.findings or ())
    )
    wanted = tuple(rule for rule in policy.rules if rule.id in OF_TIMELINES or (rule.id == WAIVERS_EXACT and waivers))
    asked = replace(policy.without_gaps(), rules=wanted, waivers=waivers, operator_waivers=(), messages=policy.warnings)
    evidence = Evidence(asked, Corpus(Path(), (), (), (), (), ()), {}, {}, as_of, {})
    report = judge(evidence)
    unknown = ("deprecations-evidence", NO_EVIDENCE, len(policy.deprecations))
    return replace(report, exit_status=report.exit_status or 4, not_checked=(*report.not_checked, unknown))
