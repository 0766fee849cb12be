"""The behavior of each release with ``weights_only=True`` for every recorded archive matches the prediction of its rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.recordings import readers_of
from tests.repository.test_pickles import pickles
from torch_compat.loadability.release_facts import packaged_rules
from torch_compat.pickles import Unpickled, unpickle
from torch_compat.pickles.machine import CORE
from torch_compat.pickles.weights_only import refusals

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus
    from torch_compat.pickles.weights_only import Refusal

REPOSITORY = Path(__file__).parents[2]
# what the restricted unpickler says itself; everything else is said by what comes after it
OWN = re.compile(
    r"Unsupported (?:class|global: GLOBAL|operand) \S+|Trying to (?:instantiate|call|load) .*|Can only .*|Only persistent_load .*"
    r"|persistent_load id must .*|legacy \.tar format"
)
EXPECTED = {"global": "Unsupported ", "opcode": "Unsupported operand", "persistent-id": "persistent_load", "tar": "legacy .tar"}


def test_the_verdicts_are_what_the_releases_did(corpus: Corpus) -> None:
    rules = packaged_rules().weights_only
    restricted = tuple(rules.values())
    verdicts: dict[str, dict[str, Refusal | None]] = {}
    for fixture in corpus.fixtures.values():
        if fixture.family == "torch-save":
            read: list[Unpickled] = [result for _, result in pickles(corpus.path(fixture), fixture.container)]
            text = refusals(read, restricted, container=fixture.container)
            verdicts[fixture.id] = dict(zip(rules, text, strict=True))
    compared = refused = 0
    first: set[str] = set()
    for observed in readers_of(REPOSITORY).values():
        for (name, options), cell in observed.cells.items():
            if options != "weights-only":
                continue
            where = (observed.name, name)
            verdict = verdicts[name][observed.release]
            message = " ".join(error["message"] for error in cell.errors)
            own = OWN.search(message) if cell.result == "refused" else None
            assert own is None or verdict is not None, where
            if verdict is not None and own is None:  # something else comes first, which refuses it without weights_only, too
                assert cell.result == observed.cells[name, "default"].result == "refused", where
                first.add(message)
            elif verdict is not None and own is not None:
                refused += 1
                assert EXPECTED.get(verdict.code, "") in own[0], where
                if verdict.code == "global":
                    assert verdict.subject.removeprefix("builtins.") in message, where
            elif cell.result == "refused":  # not by its unpickler: then it refuses without weights_only, too
                assert observed.cells[name, "default"].result == "refused", where
            compared += 1
    assert first <= {"type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"}
    assert compared > 19_000
    assert refused > 6_000


def test_no_release_refuses_what_the_machine_does_not_note() -> None:
    assert all(item.opcodes >= CORE for item in packaged_rules().weights_only.values())


def test_a_pickle_of_plain_values_is_taken_by_every_release() -> None:
    plain = unpickle(b"\x80\x02}q\0X\1\0\0\0aq\1]q\2(K\1K\2es.", where="file")
    assert set(refusals(plain, tuple(packaged_rules().weights_only.values()))) == {None}
