"""The data of the page for each pair of a writer and a reader: outcomes of its cells, and their causes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import release_folder
from torch_compat.corpus.observations import REFERENCE
from torch_compat.judging.cell import Outcome
from torch_compat.report.breaks import MARKS, WORST_FIRST, is_reference, order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.findings import Named
    from torch_compat.judging.judge import Report

__all__ = ["DEFAULT", "PairCells", "Pairs", "pairs_of"]

DEFAULT: Final = "default"
KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})


@dataclass
class PairCells:
    """All cells of one writer, reader, family and set of load options.

    Attributes:
        counts: cells by outcome.
        causes: cells by the id of their finding. A cell may belong to several findings.
    """

    counts: Counter[Outcome] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """The number of cells."""
        return self.counts.total()

    @property
    def kept(self) -> int:
        """The number of cells that are the same or close."""
        return sum(self.counts[item] for item in KEPT)

    @property
    def share(self) -> str:
        """The kept cells in percent, rounded down, so that 100 means all of them; ``<1`` if some are kept, but less than one percent."""
        percent = self.kept * 100 // self.total
        return "<1" if not percent and self.kept else str(percent)

    @property
    def step(self) -> int:
        """The step of the color scale, 0 to 10. The last step means that all cells are kept."""
        return self.kept * 10 // self.total

    @property
    def worst(self) -> Outcome | None:
        """The most severe outcome that is not kept; None if all cells are kept."""
        return next((item for item in WORST_FIRST if self.counts[item] and item not in KEPT), None)

    @property
    def mark(self) -> str:
        """The mark of the most severe outcome; "" if all cells are kept."""
        return MARKS[self.worst][0] if self.worst is not None else ""


Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Pairs:
    """Every pair, by writer, reader, family and load options."""

    all: dict[Key, PairCells]

    @property
    def families(self) -> list[str]:
        """Every family that was read with default load options."""
        return sorted({family for _, _, family, options in self.all if options == DEFAULT})

    @cached_property
    def all_readers(self) -> list[str]:
        """Every reader, oldest first."""
        return sorted({reader for _, reader, _, _ in self.all}, key=order)

    @cached_property
    def _places(self) -> dict[str, str]:
        return {reader: f"r{number}" for number, reader in enumerate(self.all_readers, 1)}

    def place(self, reader: str) -> str:
        """The id of a reader's section in the file of each writer. Short, since each cell of a matrix contains one."""
        return self._places[reader]

    def writers(self, family: str | None = None) -> list[str]:
        """The writers of a family, or of all, oldest first."""
        return sorted({writer for writer, _, item, _ in self.all if family in {None, item}}, key=order)

    def readers(self, family: str) -> list[str]:
        """The readers of a family, oldest first."""
        return sorted({reader for _, reader, item, options in self.all if item == family and options == DEFAULT}, key=order)

    def runs(self, writer: str, family: str) -> Iterator[tuple[PairCells | None, list[str]]]:
        """The results of readers for the archives of a writer under default options, with identical consecutive readers combined.

        Readers are identical only if their causes are too, not just their outcomes. None for readers that were not tested.
        """
        pairs = {reader: self.all.get((writer, reader, family, DEFAULT)) for reader in self.readers(family)}
        for pair, run in groupby(pairs, key=pairs.__getitem__):
            yield pair, list(run)


def pairs_of(evidence: Evidence, report: Report, named: Iterable[Named]) -> Pairs:
    """All pairs in a report, with the causes of their cells."""
    results: dict[Key, PairCells] = defaultdict(PairCells)
    for (writer, reader, family, options), counts in report.outcomes.items():
        results[writer, _column(reader), family, options].counts.update(counts)
    readers: dict[int, list[str]] = {}
    for item in named:
        cells = item.judgement.cells
        if cells is None or not item.id:
            continue
        if cells.readers not in readers:
            readers[cells.readers] = [_column(reader.name) for reader in evidence.readers.of(cells.readers)]
        writer, family, options = release_folder(cells.fixture.release), cells.fixture.family, cells.options.id
        for reader in readers[cells.readers]:
            key = (writer, reader, family, options)
            if key in results:
                results[key].causes[item.id] += 1
    return Pairs(dict(results))


def _column(reader: str) -> str:
    """The column of a reader: the reference reader has one column for all its horizons."""
    return REFERENCE if is_reference(reader) else reader
