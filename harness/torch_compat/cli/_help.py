"""The layout of help texts: names and sentences are never truncated, whatever the width of the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from torch_compat.report.paragraphs import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WholeWords", "WithCommands"]

NARROW: Final = 72
"""Below this width, explanations are indented less, so that the longest name in them fits on a line."""
MARGIN: Final = 10


class WholeWords(click.HelpFormatter):
    """A formatter that breaks lines only at spaces, so that no name and no command is broken."""

    def write_text(self, text: str) -> None:
        """Write paragraphs, which empty lines separate. As in click, a paragraph that begins with a backspace keeps its lines."""
        margin = " " * self.current_indent
        shown: list[str] = []
        for item in re.split(r"\n\s*\n", text.strip("\n")):
            kept = item.lstrip().startswith("\b")
            lines = item.replace("\b", "").strip("\n").split("\n") if kept else [" ".join(item.split())]
            shown.append("\n".join(part for line in lines for part in wrapped(margin + line, self.width, hanging=4 * kept)))
        self.write("\n\n".join(shown) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options or commands next to their explanations."""
        rows = list(rows)
        longest = max((len(name) for name, _ in rows), default=0)
        column = min(longest, col_max if self.width >= NARROW else MARGIN) + col_spacing
        margin, below = " " * self.current_indent, " " * (self.current_indent + column)
        for name, about in rows:
            first, *more = wrapped(" ".join(about.split()), self.width - len(below), hanging=0)
            beside = len(name) + col_spacing <= column
            self.write(f"{margin}{name:<{column}}{first}\n" if beside and first else f"{margin}{name}\n")
            for line in more if beside else filter(None, (first, *more)):
                self.write(f"{below}{line}\n")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line; arguments that do not fit next to the command go below it, each unbroken."""
        usage = f"{prefix or 'Usage: '}{prog} "
        if len(usage) + max(map(len, args.split()), default=0) <= self.width:
            self.write("\n".join(wrapped(f"{usage}{args}".rstrip(), self.width, hanging=len(usage))) + "\n")
            return
        self.write(f"{usage.rstrip()}\n")
        self.write("".join(f"    {part}\n" for part in args.split()))


class WithCommands(click.Group):
    """A group that lists its commands with their complete first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with its first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, item.get_short_help_str(limit=1000)) for name, item in commands if item is not None])
