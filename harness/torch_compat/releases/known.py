"""Converts sets of the releases in a list to bitmasks, one bit per release, and back.

Facts are recorded for a list of releases. Loops over thousands of recorded facts compare sets of these, for which only bitmasks are fast
enough. Bit 0 is the oldest release of the list. All conversions between bitmasks and sets, texts and names are in this module.
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
    """An ordered list of releases, with conversions of sets of them to bitmasks and back.

    Parameters:
        releases: their unique versions, oldest first.

    Attributes:
        releases: the versions, oldest first.
        everyone: all releases, as a bitmask.

    Raises:
        UsageError: a text is not a version, or the versions are not unique and in order.
    """

    __slots__ = ("_bits", "_keys", "_labels", "_places", "_texts", "everyone", "parsed", "releases")

    def __init__(self, releases: Iterable[str]) -> None:
        self.releases = tuple(releases)
        self.parsed = tuple(map(Release, self.releases))
        self._keys = [release.key for release in self.parsed]
        if any(key >= other for key, other in zip(self._keys, self._keys[1:], strict=False)):
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
        """Return the bit index of a release, 0 for the oldest; KeyError if it is not in the list."""
        return self._places[release]

    def bit(self, release: str) -> int:
        """Return the bitmask of one release; KeyError if it is not in the list."""
        return 1 << self._places[release]

    def holding(self, releases: Iterable[str]) -> int:
        """Return the bitmask of these releases; KeyError if one is not in the list."""
        result = 0
        for release in releases:
            result |= 1 << self._places[release]
        return result

    def bits_of(self, releases: ReleaseSet) -> int:
        """Return the bitmask of the listed releases that are in a set."""
        result = 0
        keys = self._keys
        for first, last, with_first, with_last in releases.intervals:
            start = 0 if first is None else bisect_left(keys, first.key)
            end = len(keys) if last is None else bisect_left(keys, last.key)
            start += first is not None and not with_first and start < len(keys) and keys[start] == first.key
            end += last is not None and with_last and end < len(keys) and keys[end] == last.key
            if start < end:
                result |= (1 << end) - (1 << start)
        return result

    def bits(self, text: str) -> int:
        """Return the bitmask of the set that a text describes; its ends must be in the list.

        Raises:
            UsageError: the text does not describe a set, or names a release that is not in the list.
        """
        known = self._bits.get(text)
        if known is None:
            result = ReleaseSet.parse(text)
            other = sorted(result.ends - self._places.keys())
            if other:
                raise UsageError(f"{text!r} refers to unknown releases: {', '.join(other)}", code="no-releases")
            known = self._bits[text] = self.bits_of(result)
        return known

    def spans(self, bits: int) -> Iterator[tuple[str, str]]:
        """Return the first and last release of each run of consecutive releases."""
        return self._labels.spans(bits)

    def text(self, bits: int) -> str:
        """Return the shortest text of a set, as in recorded files: without spaces, and open-ended if it includes the newest release."""
        known = self._texts.get(bits)
        if known is None:
            known = self._texts[bits] = self._labels.text(bits)
        return known

    def set(self, bits: int) -> ReleaseSet:
        """Return the releases of a bitmask as a set, which is open-ended if it includes the newest release."""
        newest = self.releases[-1] if self.releases else ""
        return ReleaseSet(
            Interval(Release(first), None if last == newest else Release(last)) for first, last in self._labels.spans(bits)
        )

    def of(self, bits: int) -> tuple[str, ...]:
        """Return the releases of a bitmask, oldest first."""
        return tuple(release for at, release in enumerate(self.releases) if bits >> at & 1)

    def without(self, releases: Collection[str]) -> Known:
        """Return the list without these releases."""
        return Known(release for release in self.releases if release not in releases)

    def find(self, name: str) -> str | None:
        """Return the listed release with a name such as ``torch-1.2.0``, ``1.2.0``, ``1.2.0+cpu``; None if there is none.

        ``1.2`` is the newest patch of 1.2.
        """
        version = name.removeprefix(PREFIX)
        if _LINE.fullmatch(version):
            return next((str(item) for item in reversed(self.parsed) if item.line == version), None)
        asked = stated(version)
        return asked.public if asked is not None and asked.public in self._places else None

    def near(self, name: str) -> tuple[str, ...]:
        """Return listed releases that an unknown name may refer to; empty if it is not a version.

        These are the releases of the same minor version, nearest first; if there are none, the releases just before and after it, and the
        one with the most similar spelling.
        """
        from difflib import get_close_matches  # noqa: PLC0415 - only for error messages

        asked = stated(name.removeprefix(PREFIX))
        if asked is None:
            return ()
        same = [item for item in self.parsed if item.line == asked.line]
        if same:
            return tuple(map(str, sorted(same, key=lambda release: (abs(release.numbers[2] - asked.numbers[2]), release.key))))
        at = bisect_left(self._keys, asked.key)
        alike = get_close_matches(asked.public, self.releases, n=1)
        return tuple(dict.fromkeys([*self.releases[max(0, at - 1) : at + 1], *alike]))

    def newest(self, release: Release) -> int | None:
        """Return the index of the newest release that is not newer than this one; None if all are newer."""
        at = bisect_left(self._keys, release.key)
        return at if at < len(self._keys) and self._keys[at] == release.key else at - 1 if at else None

    def nearest(self, release: Release) -> int:
        """Return the index of the release that represents one that is not in the list.

        This is the nearest patch of its minor version, the newer one in case of a tie; else the newest release before it; else the oldest.
        """
        patch = release.numbers[2]
        same = [
            (abs(item.numbers[2] - patch), -item.numbers[2], at)
            for at, item in enumerate(self.parsed)
            if item.line == release.line
        ]
        return min(same)[2] if same else self.newest(release) or 0
