"""Planning: which cells a policy asks for, and which of them are known already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.corpus.lines import digest
from harness.corpus.observations import cell_key
from harness.readers.torch_release import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.corpus.corpus import Corpus
    from harness.corpus.manifest import Fixture
    from harness.corpus.recipes import ProbeFile
    from harness.policy import OptionSet, Policy, Release

__all__ = ["Task", "plan", "probe_key"]


@dataclass(frozen=True)
class Task:
    """One cell to observe."""

    fixture: Fixture
    path: Path
    options: OptionSet

    def key(self, identity_digest: str) -> str:
        """The cell's key for a reader of this identity."""
        return cell_key(self.fixture.subject, self.options.load.given(), identity_digest, PROTOCOL)


def plan(policy: Policy, corpus: Corpus, release: Release, selected: Iterable[Fixture], options: str | None = None) -> list[Task]:
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
