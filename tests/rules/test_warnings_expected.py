"""The rule on what releases say while they load archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import STRICT
from torch_compat.policy.model import KnownWarning, Saying
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from tests.rules.conftest import World

RULE = "warnings-expected"
SAID = ("FutureWarning", "load of 'a.b' is deprecated.")


def wording(readers: str = "1.1.0..", category: str = SAID[0], text: str = "load of '*' is deprecated.") -> Saying:
    return Saying(readers=ReleaseSet.parse(readers), category=category, text=text)


def known(*says: Saying, **change: Any) -> KnownWarning:
    told: dict[str, Any] = {"id": "load", "families": ("torchscript",), "because": "so", "says": says or (wording(),)}
    return KnownWarning(**(told | change))


@pytest.mark.parametrize(
    ("stated", "said", "verdicts"),
    [
        ({}, SAID, ["pass"]),
        ({}, ("FutureWarning", "load of 'a b' is deprecated."), ["fail: new warning"]),
        ({}, ("FutureWarning", "load of 'a.b' is deprecated. Or so"), ["fail: new warning"]),
        ({}, ("DeprecationWarning", SAID[1]), ["fail: another category"]),
        ({"says": (wording("1.1.0..1.1.1"),)}, SAID, ["fail: new warning"]),
        ({"families": ("mobile",)}, SAID, ["fail: new warning"]),
        ({"options": ("strict",)}, SAID, ["fail: new warning"]),
        ({"options": ("default",)}, SAID, ["pass"]),
        ({"during": "running"}, SAID, ["fail: new warning"]),
    ],
)
def test_what_is_said_is_stated(stated: dict[str, Any], said: tuple[str, str], verdicts: list[str], world: World) -> None:
    world.promise(warnings=(known(**stated),))
    world.observe(world.fixture(), "2.0.0", warnings=(said,))
    assert list(world.verdicts(RULE).values()) == verdicts


def test_a_warning_that_moved_to_another_category_has_two_wordings(world: World) -> None:
    world.promise(warnings=(known(wording("1.1.0..1.1.1", "DeprecationWarning"), wording("2.0.0..")),))
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", warnings=(("DeprecationWarning", SAID[1]),))
    world.observe(fixture, "2.0.0", warnings=(SAID,))
    assert list(world.verdicts(RULE).values()) == ["pass", "pass"]


@pytest.mark.parametrize(
    ("stated", "outcome", "verdicts"),
    [
        ({}, "same", ["pass", "fail: missing warning"]),
        ({}, "different", ["pass", "fail: missing warning"]),
        ({}, "refused", ["pass"]),  # it may not have come so far
        ({"varies": "by its source"}, "same", ["pass"]),
        ({"says": (wording("1.1.0"),)}, "same", ["pass"]),
    ],
)
def test_what_some_say_of_an_archive_the_others_say_too(
    stated: dict[str, Any], outcome: str, verdicts: list[str], world: World
) -> None:
    world.promise(warnings=(known(**stated),))
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", warnings=(SAID,))
    world.observe(fixture, "2.0.0", outcome)
    assert list(world.verdicts(RULE).values()) == verdicts


@pytest.mark.parametrize(("always", "verdicts"), [(True, ["fail: missing warning"]), (False, [])])
def test_what_is_always_said_is_missed_where_nobody_says_it(always: bool, verdicts: list[str], world: World) -> None:
    world.promise(warnings=(known(always=always),))
    world.observe(world.fixture(), "2.0.0")
    assert list(world.verdicts(RULE).values()) == verdicts


def test_each_archive_and_each_set_of_options_is_looked_at_by_itself(world: World) -> None:
    world.promise(warnings=(known(families=("torch-save",)),))
    fixture, other = (world.fixture(recipe=name, family="torch-save") for name in ("one", "other"))
    world.observe(fixture, "1.1.0", warnings=(SAID,))
    world.observe(fixture, "2.0.0", options=STRICT)
    world.observe(other, "2.0.0")
    assert list(world.verdicts(RULE).values()) == ["pass"]


def test_all_that_is_said_in_a_cell_is_looked_at(world: World) -> None:
    world.promise(warnings=(known(),))
    world.observe(world.fixture(), "2.0.0", warnings=(SAID, ("UserWarning", "one"), ("UserWarning", "two")))
    assert [judgement.cause.text for judgement in world.judgements(RULE) if judgement.cause] == [
        "UserWarning: one",
        "UserWarning: two",
    ]


def test_nothing_said_and_nothing_stated_is_nothing_to_judge(world: World) -> None:
    world.observe(world.fixture(), "2.0.0")
    assert world.judgements(RULE) == []
