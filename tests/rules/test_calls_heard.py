"""Comparison of errors with errors, and warnings of calls: what is compared, and what is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.policy.sayings import KnownMessage, Phrase
from torch_compat.releases.sets import ReleaseSet
from torch_compat.values.compare import compare
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture

OLD = ("FutureWarning", "it is deprecated")
NEW = ("UserWarning", "it is odd")


def raised(message: str, kind: str = "builtins.RuntimeError", *warnings: tuple[str, str]) -> dict[str, Any]:
    turn = {"error": {"stage": "call", "type": kind, "message": message}, "warnings": [list(warning) for warning in warnings]}
    return {"calls": [{"first": turn, "second": turn}], "state": None, "state_after": None}


def observe(
    world: World, golden: dict[str, Any], got: dict[str, Any], reader: str = "2.0.0", writer: str = "1.0.0", **more: Any
) -> Fixture:
    """What a reader of today puts down."""
    fixture = world.fixture(writer, golden=golden)
    result = compare(golden, got, hear=True)
    outcome = {"same": "same", "differs": "different"}[result.result]
    facts: dict[str, Any] = {
        "heard": result.heard,
        "said": result.said,
        "extent": result.extent,
        "count": result.count,
        "differences": result.differences,
    }
    world.observe(fixture, reader, outcome, **facts, departures=departures(golden, got) if result.count else (), **more)
    return fixture


@pytest.mark.parametrize(
    ("message", "kind", "outcome"),
    [
        ("no such size 3", "builtins.RuntimeError", "same"),
        ("no such size 4", "builtins.RuntimeError", "same"),  # what varies is no part of it
        ("Traceback of one\nRuntimeError: no such size 3", "builtins.RuntimeError", "different"),
        (
            "The following operation failed in the interpreter.\nhere\nRuntimeError: no such size 3",
            "builtins.RuntimeError",
            "same",
        ),
        ("no such dimension", "builtins.RuntimeError", "different"),
        ("no such size 3", "builtins.IndexError", "different"),
    ],
)
def test_two_errors_are_the_same_if_class_and_text_agree(message: str, kind: str, outcome: str, world: World) -> None:
    observe(world, raised("no such size 3"), raised(message, kind))
    (cells,) = world.evidence().cells
    assert cells.outcome == outcome
    text = "pass" if outcome == "same" else "fail: different"
    assert list(world.verdicts("newer-computes").values()) == [text]
    assert list(world.verdicts("calls-heard").values()) == ["pass"]


def test_the_cause_says_both_errors(world: World) -> None:
    observe(world, raised("no such size"), raised("no such dimension", "builtins.IndexError"))
    (judgement,) = world.judgements("newer-computes")
    assert judgement.cause is not None
    assert judgement.cause.text == "add: IndexError: no such dimension instead of RuntimeError: no such size in calls[0].first"


def test_an_archive_that_its_writer_cannot_load_is_refused_in_the_same_words(world: World) -> None:
    golden, other = ({"error": {"stage": "load", "type": "E", "message": text}} for text in ("no record", "no memory"))
    observe(world, golden, other)
    assert list(world.verdicts("newer-computes").values()) == ["fail: different"]
    assert list(world.verdicts("calls-heard").values()) == ["pass"]
    world.observe(world.fixtures[0], "2.0.0")
    assert list(world.verdicts("calls-heard").values()) == ["not-checked: not heard"]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_cell_that_was_not_compared_is_not_checked(fresh: bool, world: World) -> None:
    world.observe(world.fixture(golden=raised("no")), "2.0.0", fresh=fresh)
    world.observe(world.fixture(recipe="saved", golden={"value": 1}), "2.0.0", fresh=fresh)  # nothing is called
    (judgement,) = world.judgements("calls-heard")
    assert f"{judgement.verdict}: {judgement.cause and judgement.cause.what}" == "not-checked: not heard"
    assert judgement.subject.startswith("torch-1.0.0/add")


@pytest.mark.parametrize(
    ("wanted", "given", "readers", "verdicts"),
    [
        ((), (NEW,), None, ["fail: new warning in a call"]),
        ((), (NEW,), "2.0.0..", ["pass"]),
        ((), (NEW,), "..1.1.1", ["fail: new warning in a call"]),
        ((NEW,), (), None, []),  # who said it is not asked what policy states
        ((NEW,), (), "..1.1.1", []),
        ((NEW,), (), "2.0.0..", ["fail: unsaid"]),
        ((NEW,), (NEW,), None, ["fail: new warning in a call"]),  # as the writer, but it stands nowhere
        ((NEW,), (NEW,), "2.0.0..", ["pass"]),
    ],
)
def test_warnings_of_calls_are_held_against_policy_whatever_the_writer_said(
    wanted: tuple[Any, ...], given: tuple[Any, ...], readers: str | None, verdicts: list[str], world: World
) -> None:
    if readers:
        wording = Phrase(releases=ReleaseSet.parse(readers), type=NEW[0], text=NEW[1])
        entry = KnownMessage(id="odd", kind="warning", says=(wording,), families=("torchscript",), during="running", because="so")
        world.promise(messages=(entry,))
    observe(world, raised("no", "E", *wanted), raised("no", "E", *given))
    assert (
        list(
            dict.fromkeys(
                f"{judgement.verdict}{f': {judgement.cause.what}' if judgement.cause else ''}"
                for judgement in world.judgements("warnings-expected")
            )
        )
        == verdicts
    )


def test_a_fresh_observation_does_not_contradict_one_that_predates(world: World) -> None:
    golden = raised("no size")
    fixture = observe(world, golden, raised("no memory"), fresh=True, digest="1" * 16)
    world.observe(fixture, "2.0.0")
    assert world.verdicts("observations-reproduce")["torch-1.0.0/add read again by torch-2.0.0"] == "pass"
    world.observe(fixture, "2.0.0", heard=True)
    assert world.verdicts("observations-reproduce")["torch-1.0.0/add read again by torch-2.0.0"] == "fail: contradiction"
