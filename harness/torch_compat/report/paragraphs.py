"""Text and tables for a terminal of any width: lines break between words, tables between columns. Nothing is truncated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console
    from rich.text import Text

__all__ = ["paragraph", "print_table", "wrapped"]

NARROWEST: Final = 20
"""Text is not wrapped in terminals narrower than this: hardly a word would fit."""
BETWEEN: Final = "  "
NOTHING: Final = frozenset({"", "·"})
"""Cells without content. A row of them is not repeated in the continuation of a table."""
HANGING: Final = 2
LEFT_OUT: Final = " …"
WORD: Final = re.compile(r"[^ ]+ *")


def wrapped(text: str, width: int, hanging: int = HANGING) -> list[str]:
    """Wrap a paragraph to lines of at most ``width`` columns. A longer word stays whole, so that it can be copied.

    Parameters:
        text: one paragraph; leading spaces are its margin.
        hanging: the additional indentation of all lines except the first, in columns.
    """
    margin, breaks = _breaks(text, width, hanging)
    ends = [*breaks, len(text)]
    lines = [text[begin:end].rstrip(" ") for begin, end in zip([margin, *breaks], ends, strict=True)]
    return [" " * (margin + hanging * bool(number)) + line for number, line in enumerate(lines)]


def _breaks(text: str, width: int, hanging: int) -> tuple[int, list[int]]:
    """The margin of a paragraph, and the start of each line except the first."""
    margin = len(text) - len(text.lstrip(" "))
    breaks: list[int] = []
    column, room = 0, max(NARROWEST, width - margin)
    for word in WORD.finditer(text, margin):
        if column and column + len(word.group().rstrip(" ")) > room:
            breaks.append(word.start())
            column = hanging
        column += len(word.group())
    return margin, breaks


def paragraph(console: Console, text: str | Text, style: str = "", *, most: int = 0) -> None:
    """Print a paragraph: wrapped on a terminal, otherwise on one line for programs that read lines. Not for commands.

    Parameters:
        text: leading spaces are its margin.
        most: the maximum number of lines on a terminal; ``…`` marks omitted text. Zero: no limit.
    """
    from rich.text import Text  # noqa: PLC0415 - not needed to wrap plain text

    whole = Text(text, style=style) if isinstance(text, str) else text
    margin, breaks = _breaks(whole.plain, console.width - len(LEFT_OUT) * bool(most), HANGING) if console.is_terminal else (0, [])
    lines = whole.divide(breaks)
    left_out = bool(most) and len(lines) > most
    for number, line in enumerate(lines[: most or None]):
        line.rstrip()
        if left_out and number + 1 == most:
            line.append(LEFT_OUT)
        console.print(Text(" " * ((margin + HANGING) * bool(number))).append_text(line), soft_wrap=True)


def print_table(console: Console, rows: Sequence[Sequence[str | Text]], keys: int, left: Collection[int] = ()) -> None:
    """Print a table. If its columns do not fit next to each other, it is printed in parts, each with the first columns repeated.

    Parameters:
        rows: the headings, followed by the rows.
        keys: the number of first columns that identify a row.
        left: columns that contain words; the others contain numbers. The first columns contain words.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415

    columns = list(zip(*rows, strict=True))
    widths = [max(cell_len(str(cell)) for cell in column) + len(BETWEEN) for column in columns]
    parts: list[list[int]] = []
    room = 0
    for number in range(keys, len(columns)):
        if not any(map(str, columns[number])):
            continue
        if not parts or widths[number] > room:
            parts.append(list(range(keys)))
            room = console.width + len(BETWEEN) - sum(widths[:keys])
        parts[-1].append(number)
        room -= widths[number]
    for place, part in enumerate(parts):
        if place:
            console.print()
        table = Table(pad_edge=False, box=None, padding=(0, len(BETWEEN), 0, 0), show_header=False)
        for number in part:
            is_text = number < keys or number in left
            table.add_column(justify="left" if is_text else "right", no_wrap=number < keys, overflow="fold")
        for row in rows:
            cells = [row[number] for number in part]
            if place == 0 or any(str(cell) not in NOTHING for cell in cells[keys:]):
                table.add_row(*cells)
        console.print(table)
