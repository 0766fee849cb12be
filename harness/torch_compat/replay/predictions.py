"""Compare the reference reader at the horizon of each release with the recorded observations of that release."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING

from torch_compat.errors import CorpusError
from torch_compat.releases.behavior import LOADS
from torch_compat.replay.loading import LoadingEvidence
from torch_compat.replay.reference import observe_reference, plan_reference
from torch_compat.report.predictions import ReaderCounts
from torch_compat.rules.reference_agrees import agreement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.loadability import Rules
    from torch_compat.policy.counts import Key
    from torch_compat.replay.plan import Task

__all__ = ["explained", "predictions"]


def predictions(
    evidence: Evidence, releases: Collection[str] | None = None, sample: Mapping[str, Sequence[Task]] | None = None
) -> Iterator[tuple[ReaderCounts, list[str]]]:
    """Yield for each recorded reader, oldest first, its counts and descriptions of the wrongly predicted cells.

    One process reads many archives: each of them was verified when the corpus was loaded.

    Parameters:
        releases: only these; None for all.
        sample: the programs to run for each release; None for every program.

    Raises:
        CorpusError: a reader has no record of a program.
    """
    tasks = plan_reference(evidence.policy, evidence.corpus, list(evidence.corpus.fixtures.values()))
    readers = (item for item in evidence.recorded.values() if releases is None or item.release in releases)
    for reader in sorted(readers, key=lambda item: evidence.rank[item.release]) if tasks else ():
        yield _predicted(evidence, reader, tasks if sample is None else sample[reader.release])


def explained(evidence: Evidence, readers: Iterable[ReaderCounts], rules: Rules) -> dict[Key, int]:
    """The number of cells that each counted behavior of the policy explains, as stated in the lock.

    Parameters:
        readers: the counts of every reader.
        rules: the rules of the tree that the evidence comes from.
    """
    slips: Counter[str] = Counter()
    for reader in readers:
        slips.update(reader.slips)
    loading = LoadingEvidence.of(evidence.corpus, evidence.recorded.values(), rules)
    return {
        ("behavior", entry.id): loading.explained(entry.id, rules) if entry.outcome == LOADS else slips[entry.id]
        for entry in evidence.policy.behaviors
        if entry.counted
    }


def _predicted(evidence: Evidence, reader: ObservedReader, given: Sequence[Task]) -> tuple[ReaderCounts, list[str]]:
    """Count the cells of a reader that agree, including those explained by slips, and describe the wrong ones."""
    today = dt.date.fromisoformat(reader.observed)
    met: dict[tuple[str, str], tuple[str, ...]] = {}
    tasks = list(given)
    observed = observe_reference(tasks, today=today, horizon=f"reference@{reader.release}", slips=met, together=True)
    slips: Counter[str] = Counter()
    agrees, by_slip, wrong = 0, 0, []
    for task in tasks:
        real = evidence.valid(reader, task.fixture, task.options)
        if real is None:
            raise CorpusError(
                f"{task.fixture.id} is not recorded for {reader.name}",
                hint="`torch-compat judge` lists the fixtures that were not observed",
            )
        cell = observed.cells[task.fixture.id, task.options.id]
        verdict, what, text = agreement(evidence, task.fixture, real, cell)
        if verdict == "pass":
            agrees += 1
            result = met[task.fixture.id, task.options.id]
            by_slip += bool(result)
            slips.update(result)
        else:
            wrong.append(
                f"  {task.fixture.id}: {real.result} {real.signal} is predicted as {cell.result} {cell.signal}, {what}: {text}"
            )
    return ReaderCounts(reader.release, len(tasks), agrees, by_slip, slips), wrong
