"""A release report for a terminal: one screen, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from torch_compat.report.paragraphs import paragraph
from torch_compat.report.release.items import Section
from torch_compat.report.release.words import COMPLETE, TITLES, counted, facts, head, notes_of_report
from torch_compat.words import count_of

if TYPE_CHECKING:
    from rich.console import Console

    from torch_compat.report.release.report import ReleaseReport

__all__ = ["print_release"]

MOST: Final = 3
PROGRAM: Final = "torch-compat"
STYLES: Final = {
    Section.SILENT: "bold magenta",
    Section.REFUSED: "bold red",
    Section.CRASHED: "bold red",
    Section.MENDED: "bold green",
}


def print_release(report: ReleaseReport, console: Console, *, full: bool) -> None:
    """Print a report; the short form has the first items of every section, each on a line of its own."""
    _print(console, head(report), "bold", 0)
    for section, title in TITLES.items():
        items = report.of(section)
        if not items:
            continue
        console.print()
        console.print(Text(f"{title} ({len(items)})", style=STYLES.get(section, "bold")))
        for item in items if full else items[:MOST]:
            if not full:
                counts = counted(report, item)
                _print(console, f"{item.title}  [{item.when}{'; ' if counts else ''}{counts}]", "", 2)
                continue
            _print(console, item.title, "bold", 2)
            for name, text in facts(report, item):
                _print(console, f"{name}: {text}", "", 4, whole=name == "show")
        if not full and len(items) > MOST:
            console.print(Text(f"  and {len(items) - MOST} more: --full prints them", style="dim"))
    console.print()
    for note in notes_of_report(report):
        _print(console, note, "dim", 0)
    if report.not_asked:
        console.print(Text("Unknown", style="bold yellow"))
        for entry in report.not_asked if full else report.not_asked[:MOST]:
            _print(console, f"{entry.count} × {entry.why}", "", 2)
        if not full and len(report.not_asked) > MOST:
            console.print(Text(f"  and {len(report.not_asked) - MOST} more: --full prints them", style="dim"))
    else:
        console.print(Text(COMPLETE, style="dim"))
    if report.open:
        _print(
            console,
            f"{count_of(len(report.open), 'item is not explained', 'items are not explained')}: torch-compat judge --full",
            "bold red",
            0,
        )


def _print(console: Console, text: str, style: str, indent: int, *, whole: bool = False) -> None:
    """Print a paragraph, wrapped on a terminal and never truncated; a command stays whole, if necessary on a line of its own."""
    margin = " " * indent
    message, colon, command = text.partition(f": {PROGRAM} ")
    if colon and console.is_terminal and len(margin + text) > console.width:
        _print(console, f"{message}:", style, indent)
        console.print(Text(f"{margin}  {PROGRAM} {command}", style=style), soft_wrap=True)
    elif not whole:
        paragraph(console, margin + text, style)
    else:
        console.print(Text(margin + text, style=style), soft_wrap=True)
