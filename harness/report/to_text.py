"""A report for a person: writers by readers, broken promises, silent changes, what is waived, what could not be checked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from packaging.version import Version
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.rules.judgement import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from harness.rules.judge import Finding, Report

__all__ = ["print_report"]

# One mark per outcome; same and close share one, since both keep the promise.
MARKS = {
    Outcome.SAME: ("✓", "green"),
    Outcome.CLOSE: ("✓", "green"),
    Outcome.DIFFERENT: ("≠", "bold red"),
    Outcome.REFUSED: ("✗", "yellow"),
    Outcome.RAISED: ("!", "yellow"),
    Outcome.RELAXED: ("~", "cyan"),
    Outcome.UNSTABLE: ("?", "bold red"),
    Outcome.CRASHED: ("†", "bold red"),
    Outcome.TIMED_OUT: ("…", "bold red"),
    Outcome.UNSUPPORTED: ("-", "dim"),
    Outcome.UNAVAILABLE: ("-", "dim"),
}
GAP = 2  # columns of space between the columns of a table
FORWARD = frozenset({"older-never-differs", "forward-window"})
LEGEND = "✓ same or close   ≠ different   ✗ refused   ! raised   ~ relaxed   † crashed   … timed out   ? unstable"
MEANING = {
    0: ("every promise that was checked holds, or its breach is waived", "bold green"),
    1: ("a promise is broken", "bold red"),
    4: ("incomplete: something that was required could not be checked", "bold yellow"),
}


def print_report(report: Report, console: Console) -> None:
    """Print a report.

    Parameters:
        console: decides on colour and width.
    """
    by_writer, by_options = _tables(report)
    _table(console, "Writers (rows) read by releases (columns), default options", by_writer, _version)
    _table(console, "Other load options (rows), all writers together, read by releases (columns)", by_options, str)
    if by_writer:
        console.print(Text(LEGEND, style="dim"))
    silent = [finding for finding in report.findings if _silent(finding)]
    known = [finding for finding in report.findings if finding.verdict is not Verdict.FAIL and finding not in silent]
    failed = [finding for finding in report.findings if finding.verdict is Verdict.FAIL]
    _section(console, "Broken promises", failed, "bold red", details=True)
    _section(console, "Values that changed with no version bump and no upgrader", silent, "bold magenta", details=True)
    waived = [finding for finding in known if finding.verdict is Verdict.WAIVED]
    _section(console, "Waived: known, explained and counted", waived, "bold", details=False)
    expected = [finding for finding in known if finding.verdict is Verdict.EXPECTED]
    _section(console, "Expected", expected, "bold", details=False)
    if report.not_checked:
        console.print()
        console.print(Text("Could not be checked", style="bold yellow"))
        for what, why, count in report.not_checked:
            _print(console, Text(f"{count} × {why}  [{what}]"), 2)
    for note in report.notes:
        console.print()
        _print(console, Text(f"Note: {note}", style="dim"), 0)
    console.print()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items() if count)
    console.print(Text(f"{counts or 'nothing was judged'}; as of {report.as_of}; evidence {report.evidence[:12]}"))
    meaning, style = MEANING[report.exit_status]
    console.print(Text(f"exit status {report.exit_status}: {meaning}", style=style))


def _silent(finding: Finding) -> bool:
    return finding.rule in {"newer-computes", *FORWARD} and finding.what == Outcome.DIFFERENT and not finding.bump


Marks = Counter[tuple[str, str]]
Cells = dict[tuple[str, str], Marks]


def _tables(report: Report) -> tuple[Cells, Cells]:
    """Marks by writer and reader under default options; and by options and reader for the others."""
    by_writer: Cells = {}
    by_options: Cells = {}
    for (writer, reader, _, options), counts in report.outcomes.items():
        key = (writer, reader) if options == "default" else (options, reader)
        marks = (by_writer if options == "default" else by_options).setdefault(key, Counter())
        for outcome, count in counts.items():
            marks[MARKS[outcome]] += count
    return by_writer, by_options


def _table(console: Console, title: str, cells: Cells, order: Callable[[str], Any]) -> None:
    """Rows by readers. Where the console is too narrow for all readers, several tables: no count is ever cut off."""
    if not cells:
        return
    rows = sorted({row for row, _ in cells}, key=order)
    names = [Text(), *(Text(row.removeprefix("torch-")) for row in rows)]
    columns = [
        [Text(reader.removeprefix("torch-"), style="bold"), *(_cell(cells.get((row, reader), Counter())) for row in rows)]
        for reader in sorted({reader for _, reader in cells}, key=_version)
    ]
    console.print(Text(title, style="bold"))
    for part in _parts(columns, console.width - _width(names)):
        table = Table(pad_edge=False, box=None, padding=(0, GAP, 0, 0), show_header=False)
        for _ in (names, *part):
            table.add_column(no_wrap=True)
        for line in zip(names, *part, strict=True):
            table.add_row(*line)
        console.print(table)
        console.print()


def _width(column: list[Text]) -> int:
    return max(text.cell_len for text in column) + GAP


def _parts(columns: list[list[Text]], room: int) -> Iterator[list[list[Text]]]:
    """Runs of columns that fit side by side, at least one each."""
    part: list[list[Text]] = []
    for column in columns:
        if part and sum(map(_width, [*part, column])) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _cell(counts: Marks) -> Text:
    order = {mark: index for index, mark in enumerate(dict.fromkeys(MARKS.values()))}
    text = Text()
    for (mark, style), count in sorted(counts.items(), key=lambda item: order[item[0]]):
        text.append(f"{count}{mark}", style=style).append(" ")
    return text or Text("·", style="dim")


def _version(name: str) -> Version:
    return Version(name.removeprefix("torch-"))


def _section(console: Console, title: str, findings: list[Finding], style: str, *, details: bool) -> None:
    if not findings:
        return
    console.print()
    console.print(Text(f"{title} ({len(findings)})", style=style))
    for finding in findings:
        line = Text(f"{finding.count} × ", style="bold")
        line.append(finding.cause, style="not bold").append(f"  [{_where(finding)}]", style="dim not bold")
        _print(console, line, 2)
        if details:
            lines = [f"cause  {finding.id}"]
            if finding.writers:
                lines.append(f"in     programs of {', '.join(finding.writers)}, read by {', '.join(finding.readers)}")
            if finding.bump:
                lines.append(f"by     {finding.bump}, which announces a change of its operators")
            lines.append(f"show   {finding.reproduce}")
            for text in lines:  # never wrapped: they are there to be copied
                console.print(Text(" " * 6 + text, style="dim"), soft_wrap=True)


def _print(console: Console, text: Text, indent: int) -> None:
    """One paragraph: wrapped for a terminal, one line for everything that reads lines."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)


def _where(finding: Finding) -> str:
    parts = [finding.rule]
    if finding.first_reader:
        parts.append(f"{'up to' if finding.rule in FORWARD else 'since'} {finding.first_reader}")
    if finding.options not in {"", "default"}:
        parts.append(f"with {finding.options}")
    if finding.waiver:
        parts.append(f"waived: {finding.waiver}")
    return ", ".join(parts)
