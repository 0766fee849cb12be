"""A subset of `nox -s fuzz`, and the parts that judge a case."""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import torch_compat
from tools.faults.faults import Fault, sample_of
from tools.faults.judge import BAD, CRASHED, OUTSIDE, RAISED, TIMED_OUT
from tools.fuzz import __main__ as command
from tools.fuzz import campaign, planted
from tools.fuzz.campaign import NOISE, Find, Tally, survive
from tools.fuzz.cases import TARGETS, case, seeds
from tools.fuzz.guard import guarded, lacking
from torch_compat import arrays

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "fixtures" / "torch-2.13.0" / "save_bool.pt"
SEED = 20_261_124
TIMES = 16  # which side of an array is exact is drawn
COUNTS = {"inspect": 1000, "state": 500, "call": 500, "exported": 400}

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking")


@pytest.mark.parametrize("target", TARGETS)
def test_a_slice_of_cases_breaks_nothing(target: str) -> None:
    tally = survive(partial(case, SEED, target), target, list(range(COUNTS[target])))
    assert tally.finds == []
    assert tally.count == COUNTS[target]
    assert (tally.guarded > COUNTS[target]) == (target != "inspect")


def test_the_same_number_makes_the_same_case() -> None:
    assert [case(1, "call", number) for number in range(20)] == [case(1, "call", number) for number in range(20)]
    assert case(1, "state", 0).data != case(2, "state", 0).data
    assert case(1, "state", 0).data != case(1, "call", 0).data


def test_every_release_and_container_is_among_the_seeds() -> None:
    writers = {path.parent.name for group in seeds("inspect") for path in group}
    assert writers >= {path.parent.name for path in ROOT.glob("fixtures/torch-*/manifest.jsonl")}
    containers = {sample_of(path).container for group in seeds("inspect") for path in group}
    assert containers == {"zip", "stream", "tar", "flatbuffer"}


# ------------------------------------------------------------------------------------------------------------- guard


def beyond(array: np.ndarray[Any, Any], elements: int) -> np.ndarray[Any, Any]:
    """The element so many behind the start of an array, whatever lies there."""
    return np.lib.stride_tricks.as_strided(array, (2,), (elements * array.itemsize,))[1:]


def ended_by(touch: Callable[[], object]) -> int:
    """The signal that ends a process in which this is done with guard pages; 0 where it ends by itself."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # it would tell what is expected
        with guarded() as guard_:
            guard_.seed(1)
            touch()
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("size", [1, 512, 513, 100_000])
@pytest.mark.parametrize("make", [np.zeros, np.empty])
def test_one_element_out_of_bounds_ends_the_process(size: int, make: Callable[[int], np.ndarray[Any, Any]]) -> None:
    def read(places: list[int]) -> None:
        for _ in range(TIMES):
            array = make(size)
            for place in places:
                beyond(array, place).sum()

    assert ended_by(lambda: read([0, size - 1])) == 0
    assert ended_by(lambda: read([size])) == signal.SIGSEGV
    assert ended_by(lambda: read([-1])) == signal.SIGSEGV


def test_records_of_an_archive_are_guarded() -> None:
    def read(place: int) -> None:
        for _ in range(TIMES):
            first = next(iter(torch_compat.load_state(SAVED).values()))
            beyond(first, place).sum()

    sound = next(iter(torch_compat.load_state(SAVED).values()))
    assert ended_by(lambda: read(0)) == 0
    assert ended_by(lambda: read(sound.size)) == signal.SIGSEGV


def test_bytes_that_are_viewed_are_guarded() -> None:
    def read(place: int) -> None:
        for _ in range(TIMES):
            beyond(arrays.view(bytes(16), np.dtype(np.uint8), (16,)), place).sum()

    assert ended_by(lambda: read(15)) == 0
    assert ended_by(lambda: read(16)) == signal.SIGSEGV


def test_what_is_written_beside_an_array_is_noticed_when_it_is_freed() -> None:
    with guarded() as guard_:
        for _ in range(4):
            array = np.zeros(8)
            side = array.nbytes if array.__array_interface__["data"][0] % 4096 == 0 else -1  # where there is room
            np.lib.stride_tricks.as_strided(array.view(np.uint8), (2,), (side,))[1:] = 7
            del array
        assert guard_.damage() == "4 writes outside an array, the last one next to an array of 64 bytes"
        assert guard_.damage() == ""


def test_the_guard_ends_where_it_ends() -> None:
    elements = arrays.elements
    with guarded() as guard_:
        assert arrays.elements is not elements
        kept = np.arange(1000.0)
        result = guard_.made
        grown = np.resize(kept, 2000)
    assert arrays.elements is elements
    np.zeros(10)
    assert guard_.made > result
    assert guard_.made == guarded_count()
    assert kept.sum() == 499_500
    assert grown.sum() == 999_000


def guarded_count() -> int:
    with guarded() as guard_:
        return guard_.made


def test_many_arrays_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded():
        many = [np.full(3, number) for number in range(6000)]
        assert all(array[0] == number for number, array in enumerate(many))
        del many
        assert np.zeros(1 << 20).sum() == 0


def test_where_guard_pages_cannot_be_nothing_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert command.main(["--count", "1", "--target", "inspect"]) == command.UNAVAILABLE
    assert "nothing was run: guard pages need a C compiler" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------- children


def sound(number: int) -> Fault:
    return Fault(number, "none", "nothing", sample_of(SAVED), SAVED.read_bytes(), resealed=True)


def planted_error(*_: object, **__: object) -> dict[str, Any]:
    raise KeyError("planted")


def spoiled(monkeypatch: pytest.MonkeyPatch, at: int, do: Callable[[], object]) -> Tally:
    """Six cases, in one of which something else is done."""
    now = [-1]
    real = torch_compat.load_state

    def job(number: int) -> Fault:
        now[0] = number
        return sound(number)

    def load(*args: Any, **keywords: Any) -> Any:
        if now[0] == at:
            do()
        return real(*args, **keywords)

    monkeypatch.setattr(torch_compat, "load_state", load)
    return survive(job, "state", list(range(6)))


@pytest.mark.parametrize(
    ("do", "outcome"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), CRASHED),
        (lambda: os._exit(3), CRASHED),
        (lambda: sys.stderr.write("planted") and sys.stderr.flush(), NOISE),
        (planted_error, RAISED),
        (lambda: beyond(np.zeros(512), 512).sum(), CRASHED),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (3,), (1,)).fill(7), OUTSIDE),
    ],
    ids=["signal", "exit", "noise", "exception", "out of bounds", "written beside"],
)
def test_what_becomes_of_a_case_is_noticed_and_the_others_go_on(
    do: Callable[[], object], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = spoiled(monkeypatch, 2, do)
    if outcome == OUTSIDE and tally.finds and tally.finds[0].outcome == CRASHED:
        outcome = CRASHED  # the array lay at the end of its page
    assert [(find.number, find.outcome) for find in tally.finds] == [(2, outcome)]
    assert tally.count == 6


@pytest.mark.parametrize(("limit", "do"), [("STANDSTILL", lambda: time.sleep(60)), ("BUSY", lambda: sum(range(10**10)))])
def test_a_case_that_does_not_end_is_ended(limit: str, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, limit, 12 if limit == "STANDSTILL" else 2)
    tally = spoiled(monkeypatch, 4, do)
    assert [(find.number, find.outcome) for find in tally.finds] == [(4, TIMED_OUT)]
    assert tally.count == 6


def test_a_find_is_kept_and_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "know", lambda *_: None)
    monkeypatch.setattr(campaign, "seeds", lambda _: [])
    monkeypatch.setattr(campaign, "case", lambda seed, target, number: sound(number))
    monkeypatch.setattr(torch_compat, "load_state", planted_error)
    told: list[Find] = []
    tally = Tally()
    campaign.run(5, "state", tally, count=2, until=time.monotonic() + 60, keep=tmp_path, tell=told.append)
    assert [find.outcome for find in told] == [RAISED, RAISED]
    assert "not reproduced" not in told[0].said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["5_state_0_save_bool.pt", "5_state_1_save_bool.pt"]


# ----------------------------------------------------------------------------------------------------------- command


@pytest.fixture
def own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "record.jsonl"
    monkeypatch.setattr(command, "RECORD", path)
    monkeypatch.setattr(command, "commit", lambda: "0123456789ab")
    return path


def test_a_run_is_recorded(
    own_record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finds = [Find(1, RAISED, "planted")]

    def run(seed: int, target: str, tally: Tally, *, count: int, **_: Any) -> None:
        tally.outcomes["held"] += count - 1
        tally.outcomes[RAISED] += 1
        tally.finds += finds

    monkeypatch.setattr(command, "run", run)
    assert command.main(["--seed", "7", "--count", "5"]) == 1
    assert command.main(["--target", "call", "--count", "5"]) == 1
    rows = [json.loads(line) for line in own_record.read_text(encoding="utf-8").splitlines()]
    assert [(row["seed"], row["target"], row["count"], row["finds"]) for row in rows] == [
        (7, "inspect", 5, [[1, RAISED]]), (7, "state", 5, [[1, RAISED]]), (7, "call", 5, [[1, RAISED]]), (7, "exported", 5, [[1, RAISED]]),
        (8, "call", 5, [[1, RAISED]]),
    ]  # fmt: skip
    assert (
        "in all: 25 cases through inspect, 5 of them through load_state and 15 through load and calls" in capsys.readouterr().out
    )
    finds.clear()
    assert command.main(["--target", "call", "--count", "5"]) == 0


def test_a_run_that_is_interrupted_is_recorded(own_record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(seed: int, target: str, tally: Tally, **_: Any) -> None:
        tally.outcomes["held"] += 4
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(KeyboardInterrupt):
        command.main(["--seed", "7", "--target", "state"])
    assert json.loads(own_record.read_text(encoding="utf-8"))["count"] == 4


def test_without_atheris_it_says_so_and_is_no_pass(
    own_record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "available", lambda: False)
    monkeypatch.setattr(command, "run", lambda *_, **__: None)
    assert command.main(["--seed", "7", "--minutes", "1"]) == command.UNAVAILABLE
    assert "guided fuzzing was not run: atheris is not installed" in capsys.readouterr().out


def test_what_is_recorded_is_no_more_than_what_ran() -> None:
    for row in command.recorded():
        assert row["count"] >= len(row["finds"])
        assert row["target"] in TARGETS
        assert row["way"] in command.WAYS
        assert {outcome for _, outcome in row["finds"]} <= {*BAD, NOISE}


# ----------------------------------------------------------------------------------------------------------- planted


@pytest.mark.parametrize(
    "name", ["a checksum that is not compared", "memo", "recursion without a budget", "an error that is not taken for damage"]
)
@pytest.mark.sampled(2)
def test_planted_defects_are_found(name: str) -> None:
    result = planted.look_for(*planted.PLANTS[name])
    assert result.number is not None


def test_one_element_too_many_in_the_gate_for_views_ends_the_process_of_a_case() -> None:
    plant = planted.PLANTS["off by one in the gate for views"]
    assert planted.look_for(*plant).said == "CRASHED: SIGSEGV"
    assert planted.look_for("call", 200, plant.changes[1:]).number is None, "what the plant needs besides is no defect itself"


def test_planted_defects_are_what_is_found() -> None:
    plant = planted.PLANTS["memo"]
    assert planted.look_for(plant.target, 250, ()).number is None
