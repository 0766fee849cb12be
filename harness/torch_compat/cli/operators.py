"""``torch-compat operators``: operators of releases and readers, and their changes between releases."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._days import day_given
from torch_compat.cli._format import announce, format_option, print_json, say, say_wrapped, write_output
from torch_compat.cli._help import WithCommands
from torch_compat.cli._paths import NamedPath
from torch_compat.cli._together import refuse_ignored
from torch_compat.errors import UsageError
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch_compat.releases.release import Release

__all__ = ["operators"]


@click.group(cls=WithCommands, invoke_without_command=True)
@click.option("--reference", is_flag=True, help="List the operators of the reference reader.")
@format_option
@click.pass_context
def operators(context: click.Context, *, reference: bool, format_: str) -> int | None:
    """Show operator schemas and their changes between releases, and check whether a change breaks old programs.

    --reference lists the operators of the reference reader. For each operator, the list shows the types of the first argument
    that have an implementation of their own, and the releases in which each implementation changed.

    Exit status: 0 success; 2 invalid usage; 3 internal error in torch-compat.
    """
    if context.invoked_subcommand is not None:
        if reference:
            raise UsageError("--reference cannot be combined with a command", hint="use only one of them")
        return None
    if not reference:
        raise UsageError(
            "no command was given",
            hint="use diff, history, check or dump, or --reference to list the operators of the reference reader",
        )
    from torch_compat.runtime.registry import known  # noqa: PLC0415 - imports every family of operators

    rows = [_row(name, kinds) for name, kinds in known().items()]
    if format_ == "json":
        print_json({"operators": rows})
        return 0
    for row in rows:
        say_wrapped(f"{row['operator']}: " + "; ".join(_text(overload) for overload in row["overloads"]))
    say(count_of(len(rows), "operator"))
    return 0


@operators.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--breaks", is_flag=True, help="Only changes that break backward or forward compatibility, or whose compatibility is unknown."
)
@format_option
def diff(old: str, new: str, *, breaks: bool, format_: str) -> int:
    """Show operator changes from OLD to NEW and their compatibility.

    OLD and NEW are releases.

    Exit status: 0 success, whatever changed; 2 invalid usage, such as a release whose operators are not recorded; 3
    internal error in torch-compat.
    """
    from torch_compat.cli._operators import change_lines, change_row  # noqa: PLC0415 - imported on use
    from torch_compat.operators.changes import changes  # noqa: PLC0415
    from torch_compat.operators.history import History  # noqa: PLC0415
    from torch_compat.operators.recorded_history import release_of  # noqa: PLC0415

    history = History.load()
    first, last = release_of(history, old), release_of(history, new)
    result = changes(history, first, last)
    shown = [item for item in result if not breaks or item.kind == "unknown" or not _works(item)]
    incomplete = [(release, why) for release in (first, last) if (why := history.why_incomplete(release))]
    if format_ == "json":
        rows = [{"release": release, "why": why} for release, why in incomplete]
        print_json({"old": first, "new": last, "incomplete": rows, "changes": [change_row(item) for item in shown]})
        return 0
    for change in shown:
        say_wrapped("\n".join(change_lines(change)))
    counts = [f"{sum(item.kind == kind for item in result)} {kind}" for kind in ("added", "changed", "removed", "unknown")]
    broken = sum(not _works(item) for item in result if item.kind != "unknown")
    say_wrapped(f"torch {first} to {last}: {', '.join(counts)}; {broken} not compatible (backward or forward)")
    for release, why in incomplete:
        say_wrapped(f"the operator records for {release} are incomplete: {why}")
    return 0


def _works(change: Any) -> bool:
    return all(verdict is None or verdict.compatible for verdict in (change.backward, change.forward))


@operators.command("history")
@click.argument("operator")
@click.option("--reference", is_flag=True, help="Also show each implementation in the reference reader.")
@format_option
def history_(operator: str, *, reference: bool, format_: str) -> int:
    """Show every schema of OPERATOR, and the releases that have it.

    Also shows its upgraders, semantic changes, kernels and tags. Without an overload name, all overloads are shown.

    Exit status: 0 success; 2 invalid usage, such as an operator that no release has; 3 internal error in torch-compat.
    """
    from torch_compat.cli._operators import history_lines  # noqa: PLC0415 - imported on use
    from torch_compat.operators.recorded_history import history_of  # noqa: PLC0415

    document = history_of(operator)
    if reference:
        from torch_compat.runtime.registry import implementations  # noqa: PLC0415 - imports every family of operators

        document["reference"] = implementations(operator.partition(".")[0])
    if format_ == "json":
        print_json(document)
    else:
        say_wrapped("\n".join(history_lines(document)))
    return 0


@operators.command()
@click.option("--old", required=True, help="Recorded release, or file with one schema per line.")
@click.option("--new", required=True, help="Recorded release or file that replaces OLD.")
@click.option("--forward", is_flag=True, help="Also check that programs saved with NEW work with OLD.")
@click.option(
    "--upgrader",
    "upgraders",
    multiple=True,
    metavar="SCHEMA",
    help="Old schema that has an upgrader in NEW. Can be repeated.",
)
@click.option(
    "--as-of",
    callback=day_given,
    metavar="DATE",
    help="Date as of which expired waivers are ignored. Default: today.",
)
@click.option("--no-waivers", is_flag=True, help="Ignore waivers and show every break.")
@click.option(
    "--root",
    type=NamedPath(),
    help="Directory whose policies/ contains the waivers. Default: the nearest such directory, searching upwards from the current directory.",
)
@format_option
def check(
    old: str,
    new: str,
    *,
    forward: bool,
    upgraders: tuple[str, ...],
    as_of: dt.date | None,
    no_waivers: bool,
    root: Path | None,
    format_: str,
) -> int:
    """Check whether programs saved with OLD operators work with NEW.

    OLD and NEW are recorded releases, or files written by 'operators dump' or by PyTorch's dump_all_function_schemas.py, so that a
    nightly build can be checked. A file lists only the operators that `import torch` registers. Operators that
    another import registers are skipped if the file contains no operator from that import. Breaks that are listed in policies/torch/operator_waivers are waived.

    Exit status: 0 no break without a waiver or an upgrader; 1 an operator is broken, or a waiver is wrong; 2 invalid usage,
    or an invalid input file; 3 internal error in torch-compat; 4 the records of a release are incomplete, or a file cannot
    be read in full.
    """
    from torch_compat.judging.operator_check import check_operators, read_set  # noqa: PLC0415 - imported on use
    from torch_compat.report.operator_check import check_document, check_lines  # noqa: PLC0415

    if no_waivers:
        refuse_ignored("--no-waivers", "ignores the waivers and their dates", {"--as-of": as_of})
    waivers: tuple[Any, ...] = ()
    became: Mapping[tuple[str, str], str] = {}
    if not no_waivers:
        from torch_compat.workspace import find_policy  # noqa: PLC0415 - pydantic

        policy = find_policy(root)
        waivers, became = policy.operator_waivers, policy.became
    today = as_of or dt.datetime.now(dt.UTC).date()
    checked = check_operators(
        read_set(old), read_set(new), forward=forward, upgraders=upgraders, waivers=waivers, became=became, as_of=today
    )
    if format_ == "json":
        print_json(check_document(checked))
    else:
        say_wrapped("\n".join(check_lines(checked)))
    return checked.exit_status


@operators.command()
@click.argument("build", metavar="RELEASE|python:PATH|wheel:FILE|nightly:DATE")
@click.option("--output", type=NamedPath(), metavar="FILE", help="Write to this file. Default: standard output.")
def dump(build: str, output: Path | None) -> int:
    """Print the schemas of a build, one per line, for 'operators check'.

    RELEASE must have an environment on this machine (torch-compat readers build); python:PATH is a Python executable with torch installed.
    The output is the same as that of PyTorch's test/forward_backward_compatibility/dump_all_function_schemas.py after `import torch` and no other import.

    Exit status: 0 success; 2 invalid usage, or the build cannot be used; 3 internal error in torch-compat; 4 the release is
    not available on this machine.
    """
    from torch_compat.readers.builds import python_of  # noqa: PLC0415 - imported on use
    from torch_compat.readers.environments import Environments  # noqa: PLC0415
    from torch_compat.readers.isolation import warn_unless_isolated  # noqa: PLC0415
    from torch_compat.replay.dump import dump_operators  # noqa: PLC0415

    kind, colon, path = build.partition(":")
    if not colon and "/" in build:
        raise UsageError(f"{build!r} is not a build", hint="use a release such as 2.13.0, or python:PATH")
    if kind == "python":
        environment = python_of(Path(path))
    elif colon:
        from torch_compat.readers.build_release import build_of  # noqa: PLC0415 - pydantic
        from torch_compat.workspace import find_policy  # noqa: PLC0415

        environment = build_of(build, find_policy(None), announce).environment
    else:
        version = build.removeprefix("torch-")
        environment = Environments().need(version, otherwise="or use python:PATH, a Python that has torch")
        warn_unless_isolated(announce)
    text = dump_operators(environment)
    if output is None:
        say(text, nl=False)
        return 0
    write_output(output, text)
    say(f"{output}: {count_of(len(text.splitlines()), 'schema')}")
    return 0


def _row(name: str, kinds: dict[str, tuple[Release, ...]]) -> dict[str, Any]:
    overloads = [{"first_argument": kind, "since": [str(release) for release in releases]} for kind, releases in kinds.items()]
    return {"operator": name, "overloads": overloads}


def _text(overload: dict[str, Any]) -> str:
    return f"{overload['first_argument']} since {', '.join(overload['since'])}"
