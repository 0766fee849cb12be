"""The statements of slips about loading, compared with all observations of real releases.

Slips at run time are counted by `nox -s predictions`, which runs every program once for each release; the counts are in
reports/predictions.md. `.ci/run` executes a sample, and compares the document with it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.recordings import readers_of
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.formats.facts import read_facts
from torch_compat.loadability import Judge, packaged_rules
from torch_compat.policy import load_policy
from torch_compat.releases.behavior import SLIPS
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime import slips

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.formats.model import Facts
    from torch_compat.loadability.requirement import Item
    from torch_compat.releases.behavior import Behavior

REPOSITORY = Path(__file__).parents[2]
POLICY = load_policy(REPOSITORY / "policies" / "torch")
LOADING = [entry for entry in POLICY.behaviors if entry.outcome in SLIPS and entry.stage == "load"]
Death = tuple[str, str]  # outcome and signal


class Evidence:
    """Of every program: its facts, what each reader lacks for it, and how each died of loading it."""

    def __init__(self, corpus: Corpus) -> None:
        judge = Judge(packaged_rules())
        self.needs = judge.rules.needs
        place = {name: at for at, name in enumerate(judge.rules.releases)}
        programs = [
            fixture
            for fixture in corpus.fixtures.values()
            if fixture.family in {"torchscript", "mobile"} and fixture.release != SYNTHETIC
        ]
        facts = {item.id: read_facts(corpus.path(item), verify=False) for item in programs}
        items = {name: judge.items(fact) for name, fact in facts.items()}
        self.readers: list[str] = []
        self.refused: list[tuple[str, str, Facts, list[Item]]] = []
        self.died: dict[tuple[str, str], Death] = {}
        for reader in readers_of(REPOSITORY).values():
            self.readers.append(reader.release)
            for program in programs:
                cell = reader.cells[program.id, "default"]
                if cell.result in {"crashed", "timed-out"} and cell.stage == "load":
                    self.died[reader.release, program.id] = cell.result, cell.signal
                lacking = [item for item in items[program.id] if not item.takers >> place[reader.release] & 1]
                no_loader = program.family == "mobile" and Release(reader.release) < Release("1.6.0")  # Python cannot even ask
                if lacking and not no_loader:
                    self.refused.append((reader.release, program.id, facts[program.id], lacking))
        self.readers.sort(key=Release)

    def predicted(self, readers: frozenset[str] | None = None) -> dict[tuple[str, str], Behavior]:
        """The slip in place of each refusal."""
        results = (
            (reader, name, slips.while_loading(facts, lacking, self.needs, Release(reader)))
            for reader, name, facts, lacking in self.refused
            if readers is None or reader in readers
        )
        return {(reader, name): slip for reader, name, slip in results if slip is not None}

    def deviations(self, readers: frozenset[str] | None = None) -> list[tuple[tuple[str, str], Death | None, Death | None]]:
        """Where what is predicted is not what was seen."""
        messages = {cell: (slip.outcome, slip.signal) for cell, slip in self.predicted(readers).items()}
        died = {cell: death for cell, death in self.died.items() if readers is None or cell[0] in readers}
        return [
            (cell, died.get(cell), messages.get(cell))
            for cell in died.keys() | messages.keys()
            if died.get(cell) != messages.get(cell)
        ]


@pytest.fixture(scope="module")
def evidence(corpus: Corpus) -> Evidence:
    return Evidence(corpus)


def test_releases_die_of_loading_exactly_where_a_slip_says_so(evidence: Evidence) -> None:
    assert len(evidence.died) > 6000
    assert evidence.deviations() == []


def test_every_slip_explains_as_many_cells_as_the_lock_states(evidence: Evidence) -> None:
    counted = Counter(slip.id for slip in evidence.predicted().values())
    assert counted == {slip.id: POLICY.counts["behavior", slip.id] for slip in LOADING}


# What no archive of the corpus shows: hooks in a file format that 1.5 to 1.7 do not read, or in a program that 1.8 refuses; what 1.3
# does with a program in a pickle is to read it.
UNSEEN = {("hooks-without-type", "none"), ("hooks-without-type", "later"), ("zip-reader-closes-in-error", "later")}


@pytest.mark.parametrize("name", [slip.id for slip in LOADING])
def test_a_slip_that_is_not_there_or_ends_elsewhere_is_noticed(
    name: str, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = slips.every()
    (slip,) = (item for item in every if item.id == name)
    assert slip.readers is not None
    (first,) = (interval.first for interval in slip.readers.intervals)
    own = [reader for reader in evidence.readers if Release(reader) in slip.readers]
    after = evidence.readers[evidence.readers.index(own[-1]) + 1]

    def deviations(reader: str, instead: Behavior | None) -> int:
        changed = tuple(item for item in (instead if item is slip else item for item in every) if item is not None)
        with monkeypatch.context() as patched:
            patched.setattr(slips, "every", lambda: changed)
            slips.slips_of.cache_clear()
            result = len(evidence.deviations(frozenset({reader})))
        slips.slips_of.cache_clear()
        return result

    planted = {
        "missing": (own[-1], None),
        "earlier": (own[-1], slip._replace(readers=ReleaseSet.between(first, Release(own[-2])))),
        "later": (after, slip._replace(readers=ReleaseSet.between(first, Release(after)))),
        "none": (own[-1], slip._replace(when=slip.when._replace(none=()))),
    }
    assert deviations(own[-1], slip) == deviations(after, slip) == 0
    unseen = {what for what, (reader, instead) in planted.items() if not deviations(reader, instead)}
    assert {(name, what) for what in unseen} == {item for item in UNSEEN if item[0] == name}
