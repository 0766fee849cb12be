"""How commands are told a day, and which reading of the promises is meant."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.policy import Policy

__all__ = ["as_of_option", "day_of", "newest_known", "profile_note", "profile_option", "span_of", "under_profile"]

Command = Callable[..., Any]
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def as_of_option(command: Command) -> Command:
    """Adds ``--as-of``."""
    return click.option(
        "--as-of",
        metavar="DATE|RELEASE",
        help="Judge as of this date, or the date of this release. Default: the date of the newest recorded observation or release.",
    )(command)


def profile_option(command: Command) -> Command:
    """Adds ``--profile``."""
    return click.option(
        "--profile",
        metavar="NAME",
        help="Use another reading of the promises, from policies/torch/profiles.toml. Default: what PyTorch promises.",
    )(command)


def day_of(text: str, policy: Policy) -> dt.date:
    """The day that a text names: itself, or the day of a release, of one that is planned, too.

    Raises:
        UsageError: it is no day, and no release that the policy knows.
    """
    if _DAY.fullmatch(text):
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            raise UsageError(f"{text!r} is not a valid date", code="bad-day") from None
    planned = {one.version: one.date for one in policy.planned}
    version = text.removeprefix("torch-")
    if version in planned:
        return planned[version]
    try:
        return policy.calendar.resolve(text).date
    except UsageError as error:
        hint = f"write a date as 2027-01-31; {error.hint}" if error.hint else "write a date as 2027-01-31"
        raise UsageError(f"{text!r} is neither a date nor a release in the policy", hint=hint, code="bad-day") from error


def newest_known(policy: Policy, recorded: Iterable[ObservedReader]) -> dt.date:
    """The day to judge as of where none is given: that of the newest recorded observation, or of the newest release if that is later.

    Never the clock's. A release that enters the calendar is known to be there, so it is asked for at once.
    """
    observed = (dt.date.fromisoformat(reader.observed) for reader in recorded)
    return max(*(release.date for release in policy.calendar), *observed, dt.date.min)


def span_of(text: str, policy: Policy) -> tuple[dt.date, dt.date]:
    """The first and the last day of ``FROM..TO``.

    Raises:
        UsageError: it is no span, or ends before it begins.
    """
    start, dots, end = text.partition("..")
    if not dots or not start or not end:
        raise UsageError(
            f"{text!r} is not a range of dates", hint="write FROM..TO, such as 2017-01-01..2026-12-31 or 1.12.0..2.6.0"
        )
    first, last = day_of(start, policy), day_of(end, policy)
    if last < first:
        raise UsageError(f"{text!r} ends on {last}, before its start on {first}", code="bad-day")
    return first, last


def under_profile(policy: Policy, name: str | None) -> Policy:
    """The policy as a profile reads it; the policy itself without a name, or under its own.

    Raises:
        UsageError: there is no such profile.
    """
    if name is None or name == policy.name:
        return policy
    for profile in policy.profiles:
        if profile.id == name:
            return policy.under(profile)
    known = [policy.name, *(profile.id for profile in policy.profiles)]
    nearest = get_close_matches(name, known, n=1)
    hint = f"nearest: {nearest[0]}" if nearest else f"known: {', '.join(known)}"
    raise UsageError(f"the policy has no profile {name!r}", hint=hint, code="unknown-profile")


def profile_note(policy: Policy, name: str | None) -> tuple[str, ...]:
    """What a report says of the profile that it was judged under."""
    return tuple(f"judged under the profile {one.id}: {one.asks}" for one in policy.profiles if one.id == name)
