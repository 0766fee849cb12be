"""``python -m tests.planted [--count 10000] [--seed 1]``: plants other outcomes in covered cells of the repository (see covered.py).

Prints how many of each kind were detected, and by what, and every undetected plant. Exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

from tests.planted.covered import KINDS, Planter
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.workspace import Root

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Plant, and count what was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="number of planted outcomes; default: 10,000")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    place = Root(REPOSITORY)
    counts: Counter[tuple[str, bool]] = Counter()
    over: dict[str, set[str]] = {"waivers": set(), "families": set(), "options": set(), "recipes": set(), "readers": set()}
    with uncollected():
        planter = Planter(gather(place, place.policy(), as_of=None))
        for tried in planter.campaign(Random(asked.seed), asked.count):
            counts[tried.kind, bool(tried.noticed)] += 1
            fixture = tried.cell.fixture
            result = (tried.cell.block.waiver, fixture.family, tried.cell.options.id, fixture.recipe, tried.reader)
            for names, name in zip(over.values(), result, strict=True):
                names.add(name)
            if not tried.noticed:
                print(f"not noticed: {tried}", flush=True)
    for kind in KINDS:
        print(f"{kind:<26} {counts[kind, True]:>6} of {counts[kind, True] + counts[kind, False]:>6} noticed")
    missed = sum(count for (_, noticed), count in counts.items() if not noticed)
    print(f"{'all':<26} {counts.total() - missed:>6} of {counts.total():>6} noticed, seed {asked.seed}")
    print("over " + ", ".join(f"{len(names)} {what}" for what, names in over.items()))
    return 1 if missed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
