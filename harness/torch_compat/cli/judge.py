"""``torch-compat judge``: the recorded observations, held against the policy."""

from __future__ import annotations

import contextlib
import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torch_compat.cli._days import as_of_option, day_of, newest_known, profile_note, profile_option, under_profile
from torch_compat.cli._format import format_option, write_output
from torch_compat.cli._output import stdout
from torch_compat.cli._root import find_root, root_option
from torch_compat.corpus.corpus import load_corpus
from torch_compat.corpus.operators import read_operators
from torch_compat.errors import NothingSelected
from torch_compat.report.findings_md import findings_md
from torch_compat.report.to_json import report_json
from torch_compat.report.to_text import print_report
from torch_compat.rules.evidence import Evidence
from torch_compat.rules.judge import judge as judge_evidence

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from torch_compat.cli._root import Root
    from torch_compat.policy import Policy
    from torch_compat.rules.judge import Report

__all__ = ["full_option", "gather", "judge", "print_formatted", "uncollected"]


def full_option(command: click.decorators.FC) -> click.decorators.FC:
    """Adds ``--full``."""
    return click.option(
        "--full",
        is_flag=True,
        help="Print every finding, and a table of writers by readers for each family, instead of a one-page summary.",
    )(command)


@click.command()
@root_option
@as_of_option
@profile_option
@click.option(
    "--findings",
    type=click.Path(path_type=Path),
    help="Also write a Markdown report with an explanation of every cause to this file.",
)
@full_option
@format_option
def judge(root: Path | None, as_of: str | None, profile: str | None, findings: Path | None, full: bool, format_: str) -> int:
    """Check the recorded observations against the policy.

    Does not parse archives, read the clock or need torch.
    """
    place = find_root(root)
    policy = under_profile(place.policy(), profile)
    with uncollected():
        report = judge_evidence(gather(place, policy, as_of=day_of(as_of, policy) if as_of else None))
    report = replace(report, notes=(*profile_note(policy, profile), *report.notes))
    if findings is not None:
        write_output(findings, findings_md(report))
    print_formatted(report, format_, full=full)
    return report.exit_status


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without cyclic garbage collection: evidence is a million objects that all stay, and walking them took half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()
            gc.unfreeze()  # all of it counts as old now, and is not walked at once
            gc.enable()


def gather(place: Root, policy: Policy, *, as_of: dt.date | None) -> Evidence:
    """Read everything that judging looks at, as of the day given, else of the newest that is known.

    Raises:
        NothingSelected: there is no corpus.
    """
    if not place.fixtures.is_dir():
        raise NothingSelected("has no fixtures/, so there is nothing to judge", where=str(place.path), code="no-corpus")
    corpus = load_corpus(place.fixtures)
    found = place.observations()
    if as_of is None:
        as_of = newest_known(policy, found.readers.values())
    files = dict.fromkeys(found.readers, found.digest)
    operators = read_operators(place.fixtures)
    return Evidence(policy, corpus, found.readers, {}, as_of, found.unreadable, files=files, operators=operators)


def print_formatted(report: Report, format_: str, *, full: bool = False) -> None:
    """Print a report in the format asked for."""
    if format_ == "json":
        sys.stdout.write(report_json(report))
    else:
        print_report(report, stdout(), full=full)
