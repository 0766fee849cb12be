"""Shared wording of all formats of a release report, so that they say the same and count the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.report.release.items import Section
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.operator_changes import PairCounts
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["COMPLETE", "TITLES", "counted", "facts", "head", "notes_of_report", "state"]

TITLES: Final = {
    Section.SILENT: "Silent changes in results",
    Section.REFUSED: "Refused or raised",
    Section.CRASHED: "Crashes and results that vary",
    Section.ACCEPTED: "Accepted where an error was previously raised",
    Section.OPERATORS: "Operators that no longer accept the same calls",
    Section.FORMATS: "Formats, and archives that the older release does not load",
    Section.DEPRECATIONS: "Deprecations",
    Section.MENDED: "Fixed",
}
COMPLETE: Final = "All records that this report needs are available."


def head(report: ReleaseReport) -> str:
    """The description of the comparison."""
    items = count_of(len(report.items), "item")
    return f"torch {report.release} ({report.day}) compared with {report.since}: {items}; {count_of(report.compared, 'archive')} tested with both"


def counted(report: ReleaseReport, item: ReleaseItem) -> str:
    """How many records show an item, in words."""
    message = (
        _some(item.newer, "cell", f" of {report.release}"),
        _some(item.older, "cell", f" of {report.since} with newer archives"),
        _some(len(item.archives), "archive"),
        _some(len(item.operators), "operator"),
    )
    return ", ".join(filter(None, message))


def _some(count: int, what: str, of: str = "") -> str:
    return f"{count_of(count, what)}{of}" if count else ""


def state(item: ReleaseItem) -> str:
    """Whether an item needs attention, in words."""
    if item.open:
        return "not explained"
    waivers = [name.removeprefix("waiver:") for part in item.parts for name in part.names if name.startswith("waiver:")]
    return f"explained by {', '.join(dict.fromkeys(waivers))}" if waivers else "explained"


def facts(report: ReleaseReport, item: ReleaseItem) -> Iterator[tuple[str, str]]:
    """Everything known about an item, by name."""
    yield "since", item.when
    if item.disagree:
        yield from (
            ("record", f"{part.source}: after {part.span.after or 'an unknown release'}, by {part.span.by}")
            for part in item.parts
        )
    if counts := counted(report, item):
        yield "shown by", counts
    shown = item.shown
    if shown is not None:
        options = "" if shown.options == "default" else f" ({shown.options})"
        yield "archive", f"{shown.fixture}{options}"
        yield report.since, shown.before
        yield report.release, shown.after
        yield "show", shown.command
    for part in item.parts:
        if part.source in {"deprecations", "changes", "formats"}:
            yield part.source.removesuffix("s"), part.says
    if item.announced:
        yield "announced by", item.announced
    yield from (("do", text) for text in item.advice)
    yield from (("why", text) for text in item.why)
    if item.operators:
        yield "operators", ", ".join(item.operators)
    yield "state", state(item)
    if item.findings:
        yield "findings", ", ".join(item.findings)
    yield "id", item.id


def notes_of_report(report: ReleaseReport) -> Iterator[str]:
    """The deprecations in progress, and the counts of operators."""
    late = [item.id for item in report.running if item.overdue]
    if report.running:
        yield f"{count_of(len(report.running), 'deprecation is under way', 'deprecations are under way')}: torch-compat deprecations --as-of {report.release}"
    if late:
        yield f"{len(late)} of them should have ended: {', '.join(late)}"
    for pair in report.operators:
        yield f"operators, {pair.older} to {pair.newer}: {count_of(pair.lost, 'schema')} removed or changed; {_broken(pair)}"


def _broken(pair: PairCounts) -> str:
    """How many schemas no longer work, with what was done about them."""
    if pair.broken is None:
        return "no promise"
    own = pair.broken - pair.carried
    text = f"{own or 'none'} of them {'break' if own > 1 else 'breaks'} old programs"
    if pair.carried:
        more, do = ("1 more schema", "does") if pair.carried == 1 else (f"{pair.carried} more schemas", "do")
        text += f", and so {do} {more}" if own else f", but {more} {do}"
        text += f", already missing from the incomplete records of {pair.older}"
    return f"{text} ({pair.upgraded} with an upgrader, {pair.waived} waived)" if pair.broken else text
