"""Drafts of wordings: what readers raise instead of the writer's error, and nothing states yet.

Whether two texts are one refusal, only a person can tell: where a release raises for another reason, it is no wording, but a waiver's matter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.waiving import recorded_releases
from torch_compat.values.normalise import plain_error

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence

__all__ = ["Draft", "drafts", "phrase"]

Error = tuple[str, str]
"""Class and text of an error, without the parts that vary."""


@dataclass
class Draft:
    """One error of writers, and what readers raise instead.

    Attributes:
        error: what the writers raise, by class and text without what varies.
        writers: public versions.
        recipes: whose programs do.
        instead: what readers raise, and which do: their public versions, and how many cells.
    """

    error: Error
    writers: set[str] = field(default_factory=set)
    recipes: set[str] = field(default_factory=set)
    instead: dict[Error, tuple[set[str], int]] = field(default_factory=dict)


def drafts(evidence: Evidence) -> list[Draft]:
    """Every error that readers word otherwise, of what releases wrote, by class and text."""
    found: dict[Error, Draft] = {}
    for cells in evidence.cells:
        if cells.fixture.release == SYNTHETIC:
            continue
        for pair in cells.others:
            error, other = plain_error(pair[:2]), plain_error(pair[2:])
            draft = found.setdefault(error, Draft(error))
            draft.writers.add(cells.fixture.release)
            draft.recipes.add(cells.fixture.recipe)
            readers, count = draft.instead.get(other, (set(), 0))
            readers |= {reader.release for reader in evidence.readers.of(cells.readers)}
            draft.instead[other] = (readers, count + cells.count)
    return [found[error] for error in sorted(found)]


def phrase(evidence: Evidence, error: Error, releases: set[str]) -> str:
    """An error and the releases that raise it, as a line of a ``[[message]]``."""
    known = recorded_releases(evidence)
    span = str(known.set(known.holding(releases & {*known.releases})))
    return f"{{ type = {json.dumps(error[0])}, text = {json.dumps(error[1])}, releases = {json.dumps(span)} }},"
