"""The detail files: pairs of a writer with its readers, causes, items of releases, deprecations.

A click opens one of them, and a browser processes the whole file before it shows the target of a link. So no file has more
than :data:`MOST_ELEMENTS` elements, unless a single section does; longer content is split into numbered files in order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.judging.cell import Outcome
from torch_compat.report.page.markup import document, scrolled, tag
from torch_compat.report.page.pairs import DEFAULT
from torch_compat.report.release.words import TITLES, facts, head
from torch_compat.report.timelines import step_text
from torch_compat.words import american

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.judging.timelines import TimelineRow
    from torch_compat.report.page.markup import Node
    from torch_compat.report.page.pairs import PairCells, Pairs
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = [
    "MAIN",
    "MOST_ELEMENTS",
    "Address",
    "Files",
    "anchor",
    "cause_files",
    "deprecation_files",
    "file_name",
    "pair_files",
    "release_files",
]

Files = dict[str, str]
"""The text of each file, keyed by file name."""
Address = str
"""A file name, ``#`` and the id of an element in the file."""

MAIN: Final = "index.html"
OTHERS: Final = "others"
"""Findings that cannot be attributed to a release."""
NO_FINDING: Final = "no promise applies, or the check could not be run (see the overview)"
MOST_ELEMENTS: Final = 300
"""Maximum number of elements in a detail page: a browser lays them out in a small part of the 200 ms that a click may take.
"""
MOST_ARCHIVES: Final = 50
MOST_OPERATORS: Final = 200
COMMANDS: Final = frozenset({"show", "id", "findings"})


def anchor(name: str) -> str:
    """The id of a place in a file, for a name with any characters."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,60}", name)
    return name if plain else f"x{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def file_name(name: str) -> str:
    """A file name without extension, for a name with any characters."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,60}", name)
    return (name if plain else anchor(f"?{name}")).replace("+", "-")


class PagePart(NamedTuple):
    """Content that stays together in one file.

    Attributes:
        places: the id of each place in it, by the key that links use.
        elements: the content.
        under: the heading above it, which is repeated if a file begins with it; "" for none.
    """

    places: Mapping[str, str]
    elements: tuple[Element, ...]
    under: str = ""

    @property
    def size(self) -> int:
        """The number of elements that a browser creates for it."""
        return sum(1 for element in self.elements for _ in element.iter())


def _spread(stem: str, title: str, parts: Iterable[PagePart]) -> tuple[Files, dict[str, Address]]:
    """Distribute parts, in order, over as many files as needed, and return the address of each place."""
    groups: list[list[PagePart]] = [[]]
    room = MOST_ELEMENTS
    for part in parts:
        room -= part.size
        if room < 0 and groups[-1]:
            groups.append([])
            room = MOST_ELEMENTS - part.size
        groups[-1].append(part)
    names = [f"{stem}.html", *(f"{stem}-{number}.html" for number in range(2, len(groups) + 1))]
    files: Files = {}
    places: dict[str, Address] = {}
    for number, (name, group) in enumerate(zip(names, groups, strict=True)):
        again = tag("h2", f"{group[0].under}, continued") if number and group[0].under else None
        of_all = f" ({number + 1} of {len(names)})" if len(names) > 1 else ""
        files[name] = _file(
            f"{title}{of_all}",
            again,
            *(element for part in group for element in part.elements),
            before=names[number - 1] if number else "",
            after=names[number + 1] if number + 1 < len(names) else "",
        )
        places |= {key: f"{name}#{place}" for part in group for key, place in part.places.items()}
    return files, places


def _file(title: str, *body: Node | None, before: str = "", after: str = "") -> str:
    steps = [tag("li", tag("a", "Overview", href=f"../{MAIN}"))]
    steps += [tag("li", tag("a", name, href=href)) for name, href in (("Previous", before), ("Next", after)) if href]
    menu = tag("nav", tag("ul", *steps), aria_label="Pages")
    return document(f"{title}: torch-compat", menu, tag("main", tag("h1", title), *body, id="contents"))


def _row(name: str, *value: Node | None) -> list[Node]:
    return [tag("dt", name), tag("dd", *value)]


def _list(rows: Sequence[Node | None]) -> Element:
    return tag("ul", *rows, class_="items")


# ------------------------------------------------------------------------------------------------------------------- pairs


def pair_files(
    pairs: Pairs, findings: Mapping[str, Sequence[Finding]], links: Mapping[str, Address]
) -> tuple[Files, dict[tuple[str, str], Address]]:
    """The outcomes and the causes for each writer and each reader; and the address of each of these pairs."""
    by_writer: dict[str, dict[str, dict[tuple[str, str], PairCells]]] = defaultdict(lambda: defaultdict(dict))
    for (writer, reader, family, options), pair in pairs.all.items():
        by_writer[writer][reader][options, family] = pair
    files: Files = {}
    places: dict[tuple[str, str], Address] = {}
    for number, writer in enumerate(pairs.writers(), 1):
        readers = by_writer[writer]
        order = [(reader, pairs.place(reader)) for reader in pairs.all_readers if reader in readers]
        parts = [PagePart({reader: place}, (_pair(reader, place, readers[reader], findings, links),)) for reader, place in order]
        product, result = _spread(f"w{number}", f"Archives written by {writer}, by reader", parts)
        files |= product
        places |= {(writer, reader): address for reader, address in result.items()}
    return files, places


def _pair(
    reader: str,
    place: str,
    parts: Mapping[tuple[str, str], PairCells],
    findings: Mapping[str, Sequence[Finding]],
    links: Mapping[str, str],
) -> Element:
    outcomes = [item for item in Outcome if any(pair.counts[item] for pair in parts.values())]
    rows = []
    causes: Counter[str] = Counter()
    unnamed = 0
    for (options, family), pair in sorted(parts.items(), key=lambda part: (part[0][0] != DEFAULT, part[0])):
        cells = [tag("td", str(pair.counts[outcome]) if pair.counts[outcome] else "·", class_="n") for outcome in outcomes]
        rows.append(tag("tr", tag("th", family, scope="row"), tag("td", options), *cells))
        causes.update(pair.causes)
        unnamed += not pair.causes and pair.kept < pair.total
    heading = [tag("th", "family", scope="col"), tag("th", "load options", scope="col")]
    heading += [tag("th", str(outcome), scope="col", class_="n") for outcome in outcomes]
    table = tag("table", tag("thead", tag("tr", *heading)), tag("tbody", *rows), class_="plain")
    shown = [
        tag("li", f"{count} × ", tag("a", findings[name][0].title, href=links[name]), f" ({_verdicts(findings[name])})")
        for name, count in sorted(causes.items(), key=lambda cause: (-cause[1], cause[0]))
        if name in links
    ]
    message = "" if shown else f"There are no findings for these cells: every result is unchanged, {NO_FINDING}."
    rest = f"In {unnamed} of the rows above, a result changed but there is no finding: {NO_FINDING}." if shown and unnamed else ""
    return tag(
        "section",
        tag("h2", f"read by {reader}"),
        scrolled(table, f"Outcomes, read by {reader}"),
        tag("h3", "Causes") if shown else None,
        _list(shown) if shown else tag("p", message),
        tag("p", rest) if rest else None,
        id=place,
    )


def _verdicts(findings: Sequence[Finding]) -> str:
    """The verdicts of one cause: some of its cells may be waived, and some expected."""
    return ", ".join(dict.fromkeys(str(finding.verdict) for finding in findings))


# ------------------------------------------------------------------------------------------------------------------ causes


def cause_files(report: Report) -> tuple[Files, dict[str, Address]]:
    """Every finding with its witness and its command, by the release in which it begins; and the address of each."""
    waivers = {waiver.id: waiver for waiver in report.waivers}
    by_release: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    began = {item.id: item.first_reader for item in reversed(report.findings)}  # findings with the same id go in one place
    for finding in report.findings:
        by_release[began[finding.id]][finding.id].append(finding)
    files: Files = {}
    places: dict[str, Address] = {}
    for release, causes in by_release.items():
        title = f"Causes that first appear in {release}" if release else "Causes that cannot be attributed to a release"
        parts = [
            PagePart(
                {cause: anchor(cause)},
                (tag("section", *(_cause(member, waivers.get(member.waiver)) for member in members), id=anchor(cause)),),
            )
            for cause, members in causes.items()
        ]
        product, result = _spread(f"causes-{file_name(release or OTHERS)}", title, parts)
        files |= product
        places |= result
    return files, places


def _cause(finding: Finding, waiver: object | None) -> Element:
    rows = [
        *_row("verdict", f"{finding.verdict}" + (f", waiver {finding.waiver}" if finding.waiver else "")),
        *_row("count", str(finding.count)),
        *_row("observed", finding.cause),
    ]
    if finding.families:
        rows += _row("families", ", ".join(finding.families))
    if finding.writers:
        rows += _row("written by", ", ".join(finding.writers))
    if finding.readers:
        rows += _row("read by", ", ".join(finding.readers))
    if finding.options:
        rows += _row("load options", finding.options)
    if finding.bump:
        rows += _row("announced by", finding.bump)
    if finding.modelled:
        rows += _row("rests on", "only the reference reader")
    if finding.smallest:
        rows += _row("witness", tag("code", finding.smallest))
    if finding.reproduce:
        recorded = " --recorded" if finding.reproduce.startswith("torch-compat observe ") else ""
        rows += _row("command", tag("pre", tag("code", finding.reproduce + recorded)))
    if waiver is not None:
        rows += _row("explanation", " ".join(str(getattr(waiver, "reason", "")).split()))
    rows += _row("id", tag("code", finding.id))
    return tag("article", tag("h2", finding.title), tag("dl", *rows))


# ---------------------------------------------------------------------------------------------------------------- releases


def release_files(reports: Sequence[ReleaseReport], links: Mapping[str, Address]) -> tuple[Files, dict[tuple[str, str], Address]]:
    """Every item of each release, silent changes first; and the address of each item, each section, and, as "", each release."""
    files: Files = {}
    places: dict[tuple[str, str], Address] = {}
    for report in reports:
        parts = [PagePart({}, (tag("p", f"{head(report)}."),))]
        for section, title in TITLES.items():
            items = report.of(section)
            for number, item in enumerate(items):
                shown: tuple[Element, ...] = (_item(report, item, links),)
                at = {item.id: anchor(item.id)}
                if not number:
                    shown = (tag("h2", f"{title} ({len(items)})", id=str(section)), *shown)
                    at[f"#{section}"] = str(section)
                parts.append(PagePart(at, shown, title))
        if report.not_asked:
            rows = _list([tag("li", f"{entry.count} × {entry.why}") for entry in report.not_asked])
            parts.append(PagePart({}, (tag("h2", "Unknown"), rows)))
        stem = f"release-{file_name(report.release)}"
        product, result = _spread(stem, f"What changed in torch {report.release}", parts)
        files |= product
        places |= {(report.release, key): address for key, address in result.items()}
        places[report.release, ""] = next(iter(product))
    return files, places


def _item(report: ReleaseReport, item: ReleaseItem, links: Mapping[str, str]) -> Element:
    rows: list[Node] = []
    for name, text in facts(report, item):
        if name == "findings":
            known = [tag("li", tag("a", finding, href=links[finding])) for finding in item.findings if finding in links]
            known += [tag("li", tag("code", finding)) for finding in item.findings if finding not in links]
            rows += _row("causes", _list([*known]))
        elif name == "operators":
            names = ", ".join(item.operators[:MOST_OPERATORS])
            more = len(item.operators) - MOST_OPERATORS
            rows += _row(name, names + (f" and {more} more" if more > 0 else ""))
        elif name == "show":
            rows += _row("command", tag("pre", tag("code", text)))
        else:
            rows += _row(name, tag("code", text) if name in COMMANDS else text)
    if item.archives:
        names = ", ".join(sorted(item.archives)[:MOST_ARCHIVES])
        more = len(item.archives) - MOST_ARCHIVES
        rows += _row("archives", names + (f" and {more} more" if more > 0 else ""))
    return tag("article", tag("h3", item.title), tag("dl", *rows), id=anchor(item.id))


# ------------------------------------------------------------------------------------------------------------ deprecations


def deprecation_files(rows: Sequence[TimelineRow]) -> tuple[Files, dict[str, Address]]:
    """Every deprecation with its events and violations; and the address of each."""
    parts = []
    for row in rows:
        name = row.history.deprecation.id
        parts.append(PagePart({name: anchor(name)}, (_deprecation(row),)))
    return _spread("deprecations", "Deprecations", parts)


def _deprecation(row: TimelineRow) -> Element:
    deprecation, snapshot = row.history.deprecation, row.snapshot
    shown: list[Node] = [
        *_row("subject", deprecation.subject),
        *_row("kind", american(deprecation.kind)),
        *_row("verdict", str(row.verdict)),
    ]
    for text in row.why:
        shown += _row("why", text)
    for event in (*snapshot.happened, *snapshot.planned):
        planned = ", planned" if event.point.planned else ""
        shown += _row(f"{event.point.release} ({event.point.day}{planned})", event.event.what)
    for breach in snapshot.breaches:
        shown += _row("broken" if breach.promised else "too early, before the policy was in force", breach.text)
    if snapshot.next is not None and snapshot.next.earliest.day is not None:
        bound = snapshot.next.earliest
        shown += _row("next", f"may {step_text(snapshot.next.what)} from {bound.release} ({bound.day})")
    if snapshot.due is not None:
        shown += _row("due", f"{snapshot.due.release} ({snapshot.due.day})" + ("; overdue" if snapshot.overdue else ""))
    shown += _row("what releases did", _states(row) or "not tested with any release")
    shown += _row("use instead", deprecation.alternative)
    shown += _row("command", tag("pre", tag("code", f"torch-compat explain {deprecation.id}")))
    return tag("article", tag("h2", deprecation.id), tag("dl", *shown), id=anchor(deprecation.id))


def _states(row: TimelineRow) -> str:
    """The states of the releases, with consecutive equal states combined: sixty releases take no more text and layout than six."""
    runs = [(state, list(releases)) for state, releases in groupby(row.states, key=lambda release: row.states[release].state)]
    return ", ".join(
        f"{releases[0]}: {state}" if len(releases) == 1 else f"{releases[0]} to {releases[-1]}: {state}"
        for state, releases in runs
    )
