"""Edits the calendar in the text of the policy files: adds and removes ``[[release]]`` entries.

The text around an entry is preserved, including comments. Only a table and its key lines are added or removed, so the same calendar always
gives the same bytes. The files are read as TOML, not as a policy: while a release is being added, one file of the policy may name it
before another does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from torch_compat.errors import CorpusError, PolicyError
from torch_compat.places import inside, read_whole
from torch_compat.policy.model import CalendarRelease
from torch_compat.releases.calendar import Calendar
from torch_compat.releases.data import parsed
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = [
    "TableText",
    "add_release",
    "drop_planned",
    "drop_releases",
    "joined",
    "planned_releases",
    "split_tables",
    "written_calendar",
]

_TABLE = re.compile(r"^(?=\[)", re.MULTILINE)
RELEASE = "[[release]]"
_HINT = "`torch-compat judge` lists every error in the policy"


@dataclass(frozen=True)
class TableText:
    """A table of a file, as written.

    Attributes:
        header: ``[[release]]``; empty for the text above the first table.
        body: the header and the lines of its keys.
        rest: the blank lines and comments below, which belong to the next table.
    """

    header: str
    body: str
    rest: str

    @property
    def version(self) -> str:
        """The value of the key ``version``."""
        return str(self._table["version"])

    @property
    def is_planned(self) -> bool:
        """Whether it is a planned release."""
        return self.header == RELEASE and "source" in self._table

    @property
    def _table(self) -> dict[str, Any]:
        ((_, tables),) = parsed(self.body, self.header).items()
        table: dict[str, Any] = tables[0]
        return table


def written_calendar(policies: Path) -> Calendar[CalendarRelease]:
    """Return the releases that the files of a policy list, even if the policy has other errors.

    Parameters:
        policies: the folder of the policy, ``policies/torch``.

    Raises:
        CorpusError: a file is not TOML, or an entry is not a valid release.
    """
    releases = []
    for path, part in _releases_of(policies, planned=False):
        try:
            releases.append(CalendarRelease.model_validate(parsed(part.body, str(path))["release"][0]))
        except ValidationError as error:
            raise CorpusError(f"has an invalid [[release]]: {error}", where=str(path), hint=_HINT) from error
    return Calendar(releases)


def planned_releases(policies: Path) -> tuple[str, ...]:
    """Return the versions of the planned releases in the files of a policy, in file order."""
    return tuple(part.version for _, part in _releases_of(policies, planned=True))


def add_release(policies: Path, entry: str) -> dict[Path, str]:
    """Insert an entry into the calendar, sorted by version.

    Parameters:
        entry: a ``[[release]]`` as TOML, with the exact lines to insert.

    Returns:
        The new text of the changed file; empty if the release is already listed.

    Raises:
        CorpusError: no file of the policy lists releases, or a file is not TOML.
    """
    given = split_tables(entry)[1]
    listed = list(_releases_of(policies, planned=False))
    if not listed:
        raise CorpusError("no file lists a [[release]]", where=str(policies), hint=_HINT, code="no-calendar")
    if any(part.version == given.version for _, part in listed):
        return {}
    path = listed[-1][0]
    parts = _read(path)
    at = [number for number, part in enumerate(parts) if part.header == RELEASE and not part.is_planned]
    later = [number for number in at if Release(parts[number].version) > Release(given.version)]
    if later:
        parts.insert(later[0], replace(given, rest="\n"))
    else:
        last = parts[at[-1]]
        parts[at[-1] : at[-1] + 1] = [replace(last, rest="\n"), replace(given, rest=last.rest if last.rest.strip() else "")]
    return {path: joined(parts)}


def drop_releases(policies: Path, versions: frozenset[str]) -> dict[Path, str]:
    """Remove releases from the calendar; return the new text of the changed files."""
    return _drop(policies, lambda part: not part.is_planned and part.version in versions)


def drop_planned(policies: Path, version: str) -> dict[Path, str]:
    """Remove planned releases up to and including a version; return the new text of the changed files."""
    return _drop(policies, lambda part: part.is_planned and Release(part.version) <= Release(version))


def _drop(policies: Path, dropped: Callable[[TableText], bool]) -> dict[Path, str]:
    changed = {}
    for path in dict.fromkeys(path for path, _ in _parts_of(policies)):
        parts = _read(path)
        kept: list[TableText] = []
        for part in parts:
            if part.header != RELEASE or not dropped(part):
                kept.append(part)
            elif part.rest.strip():
                kept.append(TableText("", "", part.rest))  # the text below belongs to the next table
        if len(kept) < len(parts) and kept[-1].body and not kept[-1].rest.strip():
            kept[-1] = replace(kept[-1], rest="")  # no blank line at the end of a file
        if joined(kept) != joined(parts):
            changed[path] = joined(kept)
    return changed


def _releases_of(policies: Path, *, planned: bool) -> Iterator[tuple[Path, TableText]]:
    """Return every release of the calendar, or every planned one, with its file."""
    return ((path, part) for path, part in _parts_of(policies) if part.is_planned is planned)


def _parts_of(policies: Path) -> Iterator[tuple[Path, TableText]]:
    """Yield every release, planned or not, with its file."""
    for path in sorted(policies.glob("*.toml")):
        yield from ((path, part) for part in _read(inside(policies, path.name)) if part.header == RELEASE)


def _read(path: Path) -> list[TableText]:
    try:
        text = read_whole(path).decode("utf-8")
        parsed(text, str(path))
    except PolicyError as error:
        at = f"{path}:{error.problems[0].line}"
        raise CorpusError(f"cannot be read: it {error.problems[0].message}", where=at, hint=_HINT, code="bad-toml") from error
    except (OSError, ValueError) as error:
        raise CorpusError(f"cannot be read as TOML: {error}", where=str(path), hint=_HINT, code="bad-toml") from error
    return split_tables(text)


def split_tables(text: str) -> list[TableText]:
    """Split a file into the text above the first table, and each table."""
    head, *tables = _TABLE.split(text)
    parts = [TableText("", "", head)]
    for table in tables:
        lines = table.splitlines(keepends=True)
        keys = len(lines)
        while not lines[keys - 1].strip() or lines[keys - 1].startswith("#"):
            keys -= 1
        parts.append(TableText(lines[0].strip(), "".join(lines[:keys]), "".join(lines[keys:])))
    return parts


def joined(parts: Iterable[TableText]) -> str:
    """Join the parts of a file into its text."""
    return "".join(part.body + part.rest for part in parts)
