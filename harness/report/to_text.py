"""A report for a person: writers by readers, broken promises, silent changes, what is waived, what could not be checked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from packaging.version import Version
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.rules.judgement import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

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
FORWARD = frozenset({"older-never-differs", "forward-window"})
LEGEND = "✓ same or close   ≠ different   ✗ refused   ! raised   ~ relaxed   † crashed   … timed out   ? unstable"
MEANING = {
    0: ("all promises hold", "bold green"),
    1: ("a promise is broken", "bold red"),
    4: ("incomplete: something that was required could not be checked", "bold yellow"),
}


def print_report(report: Report, console: Console) -> None:
    """Print a report.

    Parameters:
        console: decides on colour and width.
    """
    for title, options in _tables(report):
        console.print(_matrix(report, title, options))
    console.print(Text(LEGEND, style="dim"))
    failed = [finding for finding in report.findings if finding.verdict is Verdict.FAIL]
    _section(console, "Broken promises", failed, "bold red", detailed=True)
    silent = [finding for finding in report.findings if _silent(finding)]
    _section(console, "Values that changed with no version bump and no upgrader", silent, "bold magenta", detailed=False)
    waived = [finding for finding in report.findings if finding.verdict is Verdict.WAIVED and not _silent(finding)]
    _section(console, "Waived: known, explained and counted", waived, "bold", detailed=False)
    expected = [finding for finding in report.findings if finding.verdict is Verdict.EXPECTED]
    _section(console, "Expected", expected, "bold", detailed=False)
    if report.not_checked:
        console.print()
        console.print(Text("Could not be checked", style="bold yellow"))
        for what, why, count in report.not_checked:
            console.print(Padding(Text(f"{count} × {why}  [{what}]"), (0, 0, 0, 2)))
    for note in report.notes:
        console.print()
        console.print(Text(f"Note: {note}", style="dim"))
    console.print()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items() if count)
    console.print(Text(f"{counts or 'nothing was judged'}; as of {report.as_of}; evidence {report.evidence[:12]}"))
    meaning, style = MEANING[report.exit_status]
    console.print(Text(f"exit status {report.exit_status}: {meaning}", style=style))


def _silent(finding: Finding) -> bool:
    return finding.rule in {"newer-computes", *FORWARD} and finding.what == Outcome.DIFFERENT and not finding.bump


def _tables(report: Report) -> Iterable[tuple[str, str]]:
    options = sorted({key[3] for key in report.outcomes}, key=lambda name: (name != "default", name))
    for name in options:
        yield (
            ("Writers (rows) read by releases (columns)" if name == "default" else f"The same with the load options {name!r}"),
            name,
        )


def _matrix(report: Report, title: str, options: str) -> Table:
    cells: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for (writer, reader, _, name), counts in report.outcomes.items():
        if name == options:
            cell = cells.setdefault((writer, reader), Counter())
            for outcome, count in counts.items():
                cell[MARKS[outcome]] += count
    writers = sorted({writer for writer, _ in cells}, key=_version)
    readers = sorted({reader for _, reader in cells}, key=_version)
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False, box=None, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for reader in readers:
        table.add_column(reader.removeprefix("torch-"), no_wrap=False)
    for writer in writers:
        table.add_row(writer.removeprefix("torch-"), *(_cell(cells.get((writer, reader), Counter())) for reader in readers))
    return table


def _cell(counts: Counter[tuple[str, str]]) -> Text:
    order = {mark: index for index, mark in enumerate(dict.fromkeys(MARKS.values()))}
    text = Text()
    for (mark, style), count in sorted(counts.items(), key=lambda item: order[item[0]]):
        text.append(f"{count}{mark}", style=style).append(" ")
    return text or Text("·", style="dim")


def _version(name: str) -> Version:
    return Version(name.removeprefix("torch-"))


def _section(console: Console, title: str, findings: list[Finding], style: str, *, detailed: bool) -> None:
    if not findings:
        return
    console.print()
    console.print(Text(f"{title} ({len(findings)})", style=style))
    for finding in findings:
        when = "up to" if finding.rule in FORWARD else "since"
        since = f", {when} {finding.first_reader}" if finding.first_reader else ""
        since += f", with {finding.options}" if finding.options not in {"", "default"} else ""
        line = Text(f"{finding.count} × ", style="bold")
        line.append(finding.cause, style="not bold").append(f"  [{finding.rule}{since}]", style="dim not bold")
        console.print(Padding(line, (0, 0, 0, 2)))
        if detailed:
            details = [f"cause     {finding.id}", f"smallest  {finding.smallest}", f"show      {finding.reproduce}"]
            if finding.bump:
                details.insert(1, f"announced by {finding.bump}")
            console.print(Padding(Text("\n".join(details), style="dim"), (0, 0, 0, 6)))
