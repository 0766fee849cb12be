"""Loadability: the harness's verdict on every fixture, compared with everything that real releases were observed to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.errors import CorpusError
from torch_compat.formats.facts import read_facts
from torch_compat.loadability import Judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.formats.model import Facts
    from torch_compat.loadability import Rules
    from torch_compat.loadability.requirement import Item

__all__ = ["LoadingEvidence", "loads", "takers_of"]


@dataclass(frozen=True)
class LoadingEvidence:
    """Facts and needs of every fixture, and the releases that loaded it or were asked, as bits over the calendar."""

    facts: dict[str, Facts]
    items: dict[str, tuple[Item, ...]]
    loaded: dict[str, dict[str, int]]
    asked: dict[str, dict[str, int]]

    @classmethod
    def of(cls, corpus: Corpus, readers: Iterable[ObservedReader], rules: Rules) -> LoadingEvidence:
        """Read the archives of a corpus, and collect which releases loaded them.

        Parameters:
            readers: the recorded observations of each reader.
        """
        bits = {release: 1 << at for at, release in enumerate(rules.releases)}
        facts = {name: read_facts(corpus.path(fixture)) for name, fixture in corpus.fixtures.items()}
        loaded: dict[str, dict[str, int]] = {}
        asked: dict[str, dict[str, int]] = {}
        unloadable = {name for name, fixture in corpus.fixtures.items() if fixture.golden.get("error", {}).get("stage") == "load"}
        for reader in readers:
            for (fixture, options), cell in reader.cells.items():
                of_options = asked.setdefault(options, {})
                of_options[fixture] = of_options.get(fixture, 0) | bits[reader.release]
                if cell.result == "relaxed" if fixture in unloadable else loads(cell):
                    taken = loaded.setdefault(options, {})
                    taken[fixture] = taken.get(fixture, 0) | bits[reader.release]
        complete = {options: {fixture: taken.get(fixture, 0) for fixture in asked[options]} for options, taken in loaded.items()}
        judge = Judge(rules)
        return cls(facts, {name: judge.items(fact) for name, fact in facts.items()}, complete, asked)

    def deviations(self, rules: Rules) -> Counter[str]:
        """The number of cells whose verdict under these rules differs from the observation, by family."""
        judge = Judge(rules)
        results: Counter[str] = Counter()
        for fixture, facts in self.facts.items():
            results[facts.family] += self.wrong(fixture, takers_of(judge.items(facts)))
        return +results

    def deviations_if(self, need: str, takers: int) -> int:
        """The number of deviations if ``takers`` were the releases that meet a need."""
        return sum(
            self.wrong(fixture, takers_of([item._replace(takers=takers) if item.what == need else item for item in items]))
            for fixture, items in self.items.items()
        )

    def explained(self, need: str, rules: Rules) -> int:
        """The number of cells whose verdict would be wrong without a need."""
        return self.deviations_if(need, rules.everyone)

    def wrong(self, fixture: str, takers: int) -> int:
        """The number of cells of a fixture in which these releases are not those that loaded it."""
        return ((takers ^ self.loaded["default"][fixture]) & self.asked["default"][fixture]).bit_count()


def takers_of(items: Iterable[Item]) -> int:
    """The releases that meet all needs, as bits over any calendar."""
    takers = -1
    for item in items:
        takers &= item.takers
    return takers


def loads(cell: Observation) -> bool:
    """Whether the load call returned, in both runs.

    Raises:
        CorpusError: it returned in only one of the two runs.
    """
    if cell.result == "unstable":
        both = {loads(item) for item in cell.both}
        if len(both) > 1:
            raise CorpusError(
                "loaded in only one of two runs, so no rule can decide whether it loads",
                where=" ".join(cell.cell),
                code="unstable-load",
            )
        return both.pop()
    if cell.result in {"crashed", "timed-out"}:
        return cell.stage == "call"
    return cell.result != "refused"
