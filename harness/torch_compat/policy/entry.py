"""One table of a policy file as it was written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Problem
from torch_compat.policy.positions import Lines, Path, line_of

if TYPE_CHECKING:
    import pathlib

    from torch_compat.policy.table_base import Table

__all__ = ["Entry", "spell"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Entry:
    """One table as it was written: what it is, what it holds, and where it stands."""

    table: str
    model: type[Table]
    raw: dict[str, Any]
    file: pathlib.Path
    path: Path
    lines: Lines

    def problem(self, message: str, *inner: str | int) -> Problem:
        """A problem of this table, or of a value inside it."""
        path = (*self.path, *inner)
        return Problem(self.file.as_posix(), line_of(self.lines, path), spell(path), message)

    def get(self, *inner: str | int) -> Any:
        """The value at a path inside the table; None when there is none."""
        value: Any = self.raw
        for key in inner:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value


def spell(path: Path) -> str:
    """A path as it is written in messages: ``release[3].date``; a key that TOML wants quoted is quoted."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{_spell_key(key)}" for key in path).removeprefix(".")


def _spell_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else repr(key)
