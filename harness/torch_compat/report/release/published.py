"""Statements published by PyTorch about releases, compared with the records: reports/published.md, from reports/published.toml.

The table contains facts with their sources. An item names the parts of a release report that show it, or says why no record can; so a
test notices if either side changes. Statements that could not be retrieved are reported as such, and do not count as agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import UsageError
from torch_compat.escapes import escaped
from torch_compat.releases.data import parsed
from torch_compat.releases.release import Release
from torch_compat.report.release.items import Section
from torch_compat.report.release.to_md import in_code, plain
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["Published", "PublishedComparison", "PublishedStatement", "compared", "published_md", "read_published"]

LARGEST: Final = 1 << 20
BREAKING: Final = (Section.SILENT, Section.REFUSED, Section.CRASHED, Section.OPERATORS)
"""Sections in which a reader would look for incompatible changes."""
MOST: Final = 40
"""Maximum number of breakages listed for each release; reports/releases has all of them."""
HINT: Final = "the header of reports/published.toml lists its keys"


@dataclass(frozen=True)
class PublishedStatement:
    """One published statement.

    Attributes:
        title: the statement in our own words.
        source: the address of the publication.
        found: names of the parts of the release report that show it.
        unseen: why no record can show it; "" if ``found`` has names.
        note: further information from the records.
    """

    title: str
    source: str
    found: tuple[str, ...]
    unseen: str
    note: str


@dataclass(frozen=True)
class Published:
    """The publications about one release.

    Attributes:
        version: the first release of its minor line.
        notes: the address of the release notes.
        whole: whether the entire page was read for the table.
        why: if not, the reason, and the source of the statements.
    """

    version: str
    notes: str
    whole: bool
    why: str
    statements: tuple[PublishedStatement, ...]


@dataclass(frozen=True)
class PublishedComparison:
    """Both sides of the comparison for a release.

    Attributes:
        shown: statements with the items that show them.
        unseen: statements that no record can show.
        unnamed: breakages of the report that no statement mentions.
    """

    published: Published
    report: ReleaseReport
    shown: tuple[tuple[PublishedStatement, tuple[ReleaseItem, ...]], ...]
    unseen: tuple[PublishedStatement, ...]
    unnamed: tuple[ReleaseItem, ...]


def read_published(data: bytes, where: str) -> tuple[Published, ...]:
    """Parse the table.

    Parameters:
        where: the name of the file in errors.

    Raises:
        UsageError: an entry does not match the description at the head of the file.
        PolicyError: it is not TOML; with the line.
    """
    if len(data) > LARGEST:
        raise UsageError(f"has {count_of(len(data), 'byte')}, expected at most {LARGEST}", where=where, code="published")
    try:
        table = parsed(data.decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise UsageError(f"is not valid UTF-8 at byte {error.start}", where=where, code="published") from None
    releases, items = table.pop("release", []), table.pop("item", [])
    if table or not isinstance(releases, list) or not isinstance(items, list):
        raise UsageError("has keys other than release and item", where=where, hint=HINT, code="published")
    results: dict[str, list[PublishedStatement]] = {}
    for number, entry in enumerate(releases, 1):
        _check(entry, {"version": str, "notes": str, "whole": bool, "why": str}, f"release {number}", where)
        if not _address(entry["notes"]) or entry["version"] in results:
            raise UsageError(f"release {number} has no https URL, or is listed twice", where=where, hint=HINT, code="published")
        results[str(Release(entry["version"]))] = []
    for number, entry in enumerate(items, 1):
        name = f"item {number}"
        optional = {"found": list, "unseen": str, "note": str}
        needed = {"release": str, "title": str, "source": str}
        _check(entry, needed, name, where, optional)
        names = entry.get("found", [])
        if bool(names) == bool(entry.get("unseen")) or not all(isinstance(item, str) for item in names):
            raise UsageError(f"{name} needs either found, a list of strings, or unseen", where=where, hint=HINT, code="published")
        if entry["release"] not in results or not _address(entry["source"]):
            raise UsageError(
                f"{name} does not name a release in the table, or has no https URL", where=where, hint=HINT, code="published"
            )
        message = PublishedStatement(
            entry["title"], entry["source"], tuple(names), entry.get("unseen", ""), entry.get("note", "")
        )
        results[entry["release"]].append(message)
    return tuple(
        Published(release["version"], release["notes"], release["whole"], release["why"], tuple(results[release["version"]]))
        for release in releases
    )


def _check(
    entry: Any, needed: Mapping[str, type], name: str, where: str, optional: Mapping[str, type] = MappingProxyType({})
) -> None:
    known = {**needed, **optional}
    good = isinstance(entry, dict) and needed.keys() <= entry.keys() <= known.keys()
    if not good or not all(isinstance(value, known[key]) for key, value in entry.items()):
        raise UsageError(f"{name} does not have the keys {', '.join(known)}", where=where, hint=HINT, code="published")


def _address(text: str) -> bool:
    return text.startswith("https://") and text.isprintable() and not any(item in text for item in " <>()")


def compared(published: Published, report: ReleaseReport, where: str) -> PublishedComparison:
    """Compare both sides for a release.

    Raises:
        UsageError: an item names a part that the report does not have: its evidence is gone, or its name changed.
    """
    by_name = {name: item for item in report.items for name in (item.id, *(name for part in item.parts for name in part.names))}
    shown, unseen = [], []
    named: set[str] = set()
    for statement in published.statements:
        gone = [name for name in statement.found if name not in by_name]
        if gone:
            raise UsageError(
                f"{escaped(statement.title)}: the report of {report.release} has no {escaped(gone[0])}",
                where=where,
                hint=f"torch-compat report {report.release} --full lists its items",
                code="published-gone",
            )
        if statement.found:
            items = tuple(dict.fromkeys(by_name[name] for name in statement.found))
            named.update(item.id for item in items)
            shown.append((statement, items))
        else:
            unseen.append(statement)
    unnamed = tuple(item for item in report.items if item.section in BREAKING and item.id not in named)
    return PublishedComparison(published, report, tuple(shown), tuple(unseen), unnamed)


def published_md(value: Sequence[PublishedComparison], unrecorded: Sequence[Published] = ()) -> str:
    """The document: the same evidence and the same table give the same bytes.

    Parameters:
        unrecorded: releases without any recorded release of their minor line; they are listed as not compared.
    """
    return "\n".join(escaped(line) for line in _lines(value, unrecorded)) + "\n"


def _lines(value: Sequence[PublishedComparison], unrecorded: Sequence[Published]) -> Iterator[str]:
    yield "# Published notes and recorded evidence"
    yield ""
    yield "Generated by `nox -s generate` from `reports/published.toml`; do not edit. Statements that PyTorch published are compared with"
    yield "the reports of the same releases. Statements that no record can confirm, and pages that could not be retrieved, do not count as agreement."
    yield ""
    yield "| release | notes retrieved | statements | confirmed by records | cannot be confirmed | breakages that no statement mentions |"
    yield "|---|---|---:|---:|---:|---:|"
    for comparison in value:
        retrieved = "whole" if comparison.published.whole else "partly: the rest was not compared"
        counts = (len(comparison.published.statements), len(comparison.shown), len(comparison.unseen), len(comparison.unnamed))
        yield f"| [{comparison.report.release}](releases/{comparison.report.release}.md) | {retrieved} | {' | '.join(map(str, counts))} |"
    for other in unrecorded:
        yield f"| {other.version} | not compared: no release of this line is recorded | {len(other.statements)} | | | |"
    for comparison in value:
        yield from _release(comparison)


def _release(comparison: PublishedComparison) -> Iterator[str]:
    yield ""
    yield f"## torch {comparison.report.release}"
    yield ""
    yield f"[Release notes]({comparison.published.notes}). {plain(comparison.published.why)}"
    if comparison.shown:
        yield ""
        yield "### Published, and confirmed by the records"
        yield ""
        for statement, items in comparison.shown:
            yield f"- {plain(statement.title)} ([source]({statement.source}))"
            yield from (f"  - {plain(item.title)}: {in_code(item.id)}" for item in items)
            if statement.note:
                yield f"  - **{plain(statement.note)}**"
    if comparison.unseen:
        yield ""
        yield "### Published, but not visible in the records"
        yield ""
        for statement in comparison.unseen:
            yield f"- {plain(statement.title)} ([source]({statement.source}))"
            yield f"  - {plain(statement.unseen)}"
    yield ""
    yield "### Recorded, but not mentioned in any statement"
    yield ""
    if not comparison.published.whole:
        yield "The notes were not retrieved completely, so they may name some of these."
        yield ""
    for item in comparison.unnamed[:MOST]:
        yield f"- {plain(item.title)}: {in_code(item.id)}"
    if len(comparison.unnamed) > MOST:
        yield f"- and {len(comparison.unnamed) - MOST} more"
    if not comparison.unnamed:
        yield "- nothing"
