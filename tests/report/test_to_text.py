"""The report for a person: everything is said, nothing is cut off or taken for markup, and colour is only colour."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from harness.report.to_text import LEGEND, MARKS, print_report
from harness.rules.judgement import Outcome, Verdict

if TYPE_CHECKING:
    from harness.rules.judge import Report

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def shown(report: Report, width: int = 120, *, color: bool = False) -> str:
    stream = io.StringIO()
    print_report(
        report,
        Console(file=stream, width=width, highlight=False, force_terminal=color, color_system="standard" if color else None),
    )
    return stream.getvalue()


def section(text: str, title: str) -> str:
    """The lines under a title, up to the next empty line."""
    return text.split(title, 1)[1].split("\n\n", maxsplit=1)[0]


def test_the_matrix_has_writers_as_rows_and_readers_as_columns_by_version(report: Report) -> None:
    rows = [line.split() for line in shown(report).splitlines()[1:4]]
    assert rows[0] == ["1.9.0", "2.0.0+cpu"]
    assert rows[1] == ["1.9.0", "1234✓", "5✓"]
    assert rows[2] == ["1.10.0", "·", "2✓", "1≠", "1✗", "1!", "1~", "1?", "1†", "1…", "2-"]


def test_other_options_have_their_own_matrix(report: Report) -> None:
    assert "strict  7✗" in shown(report)


def test_every_outcome_has_a_mark_and_every_mark_of_a_real_reader_is_explained() -> None:
    assert set(MARKS) == set(Outcome)
    for outcome, (mark, _) in MARKS.items():
        assert mark in LEGEND or outcome in {Outcome.UNSUPPORTED, Outcome.UNAVAILABLE}


def test_broken_promises_are_told_with_cause_and_command(report: Report) -> None:
    text = section(shown(report), "Broken promises (3)")
    assert "3 × version 9 is too new [bold]not markup[/bold]  [newer-loads, since 2.0.0]" in text
    assert "newer-loads:refused:version-9@2.0.0" in text
    assert "torch-compat observe --reader torch-2.0.0 --fixture torch-1.0.0/add --show" in text
    assert "programs of 1.0.0, read by 2.0.0, 2.10.0" in text
    assert "[newer-loads, since 2.0.0, with strict]" in text


def test_every_finding_stands_in_its_section(report: Report) -> None:
    text = shown(report)
    assert "silently" in section(text, "Values that changed with no version bump and no upgrader (1)")
    waived = section(text, "Waived: known, explained and counted (2)")
    assert "announced" in waived
    assert "waived: w2" in waived
    assert "crashed  [older-never-differs, up to 2.0.0]" in waived
    assert "as it should be" in section(text, "Expected (1)")
    assert "12 × torch-2.0.0: not observed  [pairs-observed]" in section(text, "Could not be checked")
    assert "Note: forward-window selects nothing" in text


@pytest.mark.parametrize(
    ("status", "meaning"),
    [(0, "every promise that was checked holds"), (1, "a promise is broken"), (4, "incomplete: something that was required")],
)
def test_it_ends_with_what_counts(status: int, meaning: str, report: Report) -> None:
    last = shown(replace(report, exit_status=status)).splitlines()[-2:]
    assert last[0] == "1 fail, 2 expected, 3 waived, 4 no-promise, 5 not-checked; as of 2026-11-20; evidence 0123456789ab"
    assert last[1].startswith(f"exit status {status}: {meaning}")


def test_a_report_of_nothing_says_so(report: Report) -> None:
    nothing = replace(report, outcomes={}, findings=(), not_checked=(), notes=(), counts=dict.fromkeys(Verdict, 0), exit_status=4)
    assert "nothing was judged; as of" in shown(nothing)
    assert LEGEND not in shown(nothing)


@pytest.mark.parametrize("width", [40, 80, 120, 300])
def test_no_width_cuts_a_count_off(width: int, report: Report) -> None:
    counts = {Outcome.SAME: 1001, Outcome.REFUSED: 2002, Outcome.CRASHED: 3003}
    many = {("torch-1.0.0", f"torch-2.{index}.0+cpu", "torchscript", "default"): Counter(counts) for index in range(30)}
    text = shown(replace(report, outcomes=many, findings=(), not_checked=(), notes=()), width)
    for mark in ("1001✓", "2002✗", "3003†"):
        assert text.count(mark) == 30
    for index in range(30):
        assert text.count(f"2.{index}.0+cpu") == 1
    assert all(len(line) <= width for line in text.splitlines())


def test_colour_changes_nothing_but_colour(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = shown(report, color=True)
    assert ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured).split() == shown(report).split()  # a terminal's lines are wrapped, those of a file are not


def test_no_color_is_honoured(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    codes = {code for found in ESCAPE.findall(shown(report, color=True)) for code in found[2:-1].split(";")}
    assert codes <= {"0", "1", "2", "22"}  # bold and dim are no colours
