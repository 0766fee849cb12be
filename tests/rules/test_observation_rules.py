"""The rules about observing: pairs-observed, observations-reproduce, probes-hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.conftest import FAR, STRICT, covers, extent, rule, waiver
from torch_compat.corpus.observations import Observation
from torch_compat.judging.judgement import Verdict
from torch_compat.policy.model import CorpusScope
from torch_compat.rules import pairs_observed
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World

ADD = "torch-1.0.0/add"
NEW = f"{ADD} read by torch-2.0.0"


# ------------------------------------------------------------------------------------------------------- pairs-observed


def test_every_pair_under_every_set_of_options_is_asked_for(world: World) -> None:
    fixture = world.fixture(family="torch-save")
    world.observe(fixture, "1.0.0")
    world.observe(fixture, "2.0.0")
    assert world.pairs() == {(ADD, "pass"): 2, ("torch-2.0.0", "not-checked: not observed"): 1}
    world.observe(fixture, "2.0.0", options=STRICT)
    assert world.pairs() == {(ADD, "pass"): 2, (f"{ADD} (strict)", "pass"): 1}


def test_a_reader_without_observations(world: World) -> None:
    world.observe(world.fixture(), "1.0.0")
    unmet = ("torch-2.0.0", "not-checked: no observations by this reader")
    assert world.pairs() == {(ADD, "pass"): 1, unmet: 1}
    world.fixture(recipe="div")
    assert world.pairs() == {(ADD, "pass"): 1, unmet: 2, ("torch-1.0.0", "not-checked: not observed"): 1}


def test_a_fresh_observation_is_one(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    world.observe(fixture, "2.0.0+cpu", fresh=True)
    world.observe(fixture, "2.0.0+cu118", fresh=True)
    assert world.pairs() == {(ADD, "pass"): 2}  # of two builds of a release one will do


def test_an_observation_of_what_has_changed_since(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    world.observe(fixture, "2.0.0", key="0" * 20)
    stale = ("torch-2.0.0", "not-checked: observed before the fixture, its golden or the options changed")
    assert world.pairs() == {(ADD, "pass"): 1, stale: 1}
    world.observe(fixture, "2.0.0", fresh=True)
    assert world.pairs() == {(ADD, "pass"): 2}


def test_observations_of_what_is_no_longer_there_fail(world: World) -> None:
    fixture, gone, probe = world.fixture(), world.fixture(recipe="gone"), world.probe()
    for version in ("1.0.0", "2.0.0"):
        world.observe(fixture, version)
    world.observe(gone, "2.0.0")
    world.answer(probe, "2.0.0", ("check", True, ""))
    world.fixtures.remove(gone)
    world.probes.remove(probe)
    assert world.pairs() == {
        (ADD, "pass"): 2,
        ("torch-1.0.0/gone read by torch-2.0.0", "fail: stray"): 1,
        ("options in torch-2.0.0", "fail: stray"): 1,
    }


def test_files_that_cannot_be_read_fail_and_readers_that_cannot_be_had_are_not_checked(world: World) -> None:
    fixture = world.fixture()
    for version in ("1.0.0", "2.0.0"):
        world.observe(fixture, version)
    world.unreadable["reports/observations/torch-1.1.0.jsonl"] = "is not JSON"
    world.unavailable["torch-1.1.0"] = "is not built here"
    assert world.pairs() == {
        (ADD, "pass"): 2,
        ("reports/observations/torch-1.1.0.jsonl", "fail: unreadable"): 1,
        ("torch-1.1.0", "not-checked: unavailable"): 1,
    }


@pytest.mark.parametrize(("window", "asked"), [(204, {"2.0.0"}), (205, {"1.1.1", "2.0.0"}), (213, {"1.1.1", "2.0.0"})])
def test_only_readers_inside_the_window_must_read_what_a_build_wrote(window: int, asked: set[str], world: World) -> None:
    world.promise(forward_window_days=window, corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "1.1.1", "2.0.0")))
    world.fixture("2.0.0")
    evidence = replace(world.evidence(), builds=frozenset({"2.0.0"}))
    missing = [item.reader for item in pairs_observed.judge(evidence, rule("pairs-observed"))]
    assert set(missing) == asked


def test_an_empty_corpus_is_not_checked(world: World) -> None:
    assert world.verdicts("pairs-observed") == {"corpus": "not-checked: empty corpus"}


# ----------------------------------------------------------------------------------------------- observations-reproduce


def again(world: World) -> str:
    """What is said of the fresh observation."""
    (result,) = [verdict for subject, verdict in world.verdicts("observations-reproduce").items() if "again" in subject]
    return result


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("same", "same", "pass"),
        ("refused", "refused", "pass"),
        ("crashed", "crashed", "pass"),
        ("same", "close", "expected: bits"),
        ("close", "same", "expected: bits"),
        ("same", "different", "fail: contradiction"),
        ("different", "same", "fail: contradiction"),
        ("same", "refused", "fail: contradiction"),
        ("refused", "same", "fail: contradiction"),
        ("refused", "raised", "fail: contradiction"),
        ("same", "crashed", "fail: contradiction"),
        ("same", "timed-out", "fail: contradiction"),
        ("same", "unstable", "fail: contradiction"),
        ("crashed", "refused", "expected: bits"),
        ("crashed", "raised", "expected: bits"),
        ("crashed", "same", "fail: contradiction"),
        ("crashed", "different", "fail: contradiction"),
        ("refused", "crashed", "fail: contradiction"),
    ],
)
def test_a_fresh_observation_against_the_recorded_one(before: str, now: str, verdict: str, world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", before)
    world.observe(fixture, "2.0.0", now, fresh=True)
    assert again(world) == verdict


@pytest.mark.parametrize(
    ("outcome", "change", "verdict"),
    [
        ("close", {"digest": "f" * 16}, "expected: bits"),
        ("different", {"digest": "f" * 16}, "expected: bits"),
        ("crashed", {"signal": "SIGABRT"}, "expected: bits"),
        ("refused", {"errors": ({"type": "builtins.OSError", "message": "other"},)}, "fail: contradiction"),
        ("refused", {"errors": ({"type": "builtins.RuntimeError", "message": "other words"},)}, "fail: contradiction"),
        ("different", {"count": 2, "extent": (FAR, extent(kind="shape"))}, "fail: contradiction"),
    ],
)
def test_the_same_result_in_another_way(outcome: str, change: dict[str, Any], verdict: str, world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", outcome)
    world.observe(fixture, "2.0.0", outcome, fresh=True, **change)
    assert again(world) == verdict


def value(number: float) -> dict[str, Any]:
    """A result whose one value is this number."""
    return {"value": {"float": number}}


@pytest.mark.parametrize(("now", "verdict"), [(1.0 + 1e-17, "expected: bits"), (1.5, "fail: contradiction")])
def test_values_that_were_not_the_golden_have_to_be_the_same_again(now: float, verdict: str, world: World) -> None:
    fixture = world.fixture(golden=value(2.0), family="torch-save")
    world.observe(fixture, "2.0.0", "different", departures=departures(fixture.golden, value(1.0)))
    world.observe(fixture, "2.0.0", "different", fresh=True, digest="f" * 16, departures=departures(fixture.golden, value(now)))
    assert again(world) == verdict


def test_waivers_lock_what_is_recorded_and_cover_what_another_build_shows(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", "refused")
    world.observe(fixture, "2.0.0+cpu", "refused", fresh=True)
    world.ask("newer-loads", "waivers-exact")
    world.promise(waivers=(waiver(covers("refused")),))
    accepted = world.accept()
    report = world.judge()
    assert report.exit_status == 0
    assert report.counts[Verdict.WAIVED] == 2
    world.observe(fixture, "2.0.0+cpu", "refused", fresh=True, errors=({"type": "x", "message": "another"},))
    assert world.judge().exit_status == 1
    assert world.accept().text == accepted.text


def test_a_reader_that_is_no_release_is_stray(world: World) -> None:
    fixture = world.fixture()
    for version in ("1.0.0", "2.0.0", "9.9.9"):
        world.observe(fixture, version)
    assert world.pairs() == {(ADD, "pass"): 2, ("torch-9.9.9", "fail: stray"): 1}
    assert [reader.release for reader in world.evidence().readers] == ["1.0.0", "2.0.0"]


def test_a_reader_that_once_crashed_and_once_did_not_may_crash_now(world: World) -> None:
    fixture = world.fixture()
    crash = Observation("", "", "", "crashed", stage="load", signal="SIGSEGV")
    refusal = Observation("", "", "", "refused", errors=({"type": "x", "message": "y"},))
    world.observe(fixture, "2.0.0", "unstable", both=(crash, refusal))
    world.observe(fixture, "2.0.0", "crashed", fresh=True)
    assert again(world) == "expected: bits"


def test_what_is_fresh_and_not_recorded_is_not_compared(world: World) -> None:
    fixture = world.fixture()
    world.observe(fixture, "2.0.0", fresh=True)
    assert world.verdicts("observations-reproduce") == {NEW: "pass"}
    world.reader("2.0.0")
    assert world.verdicts("observations-reproduce") == {NEW: "pass"}


def test_two_observations_that_disagree(world: World) -> None:
    world.observe(world.fixture(), "2.0.0", "unstable")
    assert world.verdicts("observations-reproduce") == {NEW: "fail: unstable"}


@pytest.mark.parametrize(
    ("golden", "facts", "verdict"),
    [
        ({"calls": []}, {}, "pass"),
        ({"calls": []}, {"signal": "SIGSEGV", "stage": "load"}, "fail: contradicts itself"),
        ({"calls": []}, {"stage": "call"}, "fail: contradicts itself"),
        ({"error": {}}, {}, "pass"),
        ({"error": {}}, {"signal": "SIGSEGV", "stage": "load"}, "fail: contradicts itself"),
        ({"crashed": {}}, {"signal": "SIGFPE", "stage": "call"}, "pass"),
        ({"crashed": {}}, {}, "fail: contradicts itself"),
        ({"timed-out": {}}, {"stage": "call"}, "pass"),
        ({"timed-out": {}}, {"signal": "SIGSEGV", "stage": "call"}, "fail: contradicts itself"),
        ({"crashed": {}}, {"signal": "SIGFPE"}, "fail: contradicts itself"),
        ({"crashed": {}}, {"stage": "call"}, "fail: contradicts itself"),
        ({"timed-out": {}}, {}, "fail: contradicts itself"),
    ],
)
def test_what_is_said_to_be_the_same_ended_as_the_golden_did(
    golden: dict[str, Any], facts: dict[str, Any], verdict: str, world: World
) -> None:
    world.observe(world.fixture(golden=golden), "2.0.0", "same", **facts)
    assert world.verdicts("observations-reproduce") == {NEW: verdict}


@pytest.mark.parametrize(
    ("now", "error", "verdict"), [(True, "", "pass"), (False, "", "fail: contradiction"), (True, "broken", "fail: contradiction")]
)
def test_a_fresh_answer_to_a_probe_against_the_recorded_one(now: bool, error: str, verdict: str, world: World) -> None:
    probe = world.probe()
    world.answer(probe, "2.0.0", ("holds", True, ""))
    world.answer(probe, "2.0.0", ("holds", now, ""), error=error, fresh=True)
    assert world.verdicts("observations-reproduce") == {"options, run again in torch-2.0.0": verdict}


# ---------------------------------------------------------------------------------------------------------- probes-hold


def test_each_check_of_each_reader_is_judged(world: World) -> None:
    probe = world.probe()
    world.answer(probe, "1.0.0", ("a", None, "this release lacks it"), ("b", True, ""))
    world.answer(probe, "2.0.0+cpu", ("a", True, ""), ("b", False, "is 3"))
    assert world.verdicts("probes-hold") == {
        "options in torch-1.0.0: a": "no-promise: lacks",
        "options in torch-1.0.0: b": "pass",
        "options in torch-2.0.0: a": "pass",
        "options in torch-2.0.0: b": "fail: does not hold",
    }


def test_a_probe_that_nobody_asked_or_that_changed(world: World) -> None:
    probe = world.probe()
    world.answer(replace(probe, sha256="0" * 64), "2.0.0", ("a", True, ""))
    assert world.verdicts("probes-hold") == {
        "options in torch-1.0.0": "not-checked: not observed",
        "options in torch-2.0.0": "not-checked: the probe changed since it was observed",
    }


def test_a_probe_that_failed(world: World) -> None:
    probe = world.probe()
    for version in ("1.0.0", "2.0.0"):
        world.answer(probe, version, error="no such module")
    assert world.counted("probes-hold") == {"fail: error": 2}
    assert (
        next(judgement.cause.text for judgement in world.judgements("probes-hold") if judgement.cause)
        == "options in torch-1.0.0: ImportError: no such module"
    )


def test_a_probe_that_answered_nothing_is_not_a_pass(world: World) -> None:
    probe = world.probe()
    for version in ("1.0.0", "2.0.0"):
        world.answer(probe, version)
    assert set(world.verdicts("probes-hold").values()) == {"not-checked: nothing checked"}


LACK = "this release lacks the thing"


def probed(world: World, **answers: str) -> tuple[dict[str, str], list[str]]:
    """What is said of a probe whose answers are given by release (``v1_0_0="a+ b?"``: a holds, b lacks the thing), and the texts."""
    world.promise(corpus=CorpusScope(writers=("1.0.0",), readers=("1.0.0", "1.1.0", "2.0.0")))
    probe = world.probe()
    marks = {"+": (True, ""), "-": (False, "no"), "?": (None, LACK), "!": (None, "")}
    for version, checks in answers.items():
        message = tuple((check[:-1], *marks[check[-1]]) for check in checks.split())
        world.answer(probe, version.removeprefix("v").replace("_", "."), *message)
    texts = [judgement.cause.text for judgement in world.judgements("probes-hold") if judgement.cause]
    return {key.removeprefix("options in torch-"): verdict for key, verdict in world.verdicts("probes-hold").items()}, texts


def test_what_a_release_had_a_newer_one_has(world: World) -> None:
    verdicts, texts = probed(world, v1_0_0="a+", v1_1_0="a?", v2_0_0="a?")
    assert verdicts == {"1.0.0: a": "pass", "1.1.0: a": "fail: lost", "2.0.0: a": "fail: lost"}
    assert texts == [f"options: a cannot be run in 1.1.0 ({LACK}), but 1.0.0 ran it"] * 2


def test_what_was_lost_and_came_back_was_lost_once(world: World) -> None:
    verdicts, _ = probed(world, v1_0_0="a+", v1_1_0="a?", v2_0_0="a+")
    assert verdicts == {"1.0.0: a": "pass", "1.1.0: a": "fail: lost", "2.0.0: a": "pass"}


def test_a_loss_begins_with_one_release(world: World) -> None:
    probed(world, v1_0_0="a+", v1_1_0="a?", v2_0_0="a!")
    assert {judgement.at for judgement in world.judgements("probes-hold") if judgement.cause} == {"1.1.0"}


def test_a_release_that_lacks_a_thing_says_so_and_who_has_it(world: World) -> None:
    verdicts, texts = probed(world, v1_0_0="a?", v1_1_0="a+", v2_0_0="a+")
    assert verdicts == {"1.0.0: a": "no-promise: lacks", "1.1.0: a": "pass", "2.0.0: a": "pass"}
    assert texts == ["options: the thing is not available yet; 1.1.0 to 2.0.0 can be run"]
    world.ask("probes-hold")
    assert world.judge().no_promise == (("probes-hold", texts[0], 1),)


def test_a_check_that_was_not_asked_for_no_reason_was_not_checked(world: World) -> None:
    verdicts, texts = probed(world, v1_0_0="a!", v1_1_0="a?", v2_0_0="a+")
    assert verdicts == {"1.0.0: a": "not-checked: no reason", "1.1.0: a": "no-promise: lacks", "2.0.0: a": "pass"}
    assert texts[0] == "options in torch-1.0.0: a was not run, and does not say what the release lacks: no reason"


def test_a_check_that_no_release_answers_was_not_checked(world: World) -> None:
    verdicts, texts = probed(world, v1_0_0="a? b+", v1_1_0="a? b+", v2_0_0="a? b+")
    assert {key: verdict for key, verdict in verdicts.items() if key.endswith("a")} == {
        f"{version}: a": "not-checked: asked nowhere" for version in ("1.0.0", "1.1.0", "2.0.0")
    }
    assert texts[0] == "options: no release runs a: each lacks something, such as the thing"


def test_a_release_does_not_lack_what_it_was_asked_about(world: World) -> None:
    verdicts, texts = probed(world, v1_0_0="a? b?", v1_1_0="a? b+", v2_0_0="a+ b+")
    assert verdicts["1.1.0: a"] == "fail: contradiction"
    assert f"options in torch-1.1.0: a: {LACK}, but b, which needs it, was run" in texts


def test_every_release_is_asked_all_checks(world: World) -> None:
    verdicts, _ = probed(world, v1_0_0="a+ b?", v1_1_0="a+", v2_0_0="a+ b+")
    assert verdicts == {
        "1.0.0: a": "pass",
        "1.0.0: b": "no-promise: lacks",
        "1.1.0: a": "pass",
        "1.1.0: b": "fail: check missing",
        "2.0.0: a": "pass",
        "2.0.0: b": "pass",
    }


def test_a_release_that_made_no_check_misses_all(world: World) -> None:
    verdicts, _ = probed(world, v1_0_0="a+", v1_1_0="", v2_0_0="a+")
    assert verdicts["1.1.0: a"] == "fail: check missing"
