"""Shared by all commands: the format option, JSON output and the exit status. Imports no slow modules."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from torch_compat.cli._status import exit_status
from torch_compat.cli._terminal import terminal_width

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["announce", "exit_status", "format_option", "print_json", "say", "say_wrapped", "trust_option", "write_output"]

Command = Callable[..., Any]


def format_option(command: Command) -> Command:
    """Add ``--format text|json`` to a command."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(command)


def trust_option(command: Command) -> Command:
    """Add ``--trust`` to a command."""
    return click.option(
        "--trust",
        is_flag=True,
        help=(
            "Load archives from outside the frozen corpus even if this machine cannot isolate a release from the network and your "
            "home directory. A release can execute code from an archive."
        ),
    )(command)


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text and a line break: data on standard output, or messages on standard error.

    Unlike ``click.echo``, it does not remove escape sequences: they are printed as visible escapes.
    """
    (sys.stderr if err else sys.stdout).write(text + "\n" * nl)


def announce(line: str) -> None:
    """Print a message on standard error."""
    say(line, err=True)


def say_wrapped(text: str) -> None:
    """Print paragraphs, one per line, on standard output. On a terminal they are wrapped between words, and never truncated."""
    from torch_compat.report.paragraphs import wrapped  # noqa: PLC0415 - imported on use

    width = terminal_width()
    for line in text.split("\n"):
        say("\n".join(wrapped(line, width)) if width else line)


def write_output(path: Path, text: str) -> None:
    """Write a file named by a command-line option.

    Raises:
        UsageError: its directory does not exist. A mistyped path does not create one.
        WriteError: the file cannot be written.
    """
    from torch_compat.errors import UsageError  # noqa: PLC0415 - imported on use
    from torch_compat.writes import put  # noqa: PLC0415

    if not path.parent.is_dir():
        raise UsageError(
            f"cannot be written: there is no directory {path.parent}", where=str(path), hint="create it first", code="output"
        )
    put(path, text, encoding="utf-8")


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps({"schema_version": 1, **document}, indent=2, sort_keys=True) + "\n")
