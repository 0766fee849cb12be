"""What the reference reader pretends to be: the newest of everything, a release, or a day.

``reference``, ``reference@1.5.1``, ``reference@2020-06-24``. A day is the newest release that was out by then, in the order of
versions; what policies date by day beyond that is added where it is looked up.
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

__all__ = ["Horizon", "horizon"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Horizon:
    """What was known then.

    Attributes:
        name: as it was asked for, ``reference@1.5.1``.
        release: :data:`NEWEST` where there is no bound.
        day: ISO, where a day was asked for.
    """

    __slots__ = ("day", "name", "release")

    def __init__(self, name: str, release: Release, day: str | None = None) -> None:
        self.name = name
        self.release = release
        self.day = day

    def reads(self, kind: str, version: int | str) -> bool:
        """Whether a format of this kind and version was read then; the newest reads what any release reads."""
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
    found: dict[tuple[str, int | str], tuple[Release, str | None]] = {}
    for entry in entries(packaged("policies", "torch"), ("formats",))["format"]:
        first = entry.get("read_from")
        if first and "release" in first:
            found[entry["kind"], entry["version"]] = Release(first["release"]), str(first["day"]) if "day" in first else None
    return found


@lru_cache(maxsize=1)
def _calendar() -> Calendar[Listed]:
    return Calendar(Listed.every(entries(packaged("policies", "torch"), ("releases",))["release"]))


@lru_cache(maxsize=64)
def horizon(name: str = "reference") -> Horizon:
    """The horizon of a name; ``1.5.1`` or ``torch-1.5.1`` alone will do.

    Raises:
        UsageError: it is none.
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
    found = stated(asked)
    if found is None:
        raise UsageError(f"expected a release (1.5.1) or a date (2020-06-24), found {asked!r}")
    return Horizon(f"reference@{asked}", found)
