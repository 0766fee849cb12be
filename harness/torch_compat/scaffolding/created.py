"""Writes the files of a template, all or none, and lists the next steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.corpus.recipes import UNFINISHED
from torch_compat.errors import UsageError
from torch_compat.places import MOST_OF_A_PROGRAM, read_whole
from torch_compat.policy.table_base import IDENTIFIER
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.workspace import Root

__all__ = ["Created", "create", "refuse_id", "taken", "unfinished_lines"]


class Created(NamedTuple):
    """The written files, and the commands to run next.

    Attributes:
        kind: the kind of the entry, such as ``rule``.
        name: its id.
        paths: the new files.
        commands: the commands to run after the placeholders are replaced.
        changed: files that existed before, and now contain the entry.
    """

    kind: str
    name: str
    paths: tuple[Path, ...]
    commands: tuple[str, ...]
    changed: tuple[Path, ...] = ()


def create(place: Root, texts: dict[Path, str]) -> None:
    """Write new files, all or none.

    Raises:
        UsageError: one already exists.
        WriteError: they cannot be written.
    """
    with changing(place.path):
        for path, text in texts.items():
            if path.exists():
                raise taken(path)
            put(path, text, encoding="utf-8")


def taken(path: Path) -> UsageError:
    """The error for a new file that exists."""
    hint = "choose another name, or delete the file if you want to start again"
    return UsageError("already exists, expected the name of a new file", where=str(path), hint=hint, code="exists")


def unfinished_lines(path: Path) -> list[int]:
    """Return the lines of a file that contain a placeholder."""
    lines = read_whole(path, MOST_OF_A_PROGRAM).decode("utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if UNFINISHED in line]


def refuse_id(name: str, what: str) -> None:
    """Refuse a name that is not a valid policy id.

    Raises:
        UsageError: it is not.
    """
    if not re.fullmatch(IDENTIFIER, name):
        raise UsageError(
            f"{name!r} is not a valid name for a {what}",
            hint="use lower-case words joined by hyphens, such as floor-divide",
            code="bad-name",
        )
