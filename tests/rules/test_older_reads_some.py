"""The rule for older readers that load no archive of a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import STRICT, file_format
from torch_compat.policy.behaviors import BehaviorEntry
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from tests.rules.conftest import World

RULE = "older-reads-some"
MOVED: dict[str, Any] = {"errors": ({"type": "KeyError", "message": "no record 'version'"},)}


def layout(name: str = "moved", **change: str) -> BehaviorEntry:
    """Archives of 2.0.0 and newer, which 1.1.1 and older do not load."""
    told = {"family": "torchscript", "writers": "2.0.0..", "readers": ">1.1.1..", "says": "no record"} | change
    writers, readers = (ReleaseSet.parse(told[key]) for key in ("writers", "readers"))
    return BehaviorEntry(
        id=name,
        all=(f"family:{told['family']}",),
        writers=writers,
        readers=readers,
        outcome="loads",
        says=told["says"],
        because="so",
    )


def read(world: World, *outcomes: str, reader: str = "1.1.0", **change: Any) -> None:
    for number, outcome in enumerate(outcomes):
        more: dict[str, Any] = MOVED if outcome in {"refused", "raised"} else {}
        world.observe(world.fixture("2.0.0", f"r{number}", **change), reader, outcome, **more)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (("refused", "refused"), "fail: nothing read"),
        (("refused", "raised"), "fail: nothing read"),
        (("raised",), "fail: nothing read"),
        (("refused", "same"), "pass"),
        (("refused", "different"), "pass"),
        (("refused", "crashed"), "pass"),  # a failure of its own
    ],
)
def test_a_reader_that_takes_nothing_fails(outcomes: tuple[str, ...], verdict: str, world: World) -> None:
    read(world, *outcomes)
    assert list(world.verdicts(RULE).values()) == [verdict]


def test_each_family_and_each_set_of_options_is_looked_at_by_itself(world: World) -> None:
    read(world, "refused")
    saved = world.fixture("2.0.0", "saved", family="torch-save")
    world.observe(saved, "1.1.0")
    world.observe(saved, "1.1.0", "refused", STRICT, **MOVED)
    assert sorted(world.verdicts(RULE).values()) == ["fail: nothing read", "fail: nothing read", "pass"]


def test_what_the_options_are_there_to_refuse_is_explained(world: World) -> None:
    world.observe(world.fixture("2.0.0", "saved", family="torch-save"), "1.1.0", "refused", STRICT)
    assert list(world.verdicts(RULE).values()) == ["pass"]


@pytest.mark.parametrize(("since", "verdict"), [("1.1.1", "pass"), ("1.1.0", "fail: nothing read")])
def test_a_version_that_the_reader_does_not_know_explains_it(since: str, verdict: str, world: World) -> None:
    world.promise(formats=(file_format(1), file_format(2, read_from=since)))
    read(world, "refused", "refused", versions={"file-format": 2})
    assert list(world.verdicts(RULE).values()) == [verdict]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "pass"),
        ({"family": "mobile"}, "fail: nothing read"),
        ({"writers": "1.1.1"}, "fail: nothing read"),
        ({"readers": ">1.0.0.."}, "fail: nothing read"),
        ({"says": "another"}, "fail: nothing read"),
    ],
)
def test_a_layout_explains_it_where_it_fits(change: dict[str, str], verdict: str, world: World) -> None:
    world.promise(behaviors=(layout(**change),))
    read(world, "refused", "refused")
    assert next(iter(world.verdicts(RULE).values())) == verdict


def test_every_archive_has_to_be_explained(world: World) -> None:
    world.promise(behaviors=(layout(),))
    read(world, "refused")
    world.observe(world.fixture("2.0.0", "other"), "1.1.0", "refused")
    assert list(world.verdicts(RULE).values()) == ["fail: nothing read"]


def test_a_layout_that_explains_nothing_fails_where_it_could(world: World) -> None:
    world.promise(behaviors=(layout(says="another"), layout("elsewhere", family="mobile", says="another")))
    read(world, "refused", "same")
    assert world.verdicts(RULE) == {
        "torchscript archives of 2.0.0 read by torch-1.1.0": "pass",
        "moved": "fail: unused layout",
    }


def test_a_newer_reader_is_for_other_rules(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "refused")
    assert world.verdicts(RULE) == {}
