"""The readers in the evidence, in a fixed order, and sets of them as bits."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Reader", "Readers", "Sums", "highest", "lowest", "places"]

CACHED = 1 << 14
"""Size of the cache that maps sets to their releases. Most sets of readers that behaved alike recur."""


class Reader(NamedTuple):
    """A source of observations.

    Attributes:
        name: exact name, ``torch-1.12.1+cu102``.
        release: its public version.
        rank: the position of the release in the calendar.
        recorded: whether its observations are kept in the repository. A reader that is recorded and was also just observed
            is two sources with the same name.
    """

    name: str
    release: str
    rank: int
    recorded: bool


class Readers:
    """Readers in the order of their releases, then of their names, recorded before fresh for the same name.

    A set of them is an ``int``: bit 0 stands for the first reader. Since the order is that of the releases, the lowest bit of a
    set is its oldest reader, and releases up to one, or from one on, are a range of bits.

    Attributes:
        recorded: the set of readers whose observations are kept in the repository.
    """

    def __init__(self, readers: Iterable[Reader]) -> None:
        self._all = tuple(sorted(readers, key=lambda reader: (reader.rank, reader.name, not reader.recorded)))
        self.recorded: int = self.where(lambda reader: reader.recorded)
        self.ranks: Callable[[int], int] = lru_cache(CACHED)(self._ranks)
        """The releases of a set of readers, as a bitmask indexed by rank."""

    def __iter__(self) -> Iterator[Reader]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def where(self, wanted: Callable[[Reader], bool]) -> int:
        """The set of readers for which a predicate holds."""
        return sum(1 << index for index, reader in enumerate(self._all) if wanted(reader))

    def of(self, bits: int) -> Iterator[Reader]:
        """The members of a set, in order."""
        return map(self._all.__getitem__, places(bits))

    def first(self, bits: int) -> Reader:
        """The oldest reader of a non-empty set."""
        return self._all[lowest(bits)]

    def _ranks(self, bits: int) -> int:
        result = 0
        for reader in self.of(bits):
            result |= 1 << reader.rank
        return result


class Sums:
    """A number for each of many readers, as sets: set ``i`` holds the readers whose number has bit ``i``.

    Adding one to the numbers of a set of readers takes about two set operations, however many readers it has.
    """

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: list[int] = []

    def add(self, bits: int) -> None:
        """Count the readers of a set once more."""
        for index, counted in enumerate(self._sets):
            self._sets[index] = counted ^ bits
            bits &= counted
            if not bits:
                return
        self._sets.append(bits)

    def items(self) -> Iterator[tuple[int, int]]:
        """The positions of the counted readers, and how many times each was counted."""
        every = 0
        for counted in self._sets:
            every |= counted
        for place in places(every):
            number = 0
            for counted in reversed(self._sets):
                number = number << 1 | counted >> place & 1
            yield place, number


def places(bits: int) -> Iterator[int]:
    """The indices of the set bits, from the lowest."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def lowest(bits: int) -> int:
    """The index of the lowest set bit; -1 if there is none."""
    return (bits & -bits).bit_length() - 1


def highest(bits: int) -> int:
    """The index of the highest set bit; -1 if there is none."""
    return bits.bit_length() - 1
