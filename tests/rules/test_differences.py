"""What the digest of a difference includes and excludes."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import ERROR, FACTS, TOLERANCE, World
from torch_compat.corpus.observations import Observation
from torch_compat.judging.differences import DIGITS, Differences
from torch_compat.policy.model import Tolerance
from torch_compat.replay.observe import observation
from torch_compat.replay.plan import Task

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture


def floats(*values: float, **more: Any) -> dict[str, Any]:
    data = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return {
        "tensor": {"dtype": "float32", "shape": [len(values)], "strides": [1], "bytes": data, "storage": 0, "offset": 0, **more}
    }


def call(value: Any, **more: Any) -> dict[str, Any]:
    return {"value": value, "inputs": [], **more}


def failure(message: str = "no such thing", kind: str = "builtins.RuntimeError") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message}}


def result(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"state": None, "state_after": None, "calls": [{"first": turn, "second": turn} for turn in turns], **more}


GOLDEN = result(call(floats(1.0, 2.0)), call(floats(3.0)))


def digest_of(reply: dict[str, Any], golden: dict[str, Any] = GOLDEN, **policy: Any) -> str:
    """The digest of what is observed of a reply."""
    world = World()
    world.promise(**policy)
    fixture = world.fixture(golden=golden, calls=[{}] * len(golden.get("calls", ())))
    return _digest(world, fixture, observation(Task(fixture, _path(), world.policy.options[0]), reply))


def _path() -> Any:
    from pathlib import Path  # noqa: PLC0415

    return Path("add.pt")


def _digest(world: World, fixture: Fixture, seen: Observation) -> str:
    reader = world.reader("2.0.0")
    assert isinstance(reader.cells, dict)
    reader.cells[fixture.id, "default"] = seen
    evidence = world.evidence()
    (cells,) = evidence.cells
    outcome = Differences(evidence).digest(cells)
    assert len(outcome) == DIGITS
    return outcome


def computed(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"result": result(*turns, **more)}


FAR = computed(call(floats(1.0, 9.0)), call(floats(3.0)))
OTHER = {
    "another value": computed(call(floats(1.0, 9.5)), call(floats(3.0))),
    "another place": computed(call(floats(9.0, 2.0)), call(floats(3.0))),
    "another call": computed(call(floats(1.0, 2.0)), call(floats(9.0))),
    "one more": computed(call(floats(1.0, 9.0)), call(floats(9.0))),
    "a shape": computed(call(floats(1.0, 9.0, shape=[2, 1])), call(floats(3.0))),
    "a dtype": computed(call(floats(1.0, 9.0, dtype="int32")), call(floats(3.0))),
    "a type": computed(call({"tuple": [floats(1.0, 9.0)]}), call(floats(3.0))),
    "a class": computed(call(floats(1.0, 9.0, **{"class": "torch.nn.Parameter"})), call(floats(3.0))),
    "an error": computed(failure(), call(floats(3.0))),
    "a refusal": {"result": failure()},
    "a death": {"crashed": {"stage": "load", "signal": "SIGSEGV", "said": ""}},
    "a time-out": {"timed-out": {"stage": "load"}},
}


@pytest.mark.parametrize("name", OTHER)
def test_another_difference_has_another_digest(name: str) -> None:
    assert digest_of(OTHER[name]) != digest_of(FAR)


def test_the_other_ones_differ_among_each_other() -> None:
    assert len({digest_of(item) for item in OTHER.values()}) == len(OTHER)


@pytest.mark.parametrize(
    ("change", "same"), [({"storage": 5, "offset": 7}, True), ({"requires_grad": True}, False), ({"strides": [3]}, False)]
)
def test_of_a_tensor_that_is_not_compared_further_all_but_its_place_counts(change: dict[str, Any], same: bool) -> None:
    shaped = [computed(call(floats(1.0, 9.0, shape=[2, 1], **more)), call(floats(3.0))) for more in ({}, change)]
    assert (digest_of(shaped[0]) == digest_of(shaped[1])) is same


def test_the_last_bits_within_a_tolerance_are_no_part_of_it() -> None:
    near = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", 3.0))[0] + 2))[0]
    assert digest_of(computed(call(floats(1.0, 9.0)), call(floats(near)))) == digest_of(FAR)
    assert digest_of(computed(call(floats(1.0, 9.0)), call(floats(near))), tolerances=()) != digest_of(FAR, tolerances=())


def test_what_is_disregarded_is_no_part_of_it() -> None:
    strided = computed(call(floats(1.0, 9.0, strides=[3])), call(floats(3.0)))
    ignored = Tolerance(kind="strides", families=("torchscript",), reason="never promised")
    assert digest_of(strided) != digest_of(FAR)
    assert digest_of(strided, tolerances=(TOLERANCE, ignored)) == digest_of(FAR, tolerances=(TOLERANCE, ignored))


def test_where_in_memory_a_tensor_lies_is_no_part_of_it() -> None:
    item, other = (computed(call(floats(1.0, 9.0, shape=[1, 2], storage=at, offset=at)), call(floats(3.0))) for at in (0, 7))
    assert digest_of(item) == digest_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"dtype": "int32"}, {"dtype": "int32"}),
        ({"shape": [2, 1]}, {"shape": [2, 1]}),
    ],
    ids=["dtype", "shape"],
)
def test_values_behind_another_dtype_or_shape_are_a_part_of_it(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert digest_of(computed(call(floats(1.0, 2.0, **one)), call(floats(3.0)))) != digest_of(
        computed(call(floats(1.0, 5.0, **other)), call(floats(3.0)))
    )


def test_values_behind_another_type_or_other_keys_are_a_part_of_it() -> None:
    for wrap in (lambda value: {"tuple": [value]}, lambda value: [value, value], lambda value: {"dict": [["k", value]]}):
        item, other = (computed(call(wrap(floats(value, 2.0))), call(floats(3.0))) for value in (1.0, 5.0))
        assert digest_of(item) != digest_of(other)
    golden = result(call({"dict": [["a", floats(1.0)], ["b", floats(2.0)]]}))
    lost = [computed(call({"dict": [["a", floats(value)]]})) for value in (1.0, 5.0)]
    assert digest_of(lost[0], golden) != digest_of(lost[1], golden)


def test_what_a_call_gives_that_was_to_raise_is_a_part_of_it() -> None:
    golden = result(failure("negative"), call(floats(1.0)))
    item, other = (computed(call(floats(value)), call(floats(9.0))) for value in (1.0, 5.0))
    assert digest_of(item, golden) != digest_of(other, golden)


@pytest.mark.parametrize(
    ("message", "kind", "same"),
    [
        ("version 9 is too new", "builtins.RuntimeError", True),
        ("version 10 is too new", "builtins.RuntimeError", True),
        ("version 9 is too old", "builtins.RuntimeError", False),
        ("version 9 is too new", "builtins.ValueError", False),
        ("version 9 is too new\n  at caffe2/serialize.cc:17", "builtins.RuntimeError", True),
    ],
)
def test_of_errors_it_has_the_class_and_what_does_not_vary_in_the_text(message: str, kind: str, same: bool) -> None:
    refused = [digest_of({"result": failure(*item)}) for item in ((ERROR["message"], ERROR["type"]), (message, kind))]
    raised = [
        digest_of(computed(failure(*item), call(floats(3.0)))) for item in ((ERROR["message"], ERROR["type"]), (message, kind))
    ]
    assert (refused[0] == refused[1], raised[0] == raised[1]) == (same, same)


@pytest.mark.parametrize(
    ("stage", "signal", "said", "same"),
    [
        ("load", "SIGABRT", "what():  gone 1\n", True),
        ("load", "SIGABRT", "what():  gone 2\n", True),
        ("load", "SIGABRT", "what():  lost 1\n", False),
        ("load", "SIGABRT", "", False),
        ("load", "SIGSEGV", "what():  gone 1\n", False),
        ("call", "SIGABRT", "what():  gone 1\n", False),
    ],
)
def test_of_a_death_it_has_the_stage_the_signal_and_the_last_words(stage: str, signal: str, said: str, same: bool) -> None:
    item, other = (
        digest_of({"crashed": {"stage": at, "signal": of, "said": words}})
        for at, of, words in (("load", "SIGABRT", "what():  gone 1\n"), (stage, signal, said))
    )
    assert (item == other) is same


def test_a_time_out_has_its_stage() -> None:
    assert digest_of({"timed-out": {"stage": "load"}}) != digest_of({"timed-out": {"stage": "call"}})


def unstable(*both: dict[str, Any]) -> str:
    world = World()
    fixture = world.fixture(golden=GOLDEN, calls=[{}, {}])
    item, other = (observation(Task(fixture, _path(), world.policy.options[0]), reply) for reply in both)
    key = world.observe(fixture, "2.0.0").key
    return _digest(world, fixture, Observation(fixture.id, "default", key, "unstable", both=(item, other)))


def test_what_varies_has_its_places_and_no_values() -> None:
    once = unstable(FAR, computed(call(floats(1.0, 7.0)), call(floats(3.0))))
    assert (
        unstable(computed(call(floats(1.0, 5.0)), call(floats(3.0))), computed(call(floats(4.0, 7.0)), call(floats(3.0)))) == once
    )
    assert unstable(FAR, computed(call(floats(1.0, 2.0)), call(floats(9.0)))) != once
    assert unstable(FAR, {"result": failure()}) != once


def test_without_departures_what_was_recorded_of_the_differences_counts() -> None:
    world = World()
    fixture = world.fixture()
    facts = {name: world.observe(fixture, "2.0.0", name) for name in FACTS if name not in {"same", "close"}}
    assert len({_digest(world, fixture, fact) for fact in facts.values()}) == len(facts)
    changed = world.observe(fixture, "2.0.0", "different", digest="3" * 16)
    assert _digest(world, fixture, changed) != _digest(world, fixture, facts["different"])


def test_what_is_digested_once_is_told_apart_by_all_that_it_rests_on() -> None:
    world = World()
    world.promise(tolerances=(TOLERANCE, Tolerance(kind="strides", families=("mobile",), reason="never promised")))
    strided = computed(call(floats(1.0, 9.0, strides=[3])), call(floats(3.0)))
    other = result(call(floats(1.0, 7.0)), call(floats(3.0)))
    fixtures = {
        name: world.fixture(recipe=name, golden=golden, calls=[{}] * 2, **more)
        for name, golden, more in (
            ("mul", GOLDEN, {}), ("sub", GOLDEN, {}), ("div", other, {}), ("pow", GOLDEN, {"family": "mobile"}),
        )
    }  # fmt: skip
    seen = observation(Task(fixtures["mul"], _path(), world.policy.options[0]), strided)
    reader = world.reader("2.0.0")
    assert isinstance(reader.cells, dict)
    for fixture in fixtures.values():
        key = Task(fixture, _path(), world.policy.options[0]).key
        reader.cells[fixture.id, "default"] = replace(seen, fixture=fixture.id, key=key)
    evidence = world.evidence()
    digests = Differences(evidence)
    results = {cells.fixture.recipe: digests.digest(cells) for cells in evidence.cells}
    assert results["mul"] == results["sub"]
    assert len({results["mul"], results["div"], results["pow"]}) == 3  # another golden, and what a family is not held to
