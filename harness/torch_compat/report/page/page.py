"""The main file: what each release broke, the matrix of writers and readers, and the timeline of deprecations."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.timelines import rows as timelines_of
from torch_compat.releases.release import public
from torch_compat.report.breaks import LEGEND, order
from torch_compat.report.page.details import (
    MAIN,
    anchor,
    cause_files,
    deprecation_files,
    pair_files,
    release_files,
)
from torch_compat.report.page.markup import SCALE, document, scrolled, tag
from torch_compat.report.page.pairs import pairs_of
from torch_compat.report.release.items import Section, short
from torch_compat.report.release.report import release_report, reported_releases
from torch_compat.report.release.words import TITLES
from torch_compat.report.to_text import MEANING
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Finding, Named
    from torch_compat.judging.judge import Report
    from torch_compat.judging.timelines import TimelineRow
    from torch_compat.policy.timeline import Axis, Happened
    from torch_compat.report.page.details import Address
    from torch_compat.report.page.markup import Node
    from torch_compat.report.page.pairs import PairCells, Pairs
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["DATA", "DIGITS", "MOST_ITEMS", "page", "spans"]

Key = TypeVar("Key")
DATA: Final = "d-"
"""Prefix of the folder with the detail pages; a digest of their contents follows. It is short because each cell contains
it."""
DIGITS: Final = 8
LONGEST_TITLE: Final = 160
"""Maximum length of an item's title in the main file, in characters."""
MOST_ITEMS: Final = 5
"""Maximum number of items per section of a release in the main file; the release's own file has all of them."""
ENDS: Final = frozenset({"error", "removed", "switched", "withdrawn", "restored"})


def page(
    evidence: Evidence, report: Report, named: Sequence[Named], step: Callable[[int, int], None] | None = None
) -> dict[str, str]:
    """All files of the page by path, the main one last: the same evidence gives the same bytes.

    The detail files are in a folder named after their digest, so a main file never shows the details of
    another run.
    """
    findings: dict[str, list[Finding]] = {}
    for finding in report.findings:
        findings.setdefault(finding.id, []).append(finding)
    pairs = pairs_of(evidence, report, named)
    names = reported_releases(evidence)
    releases = []
    for number, name in enumerate(reversed(names)):
        if step is not None:
            step(number, len(names))
        releases.append(release_report(evidence, report, named, name))
    deprecations = timelines_of(evidence, dt.date.fromisoformat(report.as_of))
    of_causes, causes = cause_files(report)
    of_pairs, cells = pair_files(pairs, findings, causes)
    of_releases, items = release_files(releases, causes)
    of_deprecations, timelines = deprecation_files(deprecations)
    beside = {**of_pairs, **of_causes, **of_releases, **of_deprecations}
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(beside.items())).encode()).hexdigest()[:DIGITS]
    folder = f"{DATA}{digest}"
    places = Places(_within(folder, cells), _within(folder, causes), _within(folder, items), _within(folder, timelines))
    return {
        **{f"{folder}/{name}": text for name, text in sorted(beside.items())},
        MAIN: _main(report, pairs, releases, deprecations, places),
    }


def _within(folder: str, places: Mapping[Key, Address]) -> dict[Key, str]:
    return {key: f"{folder}/{place}" for key, place in places.items()}


@dataclass(frozen=True)
class Places:
    """The addresses in the detail files to which the main file links.

    Attributes:
        cells: by writer and reader.
        causes: by the id of a finding.
        items: by release and id of an item; ``#`` and a section, or "" for the whole release.
        timelines: by the id of a deprecation.
    """

    cells: Mapping[tuple[str, str], str]
    causes: Mapping[str, str]
    items: Mapping[tuple[str, str], str]
    timelines: Mapping[str, str]


def _main(
    report: Report,
    pairs: Pairs,
    releases: Sequence[ReleaseReport],
    deprecations: Sequence[TimelineRow],
    places: Places,
) -> str:
    parts = {
        "matrix": ("Matrix", "Writers and readers", _matrices(pairs, places)),
        "deprecations": (
            "Deprecations",
            "Deprecations and the calendar",
            _timeline(deprecations, places, dt.date.fromisoformat(report.as_of)),
        ),
        "releases": ("Releases", "What each release broke", _releases(releases, places)),
        "causes": ("Causes", "All causes", _causes(report, places)),
        "not-checked": ("Not checked", "What could not be checked", _unknown(report)),
    }
    menu = [tag("li", tag("a", short, href=f"#{name}")) for name, (short, _, _) in parts.items()]
    return document(
        f"PyTorch archives: compatibility as of {report.as_of}",
        tag("nav", tag("ul", *menu), aria_label="Sections"),
        tag(
            "main",
            tag("h1", "Compatibility of PyTorch archives"),
            *_summary(report, places),
            *(tag("section", tag("h2", title), *body, id=name) for name, (_, title, body) in parts.items()),
            id="contents",
        ),
    )


def _summary(report: Report, places: Places) -> Iterator[Node]:
    meaning = MEANING[report.exit_status][0]
    yield tag("p", f"As of {report.as_of}: {meaning} (exit status {report.exit_status}). Evidence {report.evidence[:12]}.")
    head = [tag("th", str(verdict), scope="col", class_="n") for verdict in report.counts]
    row = [tag("td", str(count), class_="n", data_verdict=str(verdict)) for verdict, count in report.counts.items()]
    caption = tag("caption", "Checks that the policy requires, by verdict")
    table = tag("table", caption, tag("thead", tag("tr", *head)), tag("tbody", tag("tr", *row)), class_="plain", id="verdicts")
    yield scrolled(table, "Verdicts")
    failed = [finding for finding in report.findings if finding.verdict == "fail"]
    if failed:
        yield tag("h2", f"Broken promises ({len(failed)})")
        listed = [
            tag("li", f"{finding.count} × ", tag("a", finding.title, href=places.causes[finding.id])) for finding in failed[:100]
        ]
        more = len(failed) - len(listed)
        yield tag("ul", *listed, tag("li", f"and {more} more") if more else None, class_="items")


# ---------------------------------------------------------------------------------------------------------------- releases


def _releases(releases: Sequence[ReleaseReport], places: Places) -> Iterator[Node]:
    yield tag(
        "p", "Everything that changed in a release, compared with the newest recorded release of the previous minor version."
    )
    head = [tag("th", name, scope="col") for name in ("release", "day", "compared with")]
    head += [tag("th", str(section), scope="col", class_="n") for section in TITLES]
    head.append(tag("th", "unknown", scope="col", class_="n"))
    rows = []
    for release in releases:
        counts = [_count(len(release.of(section)), places.items.get((release.release, f"#{section}"), "")) for section in TITLES]
        unknown = sum(part.count for part in release.not_asked)
        rows.append(
            tag(
                "tr",
                tag("th", tag("a", release.release, href=f"#{anchor('r' + release.release)}"), scope="row"),
                tag("td", release.day),
                tag("td", release.since),
                *counts,
                tag("td", str(unknown) if unknown else "·", class_="n"),
            )
        )
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="plain", id="counts")
    yield scrolled(table, "Items of each release")
    for release in releases:
        yield _release(release, places)


def _count(count: int, href: str) -> Element:
    return tag("td", tag("a", str(count), href=href) if count else "·", class_="n")


def _release(report: ReleaseReport, places: Places) -> Element:
    body: list[Node] = []
    for section, title in TITLES.items():
        items = report.of(section)
        if not items:
            continue
        shown = [_item(item, places.items[report.release, item.id]) for item in items[:MOST_ITEMS]]
        more = len(items) - len(shown)
        if more:
            shown.append(tag("li", tag("a", f"and {more} more", href=places.items[report.release, f"#{section}"])))
        strong = section is Section.SILENT
        message = f"{title} ({len(items)})"
        body += [tag("p", tag("strong", message) if strong else message), tag("ul", *shown, class_="items")]
    heading = tag("h3", tag("a", f"torch {report.release}", href=places.items[report.release, ""]), f" ({report.day})")
    return tag(
        "article", heading, *(body or [tag("p", "The records show no changes in this release.")]), id=anchor("r" + report.release)
    )


def _item(item: ReleaseItem, href: str) -> Element:
    unexplained = tag("strong", " (not explained)") if item.open else None
    return tag("li", tag("a", short(item.title, LONGEST_TITLE), href=href), unexplained)


# ------------------------------------------------------------------------------------------------------------------ matrix


def _matrices(pairs: Pairs, places: Places) -> Iterator[Node]:
    yield tag(
        "p",
        "Each cell is a writer (row) and a reader (column), with default load options. The number is the percentage of archives that "
        "load and give the same or close results, rounded down: 100 means all of them. The mark is the most severe outcome of the "
        "others. Neighboring readers with the same outcomes and the same causes share one wide cell, so a border marks a "
        "change. Each cell links to its outcomes and causes; a wide cell links to those of its first reader, and the other readers "
        "behave the same. Arrow keys move within a matrix.",
    )
    steps = [tag("span", f"{number * 10}", class_=f"c{number}") for number in range(len(SCALE))]
    yield tag("p", *steps, class_="key", role="img", aria_label="Colors: dark blue is 0 percent, yellow is 100 percent")
    yield tag("p", *(tag("span", part) for part in LEGEND.split("   ")), class_="legend soft")
    for family in pairs.families:
        yield tag("h3", family, id=anchor("f-" + family))
        yield scrolled(_matrix(pairs, family, places), f"Matrix of {family}")


def _matrix(pairs: Pairs, family: str, places: Places) -> Element:
    readers = pairs.readers(family)
    head = [tag("th", tag("span", public(reader)), scope="col") for reader in readers]
    rows = []
    for writer in pairs.writers(family):
        cells = [_cell(pair, len(run), places.cells[writer, run[0]] if pair else "") for pair, run in pairs.runs(writer, family)]
        rows.append(tag("tr", tag("th", public(writer), scope="row"), *cells))
    caption = tag("caption", f"{family}: archives written by (rows), read by (columns)")
    corner = tag("td")
    return tag(
        "table",
        caption,
        tag("thead", tag("tr", corner, *head)),
        tag("tbody", *rows),
        class_="matrix",
        style=f"--n:{len(readers)}",
    )


def _cell(pair: PairCells | None, width: int, href: str) -> Element:
    across = {"colspan": str(width)} if width > 1 else {}
    if pair is None:
        return tag("td", **across)
    return tag("td", tag("a", f"{pair.share}{pair.mark}", href=href), class_=f"c{pair.step}", **across)


# ---------------------------------------------------------------------------------------------------------------- timeline


@dataclass(frozen=True)
class TimelineSpan:
    """One span of a timeline.

    Attributes:
        kind: ``kept``, ``broken`` or ``unknown``.
        text: the same in words.
        point: whether it is a single day: an end.
    """

    begin: dt.date
    end: dt.date
    kind: str
    text: str
    point: bool = False


def spans(row: TimelineRow, as_of: dt.date) -> Iterator[TimelineSpan]:
    """The spans of a deprecation: how long it warned, what ended it, how long it stayed after its end.

    A span is broken if the event that ends it came too early, or if it lasts beyond the announced end.
    """
    snapshot = row.snapshot
    unclear = str(row.verdict) in {"cannot-tell", "no-promise"}
    began: Happened | None = None
    for occurrence in snapshot.happened:
        what = occurrence.event.what
        if what in ENDS:
            broken = any(breach.promised for breach in occurrence.breaches)
            if began is not None:
                text = f"{began.event.what} from {began.point.release} to {occurrence.point.release}"
                yield TimelineSpan(began.point.day, occurrence.point.day, _kind(broken=broken, unclear=unclear), text)
            text = "; ".join([f"{what} in {occurrence.point.release}", *(breach.text for breach in occurrence.breaches)])
            yield TimelineSpan(
                occurrence.point.day, occurrence.point.day, _kind(broken=broken, unclear=unclear), text, point=True
            )
            began = occurrence if what == "error" else None
        elif what == "warned" and began is None:
            began = occurrence
    if began is not None:
        does = "raises an error" if began.event.what == "error" else "warns"
        yield TimelineSpan(began.point.day, as_of, _kind(broken=False, unclear=unclear), f"{does} since {began.point.release}")
    gone = next((item.point.day for item in snapshot.happened if item.event.what in {"removed", "switched"}), as_of)
    for breach in snapshot.breaches:
        if breach.kind == "too-long":
            yield TimelineSpan(breach.day, max(breach.day, gone), "broken" if breach.promised else "unknown", breach.text)


def _kind(*, broken: bool, unclear: bool) -> str:
    return "broken" if broken else "unknown" if unclear else "kept"


def _timeline(rows: Sequence[TimelineRow], places: Places, as_of: dt.date) -> Iterator[Node]:
    if not rows:
        yield tag("p", "The policy has no deprecations.")
        return
    yield tag(
        "p",
        "Solid bars are periods that keep the timeline. Hatched bars are periods that break it: they end too early, or last longer than "
        "announced. Dotted bars are periods that no promise covers, or that could not be checked. A vertical line marks the end of a period: "
        "an error, a removal, or a change of behavior.",
    )
    yield tag(
        "p",
        f"{count_of(len(rows), 'deprecation')}: {', '.join(f'{count} {name}' for name, count in _verdicts(rows))}.",
        id="deprecation-counts",
    )
    axis = rows[0].history.axis
    days = _days(axis, as_of)
    years = [
        tag("span", str(year), style=f"left:{_share(dt.date(year, 1, 1), days):.2f}%")
        for year in range(days[0].year + 1, days[1].year + 1)
    ]
    head = tag(
        "tr", tag("th", "deprecation", scope="col"), tag("th", "verdict", scope="col"), tag("th", "events", scope="col"),
        tag("th", tag("span", "calendar", class_="unseen"), tag("div", *years, class_="years", aria_hidden="true"), scope="col", class_="line"),
    )  # fmt: skip
    results = [_line(row, days, as_of, places) for row in sorted(rows, key=_order)]
    table = tag("table", tag("thead", head), tag("tbody", *results), class_="timeline")
    yield scrolled(table, "Timeline of deprecations")


def _verdicts(rows: Iterable[TimelineRow]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[str(row.verdict)] = counts.get(str(row.verdict), 0) + 1
    return sorted(counts.items())


def _order(row: TimelineRow) -> tuple[int, dt.date, str]:
    """The sort key: broken ones first, then by the day on which they began."""
    began = row.snapshot.happened[0].point.day if row.snapshot.happened else dt.date.max
    return (0 if str(row.verdict) == "broken" else 1, began, row.history.deprecation.id)


def _days(axis: Axis, as_of: dt.date) -> tuple[dt.date, dt.date]:
    days = [point.day for point in axis.points.values()]
    return min(days), max(*days, as_of + dt.timedelta(days=1))


def _share(day: dt.date, days: tuple[dt.date, dt.date]) -> float:
    """The position of a day between two others, in percent."""
    whole = max(1, (days[1] - days[0]).days)
    return min(100.0, max(0.0, 100 * (day - days[0]).days / whole))


def _line(row: TimelineRow, days: tuple[dt.date, dt.date], as_of: dt.date, places: Places) -> Element:
    name = row.history.deprecation.id
    drawn = list(spans(row, as_of))
    bars = [
        tag("span", class_=f"{span.kind}{' end' if span.point else ''}", title=span.text, style=_place(span, days))
        for span in drawn
    ]
    events = (
        ", ".join(f"{occurrence.event.what} {occurrence.point.release}" for occurrence in row.snapshot.happened) or "not started"
    )
    return tag(
        "tr",
        tag("th", tag("a", name, href=places.timelines[name]), scope="row"),
        tag("td", str(row.verdict)),
        tag("td", events),
        tag(
            "td",
            tag("div", *bars, class_="track", role="img", aria_label="; ".join(span.text for span in drawn) or "no span"),
            class_="line",
        ),
    )


def _place(span: TimelineSpan, days: tuple[dt.date, dt.date]) -> str:
    left = _share(span.begin, days)
    return f"left:{left:.2f}%" if span.point else f"left:{left:.2f}%;width:{_share(span.end, days) - left:.2f}%"


# ------------------------------------------------------------------------------------------------------------------ causes


def _causes(report: Report, places: Places) -> Iterator[Node]:
    """The number of findings that begin with each release, newest first, with the file that contains them."""
    counts: dict[str, Counter[str]] = {}
    files: dict[str, str] = {}
    for finding in report.findings:
        counts.setdefault(finding.first_reader, Counter())[str(finding.verdict)] += 1
        files.setdefault(finding.first_reader, places.causes[finding.id].partition("#")[0])
    listed = []
    for release in sorted(counts, key=lambda name: order(name or SYNTHETIC), reverse=True):
        message = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts[release].items()))
        listed.append(tag("li", tag("a", release or "with no release", href=files[release]), f": {message}"))
    yield tag("p", f"{count_of(len(report.findings), 'finding')}, by the release in which they first appear.")
    yield tag("ul", *listed, class_="items")


# ---------------------------------------------------------------------------------------------------------------- not known


def _unknown(report: Report) -> Iterator[Node]:
    if not report.not_checked:
        yield tag("p", "All checks that the policy requires were run.")
    else:
        yield tag("ul", *(tag("li", f"{count} × {why} ({what})") for what, why, count in report.not_checked), class_="items")
    if report.notes:
        yield tag("h3", "Notes")
        yield tag("ul", *(tag("li", note) for note in report.notes), class_="items")
