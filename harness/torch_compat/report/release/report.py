"""The report of one release: everything that begins with it, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import examine
from torch_compat.judging.operator_changes import operator_changes
from torch_compat.judging.timelines import State, seen
from torch_compat.policy.timeline import histories
from torch_compat.releases.release import Release
from torch_compat.report.release.archives import archive_parts, recorded_readers
from torch_compat.report.release.changes_beside_archives import change_parts, deprecation_parts, format_parts, operator_parts
from torch_compat.report.release.items import Section, Span, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.judging.judge import Report
    from torch_compat.judging.operator_changes import PairCounts
    from torch_compat.report.release.archives import Missing
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.workspace import Root

__all__ = ["NotAsked", "ReleaseReport", "Running", "line_before", "release_report", "report_of", "reported_releases"]


@dataclass(frozen=True)
class Running:
    """A deprecation that has begun and has not ended.

    Attributes:
        since: the release that began to warn.
        may: what may happen next, and from when; "" if nothing is promised.
        due: the release for which its end was announced; "" if there is none.
    """

    id: str
    subject: str
    since: str
    due: str
    overdue: bool


@dataclass(frozen=True)
class NotAsked:
    """Something that the records do not show.

    Attributes:
        count: the number of affected things.
        explained: whether the policy says why it cannot be known.
    """

    count: int
    why: str
    explained: bool = False


@dataclass(frozen=True)
class ReleaseReport:
    """What begins with a release.

    Attributes:
        since: the release that it is compared with.
        day: the date of the release.
        items: what begins, most severe first.
        running: deprecations in progress at the release.
        operators: the changes of operators between consecutive recorded releases.
        not_asked: what is unknown.
        compared: the number of archives that both releases loaded, or were asked to load.
        as_of, evidence: those of the underlying judgement.
    """

    release: str
    since: str
    day: str
    items: tuple[ReleaseItem, ...]
    running: tuple[Running, ...]
    operators: tuple[PairCounts, ...]
    not_asked: tuple[NotAsked, ...]
    compared: int
    as_of: str
    evidence: str

    def of(self, section: Section) -> tuple[ReleaseItem, ...]:
        """The items of one section."""
        return tuple(item for item in self.items if item.section is section)

    @property
    def open(self) -> tuple[ReleaseItem, ...]:
        """Items that are neither waived nor expected."""
        return tuple(item for item in self.items if item.open)

    @property
    def exit_status(self) -> int:
        """1 if something is neither waived nor expected, 4 if something was not checked and the policy does not say why, otherwise 0."""
        return 1 if self.open else 4 if any(not item.explained for item in self.not_asked) else 0


def reported_releases(evidence: Evidence) -> tuple[str, ...]:
    """The releases that have a report by default: the newest recorded one of every minor line except the first."""
    lines = [list(group)[-1] for _, group in groupby(recorded_readers(evidence), lambda name: Release(name).numbers[:2])]
    return tuple(lines[1:])


def line_before(evidence: Evidence, release: str) -> str:
    """The newest recorded release of an older minor line.

    Raises:
        NothingSelected: there is none.
    """
    older = [reader for reader in recorded_readers(evidence) if Release(reader).numbers[:2] < Release(release).numbers[:2]]
    if not older:
        raise NothingSelected(
            f"no recorded release has an older minor version than {release}", hint="use --since RELEASE", code="no-since"
        )
    return older[-1]


def _checked(evidence: Evidence, release: str) -> None:
    recorded = recorded_readers(evidence)
    if release not in recorded:
        near = [reader for reader in recorded if Release(reader).numbers[:2] == Release(release).numbers[:2]]
        known = f"recorded releases of this line: {', '.join(near)}" if near else f"recorded: {', '.join(recorded)}"
        raise NothingSelected(
            f"there are no records for torch {release}, so its changes are unknown", hint=known, code="not-recorded"
        )


def report_of(
    place: Root, release: str, since: str | None = None, step: Callable[[int, int], None] = lambda _done, _total: None
) -> ReleaseReport:
    """Create the report of a release from the records of a tree.

    Parameters:
        since: the release that it is compared with; by default, the newest recorded one of the previous line.
        step: called with the progress of judging.

    Raises:
        NothingSelected: nothing is recorded for one of the two releases.
        UsageError: there is no such release.
    """
    policy = place.policy()
    newer = policy.calendar.resolve(release).version
    older = policy.calendar.resolve(since).version if since else None
    with uncollected():
        evidence = gather(place, policy)
        judged, named = examine(evidence, step)
        return release_report(evidence, judged, named, newer, older)


def release_report(
    evidence: Evidence, report: Report, named: Iterable[Named], release: str, since: str | None = None
) -> ReleaseReport:
    """What begins with a release.

    Parameters:
        report, named: the judgement of the evidence.
        release, since: versions in the calendar, the second being the older one; by default that of the previous line.

    Raises:
        NothingSelected: nothing is recorded for one of them.
        UsageError: ``since`` is not older.
    """
    _checked(evidence, release)
    since = since or line_before(evidence, release)
    _checked(evidence, since)
    if Release(since) >= Release(release):
        raise UsageError(
            f"{since} is not older than {release}",
            hint="--since must be older than the release that the report is for",
            code="not-older",
        )
    asked = Span(since, release)
    archives, missing = archive_parts(evidence, named, since, release)
    others = [
        *operator_parts(evidence, report),
        *deprecation_parts(evidence),
        *(part for part in (*format_parts(evidence), *change_parts(evidence)) if part.span.meets(asked)),
    ]
    of_archives = {name for part in archives for name in part.names}
    # A cause for archives may begin at several releases, for the archives of several writers: its other records count if they can
    # belong to this beginning.
    others = [part for part in others if part.span.meets(asked) or not of_archives.intersection(part.names)]
    calendar = [item.version for item in evidence.policy.calendar]
    items = [item for item in merged([*archives, *others], calendar) if item.span.meets(asked)]
    return ReleaseReport(
        release=release,
        since=since,
        day=evidence.policy.calendar[release].date.isoformat(),
        items=tuple(items),
        running=tuple(_running(evidence, release)),
        operators=tuple(pair for pair in report.operators if Release(since) < Release(pair.newer) <= Release(release)),
        not_asked=tuple(_not_asked(evidence, report, missing, asked)),
        compared=_compared(evidence, since, release),
        as_of=report.as_of,
        evidence=report.evidence,
    )


def _compared(evidence: Evidence, since: str, release: str) -> int:
    """The number of archives that both releases were asked to load."""
    older, newer = (evidence.readers.where(lambda item, name=name: item.release == name) for name in (since, release))  # type: ignore[misc]
    count = 0
    for (_, options), line in evidence.by_line.items():
        if options == "default":
            count += all(any(cells.readers & bits for cells in line) for bits in (older, newer))
    return count


def _running(evidence: Evidence, release: str) -> Iterator[Running]:
    day = evidence.policy.calendar[release].date
    for history in histories(evidence.policy):
        snapshot = history.at(day)
        if snapshot.state != "warned":
            continue
        began = next(occurrence.point.release for occurrence in snapshot.happened if occurrence.event.what == "warned")
        due = snapshot.due.release if snapshot.due else ""
        yield Running(history.deprecation.id, history.deprecation.subject, began, due, snapshot.overdue)


def _not_asked(evidence: Evidence, report: Report, missing: Iterable[Missing], asked: Span) -> Iterator[NotAsked]:
    """What the records do not show about the release."""
    for item in missing:
        yield NotAsked(item.count, item.why)
    changes = evidence.derived(operator_changes)
    gaps = evidence.policy.operator_gaps
    if evidence.operators is None or asked.by not in evidence.operators.schemas.releases:
        yield NotAsked(1, f"the operators of {asked.by} are not recorded")
    elif changes is not None:
        for pair in changes.pairs:
            unknown = sum(not entry.known for entry in pair.broken)
            if unknown and Span(pair.older, pair.newer).meets(asked):
                why = evidence.operators.schemas.why_incomplete(pair.newer) or "the record cannot be read"
                text = f"operators from {pair.older} that may or may not be in {pair.newer}: {why}"
                yield NotAsked(unknown, text, pair.newer in gaps)
    for history in histories(evidence.policy):
        state = seen(evidence, history.deprecation).get(asked.by)
        if state is None:
            yield NotAsked(1, f"the deprecation {history.deprecation.id}: {asked.by} was not checked")
        elif state.state is State.CANNOT_TELL:
            known = any(Release(asked.by) in span.readers for span in history.deprecation.unclear)
            yield NotAsked(1, f"the deprecation {history.deprecation.id}: {state.why}", known)
    for what, why, count in report.not_checked:
        yield NotAsked(count, f"{why} [{what}]")
