"""Which torch releases the user's package index offers, as pip sees it: with the user's index, proxy and certificates.

pip is asked once for every Python, with the platform of Linux on x86-64 spelled out, so that the answer is the same on
every machine. pip ends well and says nothing when one of several sources could not be reached; its log tells. An answer
counts only where every source answered and the newest release of the calendar is among what is offered: an index that lags
behind the calendar cannot tell that there is nothing newer.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.errors import EnvironmentUnavailable
from torch_compat.readers.commands import Failed, Run, clean_environ, last_words, run_command
from torch_compat.readers.interpreters import OLDEST, find_interpreters, in_order_of_preference
from torch_compat.releases.release import Release, dotted, stated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.policy import CalendarRelease
    from torch_compat.releases.calendar import Calendar

__all__ = ["Offered", "calendar_entry", "entry_text", "new_releases", "offered", "offered_release", "unlisted"]

FIRST = Release("1.0.0")
AHEAD = 3
"""How many Pythons newer than the newest one in the calendar are queried: a release may support none of those in the
calendar."""
_PLATFORMS = ("linux_x86_64", "manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64")
_GLIBC = range(5, 61)  # manylinux_2_5 is the first there is; nothing on the way to 2.60 may be overlooked
_ANSWER = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_NONE = "No matching distribution found for torch"
_UNREACHED = re.compile(r"Could not fetch URL (\S+): (.*)")
_LACKS_IT = re.compile(r"\b404\b")  # a source without any torch is no source that failed


@dataclass(frozen=True)
class Offered:
    """A release that the index offers.

    Attributes:
        version: public version.
        pythons: the CPython versions that have a wheel, of those that were asked for.
    """

    version: str
    pythons: tuple[str, ...]

    @property
    def parsed(self) -> Release:
        """The release, comparable."""
        return Release(self.version)


class _Pip:
    """One pip, asked several questions."""

    def __init__(self, run: Run, scratch: Path) -> None:
        self._run = run
        self._log = scratch / "log"
        self._python = self._with_pip(scratch)

    def _with_pip(self, scratch: Path) -> Path:
        """This Python if it has pip; it need not, as environments made by uv show. Else a new environment's."""
        own = Path(sys.executable)
        try:
            self._call(own, "--version")
        except Failed:
            interpreter = find_interpreters()[0]
            try:
                self._run(
                    [interpreter.path, "-m", "venv", scratch / "venv"],
                    environ=clean_environ(),
                    cwd=None,
                    log=self._log,
                    quiet=True,
                )
            except Failed as error:
                raise EnvironmentUnavailable(
                    f"the index cannot be queried without pip: python -m venv failed: {last_words(error.output)}", code="no-pip"
                ) from error
            return scratch / "venv" / "bin" / "python"
        return own

    def _call(self, python: Path, *arguments: str) -> str:
        settings = {"LC_ALL": "C", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
        return self._run(
            [python, "-I", "-m", "pip", *arguments], environ=clean_environ(settings), cwd=None, log=self._log, quiet=True
        )

    def versions(self, python: str, *options: str) -> set[str]:
        """Public versions of the final releases of torch for one CPython.

        Raises:
            EnvironmentUnavailable: the index could not be asked.
        """
        names = [*_PLATFORMS, *(f"manylinux_2_{minor}_x86_64" for minor in _GLIBC)]
        platforms = [word for name in names for word in ("--platform", name)]
        question = ["index", "versions", "torch", "-vv", "--python-version", python, "--only-binary", ":all:", *platforms]
        try:
            said = self._call(self._python, *question, *options)
        except Failed as error:
            said = error.output
            if _NONE not in said:
                raise _unavailable(last_words(said)) from error
            _refuse_unreached(said)
            return set()
        _refuse_unreached(said)
        answer = _ANSWER.search(said)
        if answer is None:
            raise _unavailable(f"pip said {last_words(said)!r}")
        found = set()
        for text in answer.group(1).split(", "):
            release = stated(text.strip())
            if release is None:
                raise _unavailable(f"pip reported the invalid version {text!r}")
            if not release.prerelease:
                found.add(release.public)
        return found

    def uploaded(self, version: str, python: str, low: dt.date, high: dt.date) -> dt.date | None:
        """The day of the upload of this release's wheel for a CPython; None where pip or the index does not tell.

        pip tells no date, but it can be told to disregard what is younger than one.
        """

        def is_there(day: dt.date) -> bool:
            return version in self.versions(python, "--uploaded-prior-to", f"{day + dt.timedelta(1)}T00:00:00Z")

        try:
            if is_there(low) or not is_there(high):
                return None
            while (high - low).days > 1:
                middle = low + (high - low) // 2
                low, high = (low, middle) if is_there(middle) else (middle, high)
        except EnvironmentUnavailable:
            return None  # an older pip, or an index without upload times: whoever adds the entry looks it up
        return high


def offered(calendar: Calendar[CalendarRelease], run: Run = run_command) -> tuple[Offered, ...]:
    """Every final release from 1.0.0 on that the index offers for Linux on x86-64, oldest first.

    Raises:
        EnvironmentUnavailable: the index could not be asked, or does not know the newest release of the calendar.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        return _offered(calendar, _Pip(run, Path(scratch)))


def new_releases(
    calendar: Calendar[CalendarRelease], today: dt.date, run: Run = run_command
) -> tuple[tuple[Offered, dt.date | None], ...]:
    """The releases that are offered and not in the calendar, each with the day of its upload where that can be told.

    Raises:
        EnvironmentUnavailable: as :func:`offered`.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        pip = _Pip(run, Path(scratch))
        missing = unlisted(calendar, _offered(calendar, pip))
        return tuple((one, _uploaded(calendar, one, today, pip)) for one in missing)


def offered_release(
    calendar: Calendar[CalendarRelease], version: str, today: dt.date, run: Run = run_command
) -> tuple[Offered, dt.date | None]:
    """One release that the calendar lacks, with the day of its upload where that can be told.

    Raises:
        EnvironmentUnavailable: as :func:`offered`; or the index does not offer this release.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        pip = _Pip(run, Path(scratch))
        found = next((one for one in _offered(calendar, pip) if one.version == version), None)
        if found is None:
            raise EnvironmentUnavailable(
                f"the package index does not offer torch {version} for Linux on x86-64",
                hint="torch-compat readers available lists the available releases",
                code="not-offered",
            )
        return found, _uploaded(calendar, found, today, pip)


def _offered(calendar: Calendar[CalendarRelease], pip: _Pip) -> tuple[Offered, ...]:
    pythons: dict[str, list[str]] = {}
    for python in _pythons(calendar):
        for version in pip.versions(python):
            if Release(version) >= FIRST:
                pythons.setdefault(version, []).append(python)
    newest = calendar.newest().version
    if newest not in pythons:
        raise _unavailable(
            f"it does not offer torch {newest}, which is in the calendar, so it cannot show which releases are newer"
        )
    return tuple(Offered(version, tuple(pythons[version])) for version in sorted(pythons, key=Release))


def unlisted(calendar: Calendar[CalendarRelease], releases: Iterable[Offered]) -> tuple[Offered, ...]:
    """Those that the calendar lacks."""
    return tuple(release for release in releases if release.version not in calendar)


def _uploaded(calendar: Calendar[CalendarRelease], release: Offered, today: dt.date, pip: _Pip) -> dt.date | None:
    newest = calendar.newest()
    low = newest.date if release.parsed > newest.parsed else min(known.date for known in calendar)
    return pip.uploaded(release.version, release.pythons[0], low - dt.timedelta(1), today)


def entry_text(calendar: Calendar[CalendarRelease], release: Offered, date: dt.date | None) -> str:
    """The calendar entry to add; what the index does not tell is taken from the nearest release, and says so.

    Without a date it is no valid TOML: nobody can add it and forget the date.
    """
    like = calendar.nearest(release.parsed).version
    version, day, pythons, install, numpy = calendar_entry(calendar, release, date or dt.date.max).splitlines()[1:]
    if date is None:
        day = "date = YYYY-MM-DD  # the day of its first upload"
    lines = ("[[release]]", version, day, pythons, f"{install}  # as {like}", f"{numpy}  # as {like}")
    return "".join(f"{line}\n" for line in lines)


def calendar_entry(calendar: Calendar[CalendarRelease], release: Offered, date: dt.date) -> str:
    """The calendar entry as it stands in the file; what the index does not tell is that of the nearest release."""
    like = calendar.nearest(release.parsed)
    pythons = ", ".join(f'"{python}"' for python in release.pythons)
    return (
        f'[[release]]\nversion = "{release.version}"\ndate = {date.isoformat()}\npythons = [{pythons}]\n'
        f'install = "{like.install}"\nnumpy = "{like.numpy}"\n'
    )


def _pythons(calendar: Calendar[CalendarRelease]) -> list[str]:
    """Every Python of the calendar that can run a worker, and a few that it does not know yet, oldest first."""
    known = {dotted(python) for release in calendar for python in release.pythons}
    major, minor = max(known)[:2]
    known.update((major, minor + more) for more in range(1, AHEAD + 1))
    usable = in_order_of_preference(".".join(map(str, python)) for python in known if python >= OLDEST)
    return sorted(usable, key=dotted)


def _refuse_unreached(said: str) -> None:
    for url, why in _UNREACHED.findall(said):
        if not _LACKS_IT.search(why):
            raise _unavailable(f"{re.sub(r'//[^/@]*@', '//', url)}: {why}")


def _unavailable(why: str) -> EnvironmentUnavailable:
    return EnvironmentUnavailable(
        f"the package index could not be queried for releases of torch: {why}",
        hint="see `pip config list` for the index, proxy and certificates that pip uses",
        code="index-unavailable",
    )
