"""The cases of the fuzzer: each is identified by seed, target and number, and always has the same bytes."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from tools.faults.faults import samples
from tools.faults.kinds import make

if TYPE_CHECKING:
    from pathlib import Path

    from tools.faults.faults import Fault

__all__ = ["TARGETS", "case", "seeds"]

TARGETS = ("inspect", "state", "call", "exported")
FAMILIES = {"inspect": None, "state": {"torch-save"}, "call": {"torchscript", "mobile", "export"}, "exported": {"export"}}
SMALL = 6000  # bytes: several small archives run in the time of a large one
OF_EACH = 6  # archives for each writer, family and container
RESEALED = {
    "inspect": 0.5,
    "state": 0.75,
    "call": 0.85,
    "exported": 0.9,
}  # merely damaged archives mostly fail before anything is viewed or run
STRANGE = 16  # one in this many cases gives a target an archive of any family


@lru_cache(4)
def seeds(target: str = "inspect") -> list[list[Path]]:
    """Small archives of all releases, by family and container, of the families that a target reads."""
    wanted = FAMILIES[target]
    groups = []
    for paths in samples():
        family = _family(paths[0])
        if wanted is None or family in wanted:
            writers: dict[str, list[Path]] = {}
            for path in paths:
                writers.setdefault(path.parent.name, []).append(path)
            groups.append([path for own in writers.values() for path in _chosen(own)])
    return groups


def _chosen(paths: list[Path]) -> list[Path]:
    """The smallest archive, and some others spread over the small ones."""
    sized = sorted((path.stat().st_size, path) for path in paths)
    small = [path for size, path in sized if size <= SMALL] or [sized[0][1]]
    return small[:: max(1, len(small) // OF_EACH)]


@lru_cache(64)
def _families(manifest: Path) -> dict[str, str]:
    entries = map(json.loads, manifest.read_text(encoding="utf-8").splitlines())
    return {entry["file"]: entry["family"] for entry in entries if "container" in entry}


def _family(path: Path) -> str:
    return _families(path.parent / "manifest.jsonl")[path.name]


def case(seed: int, target: str, number: int) -> Fault:
    """One case."""
    return make(seeds("inspect" if number % STRANGE == 0 else target), f"{seed}:{target}", number, RESEALED[target])
