"""The options for a date and for a profile of the promises, and the form of a date."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import click

__all__ = ["as_of_option", "day_given", "profile_option"]

Command = Callable[..., Any]


def day_given(_context: click.Context, _parameter: click.Parameter, value: str | None) -> dt.date | None:
    """Parse a date in the form YYYY-MM-DD; a callback of an option."""
    if value is None:
        return None
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise click.BadParameter(f"{value!r} is not a date in the form YYYY-MM-DD, such as 2027-01-31")
    try:
        return dt.date.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a valid date: there is no such day") from None


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
