"""``torch-compat judge``: the recorded observations, held against the policy."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

import click

from harness.cli._output import format_option, stdout
from harness.cli._root import find_root, root_option
from harness.corpus.corpus import load_corpus
from harness.errors import NothingSelected
from harness.report.to_json import report_json
from harness.report.to_text import print_report
from harness.rules.evidence import Evidence
from harness.rules.judge import judge as judge_evidence

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cli._root import Root
    from harness.policy import Policy
    from harness.rules.judge import Report

__all__ = ["as_of_option", "gather", "judge", "print_formatted"]


def as_of_option(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--as-of``."""
    return click.option(
        "--as-of",
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="DATE",
        help="Judge as of this day; else that of the newest recorded observation.",
    )(command)


@click.command()
@root_option
@as_of_option
@format_option
def judge(root: Path | None, as_of: dt.datetime | None, format_: str) -> int:
    """Judge the recorded observations. Opens no archive's content, needs no torch and no clock."""
    place = find_root(root)
    report = judge_evidence(gather(place, place.policy(), as_of=as_of.date() if as_of else None))
    print_formatted(report, format_)
    return report.exit_status


def gather(place: Root, policy: Policy, *, as_of: dt.date | None) -> Evidence:
    """Read everything that judging looks at, as of the day given, else of the newest recorded observation.

    Raises:
        NothingSelected: there is no corpus.
    """
    if not place.fixtures.is_dir():
        raise NothingSelected("has no fixtures/, so there is nothing to judge", where=str(place.path), code="no-corpus")
    corpus = load_corpus(place.fixtures)
    recorded, unreadable = place.observations(place.recorded)
    if as_of is None:
        # Where nothing is recorded nothing is checked either, and the day hardly matters; it must not be the clock's.
        days = [dt.date.fromisoformat(reader.observed) for reader in recorded.values()]
        as_of = max(days, default=max(release.date for release in policy.calendar))
    return Evidence(policy, corpus, recorded, {}, as_of, unreadable)


def print_formatted(report: Report, format_: str) -> None:
    """Print a report in the format asked for."""
    if format_ == "json":
        sys.stdout.write(report_json(report))
    else:
        print_report(report, stdout())
