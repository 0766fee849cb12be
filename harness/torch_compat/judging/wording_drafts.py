"""Drafts of wordings: errors that readers raise instead of the writer's error, and that the policy does not state yet.

Only a person can decide whether two texts are the same refusal: an error for a different reason is not a wording, and needs a waiver.
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
    """One error of writers, and the errors that readers raise instead.

    Attributes:
        error: what the writers raise, by class and text without what varies.
        writers: public versions.
        recipes: the recipes of the programs that raise it.
        instead: what readers raise: the public versions of these readers, and the number of cells.
    """

    error: Error
    writers: set[str] = field(default_factory=set)
    recipes: set[str] = field(default_factory=set)
    instead: dict[Error, tuple[set[str], int]] = field(default_factory=dict)


def drafts(evidence: Evidence) -> list[Draft]:
    """Every error that readers word differently, for archives that releases wrote, sorted by class and text."""
    results: dict[Error, Draft] = {}
    for cells in evidence.cells:
        if cells.fixture.release == SYNTHETIC:
            continue
        for pair in cells.others:
            error, other = plain_error(pair[:2]), plain_error(pair[2:])
            draft = results.setdefault(error, Draft(error))
            draft.writers.add(cells.fixture.release)
            draft.recipes.add(cells.fixture.recipe)
            readers, count = draft.instead.get(other, (set(), 0))
            readers |= {reader.release for reader in evidence.readers.of(cells.readers)}
            draft.instead[other] = (readers, count + cells.count)
    return [results[error] for error in sorted(results)]


def phrase(evidence: Evidence, error: Error, releases: set[str]) -> str:
    """An error and the releases that raise it, as a line of a ``[[message]]``."""
    known = recorded_releases(evidence)
    span = str(known.set(known.holding(releases & {*known.releases})))
    return f"{{ type = {json.dumps(error[0])}, text = {json.dumps(error[1])}, releases = {json.dumps(span)} }},"
