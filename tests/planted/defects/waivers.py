"""Defects in waivers and in their lock, and other differences where one is accepted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.counted import relock
from tests.planted.covered import reshaped
from tests.planted.defects.table import covering, defect, parts_of, value_of
from torch_compat.corpus.corpus import load_corpus
from torch_compat.policy import load_policy
from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.replay.observe import observation
from torch_compat.replay.plan import Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.planted.conftest import Cells, Tree
    from torch_compat.policy.accepted import Accepted

DIFFERENT = "but it was accepted with another difference"


def of_part(part: str) -> str:
    """What every finding of the cells that a part of a waiver covers has in its id."""
    return f":{value_of(part, 'outcome')}:"


@defect()
def waiver_unused(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(covering(tree))
    parts = parts_of(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f'recipes = ["{value_of(parts[0], "recipes")}"]', 'recipes = ["nobody"]'), encoding="utf-8")
    return f"waiver {path.stem} covers nothing", of_part(parts[0])


@defect(arguments=("--as-of", "2031-01-01"))
def waiver_expired(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(covering(tree))
    path.write_text(path.read_text(encoding="utf-8") + "expires = 2031-01-01\n", encoding="utf-8")
    return f"waiver {path.stem} expired on 2031-01-01", of_part(parts_of(path)[0])


@defect()
def waiver_for_a_recipe_without_the_cause(tree: Tree, random: Random) -> str:
    path = random.choice(covering(tree))
    part = parts_of(path)[0]
    name = value_of(part, "recipes")
    tree.edit(path, part, part.replace(f'["{name}"]', f'["{name}", "nobody"]'))
    return f"waiver {path.stem} names the recipe nobody, which has no such cell"


@defect()
def waiver_that_lost_a_part(tree: Tree, random: Random) -> str:
    path = random.choice([path for path in covering(tree) if len(parts_of(path)) > 1])
    part = random.choice(parts_of(path))
    tree.edit(path, part, "")
    return of_part(part)


@defect()
def waiver_for_another_outcome(tree: Tree, random: Random) -> str:
    path = random.choice(covering(tree))
    part = parts_of(path)[0]
    outcome = value_of(part, "outcome")
    tree.edit(path, part, part.replace(f'"{outcome}"', '"raised"' if outcome == "timed-out" else '"timed-out"'))
    return of_part(part)


@defect()
def waivers_that_overlap(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(covering(tree))
    text = path.read_text(encoding="utf-8").replace(f'id = "{path.stem}"', 'id = "again"')
    path.with_stem("again").write_text(text, encoding="utf-8")
    return f"waiver {path.stem} covers cells that again covers", f"waiver again covers cells that {path.stem} covers"


@defect()
def waiver_removed(tree: Tree, random: Random) -> str:
    path = random.choice(covering(tree))
    part = parts_of(path)[0]
    path.unlink()
    relock(tree.policy)
    return of_part(part)


@defect(2)
def waiver_removed_and_not_its_lock(tree: Tree, random: Random) -> str:
    path = random.choice(covering(tree))
    path.unlink()
    return f"waivers.lock: the policy has no waiver '{path.stem}'"


@defect(2)
def waiver_in_a_file_of_another_name(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.rename(path.with_name("other-name.toml"))
    return "the file must have the waiver's name"


# ---------------------------------------------------------------------------------------------------------------- the lock


def locked(tree: Tree) -> Accepted:
    accepted = read_accepted(tree.policy)
    assert accepted is not None
    return accepted


def write(tree: Tree, accepted: Accepted) -> None:
    (tree.policy / WAIVERS_LOCK).write_text(accepted.text, encoding="utf-8")


@defect()
def lock_of_waivers_states_another_difference(tree: Tree, random: Random) -> str:
    accepted = locked(tree)
    blocks = list(accepted.blocks)
    at = random.randrange(len(blocks))
    blocks[at] = blocks[at]._replace(digest=f"{random.randrange(16**12):012x}")
    write(tree, replace(accepted, blocks=tuple(blocks)))
    return DIFFERENT


@defect()
def lock_of_waivers_with_two_differences_swapped(tree: Tree, random: Random) -> str:
    accepted = locked(tree)
    blocks = list(accepted.blocks)
    pairs = [
        (at, other)
        for at, block in enumerate(blocks)
        for other, two in enumerate(blocks[:at])
        if (block.waiver, block.outcome) == (two.waiver, two.outcome) and block.digest != two.digest
    ]
    at, other = random.choice(pairs)
    blocks[at], blocks[other] = blocks[at]._replace(digest=blocks[other].digest), blocks[other]._replace(digest=blocks[at].digest)
    write(tree, replace(accepted, blocks=tuple(blocks)))
    return DIFFERENT


@defect()
def lock_of_waivers_lost_a_line(tree: Tree, random: Random) -> str:
    accepted = locked(tree)
    blocks = list(accepted.blocks)
    del blocks[random.randrange(len(blocks))]
    write(tree, replace(accepted, blocks=tuple(blocks)))
    return DIFFERENT


@defect()
def lock_of_waivers_states_a_recipe_more(tree: Tree, random: Random) -> str:
    accepted = locked(tree)
    blocks = list(accepted.blocks)
    at = random.randrange(len(blocks))
    blocks[at] = blocks[at]._replace(recipes=("nobody",))
    blocks.append(accepted.blocks[at])
    write(tree, replace(accepted, blocks=tuple(blocks)))
    return f"waiver {blocks[at].waiver} is for"


@defect(2)
def lock_of_waivers_cut_off(tree: Tree, random: Random) -> str:
    text = locked(tree).text
    (tree.policy / WAIVERS_LOCK).write_text(text[: random.randrange(len(text) - 1)].rstrip("\n"), encoding="utf-8")
    return "waivers.lock:"


@defect(2, seeds=1)
def lock_of_waivers_removed(tree: Tree, random: Random) -> str:
    (tree.policy / WAIVERS_LOCK).unlink()
    return "waivers.lock: file not found"


@defect(2)
def lock_of_waivers_left_in_conflict(tree: Tree, random: Random) -> str:
    *head, last = (tree.policy / WAIVERS_LOCK).read_text(encoding="utf-8").splitlines(True)
    at = random.randrange(4, len(head))
    text = "".join([*head[:at], "<<<<<<< HEAD\n", *head[at:], last])
    (tree.policy / WAIVERS_LOCK).write_text(text, encoding="utf-8")
    return f"waivers.lock:{at + 1}: is not a valid line of this file"


# ---------------------------------------------------------------------------------- other differences where one is accepted


def reshape(tree: Tree, reader: str, chosen: Callable[[Any], bool]) -> int:
    """Give every tensor that a reader computed another shape, in the covered cells that are chosen; how many cells they are."""
    fixtures = load_corpus(tree.fixtures).fixtures
    options = {option.id: option for option in load_policy(tree.policy).options}
    changed: Cells = {}
    for place, cell in tree.cells(reader).items():
        if cell.result == "differs" and cell.departures and chosen(cell):
            fixture = fixtures[cell.fixture]
            seen = observation(
                Task(fixture, Path(fixture.file), options[cell.options]), {"result": reshaped(cell.own_result(fixture.golden))}
            )
            changed[place] = replace(seen, key=cell.key)
    tree.observe(reader, lambda cells: cells.update(changed))
    return len(changed)


@defect(seeds=1)
def every_value_that_differs_in_the_newest_reader_has_another_shape(tree: Tree, random: Random) -> str:
    assert reshape(tree, tree.readers()[-1], lambda _: True) > 5
    return DIFFERENT


@defect()
def one_recipe_that_differs_has_other_shapes(tree: Tree, random: Random) -> str:
    """integer_arithmetic, say, is accepted for what floor_divide does; now every call of it does something else."""
    reader = tree.readers()[-1]
    recipes = sorted({fixture.partition("/")[2] for (fixture, _), cell in tree.cells(reader).items() if cell.result == "differs"})
    fixtures = load_corpus(tree.fixtures).fixtures
    backward = [item for item in recipes if f"torch-1.2.0/{item}" in fixtures]
    recipe = random.choice(backward)
    assert reshape(tree, reader, lambda cell: cell.fixture.partition("/")[2] == recipe)
    return "shape [" if recipe else ""
