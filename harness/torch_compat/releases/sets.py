"""The type of a set of releases, and its text form.

A set is a union of intervals in the order of all possible versions, released or not. It can be open to the past and to the future, and its
complement is a set, too. Local parts of versions are ignored::

    1.5.0..1.8.1, 2.0.0..      from 1.5.0 to 1.8.1, and from 2.0.0 on
    1.5.0                      one release
    ..1.2.0                    up to 1.2.0
    ..<1.5.0, >1.8.1..         both ends without the release that they name
    ..                         every release
    none                       no release

The text of a set lists its intervals in order, and as few as possible; parsing it gives the same set.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from torch_compat.errors import UsageError
from torch_compat.releases.release import Key, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["EVERY", "NONE", "Interval", "ReleaseSet"]

LONGEST: Final = 1 << 14
"""Maximum length of the text of a set: enough for a thousand intervals."""
_BEFORE, _AFTER = 0, 1

Cut: TypeAlias = tuple[Key, int, str]
"""A boundary of a set: just before a release (0) or just after it (1), with its text."""


class Interval(NamedTuple):
    """The releases between two ends.

    Attributes:
        first: the older end; None if the interval is open to the past.
        last: the newer end; None if it is open to the future.
        with_first, with_last: whether the ends are included.
    """

    first: Release | None
    last: Release | None
    with_first: bool = True
    with_last: bool = True

    def __str__(self) -> str:
        if self.first is not None and self.first == self.last and self.with_first and self.with_last:
            return self.first.public
        first = "" if self.first is None else f"{'' if self.with_first else '>'}{self.first.public}"
        last = "" if self.last is None else f"{'' if self.with_last else '<'}{self.last.public}"
        return f"{first}..{last}"


@final
class ReleaseSet:
    """A set of releases. Immutable; equal sets have equal texts.

    Parameters:
        intervals: the intervals, in any order; they may overlap.

    Raises:
        UsageError: an interval runs from a newer release to an older one.
    """

    __slots__ = ("_cuts", "_oldest")

    _cuts: tuple[Cut, ...]  # sorted; membership changes at each cut
    _oldest: bool  # whether the set is open to the past

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        opened, changes = 0, dict[Cut, int]()
        for interval in intervals:
            first, last = interval.first, interval.last
            begin = None if first is None else _cut(first, _BEFORE if interval.with_first else _AFTER)
            end = None if last is None else _cut(last, _AFTER if interval.with_last else _BEFORE)
            if begin is not None and end is not None and end <= begin:
                raise UsageError(f"the releases {str(interval)!r} must go from older to newer releases", code="backward-releases")
            if begin is None:
                opened += 1
            else:
                changes[begin] = changes.get(begin, 0) + 1
            if end is not None:
                changes[end] = changes.get(end, 0) - 1
        self._oldest = opened > 0
        cuts: list[Cut] = []
        for cut in sorted(changes):
            before, opened = opened, opened + changes[cut]
            if (before > 0) != (opened > 0):
                cuts.append(cut)
        self._cuts = tuple(cuts)

    @staticmethod
    def parse(text: str) -> ReleaseSet:
        """Parse the text of a set.

        Raises:
            UsageError: the text does not describe a set; names the invalid part, and what was expected.
        """
        return _parsed(text)

    @staticmethod
    def of(*releases: Release) -> ReleaseSet:
        """Return the set of these releases."""
        return ReleaseSet(Interval(release, release) for release in releases)

    @staticmethod
    def between(first: Release | None = None, last: Release | None = None) -> ReleaseSet:
        """Return the set of releases between two ends, both included; open on the side of an omitted end."""
        return ReleaseSet([Interval(first, last)])

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The disjoint intervals of the set, in order and as few as possible."""
        results: list[Interval] = []
        begin: Cut | None = None
        inside = self._oldest
        for cut in self._cuts:
            if inside:
                results.append(_interval(begin, cut))
            begin, inside = cut, not inside
        if inside:
            results.append(_interval(begin, None))
        return tuple(results)

    @property
    def first(self) -> Release | None:
        """The release with which, or just after which, the set begins; None if it is open to the past, or empty."""
        return Release(self._cuts[0][2]) if self._cuts and not self._oldest else None

    @property
    def last(self) -> Release | None:
        """The release with which, or just before which, the set ends; None if it is open to the future, or empty."""
        return Release(self._cuts[-1][2]) if self._cuts and not self._newest else None

    @property
    def ends(self) -> frozenset[str]:
        """The public versions of all releases that the text of the set names."""
        return frozenset(cut[2] for cut in self._cuts)

    @property
    def _newest(self) -> bool:
        return self._oldest ^ bool(len(self._cuts) % 2)

    def __contains__(self, release: Release) -> bool:
        passed = bisect_right(self._cuts, (release.key, _BEFORE, release.public))
        return self._oldest ^ bool(passed % 2)

    def __or__(self, other: ReleaseSet) -> ReleaseSet:
        return self._combined(other, bool.__or__)

    def __and__(self, other: ReleaseSet) -> ReleaseSet:
        return self._combined(other, bool.__and__)

    def __sub__(self, other: ReleaseSet) -> ReleaseSet:
        return self._combined(other, bool.__gt__)

    def __xor__(self, other: ReleaseSet) -> ReleaseSet:
        return self._combined(other, bool.__ne__)

    def __invert__(self) -> ReleaseSet:
        return _made(self._cuts, oldest=not self._oldest)

    def __bool__(self) -> bool:
        return self._oldest or bool(self._cuts)

    def __le__(self, other: ReleaseSet) -> bool:
        return not self - other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReleaseSet):
            return NotImplemented
        return self._oldest == other._oldest and self._cuts == other._cuts

    def __hash__(self) -> int:
        return hash((self._oldest, self._cuts))

    def __str__(self) -> str:
        return ", ".join(map(str, self.intervals)) or "none"

    def __repr__(self) -> str:
        return f"ReleaseSet.parse({str(self)!r})"

    def __reduce__(self) -> tuple[Callable[[str], ReleaseSet], tuple[str]]:
        return ReleaseSet.parse, (str(self),)

    def _combined(self, other: ReleaseSet, rule: Callable[[bool, bool], bool]) -> ReleaseSet:
        mine, others = frozenset(self._cuts), frozenset(other._cuts)
        here, there = self._oldest, other._oldest
        oldest = inside = rule(here, there)
        cuts: list[Cut] = []
        for cut in sorted(mine | others):
            here ^= cut in mine
            there ^= cut in others
            if rule(here, there) != inside:
                inside = not inside
                cuts.append(cut)
        return _made(tuple(cuts), oldest=oldest)


def _made(cuts: tuple[Cut, ...], *, oldest: bool) -> ReleaseSet:
    result = object.__new__(ReleaseSet)
    result._cuts = cuts
    result._oldest = oldest
    return result


def _cut(release: Release, side: int) -> Cut:
    return release.key, side, release.public


def _interval(begin: Cut | None, end: Cut | None) -> Interval:
    return Interval(
        None if begin is None else Release(begin[2]),
        None if end is None else Release(end[2]),
        begin is None or begin[1] == _BEFORE,
        end is None or end[1] == _AFTER,
    )


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ReleaseSet:
    if len(text) > LONGEST:
        raise UsageError(f"expected releases in at most {LONGEST} characters, found {len(text)}", code="no-releases")
    if text == "none":
        return NONE
    return ReleaseSet(_part(part.strip(" "), text) for part in text.split(","))


def _part(part: str, text: str) -> Interval:
    first, dots, last = part.partition("..")
    if not dots:
        release = _end(first, part, text)
        return Interval(release, release)
    after, before = first.startswith(">"), last.startswith("<")
    return Interval(
        _end(first.removeprefix(">"), part, text) if first else None,
        _end(last.removeprefix("<"), part, text) if last else None,
        not after,
        not before,
    )


def _end(version: str, part: str, text: str) -> Release:
    try:
        return Release(version)
    except UsageError as error:
        shown = part if len(part) <= LONGEST >> 6 else part[: LONGEST >> 6] + "..."
        raise UsageError(
            f"expected releases such as '1.5.0..1.8.1, 2.0.0..', found {shown!r}" + ("" if shown == text else " among them"),
            hint="'2.0.0..' includes all newer releases, '..1.2.0' all older ones; '..' means all releases, 'none' no release",
            code="no-releases",
        ) from error


NONE: Final = ReleaseSet()
EVERY: Final = ~NONE
