"""Writing the beginnings of things: all files of one or none, and what comes next."""

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

__all__ = ["Created", "create", "refuse_id", "unfinished_lines"]


class Created(NamedTuple):
    """What was written, and the commands that come next."""

    kind: str
    name: str
    paths: tuple[Path, ...]
    commands: tuple[str, ...]


def create(place: Root, texts: dict[Path, str]) -> None:
    """Write new files, all of them or none.

    Raises:
        UsageError: one is there already.
        WriteError: they cannot be written.
    """
    with changing(place.path):
        for path, text in texts.items():
            if path.exists():
                raise UsageError("already exists", where=str(path), code="exists")
            put(path, text, encoding="utf-8")


def unfinished_lines(path: Path) -> list[int]:
    """The lines of a file that have a placeholder."""
    lines = read_whole(path, MOST_OF_A_PROGRAM).decode("utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if UNFINISHED in line]


def refuse_id(name: str, what: str) -> None:
    """Refuse a name that is no id of a policy.

    Raises:
        UsageError: it is none.
    """
    if not re.fullmatch(IDENTIFIER, name):
        raise UsageError(
            f"{name!r} is not a valid name for a {what}",
            hint="use lower-case words joined by hyphens, such as floor-divide",
            code="bad-name",
        )
