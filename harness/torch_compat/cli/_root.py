"""The option for the root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from torch_compat.cli._paths import NamedPath

__all__ = ["root_option"]

Command = Callable[..., Any]


def root_option(command: Command) -> Command:
    """Add ``--root`` to a command."""
    return click.option(
        "--root",
        type=NamedPath(),
        help="Directory with policies/torch/, fixtures/ and reports/. Default: the nearest such directory, searching upwards from the current directory.",
    )(command)
