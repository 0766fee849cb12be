"""A subset of the faults of `nox -s faults`, and the parts that judge them."""

from __future__ import annotations

import io
import pickle
import zipfile
import zlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import torch_compat
from tools.faults import __main__ as command
from tools.faults import judge as judging
from tools.faults.faults import Fault, packed, sample_of, samples
from tools.faults.judge import (
    BAD,
    ELSEWHERE,
    HARMLESS,
    HELD,
    MEGABYTES,
    MEMORY,
    OUTCOMES,
    OUTSIDE,
    RAISED,
    RIGHT,
    SECONDS,
    STRUCTURE,
    TIMED_OUT,
    UNNOTICED,
    UNPROTECTED,
    judge,
)  # fmt: skip
from tools.faults.kinds import KINDS, make
from tools.faults.resealed import pushed
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "fixtures" / "torch-2.13.0" / "save_bool.pt"
SCRIPT = ROOT / "fixtures" / "torch-2.13.0" / "enums.pt"
STREAM = ROOT / "fixtures" / "torch-1.0.0" / "state_dict.pt"
SEED, COUNT = 20_261_121, 1500  # with fewer, two records that are not named are more than one percent


def test_a_slice_of_faults_breaks_nothing() -> None:
    summary = command.run(SEED, range(COUNT))
    assert summary.good, f"{summary}\n{summary.told}"
    assert sum(summary.counts.values()) == COUNT
    assert {kind for kind, _ in summary.counts} == set(KINDS)
    assert summary.named[1] > COUNT / 6  # records are hit, and it is not the exceptions that make it pass


def test_the_same_number_makes_the_same_fault() -> None:
    groups = samples()
    assert [make(groups, 1, number) for number in range(20)] == [make(groups, 1, number) for number in range(20)]
    assert make(groups, 1, 0).data != make(groups, 2, 0).data


def test_every_family_of_the_corpus_is_damaged() -> None:
    groups = samples()
    assert len(groups) >= 8
    assert sum(map(len, groups)) > 3000


def test_layouts_account_for_every_byte() -> None:
    for path in (paths[0] for paths in samples()):
        sample = sample_of(path)
        spans = sample.layout.spans
        assert (spans[0].start, spans[-1].end) == (0, len(sample.raw))
        assert all(item.end == two.start for item, two in pairwise(spans))
        for member in sample.layout.members:
            assert member.crc in {0, zlib.crc32(member.content(sample.raw))}


def fault(path: Path, data: bytes, hit: frozenset[str] = frozenset()) -> Fault:
    return Fault(0, "bit flipped", "planted", sample_of(path), data, hit, every=True)


def changed(path: Path, at: int) -> bytes:
    raw = path.read_bytes()
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_outcomes_are_told_apart(tmp_path: Path) -> None:
    member = {item.record: item for item in sample_of(SAVED).layout.members}
    data = changed(SAVED, member["data/0"].data)
    assert judge(fault(SAVED, data, frozenset({"data/0"})), tmp_path).outcome == RIGHT
    assert judge(fault(SAVED, data, frozenset({"data/1"})), tmp_path).outcome == ELSEWHERE
    assert judge(fault(SAVED, data[:-5]), tmp_path).outcome == STRUCTURE
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == HARMLESS
    assert judge(fault(STREAM, changed(STREAM, STREAM.stat().st_size - 1)), tmp_path).outcome == UNPROTECTED


def test_what_nobody_notices_is_told(tmp_path: Path) -> None:
    # another archive, sound in itself, stands for a reader that notices nothing
    other = (SAVED.parent / "save_bfloat16.pt").read_bytes()
    assert judge(fault(SAVED, other, frozenset({"data/0"})), tmp_path).outcome == UNNOTICED


def beyond() -> np.ndarray[Any, Any]:
    """Eight numbers of no memory: numpy does not look at a buffer of 0 bytes."""
    return np.ndarray((8,), np.float64, b"", 0, (8,))


class Planted:
    """Stands for a program that has one method."""

    def __init__(self, value: Callable[[], Any]) -> None:
        self.methods = {"forward": None}
        self.value = value

    def run(self, method: str, args: tuple[Any, ...]) -> Any:
        return self.value()

    def named_tensors(self) -> list[Any]:
        return []


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError("planted")


def endless(*_: Any, **__: Any) -> Any:
    while True:
        pass


def test_memory_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEGABYTES, "state", -1)
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == MEMORY


def test_time_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECONDS, "inspect", -1)
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == TIMED_OUT
    monkeypatch.setitem(SECONDS, "inspect", -1.6)  # its timer ends 0.2 s later
    monkeypatch.setattr(judging, "look_at", endless)
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == TIMED_OUT


@pytest.mark.parametrize(("path", "owner", "name"), [
    (SAVED, judging, "look_at"), (SAVED, judging, "screen"), (SAVED, torch_compat, "load_state"), (SCRIPT, torch_compat, "load"),
])  # fmt: skip
@pytest.mark.parametrize("resealed", [False, True])
def test_exceptions_of_any_step_are_noticed(
    path: Path, owner: Any, name: str, resealed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = replace(fault(path, path.read_bytes()), resealed=resealed)
    assert judge(planted, tmp_path).outcome == (HELD if resealed else HARMLESS)
    monkeypatch.setattr(owner, name, raising)
    assert judge(planted, tmp_path).outcome == RAISED


def test_an_exception_of_a_call_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compat, "load", lambda *_, **__: Planted(raising))
    assert judge(fault(SCRIPT, SCRIPT.read_bytes()), tmp_path).outcome == RAISED


def test_memory_outside_of_arrays_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = judge(fault(SAVED, SAVED.read_bytes()), tmp_path), judge(fault(SCRIPT, SCRIPT.read_bytes()), tmp_path)
    assert {item.outcome for item in sound} == {HARMLESS}
    monkeypatch.setattr(torch_compat, "load_state", lambda _, **__: {"weight": beyond()})
    monkeypatch.setattr(torch_compat, "load", lambda *_, **__: Planted(lambda: Tensor(beyond())))
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == OUTSIDE
    assert judge(fault(SCRIPT, SCRIPT.read_bytes()), tmp_path).outcome == OUTSIDE
    Tensor(beyond())  # only the judge watches tensors


def test_values_of_no_program_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_compat, "load", lambda *_, **__: Planted(lambda: [open]))
    assert judge(fault(SCRIPT, SCRIPT.read_bytes()), tmp_path).outcome == OUTSIDE


def test_other_results_of_a_program_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = changed(SCRIPT, {member.record: member for member in sample_of(SCRIPT).layout.members}["constants.pkl"].data)
    damaged = fault(SCRIPT, data, frozenset({"constants.pkl"}))
    assert (
        judge(fault(SCRIPT, SCRIPT.read_bytes()), tmp_path).outcome == HARMLESS
    )  # the results to compare with are computed once
    assert judge(damaged, tmp_path).outcome == RIGHT
    monkeypatch.setattr(torch_compat, "load", lambda *_, **__: Planted(lambda: 1))
    assert judge(damaged, tmp_path).outcome == UNNOTICED


# ---------------------------------------------------------------------------------------------------------- resealed


def test_about_half_of_all_faults_are_resealed() -> None:
    results = [make(samples(), 3, number) for number in range(200)]
    assert 80 < sum(item.resealed for item in results) < 120


def test_checksums_of_resealed_archives_are_right() -> None:
    seen = set()
    for number in range(300):
        item = make(samples(), 4, number)
        if item.resealed and item.sample.layout.members and item.kind in {"pickle", "JSON", "source", "nested archive"}:
            with zipfile.ZipFile(io.BytesIO(item.data)) as archive:
                if all(info.CRC for info in archive.infolist() if info.file_size):
                    assert archive.testzip() is None
                    seen.add(item.kind)
    assert seen == {"pickle", "JSON", "source", "nested archive"}


@pytest.mark.parametrize("outcome", BAD)
def test_a_run_with_anything_that_must_not_be_is_no_good(outcome: str) -> None:
    assert not command.Summary(Counter({("bit flipped", outcome): 1, ("bit flipped", RIGHT): 1000})).good


def test_records_have_to_be_named() -> None:
    assert command.Summary(Counter({("bit flipped", RIGHT): 99, ("bit flipped", ELSEWHERE): 1})).good
    assert not command.Summary(Counter({("bit flipped", RIGHT): 98, ("bit flipped", ELSEWHERE): 2})).good
    assert "98 of 100" in str(command.Summary(Counter({("bit flipped", RIGHT): 98, ("bit flipped", ELSEWHERE): 2})))


def test_every_outcome_is_explained() -> None:
    assert {*BAD, RIGHT, ELSEWHERE} <= OUTCOMES.keys()


def test_the_bombs_are_what_they_say() -> None:
    body, crc = packed(2, b"a,")
    assert zlib.decompress(body, -15) == b"a," * (1 << 20)
    assert crc == zlib.crc32(b"a," * (1 << 20))


@pytest.mark.parametrize("number", [0, 255, 256, -1, 1 << 40, -(1 << 63), (1 << 2039) - 1, 1 << 2039, -(1 << 5000)])
def test_a_number_of_any_length_is_pushed(number: int) -> None:
    assert pickle.loads(b"\x80\x02" + pushed(number) + b".") == number
