"""The rules about the corpus: fixtures-frozen, versions-have-fixtures, recipes-written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import file_format
from torch_compat.corpus.corpus import CorpusDamage
from torch_compat.policy.model import Format, Milestone

if TYPE_CHECKING:
    from tests.rules.conftest import World


FIRST = Milestone(release="1.0.0")


def texts(world: World, name: str) -> list[str]:
    return [judgement.cause.text for judgement in world.judgements(name) if judgement.cause]


# ------------------------------------------------------------------------------------------------------ fixtures-frozen


def test_what_is_whole_passes(world: World) -> None:
    world.fixture()
    world.inability(recipe="div")
    assert world.verdicts("fixtures-frozen") == {"torch-1.0.0/add": "pass", "torch-1.0.0/div": "pass"}


def test_damage_fails_and_what_is_damaged_does_not_pass_as_well(world: World) -> None:
    world.fixture()
    world.fixture(recipe="div")
    world.damage = [
        CorpusDamage("wrong-hash", "torch-1.0.0/add.pt", "has SHA-256 x"),
        CorpusDamage("orphan-file", "torch-1.0.0/x.pt", "is new"),
    ]
    assert world.verdicts("fixtures-frozen") == {
        "torch-1.0.0/add.pt": "fail: wrong-hash",
        "torch-1.0.0/x.pt": "fail: orphan-file",
        "torch-1.0.0/div": "pass",
    }
    assert texts(world, "fixtures-frozen")[0] == "torch-1.0.0/add.pt: has SHA-256 x"


def test_damage_of_an_entry_takes_its_pass(world: World) -> None:
    world.fixture()
    world.damage = [CorpusDamage("changed-entry", "torch-1.0.0/add", "is not the one")]
    assert world.verdicts("fixtures-frozen") == {"torch-1.0.0/add": "fail: changed-entry"}


def test_damage_of_what_is_synthetic_takes_its_pass(world: World) -> None:
    world.synthetic("container tar", recipe="tar")
    world.synthetic("container tar", recipe="other")
    world.damage = [CorpusDamage("wrong-hash", "synthetic/tar.pt", "has SHA-256 x")]
    assert world.verdicts("fixtures-frozen") == {"synthetic/tar.pt": "fail: wrong-hash", "synthetic/other": "pass"}


def test_an_empty_corpus_selects_nothing(world: World) -> None:
    assert world.judgements("fixtures-frozen") == []


# ----------------------------------------------------------------------------------------------- versions-have-fixtures


@pytest.mark.parametrize(
    ("entry", "versions", "verdict"),
    [
        ({}, {"file-format": 3}, "pass"),
        ({}, {}, "fail: no fixture"),
        ({}, {"bytecode": 3}, "fail: no fixture"),
        ({"no_writer": "skipped"}, {}, "fail: no fixture"),
        ({"no_writer": "skipped"}, {"file-format": 3}, "fail: excuse outdated"),
        ({"pending": "soon"}, {}, "not-checked: pending"),
        ({"pending": "soon"}, {"file-format": 3}, "fail: excuse outdated"),
    ],
)
def test_a_version_of_the_policy(entry: dict[str, Any], versions: dict[str, int], verdict: str, world: World) -> None:
    world.promise(formats=(file_format(3, **entry),))
    world.fixture(versions=versions)
    assert world.verdicts("versions-have-fixtures") == {"file-format 3": verdict}


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [({"no_writer": "skipped"}, "pass"), ({}, "fail: no fixture"), ({"pending": "soon"}, "not-checked: pending")],
)
def test_what_is_synthetic_stands_only_for_what_nobody_writes(entry: dict[str, Any], verdict: str, world: World) -> None:
    world.promise(formats=(file_format(3, **entry),))
    world.synthetic("file-format 3", versions={"file-format": 3})
    assert world.verdicts("versions-have-fixtures") == {"file-format 3": verdict}


def test_a_container_is_a_version_too(world: World) -> None:
    tar, stream = (
        Format(kind="container", version=name, meaning="so", read_from=FIRST, written_from=FIRST) for name in ("tar", "stream")
    )
    world.promise(formats=(tar, stream))
    world.fixture(container="stream")
    world.fixture(recipe="div", container="zip")
    assert world.verdicts("versions-have-fixtures") == {
        "container tar": "fail: no fixture",
        "container stream": "pass",
        "container zip": "fail: unknown version",
    }


def test_a_version_that_the_policy_does_not_know(world: World) -> None:
    world.fixture(versions={"file-format": 7, "stream-protocol": 1001})
    world.fixture(recipe="div", versions={"file-format": 1})
    assert world.verdicts("versions-have-fixtures") == {"file-format 1": "pass", "file-format 7": "fail: unknown version"}
    assert "torch-1.0.0/add has file-format 7, which is not in the policy" in texts(world, "versions-have-fixtures")


# ------------------------------------------------------------------------------------------------------ recipes-written


def test_a_fixture_or_an_inability_is_an_answer(world: World) -> None:
    world.fixture()
    world.recipe("div", since="1.1.0")
    world.inability(recipe="div")
    assert set(world.verdicts("recipes-written").values()) == {"pass"}


def test_a_recipe_that_did_not_run_fails_for_each_writer(world: World) -> None:
    world.promise(corpus=world.policy.corpus.model_copy(update={"writers": ("1.0.0", "2.0.0")}))
    world.fixture()
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "pass", "torch-2.0.0/add": "fail: not produced"}


def test_a_recipe_that_no_release_has_run_is_not_checked_and_costs_nothing_else(world: World) -> None:
    world.fixture()
    world.recipe("div")
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "pass", "div": "not-checked: new recipe"}


def test_where_no_release_has_run_any_recipe_each_fails(world: World) -> None:
    world.recipe("add")
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "fail: not produced"}


def test_an_unfinished_recipe_is_not_checked_and_costs_nothing_else(world: World) -> None:
    world.fixture()
    world.damage.append(CorpusDamage("unfinished-recipe", "recipes/new.py", "is unfinished"))
    assert world.verdicts("fixtures-frozen") == {
        "recipes/new.py": "not-checked: unfinished-recipe",
        "torch-1.0.0/add": "pass",
    }


def test_a_recipe_that_changed(world: World) -> None:
    world.fixture(recipe_sha256="0" * 64)
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "fail: recipe changed"}


def test_what_is_synthetic_has_no_recipe(world: World) -> None:
    world.fixture()
    world.synthetic()
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "pass"}


def test_a_recipe_that_has_gone(world: World) -> None:
    world.fixture()
    world.recipes.clear()
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "fail: no recipe"}


@pytest.mark.parametrize(
    ("since", "until", "written", "verdict"),
    [
        ("1.0.0", None, True, "pass"),
        ("1.0.0", "1.0.0", True, "pass"),
        ("1.1.0", None, False, "pass"),
        ("1.1.0", None, True, "fail: writable after all"),
        ("1.0.0", None, False, "fail: not writable"),
        ("1.0.9", None, True, "fail: bad bound"),
        ("1.0.0", "9.9.9", True, "fail: bad bound"),
    ],
)
def test_what_a_recipe_says_of_itself_must_be_true(
    since: str, until: str | None, written: bool, verdict: str, world: World
) -> None:
    world.recipe(since=since, until=until)
    if written:
        world.fixture()
    else:
        world.inability(message="no such thing\nat all")
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": verdict}
    assert "at all" not in "".join(texts(world, "recipes-written"))


@pytest.mark.parametrize(
    ("lacking", "written", "verdict"),
    [
        ("1.0.0", False, "pass"),
        ("1.0.0", True, "fail: writable after all"),
        ("1.1.0", False, "fail: not writable"),
        ("1.1.0", True, "pass"),
        ("1.0.9", True, "fail: bad bound"),
    ],
)
def test_releases_in_between_that_a_recipe_leaves_out(lacking: str, written: bool, verdict: str, world: World) -> None:
    world.recipe(lacking=lacking)
    if written:
        world.fixture()
    else:
        world.inability(message="no such thing")
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": verdict}


def test_an_end_that_has_passed(world: World) -> None:
    world.promise(corpus=world.policy.corpus.model_copy(update={"writers": ("2.0.0",)}))
    world.recipe(until="1.1.1")
    world.inability("2.0.0", message="")
    assert world.verdicts("recipes-written") == {"torch-2.0.0/add": "pass"}
    world.recipe(until="2.0.0")
    assert world.verdicts("recipes-written") == {"torch-2.0.0/add": "fail: not writable"}


def test_a_reduced_grid_asks_for_itself_alone(world: World) -> None:
    everyone = ("1.0.0", "1.1.1", "2.0.0")
    world.promise(corpus=world.policy.corpus.model_copy(update={"writers": everyone}))
    recipe = replace(world.recipe(), reduced=True)
    world.recipes["add"] = recipe
    world.fixture("1.0.0")
    assert world.verdicts("recipes-written") == {"torch-1.0.0/add": "pass", "torch-2.0.0/add": "fail: not produced"}
    world.recipes["add"] = replace(recipe, besides=("1.1.1",))
    assert world.verdicts("recipes-written")["torch-1.1.1/add"] == "fail: not produced"
    world.recipes["add"] = replace(recipe, besides=("1.1.9",))
    assert world.verdicts("recipes-written")["torch-1.0.0/add"] == "fail: bad bound"


def test_what_a_release_outside_the_grid_wrote_is_judged_as_well(world: World) -> None:
    world.promise(corpus=world.policy.corpus.model_copy(update={"writers": ("1.0.0", "1.1.1", "2.0.0")}))
    world.recipes["add"] = replace(world.recipe(), reduced=True)
    for version in ("1.0.0", "1.1.1", "2.0.0"):
        world.fixture(version, recipe_sha256="0" * 64 if version == "1.1.1" else world.recipes["add"].sha256)
    assert world.verdicts("recipes-written") == {
        "torch-1.0.0/add": "pass",
        "torch-1.1.1/add": "fail: recipe changed",
        "torch-2.0.0/add": "pass",
    }
