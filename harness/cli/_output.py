"""How commands speak: data on standard output, progress and messages on standard error, one format option, one exit rule."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from harness.cli._format import exit_status, format_option, print_json, trust_option

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Progress", "exit_status", "format_option", "print_json", "stderr", "stdout", "trust_option"]


def stdout() -> Console:
    """For data. Honours NO_COLOR; as wide as the terminal, 120 columns and UTF-8 under any locale where there is none."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a mark shows something
        else:
            sys.stdout.reconfigure(encoding="utf-8")
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120, soft_wrap=False)


def stderr() -> Console:
    """For progress and messages."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


class Progress:
    """A bar while standard error is a terminal; a line per reader where it is not."""

    def __init__(self, console: Console) -> None:

        self.console = console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.animated = console.is_terminal and not os.environ.get("CI")
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
