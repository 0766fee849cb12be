"""A tree of policies, fixtures and observations: its paths, and the date and profile that a command uses."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.places import inside
from torch_compat.releases.data import packaged
from torch_compat.words import suggest
from torch_compat.writes import holding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.corpus.recorded import Recorded
    from torch_compat.policy import Policy

__all__ = [
    "PACKAGED",
    "Root",
    "day_of",
    "find_policy",
    "find_root",
    "newest_known",
    "profile_note",
    "span_of",
    "under_profile",
]

PACKAGED = packaged("policies")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LAST_DAY = dt.date(2999, 12, 31)  # leaves room to add the days of a timeline or of --next


@dataclass(frozen=True)
class Root:
    """A tree that contains ``policies/torch/``, or that ``--root`` names."""

    path: Path

    def inside(self, name: str) -> Path:
        """The path of a name in the tree, its parts joined by ``/``.

        Raises:
            CorpusError: the name, or a link in the tree, leads out of the tree.
        """
        return inside(self.path, name)

    @property
    def fixtures(self) -> Path:
        """The corpus."""
        return self.inside("fixtures")

    @property
    def recorded(self) -> Path:
        """The kept observations."""
        return self.inside("reports/observations")

    @property
    def latest(self) -> Path:
        """The output of the last run: generated, not kept."""
        return self.inside("reports/latest")

    def complete(self) -> None:
        """Complete or undo what a killed run left. A command that writes calls this before reading.

        Raises:
            WriteError: another run holds the lock, or the tree cannot be written.
        """
        with holding(self.path):
            pass

    def policy(self, *, counted: bool = True, drafts: bool = False) -> Policy:
        """Load the tree's own policy. Packaged policies never stand in for missing ones here.

        Parameters:
            counted: whether to read its lock of counts. Commands that recount pass False.
            drafts: whether placeholders of ``torch-compat new`` are allowed. Tables with a placeholder are then missing.

        Raises:
            NothingSelected: the tree has no policies.
            PolicyError: the policies are invalid.
        """
        from torch_compat.policy import load_policy

        folder = self.inside("policies/torch")
        if not folder.is_dir():
            raise NothingSelected(
                "has no policies/torch, so there are no promises to check", where=str(self.path), code="no-policy"
            )
        return load_policy(folder, counted=counted, drafts=drafts)

    def observations(self) -> Recorded:
        """The recorded observations of readers; unreadable files are named by their path in the tree."""
        from torch_compat.corpus.recorded import read_recorded

        result = read_recorded(self.recorded)
        folder = self.recorded.relative_to(self.path).as_posix()
        unreadable = {f"{folder}/{name}": why.replace(f"{self.path}/", "") for name, why in result.unreadable.items()}
        return replace(result, unreadable=unreadable)


def find_root(given: Path | None) -> Root:
    """The folder of ``--root``, or the nearest folder, from the current one upwards, that contains ``policies/torch/``.

    Folders named just ``fixtures`` or ``policies`` are common, and do not count.

    Raises:
        UsageError: ``--root`` is not a folder.
        NothingSelected: there is no such folder.
    """
    if given is not None:
        if not given.is_dir():
            fault = "is not a directory" if given.exists() else "directory not found"
            raise UsageError(
                f"{fault}, expected a directory with policies/torch",
                where=str(given),
                hint="pass a checkout of torch-compat as --root, or omit --root in a checkout",
            )
        return Root(given.resolve())
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "policies/torch").is_dir():
            return Root(folder)
    raise NothingSelected(
        "neither this directory nor a parent contains policies/torch/",
        where=str(here),
        hint="run the command in a checkout of torch-compat, or use --root",
        code="no-root",
    )


def find_policy(given: Path | None) -> Policy:
    """The policy of the root; outside any tree, the one packaged with the harness.

    Raises:
        NothingSelected: the tree has no policies, or none was packaged.
        PolicyError: the policy is invalid.
    """
    from torch_compat.policy import load_policy

    try:
        root = find_root(given)
    except NothingSelected:
        if not PACKAGED.is_dir():
            raise
        return load_policy(PACKAGED / "torch")
    return root.policy()


def day_of(text: str, policy: Policy) -> dt.date:
    """The date that a text names: a date itself, or the date of a release, including planned releases.

    Raises:
        UsageError: the text is neither a date nor a release known to the policy, or the date is before the first release.
    """
    if _DAY.fullmatch(text):
        return _day_in_range(text, policy)
    planned = {item.version: item.date for item in policy.planned}
    version = text.removeprefix("torch-")
    if version in planned:
        return planned[version]
    try:
        return policy.calendar.resolve(text).date
    except UsageError as error:
        hint = (
            f"write dates in the form YYYY-MM-DD, such as 2027-01-31; {error.hint}"
            if error.hint
            else "write dates in the form YYYY-MM-DD, such as 2027-01-31"
        )
        raise UsageError(f"{text!r} is neither a date nor a release in the policy", hint=hint, code="bad-day") from error


def _day_in_range(text: str, policy: Policy) -> dt.date:
    """A date on which there was something to judge.

    Raises:
        UsageError: the calendar has no such date, or there was no release yet.
    """
    first = min(policy.calendar, key=lambda release: release.date, default=None)
    begin = first.date if first is not None else dt.date.min
    hint = f"use a date from {begin} to {_LAST_DAY}, or a release, such as {policy.calendar.newest().version}" if first else None
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a valid date: there is no such day", hint=hint, code="bad-day") from None
    if first is not None and day < begin:
        raise UsageError(f"{text} is before {begin}, the date of the first release, {first.version}", hint=hint, code="bad-day")
    if day > _LAST_DAY:
        raise UsageError(f"{text} is after {_LAST_DAY}, the last date that is accepted", hint=hint, code="bad-day")
    return day


def newest_known(policy: Policy, recorded: Iterable[ObservedReader]) -> dt.date:
    """The default date to judge as of: that of the newest recorded observation, or of the newest release if that is later.

    Never the clock's date. A release in the calendar is known to exist, so it is expected to be tested at once.
    """
    observed = (dt.date.fromisoformat(reader.observed) for reader in recorded)
    return max(*(release.date for release in policy.calendar), *observed, dt.date.min)


def span_of(text: str, policy: Policy) -> tuple[dt.date, dt.date]:
    """The first and the last day of ``FROM..TO``.

    Raises:
        UsageError: it is not a span, or ends before it begins.
    """
    start, dots, end = text.partition("..")
    if not dots or not start or not end:
        raise UsageError(
            f"{text!r} is not a range of dates", hint="use FROM..TO, such as 2019-01-01..2026-12-31 or 1.12.0..2.6.0"
        )
    first, last = day_of(start, policy), day_of(end, policy)
    if last < first:
        raise UsageError(f"the range {text!r} ends on {last}, before it starts on {first}", code="bad-day")
    return first, last


def under_profile(policy: Policy, name: str | None) -> Policy:
    """The policy under a profile; the policy unchanged if no name is given, or if it is the name of the policy itself.

    Raises:
        UsageError: there is no such profile.
    """
    if name is None or name == policy.name:
        return policy
    for profile in policy.profiles:
        if profile.id == name:
            return policy.under(profile)
    known = [policy.name, *(profile.id for profile in policy.profiles)]
    raise UsageError(f"the policy has no profile {name!r}", hint=suggest(name, known), code="unknown-profile")


def profile_note(policy: Policy, name: str | None) -> tuple[str, ...]:
    """The lines of a report about the profile used for judging."""
    return tuple(f"judged under the profile {profile.id}: {profile.asks}" for profile in policy.profiles if profile.id == name)
