"""Another outcome in a cell covered by a waiver is detected; judging one archive alone gives the same result as judging all evidence.

`nox -s planted` plants 10,000 in the repository's evidence; this test plants a few.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.planted.covered import KINDS, Alone, Planter, Tried
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import judge
from torch_compat.judging.operator_refusals import walks_through_operators
from torch_compat.workspace import Root

REPOSITORY = Path(__file__).resolve().parents[2]
FEW, TRIES = 300, 400


def planter_of(root: Path) -> Planter:
    place = Root(root)
    with uncollected():
        return Planter(gather(place, place.policy(), as_of=None))


@pytest.fixture(scope="module")
def small(small_tree: Path) -> Planter:
    return planter_of(small_tree)


def whole(planter: Planter, tried: Tried) -> int:
    """The exit status of judging all evidence, with one plant in it."""
    held = []
    for fixture, options, line in planter.evidence.lines():
        seen = line
        if (fixture.id, options.id) == tried.planted.cell:
            kept = [(observation, bits & ~tried.cell.reader) for observation, bits in line if bits & ~tried.cell.reader]
            seen = [*kept, (tried.planted, tried.cell.reader)]
        held.append((fixture, options, seen))
    shared = {
        name: getattr(planter.evidence, name)
        for name in ("policy", "corpus", "recorded", "fresh", "as_of", "operators", "proofs")
    }
    return judge(Alone(**shared, held=tuple(held))).exit_status


def test_a_slice_of_the_campaign_is_noticed() -> None:
    planter = planter_of(REPOSITORY)
    tried = list(planter.campaign(Random(3), FEW))
    assert [str(entry) for entry in tried if not entry.noticed] == []
    varying = [block for block in planter.accepted.blocks if block.outcome == "unstable"]  # too few to be drawn for certain
    assert varying
    tried += [
        item for block in varying if (item := planter.planted(Random(3), "settled", planter.cell(Random(3), block))) is not None
    ]
    random = Random(3)
    for kind in KINDS.keys() - {entry.kind for entry in tried}:  # few cells can be changed so, and none of them was drawn
        results = (planter.planted(random, kind, planter.cell(random)) for _ in range(TRIES))
        tried += [entry for entry in results if entry is not None][:1]
    assert [str(entry) for entry in tried if not entry.noticed] == []
    assert {entry.kind for entry in tried} == KINDS.keys()
    assert len({entry.cell.block.waiver for entry in tried}) > 50


def test_programs_that_call_every_operator_are_green_alone() -> None:
    planter = planter_of(REPOSITORY)
    programs = [fixture for fixture in planter.evidence.corpus.fixtures.values() if walks_through_operators(fixture)]
    assert {fixture.id: planter.judged(fixture) for fixture in programs if planter.judged(fixture)} == {}
    assert programs


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_noticed_alone_and_in_all_evidence(kind: str, small: Planter) -> None:
    random = Random(kind)
    results = (small.planted(random, kind, small.cell(random)) for _ in range(TRIES))
    tried = next((item for item in results if item is not None), None)
    if tried is None:
        pytest.skip(f"no cell of the small tree can be changed so: {kind}")
    assert tried.noticed
    assert whole(small, tried) == 1


def test_what_is_as_it_was_is_green_alone_and_in_all_evidence(small: Planter) -> None:
    cell = small.cell(Random(1))
    assert small.judged(cell.fixture) == []
    assert whole(small, Tried("nothing", cell, cell.observation, small.evidence.readers.first(cell.reader).name, "")) == 0


def test_a_lock_without_a_cell_or_with_one_more_is_noticed_alone(small: Planter) -> None:
    cell = small.cell(Random(2))
    accepted = small.accepted
    others = tuple(block for block in accepted.blocks if block is not cell.block)
    emptied = Planter(replace(small.evidence, policy=replace(small.evidence.policy, accepted=replace(accepted, blocks=others))))
    assert emptied.judged(cell.fixture)
    wider = cell.block._replace(options="no-such-options")
    more = Planter(
        replace(
            small.evidence, policy=replace(small.evidence.policy, accepted=replace(accepted, blocks=(*others, cell.block, wider)))
        )
    )
    assert [item for item in more.judged(cell.fixture) if item.startswith("gone: ")]
