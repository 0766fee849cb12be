"""What tolerances forgive: cells that differ from the golden in some bits, but pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch_compat.judging.cell import Outcome

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Tolerance
    from torch_compat.values.compare import Distances

__all__ = ["Forgiven", "Greatest", "forgiven"]


@dataclass
class Greatest:
    """The largest distances of some elements from the golden's.

    Attributes:
        gap: absolute.
        relative: relative to the larger magnitude.
        steps: in ULP.
    """

    gap: float = 0.0
    relative: float = 0.0
    steps: float = 0.0

    def take(self, distances: Distances) -> None:
        """Include more elements."""
        self.gap = max(self.gap, float(distances.gap.max(initial=0.0)))
        self.relative = max(self.relative, float(distances.relative.max(initial=0.0)))
        self.steps = max(self.steps, float(distances.steps.max(initial=0.0)))


@dataclass
class Forgiven:
    """What one tolerance forgives in the archives of one recipe.

    Attributes:
        operators: the operators of the recipe.
        cells: the number of cells that pass only because of it.
        beyond: how many of them have elements beyond its ULP bound, but within its absolute and relative bounds.
        writers, readers: the releases concerned, oldest first.
    """

    tolerance: Tolerance
    recipe: str
    operators: tuple[str, ...]
    cells: int = 0
    beyond: int = 0
    writers: list[str] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)
    greatest: Greatest = field(default_factory=Greatest)


def forgiven(evidence: Evidence) -> list[Forgiven]:
    """What every tolerance forgives, by dtype and recipe."""
    results: dict[tuple[str, tuple[str, ...], str], Forgiven] = {}
    for cells in evidence.cells:
        if cells.outcome is not Outcome.CLOSE:
            continue
        fixture, counted = cells.fixture, set()
        for distance in evidence.distances(fixture, cells.observation):
            tolerance = evidence.policy.tolerance(fixture.family, fixture.operators, distance.dtype)
            if tolerance is None or not distance.steps.any():
                continue
            key = (distance.dtype, tolerance.operators, fixture.recipe)
            if key not in results:
                results[key] = Forgiven(tolerance, fixture.recipe, tuple(sorted(fixture.operators)))
            row = results[key]
            row.greatest.take(distance)
            for kind in ("cells", *(["beyond"] if (distance.steps > tolerance.max_ulp).any() else [])):
                if (key, kind) not in counted:
                    counted.add((key, kind))
                    setattr(row, kind, getattr(row, kind) + cells.count)
            row.writers = sorted({*row.writers, fixture.release}, key=evidence.rank.__getitem__)
            releases = {reader.release for reader in evidence.readers.of(cells.readers)}
            row.readers = sorted({*row.readers, *releases}, key=evidence.rank.__getitem__)
    return [results[key] for key in sorted(results)]
