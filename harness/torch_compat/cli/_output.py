"""How commands speak: data on standard output, progress and messages on standard error, one format option, one exit rule."""

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
    """A console whose styles are ours alone: the text is escaped before it is styled, and no text is taken for markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed; rich's own, which move the cursor, as they are."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(escaped_output(text), style)


def stdout(width: int = 120) -> Console:
    """For data. Honours NO_COLOR; as wide as the terminal, and UTF-8 under any locale where there is none.

    Parameters:
        width: columns where there is no terminal.
    """
    if hasattr(sys.stdout, "reconfigure"):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a mark shows something
        else:
            sys.stdout.reconfigure(encoding="utf-8")
    return _console(sys.stdout, width=None if sys.stdout.isatty() else width, soft_wrap=False)


def stderr() -> Console:
    """For progress and messages."""
    return _console(sys.stderr, width=None, soft_wrap=True)


def _console(stream: TextIO, *, width: int | None, soft_wrap: bool) -> Console:
    return _HarmlessConsole(
        file=styled(stream),
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # with colours, bold and dim go as well
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
        soft_wrap=soft_wrap,
    )


class Progress:
    """A bar while standard error is a terminal; a line per reader where it is not."""

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
        """One line that stays."""
        self.console.print(line, markup=False)

    def task(self, description: str) -> Callable[[int, int], None]:
        """A bar; call the result with what is done and how much there is."""
        task = self.bars.add_task(description, total=None)
        return lambda done, total: self.bars.update(task, completed=done, total=total)


@contextlib.contextmanager
def counting(description: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for one task of some seconds; call what it gives with what is done and how much there is."""
    with Progress(stderr()) as progress:
        yield progress.task(description)
