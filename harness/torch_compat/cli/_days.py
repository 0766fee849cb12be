"""The options for a date and for a profile of the promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["as_of_option", "profile_option"]

Command = Callable[..., Any]


def as_of_option(command: Command) -> Command:
    """Add ``--as-of`` to a command."""
    return click.option(
        "--as-of",
        metavar="DATE|RELEASE",
        help="Judge as of this date, or the date of this release. Default: the date of the newest recorded observation or release.",
    )(command)


def profile_option(command: Command) -> Command:
    """Add ``--profile`` to a command."""
    return click.option(
        "--profile",
        metavar="NAME",
        help="Use another interpretation of the promises, from policies/torch/promises.toml. Default: the promises as PyTorch states them.",
    )(command)
