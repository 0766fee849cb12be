"""The type of options and arguments that name a file or a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["NamedPath"]


class NamedPath(click.Path):
    """A path. An empty name is refused: :class:`pathlib.Path` turns it into the current directory.

    Takes the parameters of :class:`click.Path`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value of the command line."""
        if value in {"", b""}:
            self.fail("the name is empty, expected a path", param, ctx)
        return super().convert(value, param, ctx)
