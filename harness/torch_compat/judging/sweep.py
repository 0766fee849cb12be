"""Judging every day of a span: what of a policy is broken, incomplete or excused on each. No rule; pure like judging.

What depends on the day: which releases and format versions are there and must have fixtures and observations; which deprecations
are broken or overdue; which waivers have expired. All of it changes on few days, the releases' and those that the policy names, so
each question is asked once for each of these days, not for each day of the span.
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
    """What can be said of one day.

    Attributes:
        broken: promises about deprecations that are broken by then, by the ids of their findings; they never get fewer.
        waived: those of them that a waiver covers which has not expired.
        missing: format versions and releases that are there by then, and have no fixture or no observation.
        expired: waivers that hold no longer.
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
        """Find the days on which something changes, and what there is to miss."""
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
        """What can be said of a day."""
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
    """Every day from the first to the last, with what can be said of it."""
    swept = Sweep(evidence)
    for number in range((last - first).days + 1):
        day = first + dt.timedelta(days=number)
        yield day, swept.at(day)


def spans(evidence: Evidence, first: dt.date, last: dt.date) -> Iterator[tuple[dt.date, dt.date, Day]]:
    """The same, days between which nothing changes taken together: first day, last day, what can be said of them."""
    started, before = first, None
    for day, found in sweep(evidence, first, last):
        if before is not None and found is not before:
            yield started, day - dt.timedelta(days=1), before
            started = day
        before = found
    if before is not None:
        yield started, last, before
