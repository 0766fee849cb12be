"""Judge every day of a span: which parts of a policy are broken, incomplete or excused on it. Not a rule; pure, like judging.

These depend on the day: which releases and format versions exist and must have fixtures and observations; which deprecations
are broken or overdue; which waivers have expired. They change only on a few days, those of releases and those that the policy names, so
each question is evaluated once for each of these days, not for each day of the span.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.judging.format_fixtures import due, witnesses
from torch_compat.judging.timelines import finding_of
from torch_compat.policy.timeline import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence

__all__ = ["Day", "Sweep", "spans", "sweep"]


@dataclass(frozen=True)
class Day:
    """The results for one day.

    Attributes:
        broken: promises about deprecations that are broken by then, by the ids of their findings; their number never decreases.
        waived: those of them that are covered by a waiver that has not expired.
        missing: format versions and releases that exist by then, but have no fixture or no observation.
        expired: waivers that have expired.
    """

    day: dt.date
    verdicts: tuple[tuple[str, str], ...]
    broken: frozenset[str]
    waived: frozenset[str]
    missing: frozenset[str]
    expired: frozenset[str]


class Sweep:
    """A policy and its evidence, for any day."""

    def __init__(self, evidence: Evidence) -> None:
        """Find the days on which something changes, and what may be missing."""
        policy = evidence.policy
        self._histories = histories(policy)
        written, synthetic = witnesses(evidence.corpus)
        self._due = [
            (due(policy, entry), entry.label)
            for entry in policy.formats
            if entry.label not in written and not (entry.no_writer and entry.label in synthetic) and not entry.pending
        ]
        wrote = {fixture.release for fixture in evidence.corpus.fixtures.values()}
        read = {reader.release for source in (evidence.recorded, evidence.fresh) for reader in source.values() if reader.cells}
        for version in policy.corpus.writers:
            if version not in wrote:
                self._due.append((policy.calendar[version].date, f"fixtures of torch-{version}"))
        for version in policy.corpus.readers:
            if version not in read:
                self._due.append((policy.calendar[version].date, f"observations of torch-{version}"))
        self._waivers = policy.waivers
        self._expires = [(waiver.expires, waiver.id) for waiver in policy.waivers if waiver.expires is not None]
        days = {dt.date.min, *(day for day, _ in self._due), *(day for day, _ in self._expires)}
        for history in self._histories:
            days.update(history.changes)
        self.changes: tuple[dt.date, ...] = tuple(sorted(days))
        """The days on which the result may change."""
        self._known: dict[int, Day] = {}

    def at(self, day: dt.date) -> Day:
        """The results for a day."""
        index = bisect_right(self.changes, day) - 1
        if index not in self._known:
            self._known[index] = self._day(self.changes[index])
        return self._known[index]

    def _day(self, day: dt.date) -> Day:
        verdicts, broken = [], []
        for history in self._histories:
            name, snapshot = history.deprecation.id, history.at(day)
            verdicts.append((name, str(snapshot.verdict)))
            broken += [finding_of(name, breach) for breach in snapshot.breaches if breach.promised]
        covered = frozenset(cause for waiver in self._waivers if not waiver.expired(day) for cause in waiver.findings or ())
        return Day(
            day,
            tuple(verdicts),
            frozenset(broken),
            covered.intersection(broken),
            frozenset(label for since, label in self._due if since <= day),
            frozenset(name for since, name in self._expires if since <= day),
        )


def sweep(evidence: Evidence, first: dt.date, last: dt.date) -> Iterator[tuple[dt.date, Day]]:
    """Yield every day from the first to the last, with its results."""
    swept = Sweep(evidence)
    for number in range((last - first).days + 1):
        day = first + dt.timedelta(days=number)
        yield day, swept.at(day)


def spans(evidence: Evidence, first: dt.date, last: dt.date) -> Iterator[tuple[dt.date, dt.date, Day]]:
    """The same, with days between which nothing changes merged: first day, last day, and their results."""
    started, before = first, None
    for day, result in sweep(evidence, first, last):
        if before is not None and result is not before:
            yield started, day - dt.timedelta(days=1), before
            started = day
        before = result
    if before is not None:
        yield started, last, before
