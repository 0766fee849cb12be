"""A report as text: results by family, broken promises, silent changes, what is waived, what could not be checked.

Unless the full report is requested, it fits on one page, whatever the size of the corpus: omitted entries are counted, and the last
lines are the totals.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Asks, Verdict
from torch_compat.report.breaks import DIRECTIONS, FORWARD, KNOWN, LEGEND, MARKS, breaks, direction, is_reference
from torch_compat.report.matrix import matrix
from torch_compat.report.paragraphs import paragraph, print_table
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import ReaderSource, Report
    from torch_compat.report.breaks import BreakCause

__all__ = ["ASKED", "QUESTION", "print_report", "questions", "summary_text"]

MOST = 5  # maximum number of causes, or lines, of a section of the short report
MOST_LINES = 3  # maximum number of lines of a cause, on a terminal
COLUMNS = {
    "same": {Outcome.SAME, Outcome.CLOSE},
    "differs": {Outcome.DIFFERENT},
    "refused": {Outcome.REFUSED},
    "raised": {Outcome.RAISED},
    "crashed": {Outcome.CRASHED},
    "unstable": {Outcome.UNSTABLE, Outcome.TIMED_OUT},
    "relaxed": {Outcome.RELAXED},
    "none": {Outcome.UNSUPPORTED, Outcome.UNAVAILABLE},
}
QUESTION = "one per reader and fixture loaded with default options"
READERS = {"backward": "newer", "own": "own", "forward": "older", "synthetic": "synthetic"}  # reader roles, keyed by direction
ASKED = {
    Asks.VALUES: "Values, under all load options (an older reader may refuse)",
    Asks.LOADING: "Loading, for the same cells",
    Asks.OTHER: "Other promises",
    Asks.BOOKKEEPING: "Internal consistency (not about releases)",
}
MEANING = {
    0: ("every promise that was checked holds, or the violation is waived", "bold green"),
    1: ("a promise is broken", "bold red"),
    4: ("incomplete: a required check could not be run", "bold yellow"),
}


def print_report(report: Report, console: Console, *, full: bool = False) -> None:
    """Print a report.

    Parameters:
        console: determines colors and width.
        full: print every finding, and the matrix of every family, instead of one page.
    """
    _sources(report, console, full=full)
    _questions(report, console)
    _summary(report, console)
    if full and report.outcomes:
        for title, lines in matrix(report):
            console.print()
            console.print(Text(title, style="bold"))
            for line in lines:
                console.print(Text(line), soft_wrap=True)
        console.print()
        console.print(Text(LEGEND, style="dim"))
    broken = breaks(report, (Verdict.FAIL,), brief=not full)
    known = breaks(report, KNOWN)
    silent = [item for item in known if item.silent]
    waived = [cause for cause in known if not cause.silent and not cause.of_operators]
    operators = [cause for cause in known if cause.of_operators]
    _section(console, "Broken promises", broken, "bold red", full=full, command=True)
    _section(
        console,
        "Values that changed without a version bump and without an upgrader",
        silent,
        "bold magenta",
        full=full,
        command=full,
    )
    _section(console, "Waived: known, explained and counted", waived, "bold", full=full, command=False)
    _section(console, "Waived: operators that changed without an upgrader", operators, "bold", full=full, command=False)
    _continuing(console, [finding for finding in report.findings if finding.verdict is Verdict.CONTINUES])
    _expected(console, [finding for finding in report.findings if finding.verdict is Verdict.EXPECTED], full=full)
    if report.not_checked:
        console.print()
        console.print(Text("Could not be checked", style="bold yellow"))
        lines = [f"{count} × {why}  [{what}]" for what, why, count in report.not_checked]
        _lines(console, lines, full=full)
    if full and report.no_promise:
        console.print()
        console.print(Text(f"No promise ({report.counts[Verdict.NO_PROMISE]})", style="bold"))
        _lines(
            console,
            [f"{count} × {why or 'the rule itself says so'}  [{what}]" for what, why, count in report.no_promise],
            full=True,
        )
    if report.notes:
        console.print()
        for note in report.notes:
            _print(console, Text(f"Note: {note}", style="dim"), 0, full=full)
    console.print()
    for asks, what in ASKED.items():
        counts = _listed(report.asked.get(asks, {}))
        if counts and (full or asks is Asks.BOOKKEEPING):
            console.print(Text(f"{what}: {counts}", style="dim"))
    console.print(
        Text(f"{_listed(report.counts) or 'nothing was judged'}; as of {report.as_of}; evidence {report.evidence[:12]}")
    )
    modelled = _listed(report.modelled)
    if modelled:
        console.print(Text(f"of these, based only on the reference reader: {modelled}"))
    meaning, style = MEANING[report.exit_status]
    console.print(Text(f"exit status {report.exit_status}: {meaning}", style=style))


def _listed(counts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def questions(report: Report) -> list[tuple[str, ...]]:
    """The number of independent checks, as table rows with a header; empty if there were none."""
    asked = {direction: counts for direction, counts in report.questions.items() if any(counts.values())}
    shown = [verdict for verdict in Verdict if any(counts[verdict] for counts in asked.values())]
    rows = [
        (READERS[direction], str(sum(counts.values())), *(str(counts[verdict]) for verdict in shown))
        for direction, counts in asked.items()
    ]
    return [("reader", "asked", *map(str, shown)), *rows] if rows else []


def _sources(report: Report, console: Console, *, full: bool) -> None:
    """Print the sources of the results: what was observed now, what is only recorded, and how old the records are."""
    now = [item.reader for item in report.sources if item.now]
    recorded = [item for item in report.sources if not item.now]
    shown = now if full else now[:MOST]
    more = f" and {len(now) - len(shown)} more" if len(now) > len(shown) else ""
    text = f"Observed now: {', '.join(shown)}{more}." if now else "Observed now: nothing; recorded evidence only."
    if recorded:
        newest, oldest = (choose(recorded, key=lambda item: item.age_days) for choose in (min, max))
        text += f" Only recorded: {count_of(len(recorded), 'reader')}, last observed {_ages(newest, oldest, report.as_of)}"
        text += f" (oldest: {oldest.reader})." if newest.age_days != oldest.age_days else "."
    paragraph(console, text, "bold" if now else "yellow")
    if full:
        for source in recorded:
            console.print(
                Text(f"  {source.reader}: observed {source.observed}, {_ages(source, source, report.as_of)}", style="dim"),
                soft_wrap=True,
            )
    console.print()


def _ages(newest: ReaderSource, oldest: ReaderSource, as_of: str) -> str:
    """How long before or after the day of judging readers were observed."""
    ages = (newest.age_days, oldest.age_days)
    if min(ages) < 0 < max(ages):
        return f"from {count_of(oldest.age_days, 'day')} before to {count_of(-newest.age_days, 'day')} after {as_of}"
    first, last = sorted(map(abs, ages))
    days = f"{first} to " if first != last else ""
    return f"{days}{count_of(last, 'day')} {'after' if min(ages) < 0 else 'before'} {as_of}"


def _questions(report: Report, console: Console) -> None:
    """Print whether values were correct, with each check counted once and nothing else included."""
    rows = questions(report)
    if not rows:
        return
    total = sum(sum(counts.values()) for counts in report.questions.values())
    console.print(Text(f"Were the values correct? {count_of(total, 'check')}, {QUESTION}", style="bold"))
    print_table(console, rows, keys=1)
    console.print()


def summary_text(report: Report) -> str:
    """The first table of a report, as plain text: cells under default options, by family and direction."""
    stream = io.StringIO()
    _summary(report, Console(file=stream, width=120, color_system=None, highlight=False, markup=False, emoji=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n\n", 1)[0].splitlines())


# -------------------------------------------------------------------------------------------------------------- summary


def _summary(report: Report, console: Console) -> None:
    """Print cells by family and direction under default options; then by other load options."""
    families: dict[tuple[str, str], Counter[Outcome]] = {}
    options: dict[tuple[str, str], Counter[Outcome]] = {}
    for (writer, reader, family, option), counts in report.outcomes.items():
        if option == "default":
            families.setdefault((family, direction(writer, reader)), Counter()).update(counts)
        else:
            options.setdefault((option, ""), Counter()).update(counts)
    if families:
        rows = [(*key, families[key]) for key in sorted(families, key=lambda key: (key[0], DIRECTIONS.index(key[1])))]
        _counts(console, _title(report), ("family", "reader"), rows)
    if options:
        console.print()
        _counts(console, "Other load options, for all families, writers and readers", ("options", ""), [
            (*key, options[key]) for key in sorted(options)
        ])  # fmt: skip


def _title(report: Report) -> str:
    writers = {writer for writer, _, _, _ in report.outcomes}
    readers = {reader for _, reader, _, _ in report.outcomes if not is_reference(reader)}
    also = " and the reference reader" if any(is_reference(reader) for _, reader, _, _ in report.outcomes) else ""
    return (
        f"Cells for {count_of(len(writers), 'writer')} and {count_of(len(readers), 'reader')}{also} with default options, "
        "by age of the reader relative to the writer"
    )


def _counts(console: Console, title: str, names: tuple[str, str], rows: list[tuple[str, str, Counter[Outcome]]]) -> None:
    shown = {name: of for name, of in COLUMNS.items() if any(counts[outcome] for *_, counts in rows for outcome in of)}
    marks = {name: MARKS[next(outcome for outcome in Outcome if outcome in of)] for name, of in shown.items()}
    table: list[list[str | Text]] = [[*names, "cells", *(Text(f"{name}{marks[name][0]}", style="bold") for name in shown)]]
    before = ""
    for first, second, counts in rows:
        numbers = [sum(counts[outcome] for outcome in of) for of in shown.values()]
        cells = [
            Text(str(number) if number else "·", style=marks[name][1] if number else "dim")
            for name, number in zip(shown, numbers, strict=True)
        ]
        table.append(["" if first == before else first, second, str(counts.total()), *cells])
        before = first
    console.print(Text(title, style="bold"))
    print_table(console, table, keys=2)


# ------------------------------------------------------------------------------------------------------------- sections


def _section(console: Console, title: str, value: list[BreakCause], style: str, *, full: bool, command: bool) -> None:
    if not value:
        return
    console.print()
    console.print(
        Text(
            f"{title} ({count_of(len(value), 'cause')}, {sum(item.count for item in value)} in all), newest first",
            style=style,
        )
    )
    for cause in value if full else value[:MOST]:
        where = f"  [{_where(cause) if full else cause.since or cause.findings[0].rule}]"
        line = Text(f"{cause.count} × ", style="bold")
        line.append(cause.title, style="not bold").append(where, style="dim not bold")
        _print(console, line, 2, full=full)
        lines = []
        if full:
            lines = [f"cause  {finding.id}" for finding in cause.findings]
            if cause.merged("writers"):
                lines.append(
                    f"in     programs from {', '.join(cause.merged('writers'))}, read by {', '.join(cause.merged('readers'))}"
                )
            if cause.bump:
                lines.append(f"due to {cause.bump}, which marks a change to its operators")
        if command:
            lines.append(f"show   {cause.witness.reproduce}")
        for text in lines:  # never wrapped or shortened, so that they can be copied
            console.print(Text(" " * 6 + text, style="dim"), soft_wrap=True)
    _more(console, len(value) - MOST, full=full)


def _continuing(console: Console, value: list[Finding]) -> None:
    """Print one line for all known findings that continue with the same difference in readers not yet recorded when they were accepted."""
    if value:
        waivers = len({finding.waiver for finding in value})
        console.print()
        text = f"Continues: {count_of(sum(finding.count for finding in value), 'cell')} of {count_of(waivers, 'waiver')}, with the same cause and the same difference"
        console.print(Text(text, style="bold"))


def _expected(console: Console, value: list[Finding], *, full: bool) -> None:
    """Print what was expected; the short form has one line per set of options, or per rule for findings not about cells."""
    if not value:
        return
    console.print()
    console.print(Text(f"Expected ({sum(finding.count for finding in value)})", style="bold"))
    if full:
        _lines(console, [f"{finding.count} × {finding.cause}  [{_place(finding)}]" for finding in value], full=True)
        return
    short: Counter[str] = Counter()
    for item in value:
        short[f"{item.what} with {item.options}" if item.options else f"{item.what}  [{item.rule}]"] += item.count
    _lines(console, [f"{count} × {what}" for what, count in short.items()], full=False)


def _lines(console: Console, lines: list[str], *, full: bool) -> None:
    for line in lines if full else lines[:MOST]:
        _print(console, Text(line), 2, full=full)
    _more(console, len(lines) - MOST, full=full)


def _more(console: Console, left: int, *, full: bool) -> None:
    if left > 0 and not full:
        console.print(Text(f"  and {left} more: --full prints them", style="dim"))


def _print(console: Console, text: Text, indent: int, *, full: bool) -> None:
    paragraph(console, Text(" " * indent).append_text(text), most=0 if full else MOST_LINES)


def _where(cause: BreakCause) -> str:
    parts = [*dict.fromkeys(finding.rule for finding in cause.findings), cause.since]
    options = sorted({finding.options for finding in cause.findings} - {"", "default"})
    if options:
        parts.append(f"with {', '.join(options)}")
    if cause.waiver is not None:
        parts.append(f"waived: {cause.waiver.id}")
    return ", ".join(filter(None, parts))


def _place(finding: Finding) -> str:
    began = f"{'up to' if finding.rule in FORWARD else 'since'} {finding.first_reader}" if finding.first_reader else ""
    options = "" if finding.options in {"", "default"} else f"with {finding.options}"
    return ", ".join(filter(None, [finding.rule, began, options]))
