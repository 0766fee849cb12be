"""The rules that judge cells: the cells each one selects, its verdict for each outcome, and how it names a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rules.conftest import FACTS, ONE, OTHER, STRICT, observed
from torch_compat.judging.cell import Outcome
from torch_compat.values.compare import Difference

if TYPE_CHECKING:
    from tests.rules.conftest import World

OBSERVED = sorted(FACTS)
# What each rule says of each outcome; a rule that is not named here says nothing of it.
SAYS = {
    "newer-loads": {
        "same": "pass", "close": "pass", "different": "pass", "raised": "pass", "relaxed": "pass", "unstable": "pass",
        "timed-out": "pass", "refused": "fail: refused", "crashed": "fail: crashed",
    },
    "newer-computes": {
        "same": "pass", "close": "pass", "different": "fail: different", "raised": "fail: raised", "relaxed": "fail: relaxed",
        "unstable": "fail: unstable", "timed-out": "fail: timed-out",
    },
    "reads-back": {
        "same": "pass", "close": "pass", "different": "fail: different", "raised": "fail: raised", "relaxed": "fail: relaxed",
        "unstable": "fail: unstable", "timed-out": "fail: timed-out", "refused": "fail: refused", "crashed": "fail: crashed",
    },
    "older-never-differs": {
        "same": "pass", "close": "pass", "refused": "pass", "raised": "no-promise", "relaxed": "fail: relaxed",
        "different": "fail: different", "unstable": "fail: unstable", "timed-out": "fail: timed-out", "crashed": "fail: crashed",
    },
    "forward-window": {
        "same": "pass", "close": "pass", "relaxed": "fail: relaxed", "different": "fail: different", "raised": "fail: raised",
        "unstable": "fail: unstable", "timed-out": "fail: timed-out", "refused": "fail: refused", "crashed": "fail: crashed",
    },
}  # fmt: skip
# Writer and reader for which each rule, and no other of them, is responsible.
PAIRS = {
    "newer-loads": ("1.0.0", "2.0.0"),
    "newer-computes": ("1.0.0", "2.0.0"),
    "reads-back": ("1.1.0", "1.1.0"),
    "older-never-differs": ("2.0.0", "1.0.0"),
    "forward-window": ("1.1.1", "1.1.0"),
}


def subject(writer: str, reader: str) -> str:
    return f"torch-{writer}/add read by torch-{reader}"


@pytest.mark.parametrize("outcome", OBSERVED)
@pytest.mark.parametrize("name", SAYS)
def test_what_a_rule_says_of_an_outcome(name: str, outcome: str, world: World) -> None:
    writer, reader = PAIRS[name]
    world.observe(world.fixture(writer), reader, outcome)
    expected = SAYS[name].get(outcome)
    assert world.verdicts(name) == ({subject(writer, reader): expected} if expected else {})


@pytest.mark.parametrize("outcome", OBSERVED)
def test_together_they_leave_no_cell_without_a_judgement(outcome: str, world: World) -> None:
    for writer in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
        fixture = world.fixture(writer)
        for reader in ("1.0.0", "1.1.0", "1.1.1", "2.0.0"):
            world.observe(fixture, reader, outcome)
    judged = [verdict for name in SAYS for verdict in world.verdicts(name)]
    assert set(judged) == set(observed(world.evidence()))
    twice = {
        verdict for verdict in judged if judged.count(verdict) > 1
    }  # a newer reader that loads is also asked what it computes
    assert all(judged.count(verdict) <= 2 for verdict in twice)
    assert twice <= world.verdicts("newer-computes").keys()


@pytest.mark.parametrize("name", ["newer-loads", "reads-back", "forward-window"])
def test_a_refusal_may_be_expected_of_a_set_of_options(name: str, world: World) -> None:
    writer, reader = {"reads-back": ("1.1.0", "1.1.0"), "forward-window": ("1.1.1", "1.1.0")}.get(name, ("1.0.0", "2.0.0"))
    fixture = world.fixture(writer, family="torch-save")
    world.observe(fixture, reader, "refused", STRICT)
    assert world.verdicts(name) == {f"{subject(writer, reader)} (strict)": "expected: refused"}
    other = {"type": "builtins.OSError", "message": "the disk is on fire"}
    world.observe(fixture, reader, "refused", STRICT, errors=(other,))
    assert world.verdicts(name) == {f"{subject(writer, reader)} (strict)": "fail: refused"}
    world.observe(fixture, reader, "different", STRICT)
    assert "expected" not in "".join(world.verdicts(name).values())


@pytest.mark.parametrize(("days", "name"), [(8, "older-never-differs"), (9, "forward-window"), (10, "forward-window")])
def test_the_window_is_policy_and_holds_its_last_day(days: int, name: str, world: World) -> None:
    world.promise(forward_window_days=days)
    world.observe(world.fixture("1.1.1"), "1.1.0", "different")
    asked = {item: world.verdicts(item) for item in SAYS}
    assert {item for item, result in asked.items() if result} == {name}


@pytest.mark.parametrize("own", ["1.1.0", "1.1.1"])
@pytest.mark.parametrize("outcome", sorted({*FACTS} - {"same", "close"}))
def test_a_failure_that_one_of_the_two_has_alone_is_no_matter_of_the_window(own: str, outcome: str, world: World) -> None:
    world.observe(world.fixture("1.1.1"), "1.1.0", outcome)
    world.observe(world.fixture(own), own, outcome)
    assert world.verdicts("forward-window") == {subject("1.1.1", "1.1.0"): "no-promise"}


@pytest.mark.parametrize("own", ["same", "refused"])
def test_another_failure_of_one_alone_excuses_nothing(own: str, world: World) -> None:
    written = world.fixture("1.1.1")
    world.observe(written, "1.1.0", "different")
    world.observe(written, "1.1.1", own)
    world.observe(world.fixture("1.1.1", recipe="other"), "1.1.1", "different")
    assert world.verdicts("forward-window") == {subject("1.1.1", "1.1.0"): "fail: different"}


def test_a_crash_while_calling_is_a_matter_of_computing(world: World) -> None:
    world.observe(world.fixture("1.0.0"), "2.0.0", "crashed", stage="call")
    assert world.verdicts("newer-loads") == {subject("1.0.0", "2.0.0"): "pass"}
    assert world.verdicts("newer-computes") == {subject("1.0.0", "2.0.0"): "fail: crashed"}


# ---------------------------------------------------------------------------------------------------------------- causes


def cause(world: World, name: str = "newer-computes") -> tuple[str, str]:
    (result,) = [judgement.cause for judgement in world.judgements(name) if judgement.cause]
    return result.subject, result.text


def test_an_error_is_its_own_cause(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "refused", errors=({"type": "x", "message": "\nno version 9\nmore"},))
    assert cause(world, "newer-loads") == ("no version N", "no version 9")


def test_the_last_of_several_errors_is_the_plainest(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "raised", errors=({"type": "x", "message": "odd"}, {"type": "x", "message": "plain"}))
    assert cause(world) == ("plain", "plain")


def test_a_crash_says_when_and_what_it_said_last(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "crashed")
    assert cause(world, "newer-loads")[1] == "SIGSEGV while loading"
    world.observe(fixture, "2.0.0", "crashed", stage="call", errors=({"type": "crash", "message": "isTuple() failed"},))
    assert cause(world)[1] == "SIGSEGV while running: isTuple() failed"


def test_a_cause_without_a_message_is_the_recipe(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "timed-out")
    assert cause(world) == ("add", "add: timed-out")


@pytest.mark.parametrize(
    ("differences", "text"),
    [
        ((), "add: 1 difference"),
        ((Difference("value", "calls[0].first.value", "float32", {"expected": 1, "got": 2}),), "value 2 instead of 1 (float32) in calls[0].first.value"),
        ((Difference("value", "value", "", {"expected": 1, "got": 2}),), "add: value 2 instead of 1 in value"),
        ((Difference("dtype", "value", "float32", {"expected": "float32", "got": "int64"}),), "dtype int64 instead of float32 in value"),
        ((Difference("keys", "state", "", {"expected": ["a", "b"], "got": ["b", "c"]}),), "add: state lost a and gained c"),
        ((Difference("keys", "state", "", {"expected": ["a"], "got": []}),), "add: state lost a"),
        ((Difference("keys", "state", "", {"expected": ["a", "b"], "got": ["b", "a"]}),), "add: state is in a different order"),
        ((Difference("keys", "value", "", {"expected": 2, "got": 3}),), "add: keys 3 instead of 2 in value"),
        (
            (Difference("strides", "value"), Difference("raised", "x"), Difference("shape", "value", "", {"expected": [1], "got": [2]})),
            "add: shape [2] instead of [1] in value",
        ),
    ],
)  # fmt: skip
def test_a_difference_in_words(differences: tuple[Difference, ...], text: str, world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "different", differences=differences)
    result = cause(world)
    assert result[0] == "add"
    assert text in result[1]


def test_an_unstable_cell_says_both(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "unstable", both=(ONE, OTHER))
    assert cause(world)[1] == "add: one observation has the result same, the other has same"


def test_every_outcome_of_a_real_reader_is_tried_here() -> None:
    assert set(OBSERVED) == set(Outcome) - {Outcome.UNSUPPORTED, Outcome.UNAVAILABLE}
