"""The rule on warnings that releases issue while loading archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import STRICT
from torch_compat.policy.sayings import KnownMessage, Phrase
from torch_compat.releases.sets import ReleaseSet
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World

RULE = "warnings-expected"
SAID = ("FutureWarning", "load of 'a.b' is deprecated.")


def wording(readers: str = "1.1.0..", category: str = SAID[0], text: str = "load of '*' is deprecated.") -> Phrase:
    return Phrase(releases=ReleaseSet.parse(readers), type=category, text=text)


def known(*says: Phrase, **change: Any) -> KnownMessage:
    told: dict[str, Any] = {
        "id": "load",
        "kind": "warning",
        "families": ("torchscript",),
        "because": "so",
        "says": says or (wording(),),
    }
    return KnownMessage(**(told | change))


@pytest.mark.parametrize(
    ("stated", "said", "verdicts"),
    [
        ({}, SAID, ["pass"]),
        ({}, ("FutureWarning", "load of '*' is deprecated."), ["pass"]),  # a text may hold a star, as 'a * b'
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
    world.promise(messages=(known(**stated),))
    world.observe(world.fixture(), "2.0.0", warnings=(said,))
    assert list(world.verdicts(RULE).values()) == verdicts


def test_a_warning_that_moved_to_another_category_has_two_wordings(world: World) -> None:
    world.promise(messages=(known(wording("1.1.0..1.1.1", "DeprecationWarning"), wording("2.0.0..")),))
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
        ({"once": True}, "same", []),  # chance decides who hears it, so hearing it is no pass either
        ({"says": (wording("1.1.0"),)}, "same", ["pass"]),
    ],
)
def test_what_some_say_of_an_archive_the_others_say_too(
    stated: dict[str, Any], outcome: str, verdicts: list[str], world: World
) -> None:
    world.promise(messages=(known(**stated),))
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", warnings=(SAID,))
    world.observe(fixture, "2.0.0", outcome)
    assert list(world.verdicts(RULE).values()) == verdicts


@pytest.mark.parametrize(("outcome", "missed"), [("same", False), ("relaxed", True)])
def test_a_process_that_dies_like_its_writer_takes_its_warnings_along(outcome: str, missed: bool, world: World) -> None:
    world.promise(messages=(known(always=True),))
    golden = {"crashed": {"stage": "call", "signal": "SIGFPE", "said": ""}}
    end: dict[str, Any] = {"signal": "SIGFPE", "stage": "call"} if outcome == "same" else {}
    world.observe(world.fixture(golden=golden), "2.0.0", outcome, **end)
    assert list(world.verdicts(RULE).values()) == (["fail: missing warning"] if missed else [])


@pytest.mark.parametrize(("always", "verdicts"), [(True, ["fail: missing warning"]), (False, ["fail: unsaid"])])
def test_what_is_always_said_is_missed_where_nobody_says_it(always: bool, verdicts: list[str], world: World) -> None:
    world.promise(messages=(known(always=always),))
    world.observe(world.fixture(), "2.0.0")
    assert list(world.verdicts(RULE).values()) == verdicts


def test_each_archive_and_each_set_of_options_is_looked_at_by_itself(world: World) -> None:
    world.promise(messages=(known(families=("torch-save",)),))
    fixture, other = (world.fixture(recipe=name, family="torch-save") for name in ("one", "other"))
    world.observe(fixture, "1.1.0", warnings=(SAID,))
    world.observe(fixture, "2.0.0", options=STRICT)
    world.observe(other, "2.0.0")
    assert list(world.verdicts(RULE).values()) == ["pass"]


def test_all_that_is_said_in_a_cell_is_looked_at(world: World) -> None:
    world.promise(messages=(known(),))
    world.observe(world.fixture(), "2.0.0", warnings=(SAID, ("UserWarning", "one"), ("UserWarning", "two")))
    assert [judgement.cause.text for judgement in world.judgements(RULE) if judgement.cause] == [
        "UserWarning: one",
        "UserWarning: two",
    ]


def test_nothing_said_and_nothing_stated_is_nothing_to_judge(world: World) -> None:
    world.observe(world.fixture(), "2.0.0")
    assert world.judgements(RULE) == []


# --------------------------------------------------------------------------------------------------------------------- in calls

OLD, NEW = ("UserWarning", "it is odd (here)"), ("UserWarning", "it is odd (there)")
ODD = (wording("1.1.0..1.1.1", *OLD), wording("2.0.0..", *NEW))


def running(*says: Phrase, **change: Any) -> KnownMessage:
    return known(*(says or ODD), **{"id": "odd", "during": "running", **change})


def program(*warnings: tuple[str, str]) -> dict[str, Any]:
    """What a program with one call computes, whose first turn warns."""
    value: dict[str, Any] = {"value": 1, "inputs": []}
    turn = {**value, "warnings": [list(warning) for warning in warnings]}
    return {"calls": [{"first": turn, "second": value}], "state": None, "state_after": None}


def called(world: World, *given: tuple[str, str], version: str = "2.0.0", **change: Any) -> None:
    """Let 1.1.0 write a program that it warns of, and read it as it was; and another release read it."""
    fixture = world.fixture("1.1.0", golden=program(OLD), operators=["aten::odd.Tensor"], **change)
    world.observe(fixture, "1.1.0", heard=True)
    world.observe(fixture, version, heard=True, said=(("calls[0].first", given),) if given != (OLD,) else ())


def causes(world: World) -> list[str]:
    return [judgement.cause.what for judgement in world.judgements(RULE) if judgement.cause]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((NEW,), []),  # what is stated of it, whatever the writer said
        ((), ["missing warning in a call"]),
        ((OLD,), ["new warning in a call"]),  # as the writer, in the words of another release
        ((("FutureWarning", NEW[1]),), ["another category in a call"]),
        ((NEW, ("UserWarning", "it is new")), ["new warning in a call"]),
        ((("UserWarning", "it is new"),), ["new warning in a call", "missing warning in a call"]),
    ],
)
def test_a_reader_says_in_calls_what_is_stated_of_its_release(given: tuple[Any, ...], what: list[str], world: World) -> None:
    world.promise(messages=(running(),))
    called(world, *given)
    assert causes(world) == what


@pytest.mark.parametrize(
    ("said", "verdicts"),
    [
        (SAID, []),
        (("DeprecationWarning", SAID[1]), ["fail: another category"]),
        (("FutureWarning", "it is new"), ["fail: new warning"]),
    ],
)
def test_a_warning_that_is_given_once_is_known_all_the_same(said: tuple[str, str], verdicts: list[str], world: World) -> None:
    world.promise(messages=(known(once=True),))
    world.observe(world.fixture(), "2.0.0", warnings=(said,))
    assert list(world.verdicts(RULE).values()) == verdicts


def test_a_warning_that_is_given_once_and_heard_of_nobody_is_told(world: World) -> None:
    world.promise(messages=(known(once=True),))
    world.observe(world.fixture(), "2.0.0")
    assert list(world.verdicts(RULE).values()) == ["fail: unsaid"]


def test_of_a_warning_that_is_given_once_one_wording_is_enough(world: World) -> None:
    world.promise(messages=(known(wording("1.1.0..1.1.1"), wording("2.0.0..", text="load is old"), once=True),))
    fixture = world.fixture()
    world.observe(fixture, "1.1.0", warnings=(SAID,))
    world.observe(fixture, "2.0.0")
    assert list(world.verdicts(RULE).values()) == []


def test_of_readers_that_vary_the_silent_ones_are_no_finding(world: World) -> None:
    world.promise(messages=(running(wording("1.1.0..", *OLD), varies="by the hour"),))
    called(world)
    assert causes(world) == []


@pytest.mark.parametrize(
    ("operators", "what"),
    [
        (("aten::odd",), []),
        (("aten::odd.Tensor",), []),
        (("aten::even",), ["new warning in a call"]),
        (("aten::odd", "aten::even"), []),  # no program has it
    ],
)
def test_a_warning_is_stated_of_programs_with_its_operators(operators: tuple[str, ...], what: list[str], world: World) -> None:
    world.promise(messages=(running(operators=operators),))
    called(world, NEW)
    assert sorted(set(causes(world))) == what


def test_an_operator_none_of_whose_programs_has_the_warning_is_told(world: World) -> None:
    world.promise(messages=(running(operators=("aten::odd", "aten::even")),))
    called(world, NEW)
    other = world.fixture("1.1.0", recipe="other", golden=program(), operators=["aten::even"])
    world.observe(other, "1.1.0", heard=True)
    (judgement,) = [item for item in world.judgements(RULE) if item.cause]
    assert judgement.cause is not None
    assert judgement.cause.text.endswith("in programs with aten::even")


def test_a_call_that_raises_may_not_have_come_so_far(world: World) -> None:
    world.promise(messages=(running(wording("1.1.0..", *OLD)),))
    golden = program(OLD)
    got = program()
    got["calls"][0]["first"] = {"error": {"stage": "call", "type": "E", "message": "no"}}
    fixture = world.fixture("1.1.0", golden=golden)
    world.observe(fixture, "1.1.0", heard=True)
    told: dict[str, Any] = {"heard": True, "said": (("calls[0].first", ()),)}
    world.observe(fixture, "2.0.0", "raised", **told, digest="1" * 16, departures=departures(golden, got))
    assert causes(world) == []


def test_what_was_not_heard_is_not_missed(world: World) -> None:
    world.promise(messages=(running(),))
    fixture = world.fixture("1.1.0", golden=program(OLD))
    world.observe(fixture, "1.1.0", heard=True)
    world.observe(fixture, "2.0.0")
    assert causes(world) == []


def test_words_on_loading_that_no_release_says_are_told_by_a_reader_that_was_asked(world: World) -> None:
    world.promise(messages=(known(wording("1.1.0..1.1.1"), wording("2.0.0..", text="another")),))
    world.observe(world.fixture(), "1.1.0", warnings=(SAID,))
    assert causes(world) == []  # nobody was asked
    world.observe(world.fixture(recipe="more"), "2.0.0")
    (judgement,) = [item for item in world.judgements(RULE) if item.cause]
    assert (judgement.reader, judgement.subject) == ("2.0.0", "load")
