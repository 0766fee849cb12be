"""The behavior of each release for each deprecated feature, one mark per release: for a terminal and as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from torch_compat.escapes import escaped_lines
from torch_compat.judging.timelines import State
from torch_compat.policy.timeline import TimelineState
from torch_compat.report.breaks import order
from torch_compat.words import american, count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_compat.judging.timelines import TimelineRow

__all__ = ["LEGEND", "MARKS", "deprecation_lines", "deprecations_md"]

MARKS: Final[dict[State, str]] = {
    State.ABSENT: " ",
    State.SILENT: "·",
    State.WARNED: "w",
    State.ERROR: "E",
    State.REMOVED: "x",
    State.NEW: "N",
    State.CANNOT_TELL: "?",
}
LEGEND: Final = (
    "(blank) not available yet  · works without a warning  w warns  E raises  x removed  N new behavior  ? unknown  - not probed"
)
_NOT_ASKED: Final = "-"


def deprecation_lines(rows: Sequence[TimelineRow]) -> list[str]:
    """A table for a terminal: deprecations by releases, whose versions are written vertically, and the remarks on each."""
    releases = _releases(rows)
    left = max((len(row.history.deprecation.id) for row in rows), default=0)
    high = max(map(len, releases), default=0)
    lines = [f"{'':{left}}  {''.join(release.rjust(high)[line] for release in releases)}".rstrip() for line in range(high)]
    lines += [f"{row.history.deprecation.id:{left}}  {_marks(row, releases)}  {row.verdict}" for row in rows]
    return [*lines, "", LEGEND]


def deprecations_md(rows: Sequence[TimelineRow]) -> str:
    """A document: a table of all deprecations, and one line for each violation of a timeline."""
    releases = _releases(rows)
    counts = Counter(row.verdict for row in rows)
    total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in TimelineState if counts[verdict])
    lines = [
        "# State of deprecated features",
        "",
        f"{count_of(len(rows), 'deprecation')}, {count_of(len(releases), 'release')}: {total}.",
        "",
        "```",
        *deprecation_lines(rows),
        "```",
        "",
        "| deprecation | kind | events | verdict |",
        "|---|---|---|---|",
    ]
    for row in rows:
        deprecation = row.history.deprecation
        events = ", ".join(f"{occurrence.event.what} {occurrence.event.release}" for occurrence in row.snapshot.happened)
        lines.append(f"| {_cell(deprecation.subject)} | {american(deprecation.kind)} | {events} | {row.verdict} |")
    for title, promised in (("Broken timelines", True), ("Deviations from the policy before it was in force", False)):
        messages = list(_said(rows, promised=promised))
        lines += ["", f"## {title}", "", *messages] if messages else []
    return "\n".join(escaped_lines(line) for line in lines) + "\n"


def _releases(rows: Sequence[TimelineRow]) -> list[str]:
    return sorted({release for row in rows for release in row.states}, key=order)


def _marks(row: TimelineRow, releases: Sequence[str]) -> str:
    return "".join(MARKS[row.states[release].state] if release in row.states else _NOT_ASKED for release in releases)


def _said(rows: Sequence[TimelineRow], *, promised: bool) -> Iterator[str]:
    for row in rows:
        for breach in row.snapshot.breaches:
            if breach.promised is promised:
                yield f"- **{row.history.deprecation.id}**: {breach.text}"
        if promised:
            yield from (f"- **{row.history.deprecation.id}**: {why}" for why in row.why)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
