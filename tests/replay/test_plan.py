from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.recipes import ProbeFile
from torch_compat.policy import MayRefuse
from torch_compat.replay.plan import Sample, Task, plan, probe_key, sampled

if TYPE_CHECKING:
    from tests.miniatures.tree import Tree


def cells(tree: Tree, version: str, options: str | None = None) -> list[tuple[str, str]]:
    corpus = tree.corpus
    tasks = plan(tree.policy, corpus, tree.release(version), corpus.fixtures.values(), options)
    return [(task.fixture.id, task.options.id) for task in tasks]


def test_every_fixture_is_read_under_every_set_of_options_that_the_release_has(tree: Tree) -> None:
    everything = {f"torch-1.5.1/{name}" for name in ("add", "state")} | {
        f"torch-1.6.0/{name}" for name in ("add", "later", "state")
    }
    assert set(cells(tree, "1.5.1")) == {(fixture, "default") for fixture in everything}
    newer = cells(tree, "1.6.0")
    assert set(newer) == {(fixture, "default") for fixture in everything} | {
        (f"torch-{version}/state", "weights-only") for version in ("1.5.1", "1.6.0")
    }
    assert len(newer) == len(set(newer)) == 7


def test_one_set_of_options(tree: Tree) -> None:
    assert cells(tree, "1.5.1", "weights-only") == []
    assert cells(tree, "1.6.0", "weights-only") == [("torch-1.5.1/state", "weights-only"), ("torch-1.6.0/state", "weights-only")]


def test_nothing_selected_plans_nothing(tree: Tree) -> None:
    assert plan(tree.policy, tree.corpus, tree.release("1.6.0"), ()) == []


def test_a_key_depends_on_everything_that_can_change_the_result(tree: Tree) -> None:
    tasks = {(task.fixture.id, task.options.id): task for task in tree.tasks("1.6.0")}
    task = tasks["torch-1.6.0/state", "default"]
    fixture = task.fixture
    variants = [
        task.key,
        tasks["torch-1.6.0/state", "weights-only"].key,
        replace(task, fixture=replace(fixture, sha256="0" * 64)).key,
        replace(task, fixture=replace(fixture, golden={"value": 1})).key,
        replace(task, fixture=replace(fixture, calls=[{"method": "forward", "args": []}])).key,
    ]
    assert len(set(variants)) == len(variants)


def test_a_key_does_not_depend_on_names_and_places(tree: Tree) -> None:
    task = tree.tasks("1.6.0")[0]
    fixture = replace(task.fixture, recipe="other", file="other.pt", operators=["aten::mul"], written="2000-01-01")
    assert replace(task, path=Path("/elsewhere"), fixture=fixture).key == task.key
    renamed = task.options.model_copy(update={"id": "other", "may_refuse": MayRefuse(message="no", reason="it may")})
    assert replace(task, options=renamed).key == task.key


def test_a_probe_is_known_by_its_text_and_its_reader() -> None:
    probe = ProbeFile("one", Path("one.py"), "1" * 64, "One.")
    keys = {probe_key(probe, "a"), probe_key(probe, "b"), probe_key(replace(probe, sha256="2" * 64), "a")}
    assert len(keys) == 3
    assert probe_key(replace(probe, path=Path("/elsewhere.py")), "a") in keys


# ------------------------------------------------------------------------------------------------------------- samples

READER = "torch-1.6.0"


def many(tree: Tree, count: int) -> list[Task]:
    """Tasks of different fixtures, in an order of their own."""
    task = tree.tasks("1.6.0")[0]
    return [replace(task, fixture=replace(task.fixture, recipe=f"recipe-{number}")) for number in reversed(range(count))]


def test_a_sample_is_the_same_each_time_whatever_the_order_of_the_tasks(tree: Tree) -> None:
    tasks = many(tree, 200)
    sample = Sample(0.1, seed=7)
    drawn = sampled(tasks, READER, sample)
    assert sampled(tasks, READER, sample) == drawn
    assert sampled(many(tree, 200), READER, Sample(0.1, seed=7)) == drawn
    assert sampled(tasks[::-1], READER, sample) == drawn[::-1]


def test_a_sample_is_in_the_order_of_the_tasks_and_holds_each_once(tree: Tree) -> None:
    tasks = many(tree, 200)
    drawn = sampled(tasks, READER, Sample(0.3, seed=0))
    places = [tasks.index(task) for task in drawn]
    assert places == sorted(set(places))
    assert places != list(range(len(places)))


@pytest.mark.parametrize(
    ("count", "share", "size"),
    [
        (200, 0.1, 20),
        (200, 1.0, 200),
        (30, 0.1, 3),
        (3, 1 / 3, 1),
        (31, 0.1, 4),
        (200, 0.001, 1),
        (1, 0.01, 1),
        (7, 0.5, 4),
        (0, 0.5, 0),
    ],
)
def test_a_sample_is_as_large_as_its_share_and_never_empty(tree: Tree, count: int, share: float, size: int) -> None:
    assert len(sampled(many(tree, count), READER, Sample(share, seed=0))) == size


def test_another_seed_and_another_reader_draw_other_cells(tree: Tree) -> None:
    tasks = many(tree, 200)
    drawn = [
        frozenset(task.fixture.id for task in sampled(tasks, reader, Sample(0.1, seed)))
        for reader, seed in ((READER, 0), (READER, 1), (READER, 2), ("torch-1.5.1", 0))
    ]
    assert len(set(drawn)) == len(drawn)
    assert all(len(item & other) < 10 for item in drawn for other in drawn if item != other)


def test_in_time_every_cell_is_drawn(tree: Tree) -> None:
    tasks = many(tree, 40)
    drawn = {task.fixture.id for seed in range(80) for task in sampled(tasks, READER, Sample(0.1, seed))}
    assert drawn == {task.fixture.id for task in tasks}


def test_a_larger_share_of_the_same_seed_holds_the_smaller_one(tree: Tree) -> None:
    tasks = many(tree, 100)
    small, large = ({task.fixture.id for task in sampled(tasks, READER, Sample(share, 3))} for share in (0.1, 0.4))
    assert small < large


def test_the_same_fixture_under_two_sets_of_options_is_two_cells(tree: Tree) -> None:
    tasks = tree.tasks("1.6.0")
    cells = {(task.fixture.id, task.options.id) for seed in range(60) for task in sampled(tasks, READER, Sample(0.01, seed))}
    assert {("torch-1.6.0/state", "default"), ("torch-1.6.0/state", "weights-only")} <= cells
