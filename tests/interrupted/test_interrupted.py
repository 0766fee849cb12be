"""A subset of ``python -m tests.interrupted``: commands killed at some of their file operations, and pairs of concurrent commands."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import pytest

from tests.interrupted.dying import ran
from tests.interrupted.killed import prepared
from tests.interrupted.pairs import lost
from tests.interrupted.scenes import SCENES
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.miniatures.tree import Tree

SEED: Final = 20
AT_EACH: Final = {"new-rule", "notes"}
AT_SOME: Final = {
    "produce": 5,
    "produce-directory": 8,
    "observe": 3,
    "report": 2,
    "signoff": 2,
    "new-recipe": 5,
    "new-deprecation": 5,
    "new-waiver": 5,
    "admit-calendar": 5,
    "admit-survey": 2,
}


@pytest.mark.parametrize("name", sorted(AT_EACH | AT_SOME.keys()))
@pytest.mark.sampled(3)
def test_a_killed_command_is_completed_by_the_same_command(name: str, pristine_tree: Tree, tmp_path: Path) -> None:
    (scene,) = prepared([name], pristine_tree, tmp_path)
    operations = list(range(1, scene.operations + 1))
    if name in AT_SOME:  # always where what was written is renamed, which are the last ones
        operations = sorted({*random.Random(SEED).sample(operations, AT_SOME[name]), scene.operations - 4})
    assert [line for operation in operations for line in scene.killed_at(operation)] == []


@pytest.mark.parametrize("name", ["parts-of-one-reader", "one-writer", "one-recipe", "begun"])
def test_two_commands_at_once_lose_nothing(name: str, pristine_tree: Tree, tmp_path: Path) -> None:
    assert lost(name, pristine_tree, tmp_path / name) == []


def test_a_file_that_is_written_otherwise_is_counted_too(tmp_path: Path) -> None:
    """So that a scene sees whoever goes around the gate."""

    def act() -> None:
        with (tmp_path / "one").open("w") as file:
            file.write("1")
        (tmp_path / "one").rename(tmp_path / "two")
        with changing(tmp_path):
            put(tmp_path / "one", "2")

    assert ran(tmp_path, act, dies_at=2).status < 0
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_every_command_that_writes_has_a_scene() -> None:
    assert {name.partition("-")[0] for name in SCENES} == {
        "produce", "observe", "new", "accept", "replay", "generate", "admit", "report", "notes", "signoff",
    }  # fmt: skip
