"""A slice of the faults that `nox -s faults` does, and the parts that decide what became of them."""

from __future__ import annotations

import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults import __main__ as command
from tests.faults.faults import KINDS, Fault, make, packed, sample_of, samples
from tests.faults.judge import BAD, ELSEWHERE, HARMLESS, MEMORY, OUTCOMES, RIGHT, STRUCTURE, UNNOTICED, UNPROTECTED, judge

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "fixtures" / "torch-2.13.0" / "save_bool.pt"
STREAM = ROOT / "fixtures" / "torch-1.0.0" / "state_dict.pt"
SEED, COUNT = 20_261_121, 600


def test_a_slice_of_faults_breaks_nothing() -> None:
    summary = command.run(SEED, range(COUNT))
    assert summary.good, f"{summary}\n{summary.told}"
    assert sum(summary.counts.values()) == COUNT
    assert {kind for kind, _ in summary.counts} == set(KINDS)
    assert summary.named[1] > COUNT / 3  # records are hit, and it is not the exceptions that make it pass


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
        assert all(one.end == two.start for one, two in pairwise(spans))
        for member in sample.layout.members:
            assert member.crc in {0, zlib.crc32(member.content(sample.raw))}


def fault(path: Path, data: bytes, hit: frozenset[str] = frozenset()) -> Fault:
    return Fault(0, "bit flipped", "planted", sample_of(path), data, hit, every=True)


def changed(path: Path, at: int) -> bytes:
    raw = path.read_bytes()
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_outcomes_are_told_apart(tmp_path: Path) -> None:
    member = {one.record: one for one in sample_of(SAVED).layout.members}
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


def test_memory_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.judge.MOST_MEMORY", -1)
    assert judge(fault(SAVED, SAVED.read_bytes()), tmp_path).outcome == MEMORY


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
