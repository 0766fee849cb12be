"""How every command takes its format, prints JSON and ends. Imports nothing that is slow."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

__all__ = ["exit_status", "format_option", "print_json"]

Command = Callable[..., Any]
SEVEREST_FIRST = (3, 2, 1, 4, 0)


def format_option(command: Command) -> Command:
    """Adds ``--format text|json``."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="What to print on standard output.",
    )(command)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps({"schema_version": 1, **document}, indent=2, sort_keys=True) + "\n")


def exit_status(statuses: Iterable[int]) -> int:
    """The one that counts where several apply: 3, 2, 1, 4, 0."""
    found = set(statuses)
    return next((status for status in SEVEREST_FIRST if status in found), 0)
