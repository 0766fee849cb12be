"""The option for the root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["root_option"]

Command = Callable[..., Any]


def root_option(command: Command) -> Command:
    """Add ``--root`` to a command."""
    return click.option(
        "--root",
        type=click.Path(path_type=Path),
        help="Directory with policies/torch/, fixtures/ and reports/. Default: the nearest such directory, searching upwards from the current directory.",
    )(command)
