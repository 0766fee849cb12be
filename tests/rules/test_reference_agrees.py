from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.rules.reference_agrees import PREDICTED
from torch_compat.values.compare import compare, result_digest
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World
    from torch_compat.corpus.manifest import Fixture

NAME = "reference-agrees"
LACKING = ({"type": "operator", "message": "the reference reader has no operator aten::frob"},)
ERROR = {"stage": "call", "type": "RuntimeError", "message": "no"}


def tensor(*bits: int) -> dict[str, Any]:
    """float32 by their bits."""
    raw = b"".join(bit.to_bytes(4, "little") for bit in bits)
    return {"tensor": {"dtype": "float32", "shape": [len(bits)], "strides": [1], "bytes": base64.b64encode(raw).decode()}}


def result(value: Any) -> dict[str, Any]:
    turn = {"error": value} if value is ERROR else {"value": value, "inputs": []}
    return {"state": {"dict": []}, "state_after": {"dict": []}, "calls": [{"method": "forward", "first": turn, "second": turn}]}


ONE = 0x3F800000  # 1.0
GOLDEN, NEAR, FAR, RAISES = result(tensor(ONE)), result(tensor(ONE + 1)), result(tensor(ONE + 99)), result(ERROR)
LOST = {"error": {"stage": "load", "type": "RuntimeError", "message": "too new"}}


def facts(got: dict[str, Any]) -> dict[str, Any]:
    """What an observation says of a result."""
    outcome = compare(GOLDEN, got)
    told: dict[str, Any] = {
        "count": outcome.count, "extent": outcome.extent, "differences": outcome.differences, "errors": outcome.errors, "digest": "",
    }  # fmt: skip
    if "error" not in got and outcome.result != "same":
        told |= {"digest": result_digest(got), "departures": departures(GOLDEN, got)}
    return {"outcome": "different" if outcome.result == "differs" else outcome.result, **told}


def put(world: World, own: dict[str, Any], now: dict[str, Any], **change: Any) -> Fixture:
    fixture = world.fixture("1.1.0", golden=GOLDEN, **change)
    world.observe(fixture, "1.1.0", **facts(own))
    world.model(fixture, **facts(now))
    return fixture


@pytest.mark.parametrize(
    ("own", "now", "verdict"),
    [
        (GOLDEN, GOLDEN, "pass"),
        (GOLDEN, NEAR, "pass"),
        (GOLDEN, FAR, "fail: different"),
        (FAR, FAR, "pass"),
        (FAR, GOLDEN, "fail: different"),
        (RAISES, RAISES, "pass"),
        (RAISES, GOLDEN, "fail: relaxed"),
        (GOLDEN, RAISES, "fail: raised"),
        (LOST, LOST, "pass"),
        (GOLDEN, LOST, "fail: refused"),
        (LOST, GOLDEN, "fail: relaxed"),
        (RAISES, LOST, "fail: refused"),
    ],
)
def test_it_is_held_against_what_the_writer_itself_read_back(
    world: World, own: dict[str, Any], now: dict[str, Any], verdict: str
) -> None:
    put(world, own, now)
    assert world.verdicts(NAME) == {"torch-1.1.0/add read by reference@1.1.0": verdict}


@pytest.mark.parametrize("family", ["torchscript", "mobile"])
def test_every_program_of_the_corpus_is_asked_for(world: World, family: Any) -> None:
    fixture = world.fixture(family=family)
    world.fixture(family="torch-save", recipe="weights")
    world.synthetic("container tar")
    world.observe(fixture, "1.0.0")
    world.model(world.fixture("1.1.0", "sub", family=family))
    assert world.verdicts(NAME) == {
        "torch-1.0.0/add read by reference@1.0.0": "not-checked: not observed",
        "torch-1.1.0/sub read by reference@1.1.0": "not-checked: no read-back",
    }


def test_what_is_about_another_archive_counts_as_not_observed(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    world.model(fixture, key="0" * 20 + "-000000")
    assert world.counted(NAME) == {"not-checked: not observed": 1}


def test_what_the_reference_reader_lacks_is_named_and_not_checked(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    world.model(fixture, "unsupported", errors=LACKING)
    (outcome,) = world.judgements(NAME)
    assert outcome.cause is not None
    assert (outcome.verdict, outcome.cause.text) == ("not-checked", LACKING[0]["message"])
    world.ask(NAME)
    report = world.judge()
    assert report.exit_status == 4
    assert (NAME, LACKING[0]["message"], 1) in report.not_checked


@pytest.mark.parametrize("outcome", ["crashed", "timed-out", "unstable"])
def test_where_the_writer_comes_to_no_end_there_is_nothing_to_agree_with(world: World, outcome: str) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0", outcome)
    world.model(fixture)
    assert world.counted(NAME) == {"no-promise": 1}


def test_a_writer_that_dies_as_its_golden_did_comes_to_no_end_either(world: World) -> None:
    fixture = world.fixture(golden={"crashed": {"stage": "call", "signal": "SIGFPE"}})
    world.observe(fixture, "1.0.0", signal="SIGFPE", stage="call")
    world.model(fixture, "relaxed")
    assert world.counted(NAME) == {"no-promise": 1}


TOLD = ({"type": PREDICTED, "message": "the release crashes here (SIGSEGV): because"},)
DIES = {"outcome": "crashed", "stage": "load", "signal": "SIGSEGV"}


@pytest.mark.parametrize(
    ("own", "now", "verdict"),
    [
        (DIES, {**DIES, "errors": TOLD}, "pass"),
        (DIES, {**DIES, "signal": "SIGABRT", "errors": TOLD}, "no-promise"),
        (DIES, {**DIES, "stage": "call", "errors": TOLD}, "no-promise"),
        (DIES, {**DIES, "errors": ()}, "no-promise"),  # it died itself, of whatever
        (DIES, {**DIES, "errors": ({"type": "crash", "message": "x"},)}, "no-promise"),
        ({"outcome": "same"}, {**DIES, "errors": TOLD}, "fail: crashed"),
    ],
)
def test_a_death_that_it_tells_of_agrees_with_a_writer_that_died_so(
    world: World, own: dict[str, Any], now: dict[str, Any], verdict: str
) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0", **own)
    world.model(fixture, **now)
    assert world.counted(NAME) == {verdict: 1}


def test_an_end_that_varies_agrees_with_one_that_it_says_varies(world: World) -> None:
    fixture = world.fixture()
    seen = world.observe(fixture, "1.0.0", "unstable")
    dies = replace(seen, result="crashed", stage="call", signal="SIGSEGV", errors=TOLD, both=())
    value = replace(seen, result="same", both=())
    world.model(fixture, "unstable", both=(dies, value))
    assert world.counted(NAME) == {"pass": 1}
    world.model(fixture, "unstable", both=(replace(dies, errors=()), value))
    assert world.counted(NAME) == {"no-promise": 1}


@pytest.mark.parametrize(("signal", "verdict"), [("SIGSEGV", "pass"), ("SIGABRT", "no-promise")])
def test_an_end_that_varies_may_be_the_same_both_times(signal: str, verdict: str, world: World) -> None:
    fixture = world.fixture()
    seen = world.observe(fixture, "1.0.0", "crashed", stage="call", signal=signal)
    dies = replace(seen, signal="SIGSEGV", errors=TOLD, both=())
    world.model(fixture, "unstable", both=(dies, replace(seen, result="same", both=())))
    assert world.counted(NAME) == {verdict: 1}


def test_a_writer_that_died_as_its_golden_did_agrees_with_a_reference_that_says_so(world: World) -> None:
    fixture = world.fixture(golden={"crashed": {"stage": "call", "signal": "SIGFPE"}})
    world.observe(fixture, "1.0.0", signal="SIGFPE", stage="call")
    world.model(fixture, signal="SIGFPE", stage="call")
    assert world.counted(NAME) == {"pass": 1}


@pytest.mark.parametrize("outcome", ["crashed", "timed-out"])
def test_a_reference_reader_that_comes_to_no_end_fails(world: World, outcome: str) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    world.model(fixture, outcome)
    assert world.counted(NAME) == {f"fail: {outcome}": 1}


def test_where_it_was_not_let_read_the_rule_says_so(world: World) -> None:
    world.observe(world.fixture(), "1.0.0")
    world.ask(NAME, "reads-back")
    report = world.judge()
    assert report.exit_status == 0
    assert set(report.modelled.values()) == {0}
    assert report.notes == (
        "reference-agrees was not checked, because the reference reader was not run: `torch-compat replay --reader reference`",
    )


def test_where_it_read_nothing_the_rule_is_not_green(world: World) -> None:
    world.observe(world.fixture(family="torch-save"), "1.0.0")
    world.model(world.fixture(family="torch-save", recipe="sub"))
    world.ask(NAME)
    report = world.judge()
    assert (report.exit_status, report.not_checked) == (4, ((NAME, "the rule selects nothing", 1),))


def test_the_report_marks_what_is_modelled_and_shows_the_reader(world: World) -> None:
    fixture = put(world, GOLDEN, FAR)
    world.ask(NAME, "reads-back")
    report = world.judge()
    assert {str(verdict): count for verdict, count in report.modelled.items() if count} == {"fail": 1}
    (finding,) = report.findings
    assert finding.modelled
    assert finding.cause == "add: value 1.0000118017196655 instead of 1 (float32) in calls[0].first.value"
    assert finding.reproduce == f"torch-compat observe --reader reference --fixture {fixture.id} --show"
    assert report.outcomes["torch-1.1.0", "reference@1.1.0", "torchscript", "default"] == {"different": 1}


def test_what_it_read_is_not_green_where_the_policy_lacks_the_rule(world: World) -> None:
    fixture = put(world, GOLDEN, GOLDEN)
    world.ask("reads-back")
    report = world.judge()
    assert (report.exit_status, report.not_checked[0][:1]) == (4, (NAME,))
    assert report.not_checked[0][1] == "the reference reader was run, but the policy has no rule that judges this"
    assert world.evidence().modelled[0][:2] == (fixture, "default")


def test_the_evidence_is_another_with_it(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    without = world.evidence().digest
    world.model(fixture)
    same = world.evidence().digest
    world.model(fixture, "refused")
    assert len({without, same, world.evidence().digest}) == 3
