"""Sets of releases where only the releases of a list count: as numbers, one bit for each, and back.

What was recorded was asked of a list of releases. Loops over thousands of recorded facts compare such sets, and numbers are what
they can afford. Bit 0 is the oldest release of the list. Here and nowhere else, numbers become sets, texts and names, and sets
and texts become numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from torch_compat.errors import UsageError
from torch_compat.releases.labels import Labels
from torch_compat.releases.release import PREFIX, Release, stated
from torch_compat.releases.sets import Interval, ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["Known"]

_LINE = re.compile(r"[0-9]+\.[0-9]+")


class Known:
    """An ordered list of releases, and sets of them as numbers.

    Parameters:
        releases: their versions, oldest first, each once.

    Attributes:
        releases: the same.
        everyone: all of them, as bits.

    Raises:
        UsageError: a text is no version, or the order is another.
    """

    __slots__ = ("_bits", "_keys", "_labels", "_places", "_texts", "everyone", "parsed", "releases")

    def __init__(self, releases: Iterable[str]) -> None:
        self.releases = tuple(releases)
        self.parsed = tuple(map(Release, self.releases))
        self._keys = [release.key for release in self.parsed]
        if any(one >= other for one, other in zip(self._keys, self._keys[1:], strict=False)):
            raise UsageError(f"expected unique releases in calendar order; found {', '.join(self.releases)}", code="no-releases")
        self._labels = Labels(self.releases)
        self._places = {release: at for at, release in enumerate(self.releases)}
        self.everyone = (1 << len(self.releases)) - 1
        self._bits: dict[str, int] = {}
        self._texts: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.releases)

    def __contains__(self, release: object) -> bool:
        return release in self._places

    def place(self, release: str) -> int:
        """Which bit is that of a release, 0 the oldest; raises KeyError for one that is not of the list."""
        return self._places[release]

    def bit(self, release: str) -> int:
        """The set of this one release; raises KeyError for one that is not of the list."""
        return 1 << self._places[release]

    def holding(self, releases: Iterable[str]) -> int:
        """The set of these releases; raises KeyError for one that is not of the list."""
        found = 0
        for release in releases:
            found |= 1 << self._places[release]
        return found

    def bits_of(self, releases: ReleaseSet) -> int:
        """Those releases of the list that are in a set."""
        found = 0
        keys = self._keys
        for first, last, with_first, with_last in releases.intervals:
            start = 0 if first is None else bisect_left(keys, first.key)
            end = len(keys) if last is None else bisect_left(keys, last.key)
            start += first is not None and not with_first and start < len(keys) and keys[start] == first.key
            end += last is not None and with_last and end < len(keys) and keys[end] == last.key
            if start < end:
                found |= (1 << end) - (1 << start)
        return found

    def bits(self, text: str) -> int:
        """The set that a text describes, each of whose ends is of the list.

        Raises:
            UsageError: the text describes no set, or names another release.
        """
        known = self._bits.get(text)
        if known is None:
            found = ReleaseSet.parse(text)
            other = sorted(found.ends - self._places.keys())
            if other:
                raise UsageError(f"{text!r} refers to unknown releases: {', '.join(other)}", code="no-releases")
            known = self._bits[text] = self.bits_of(found)
        return known

    def spans(self, bits: int) -> Iterator[tuple[str, str]]:
        """The first and the last of the releases that follow one another."""
        return self._labels.spans(bits)

    def text(self, bits: int) -> str:
        """The shortest text of a set, as recorded files have it: without blanks, and open to the future where the newest is in it."""
        known = self._texts.get(bits)
        if known is None:
            known = self._texts[bits] = self._labels.text(bits)
        return known

    def set(self, bits: int) -> ReleaseSet:
        """Releases of the list as a set, which is open to the future where the newest is in it."""
        newest = self.releases[-1] if self.releases else ""
        return ReleaseSet(
            Interval(Release(first), None if last == newest else Release(last)) for first, last in self._labels.spans(bits)
        )

    def of(self, bits: int) -> tuple[str, ...]:
        """The releases that bits stand for, oldest first."""
        return tuple(release for at, release in enumerate(self.releases) if bits >> at & 1)

    def without(self, releases: Collection[str]) -> Known:
        """The list without these."""
        return Known(one for one in self.releases if one not in releases)

    def find(self, name: str) -> str | None:
        """The release of the list that a name means: ``torch-1.2.0``, ``1.2.0``, ``1.2.0+cpu``, or ``1.2`` for the newest patch of
        1.2; None where it means none.
        """
        version = name.removeprefix(PREFIX)
        if _LINE.fullmatch(version):
            return next((str(one) for one in reversed(self.parsed) if one.line == version), None)
        asked = stated(version)
        return asked.public if asked is not None and asked.public in self._places else None

    def near(self, name: str) -> tuple[str, ...]:
        """Releases of the list that a name which means none of them may stand for: those of its line, the nearest first, else those on
        both sides of it and the one that is spelled most like it; none where it is no version.
        """
        from difflib import get_close_matches  # noqa: PLC0415 - only for somebody who is wrong

        asked = stated(name.removeprefix(PREFIX))
        if asked is None:
            return ()
        same = [one for one in self.parsed if one.line == asked.line]
        if same:
            return tuple(map(str, sorted(same, key=lambda one: (abs(one.numbers[2] - asked.numbers[2]), one.key))))
        at = bisect_left(self._keys, asked.key)
        alike = get_close_matches(asked.public, self.releases, n=1)
        return tuple(dict.fromkeys([*self.releases[max(0, at - 1) : at + 1], *alike]))

    def newest(self, release: Release) -> int | None:
        """The place of the newest release that is no newer than this one; None where all are."""
        at = bisect_left(self._keys, release.key)
        return at if at < len(self._keys) and self._keys[at] == release.key else at - 1 if at else None

    def nearest(self, release: Release) -> int:
        """The place of the release that stands for one which is not of the list: the nearest patch of its line, of two the newer one;
        else the newest before it; else the oldest.
        """
        patch = release.numbers[2]
        same = [
            (abs(one.numbers[2] - patch), -one.numbers[2], at) for at, one in enumerate(self.parsed) if one.line == release.line
        ]
        return min(same)[2] if same else self.newest(release) or 0
