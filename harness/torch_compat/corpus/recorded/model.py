"""The contents of a folder of recorded observations: groups of readers with equal outcomes, and the order of releases and readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.corpus.observations import (
    REFERENCE,
    Body,
    Observation,
    ObservedReader,
)
from torch_compat.releases.release import Key, Release, named, public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet


__all__ = [
    "SUFFIX",
    "VERSION",
    "Cell",
    "Column",
    "Group",
    "Recorded",
    "file_of",
    "outside",
    "place_of",
    "rank",
    "short_names",
    "together",
    "writer_of",
]

SUFFIX: Final = ".txt"
VERSION: Final = 3

Cell = tuple[str, str]


class Group(NamedTuple):
    """Readers with the same outcome for one fixture under one set of load options.

    Attributes:
        key: the key of their cells (see :func:`torch_compat.corpus.observations.cell_key`).
        body: their outcome.
        readers: a bit set: bit ``n`` stands for the ``n``-th reader of :attr:`Recorded.order`.
    """

    key: str
    body: Body
    readers: int


@dataclass(frozen=True)
class Recorded:
    """The contents of a folder.

    Attributes:
        readers: the readers by exact name.
        unreadable: files that cannot be read or used in full, by name, and why.
        order: the readers' names, oldest first.
        lines: by fixture and options, the outcomes with their readers.
        digest: digest of all files.
    """

    readers: dict[str, ObservedReader] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    lines: Mapping[Cell, tuple[Group, ...]] = field(default_factory=dict)
    digest: str = ""


class Column(Mapping[Cell, Observation]):
    """The cells of one reader; each observation is created on access."""

    def __init__(self, lines: Mapping[Cell, tuple[Group, ...]], bit: int) -> None:
        self.lines, self.bit = lines, bit

    def __getitem__(self, cell: Cell) -> Observation:
        for key, body, readers in self.lines[cell]:
            if readers & self.bit:
                return body.of(*cell, key)
        raise KeyError(cell)

    def __iter__(self) -> Iterator[Cell]:
        bit = self.bit
        return (cell for cell, groups in self.lines.items() if any(group.readers & bit for group in groups))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def entries(self) -> Iterator[tuple[Cell, str, Body]]:
        """Yield cells with key and body, without creating observations."""
        bit = self.bit
        for cell, groups in self.lines.items():
            for key, body, readers in groups:
                if readers & bit:
                    yield cell, key, body
                    break

    def __contains__(self, cell: object) -> bool:
        return any(group.readers & self.bit for group in self.lines.get(cell, ()))  # type: ignore[call-overload]


def outside(readers: Mapping[str, ObservedReader], known: AbstractSet[Cell]) -> dict[str, list[Cell]]:
    """Return the sorted cells of each reader that are not known ones. Computed once per folder, since its readers share its lines."""
    others: dict[int, AbstractSet[Cell]] = {}
    results: dict[str, list[Cell]] = {}
    for name, reader in readers.items():
        lines = reader.cells.lines if isinstance(reader.cells, Column) else reader.cells
        if id(lines) not in others:
            others[id(lines)] = lines.keys() - known
        results[name] = sorted(cell for cell in others[id(lines)] if cell in reader.cells)
    return results


def together(readers: Iterable[tuple[int, ObservedReader]]) -> Callable[[Cell, str], list[tuple[Observation, int]]]:
    """Return a function that gives each distinct observation of a cell once, with the set of its readers.

    The contents of a folder are already grouped: one observation is created per group, not per reader.

    Parameters:
        readers: each with its bit in sets.

    Returns:
        A function of a cell and the key that its observations must have.
    """
    folders: dict[int, tuple[Mapping[Cell, tuple[Group, ...]], dict[int, int], dict[int, int]]] = {}
    others: list[tuple[int, Mapping[Cell, Observation]]] = []
    for bit, reader in readers:
        cells = reader.cells
        if isinstance(cells, Column):
            folders.setdefault(id(cells.lines), (cells.lines, {}, {}))[1][cells.bit] = bit
        else:
            others.append((bit, cells))

    def found(cell: Cell, key: str) -> list[tuple[Observation, int]]:
        result: list[tuple[Observation, int]] = []
        for lines, bits, known in folders.values():
            for has, body, members in lines.get(cell, ()):
                if has == key:
                    mine = known.get(members)
                    if mine is None:
                        mine = known[members] = sum(bit for own, bit in bits.items() if members & own)
                    if mine:
                        result.append((body.of(*cell, key), mine))
        for bit, cells in others:
            observation = cells.get(cell)
            if observation is not None and observation.key == key:
                _put(result, observation, bit)
        return result

    return found


def _put(findings: list[tuple[Observation, int]], observation: Observation, bit: int) -> None:
    """Add a reader to those with the same observation of a cell."""
    for index, (known, bits) in enumerate(findings):
        if known.result == observation.result and known.digest == observation.digest and known == observation:
            findings[index] = (known, bits | bit)
            return
    findings.append((observation, bit))


@lru_cache(maxsize=4096)
def rank(label: str) -> tuple[int, Key]:
    """Sort key of a writer, a reader's name or a file: synthetic before all releases, the reference reader after them."""
    if label == SYNTHETIC:
        return -1, _NO_RELEASE
    if label == REFERENCE:
        return 1, _NO_RELEASE
    return 0, named(label).key


_NO_RELEASE: Final = Release("0.0").key


def place_of(label: str) -> tuple[tuple[int, Key], str]:
    """The rank, with a tie-breaker for builds of one release and for 1.5 and 1.5.0, so that no order depends on set order."""
    return rank(label), label


def file_of(name: str) -> str:
    """Return the file of a reader: that of its release, regardless of the build."""
    return name if rank(name)[0] else f"torch-{public(name)}"


def short_names(names: Iterable[str]) -> list[str]:
    """Return short release names, in order: without "torch-", and without the build if the release has only one."""
    shorter = [name.removeprefix("torch-") for name in names]
    count = Counter(map(public, shorter))
    return [public(name) if count[public(name)] == 1 else name for name in shorter]


def writer_of(fixture: str) -> tuple[str, str]:
    """Split a fixture's id into release and recipe."""
    folder, _, recipe = fixture.partition("/")
    return folder.removeprefix("torch-"), recipe
