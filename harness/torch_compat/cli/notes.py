"""``torch-compat notes``: draft the compatibility notes of a release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torch_compat.cli._format import write_output
from torch_compat.cli._output import counting
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.report.documents import hand_of
from torch_compat.report.release.compatibility_notes import notes_md
from torch_compat.report.release.report import report_of
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["notes"]


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option(
    "--since",
    metavar="RELEASE",
    help="Compare with this release. Default: the newest recorded release of an earlier minor version.",
)
@click.option("--output", type=NamedPath(), help="Write the notes to this file.")
@root_option
def notes(release: str, since: str | None, output: Path | None, root: Path | None) -> int:
    """Draft the compatibility notes for RELEASE as Markdown, from recorded observations.

    Sections: backwards-incompatible changes, deprecations, compatibility improvements, known problems, and what was not checked.
    Each item has a snippet with the output from both releases, the recommended action, and the supporting evidence. Text in
    reports/notes/RELEASE.toml is inserted under its item, and is never changed.

    Exit status: 0 every item is explained by the policy; 1 an item is not explained by the policy; 2 invalid usage, or
    hand-written text refers to an item that no longer has evidence; 3 internal error in torch-compat; 4 there are no
    records for the release, or they are incomplete.
    """
    place = find_root(root)
    with counting("judging") as step:
        result = report_of(place, release, since, step)
    hand = hand_of(place, result)
    with counting("writing the notes") as step:
        text = notes_md(result, hand, step)
    if output is not None:
        write_output(output, text)
    else:
        sys.stdout.write(text)
    return result.exit_status
