"""``torch-compat plan``: schedule an intended change so that it keeps every promise."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from torch_compat.cli._days import profile_option
from torch_compat.cli._kinds import KindOf
from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.errors import UsageError
from torch_compat.policy import load_policy
from torch_compat.policy.table_base import IDENTIFIER
from torch_compat.policy.timeline import Axis
from torch_compat.report.paragraphs import paragraph
from torch_compat.report.schedule import KINDS, SILENT, drafted, scheduled
from torch_compat.scaffolding.created import taken
from torch_compat.words import american
from torch_compat.workspace import day_of, find_policy, find_root, under_profile
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from torch_compat.report.schedule import ScheduledStep

__all__ = ["plan"]


@click.command()
@click.argument("kind", metavar="KIND", type=KindOf(KINDS))
@click.argument("subject")
@click.option("--from", "start", metavar="DATE|RELEASE", help="Date or release at which work begins. Default: today.")
@click.option(
    "--loud",
    is_flag=True,
    help="Code that relies on the old behavior raises an error after the change, instead of silently returning different results.",
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
    """Plan a change to SUBJECT: print the earliest schedule that keeps every promise.

    KIND is the kind of change: operator, mode, keyword-only, removal, rename, default, behavior or file-format.

    Exit status: 0 every step has a date; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 a
    step is later than the calendar, including planned releases.
    """
    policy = under_profile(find_policy(root), profile)
    if loud and kind not in SILENT:
        raise UsageError(
            f"--loud cannot be combined with {kind}", hint=f"--loud applies only to {american(', '.join(sorted(SILENT)))}"
        )
    begin = day_of(start, policy) if start is not None else dt.datetime.now(dt.UTC).date()
    axis = Axis(policy.calendar, policy.planned)
    steps = scheduled(policy, axis, kind, subject, begin, silent=kind in SILENT and not loud)
    draft = drafted(kind, subject, steps, write or "", alternative, silent=kind in SILENT and not loud) if KINDS[kind] else None
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
    console.print(Text(f"Schedule for changing {subject} ({american(kind)}), starting on {begin}:", style="bold"))
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


def _write(root: Path | None, name: str, draft: str | None, alternative: str | None, steps: list[ScheduledStep]) -> str:
    """Write the draft, and check that the policy loads with it.

    Raises:
        UsageError: there is nothing to write, the name is invalid, or the file exists.
        PolicyError: the policy does not load with the draft; nothing is written.
    """
    if draft is None:
        raise UsageError(
            "a new file format does not get its own policy file",
            hint="add its [[format]] to policies/torch/formats.toml once the release that can read it is in the calendar",
        )
    if not re.fullmatch(IDENTIFIER, name):
        raise UsageError(
            f"{name!r} is not a valid id", hint="use lower-case words joined by hyphens, such as 'lstsq-removed'", code="bad-name"
        )
    if not alternative:
        raise UsageError("--write requires an alternative", hint="use --alternative TEXT")
    if not any(step.event and step.release for step in steps):
        raise UsageError(
            "no step falls on a release that is already in the calendar, so there is nothing to write", code="calendar-ends"
        )
    place = find_root(root)
    path = place.inside(f"policies/torch/deprecations/{name}.toml")
    with changing(place.path):
        if path.exists():
            raise taken(path)
        with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
            copy = Path(scratch) / "torch"
            shutil.copytree(place.inside("policies/torch"), copy)
            put(copy / "deprecations" / path.name, draft, encoding="utf-8")
            load_policy(copy)  # before changing the tree: a policy that does not load stops every other command
        put(path, draft, encoding="utf-8")
    return path.relative_to(place.path).as_posix()
