"""Output of commands: data on standard output, progress and messages on standard error, one format option, one exit rule."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.segment import Segment

from torch_compat.cli._format import announce, exit_status, format_option, print_json, say, trust_option
from torch_compat.cli._terminal import styled
from torch_compat.escapes import escaped_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import ConsoleOptions, RenderableType

__all__ = [
    "Progress",
    "announce",
    "counting",
    "exit_status",
    "format_option",
    "print_json",
    "say",
    "stderr",
    "stdout",
    "trust_option",
]


class _HarmlessConsole(Console):
    """A console with only our own styles: text is escaped before it is styled, and never treated as markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render output into segments; rich's own segments, which move the cursor, are unchanged."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(escaped_output(text), style)


def stdout(width: int = 120) -> Console:
    """The console for data. Respects NO_COLOR; as wide as the terminal, and UTF-8 in any locale if there is no terminal.

    Parameters:
        width: columns if there is no terminal.
    """
    if hasattr(sys.stdout, "reconfigure"):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows a replacement
        else:
            sys.stdout.reconfigure(encoding="utf-8")
    return _console(sys.stdout, width=None if sys.stdout.isatty() else width, soft_wrap=False)


def stderr() -> Console:
    """The console for progress and messages."""
    return _console(sys.stderr, width=None, soft_wrap=True)


def _console(stream: TextIO, *, width: int | None, soft_wrap: bool) -> Console:
    return _HarmlessConsole(
        file=styled(stream),
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # without colors, bold and dim are off as well
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
        soft_wrap=soft_wrap,
    )


class Progress:
    """A bar if standard error is a terminal; otherwise a line per reader."""

    def __init__(self, console: Console) -> None:

        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.animated = sys.stderr.isatty() and not os.environ.get("CI")
        self.bars = Bars(*columns, console=console, transient=True, disable=not self.animated)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, markup=False)

    def task(self, description: str) -> Callable[[int, int], None]:
        """Add a bar; call the result with the completed and the total number."""
        task = self.bars.add_task(description, total=None)
        return lambda done, total: self.bars.update(task, completed=done, total=total)


@contextlib.contextmanager
def counting(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for one task of some seconds; call the yielded function with the completed and the total number."""
    with Progress(stderr()) as progress:
        yield progress.task(description)
