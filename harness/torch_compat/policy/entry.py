"""One table of a policy file, as written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Problem
from torch_compat.policy.messages import UNFINISHED

if TYPE_CHECKING:
    import pathlib

    from torch_compat.policy.positions import Path, Positions
    from torch_compat.policy.table_base import Table

__all__ = ["Entry", "spell"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Entry:
    """One table as written: its kind, content, and position."""

    table: str
    model: type[Table]
    raw: dict[str, Any]
    file: pathlib.Path
    path: Path
    positions: Positions

    @property
    def unfinished(self) -> bool:
        """Whether a placeholder of ``torch-compat new`` is left in the table."""
        return UNFINISHED in repr(self.raw)

    def problem(self, message: str, *inner: str | int) -> Problem:
        """Return a problem with this table, or with a value inside it."""
        path = (*self.path, *inner)
        return Problem(self.file.as_posix(), self.positions.line_of(path), spell(path), message)

    def get(self, *inner: str | int) -> Any:
        """Return the value at a path inside the table, or None if there is none."""
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
    """Return a path as written in messages: ``release[3].date``. Keys that TOML requires to be quoted are quoted."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{_spell_key(key)}" for key in path).removeprefix(".")


def _spell_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else repr(key)
