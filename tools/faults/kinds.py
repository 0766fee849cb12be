"""All seeded faults. A seed and a number always give the same bytes; about half of the faults are resealed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tools.faults.faults import DAMAGE, Fault, sample_of
from tools.faults.resealed import RESEALED

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KINDS", "make"]

KINDS = (*DAMAGE, *RESEALED)
LARGE = 1 << 16  # bytes above which a sample is chosen less often: several small archives run in the same time


def make(groups: list[list[Path]], seed: int | str, number: int, share: float = 0.5) -> Fault:
    """The fault with this number.

    Parameters:
        share: of faults that are resealed.
    """
    rng = random.Random(f"{seed}:{number}")
    resealed = rng.random() < share
    kinds = RESEALED if resealed else DAMAGE
    while True:
        sample = sample_of(rng.choice(rng.choice(groups)))
        if len(sample.raw) > LARGE and rng.random() < 0.8:
            continue
        kind = rng.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        result = kinds[kind][1](rng, sample, groups)
        if result is not None and result[1] != sample.raw:
            message, data, hit, every = result
            return Fault(number, kind, message, sample, data, hit, every, resealed)
