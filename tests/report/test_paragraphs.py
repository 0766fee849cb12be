"""On a terminal of any width, words and numbers stay whole, and all of them are printed."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from torch_compat.report.paragraphs import NARROWEST, paragraph, print_table, wrapped

WORDS = st.lists(st.text("abc0123.:/-", min_size=1, max_size=30), min_size=1, max_size=40)


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, highlight=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(WORDS, st.integers(0, 12), st.integers(NARROWEST, 120))
def test_every_word_is_there_and_only_one_that_is_longer_leaves_the_terminal(words: list[str], margin: int, width: int) -> None:
    text = " " * margin + " ".join(words)
    lines = wrapped(text, width)
    assert " ".join(lines).split() == words
    assert all(line.startswith(" " * margin) for line in lines)
    room = max(width, margin + NARROWEST)
    assert all(len(line) <= room or len(line.split()) == 1 for line in lines)
    console = terminal(width)
    paragraph(console, Text(text, style="bold"))
    assert printed(console).splitlines() == lines


def test_a_paragraph_is_one_line_without_a_terminal_and_says_where_it_was_cut_short_on_one() -> None:
    text = "  " + "word " * 100 + "end"
    console = Console(file=io.StringIO(), width=40)
    paragraph(console, text, most=3)
    assert printed(console) == f"{text}\n"
    console = terminal(40)
    paragraph(console, text, most=3)
    lines = printed(console).splitlines()
    assert len(lines) == 3
    assert lines[-1].endswith("word …")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, 200])
def test_a_table_that_does_not_fit_comes_in_parts_and_keeps_every_number(width: int) -> None:
    heads = ["family", "reader", *(f"column{number}" for number in range(12))]
    rows = [[f"family{row}", "newer", *(str(row * 1000 + number) for number in range(12))] for row in range(5)]
    rows.append(["nothing", "older", *["·"] * 12])
    console = terminal(width)
    print_table(console, [heads, *rows], keys=2)
    lines = printed(console).splitlines()
    assert all(len(line) <= width for line in lines)
    words = printed(console).split()
    assert "…" not in printed(console)
    assert {*heads, *(cell for row in rows for cell in row)} == set(words)
    parts = printed(console).split("\n\n")
    assert (len(parts) == 1) == (width >= 140)
    assert all(part.split()[:2] == heads[:2] for part in parts)
    assert words.count("nothing") == 1  # what has nothing to say is said once
    assert words.count("family3") == len(parts)


def test_a_column_without_anything_takes_no_room() -> None:
    console = terminal(20)
    print_table(console, [["name", "number", ""], ["abcdefghij", "12345678", ""]], keys=1)
    assert printed(console).splitlines() == ["name          number", "abcdefghij  12345678"]
