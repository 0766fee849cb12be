"""Items of a release report: one fact each, with one date, whatever rules and records show it.

Every record of a fact is a :class:`FactRecord` that states the two releases between which the fact began according to it. Parts with a
common name form one item. The item begins where all its parts agree; if they exclude each other, it says so and gives the outer bounds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["FactRecord", "ReleaseItem", "Section", "Shown", "Span", "merged", "short"]


class Section(enum.StrEnum):
    """The section of an item, most severe first: an item of several kinds goes into the first of its sections."""

    SILENT = "silent"
    REFUSED = "refused"
    CRASHED = "crashed"
    ACCEPTED = "accepted"
    OPERATORS = "operators"
    FORMATS = "formats"
    DEPRECATIONS = "deprecations"
    MENDED = "mended"


ORDER = tuple(Section)
LONGEST: Final = 300
"""Maximum length of a quoted value, error or name, in characters. An archive can choose these."""


def short(text: str, longest: int = LONGEST) -> str:
    """Text on one line, shortened if it is too long to read."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(text) <= longest else f"{line[: longest - 1]}…"


class Span(NamedTuple):
    """A range of releases in which something begins.

    Attributes:
        after: the newest release known not to have it; "" if there is none.
        by: the oldest release known to have it.
    """

    after: str
    by: str

    def meets(self, other: Span) -> bool:
        """Whether both can be correct."""
        return _key(self.after) < _key(other.by) and _key(other.after) < _key(self.by)

    def narrowed(self, other: Span) -> Span:
        """The intersection of both, if they meet."""
        return Span(max(self.after, other.after, key=_key), min(self.by, other.by, key=_key))

    def widened(self, other: Span) -> Span:
        """The outermost bounds of both."""
        return Span(min(self.after, other.after, key=_key), max(self.by, other.by, key=_key))


def _key(version: str) -> tuple[int, Release | None]:
    return (1, Release(version)) if version else (0, None)


@dataclass(frozen=True)
class Shown:
    """The smallest recorded example of an item.

    Attributes:
        fixture, options: the archive and the load options.
        before, after: what the older and the newer release did with it, in one line.
        command: a command that shows it, from the records.
        size: the size of the archive in bytes, used to choose the smallest one.
        snippet: lines of Python that show it in either release; "" if there is no such snippet.
        outputs: what the lines print or raise in the older and the newer release.
    """

    fixture: str
    options: str
    before: str
    after: str
    command: str
    size: int = 0
    snippet: str = ""
    outputs: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class FactRecord:
    """The information of one record about a fact.

    Attributes:
        names: names of the fact, such as ``waiver:torch-solve`` or ``deprecation:solve``. Parts with a common name form one item.
        rank: the title of the part with the lowest rank becomes the title of the item.
        says: the information of this record, in one line.
        archives: ids of the affected archives.
        newer, older: the numbers of cells of the newer release, and of releases before it, that show it.
        operators: the affected operators.
        why: the recorded explanation; "" if there is none.
        findings: ids of findings.
        open: whether some of it is neither waived nor expected.
        announced: the version number that announces it; "" if there is none.
        advice: what users can do, if a record states it.
        details: lines for a full report only.
    """

    names: tuple[str, ...]
    section: Section
    rank: int
    title: str
    source: str
    span: Span
    says: str
    archives: frozenset[str] = frozenset()
    newer: int = 0
    older: int = 0
    operators: tuple[str, ...] = ()
    why: str = ""
    findings: tuple[str, ...] = ()
    open: bool = False
    announced: str = ""
    advice: str = ""
    shown: Shown | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleaseItem:
    """One fact.

    Attributes:
        id: a stable name: that of its most informative record.
        span: the releases between which it begins.
        candidates: the calendar releases with which it may begin, oldest first.
        disagree: whether its records exclude each other.
    """

    id: str
    section: Section
    title: str
    span: Span
    candidates: tuple[str, ...]
    disagree: bool
    parts: tuple[FactRecord, ...] = field(repr=False)

    @property
    def archives(self) -> frozenset[str]:
        """The affected archives."""
        return frozenset[str]().union(*(part.archives for part in self.parts))

    @property
    def newer(self) -> int:
        """The number of cells of the release that show it."""
        return sum(part.newer for part in self.parts)

    @property
    def older(self) -> int:
        """The number of cells of the previous release that show it, with archives of the release."""
        return sum(part.older for part in self.parts)

    @property
    def operators(self) -> tuple[str, ...]:
        """The affected operators, sorted."""
        return tuple(sorted({name for part in self.parts for name in part.operators}))

    @property
    def findings(self) -> tuple[str, ...]:
        """The ids of all findings, sorted."""
        return tuple(sorted({name for part in self.parts for name in part.findings}))

    @property
    def open(self) -> bool:
        """Whether some of it is neither waived nor expected."""
        return any(part.open for part in self.parts)

    @property
    def announced(self) -> str:
        """The version numbers that announce it."""
        return ", ".join(dict.fromkeys(part.announced for part in self.parts if part.announced))

    @property
    def why(self) -> tuple[str, ...]:
        """The recorded explanations, each text once."""
        return tuple(dict.fromkeys(part.why for part in self.parts if part.why))

    @property
    def advice(self) -> tuple[str, ...]:
        """What users can do."""
        return tuple(dict.fromkeys(part.advice for part in self.parts if part.advice))

    @property
    def shown(self) -> Shown | None:
        """The smallest example, from the most severe section that has one."""
        results = [part for part in self.parts if part.shown]
        if not results:
            return None
        return min(results, key=lambda part: (ORDER.index(part.section), part.shown.size if part.shown else 0, part.title)).shown

    @property
    def when(self) -> str:
        """The release with which it begins, in words."""
        if self.disagree:
            return f"between {self.span.after or 'the first release'} and {self.span.by} (the records disagree)"
        if len(self.candidates) > 1:
            return " or ".join((", ".join(self.candidates[:-1]), self.candidates[-1]))
        return self.span.by


def merged(parts: Iterable[FactRecord], calendar: Sequence[str]) -> list[ReleaseItem]:
    """Merge parts by the names that they share; the most severe items first, then those with the most cells.

    Parameters:
        calendar: every known release, oldest first.
    """
    groups: list[list[FactRecord]] = []
    place: dict[str, int] = {}
    for part in parts:
        known = sorted({place[name] for name in part.names if name in place})
        at = known[0] if known else len(groups)
        if not known:
            groups.append([])
        for other in known[1:]:  # this part shows that two facts are the same
            groups[at] += groups[other]
            groups[other] = []
            place.update({name: at for name, where in place.items() if where == other})
        groups[at].append(part)
        place.update(dict.fromkeys(part.names, at))
    results = [_item(group, calendar) for group in groups if group]
    return sorted(
        results, key=lambda item: (ORDER.index(item.section), -item.newer - item.older, -len(item.operators), item.title, item.id)
    )


def _item(parts: list[FactRecord], calendar: Sequence[str]) -> ReleaseItem:
    parts = sorted(parts, key=lambda part: (part.rank, ORDER.index(part.section), -len(part.operators), part.names))
    span, disagree = parts[0].span, False
    for part in parts[1:]:
        if not disagree and span.meets(part.span):
            span = span.narrowed(part.span)
        else:
            disagree = True
            span = span.widened(part.span)
    candidates = tuple(item for item in calendar if _key(span.after) < _key(item) <= _key(span.by))
    section = min((part.section for part in parts), key=ORDER.index)
    return ReleaseItem(parts[0].names[0], section, parts[0].title, span, candidates, disagree, tuple(parts))
