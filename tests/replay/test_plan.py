from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.corpus.recipes import ProbeFile
from harness.policy import MayRefuse
from harness.replay.plan import plan, probe_key

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
        task.key("a"),
        task.key("b"),
        tasks["torch-1.6.0/state", "weights-only"].key("a"),
        replace(task, fixture=replace(fixture, sha256="0" * 64)).key("a"),
        replace(task, fixture=replace(fixture, golden={"value": 1})).key("a"),
        replace(task, fixture=replace(fixture, calls=[{"method": "forward", "args": []}])).key("a"),
    ]
    assert len(set(variants)) == len(variants)


def test_a_key_does_not_depend_on_names_and_places(tree: Tree) -> None:
    task = tree.tasks("1.6.0")[0]
    fixture = replace(task.fixture, recipe="other", file="other.pt", operators=["aten::mul"], written="2000-01-01")
    assert replace(task, path=Path("/elsewhere"), fixture=fixture).key("a") == task.key("a")
    renamed = task.options.model_copy(update={"id": "other", "may_refuse": MayRefuse(message="no", reason="it may")})
    assert replace(task, options=renamed).key("a") == task.key("a")


def test_a_probe_is_known_by_its_text_and_its_reader() -> None:
    probe = ProbeFile("one", Path("one.py"), "1" * 64, "One.")
    keys = {probe_key(probe, "a"), probe_key(probe, "b"), probe_key(replace(probe, sha256="2" * 64), "a")}
    assert len(keys) == 3
    assert probe_key(replace(probe, path=Path("/elsewhere.py")), "a") in keys
