"""``torch-compat readers``: the real torch releases available on this machine, built or not."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.text import Text

from torch_compat.cli._help import WithCommands
from torch_compat.cli._output import exit_status, format_option, say, stderr, stdout
from torch_compat.cli._root import root_option
from torch_compat.errors import EnvironmentUnavailable, ReaderError, UsageError
from torch_compat.readers.commands import run_command
from torch_compat.readers.environments import Cuda, Environment, Environments
from torch_compat.readers.index import entry_text, new_releases
from torch_compat.readers.interpreters import find_interpreters, fitting
from torch_compat.report.paragraphs import print_table
from torch_compat.workspace import find_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch_compat.policy import CalendarRelease

__all__ = ["readers"]

SCHEMA_VERSION = 1


@click.group(cls=WithCommands)
def readers() -> None:
    """List, build and remove environments for real torch releases; check for new releases.

    Environments are stored in $TORCH_COMPAT_CACHE, or in your cache directory if it is not set.
    """


@readers.command("list")
@root_option
@format_option
def list_(root: Path | None, format_: str) -> None:
    """List all releases in the calendar.

    Shows the Python on this machine that works with each release, and whether its environment is built.

    Exit status: 0 success; 2 invalid usage, or an invalid input file; 3 internal error in torch-compat.
    """
    environments = Environments()
    rows = [_row(release, environments.get(release.version)) for release in find_policy(root).calendar]
    if format_ == "json":
        _print_json({"readers": rows})
    else:
        _print_table(rows)


@readers.command()
@click.argument("releases", nargs=-1, required=True, metavar="torch-X.Y.Z...")
@click.option(
    "--cuda",
    type=click.Choice(get_args(Cuda)),
    default="stub",
    show_default=True,
    help="Use stubs for the CUDA libraries that newer releases link against, or install the real ones (gigabytes).",
)
@root_option
@format_option
@click.pass_context
def build(context: click.Context, releases: tuple[str, ...], cuda: Cuda, root: Path | None, format_: str) -> None:
    """Build environments for releases.

    Environments that already exist are not changed.

    Exit status: 0 every environment is built; 2 invalid usage, such as an unknown release; 3 internal error in
    torch-compat; 4 an environment could not be built.
    """
    calendar = find_policy(root).calendar
    wanted = [_known(calendar.resolve, name) for name in releases]
    environments = Environments()
    rows: list[dict[str, Any]] = []
    statuses: set[int] = set()
    for release in wanted:
        try:
            with _progress(f"torch-{release.version}") as progress:
                built = environments.build(release, cuda=cuda, progress=progress)
        except (ReaderError, UsageError) as error:
            statuses.add(error.exit_status)
            say(f"torch-{release.version}: {error}", err=True)
            rows.append(_row(release, None) | {"error": {"code": error.code, "message": str(error)}})
        else:
            rows.append(_row(release, built) | {"error": None})
    if format_ == "json":
        _print_json({"readers": rows})
    else:
        _print_table(rows)
    context.exit(exit_status(statuses))


@readers.command()
@click.argument("releases", nargs=-1, required=True, metavar="torch-X.Y.Z...")
@root_option
@format_option
@click.pass_context
def remove(context: click.Context, releases: tuple[str, ...], root: Path | None, format_: str) -> None:
    """Remove the environments of the given releases.

    Exit status: 0 the environments are removed, or were not built; 2 invalid usage, such as an unknown release; 3 internal
    error in torch-compat; 4 an environment could not be removed.
    """
    calendar = find_policy(root).calendar
    wanted = [_known(calendar.resolve, name) for name in releases]
    environments = Environments()
    removed: list[dict[str, Any]] = []
    status = 0
    for release in wanted:
        name = f"torch-{release.version}"
        try:
            freed = environments.remove(release.version)
        except EnvironmentUnavailable as error:
            status = error.exit_status
            say(f"{name}: {error}", err=True)
            continue
        removed.append({"name": name, "freed": freed})
        if format_ == "text":
            say(f"{name}: removed, {_gigabytes(freed)} freed" if freed else f"{name}: was not built")
    if format_ == "json":
        _print_json({"removed": removed})
    context.exit(status)


@readers.command()
@root_option
@format_option
@click.pass_context
def available(context: click.Context, root: Path | None, format_: str) -> None:
    """Look for new releases in the package index.

    Queries the index with pip and your pip settings. For each release that is not in the calendar, prints its calendar entry and the
    command that adds it.

    Exit status: 0 the calendar contains every release; 1 a release is missing from the calendar; 2 invalid usage; 3
    internal error in torch-compat; 4 the index could not be queried.
    """
    calendar = find_policy(root).calendar
    results: list[dict[str, Any]] = [
        {
            "name": f"torch-{release.version}",
            "version": release.version,
            "date": date.isoformat() if date else None,
            "pythons": list(release.pythons),
            "entry": entry_text(calendar, release, date),
            "run": [f"torch-compat admit torch-{release.version}"],
        }
        for release, date in new_releases(calendar, dt.datetime.now(dt.UTC).date(), run_command)
    ]
    newest = calendar.newest().version
    if format_ == "json":
        _print_json({"newest": f"torch-{newest}", "missing": results})
    elif not results:
        say(f"the calendar contains every torch release in the package index; the newest is {newest}")
    for row in results if format_ == "text" else ():
        day = f", uploaded on {row['date']}," if row["date"] else ""
        say(f"{row['name']}{day} is in the package index but not in the calendar. To add it, run:\n")
        say("".join(f"    {line}\n" for line in row["run"]))
        say(f"This adds the following entry to policies/torch/releases.toml:\n\n{row['entry']}")
    context.exit(1 if results else 0)


def _known(resolve: Callable[[str], CalendarRelease], name: str) -> CalendarRelease:
    """The release with this name; an unknown name is a usage error."""
    try:
        return resolve(name)
    except UsageError as error:
        raise click.UsageError(str(error)) from error


def _row(release: CalendarRelease, environment: Environment | None) -> dict[str, Any]:
    """One release in the JSON output."""
    python: dict[str, str] | None = None
    unavailable: str | None = None
    try:
        interpreter = fitting(release, find_interpreters())
    except EnvironmentUnavailable as error:
        unavailable = str(error)
    else:
        python = {"version": interpreter.version, "path": str(interpreter.path)}
    return {
        "name": f"torch-{release.version}",
        "version": release.version,
        "date": release.date.isoformat(),
        "python": python,
        "unavailable": unavailable,
        "built": environment is not None,
        "environment": dict(environment.description) if environment else None,
    }


def _print_json(content: dict[str, Any]) -> None:
    say(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2))


def _print_table(rows: list[dict[str, Any]]) -> None:
    table: list[list[str | Text]] = [
        [Text(name, style="bold") for name in ("release", "date", "Python here", "torch", "CUDA", "size", "built", "")]
    ]
    for row in rows:
        built = row["environment"] or {}
        table.append([
            row["name"],
            row["date"],
            row["python"]["version"] if row["python"] else "none",
            built.get("torch", ""),
            built.get("cuda", ""),
            _gigabytes(built["size"]) if built else "",
            built.get("built", "no"),
            Text(row["unavailable"] or "", style="yellow"),
        ])  # fmt: skip
    print_table(stdout(width=200), table, keys=1, left={1, 2, 3, 4, 6, 7})


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Callable[[str], None]]:
    """Report steps on standard error: on one updated line on a terminal, otherwise on separate lines."""
    console = stderr()
    if not console.is_terminal or os.environ.get("CI"):
        yield lambda step: say(f"{name}: {step}", err=True)
        return
    with console.status(Text(name)) as status:
        yield lambda step: status.update(Text(f"{name}: {step}"))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
