"""The report as text: complete, nothing truncated or parsed as markup, and color carries no additional information."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from torch_compat.judging.cell import Outcome
from torch_compat.judging.judge import ReaderSource
from torch_compat.judging.judgement import Verdict
from torch_compat.report.breaks import LEGEND, MARKS
from torch_compat.report.to_text import MOST, MOST_LINES, print_report, summary_text

if TYPE_CHECKING:
    from torch_compat.judging.judge import Report

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def shown(report: Report, width: int = 120, *, full: bool = False, color: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, force_terminal=color, color_system="standard" if color else None)
    print_report(report, console, full=full)
    return stream.getvalue()


def section(text: str, title: str) -> str:
    """The lines under a title, up to the next empty line."""
    return text.split(title, 1)[1].split("\n\n", maxsplit=1)[0]


# -------------------------------------------------------------------------------------------------------------- summary


def test_cells_are_counted_by_family_and_by_what_the_reader_is_to_the_writer(report: Report) -> None:
    lines = [line.split() for line in summary_text(report).splitlines()[:4]]
    assert lines[0][:7] == ["Cells", "for", "2", "writers", "and", "2", "readers"]
    assert lines[1][:5] == ["family", "reader", "cells", "same✓", "differs≠"]
    assert lines[2] == ["torchscript", "newer", "16", "7", "1", "1", "1", "1", "2", "1", "2"]
    assert lines[3] == ["own", "1234", "1234", *"·······"]


def test_other_options_have_their_own_line(report: Report) -> None:
    lines = section(shown(report), "Other load options").splitlines()
    assert lines[1].split() == ["options", "cells", "refused✗"]
    assert lines[2].split() == ["strict", "7", "7"]


def test_every_cell_is_counted_once(report: Report) -> None:
    numbers = [line.split() for line in summary_text(report).splitlines()[2:4]]
    default = sum(counts.total() for (*_, options), counts in report.outcomes.items() if options == "default")
    assert sum(int(row[-8 - 1]) for row in numbers) == default
    assert all(sum(int(item) for item in row[-8:] if item != "·") == int(row[-9]) for row in numbers)


def test_every_outcome_has_a_mark_and_every_mark_of_a_real_reader_is_explained() -> None:
    assert set(MARKS) == set(Outcome)
    for outcome, (mark, _) in MARKS.items():
        assert mark in LEGEND or outcome in {Outcome.UNSUPPORTED, Outcome.UNAVAILABLE}


def test_in_full_every_pair_has_the_mark_of_its_gravest_outcome(report: Report) -> None:
    lines = section(shown(report, full=True), "torchscript: writers (rows)").splitlines()[1:]
    assert [line[8:].split() for line in lines[:3]] == [["1", "2"], [".", "."], ["9", "0"]]
    assert [line.split() for line in lines[-2:]] == [["1.9.0", "✓", "✓"], ["1.10.0", "·", "≠"]]
    assert LEGEND in shown(report, full=True)


def test_the_reference_reader_is_a_reader_of_its_own(report: Report) -> None:
    cells = {
        (f"torch-{writer}", f"reference@{writer}", "torchscript", "default"): Counter({outcome: 3})
        for writer, outcome in (("1.9.0", Outcome.CLOSE), ("1.10.0", Outcome.UNSUPPORTED))
    }
    also = replace(report, outcomes={**report.outcomes, **cells}, modelled={Verdict.PASS: 3, Verdict.NOT_CHECKED: 3})
    text = shown(also)
    assert "Cells for 2 writers and 2 readers and the reference reader with default options" in text
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["reference"]]
    assert row[:3] == ["reference", "6", "3"]
    assert "of these, based only on the reference reader: 3 pass, 3 not-checked" in text
    lines = section(shown(also, full=True), "torchscript: writers (rows)").splitlines()
    assert [line.split()[-1] for line in lines[-2:]] == ["✓", "-"]
    assert "based only on the reference" not in shown(report)


# ------------------------------------------------------------------------------------------------------------- sections


def test_broken_promises_are_told_with_cause_and_command(report: Report) -> None:
    text = section(shown(report), "Broken promises (3 causes, 9 in all), newest first")
    assert "3 × version 9 is too new [bold]not markup[/bold]  [since 2.0.0]" in text
    assert "torch-compat observe --reader torch-2.0.0 --fixture torch-1.0.0/add --show" in text
    assert "3 × no recipe  [newer-loads]" in text
    text = section(shown(report, full=True), "Broken promises (3 causes, 9 in all), newest first")
    assert "3 × version 9 is too new [bold]not markup[/bold]  [newer-loads, since 2.0.0]" in text
    assert "newer-loads:refused:version-9@2.0.0" in text
    assert "programs from 1.0.0, read by 2.0.0, 2.10.0" in text
    assert "[newer-loads, since 2.0.0, with strict]" in text


def test_every_finding_stands_in_its_section(report: Report) -> None:
    text = shown(report)
    silent = section(text, "Values that changed without a version bump and without an upgrader (1 cause, 4 in all)")
    assert "4 × Values changed  [since 2.0.0, up to 1.9.0]" in silent
    waived = section(text, "Waived: known, explained and counted (2 causes, 6 in all)")
    assert "announced" in waived
    assert "crashed  [up to 2.0.0]" in waived
    assert "3 × refused with default" in section(text, "Expected (3)")
    assert "12 × torch-2.0.0: not observed  [pairs-observed]" in section(text, "Could not be checked")
    assert "Note: forward-window selects nothing" in text
    full = shown(report, full=True)
    assert "waived: w2" in full
    assert "as it should be" in section(full, "Expected (3)")
    for finding in report.findings:
        assert finding.id in full or finding.verdict is Verdict.EXPECTED


def test_findings_of_one_kind_that_are_not_about_readers_are_one_line(report: Report) -> None:
    bare = {"first_reader": "", "readers": (), "writers": (), "options": "", "what": "not produced"}
    many = tuple(replace(report.findings[2], id=f"recipes-written:not-produced:r{index}", **bare) for index in range(30))  # type: ignore[arg-type]
    text = section(shown(replace(report, findings=many)), "Broken promises (1 cause, 90 in all)")
    assert "90 × no recipe, and 29 more like it" in text
    assert "Broken promises (30 causes, 90 in all)" in shown(replace(report, findings=many), full=True)


@pytest.mark.parametrize(
    ("status", "meaning"),
    [(0, "every promise that was checked holds"), (1, "a promise is broken"), (4, "incomplete: a required check")],
)
def test_it_ends_with_what_counts(status: int, meaning: str, report: Report) -> None:
    last = shown(replace(report, exit_status=status)).splitlines()[-2:]
    assert (
        last[0]
        == "1 fail, 2 expected, 3 waived, 4 continues, 5 no-promise, 6 not-checked; as of 2026-11-20; evidence 0123456789ab"
    )
    assert last[1].startswith(f"exit status {status}: {meaning}")


@pytest.mark.parametrize("full", [False, True])
def test_a_report_of_nothing_says_so(report: Report, full: bool) -> None:
    nothing = replace(report, outcomes={}, findings=(), not_checked=(), notes=(), counts=dict.fromkeys(Verdict, 0), exit_status=4)
    assert "nothing was judged; as of" in shown(nothing, full=full)
    assert LEGEND not in shown(nothing, full=full)


# ----------------------------------------------------------------------------------------------------------------- size


def large(report: Report) -> Report:
    """As large as the real one is to be: 33 writers and readers, all families, hundreds of findings of every sort."""
    versions = [f"1.{index}.1" for index in range(33)]
    families = ("torch-save", "torchscript", "mobile", "package", "export")
    options = ("default", "mmap", "strict", "weights-only", "little-endian")
    outcomes = {
        (f"torch-{writer}", f"torch-{reader}+cu102", family, option): Counter(dict.fromkeys(Outcome, 11))
        for writer in versions for reader in versions for family in families for option in options
    }  # fmt: skip
    findings = tuple(
        replace(
            finding,
            id=f"{finding.id}{index}",
            title=f"{finding.title} {'and so on ' * 20}{index}",
            options=f"{finding.options}{index}",
            waiver="",
        )
        for finding in report.findings
        for index in range(100)
    )
    not_checked = tuple((f"rule-{index}", "of its length " * 10, index) for index in range(1, 100))
    return replace(report, outcomes=outcomes, findings=findings, not_checked=not_checked)


def test_whatever_the_size_it_fits_on_a_page_and_says_what_it_leaves_out(report: Report) -> None:
    lines = shown(large(report)).splitlines()
    assert len(lines) <= 82
    assert not any(line.endswith("…") for line in lines)  # without a terminal nothing is cut
    assert f"  and {200 - MOST + 1}" in "\n".join(lines)
    assert sum("more: --full prints them" in line for line in lines) == 5
    assert lines[-1].startswith("exit status")


def test_on_a_terminal_a_cause_has_few_lines_that_all_fit(report: Report) -> None:
    lines = ESCAPE.sub("", shown(large(report), 80, color=True)).splitlines()
    commands = [line for line in lines if line.lstrip().startswith("show ")]
    assert all(len(line) <= 80 for line in lines[:-2] if line not in commands)  # the totals are one line, however wide
    assert any(line.endswith(" …") for line in lines)
    longest = running = 0
    for line in lines:
        running = running + 1 if line.startswith("    ") and line not in commands else 1 if " × " in line else 0
        longest = max(longest, running)
    assert longest == MOST_LINES


def test_in_full_nothing_is_left_out(report: Report) -> None:
    text = shown(large(report), full=True)
    assert "more: --full" not in text
    assert "…" not in text.replace("… timed out", "").replace("…\n", "")
    for finding in large(report).findings:
        assert finding.title.strip() in text or finding.verdict is Verdict.EXPECTED


@pytest.mark.parametrize("width", [40, 80, 120, 300])
def test_no_width_cuts_a_total_off(width: int, report: Report) -> None:
    text = shown(report, width)
    assert "6 not-checked" in text.replace("\n", " ")


def test_colour_changes_nothing_but_colour(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for full in (False, True):
        coloured = shown(report, color=True, full=full)
        assert ESCAPE.search(coloured)
        plain = shown(report, full=full)  # a terminal's lines are wrapped, those of a file are not
        assert ESCAPE.sub("", coloured).split() == plain.split()


def test_no_color_is_honoured(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    codes = {code for text in ESCAPE.findall(shown(report, color=True)) for code in text[2:-1].split(";")}
    assert codes <= {"0", "1", "2", "22"}  # bold and dim are no colours


def test_before_everything_stands_what_was_observed_now(report: Report) -> None:
    assert shown(report).splitlines()[0] == "Observed now: nothing; recorded evidence only."
    recorded = (ReaderSource("torch-1.5.1", False, "2026-11-01", 19), ReaderSource("torch-1.6.0+cpu", False, "2026-11-18", 2))
    first = "Only recorded: 2 readers, last observed 2 to 19 days before 2026-11-20 (oldest: torch-1.5.1)."
    assert (
        shown(replace(report, sources=recorded), 300).splitlines()[0] == f"Observed now: nothing; recorded evidence only. {first}"
    )
    now = (*recorded[:1], ReaderSource("torch-2.0.0", True, "2026-11-20", 0))
    assert shown(replace(report, sources=now), 300).splitlines()[0] == (
        "Observed now: torch-2.0.0. Only recorded: 1 reader, last observed 19 days before 2026-11-20."
    )
    assert "  torch-1.5.1: observed 2026-11-01, 19 days before 2026-11-20\n" in shown(replace(report, sources=now), full=True)


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ((19, 2), "last observed 2 to 19 days before 2026-11-20"),
        ((-2, -19), "last observed 2 to 19 days after 2026-11-20"),
        ((-1, -1), "last observed 1 day after 2026-11-20."),
        ((3, -4), "last observed from 3 days before to 4 days after 2026-11-20"),
        ((0, -4), "last observed 0 to 4 days after 2026-11-20"),
        ((0, 0), "last observed 0 days before 2026-11-20."),
    ],
)
def test_no_number_of_days_is_negative(report: Report, ages: tuple[int, int], said: str) -> None:
    sources = tuple(ReaderSource(f"torch-1.{number}.0", False, "2026-11-01", days) for number, days in enumerate(ages))
    text = shown(replace(report, sources=sources), 300, full=True)
    assert said in text.splitlines()[0]
    assert not re.search(r"-\d+ days?", text)


def test_what_comes_next_is_how_many_questions_were_asked(report: Report) -> None:
    title, *rows = [line.split() for line in shown(report).split("\n\n")[1].splitlines()]
    assert title[:6] == ["Were", "the", "values", "correct?", "13", "checks,"]
    assert rows == [["reader", "asked", "pass", "fail"], ["newer", "8", "7", "1"], ["own", "5", "5", "0"]]


def test_bookkeeping_is_counted_apart(report: Report) -> None:
    assert "Internal consistency (not about releases): 99 pass\n" in shown(report)
    full = shown(report, full=True)
    assert "Values, under all load options (an older reader may refuse): 12 pass, 1 fail\n" in full
    assert "Other promises: 2 fail\n" in full


def test_why_nothing_was_promised_is_said_in_full(report: Report) -> None:
    full = shown(report, full=True)
    assert "  1 × options: it is not available yet; 2.0.0 can be run  [probes-hold]\n" in full
    assert "  3 × the rule itself says so  [newer-computes]\n" in full
    assert "it is not available yet" not in shown(report)


def test_what_continues_is_one_line(report: Report) -> None:
    item = next(finding for finding in report.findings if finding.verdict is Verdict.WAIVED and finding.waiver)
    more = tuple(
        replace(item, verdict=Verdict.CONTINUES, id=f"x{index}", waiver=waiver, count=5)
        for index, waiver in enumerate(("w1", "w1", "w2"))
    )
    text = shown(replace(report, findings=(*report.findings, *more)))
    assert "Continues: 15 cells of 2 waivers, with the same cause and the same difference" in text
    assert "Continues" not in shown(report)
