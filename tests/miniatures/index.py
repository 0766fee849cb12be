"""A package index as shown by pip: replaces the commands that query it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.version import Version

from torch_compat.readers.commands import Failed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch_compat.policy import CalendarRelease
    from torch_compat.readers.commands import Command
    from torch_compat.releases.calendar import Calendar

__all__ = ["FakeIndex"]


@dataclass
class FakeIndex:
    """Offers releases: version, day of upload, Pythons.

    Attributes:
        unreached: what pip's log says about a source that could not be reached; pip goes on with the others.
        tells_dates: whether pip can be told to disregard what is younger than a day.
        has_pip: whether this Python has pip.
        broken: what pip says instead of an answer.
    """

    releases: dict[str, tuple[dt.date, tuple[str, ...]]]
    unreached: str = ""
    tells_dates: bool = True
    has_pip: bool = True
    broken: str = ""
    asked: list[list[str]] = field(default_factory=list)

    @classmethod
    def of(cls, calendar: Calendar[CalendarRelease]) -> FakeIndex:
        """Offers exactly what a calendar knows."""
        return cls({release.version: (release.date, release.pythons) for release in calendar})

    def __call__(self, command: Command, *, environ: Mapping[str, str], cwd: Path | None, log: Path, quiet: bool) -> str:
        words = [str(word) for word in command]
        self.asked.append(words)
        if words[-2:-1] == ["venv"]:
            self.has_pip = True
            return ""
        if not self.has_pip:
            raise Failed(command, "No module named pip")
        if words[-1] == "--version":
            return "pip 26.0"
        return self.answer(command, words)

    def answer(self, command: Command, words: list[str]) -> str:
        before = dt.date.max
        if "--uploaded-prior-to" in words:
            if not self.tells_dates:
                raise Failed(command, "no such option: --uploaded-prior-to")
            before = dt.datetime.fromisoformat(words[words.index("--uploaded-prior-to") + 1]).date()
        python = words[words.index("--python-version") + 1]
        results = [version for version, (day, pythons) in self.releases.items() if python in pythons and day < before]
        noise = f"Getting page\n{self.unreached}\n"
        if self.broken:
            return noise + self.broken
        if not results:
            raise Failed(command, f"{noise}ERROR: No matching distribution found for torch\n")
        listed = ", ".join(sorted(results, key=Version, reverse=True))
        return f"{noise}torch ({listed.partition(',')[0]})\nAvailable versions: {listed}\n"
