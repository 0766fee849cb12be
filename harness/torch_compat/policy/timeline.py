"""Compares deprecations with the timeline of their kind, as of any day. Pure functions of a policy; no clock, no evidence.

``2 releases and 180 days`` means: a feature that first warns in release n warns in n and n+1, and may be removed in n+2 at the earliest,
and not before the 180th day after the date of the release that first warned. A *release* is a minor version in the calendar (1.8); a patch
does not count as one of its own. An event in a patch release has the date of the patch. For nightlies, if both steps name one, the 180
days start with the first nightly that warned.

On a given day, only events that have happened by then are known: an event has happened if its release is in the calendar and its date has
come. Known events are never forgotten later, so a broken timeline stays broken. The state changes only on a few days, which
:attr:`DeprecationHistory.changes` lists, so a query for one day, or for every day of ten years, is a search among these.
"""

from __future__ import annotations

import datetime as dt
import enum
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from torch_compat.policy.deprecations import GONE
from torch_compat.releases.release import Release
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torch_compat.policy.deprecations import Deprecation, Event, Step, Timeline
    from torch_compat.policy.model import CalendarRelease
    from torch_compat.policy.policy import Policy
    from torch_compat.releases.calendar import Calendar

__all__ = [
    "Axis",
    "Breach",
    "DeprecationHistory",
    "Earliest",
    "Happened",
    "Next",
    "Point",
    "Snapshot",
    "TimelineState",
    "earliest",
    "histories",
    "sweep",
]

BEGUN: Final = "not begun"


class TimelineState(enum.StrEnum):
    """The verdict on a timeline."""

    KEPT = "kept"
    BROKEN = "broken"
    CANNOT_TELL = "cannot-tell"
    NO_PROMISE = "no-promise"


@dataclass(frozen=True, slots=True)
class Point:
    """A release as a point in time.

    Attributes:
        line: the index of its minor version among all minor versions.
        planned: whether it is only planned.
    """

    release: str
    line: int
    day: dt.date
    planned: bool


class Axis:
    """The minor versions of a calendar and of the planned releases, in order.

    If the minor numbers before a planned version have a gap, the missing ones are counted, too; their dates are not known.
    """

    def __init__(self, calendar: Calendar[CalendarRelease], planned: Iterable[CalendarRelease] = ()) -> None:
        """Sort minor versions by version; the date of each is that of its first release."""
        real = {release.version: release.date for release in calendar}
        dates = {release.version: release.date for release in planned if release.version not in real} | real
        versions: dict[tuple[int, int], list[str]] = {}
        for version in sorted(dates, key=Release):
            versions.setdefault(Release(version).numbers[:2], []).append(version)
        self.points: dict[str, Point] = {}
        self.lines: list[Point] = []
        """The first release of each minor version whose date is known."""
        self.names: list[str] = []
        """The name of every minor version, such as 1.12."""
        before = (-1, 0)
        for major, minor in sorted(versions):
            first = versions[major, minor][0]
            if first not in real and before[0] == major:
                self.names += [f"{major}.{between}" for between in range(before[1] + 1, minor)]
            before = major, minor
            for version in versions[major, minor]:
                self.points[version] = Point(version, len(self.names), dates[version], version not in real)
            self.lines.append(self.points[first])
            self.names.append(f"{major}.{minor}")

    def __getitem__(self, version: str) -> Point:
        return self.points[version]

    def __contains__(self, version: object) -> bool:
        return version in self.points

    def as_of(self, day: dt.date) -> Point | None:
        """Return the newest minor version released by a day; None before the first."""
        out = [point for point in self.lines if not point.planned and point.day <= day]
        return out[-1] if out else None


@dataclass(frozen=True, slots=True)
class Earliest:
    """The earliest time at which a step may be taken.

    Attributes:
        release: the first release with a known date that may take it; "" if the calendar and the planned releases end before.
        day: the date of that release; None if they end before.
        line: the first minor version that may take it, by number alone; "" if they end before.
        not_before: the day before which no release may take it, regardless of their number.
        nightly: the first nightly that may take it; None if no nightly is known for the previous step.
        undated: minor versions before ``release`` that may take it, unless their date, which is not known, is before ``not_before``.
        missing: the number of minor versions that are missing to determine the release.
        planned: whether ``release`` is only planned.
    """

    release: str
    day: dt.date | None
    line: str
    not_before: dt.date
    nightly: dt.date | None = None
    undated: tuple[str, ...] = ()
    missing: int = 0
    planned: bool = False


def earliest(axis: Axis, step: Step, after: Point, nightly: dt.date | None = None) -> Earliest:
    """Return when a step may be taken, given the release and the nightly that took the previous step."""
    not_before = after.day + dt.timedelta(days=step.days)
    first_nightly = nightly + dt.timedelta(days=step.days) if nightly else None
    wanted = after.line + step.releases
    line = axis.names[wanted] if wanted < len(axis.names) else ""
    since = wanted
    for point in axis.lines:
        if point.line >= wanted and point.day >= not_before:
            undated = tuple(axis.names[since : point.line])
            return Earliest(point.release, point.day, line, not_before, first_nightly, undated, planned=point.planned)
        since = max(since, point.line + 1)
    return Earliest("", None, line, not_before, first_nightly, missing=max(1, wanted - len(axis.names) + 1))


@dataclass(frozen=True, slots=True)
class Breach:
    """One violation of a timeline.

    Attributes:
        kind: ``too-early``, ``too-early-on-nightlies``, ``not-warned``, ``step-missing`` or ``too-long``.
        what: the event that violates it; for ``too-long``, the missing event.
        release: the release in which the violation began.
        day: the day on which it began.
        releases, days: the number of releases and days that are missing; for ``too-long``, the delay as of the newest release by then.
        promised: whether the promise was in force by then.
        text: a one-line description for users.
    """

    kind: str
    what: str
    release: str
    day: dt.date
    releases: int
    days: int
    promised: bool
    text: str


@dataclass(frozen=True, slots=True)
class Happened:
    """An event and its assessment by the timeline.

    Attributes:
        point: its release.
        earliest: when it was first allowed, if its step must follow another.
        breaches: its violations.
    """

    event: Event
    point: Point
    earliest: Earliest | None = None
    breaches: tuple[Breach, ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """The step that may be taken next, and the earliest time for it."""

    what: tuple[str, ...]
    after: str
    earliest: Earliest
    releases: int
    days: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The known state of a deprecation on a day.

    Attributes:
        day: the first day with this state.
        state: the newest event by then, or ``not begun``.
        happened: the events by then.
        breaches: the violations of these events, and a removal that is late.
        next: the step that may be taken next; None if none is left.
        due: the release from which it is or will be overdue, if its removal was announced.
        planned: planned events, whose release is not in the calendar.
    """

    day: dt.date
    state: str
    verdict: TimelineState
    happened: tuple[Happened, ...]
    breaches: tuple[Breach, ...]
    next: Next | None
    due: Point | None = None
    overdue: bool = False
    planned: tuple[Happened, ...] = ()


@dataclass(frozen=True)
class DeprecationHistory:
    """A deprecation with its timeline, which can be queried for any day.

    Attributes:
        in_force: the day from which the policy makes its promises.
    """

    deprecation: Deprecation
    timeline: Timeline
    axis: Axis
    in_force: dt.date

    @cached_property
    def happened(self) -> tuple[Happened, ...]:
        """Every event, in order, each judged by the events before it."""
        results: list[Happened] = []
        active: dict[str, Happened] = {}
        for event in self.deprecation.events:
            point = self.axis[event.release]
            step = self.timeline.step(event.what)
            bound, breaches = (None, ()) if step is None else self._judged(step, event, point, active)
            happened = Happened(event, point, bound, breaches)
            results.append(happened)
            if event.what == "withdrawn" or (event.what == "restored" and self.deprecation.kind != "mode-change"):
                active = {what: item for what, item in active.items() if what == "alternative"}
            else:
                active.setdefault(event.what, happened)
        return tuple(results)

    def _judged(
        self, step: Step, event: Event, point: Point, active: Mapping[str, Happened]
    ) -> tuple[Earliest | None, tuple[Breach, ...]]:
        """Return when an event was first allowed, and its violations."""
        if step.after is None or any(what in active for what in step.what):
            return None, ()  # the step need not follow another, or was already taken
        before = self._taken(step.after, active)
        promised = point.day >= self.in_force
        if before is None:
            text = f"{_did(event)} in {point.release} without ever having been {_name(step.after)}"
            kind = "not-warned" if step.after == "warned" else "step-missing"
            return None, (Breach(kind, event.what, point.release, point.day, step.releases, step.days, promised, text),)
        bound = earliest(self.axis, step, before.point, before.event.nightly)
        releases = max(0, before.point.line + step.releases - point.line)
        days = max(0, (bound.not_before - point.day).days)
        breaches = []
        if releases or days:
            breaches.append(self._too_early(step, event, (before, point), releases, days))
        if bound.nightly is not None and event.nightly is not None and event.nightly < bound.nightly:
            breaches.append(self._nightly_too_early(step, event, before, bound.nightly))
        return bound, tuple(breaches)

    def _too_early(self, step: Step, event: Event, span: tuple[Happened, Point], releases: int, days: int) -> Breach:
        before, point = span
        by = " and ".join(filter(None, (_count(releases, "release"), _count(days, "day"))))
        window = " and ".join(filter(None, (_count(step.releases, "release"), _count(step.days, "day"))))
        text = (
            f"{_did(event)} in {point.release} ({point.day}), {by} too early: {_name(before.event.what)} in {before.point.release} "
            f"({before.point.day})" + (f", and at least {window} must pass in between" if window else ", and that comes first")
        )
        return Breach("too-early", event.what, point.release, point.day, releases, days, point.day >= self.in_force, text)

    def _nightly_too_early(self, step: Step, event: Event, before: Happened, allowed: dt.date) -> Breach:
        assert event.nightly is not None  # noqa: S101 - checked by the caller
        days = (allowed - event.nightly).days
        text = (
            f"{_did(event)} in the {event.nightly} nightly, {_count(days, 'day')} too early: {_name(before.event.what)} in the "
            f"{before.event.nightly} nightly, and at least {_count(step.days, 'day')} must pass in between"
        )
        promised = event.nightly >= self.in_force
        return Breach("too-early-on-nightlies", event.what, event.release, event.nightly, 0, days, promised, text)

    def _taken(self, what: str, active: Mapping[str, Happened]) -> Happened | None:
        """Return the event that took the step to which this kind of event belongs; None if the step is not taken."""
        step = self.timeline.step(what)
        taken = [active[name] for name in (step.what if step else (what,)) if name in active]
        return min(taken, key=lambda item: item.point.line, default=None)

    @cached_property
    def due(self) -> Point | None:
        """The release in which the feature must be removed, by what was announced and is allowed.

        None if nothing was announced, or if the calendar ends before that release.
        """
        announced = self.deprecation.announced
        if announced is None or announced.release not in self.axis:
            return None
        point = self.axis[announced.release]
        step = next((step for step in self.timeline.steps if GONE.intersection(step.what)), None)
        warned = next((item for item in self.happened if item.event.what == "warned"), None)
        if step is None or step.after != "warned" or warned is None:
            return point
        allowed = earliest(self.axis, step, warned.point)
        if not allowed.release:
            return None
        return max(point, self.axis[allowed.release], key=lambda item: item.line)

    @cached_property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The known states, one for each day on which something changes, oldest first; the first one starts at ``date.min``."""
        days = {dt.date.min, self.in_force}
        days.update(item.point.day for item in self.happened)
        days.update(breach.day for item in self.happened for breach in item.breaches)
        if self.due is not None:
            days.add(self.due.day)
            days.update(point.day for point in self.axis.lines if not point.planned and point.day > self.due.day)
        return tuple(self._snapshot(day) for day in sorted(days))

    @cached_property
    def changes(self) -> tuple[dt.date, ...]:
        """The days on which the state may change."""
        return tuple(snapshot.day for snapshot in self.snapshots)

    def at(self, day: dt.date) -> Snapshot:
        """Return the known state on a day."""
        return self.snapshots[bisect_right(self.changes, day) - 1]

    def _snapshot(self, day: dt.date) -> Snapshot:
        by_then = tuple(item for item in self.happened if not item.point.planned and item.point.day <= day)
        planned = tuple(item for item in self.happened if item.point.planned)
        late = self._late(day, by_then)
        broken = (breach for item in self.happened for breach in item.breaches)
        on_nightlies = "too-early-on-nightlies"
        breaches = (
            *(
                breach
                for breach in broken
                if breach.day <= day and (breach.kind == on_nightlies or not self.axis[breach.release].planned)
            ),
            *([late] if late else []),
        )
        names: list[str] = [item.event.what for item in by_then]
        shown = [name for name in names if name != "alternative"] or names
        return Snapshot(
            day=day,
            state=shown[-1] if shown else BEGUN,
            verdict=self._verdict(day, by_then, breaches),
            happened=by_then,
            breaches=breaches,
            next=self._next(by_then),
            due=self.due,
            overdue=late is not None and not any(item.event.what in GONE or item.event.what == "withdrawn" for item in by_then),
            planned=planned,
        )

    def _late(self, day: dt.date, by_then: tuple[Happened, ...]) -> Breach | None:
        """Return the violation if the feature stays, or stayed, longer than announced."""
        due, announced = self.due, self.deprecation.announced
        if due is None or announced is None or due.planned or due.day > day:
            return None
        gone = next((item for item in by_then if item.event.what in GONE or item.event.what == "withdrawn"), None)
        if gone is not None and gone.point.day <= due.day:
            return None
        newest = self.axis.as_of(day)
        until = gone.point if gone is not None else newest
        releases = max(1, until.line - due.line) if until else 1
        allowed = "" if due.release == announced.release else f", allowed from {due.release}"
        still = f"is still present in {until.release if until else due.release}"
        if gone is not None:
            still = f"{_did(gone.event)} in {gone.point.release}"
        text = f"its removal was announced for {announced.release}{allowed}, but it {still} (overdue since {due.day})"
        days = max(0, ((until.day if until else due.day) - due.day).days)
        return Breach("too-long", "removed", due.release, due.day, releases, days, due.day >= self.in_force, text)

    def _verdict(self, day: dt.date, by_then: tuple[Happened, ...], breaches: tuple[Breach, ...]) -> TimelineState:
        if any(breach.promised for breach in breaches):
            return TimelineState.BROKEN
        if day < self.in_force or not by_then:
            return TimelineState.NO_PROMISE
        ended = self.timeline.last
        finished = [item for item in by_then if item.event.what in ended.what]
        return TimelineState.NO_PROMISE if finished and finished[0].point.day < self.in_force else TimelineState.KEPT

    def _next(self, by_then: tuple[Happened, ...]) -> Next | None:
        """Return the next step: one that is not taken, after a step that is, with no later step taken."""
        active: dict[str, Happened] = {}
        for item in by_then:
            if item.event.what == "withdrawn" or (item.event.what == "restored" and self.deprecation.kind != "mode-change"):
                active = {what: happened for what, happened in active.items() if what == "alternative"}
            else:
                active.setdefault(item.event.what, item)
        ahead = False  # whether a later step is already taken: skipped steps are then not expected
        for step in reversed(self.timeline.steps):
            if any(what in active for what in step.what):
                ahead = True
            elif ahead or step.after is None:
                continue
            elif (before := self._taken(step.after, active)) is not None:
                bound = earliest(self.axis, step, before.point, before.event.nightly)
                return Next(step.what, before.event.what, bound, step.releases, step.days)
        return None


def histories(policy: Policy) -> tuple[DeprecationHistory, ...]:
    """Return the history of every deprecation of a policy, sorted by id."""
    axis = Axis(policy.calendar, policy.planned)
    timelines = {(timeline.kind, timeline.silent): timeline for timeline in policy.timelines}
    return tuple(
        DeprecationHistory(deprecation, timelines[deprecation.kind, deprecation.silent], axis, policy.in_force_from)
        for deprecation in policy.deprecations
    )


def sweep(
    all_histories: Iterable[DeprecationHistory], first: dt.date, last: dt.date
) -> Iterator[tuple[dt.date, dict[str, TimelineState]]]:
    """Yield each day from the first to the last, with the verdict on every deprecation."""
    known = tuple(all_histories)
    for number in range((last - first).days + 1):
        day = first + dt.timedelta(days=number)
        yield day, {history.deprecation.id: history.at(day).verdict for history in known}


def _name(what: str) -> str:
    return {"warned": "deprecated with a warning", "alternative": "given an alternative", "error": "made to raise an error"}.get(
        what, what
    )


def _count(number: int, what: str) -> str:
    """Return a text such as ``3 days``; empty for zero."""
    return count_of(number, what) if number else ""


def _did(event: Event) -> str:
    return {
        "alternative": "got an alternative",
        "warned": "began to warn",
        "withdrawn": "stopped warning",
        "error": "became an error",
        "removed": "was removed",
        "switched": "changed its behavior",
        "restored": "was restored",
    }[event.what]
