"""Draw a sample of predictions: some cells of every reader, and at least one cell for every named cause of a behavior.

Executing every program at the horizon of every release takes minutes, so it is not done for each change. The sample consists of:

    otherwise   every cell in which the release neither reproduced the writer's own result nor refused: changed operators,
                slips of programs that run, changed loaders
    border      both sides of each change in the records of an archive from one reader to the next: a rule for a range of releases
                shows at the ends of the range first
    refused     of the cells that were refused or died loading, one for each combination of recipe, line of the reader, outcome, and
                everything the release lacks; and of those that died, some for each reader, by the seed
    ordinary    some of all other cells of each reader, by the seed
    named       one cell, by the seed, for each named cause whose effect none of the cells above shows

A cell counts under the first reason that applies. Loadability is compared for every cell of every family, not only of programs, as
this executes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from torch_compat.errors import CorpusError
from torch_compat.loadability import Judge
from torch_compat.operators.call_signature import bare
from torch_compat.releases.release import Release
from torch_compat.replay.loading import loads, takers_of
from torch_compat.rules.reference_agrees import DEAD
from torch_compat.torchscript.calls import KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from torch_compat.corpus.observations import Observation
    from torch_compat.judging.evidence import Evidence
    from torch_compat.loadability import Rules
    from torch_compat.policy.counts import Key
    from torch_compat.replay.loading import LoadingEvidence
    from torch_compat.replay.plan import Task

__all__ = ["BORDER", "NAMED", "ORDINARY", "OTHERWISE", "REASONS", "REFUSED", "ExecutedSample", "draw"]

OTHERWISE, BORDER, REFUSED, ORDINARY, NAMED = REASONS = ("otherwise", "border", "refused", "ordinary", "named")
DEATHS = 150  # for each reader: about a hundred of each frequent slip
Cell = tuple[str, str]
"""A fixture and a reader's release."""


@dataclass(frozen=True)
class ExecutedSample:
    """The cells to execute, and why.

    Attributes:
        tasks: the programs of each reader, keyed by its release, in the order of the plan.
        chosen: the number of cells to execute, by reason.
        among: the number of all cells, by reason.
        causes: for each named cause except slips, the number of executed cells that it decides: ``behavior``, ``beside``, ``builtin`` and
            ``conversion`` decide which releases load, ``change`` decides what is computed.
        explained: for each of these, the number of recorded cells; for those about loading, of all families.
        programs: for each of these, the number of recorded cells of programs, which can be executed.
    """

    tasks: Mapping[str, list[Task]]
    chosen: Counter[str]
    among: Counter[str]
    causes: Mapping[Key, int]
    explained: Mapping[Key, int]
    programs: Mapping[Key, int]

    def unmet(self) -> list[Key]:
        """The causes that explain nothing, and those that explain cells of programs none of which is executed."""
        return sorted(key for key, count in self.explained.items() if not self.causes[key] and (self.programs[key] or not count))


def draw(
    evidence: Evidence, tasks: Sequence[Task], loading: LoadingEvidence, rules: Rules, *, each: int, seed: str
) -> ExecutedSample:
    """Choose the cells to execute.

    Parameters:
        tasks: every program.
        loading: the loading evidence, under the rules of the same tree.
        each: the number of ordinary cells for each reader.
        seed: equal seeds choose equal cells of equal evidence.

    Raises:
        CorpusError: a reader has no record of a program.
    """
    readers = sorted(evidence.recorded.values(), key=lambda item: evidence.rank[item.release])
    releases = [item.release for item in readers]
    recorded: dict[str, list[Observation]] = {}
    for task in tasks:
        cells = [evidence.valid(reader, task.fixture, task.options) for reader in readers]
        for reader, cell in zip(readers, cells, strict=True):
            if cell is None:
                raise CorpusError(
                    f"{task.fixture.id} is not recorded for {reader.name}",
                    hint="`torch-compat judge` lists the fixtures that were not observed",
                )
        recorded[task.fixture.id] = [cell for cell in cells if cell is not None]
    reasons = _reasons(tasks, recorded, releases, loading, rules, each=each, seed=seed)
    causes = dict(_causes(evidence, tasks, recorded, releases, loading, rules))
    for key, decided in causes.items():
        shown = [place for place in decided if place in reasons]  # only programs can be executed
        if shown and not any(reasons[place][1] for place in shown):
            reasons[Random(f"{seed} {' '.join(key)}").choice(shown)] = NAMED, True  # noqa: S311 - repeatable, not secret
    chosen = frozenset(cell for cell, (_, taken) in reasons.items() if taken)
    programs = frozenset(task.fixture.id for task in tasks)
    return ExecutedSample(
        {release: [task for task in tasks if (task.fixture.id, release) in chosen] for release in releases},
        Counter(reason for reason, taken in reasons.values() if taken),
        Counter(reason for reason, _ in reasons.values()),
        {key: sum(cell in chosen for cell in cells) for key, cells in causes.items()},
        {key: len(cells) for key, cells in causes.items()},
        {key: sum(fixture in programs for fixture, _ in cells) for key, cells in causes.items()},
    )


def _reasons(
    tasks: Sequence[Task],
    recorded: Mapping[str, Sequence[Observation]],
    releases: Sequence[str],
    loading: LoadingEvidence,
    rules: Rules,
    *,
    each: int,
    seed: str,
) -> dict[Cell, tuple[str, bool]]:
    """The reason for each cell, and whether it is executed."""
    bits = [1 << rules.releases.index(release) for release in releases]
    lines = [Release(release).line for release in releases]
    results: dict[Cell, tuple[str, bool]] = {}
    alike: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    died: dict[str, list[Cell]] = defaultdict(list)
    ordinary: dict[str, list[Cell]] = defaultdict(list)
    for task in tasks:
        fixture, cells = task.fixture, recorded[task.fixture.id]
        kept = [_kept(cell) for cell in cells]
        for at, cell in enumerate(cells):
            place = fixture.id, releases[at]
            taken = loads(cell)
            if taken and (cell.result != "same" or fixture.golden.keys() & DEAD):
                results[place] = OTHERWISE, True
            elif any(0 <= other < len(kept) and kept[other] != kept[at] for other in (at - 1, at + 1)):
                results[place] = BORDER, True
            elif not taken:
                results[place] = REFUSED, False
                lacks = frozenset(item.what for item in loading.items[fixture.id] if not item.takers & bits[at])
                alike[fixture.recipe, lines[at], cell.result, cell.signal, lacks].append(place)
                if cell.result != "refused":
                    died[releases[at]].append(place)
            else:
                results[place] = ORDINARY, False
                ordinary[releases[at]].append(place)
    groups = [(1, item) for item in alike.values()] + [(DEATHS, item) for item in died.values()]
    groups += [(each, item) for item in ordinary.values()]
    for at, (count, group) in enumerate(groups):
        for place in Random(f"{seed} {at}").sample(group, min(count, len(group))):  # noqa: S311 - repeatable, not secret
            results[place] = results[place][0], True
    return results


def _kept(cell: Observation) -> tuple[object, ...]:
    """The part of a cell that is equal for two readers that behave the same; excludes the texts of refusals."""
    if cell.result == "refused":
        return (cell.result,)
    return cell.result, cell.stage, cell.signal, cell.digest, repr(cell.extent)


def _causes(
    evidence: Evidence,
    tasks: Sequence[Task],
    recorded: Mapping[str, Sequence[Observation]],
    releases: Sequence[str],
    loading: LoadingEvidence,
    rules: Rules,
) -> Iterator[tuple[Key, list[Cell]]]:
    """Yield for each named cause except slips the cells that it decides."""
    for need in rules.needs:
        without = {
            name: [item._replace(takers=rules.everyone) if item.what == need.id else item for item in items]
            for name, items in loading.items.items()
            if any(item.what == need.id for item in items)
        }
        takers = {name: takers_of(items) for name, items in without.items()}
        yield ("behavior", need.id), list(_decided(loading, takers, rules, releases))
    for key, other in _without(rules):
        judge = Judge(other)
        takers = {name: takers_of(judge.items(facts)) for name, facts in loading.facts.items()}
        yield key, list(_decided(loading, takers, rules, releases))
    yield from _changes(evidence, tasks, recorded, releases, loading)


def _without(rules: Rules) -> Iterator[tuple[Key, Rules]]:
    """Yield the rules without each of the other things that decide which releases load."""
    for name in filter(None, rules.beside):  # a package; the empty name is Python itself, which every release has
        yield ("beside", name), rules._replace(beside={item: it for item, it in rules.beside.items() if item != name})
    for name in rules.builtins:
        yield ("builtin", name), rules._replace(builtins={item: it for item, it in rules.builtins.items() if item != name})
    for conversion in rules.conversions:
        types = [f"{name} as {', '.join(sorted(conversion[0][kind]))}" for name, kind in KINDS.items() if kind in conversion[0]]
        others = tuple(item for item in rules.conversions if item is not conversion)
        yield ("conversion", "; ".join(types)), rules._replace(conversions=others)


def _decided(loading: LoadingEvidence, takers: Mapping[str, int], rules: Rules, releases: Collection[str]) -> Iterator[Cell]:
    """Yield the cells whose verdict changes if these releases load the fixtures."""
    for fixture, bits in takers.items():
        other = (bits ^ takers_of(loading.items[fixture])) & loading.asked["default"][fixture]
        if other:
            for release in releases:
                if other >> rules.releases.index(release) & 1:
                    yield fixture, release


def _changes(
    evidence: Evidence,
    tasks: Sequence[Task],
    recorded: Mapping[str, Sequence[Observation]],
    releases: Sequence[str],
    loading: LoadingEvidence,
) -> Iterator[tuple[Key, list[Cell]]]:
    """Yield for each change the differing cells of programs that call its operators, with writer and reader on opposite sides of it."""
    parsed = [Release(release) for release in releases]
    calls = {task.fixture.id: {bare(call.name) for call in loading.facts[task.fixture.id].calls} for task in tasks}
    for change in evidence.policy.changes:
        since = Release(str(change.since))
        named = {bare(name) for name in change.operators}
        cells = [
            (task.fixture.id, releases[at])
            for task in tasks
            if not named.isdisjoint(calls[task.fixture.id])
            for at, cell in enumerate(recorded[task.fixture.id])
            if (Release(task.fixture.release) < since) != (parsed[at] < since) and cell.result != "same" and loads(cell)
        ]
        yield ("change", change.id), cells
