"""``torch-compat judge``: check the recorded observations against the policy."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torch_compat.cli._days import as_of_option, profile_option
from torch_compat.cli._format import format_option, write_output
from torch_compat.cli._output import counting, stdout
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._root import root_option
from torch_compat.cli._writing import outputs_of, outputs_option, write_outputs
from torch_compat.corpus.manifest import release_folder
from torch_compat.errors import UsageError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import examine, judge_upgrader
from torch_compat.places import read_whole
from torch_compat.report.baseline import beside, beside_lines, read_baseline
from torch_compat.report.findings_md import findings_md
from torch_compat.report.machine.entries import of_report
from torch_compat.report.page.page import DATA, DIGITS
from torch_compat.report.page.page import page as page_of
from torch_compat.report.to_json import report_json
from torch_compat.report.to_text import print_report, summary_text
from torch_compat.workspace import day_of, find_root, profile_note, under_profile
from torch_compat.writes import put, remove

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Report
    from torch_compat.report.baseline import BaselineDiff

__all__ = ["full_option", "judge", "print_formatted", "write_report"]


def full_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add ``--full`` to a command."""
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
    "--with",
    "trees",
    type=NamedPath(file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="Also judge the results from a build: an output directory of `torch-compat candidate`, or a directory that contains several. Can be repeated.",
)
@click.option(
    "--findings",
    type=NamedPath(),
    help="Also write a Markdown report with an explanation of every cause to this file.",
)
@click.option(
    "--page",
    type=NamedPath(file_okay=False),
    help="Also write HTML pages to this directory: index.html and detail pages. They work offline.",
)
@click.option(
    "--baseline",
    type=NamedPath(),
    help="Also list findings that are new, gone or changed since this JSON report, such as yesterday's.",
)
@click.option(
    "--upgrader",
    metavar="ID",
    help="Check only this upgrader, with the rule upgraders-proven.",
)
@click.option("--fail-on-new", is_flag=True, help="With --baseline: exit with status 1 only for new findings.")
@outputs_option
@full_option
@format_option
def judge(
    root: Path | None,
    as_of: str | None,
    profile: str | None,
    trees: tuple[Path, ...],
    findings: Path | None,
    page: Path | None,
    baseline: Path | None,
    upgrader: str | None,
    fail_on_new: bool,
    outputs: tuple[str, ...],
    full: bool,
    format_: str,
) -> int:
    """Check the recorded observations against the policy.

    This command does not parse archives, read the system clock, or need torch.

    Exit status: 0 every promise that was checked holds, or each violation is waived or already existed in an older release;
    1 a promise is broken (with --fail-on-new: only by a new finding); 2 invalid usage, or an invalid input file; 3 internal
    error in torch-compat; 4 incomplete: a required check could not be run, or there is no checkout to check.
    """
    asked = outputs_of(outputs)
    if fail_on_new and baseline is None:
        raise UsageError("--fail-on-new needs --baseline FILE")
    if page is not None and upgrader is not None:
        raise UsageError("--page needs the findings from all rules, so it cannot be combined with --upgrader")
    before = _baseline(baseline) if baseline is not None else None
    place = find_root(root)
    policy = under_profile(place.policy(), profile)
    day = day_of(as_of, policy) if as_of else None
    messages: tuple[str, ...] = ()
    with uncollected():
        evidence = gather(place, policy, as_of=day)
        if trees:
            from torch_compat.replay.build_trees import with_trees  # noqa: PLC0415 - not needed to judge recorded evidence

            evidence, messages = with_trees(evidence, trees, as_of=day)
        with counting("judging") as step:
            report, named = examine(evidence, step) if upgrader is None else (judge_upgrader(evidence, upgrader), ())
        pages = {}
        if page is not None:
            with counting("generating the page") as step:
                pages = page_of(evidence, report, named, step)
    report = replace(report, notes=(*profile_note(policy, profile), *messages, *report.notes))
    if findings is not None:
        write_output(findings, findings_md(report))
    if page is not None:
        _write_page(page, pages)
    result = beside(report, before) if before is not None else None
    write_report(asked, evidence, report, result)
    print_formatted(report, format_, full=full, difference=result)
    return result.exit_status if result is not None and fail_on_new else report.exit_status


def _write_page(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a page, the main one last, and remove the details of older runs.

    Raises:
        UsageError: the directory for the folder does not exist.
        WriteError: a file cannot be written.
    """
    if not folder.absolute().parent.is_dir():
        raise UsageError(
            f"cannot be written: there is no directory {folder.parent}", where=str(folder), hint="create it first", code="output"
        )
    for name, text in files.items():
        put(folder / name, text, encoding="utf-8")
    current = {name.partition("/")[0] for name in files}
    for old in sorted(folder.glob(f"{DATA}{'[0-9a-f]' * DIGITS}/*.html")):
        if old.parent.name not in current:
            remove(old)


def _baseline(path: Path) -> dict[str, tuple[tuple[str, int, str], ...]]:
    if not path.is_file():
        hint = "expected the output of an earlier run with --format json"
        raise UsageError("file not found", where=str(path), hint=hint, code="baseline")
    return read_baseline(read_whole(path), str(path))


def write_report(outputs: dict[Path, str], evidence: Evidence, report: Report, diff: BaselineDiff | None = None) -> None:
    """Write a report in every requested format.

    Raises:
        UsageError: a directory does not exist.
        WriteError: a file cannot be written.
    """
    rules = {rule.id: rule.asks for rule in evidence.policy.rules}
    files = {name: f"{release_folder(fixture.release)}/{fixture.file}" for name, fixture in evidence.corpus.fixtures.items()}
    table = f"```text\n{summary_text(report)}\n```\n"
    whole = {"json": lambda: report_json(report, diff), "markdown": lambda: findings_md(report)}
    write_outputs(outputs, of_report(report, rules, files, table), whole)


def print_formatted(report: Report, format_: str, *, full: bool = False, difference: BaselineDiff | None = None) -> None:
    """Print a report in the requested format, and what is new in it."""
    if format_ == "json":
        sys.stdout.write(report_json(report, difference))
        return
    print_report(report, stdout(), full=full)
    if difference is not None:
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in beside_lines(difference)))
