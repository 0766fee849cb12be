"""The earliest schedule of an intended change that keeps every promise: which step goes into which release."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torch_compat.policy.timeline import Axis, Earliest, earliest
from torch_compat.report.timelines import earliest_text
from torch_compat.words import american, count_of

if TYPE_CHECKING:
    from torch_compat.policy import Policy
    from torch_compat.policy.deprecations import Step, Timeline
    from torch_compat.policy.timeline import Point

__all__ = ["KINDS", "SILENT", "ScheduledStep", "allowed_from", "drafted", "scheduled"]

KINDS: Final = {
    "operator": "behaviour-change",
    "mode": "mode-change",
    "keyword-only": "keyword-only",
    "removal": "removal",
    "rename": "rename",
    "default": "default-change",
    "behaviour": "behaviour-change",
    "file-format": "",
}
"""The kinds of changes that can be planned, with the kind of deprecation for each. A new file format deprecates nothing."""
SILENT: Final = frozenset({"operator", "default", "behaviour"})
"""Changes that give different results without an error, unless stated otherwise."""


@dataclass(frozen=True)
class ScheduledStep:
    """One step of a schedule.

    Attributes:
        release: the release that contains it; "" if there is none, or the calendar does not reach that far.
        day: the date of that release, or of the step; None if the calendar does not reach that far.
        nightly: the first nightly that may contain it; None if nightlies do not matter.
        event: the event in the policy file, if the step is one.
    """

    what: str
    release: str
    day: dt.date | None
    nightly: dt.date | None
    because: str
    event: str = ""
    planned: bool = False


def scheduled(policy: Policy, axis: Axis, kind: str, subject: str, begin: dt.date, *, silent: bool) -> list[ScheduledStep]:
    """Create the schedule."""
    window = policy.forward_window_days
    steps: list[ScheduledStep] = []
    after = begin  # the day from which programs may change
    if kind in {"operator", "file-format"}:
        versions = {
            entry.version: entry for entry in policy.formats if entry.kind == "file-format" and isinstance(entry.version, int)
        }
        operator = subject.partition(".")[0]
        since = max((version for version, entry in versions.items() if operator in (entry.operators or ())), default=0)
        steps += _serialized(axis, kind, subject, begin, (since, max(versions) + 1), window)
        after = begin + dt.timedelta(days=window)
    if not KINDS[kind]:
        return steps
    timeline = next(item for item in policy.timelines if (item.kind, item.silent) == (KINDS[kind], silent))
    return steps + _deprecation(axis, timeline, after)


def _serialized(axis: Axis, kind: str, subject: str, begin: dt.date, span: tuple[int, int], window: int) -> list[ScheduledStep]:
    """The first steps if saved programs could be read incorrectly: fixtures, readers, then writers.

    Parameters:
        span: the file format version that last changed the operator, and the one that will announce this change.
    """
    since, version = span
    writers = begin + dt.timedelta(days=window)
    reader, writer = _first(axis, begin), _first(axis, writers)
    named = f"the current {subject}" if kind == "operator" else f"everything that {subject} changes, in its current form"
    steps = [
        ScheduledStep(
            f"fixtures for {named} are produced with the newest release and observed with all releases", "", begin, None,
            "after the change, releases can no longer write them",
        ),
    ]  # fmt: skip
    if kind == "operator":
        upgrader = re.sub(r"[^A-Za-z0-9_]+", "_", subject.rpartition("::")[2])
        steps.append(
            ScheduledStep(
                f"the upgrader {upgrader}_{since}_{version - 1} and a [[change]] are added; file format {version} marks the change", "", begin, begin,
                "any change that can affect an older serialized TorchScript model requires an upgrader: programs of file format "
                f"{version - 1} or older must keep computing the same results",
            )
        )  # fmt: skip
    steps.append(
        ScheduledStep(
            f"readers accept file format {version}; writers still write {version - 1}", reader.release, reader.day, begin,
            f"day D, {begin}: a reader up to {count_of(window, 'day')} older than the writer must load and run its archives",
            planned=reader.planned,
        )
    )  # fmt: skip
    steps.append(
        ScheduledStep(
            f"writers write file format {version}, in archives that need it", writer.release, writer.day, writers,
            f"day D+{window}: readers that are {count_of(window, 'day')} old accept it",
            planned=writer.planned,
        )
    )  # fmt: skip
    return steps


@dataclass(frozen=True)
class _Spot:
    release: str
    day: dt.date | None
    planned: bool
    point: Point | None


def _first(axis: Axis, day: dt.date) -> _Spot:
    """The first release on or after a day."""
    for point in axis.lines:
        if point.day >= day:
            return _Spot(point.release, point.day, point.planned, point)
    return _Spot("", None, planned=False, point=None)


def _deprecation(axis: Axis, timeline: Timeline, begin: dt.date) -> list[ScheduledStep]:
    """Every step of a timeline at its earliest date."""
    steps: list[ScheduledStep] = []
    taken: dict[str, tuple[Point | None, dt.date | None]] = {}
    for step in timeline.steps:
        what = step.what[0]
        before, nightly = taken[step.after] if step.after is not None else (None, None)
        landed: dt.date | None
        day: dt.date | None
        if step.after is None or not (step.releases or step.days):
            spot = _first(axis, begin)
            point, landed = spot.point, begin
            release, day, planned, because = spot.release, spot.day, spot.planned, f"the first release on or after {begin}"
            if not spot.release:
                because = f"the calendar has no release after {begin}"
        elif before is None:
            point, landed = None, nightly + dt.timedelta(days=step.days) if nightly else None
            release, day, planned = "", None, False
            because = f"{_count(step)} after the previous step, whose release is not in the calendar"
        else:
            bound = earliest(axis, step, before, nightly)
            point, landed = (axis[bound.release] if bound.release else None), bound.nightly
            release, day, planned = bound.release, bound.day, bound.planned
            because = f"{_count(step)} after {before.release} of {before.day}: {_because(bound)}"
        documented = "; the documentation says so" if step.documented else ""
        steps.append(ScheduledStep(f"{_do(what, timeline.kind)}{documented}", release, day, landed, because, what, planned))
        for name in step.what:
            taken[name] = (point, landed)
    return steps


def _because(bound: Earliest) -> str:
    return earliest_text(
        Earliest(bound.release, bound.day, bound.line, bound.not_before, None, bound.undated, bound.missing, bound.planned)
    )


def _count(step: Step) -> str:
    return f"{count_of(step.releases, 'release')} and {count_of(step.days, 'day')}"


def _do(what: str, kind: str) -> str:
    return {
        "alternative": "the alternative is available",
        "warned": "each use warns once and names the alternative",
        "error": "each use raises an error",
        "removed": "it is removed",
        "switched": "it has the new behavior",
        "restored": "it is available again with its new meaning" if kind == "mode-change" else "it is available again",
    }[what]


def drafted(
    kind: str, subject: str, steps: list[ScheduledStep], name: str, alternative: str | None, *, silent: bool
) -> str | None:
    """The policy file of the plan. Steps whose release is not in the calendar are left out, and mentioned."""
    text = json.dumps
    lines = [
        "#:schema ../../policy.schema.json",
        "# A plan: releases that are not in the calendar yet are planned releases, and are judged like the others.",
        "[deprecation]",
        f"id = {text(name)}",
        f"subject = {text(subject)}",
        f"kind = {text(american(KINDS[kind]))}",
        *(["silent = true"] if silent else []),
        f"alternative = {text(alternative or '')}",
        f"warning = {text(re.escape(subject) + '.*deprecated')}",
        f"probe = {text(re.sub(r'[^a-z0-9]+', '_', name))}",
    ]
    for step in steps:
        if step.event and step.release:
            lines += ["", "[[deprecation.events]]", f"what = {text(step.event)}", f"release = {text(step.release)}"]
            if step.nightly is not None and step.day is not None and step.nightly <= step.day:
                lines.append(f"nightly = {step.nightly.isoformat()}")
        elif step.event:
            lines += ["", f"# {step.event}: {step.because}"]
    for step in steps:
        if step.event in {"warned", "removed", "restored", "switched"} and "documentation" in step.what and step.release:
            holds = {"warned": "deprecated", "removed": "removed", "restored": "restored", "switched": "changed"}[step.event]
            lines += ["", "[[deprecation.docs]]", f"release = {text(step.release)}", f"holds = {text(holds)}"]
    return "\n".join(lines) + "\n"


def allowed_from(policy: Policy, kind: str, subject: str, begin: dt.date) -> dt.date | None:
    """The earliest day on which a change may be released if it is announced on a given day.

    None if the calendar ends before, or the policy has no timeline for it.

    Parameters:
        kind: the kind as given to the command.
    """
    silent = kind in SILENT
    if KINDS[kind] and not any((timeline.kind, timeline.silent) == (KINDS[kind], silent) for timeline in policy.timelines):
        return None  # the policy promises no timeline for this
    steps = scheduled(policy, Axis(policy.calendar, policy.planned), kind, subject, begin, silent=silent)
    return steps[-1].day if steps else begin
