"""``python -m tests.interrupted [--seed N] [--moments N] [--pairs N] [SCENE ...]``: nothing is lost, whenever a run is killed.

Kills every command that writes into a tree at each of its file operations, then at random moments, and runs the same command again; then
runs pairs of commands concurrently. Prints errors, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.interrupted.killed import prepared
from tests.interrupted.pairs import PAIRS, lost
from tests.interrupted.scenes import SCENES
from tests.miniatures.tree import recorded_tree


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], metavar="SCENE", help="only these; all unless given")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments (default: 0)")
    parser.add_argument("--moments", type=int, default=100, help="how many random moments (default: 100)")
    parser.add_argument(
        "--operations", type=int, help="kill at no more than so many file operations of a command (default: at all)"
    )
    parser.add_argument("--pairs", type=int, default=50, help="how many pairs at once (default: 50)")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    wrong: list[str] = []
    operations = 0
    with tempfile.TemporaryDirectory(prefix="interrupted-") as name:
        folder = Path(name)
        tree = recorded_tree(folder / "tree")
        names = asked.scenes or list(SCENES)
        for scene in prepared(names, tree, folder):
            began = time.monotonic()
            chosen = range(1, scene.operations + 1)
            for operation in (
                chosen if asked.operations is None else sorted(chance.sample(chosen, min(asked.operations, len(chosen))))
            ):
                wrong += scene.killed_at(operation)
            operations += scene.operations
            moments = -(-asked.moments // len(names))
            for _ in range(moments):
                wrong += scene.killed_after(chance.uniform(0.001, max(scene.seconds, 0.01)))
            print(
                f"{scene.name}: {scene.operations} operations, {moments} moments, {len(wrong)} wrong so far, {time.monotonic() - began:.0f} s",
                flush=True,
            )
        for number in range(asked.pairs):
            wrong += lost(list(PAIRS)[number % len(PAIRS)], tree, folder / f"pair-{number}")
    print(f"{operations} operations, {asked.pairs} pairs, seed {asked.seed}: {len(wrong)} wrong")
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
