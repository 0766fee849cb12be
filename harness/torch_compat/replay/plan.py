"""Plan: the cells that a policy requires, and the keys that identify known ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.observations import cell_key
from torch_compat.readers.torch_release import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.corpus.recipes import ProbeFile
    from torch_compat.policy import CalendarRelease, OptionSet, Policy

__all__ = ["Sample", "Task", "plan", "probe_key", "sampled"]


@dataclass(frozen=True)
class Task:
    """One cell to observe."""

    fixture: Fixture
    path: Path
    options: OptionSet

    @property
    def key(self) -> str:
        """The cell's key among the observations of one reader."""
        return cell_key(self.fixture.subject, self.options.load.given())


@dataclass(frozen=True)
class Sample:
    """A share of all cells, more than 0 and at most 1, and the seed that selects them."""

    share: float
    seed: int


def sampled(tasks: list[Task], reader: str, sample: Sample) -> list[Task]:
    """A sample of a reader's tasks, in their order: deterministic for one seed, and not empty unless there are no tasks."""

    def lot(task: Task) -> str:
        return digest(sample.seed, reader, task.fixture.id, task.options.id)

    count = math.ceil(round(len(tasks) * sample.share, 6))  # 30 times 0.1 is a little more than 3
    drawn = {(task.fixture.id, task.options.id) for task in sorted(tasks, key=lot)[:count]}
    return [task for task in tasks if (task.fixture.id, task.options.id) in drawn]


def plan(
    policy: Policy, corpus: Corpus, release: CalendarRelease, selected: Iterable[Fixture], options: str | None = None
) -> list[Task]:
    """Every cell of a release: each selected fixture under each set of load options that the release has.

    Parameters:
        options: only this set of load options.
    """
    return [
        Task(fixture, corpus.path(fixture), option_set)
        for fixture in selected
        for option_set in policy.option_sets(fixture.family, release)  # type: ignore[arg-type]
        if options is None or option_set.id == options
    ]


def probe_key(probe: ProbeFile, identity_digest: str) -> str:
    """The key of a probe's observation."""
    return digest(probe.sha256, identity_digest, PROTOCOL)[:20]
