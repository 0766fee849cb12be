"""The torch releases that the user's package index offers, as seen by pip with the user's index, proxy and certificates.

pip is queried once per Python, with an explicit Linux x86-64 platform, so that the answer is the same on every machine. pip exits
successfully without a message if one of several sources was unreachable; only its log shows it. An answer is valid only if every source
answered and the index offers the newest release of the calendar: an index that lags behind the calendar cannot show that there is nothing
newer.
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
"""How many Pythons newer than the newest one in the calendar are queried: a release may not support any Python in the calendar."""
_PLATFORMS = ("linux_x86_64", "manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64")
_GLIBC = range(5, 61)  # manylinux_2_5 is the first; every version up to 2.60 must be included
_ANSWER = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_NONE = "No matching distribution found for torch"
_UNREACHED = re.compile(r"Could not fetch URL (\S+): (.*)")
_LACKS_IT = re.compile(r"\b404\b")  # a source without torch is not a failed source


@dataclass(frozen=True)
class Offered:
    """A release that the index offers.

    Attributes:
        version: its public version.
        pythons: the queried CPython versions for which it has a wheel.
    """

    version: str
    pythons: tuple[str, ...]

    @property
    def parsed(self) -> Release:
        """The version in comparable form."""
        return Release(self.version)


class _Pip:
    """One pip, used for several queries."""

    def __init__(self, run: Run, scratch: Path) -> None:
        self._run = run
        self._log = scratch / "log"
        self._python = self._with_pip(scratch)

    def _with_pip(self, scratch: Path) -> Path:
        """Return this Python if it has pip (environments created by uv do not), else that of a new environment."""
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
        """Return the public versions of the final releases of torch for one CPython.

        Raises:
            EnvironmentUnavailable: the index could not be queried.
        """
        names = [*_PLATFORMS, *(f"manylinux_2_{minor}_x86_64" for minor in _GLIBC)]
        platforms = [word for name in names for word in ("--platform", name)]
        question = ["index", "versions", "torch", "-vv", "--python-version", python, "--only-binary", ":all:", *platforms]
        try:
            message = self._call(self._python, *question, *options)
        except Failed as error:
            message = error.output
            if _NONE not in message:
                raise _unavailable(last_words(message)) from error
            _refuse_unreached(message)
            return set()
        _refuse_unreached(message)
        answer = _ANSWER.search(message)
        if answer is None:
            raise _unavailable(f"pip said {last_words(message)!r}")
        results = set()
        for text in answer.group(1).split(", "):
            release = stated(text.strip())
            if release is None:
                raise _unavailable(f"pip reported the invalid version {text!r}")
            if not release.prerelease:
                results.add(release.public)
        return results

    def uploaded(self, version: str, python: str, low: dt.date, high: dt.date) -> dt.date | None:
        """Return the upload date of this release's wheel for a CPython; None if pip or the index does not provide it.

        pip does not report dates, but it can ignore files uploaded after a given date.
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
            return None  # an older pip, or an index without upload times: the person who adds the entry looks it up
        return high


def offered(calendar: Calendar[CalendarRelease], run: Run = run_command) -> tuple[Offered, ...]:
    """Return every final release from 1.0.0 on that the index offers for Linux x86-64, oldest first.

    Raises:
        EnvironmentUnavailable: the index could not be queried, or does not have the newest release of the calendar.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        return _offered(calendar, _Pip(run, Path(scratch)))


def new_releases(
    calendar: Calendar[CalendarRelease], today: dt.date, run: Run = run_command
) -> tuple[tuple[Offered, dt.date | None], ...]:
    """Return the offered releases that are not in the calendar, each with its upload date if available.

    Raises:
        EnvironmentUnavailable: as :func:`offered`.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        pip = _Pip(run, Path(scratch))
        missing = unlisted(calendar, _offered(calendar, pip))
        return tuple((item, _uploaded(calendar, item, today, pip)) for item in missing)


def offered_release(
    calendar: Calendar[CalendarRelease], version: str, today: dt.date, run: Run = run_command
) -> tuple[Offered, dt.date | None]:
    """Return one release that the calendar lacks, with its upload date if available.

    Raises:
        EnvironmentUnavailable: as :func:`offered`; or the index does not offer this release.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        pip = _Pip(run, Path(scratch))
        result = next((item for item in _offered(calendar, pip) if item.version == version), None)
        if result is None:
            raise EnvironmentUnavailable(
                f"the package index does not offer torch {version} for Linux on x86-64",
                hint="torch-compat readers available lists the available releases",
                code="not-offered",
            )
        return result, _uploaded(calendar, result, today, pip)


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
    """Return the releases that the calendar lacks."""
    return tuple(release for release in releases if release.version not in calendar)


def _uploaded(calendar: Calendar[CalendarRelease], release: Offered, today: dt.date, pip: _Pip) -> dt.date | None:
    newest = calendar.newest()
    low = newest.date if release.parsed > newest.parsed else min(known.date for known in calendar)
    return pip.uploaded(release.version, release.pythons[0], low - dt.timedelta(1), today)


def entry_text(calendar: Calendar[CalendarRelease], release: Offered, date: dt.date | None) -> str:
    """Return the calendar entry to add; values that the index does not provide come from the nearest release and are marked as such.

    Without a date it is not valid TOML, so that it cannot be added without filling in the date.
    """
    like = calendar.nearest(release.parsed).version
    version, day, pythons, install, numpy = calendar_entry(calendar, release, date or dt.date.max).splitlines()[1:]
    if date is None:
        day = "date = YYYY-MM-DD  # the day of its first upload"
    lines = ("[[release]]", version, day, pythons, f"{install}  # as {like}", f"{numpy}  # as {like}")
    return "".join(f"{line}\n" for line in lines)


def calendar_entry(calendar: Calendar[CalendarRelease], release: Offered, date: dt.date) -> str:
    """Return the calendar entry as written to the file; values that the index does not provide come from the nearest release."""
    like = calendar.nearest(release.parsed)
    pythons = ", ".join(f'"{python}"' for python in release.pythons)
    return (
        f'[[release]]\nversion = "{release.version}"\ndate = {date.isoformat()}\npythons = [{pythons}]\n'
        f'install = "{like.install}"\nnumpy = "{like.numpy}"\n'
    )


def _pythons(calendar: Calendar[CalendarRelease]) -> list[str]:
    """Return every Python of the calendar that can run a worker, and a few newer ones, oldest first."""
    known = {dotted(python) for release in calendar for python in release.pythons}
    major, minor = max(known)[:2]
    known.update((major, minor + more) for more in range(1, AHEAD + 1))
    usable = in_order_of_preference(".".join(map(str, python)) for python in known if python >= OLDEST)
    return sorted(usable, key=dotted)


def _refuse_unreached(text: str) -> None:
    for url, why in _UNREACHED.findall(text):
        if not _LACKS_IT.search(why):
            raise _unavailable(f"{re.sub(r'//[^/@]*@', '//', url)}: {why}")


def _unavailable(why: str) -> EnvironmentUnavailable:
    return EnvironmentUnavailable(
        f"the package index could not be queried for releases of torch: {why}",
        hint="see `pip config list` for the index, proxy and certificates that pip uses",
        code="index-unavailable",
    )
