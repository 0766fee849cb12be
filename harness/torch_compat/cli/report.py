"""``torch-compat report``: what begins with a release, based on recorded data."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from torch_compat.cli._output import counting, stdout
from torch_compat.cli._root import root_option
from torch_compat.cli._writing import outputs_of, outputs_option, write_outputs
from torch_compat.report.machine.entries import of_release
from torch_compat.report.release.report import report_of
from torch_compat.report.release.to_json import release_json
from torch_compat.report.release.to_md import release_md
from torch_compat.report.release.to_text import print_release
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["report"]


@click.command()
@click.argument("release", metavar="RELEASE")
@click.option(
    "--since",
    metavar="RELEASE",
    help="Compare with this release. Default: the newest recorded release of an earlier minor version.",
)
@click.option("--full", is_flag=True, help="Print every item with its example, explanation and findings.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="Output format. Markdown and JSON are always full.",
)
@outputs_option
@root_option
def report(release: str, since: str | None, full: bool, format_: str, outputs: tuple[str, ...], root: Path | None) -> int:
    """List what changed in RELEASE: silent changes, refusals, crashes, operators, formats, deprecations and fixes.

    RELEASE can be 2.13.0 or torch-2.13.0; 2.13 means the newest 2.13 patch release. No release is run: the recorded observations of both releases are
    compared. Each change is listed once, with one date. If the records do not show exactly which release made the change, the item lists
    all candidates.

    Exit status: 0 every item is explained by the policy; 1 an item is not explained by the policy; 2 invalid usage, or an
    invalid input file; 3 internal error in torch-compat; 4 there are no records for the release, or they are incomplete.
    """
    asked = outputs_of(outputs)
    with counting("judging") as step:
        result = report_of(find_root(root), release, since, step)
    document = json.dumps({"schema_version": 1, **release_json(result)}, indent=2, sort_keys=True) + "\n"
    markdown = release_md(result)
    write_outputs(asked, of_release(result, markdown), {"json": lambda: document, "markdown": lambda: markdown})
    if format_ == "markdown":
        sys.stdout.write(markdown)
    elif format_ == "json":
        sys.stdout.write(document)
    else:
        print_release(result, stdout(), full=full)
    return result.exit_status
