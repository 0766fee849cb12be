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
        raise UsageError(f"has {len(data)} bytes, expected at most {LARGEST}", where=where, code="published")
    try:
        table = parsed(data.decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise UsageError(f"is not valid UTF-8 at byte {error.start}", where=where, code="published") from None
    releases, items = table.pop("release", []), table.pop("item", [])
    if table or not isinstance(releases, list) or not isinstance(items, list):
        raise UsageError("has keys other than release and item", where=where, hint=HINT, code="published")
    found: dict[str, list[PublishedStatement]] = {}
    for number, entry in enumerate(releases, 1):
        _check(entry, {"version": str, "notes": str, "whole": bool, "why": str}, f"release {number}", where)
        if not _address(entry["notes"]) or entry["version"] in found:
            raise UsageError(f"release {number} has no https URL, or is listed twice", where=where, hint=HINT, code="published")
        found[str(Release(entry["version"]))] = []
    for number, entry in enumerate(items, 1):
        name = f"item {number}"
        optional = {"found": list, "unseen": str, "note": str}
        needed = {"release": str, "title": str, "source": str}
        _check(entry, needed, name, where, optional)
        names = entry.get("found", [])
        if bool(names) == bool(entry.get("unseen")) or not all(isinstance(one, str) for one in names):
            raise UsageError(f"{name} needs either found, a list of strings, or unseen", where=where, hint=HINT, code="published")
        if entry["release"] not in found or not _address(entry["source"]):
            raise UsageError(
                f"{name} does not name a release in the table, or has no https URL", where=where, hint=HINT, code="published"
            )
        said = PublishedStatement(entry["title"], entry["source"], tuple(names), entry.get("unseen", ""), entry.get("note", ""))
        found[entry["release"]].append(said)
    return tuple(
        Published(one["version"], one["notes"], one["whole"], one["why"], tuple(found[one["version"]])) for one in releases
    )


def _check(
    entry: Any, needed: Mapping[str, type], name: str, where: str, optional: Mapping[str, type] = MappingProxyType({})
) -> None:
    known = {**needed, **optional}
    good = isinstance(entry, dict) and needed.keys() <= entry.keys() <= known.keys()
    if not good or not all(isinstance(value, known[key]) for key, value in entry.items()):
        raise UsageError(f"{name} does not have the keys {', '.join(known)}", where=where, hint=HINT, code="published")


def _address(text: str) -> bool:
    return text.startswith("https://") and text.isprintable() and not any(one in text for one in " <>()")


def compared(published: Published, report: ReleaseReport, where: str) -> PublishedComparison:
    """Compare both sides for a release.

    Raises:
        UsageError: an item names a part that the report does not have: its evidence is gone, or its name changed.
    """
    by_name = {name: item for item in report.items for name in (item.id, *(name for part in item.parts for name in part.names))}
    shown, unseen = [], []
    named: set[str] = set()
    for one in published.statements:
        gone = [name for name in one.found if name not in by_name]
        if gone:
            raise UsageError(
                f"{escaped(one.title)}: the report of {report.release} has no {escaped(gone[0])}",
                where=where,
                hint=f"torch-compat report {report.release} --full lists its items",
                code="published-gone",
            )
        if one.found:
            items = tuple(dict.fromkeys(by_name[name] for name in one.found))
            named.update(item.id for item in items)
            shown.append((one, items))
        else:
            unseen.append(one)
    unnamed = tuple(item for item in report.items if item.section in BREAKING and item.id not in named)
    return PublishedComparison(published, report, tuple(shown), tuple(unseen), unnamed)


def published_md(found: Sequence[PublishedComparison], unrecorded: Sequence[Published] = ()) -> str:
    """The document: the same evidence and the same table give the same bytes.

    Parameters:
        unrecorded: releases without any recorded release of their minor line; they are listed as not compared.
    """
    return "\n".join(escaped(line) for line in _lines(found, unrecorded)) + "\n"


def _lines(found: Sequence[PublishedComparison], unrecorded: Sequence[Published]) -> Iterator[str]:
    yield "# Published notes and recorded evidence"
    yield ""
    yield "Generated by `nox -s generate` from `reports/published.toml`; do not edit. Statements that PyTorch published are compared with"
    yield "the reports of the same releases. Statements that no record can confirm, and pages that could not be retrieved, do not count as agreement."
    yield ""
    yield "| release | notes retrieved | statements | confirmed by records | cannot be confirmed | breakages that no statement mentions |"
    yield "|---|---|---:|---:|---:|---:|"
    for one in found:
        retrieved = "whole" if one.published.whole else "partly: the rest was not compared"
        counts = (len(one.published.statements), len(one.shown), len(one.unseen), len(one.unnamed))
        yield f"| [{one.report.release}](releases/{one.report.release}.md) | {retrieved} | {' | '.join(map(str, counts))} |"
    for other in unrecorded:
        yield f"| {other.version} | not compared: no release of this line is recorded | {len(other.statements)} | | | |"
    for one in found:
        yield from _release(one)


def _release(one: PublishedComparison) -> Iterator[str]:
    yield ""
    yield f"## torch {one.report.release}"
    yield ""
    yield f"[Release notes]({one.published.notes}). {plain(one.published.why)}"
    if one.shown:
        yield ""
        yield "### Published, and confirmed by the records"
        yield ""
        for said, items in one.shown:
            yield f"- {plain(said.title)} ([source]({said.source}))"
            yield from (f"  - {plain(item.title)}: {in_code(item.id)}" for item in items)
            if said.note:
                yield f"  - **{plain(said.note)}**"
    if one.unseen:
        yield ""
        yield "### Published, but not visible in the records"
        yield ""
        for said in one.unseen:
            yield f"- {plain(said.title)} ([source]({said.source}))"
            yield f"  - {plain(said.unseen)}"
    yield ""
    yield "### Recorded, but not mentioned in any statement"
    yield ""
    if not one.published.whole:
        yield "The notes were not retrieved completely, so they may name some of these."
        yield ""
    for item in one.unnamed[:MOST]:
        yield f"- {plain(item.title)}: {in_code(item.id)}"
    if len(one.unnamed) > MOST:
        yield f"- and {len(one.unnamed) - MOST} more"
    if not one.unnamed:
        yield "- nothing"
