"""Defects in the lock of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.planted.defects.table import defect
from torch_compat.policy.counts import HEADER, LOCK

if TYPE_CHECKING:
    from random import Random

    from tests.planted.conftest import Tree

FIRST = HEADER.count("\n")


def lines_of(tree: Tree) -> list[str]:
    return (tree.policy / LOCK).read_text(encoding="utf-8").splitlines(True)


def write(tree: Tree, lines: list[str]) -> None:
    (tree.policy / LOCK).write_text("".join(lines), encoding="utf-8")


@defect(2, seeds=1)
def lock_removed(tree: Tree, random: Random) -> str:
    (tree.policy / LOCK).unlink()
    return "counts.lock: file not found"


@defect(2, seeds=1)
def lock_emptied(tree: Tree, random: Random) -> tuple[str, ...]:
    write(tree, [])
    return "counts.lock:1: does not start with the header", "has no line here: torch-compat accept --write"


@defect(2)
def lock_cut_off_between_lines(tree: Tree, random: Random) -> str:
    lines = lines_of(tree)
    at = random.randrange(FIRST, len(lines) - 1)
    write(tree, lines[:at])
    return f"counts.lock:{at + 1}: {lines[-1].partition(' =')[0]} has no line here"


@defect(2)
def lock_cut_off_within_a_line(tree: Tree, random: Random) -> str:
    text = "".join(lines_of(tree))
    (tree.policy / LOCK).write_text(text[: random.randrange(len(HEADER) + 1, len(text))].rstrip("\n"), encoding="utf-8")
    return "is cut off: the last line has no newline"


@defect(2)
def lock_lost_a_line(tree: Tree, random: Random) -> str:
    lines = lines_of(tree)
    at = random.randrange(FIRST, len(lines))
    gone = lines.pop(at)
    write(tree, lines)
    return f"counts.lock:{at + 1}: {gone.partition(' =')[0]} has no line here"


@defect(2)
def lock_states_what_the_policy_has_not(tree: Tree, random: Random) -> str:
    write(tree, [*lines_of(tree), "behavior aa-nobody = 3\n"])
    return "the policy has no behavior 'aa-nobody'"


@defect(2)
def lock_with_a_line_twice(tree: Tree, random: Random) -> str:
    lines = lines_of(tree)
    at = random.randrange(FIRST, len(lines))
    write(tree, [*lines[: at + 1], *lines[at:]])
    return f"counts.lock:{at + 2}: {lines[at].partition(' =')[0]} is already on line {at + 1}"


@defect(2)
def lock_left_in_conflict(tree: Tree, random: Random) -> str:
    lines = lines_of(tree)
    at = random.randrange(FIRST, len(lines))
    write(tree, [*lines[:at], "<<<<<<< HEAD\n", lines[at], "=======\n", lines[at], ">>>>>>> branch\n", *lines[at + 1 :]])
    return f"counts.lock:{at + 1}: is a merge conflict marker"
