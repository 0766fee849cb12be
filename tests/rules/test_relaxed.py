"""Values where the writer raised: no promise if a stated change of an operator is the cause, otherwise a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.policy.model import Change

if TYPE_CHECKING:
    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture

RULE = {"backward": "newer-computes", "forward": "older-never-differs"}
VALUE = {"value": 1, "inputs": [], "warnings": []}


def raised(message: str) -> dict[str, Any]:
    return {"error": {"stage": "call", "type": "builtins.RuntimeError", "message": message}, "warnings": []}


def change(since: str, **more: Any) -> Change:
    told: dict[str, Any] = {
        "id": "now-taken",
        "operators": ("aten::div",),
        "kind": "accepted",
        "before": "a",
        "after": "b",
        "evidence": "c",
    }
    return Change(**{**told, "since": since, "refusal": ("no integers",), **more})


def program(world: World, version: str = "1.0.0", *messages: str, **more: Any) -> Fixture:
    """Written by a release, with one call for each message, which says so, or gives a value for an empty one."""
    turns = [raised(message) if message else VALUE for message in messages or ("no integers here",)]
    golden = {"calls": [{"first": turn, "second": turn} for turn in turns], "state": None, "state_after": None}
    return world.fixture(version, operators=["aten::div_.Tensor"], golden=golden, **more)


def relax(world: World, fixture: Fixture, reader: str, *calls: int) -> None:
    paths = tuple(f"/calls/{call}/{turn}" for call in calls or (0,) for turn in ("first", "second"))
    world.observe(fixture, reader, "relaxed", departures=((paths, VALUE),), digest=f"{len(calls):016}")


@pytest.mark.parametrize(
    ("stated", "verdict"),
    [
        ((), "fail: relaxed"),
        ((change("2.0.0"),), "no-promise"),
        ((change("1.1.0"),), "fail: relaxed"),  # 1.1.1 still raises
        ((change("1.0.0"),), "fail: relaxed"),
        ((change("2.0.0", operators=("aten::mul",)),), "fail: relaxed"),
        ((change("2.0.0", refusal=("no strings",)),), "fail: relaxed"),
        ((change("2.0.0", refusal=None),), "fail: relaxed"),
        ((change("2.0.0", kind="type"),), "no-promise"),
    ],
)
def test_a_change_is_the_cause_where_it_fits(stated: tuple[Change, ...], verdict: str, world: World) -> None:
    fixture = program(world)
    world.promise(changes=stated)
    world.observe(fixture, "1.1.1")
    relax(world, fixture, "2.0.0")
    assert world.verdicts("newer-computes")["torch-1.0.0/add read by torch-2.0.0"] == verdict


def test_the_operator_may_be_the_one_that_the_error_quotes(world: World) -> None:
    fixture = program(world, "1.0.0", "return torch.reciprocal(b) * a: no integers")
    world.promise(changes=(change("2.0.0", operators=("aten::reciprocal",)),))
    relax(world, fixture, "2.0.0")
    assert set(world.verdicts("newer-computes").values()) == {"no-promise"}


def test_a_release_that_is_not_recorded_does_not_explain_what_16_bit_floats_do(world: World) -> None:
    """1.6.0 is known to compute it with float16, but did not read anything here."""
    fixture = program(world, "1.0.0", "div_cpu not implemented for 'Half'")
    relax(world, fixture, "2.0.0")
    assert list(world.verdicts("newer-computes").values()) == ["fail: relaxed"]


def test_every_relaxed_call_needs_its_cause(world: World) -> None:
    fixture = program(world, "1.0.0", "no integers here", "no strings here", "")
    world.promise(changes=(change("1.1.0"),))
    relax(world, fixture, "1.1.0", 0)
    relax(world, fixture, "2.0.0", 0, 1)
    assert list(world.verdicts("newer-computes").values()) == ["no-promise", "fail: relaxed"]


def test_a_later_relaxation_is_not_explained_by_an_earlier_change(world: World) -> None:
    """1.1.0 should have given a value by the change, and still raised: what happened at 2.0.0 is something else."""
    fixture = program(world)
    world.promise(changes=(change("1.1.0"),))
    world.observe(fixture, "1.1.0")
    relax(world, fixture, "2.0.0")
    assert world.verdicts("newer-computes")["torch-1.0.0/add read by torch-2.0.0"] == "fail: relaxed"


def test_readers_that_tell_nothing_of_calls_are_passed_over(world: World) -> None:
    fixture = program(world)
    world.promise(changes=(change("1.1.0"),))
    world.observe(fixture, "1.1.0", "refused")
    relax(world, fixture, "2.0.0")
    assert world.verdicts("newer-computes")["torch-1.0.0/add read by torch-2.0.0"] == "no-promise"


@pytest.mark.parametrize(("since", "verdict"), [("2.0.0", "no-promise"), ("1.1.1", "no-promise"), ("1.1.0", "fail: relaxed")])
def test_an_older_reader_gives_a_value_where_the_change_came_after_it(since: str, verdict: str, world: World) -> None:
    fixture = program(world, "2.0.0")
    world.promise(changes=(change(since, kind="refused"),))
    relax(world, fixture, "1.1.0")
    assert list(world.verdicts("older-never-differs").values()) == [verdict]


def test_a_writer_that_died_is_known_by_its_signal(world: World) -> None:
    fixture = world.fixture(golden={"crashed": {"stage": "call", "signal": "SIGFPE", "said": ""}}, operators=["aten::div"])
    world.promise(changes=(change("2.0.0", refusal=("SIGFPE",)),))
    world.observe(fixture, "2.0.0", "relaxed", departures=((("",), {"calls": [], "state": None, "state_after": None}),))
    assert set(world.verdicts("newer-computes").values()) == {"no-promise"}


def test_what_is_recorded_without_saying_where_is_a_failure(world: World) -> None:
    fixture = program(world)
    world.promise(changes=(change("2.0.0"),))
    world.observe(fixture, "2.0.0", "relaxed")
    assert set(world.verdicts("newer-computes").values()) == {"fail: relaxed"}


def test_what_no_release_wrote_has_no_release_to_begin_with(world: World) -> None:
    world.promise(changes=(change("1.1.0"),))
    fixture = world.synthetic("file-format 1", operators=["aten::div"], golden=program(world).golden)
    relax(world, fixture, "2.0.0")
    assert world.verdicts("synthetic-loads")["synthetic/old read by torch-2.0.0"] == "fail: relaxed"
