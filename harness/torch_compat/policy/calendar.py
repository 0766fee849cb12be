"""The release calendar: which torch releases there are, in which order, and how many days apart."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from torch_compat.policy.model import Release

__all__ = ["Calendar"]

_LINE = re.compile(r"\d+\.\d+")


class Calendar:
    """The releases that a policy knows, in the order of their versions (1.9.0 before 1.10.0).

    ``calendar["1.2.0"]`` looks up an exact version, ``"1.2.0" in calendar`` asks for one, iterating gives the releases.
    Every method that is given a version takes an exact one; :meth:`resolve` turns what a person or a reader calls a
    release into a release.

    Raises:
        UsageError: from every method that is given a version which the calendar does not hold; names the nearest ones.
    """

    def __init__(self, releases: Iterable[Release]) -> None:
        self._by_version = {release.version: release for release in sorted(releases, key=lambda release: release.parsed)}

    def __getitem__(self, version: str) -> Release:
        try:
            return self._by_version[version]
        except KeyError:
            raise self._unknown(version) from None

    def __contains__(self, version: object) -> bool:
        return version in self._by_version

    def __iter__(self) -> Iterator[Release]:
        return iter(self._by_version.values())

    def __len__(self) -> int:
        return len(self._by_version)

    def __repr__(self) -> str:
        return f"Calendar({', '.join(self._by_version)})"

    def resolve(self, name: str) -> Release:
        """The release that a name means: ``torch-1.2.0``, ``1.2.0``, ``1.2.0+cpu``, or ``1.2`` for the newest patch of 1.2."""
        version, _, _local = name.removeprefix("torch-").partition("+")
        if version in self._by_version:
            return self._by_version[version]
        patches = [release for release in self if release.line == version]
        if _LINE.fullmatch(version) and patches:
            return patches[-1]
        raise self._unknown(name, nearest_to=version)

    def is_newer(self, one: str, other: str) -> bool:
        """Whether ``one`` is a later version than ``other``; days play no part (1.10.2 is not newer than 1.11.0)."""
        return self[one].parsed > self[other].parsed

    def days_between(self, older: str, newer: str) -> int:
        """Days from the upload of ``older`` to that of ``newer``; negative when ``newer`` was uploaded first."""
        return (self[newer].date - self[older].date).days

    def newest(self, on_or_before: dt.date | None = None) -> Release:
        """The highest version uploaded by that day, the highest of all without one.

        Raises:
            UsageError: no release is that old.
        """
        known = [release for release in self if on_or_before is None or release.date <= on_or_before]
        if known:
            return known[-1]
        first = min(self, key=lambda release: release.date, default=None)
        hint = f"the first release of the calendar is {first.version} of {first.date}" if first else "the calendar is empty"
        raise UsageError(f"no torch release had been uploaded by {on_or_before}", hint=hint)

    def _unknown(self, name: str, *, nearest_to: str | None = None) -> UsageError:
        nearest = get_close_matches(nearest_to or name, self._by_version, n=3, cutoff=0.5)
        hint = f"nearest: {', '.join(nearest)}" if nearest else f"the calendar holds {len(self)} releases"
        return UsageError(f"the release calendar knows no torch release {name!r}", hint=hint, code="unknown-release")
