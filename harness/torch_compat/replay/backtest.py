"""What ``torch-compat candidate`` would have reported for each release on the day before it, from recorded observations.

It takes a few lines::

    place = find_root(Path("path/to/tree"))
    evidence = gather(place)
    for version in backtested(evidence):
        print(version, len(backtest(evidence, place.path, version).facts))
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.judging.cell import Outcome
from torch_compat.judging.operator_check import KnownOperators, check_operators
from torch_compat.operators.call_signature import bare
from torch_compat.releases.release import Release
from torch_compat.replay.candidate import Said, classified, only_with_cuda
from torch_compat.replay.candidate_items import Items, ReleasePair
from torch_compat.replay.day_before import day_before
from torch_compat.report.backtest import Backtested, Fact, facts_of

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.operator_check import CheckedOperators
    from torch_compat.replay.day_before import DayBefore
    from torch_compat.report.candidate import CandidateItem

__all__ = ["backtest"]

KEPT = frozenset({Outcome.SAME, Outcome.CLOSE})


def backtest(evidence: Evidence, root: Path, version: str) -> Backtested:
    """Return what candidate would have reported for a release, and what became of it in later releases.

    Parameters:
        evidence: all recorded evidence.
        root: the tree that the evidence was read from.
        version: a recorded release.

    Raises:
        CorpusError: the evidence from before still contains something of the release or a later one.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-backtest-") as scratch:
        return _of_day(evidence, day_before(evidence, root, version, Path(scratch)))


def _of_day(evidence: Evidence, day: DayBefore) -> Backtested:
    version = day.release.version
    asked = ReleasePair(evidence=day.evidence, release=day.release, base=day.base, today=day.release.date)
    operators = _operators(evidence, day)
    message = Said(day.own, {}, day.fresh, day.older, operators)
    result = classified(asked, message, Items(asked, day.own))
    facts = facts_of(result.new)
    return Backtested(
        release=version,
        day=day.release.date.isoformat(),
        base=day.base.name,
        name=day.fresh.name,
        cells=len(day.fresh.cells),
        facts=facts,
        mended=len(result.mended),
        known=sum(item.state == "known" for part in result.parts for item in part.moved),
        reworded=sum(item.state == "reworded" for part in result.parts for item in part.moved),
        unasked=sum(len(part.unasked) for part in result.parts) + (len(operators.unknown) if operators is not None else 0),
        gone={fact.id: _gone_with(evidence, version, fact) for fact in facts},
        unnamed=tuple(_unnamed(evidence, day, result.new)),
    )


def _operators(evidence: Evidence, day: DayBefore) -> CheckedOperators | None:
    """The operators of a release compared with the newest release before it; None if either is not recorded."""
    recorded = evidence.operators.schemas if evidence.operators is not None else None
    version, base = day.release.version, day.base.release
    if recorded is None or version not in recorded.releases or base not in day.operators[0].releases:
        return None
    known = KnownOperators(*day.operators)
    bit = recorded.bit(version)
    texts = frozenset(text for text, _, bits in recorded.facts() if bits & bit)
    new = known.set_of(base)._replace(
        name=day.release.name, release=None, schemas=texts, incomplete=recorded.why_incomplete(version)
    )
    policy = day.evidence.policy
    checked = check_operators(
        known.set_of(base), new, waivers=policy.operator_waivers, became=policy.became, as_of=day.release.date, known=known
    )
    gap = only_with_cuda(known.schemas)
    return checked._replace(broken=tuple(item for item in checked.broken if item.new is not None or item.operator not in gap))


def _gone_with(evidence: Evidence, version: str, fact: Fact) -> str:
    """The first later release that reads the witness of a fact correctly; "" if there is none, or if the witness is not a cell."""
    name, _, options_id = fact.witness.partition(" (")
    fixture = evidence.corpus.fixtures.get(name)
    options = {option.id: option for option in evidence.policy.options}.get(options_id.rstrip(")") or "default")
    if fixture is None or options is None or fact.what not in {"computes", "loads"}:
        return ""
    readers = [item for item in evidence.recorded.values() if Release(item.release) > Release(version)]
    for reader in sorted(readers, key=lambda item: Release(item.release)):
        cell = evidence.valid(reader, fixture, options)
        if (
            cell is not None
            and evidence.outcome(fixture, cell, others=evidence.wordings.others(fixture, cell, reader.release)) in KEPT
        ):
            return reader.release
    return ""


def _unnamed(evidence: Evidence, day: DayBefore, new: tuple[CandidateItem, ...]) -> list[str]:
    """The changes known today for the release whose operators no item reaches."""
    before, line = Release(day.base.release), Release(day.release.version)
    reached: set[str] = set()
    for item in new:
        fixture: Fixture | None = day.evidence.corpus.fixtures.get(item.witness.partition(" (")[0])
        if fixture is None:
            fixture = day.own.fixtures.get(item.witness)
        if fixture is not None:
            names = {operator.partition(".")[0] for operator in fixture.operators}
            reached |= set(map(bare, names))
    return sorted(
        change.id
        for change in evidence.policy.changes
        if before < Release(change.since) <= line and change.kind != "accepted" and not reached.intersection(change.operators)
    )
