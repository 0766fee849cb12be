"""Items of a release report: one fact each, with one date, whichever rules and records saw it.

Every record of a fact is a :class:`FactRecord` that says between which two releases it found the fact to begin. Parts that share a name are
one item. The item begins where all its parts agree; where they exclude each other, it says so and names the outermost bounds.
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
    """Where an item stands, gravest first: an item of several kinds stands in the first of its sections."""

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
    """A text on one line, cut where it is longer than a person reads."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(text) <= longest else f"{line[: longest - 1]}…"


class Span(NamedTuple):
    """Something begins after one release, and by another at the latest.

    Attributes:
        after: the newest release that is known not to have it; "" where no release is known not to.
        by: the oldest release that is known to have it.
    """

    after: str
    by: str

    def meets(self, other: Span) -> bool:
        """Whether both can be right."""
        return _key(self.after) < _key(other.by) and _key(other.after) < _key(self.by)

    def narrowed(self, other: Span) -> Span:
        """What both say together, where they meet."""
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
        command: shows it, from what is recorded.
        size: bytes of the archive, by which the smallest one is chosen.
        snippet: lines of Python that show it in either release; "" where it cannot be shown so.
        outputs: what they print, or raise, in the older and the newer release.
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
    """What one record says of a fact.

    Attributes:
        names: names of the fact, such as ``waiver:torch-solve`` or ``deprecation:solve``. Parts that share one are one item.
        rank: of the titles of all parts of an item, the one with the least rank counts.
        says: what this record knows, in one line.
        archives: ids of the archives concerned.
        newer, older: how many cells of the newer release, and of releases before it, show it.
        operators: operators concerned.
        why: the recorded explanation; "" where there is none.
        findings: ids of findings.
        open: whether some of it is neither waived nor expected.
        announced: the version number that announces it; "" where none does.
        advice: what users can do, where a record says so.
        details: lines that only a full report prints.
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
        id: a stable name: that of its most telling record.
        span: between which releases it begins.
        candidates: the releases of the calendar with which it may begin, oldest first.
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
        """The archives concerned."""
        return frozenset[str]().union(*(part.archives for part in self.parts))

    @property
    def newer(self) -> int:
        """How many cells of the release show it."""
        return sum(part.newer for part in self.parts)

    @property
    def older(self) -> int:
        """How many cells of the release before show it, with archives of the release."""
        return sum(part.older for part in self.parts)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators concerned, sorted."""
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
        """What is recorded as explanation, each text once."""
        return tuple(dict.fromkeys(part.why for part in self.parts if part.why))

    @property
    def advice(self) -> tuple[str, ...]:
        """What users can do."""
        return tuple(dict.fromkeys(part.advice for part in self.parts if part.advice))

    @property
    def shown(self) -> Shown | None:
        """The smallest example, of the gravest section that has one."""
        found = [part for part in self.parts if part.shown]
        if not found:
            return None
        return min(found, key=lambda part: (ORDER.index(part.section), part.shown.size if part.shown else 0, part.title)).shown

    @property
    def when(self) -> str:
        """With which release it begins, in words."""
        if self.disagree:
            return f"between {self.span.after or 'the first release'} and {self.span.by} (the records disagree)"
        if len(self.candidates) > 1:
            return " or ".join((", ".join(self.candidates[:-1]), self.candidates[-1]))
        return self.span.by


def merged(parts: Iterable[FactRecord], calendar: Sequence[str]) -> list[ReleaseItem]:
    """Parts put together by the names that they share; the gravest items first, then those with the most cells.

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
        for other in known[1:]:  # this part shows that two facts are one
            groups[at] += groups[other]
            groups[other] = []
            place.update({name: at for name, where in place.items() if where == other})
        groups[at].append(part)
        place.update(dict.fromkeys(part.names, at))
    found = [_item(group, calendar) for group in groups if group]
    return sorted(
        found, key=lambda item: (ORDER.index(item.section), -item.newer - item.older, -len(item.operators), item.title, item.id)
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
    candidates = tuple(one for one in calendar if _key(span.after) < _key(one) <= _key(span.by))
    section = min((part.section for part in parts), key=ORDER.index)
    return ReleaseItem(parts[0].names[0], section, parts[0].title, span, candidates, disagree, tuple(parts))
