"""``torch-compat admit``: add a new release to the corpus with one command that can be stopped and restarted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._days import day_given
from torch_compat.cli._observing import print_reading
from torch_compat.cli._output import Progress, exit_status, format_option, print_json, stderr, stdout, trust_option
from torch_compat.cli._root import root_option
from torch_compat.errors import NothingSelected, UsageError
from torch_compat.replay.admission import STEPS, Admission, Ended
from torch_compat.words import count_of
from torch_compat.workspace import find_root

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

__all__ = ["admit"]

SHOWN = 12  # maximum number of changed files to name; if there are more, their folders are named
STATES = {"there": "up to date", "done": "done", "incomplete": "INCOMPLETE", "left": "not started", "to-do": "to do"}


@click.command()
@click.argument("release", metavar="torch-X.Y.Z")
@click.option("--dry-run", is_flag=True, help="Only print the steps that would run and the environments that would be built.")
@click.option(
    "--only",
    type=click.Choice(STEPS),
    multiple=True,
    metavar="STEP",
    help="Run only this step. Can be repeated; the order of steps stays the same.",
)
@click.option("--until", type=click.Choice(STEPS), metavar="STEP", help="Stop after this step.")
@click.option(
    "--keep-environments/--remove-environments",
    "keep",
    default=False,
    help="Keep or remove the environments that are built for the other readers. Existing environments are always kept.",
    show_default="--remove-environments",
)
@click.option(
    "--uploaded",
    callback=day_given,
    metavar="DATE",
    help="Upload date of the release, if neither pip nor the package index provides it.",
)
@trust_option
@root_option
@format_option
def admit(
    release: str,
    dry_run: bool,
    only: tuple[str, ...],
    until: str | None,
    keep: bool,
    uploaded: dt.date | None,
    trust: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Add the release torch-X.Y.Z to the corpus.

    \b
    Steps:
      calendar     add the release to policies/torch, using data from the package index
      environment  build its environment in the cache directory
      produce      run every recipe with it
      observe      load every fixture and run every probe with it
      survey       record its operators, names and limits
      readers      load its fixtures with every other reader
      documents    regenerate the generated files, and judge the results
      predictions  update the counts in reports/predictions.md

    Steps whose results already exist are skipped. The command can be stopped at any time. Rerun it to continue where it
    stopped; the end result is the same. The other readers run one after another, oldest first. An environment that is built only for the readers
    step is removed before the next one is built, unless --keep-environments is given.

    Exit status: 0 the release is added and all promises hold; 1 a promise is broken or a prediction is wrong (fix or waive
    the finding); 2 invalid usage, or an invalid input file; 3 internal error in torch-compat; 4 a step could not be
    completed or checked.
    """  # noqa: D301 - click reads the character
    version = release.removeprefix("torch-")
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"{release!r} is not the name of a release", hint="write torch-2.16.0")
    place = find_root(root)
    if not (place.inside("policies/torch").is_dir() and place.fixtures.is_dir()):
        raise NothingSelected(
            "is missing fixtures/ or policies/torch, so no release can be added", where=str(place.path), code="no-corpus"
        )
    console = stderr()
    admission = Admission(
        place, version, uploaded, keep, trust,
        say=lambda line: console.print(f"  {line}", markup=False), progress=lambda: Progress(stderr()),
        read=lambda reading: print_reading(reading, show=False, format_="text"),
    )  # fmt: skip
    last = STEPS.index(until) if until else len(STEPS) - 1
    steps = [step for at, step in enumerate(STEPS) if at <= last and (not only or step in only)]
    if not steps:
        raise UsageError(f"--until {until} excludes every step that --only selects")
    environments = _environments(admission, steps) if dry_run else None
    ended = _told(admission, steps) if dry_run else _done(admission, steps, console)
    changed = [] if dry_run else admission.changed()
    left = [line for item in ended.values() for line in item.left]
    left += [f"{step}: {admission.does(step)}" for step in STEPS if step not in steps and not _settled(admission, step)]
    status = exit_status(item.status for item in ended.values())
    if not dry_run and not left and not status:
        admission.end()
    if format_ == "json":
        _print_document(admission, ended, environments, changed, left, status, dry_run=dry_run)
    else:
        _print(admission, ended, environments, changed, left)
    return status


def _told(admission: Admission, steps: Sequence[str]) -> dict[str, Ended]:
    """What each step would do."""
    return {step: Ended("there" if admission.is_there(step) else "to-do", (admission.does(step),)) for step in steps}


def _done(admission: Admission, steps: Sequence[str], console: Console) -> dict[str, Ended]:
    """Run the steps, and report the current one."""

    def starting(step: str, number: int, there: bool) -> None:
        does = "already done" if there else admission.does(step)
        console.print(f"[{number}/{len(steps)}] {step}: {does}", markup=False)
        if not there and step in {"environment", "readers"}:
            for line in _bounds(admission, _environments(admission, [step])):
                admission.say(line)

    return admission.run_all(steps, starting)


def _settled(admission: Admission, step: str) -> bool:
    """Whether a step that was not requested can be left out of the list of remaining steps."""
    return step != "documents" and admission.is_there(step)


# --------------------------------------------------------------------------------------------------------------- the output


def _environments(admission: Admission, steps: Sequence[str]) -> dict[str, Any]:
    """The environments that these steps build, in order, and their cost."""
    wanted = {"environment", "readers"} & set(steps)
    names = [
        f"torch-{version}"
        for version in (admission.environments_to_build() if wanted else ())
        if ("environment" if version == admission.version else "readers") in wanted
    ]
    return {
        "build": names,
        "kept": admission.keep,
        "free_bytes_needed": admission.needed if names else 0,
        "largest_here_bytes": admission.largest_here(),
    }


def _bounds(admission: Admission, environments: dict[str, Any]) -> list[str]:
    """The cost of building the environments, in words, before it begins."""
    names = environments["build"]
    if not names:
        return ["all required environments are already built"]
    largest = environments["largest_here_bytes"]
    each = (
        f"the largest environment here takes {largest / 1e9:.2f} GB"
        if largest
        else "there is no environment here to compare with"
    )
    after = (
        "all of them are kept"
        if admission.keep
        else "each is removed before the next one is built"
        if len(names) > 1
        else "it is removed afterwards"
    )
    if names == [f"torch-{admission.version}"]:
        after = "it is kept"
    return [
        f"environments to build: {', '.join(names)}",
        f"sizes are unknown before the download; {each}; each needs up to {admission.needed / 1e9:.0f} GB while it is built; {after}",
    ]


def _print_document(
    admission: Admission,
    ended: dict[str, Ended],
    environments: dict[str, Any] | None,
    changed: list[str],
    left: list[str],
    status: int,
    *,
    dry_run: bool,
) -> None:
    print_json(
        {
            "release": f"torch-{admission.version}",
            "dry_run": dry_run,
            "exit_status": status,
            "steps": [
                {"step": step, "does": admission.does(step), "state": item.state, "details": list(item.says)}
                for step, item in ended.items()
            ],
            "environments": environments,
            "changed": changed,
            "left": left,
        }
    )


def _print(
    admission: Admission, ended: dict[str, Ended], environments: dict[str, Any] | None, changed: list[str], left: list[str]
) -> None:
    console = stdout()
    for step, item in ended.items():
        first, *more = item.says or ("",)
        console.print(f"{step:12} {STATES[item.state]:11} {first}".rstrip(), markup=False, soft_wrap=True)
        for line in more[:SHOWN]:
            console.print(f"{'':24} {line}", markup=False, soft_wrap=True)
        if len(more) > SHOWN:
            console.print(f"{'':24} and {len(more) - SHOWN} more", markup=False)
    if environments is not None:
        for line in _bounds(admission, environments):
            console.print(line, markup=False, soft_wrap=True)
    if changed:
        console.print(f"\n{count_of(len(changed), 'file')} changed:", markup=False)
        for line in _folded(changed):
            console.print(f"  {line}", markup=False, soft_wrap=True)
    if left:
        console.print("\nleft to do:", markup=False)
        for line in left:
            console.print(f"  {line}", markup=False, soft_wrap=True)


def _folded(paths: list[str]) -> list[str]:
    """Files by name, or by folder if it contains many."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    lines = []
    for folder, result in sorted(folders.items()):
        lines += result if len(result) <= SHOWN else [f"{folder}/ ({count_of(len(result), 'file')})"]
    return lines
