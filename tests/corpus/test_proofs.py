"""Recorded proofs: a round trip, and an incomplete proof affects only itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.corpus.json_lines import write_lines
from torch_compat.corpus.proofs import Example, Obligation, ProofCall, RecordedProof, read_proof, read_proofs, write_proof
from torch_compat.errors import CorpusError
from torch_compat.policy import load_policy
from torch_compat.proving.recording import digest_of
from torch_compat.proving.stated import read

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PROOF = RecordedProof(
    upgrader="f_0_3",
    stated="0" * 20,
    seed="0",
    count=10,
    old=("torch-1.0.0",),
    new=("torch-2.0.0",),
    calls={"changed": 1, "same": 9},
    confirmed=10,
    later=("x",),
    tolerances={"float32": [4.0, 1e-6]},
    obligations=(Obligation("compiles", "reference", ""),),
    examples=(Example("dtype", "torch.f(a_self)", [1], "1", "a", "b", "c", 1),),
    kept=(ProofCall("torch.f(a_self)", [1]),),
)


def test_what_is_written_is_read_and_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    path = write_proof(tmp_path, PROOF)
    assert read_proof(path) == PROOF
    first = path.read_bytes()
    assert write_proof(tmp_path, read_proof(path)).read_bytes() == first


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        header, *entries, _ = [json.loads(line) for line in path.read_text().splitlines()]
        change(entries[0])
        write_lines(path, {"kind": header["kind"]}, entries)

    return act


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text(path.read_text().replace('"same":9', '"same":8')), "was changed after it was recorded"),
        (lambda path: path.write_text(path.read_text()[:-20]), "is not JSON"),
        (changed(lambda facts: facts.update(upgrader="g_0_3")), "is for the upgrader 'g_0_3'"),
        (changed(lambda facts: facts.update(confirmed=-1)), "counts of calls must be non-negative integers"),
        (changed(lambda facts: facts.update(old=[1])), "readers must be strings"),
        (changed(lambda facts: facts.update(seed=0)), "expected a line of kind"),
        (changed(lambda facts: facts.update(more=0)), "expected a line of kind"),
        (changed(lambda facts: facts.update(kind="other")), "expected a line of kind"),
        (lambda path: write_lines(path, {"kind": "proof"}, []), "has 0 lines of kind 'facts'"),
    ],
)
def test_what_is_no_proof_is_told_and_costs_itself_alone(spoil: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    path = write_proof(tmp_path, PROOF)
    write_proof(tmp_path, RecordedProof(**{**vars(PROOF), "upgrader": "h_0_3"}))
    spoil(path)
    with pytest.raises(CorpusError, match=said):
        read_proof(path)
    proofs = read_proofs(tmp_path)
    assert set(proofs.found) == {"h_0_3"}
    assert said in proofs.unreadable["f_0_3"]


def test_the_digest_is_of_every_file(tmp_path: Path) -> None:
    empty = read_proofs(tmp_path / "nowhere")
    assert (empty.found, empty.unreadable) == ({}, {})
    write_proof(tmp_path, PROOF)
    item = read_proofs(tmp_path).digest
    write_proof(tmp_path, RecordedProof(**{**vars(PROOF), "confirmed": 9}))
    assert len({empty.digest, item, read_proofs(tmp_path).digest}) == 3


def test_each_recorded_proof_of_the_repository_is_of_todays_table() -> None:
    proofs, known = read_proofs(ROOT / "reports" / "proofs"), read()
    assert proofs.unreadable == {}
    assert proofs.found.keys() == known.keys()
    assert [name for name, item in proofs.found.items() if item.stated != digest_of(known[name])] == []
    assert [upgrader.id for upgrader in load_policy(ROOT / "policies/torch").upgraders] == list(known)
