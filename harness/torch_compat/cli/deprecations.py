"""``torch-compat deprecations``: the state of every deprecation: what was early, what is overdue, and what may happen next."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from torch_compat.cli._days import as_of_option, profile_option
from torch_compat.cli._output import format_option, print_json, stdout
from torch_compat.cli._root import root_option
from torch_compat.cli._together import refuse_ignored
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.judging.timeline_evidence import gather_deprecations, judge_deprecations, judge_timelines, timeline_rows
from torch_compat.judging.timelines import rows as rows_of
from torch_compat.report.deprecations import deprecation_lines
from torch_compat.report.paragraphs import paragraph
from torch_compat.report.timelines import deprecation_json, due_json, print_deprecations
from torch_compat.words import count_of, suggest
from torch_compat.workspace import PACKAGED, day_of, find_policy, find_root, newest_known, span_of, under_profile

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.judging.timelines import TimelineRow
    from torch_compat.policy import Policy
    from torch_compat.workspace import Root

__all__ = ["deprecations"]

_NEXT = re.compile(r"(\d{1,6})(?:-days)?")


@click.command()
@click.argument("names", metavar="[ID]...", nargs=-1)
@root_option
@as_of_option
@profile_option
@click.option(
    "--next",
    "ahead",
    metavar="N-days",
    help="List only upcoming events in the next N days, and promises that are broken without a waiver.",
)
@click.option("--sweep", metavar="FROM..TO", help="Judge every day from FROM to TO (dates or releases), instead of one date.")
@click.option(
    "--states", is_flag=True, help="Print one line per deprecation instead, with one character per release (text format only)."
)
@click.option("--full", is_flag=True, help="Print every event, and deviations that break no promise.")
@format_option
def deprecations(
    names: tuple[str, ...],
    root: Path | None,
    as_of: str | None,
    profile: str | None,
    ahead: str | None,
    sweep: str | None,
    states: bool,
    full: bool,
    format_: str,
) -> int:
    """Show the state of each deprecation: whether it was removed too early or is overdue, or its next step and date.

    With IDs, such as floor-divide, only these deprecations are shown; the exit status still covers all deprecations.

    Outside a checkout of torch-compat, the packaged policy is compared with the calendar alone. In this case the behavior of releases is
    not checked, and the exit status is 4 unless a promise is broken.

    Exit status: 0 every promise that was checked holds, or each violation is waived or already existed in an older release;
    1 a promise is broken; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 incomplete: a
    required check could not be run, or there is no checkout to check.
    """
    if sweep is not None:
        refuse_ignored(
            "--sweep",
            "judges every day of a range, for all deprecations",
            {"--as-of": as_of, "--next": ahead, "--states": states, "--full": full, "an ID": names},
        )
    if states:
        refuse_ignored(
            "--states",
            "prints one line for each deprecation",
            {"--next": ahead, "--full": full, "--format json": format_ == "json"},
        )
    place = _tree(root)
    policy = under_profile(place.policy() if place is not None else find_policy(None), profile)
    if sweep is not None:
        if place is None:
            raise NothingSelected(
                "--sweep needs recorded observations", hint="run it in a checkout of torch-compat", code="no-root"
            )
        return _sweep(place, policy, sweep, format_)
    days = _days(ahead)
    if not policy.deprecations:
        where = str(place.path) if place is not None else None
        raise NothingSelected("the policy has no deprecations", where=where, hint="`torch-compat new deprecation NAME`")
    if place is None and states:
        raise NothingSelected("--states needs recorded observations", hint="run it in a checkout of torch-compat", code="no-root")
    given = day_of(as_of, policy) if as_of else None
    if place is None:
        day = given or newest_known(policy, ())
        rows, report = timeline_rows(policy, day), judge_timelines(policy, day)
    else:
        evidence = gather_deprecations(place, policy, as_of=given)
        day = evidence.as_of
        rows, report = rows_of(evidence, day), judge_deprecations(evidence)
    status = report.exit_status
    if names:
        rows = _chosen(rows, names)
        report = replace(
            report, findings=tuple(finding for finding in report.findings if any(_is_about(finding.id, name) for name in names))
        )
    due = due_json(rows, () if names else policy.waivers, day, days)
    if format_ == "json":
        print_json(deprecation_json(rows, report, due, policy.name))
    elif states:
        console = stdout()
        for line in deprecation_lines(rows):
            paragraph(console, line)
    else:
        print_deprecations(rows, report, due, stdout(), full=full, days=days)
    return status


def _tree(given: Path | None) -> Root | None:
    """The tree; None outside a tree, if this package has its own policies."""
    try:
        return find_root(given)
    except NothingSelected:
        if given is not None or not PACKAGED.is_dir():
            raise
        return None


def _chosen(rows: tuple[TimelineRow, ...], names: tuple[str, ...]) -> tuple[TimelineRow, ...]:
    """The rows of the named deprecations.

    Raises:
        UsageError: there is no such deprecation.
    """
    known = {row.history.deprecation.id: row for row in rows}
    for name in names:
        if name not in known:
            hint = suggest(name, known, "torch-compat deprecations lists them all", cutoff=0.4)
            raise UsageError(f"there is no deprecation {name!r}", hint=hint, code="unknown-id")
    return tuple(known[name] for name in dict.fromkeys(names))


def _is_about(finding: str, name: str) -> bool:
    """Whether the ID of a finding names a deprecation."""
    return finding.rpartition(":")[2].partition("@")[0].partition("/")[0] == name


def _days(text: str | None) -> int | None:
    if text is None:
        return None
    match = _NEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a number of days", hint="use 90-days or 90", code="bad-day")
    return int(match[1])


def _sweep(place: Root, policy: Policy, text: str, format_: str) -> int:
    """Print every day of a span; consecutive days with the same result are printed together."""
    from torch_compat.judging.gathering import gather, uncollected  # noqa: PLC0415 - reads the whole corpus, which only a sweep needs
    from torch_compat.judging.sweep import spans  # noqa: PLC0415

    first, last = span_of(text, policy)
    with uncollected():
        evidence = gather(place, policy, as_of=None)
    results: list[dict[str, Any]] = [
        {
            "from": start.isoformat(),
            "to": end.isoformat(),
            "verdicts": dict(day.verdicts),
            "broken": sorted(day.broken - day.waived),
            "waived": sorted(day.waived),
            "missing": sorted(day.missing),
            "expired": sorted(day.expired),
        }
        for start, end, day in spans(evidence, first, last)
    ]
    if format_ == "json":
        print_json({"from": first.isoformat(), "to": last.isoformat(), "profile": policy.name, "spans": results})
    else:
        console, known = stdout(), set[str]()
        for span in results:
            now = {f"{what}: {item}" for what in ("broken", "waived", "missing", "expired") for item in span[what]}
            paragraph(console, f"{span['from']} to {span['to']}: {len(now)} broken, waived, missing or expired")
            for line in sorted(now - known):
                paragraph(console, f"  new: {line}")
            for line in sorted(known - now):
                paragraph(console, f"  ended: {line}")
            known = now
        days = (last - first).days + 1
        console.print(Text(f"{count_of(days, 'day')} in {count_of(len(results), 'range')} with the same result"))
    sys.stdout.flush()
    return 1 if results[-1]["broken"] or results[-1]["expired"] else 4 if results[-1]["missing"] else 0
