"""The files beside the main one: pairs of a writer with its readers, causes, items of releases, deprecations."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.report.page.markup import document, tag
from torch_compat.report.page.pairs import DEFAULT
from torch_compat.report.release.words import TITLES, facts, head
from torch_compat.report.timelines import step_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.judging.timelines import TimelineRow
    from torch_compat.report.page.markup import Node
    from torch_compat.report.page.pairs import PairCells, Pairs
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["MAIN", "anchor", "cause_files", "deprecation_file", "file_name", "link_causes", "pair_files", "release_files"]

MAIN: Final = "index.html"
OTHERS: Final = "others"
"""Findings that begin with no release."""
NO_FINDING: Final = "nothing was promised, or it could not be checked, which the overview lists"
MOST_ARCHIVES: Final = 50
MOST_OPERATORS: Final = 200
COMMANDS: Final = frozenset({"show", "id", "findings"})


def anchor(name: str) -> str:
    """The id of a place in a file, for a name of any characters."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,60}", name)
    return name if plain else f"x{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def file_name(name: str) -> str:
    """The name of a file, for a name of any characters."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,60}", name)
    return f"{name if plain else anchor('?' + name)}.html".replace("+", "-")


def link_causes(report: Report) -> dict[str, str]:
    """The address of each finding, from a file beside the main one: one file for each release with which findings begin."""
    return {one.id: f"causes-{file_name(one.first_reader or OTHERS)}#{anchor(one.id)}" for one in report.findings}


def _file(title: str, *body: Node | None) -> str:
    back = tag("nav", tag("ul", tag("li", tag("a", "Overview", href=f"../{MAIN}"))), aria_label="Pages")
    return document(f"{title}: torch-compat", back, tag("main", tag("h1", title), *body, id="contents"))


def _row(name: str, *value: Node | None) -> list[Node]:
    return [tag("dt", name), tag("dd", *value)]


def _list(rows: Sequence[Node | None]) -> Element:
    return tag("ul", *rows, class_="items")


# ------------------------------------------------------------------------------------------------------------------- pairs


def pair_files(pairs: Pairs, findings: Mapping[str, Sequence[Finding]], links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """One file for each writer: for each reader, the outcomes and the causes."""
    by_writer: dict[str, dict[str, dict[tuple[str, str], PairCells]]] = defaultdict(lambda: defaultdict(dict))
    for (writer, reader, family, options), pair in pairs.all.items():
        by_writer[writer][reader][options, family] = pair
    for writer in pairs.writers():
        readers = by_writer[writer]
        order = [reader for reader in pairs.all_readers if reader in readers]
        body = [_pair(reader, pairs.place(reader), readers[reader], findings, links) for reader in order]
        yield pairs.file(writer), _file(f"Archives of {writer}, by reader", *body)


def _pair(
    reader: str,
    place: str,
    parts: Mapping[tuple[str, str], PairCells],
    findings: Mapping[str, Sequence[Finding]],
    links: Mapping[str, str],
) -> Element:
    outcomes = [one for one in Outcome if any(pair.counts[one] for pair in parts.values())]
    rows = []
    causes: Counter[str] = Counter()
    unnamed = 0
    for (options, family), pair in sorted(parts.items(), key=lambda one: (one[0][0] != DEFAULT, one[0])):
        cells = [tag("td", str(pair.counts[one]) if pair.counts[one] else "·", class_="n") for one in outcomes]
        rows.append(tag("tr", tag("th", family, scope="row"), tag("td", options), *cells))
        causes.update(pair.causes)
        unnamed += not pair.causes and pair.kept < pair.total
    heading = [tag("th", "family", scope="col"), tag("th", "load options", scope="col")]
    heading += [tag("th", str(one), scope="col", class_="n") for one in outcomes]
    table = tag("table", tag("thead", tag("tr", *heading)), tag("tbody", *rows), class_="plain")
    shown = [
        tag("li", f"{count} × ", tag("a", findings[name][0].title, href=links[name]), f" ({_verdicts(findings[name])})")
        for name, count in sorted(causes.items(), key=lambda one: (-one[1], one[0]))
        if name in links
    ]
    said = "" if shown else f"No finding is about these cells: every result is kept, {NO_FINDING}."
    rest = (
        f"In {unnamed} of the rows above, a result is not kept and no finding is about it: {NO_FINDING}."
        if shown and unnamed
        else ""
    )
    return tag(
        "section",
        tag("h2", f"read by {reader}"),
        tag("div", table, class_="wide"),
        tag("h3", "Causes") if shown else None,
        _list(shown) if shown else tag("p", said),
        tag("p", rest) if rest else None,
        id=place,
    )


def _verdicts(findings: Sequence[Finding]) -> str:
    """The verdicts of one cause: part of its cells may be waived, and part of them expected."""
    return ", ".join(dict.fromkeys(str(one.verdict) for one in findings))


# ------------------------------------------------------------------------------------------------------------------ causes


def cause_files(report: Report, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """One file for each release with which findings begin: every finding with its witness and its command."""
    waivers = {one.id: one for one in report.waivers}
    files: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for one in report.findings:
        files[links[one.id].partition("#")[0]][one.id].append(one)
    for name, causes in files.items():
        began = next(iter(causes.values()))[0].first_reader
        title = f"Causes that begin with {began}" if began else "Causes that begin with no release"
        body = [
            tag("section", *(_cause(one, waivers.get(one.waiver)) for one in members), id=anchor(cause))
            for cause, members in causes.items()
        ]
        yield name, _file(title, *body)


def _cause(one: Finding, waiver: object | None) -> Element:
    rows = [
        *_row("verdict", f"{one.verdict}" + (f", waiver {one.waiver}" if one.waiver else "")),
        *_row("count", str(one.count)),
        *_row("observed", one.cause),
    ]
    if one.families:
        rows += _row("families", ", ".join(one.families))
    if one.writers:
        rows += _row("written by", ", ".join(one.writers))
    if one.readers:
        rows += _row("read by", ", ".join(one.readers))
    if one.options:
        rows += _row("load options", one.options)
    if one.bump:
        rows += _row("announced by", one.bump)
    if one.modelled:
        rows += _row("rests on", "the reference reader alone")
    if one.smallest:
        rows += _row("witness", tag("code", one.smallest))
    if one.reproduce:
        recorded = " --recorded" if one.reproduce.startswith("torch-compat observe ") else ""
        rows += _row("command", tag("pre", tag("code", one.reproduce + recorded)))
    if waiver is not None:
        rows += _row("explanation", " ".join(str(getattr(waiver, "reason", "")).split()))
    rows += _row("id", tag("code", one.id))
    return tag("article", tag("h2", one.title), tag("dl", *rows))


# ---------------------------------------------------------------------------------------------------------------- releases


def release_files(reports: Sequence[ReleaseReport], links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """One file for each release: every item, the silent ones first."""
    for report in reports:
        body: list[Node] = [tag("p", f"{head(report)}.")]
        for section, title in TITLES.items():
            items = report.of(section)
            if items:
                body.append(tag("h2", f"{title} ({len(items)})", id=str(section)))
                body += [_item(report, item, links) for item in items]
        if report.not_asked:
            body.append(tag("h2", "Not known"))
            body.append(_list([tag("li", f"{one.count} × {one.why}") for one in report.not_asked]))
        yield f"release-{file_name(report.release)}", _file(f"What begins with torch {report.release}", *body)


def _item(report: ReleaseReport, item: ReleaseItem, links: Mapping[str, str]) -> Element:
    rows: list[Node] = []
    for name, text in facts(report, item):
        if name == "findings":
            known = [tag("li", tag("a", one, href=links[one])) for one in item.findings if one in links]
            known += [tag("li", tag("code", one)) for one in item.findings if one not in links]
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


def deprecation_file(rows: Sequence[TimelineRow]) -> tuple[str, str]:
    """Every deprecation with its events and what they break."""
    return "deprecations.html", _file("Deprecations", *map(_deprecation, rows))


def _deprecation(row: TimelineRow) -> Element:
    one, snapshot = row.history.deprecation, row.snapshot
    shown: list[Node] = [*_row("subject", one.subject), *_row("kind", one.kind), *_row("verdict", str(row.verdict))]
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
    states = ", ".join(f"{release}: {seen.state}" for release, seen in row.states.items())
    shown += _row("what releases did", states or "no release was asked")
    shown += _row("use instead", one.alternative)
    shown += _row("command", tag("pre", tag("code", f"torch-compat explain {one.id}")))
    return tag("article", tag("h2", one.id), tag("dl", *shown), id=anchor(one.id))
