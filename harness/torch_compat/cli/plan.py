"""``torch-compat plan``: the schedule of an intended change that keeps every promise."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

from torch_compat.cli._days import profile_option
from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.errors import UsageError
from torch_compat.policy import load_policy
from torch_compat.policy.table_base import IDENTIFIER
from torch_compat.policy.timeline import Axis, Earliest, earliest
from torch_compat.report.paragraphs import paragraph
from torch_compat.report.timelines import earliest_text
from torch_compat.workspace import day_of, find_policy, find_root, under_profile
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from torch_compat.policy import Policy
    from torch_compat.policy.deprecations import Step, Timeline
    from torch_compat.policy.timeline import Point

__all__ = ["plan"]

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
"""What can be planned, and the kind of deprecation that it is; a new file format deprecates nothing."""
SILENT: Final = frozenset({"operator", "default", "behaviour"})
"""Changes that give other results without an error, unless told otherwise."""


@dataclass(frozen=True)
class ScheduledStep:
    """One step of a schedule.

    Attributes:
        release: the release that has it; "" where it has none, or the calendar cannot tell.
        day: the day of that release, or of the step; None where the calendar cannot tell.
        nightly: the first nightly that may have it; None where nightlies do not matter.
        event: the event of the policy file, where the step is one.
    """

    what: str
    release: str
    day: dt.date | None
    nightly: dt.date | None
    because: str
    event: str = ""
    planned: bool = False


@click.command()
@click.argument("kind", metavar="KIND", type=click.Choice(list(KINDS)))
@click.argument("subject")
@click.option("--from", "start", metavar="DATE|RELEASE", help="Date or release at which work begins. Default: today.")
@click.option(
    "--loud",
    is_flag=True,
    help="Code that relies on the old behavior raises an error after the change, instead of silently giving other results.",
)
@click.option("--alternative", metavar="TEXT", help="Replacement, to be named in the warning and in the policy file.")
@click.option("--write", metavar="ID", help="Also write a draft of the policy file policies/torch/deprecations/ID.toml.")
@profile_option
@root_option
@format_option
def plan(
    kind: str,
    subject: str,
    start: str | None,
    loud: bool,
    alternative: str | None,
    write: str | None,
    profile: str | None,
    root: Path | None,
    format_: str,
) -> int:
    """Plan a change of KIND to SUBJECT: print the earliest schedule that keeps every promise.

    KIND is operator, mode, keyword-only, removal, rename, default, behaviour or file-format.
    """
    policy = under_profile(find_policy(root), profile)
    if loud and kind not in SILENT:
        raise UsageError(f"--loud cannot be combined with {kind}", hint=f"it is for {', '.join(sorted(SILENT))}")
    begin = day_of(start, policy) if start is not None else dt.datetime.now(dt.UTC).date()
    axis = Axis(policy.calendar, policy.planned)
    steps = _steps(policy, axis, kind, subject, begin, silent=kind in SILENT and not loud)
    draft = _draft(kind, subject, steps, write or "", alternative, silent=kind in SILENT and not loud) if KINDS[kind] else None
    written = _write(root, write, draft, alternative, steps) if write is not None else None
    ends = axis.lines[-1]
    note = f"the calendar, including planned releases, ends with {ends.release} on {ends.day}"
    unknown = any(step.event and step.day is None for step in steps)
    if format_ == "json":
        rows = [_row(step) for step in steps]
        print_json({
            "kind": kind, "subject": subject, "from": begin.isoformat(), "profile": policy.name, "steps": rows,
            "complete": not unknown, "calendar_ends": {"release": ends.release, "day": ends.day.isoformat()},
            "draft": draft, "written": written,
        })  # fmt: skip
        return 4 if unknown else 0
    console = stdout()
    console.print(Text(f"Schedule for changing {subject} ({kind}), starting on {begin}:", style="bold"))
    for step in steps:
        when = step.day.isoformat() if step.day else "?" * 10
        where = f" {step.release}{' (planned)' if step.planned else ''}" if step.release else ""
        nightly = f"; on nightlies from {step.nightly}" if step.nightly else ""
        paragraph(console, f"  {when}{where}  {step.what}{nightly}")
        paragraph(console, f"              {step.because}", "dim")
    paragraph(console, note, "yellow" if unknown else "")
    if written is not None:
        paragraph(console, f"wrote {written}; next, write the probe that it names")
    return 4 if unknown else 0


def _row(step: ScheduledStep) -> dict[str, Any]:
    return {
        "what": step.what,
        "event": step.event or None,
        "release": step.release or None,
        "day": step.day.isoformat() if step.day else None,
        "nightly": step.nightly.isoformat() if step.nightly else None,
        "planned": step.planned,
        "because": step.because,
    }


def _steps(policy: Policy, axis: Axis, kind: str, subject: str, begin: dt.date, *, silent: bool) -> list[ScheduledStep]:
    """The schedule."""
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
    timeline = next(one for one in policy.timelines if (one.kind, one.silent) == (KINDS[kind], silent))
    return steps + _deprecation(axis, timeline, after)


def _serialized(axis: Axis, kind: str, subject: str, begin: dt.date, span: tuple[int, int], window: int) -> list[ScheduledStep]:
    """What comes first where programs that were saved could be read wrongly: fixtures, readers, then writers.

    Parameters:
        span: the file format version that last changed the operator, and the one that is to announce this change.
    """
    since, version = span
    writers = begin + dt.timedelta(days=window)
    reader, writer = _first(axis, begin), _first(axis, writers)
    named = f"the current {subject}" if kind == "operator" else f"everything that {subject} changes, in its current form"
    steps = [
        ScheduledStep(
            f"fixtures of {named} are produced with the newest release and observed with all releases", "", begin, None,
            "after the change, no release can write them any more",
        ),
    ]  # fmt: skip
    if kind == "operator":
        upgrader = re.sub(r"[^A-Za-z0-9_]+", "_", subject.rpartition("::")[2])
        steps.append(
            ScheduledStep(
                f"the upgrader {upgrader}_{since}_{version - 1} and a [[change]] are added; file format {version} announces the change", "", begin, begin,
                "any change that can affect an older serialized TorchScript model requires an upgrader: programs of file format "
                f"{version - 1} or older must keep computing the same results",
            )
        )  # fmt: skip
    steps.append(
        ScheduledStep(
            f"readers accept file format {version}; writers still write {version - 1}", reader.release, reader.day, begin,
            f"day D, {begin}: a reader up to {window} days older than the writer must load and run its archives",
            planned=reader.planned,
        )
    )  # fmt: skip
    steps.append(
        ScheduledStep(
            f"writers write file format {version}, in archives that need it", writer.release, writer.day, writers,
            f"day D+{window}: readers that are {window} days old accept it",
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
    """Every step of a timeline at its earliest."""
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
    return f"{step.releases} releases and {step.days} days"


def _do(what: str, kind: str) -> str:
    return {
        "alternative": "the alternative is available",
        "warned": "each use warns once and names the alternative",
        "error": "each use raises an error",
        "removed": "it is removed",
        "switched": "it has the new behavior",
        "restored": "it is available again with its new meaning" if kind == "mode-change" else "it is available again",
    }[what]


def _draft(
    kind: str, subject: str, steps: list[ScheduledStep], name: str, alternative: str | None, *, silent: bool
) -> str | None:
    """The policy file of the plan. Steps whose release the calendar does not know are left out, and said to be."""
    text = json.dumps
    lines = [
        "#:schema ../../policy.schema.json",
        "# A plan: releases that are not in the calendar yet are planned releases, and are judged like the others.",
        "[deprecation]",
        f"id = {text(name)}",
        f"subject = {text(subject)}",
        f"kind = {text(KINDS[kind])}",
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


def _write(root: Path | None, name: str, draft: str | None, alternative: str | None, steps: list[ScheduledStep]) -> str:
    """Write the draft, and make sure that the policy loads with it.

    Raises:
        UsageError: there is nothing to write, the name cannot be used, or the file is there.
        PolicyError: the policy does not load with it; nothing is left behind.
    """
    if draft is None:
        raise UsageError(
            "a new file format has no policy file of its own",
            hint="add its [[format]] to policies/torch/formats.toml once the calendar has the release that reads it",
        )
    if not re.fullmatch(IDENTIFIER, name):
        raise UsageError(
            f"{name!r} is not a valid id", hint="use lower-case words joined by hyphens, such as 'lstsq-removed'", code="bad-name"
        )
    if not alternative:
        raise UsageError("--write requires an alternative", hint="use --alternative TEXT")
    if not any(step.event and step.release for step in steps):
        raise UsageError("no step has a release in the calendar, so there is nothing to write yet", code="calendar-ends")
    place = find_root(root)
    path = place.inside(f"policies/torch/deprecations/{name}.toml")
    with changing(place.path):
        if path.exists():
            raise UsageError("already exists", where=str(path), code="exists")
        with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
            copy = Path(scratch) / "torch"
            shutil.copytree(place.inside("policies/torch"), copy)
            put(copy / "deprecations" / path.name, draft, encoding="utf-8")
            load_policy(copy)  # before the tree changes: a policy that does not load stops every other command
        put(path, draft, encoding="utf-8")
    return path.relative_to(place.path).as_posix()


def allowed_from(policy: Policy, kind: str, subject: str, begin: dt.date) -> dt.date | None:
    """The day on which a change may be released at the earliest if it is announced on a day; None where the calendar ends before, or the
    policy has no timeline for it.

    Parameters:
        kind: as the command takes it.
    """
    silent = kind in SILENT
    if KINDS[kind] and not any((one.kind, one.silent) == (KINDS[kind], silent) for one in policy.timelines):
        return None  # the policy promises no timeline for this
    steps = _steps(policy, Axis(policy.calendar, policy.planned), kind, subject, begin, silent=silent)
    return steps[-1].day if steps else begin
