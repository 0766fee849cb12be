"""Horizons: the point in time whose behavior the reference reader reproduces.

``reference`` is the newest of everything, ``reference@1.5.1`` a release, ``reference@2020-06-24`` a day. A day stands for the highest
version released by then; changes that policies date by day are added at lookup.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from torch_compat.errors import UsageError
from torch_compat.releases.calendar import Calendar, Listed
from torch_compat.releases.data import entries, packaged
from torch_compat.releases.release import Release, stated
from torch_compat.runtime.registry import NEWEST

__all__ = ["Horizon", "horizon", "known_horizon"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Horizon:
    """A point in time.

    Attributes:
        name: the name as given, such as ``reference@1.5.1``.
        release: the release; :data:`NEWEST` if there is no bound.
        day: the day in ISO format, if a day was given.
    """

    __slots__ = ("day", "name", "release")

    def __init__(self, name: str, release: Release, day: str | None = None) -> None:
        self.name = name
        self.release = release
        self.day = day

    def reads(self, kind: str, version: int | str) -> bool:
        """Whether this version of a format was supported then; the newest horizon reads everything that any release reads."""
        first = _read_from().get((kind, version))
        if first is None:
            return False
        if self.release == NEWEST:
            return True
        lowest, day = first
        if self.day is not None and day is not None:
            return day <= self.day
        return lowest <= self.release

    def __repr__(self) -> str:
        return f"Horizon({self.name!r})"


@lru_cache(maxsize=1)
def _read_from() -> dict[tuple[str, int | str], tuple[Release, str | None]]:
    results: dict[tuple[str, int | str], tuple[Release, str | None]] = {}
    for entry in entries(packaged("policies", "torch"), ("formats",))["format"]:
        first = entry.get("read_from")
        if first and "release" in first:
            results[entry["kind"], entry["version"]] = Release(first["release"]), str(first["day"]) if "day" in first else None
    return results


@lru_cache(maxsize=1)
def _calendar() -> Calendar[Listed]:
    return Calendar(Listed.every(entries(packaged("policies", "torch"), ("releases",))["release"]))


@lru_cache(maxsize=64)
def horizon(name: str = "reference") -> Horizon:
    """The horizon with a name; ``1.5.1`` and ``torch-1.5.1`` are accepted as well.

    Raises:
        UsageError: the name is not a horizon.
    """
    asked = name.removeprefix("reference").removeprefix("@").removeprefix("torch-")
    if not asked:
        return Horizon("reference", NEWEST)
    if _DAY.fullmatch(asked):
        try:
            day = dt.date.fromisoformat(asked)
        except ValueError:
            raise UsageError(f"{asked!r} is not a valid date") from None
        return Horizon(f"reference@{asked}", Release(_calendar().newest(day).version), asked)
    result = stated(asked)
    if result is None:
        raise UsageError(f"expected a release (1.5.1) or a date (2020-06-24), found {asked!r}")
    return Horizon(f"reference@{asked}", result)


def known_horizon(name: str) -> Horizon:
    """The horizon that a person names: its release is in the calendar, or is a development version.

    :func:`horizon` also takes versions that the packaged calendar does not list, such as those of another tree.

    Raises:
        UsageError: the name is not a horizon, or there is no such release; the error names the nearest ones.
    """
    result = horizon(name)
    if result.day is not None or result.release == NEWEST or result.release.prerelease:
        return result
    return horizon(f"reference@{_calendar().resolve(result.name.removeprefix('reference@')).version}")
