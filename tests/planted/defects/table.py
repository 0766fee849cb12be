"""The kinds of defects, and what planting them requires."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.policy.counts import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Tree

    Plant = Callable[[Tree, Random], str | tuple[str, ...]]

SEEDS = 2  # places that each kind of defect is planted at


@dataclass(frozen=True)
class Defect:
    """One kind of defect.

    Attributes:
        plant: spoils a tree at a random place; gives what the report must name.
        status: exit statuses that fit, where nothing else is wrong.
        arguments: more for the command line.
        seeds: at how many places it is planted.
    """

    name: str
    plant: Plant
    status: tuple[int, ...] = (1,)
    arguments: tuple[str, ...] = ()
    seeds: int = SEEDS


DEFECTS: list[Defect] = []


def defect(*status: int, arguments: tuple[str, ...] = (), seeds: int = SEEDS) -> Callable[[Plant], Plant]:
    """Add a kind of defect to the table."""

    def add(plant: Plant) -> Plant:
        DEFECTS.append(Defect(plant.__name__, plant, status or (1,), arguments, seeds))
        return plant

    return add


def subject(path: Path) -> str:
    """A file of a release as findings name it."""
    return f"{path.parent.name}/{path.name}"


def version_of(reader: str) -> str:
    """The release of a reader, given its exact name."""
    return reader.removeprefix("torch-").partition("+")[0]


def counted(tree: Tree, kind: str, name: str) -> int:
    """What the lock states of an entry of the policy."""
    return read_lock(tree.policy).counts[kind, name]


def parts_of(path: Path) -> list[str]:
    """The lines of a waiver that say what it covers; none where it is for findings about no cells."""
    return [line for line in path.read_text(encoding="utf-8").splitlines(True) if line.startswith("    { outcome")]


def value_of(part: str, key: str) -> str:
    """The text that stands in a part of a waiver."""
    return re.search(rf'{key} = \[?"([^"]*)"', part)[1]  # type: ignore[index]


def covering(tree: Tree) -> list[Path]:
    """The waivers for cells."""
    return [path for path in tree.waivers() if parts_of(path)]


def waiver_line(path: Path, key: str) -> str:
    return next(line for line in path.read_text().splitlines() if line.startswith(f"{key} ="))
