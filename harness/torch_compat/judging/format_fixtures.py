"""The format versions for which the corpus has fixtures, and when each must have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.corpus.manifest import Synthetic

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.policy import Format, Policy

__all__ = ["due", "labels", "witnesses"]


def witnesses(corpus: Corpus) -> tuple[dict[str, str], dict[str, str]]:
    """A fixture of each format version that a release wrote, and of each that a synthetic fixture represents."""
    written: dict[str, str] = {}
    synthetic: dict[str, str] = {}
    for fixture in corpus.fixtures.values():
        if isinstance(fixture, Synthetic):
            for label in fixture.formats:
                synthetic.setdefault(label, fixture.id)
        else:
            for label in labels(fixture):
                written.setdefault(label, fixture.id)
    return written, synthetic


def due(policy: Policy, entry: Format) -> dt.date:
    """The day from which a version must have a fixture: that of the first release that writes it, or else of the first that reads it."""
    return policy.day_of((entry.written_from or entry.read_from).release)


def labels(fixture: Fixture) -> Iterator[str]:
    """Yield the formats that an archive represents, with the policy's labels."""
    yield from (f"{kind} {version}" for kind, version in fixture.versions.items())
    yield f"container {fixture.container}"
