"""The release calendar: the torch releases, their order, and the days between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from torch_compat.errors import UsageError
from torch_compat.releases.known import Known
from torch_compat.releases.release import Release
from torch_compat.words import count_of, did_you_mean

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Calendar", "Dated", "Listed"]


class Dated(Protocol):
    """The properties of a release that a calendar needs."""

    @property
    def version(self) -> str:
        """The full version."""

    @property
    def date(self) -> dt.date:
        """The day of its first upload."""


class Listed(NamedTuple):
    """A release as listed in the calendar file, with the keys that affect loading archives. The policy has all keys.

    Attributes:
        version: the full version.
        date: the day of its first upload.
        pythons: the CPython versions that have a wheel.
    """

    version: str
    date: dt.date
    pythons: tuple[str, ...]

    @classmethod
    def every(cls, tables: Iterable[Mapping[str, Any]]) -> Iterator[Listed]:
        """Return the releases of ``[[release]]`` tables, without the planned ones."""
        return (cls.read(table) for table in tables if "source" not in table)

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Listed:
        """Create the release from a ``[[release]]`` table."""
        return cls(table["version"], table["date"], tuple(table.get("pythons", ())))


_Dated = TypeVar("_Dated", bound=Dated)


class Calendar(Generic[_Dated]):
    """The known releases, sorted by version (1.9.0 before 1.10.0).

    ``calendar["1.2.0"]`` looks up an exact version, ``"1.2.0" in calendar`` tests for one, and iteration yields the releases. Methods that
    take a version require an exact one; :meth:`resolve` converts a name used by people or readers into a release.

    Attributes:
        known: the versions, for converting sets of them.

    Raises:
        UsageError: raised by every method that takes a version if the calendar does not contain it; names the nearest ones.
    """

    def __init__(self, releases: Iterable[_Dated]) -> None:
        ordered = sorted(releases, key=lambda release: Release(release.version))
        self._by_version = {release.version: release for release in ordered}
        self.known = Known(self._by_version)

    def __getitem__(self, version: str) -> _Dated:
        try:
            return self._by_version[version]
        except KeyError:
            raise self._unknown(version) from None

    def __contains__(self, version: object) -> bool:
        return version in self._by_version

    def __iter__(self) -> Iterator[_Dated]:
        return iter(self._by_version.values())

    def __len__(self) -> int:
        return len(self._by_version)

    def __repr__(self) -> str:
        return f"Calendar({', '.join(self._by_version)})"

    def resolve(self, name: str) -> _Dated:
        """Return the release with a name such as ``torch-1.2.0``, ``1.2.0``, ``1.2.0+cpu``, or ``1.2`` for the newest patch of 1.2."""
        result = self.known.find(name)
        if result is None:
            raise self._unknown(name)
        return self._by_version[result]

    def is_newer(self, text: str, other: str) -> bool:
        """Whether ``text`` is a later version than ``other``, regardless of dates (1.10.2 is not newer than 1.11.0)."""
        return Release(self[text].version) > Release(self[other].version)

    def days_between(self, older: str, newer: str) -> int:
        """Return the days from the upload of ``older`` to that of ``newer``; negative if ``newer`` was uploaded first."""
        return (self[newer].date - self[older].date).days

    def newest(self, on_or_before: dt.date | None = None) -> _Dated:
        """Return the highest version uploaded by a day, or the highest of all if no day is given.

        Raises:
            UsageError: no release is that old.
        """
        known = [release for release in self if on_or_before is None or release.date <= on_or_before]
        if known:
            return known[-1]
        first = min(self, key=lambda release: release.date, default=None)
        hint = f"the first release in the calendar is {first.version} ({first.date})" if first else "the calendar is empty"
        raise UsageError(f"no torch release was uploaded on or before {on_or_before}", hint=hint)

    def nearest(self, release: Release) -> _Dated:
        """Return the release nearest to one that need not be in the calendar: see :meth:`Known.nearest`.

        Raises:
            UsageError: the calendar is empty.
        """
        if not self._by_version:
            raise self._unknown(str(release))
        return self._by_version[self.known.releases[self.known.nearest(release)]]

    def _unknown(self, name: str) -> UsageError:
        hint = did_you_mean(self.known.near(name)) or f"the calendar has {count_of(len(self), 'release')}"
        return UsageError(f"the release calendar has no torch release {name!r}", hint=hint, code="unknown-release")
