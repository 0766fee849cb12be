"""Judging sets of readers at once gives the same result as judging cell by cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules import oracle
from tests.rules.conftest import DATES, DEFAULT, FACTS, FAR, NEAR, STRICT, World, covers, file_format, rule, waiver, wording
from torch_compat.judging.cell import Outcome
from torch_compat.judging.readers import Reader, Readers, Sums, highest, lowest, places
from torch_compat.policy.model import CorpusScope, Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.findings import Finding
    from torch_compat.judging.judge import Report
    from torch_compat.policy.model import Waiver
    from torch_compat.policy.sayings import KnownMessage

    Draw = Callable[[st.SearchStrategy[Any]], Any]

RELEASES = tuple(DATES)
BUILDS = (*RELEASES, "1.1.0+cpu", "1.1.0+cu102", "9.9.9")
CAUSED = [outcome for outcome in sorted(FACTS) if outcome not in {"same", "close", "relaxed"}]
OTHER = ({"type": "builtins.RuntimeError", "message": "no such operator"},)
NUMBERED = ({"type": "builtins.RuntimeError", "message": "version 10 is too new"},)
SETS = st.sampled_from(["..", "1.0.0", "1.1.0..", "..1.1.1", "1.0.0..1.1.0, 2.0.0..", "1.1.0..1.1.1"])
WORDS = ("no such size", "no such shape", "no memory", "no such size 3")
OTHERWISE: dict[str, Any] = {"digest": "9" * 16, "count": 7}
NOT_NOW = Milestone(release="1.1.1")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Fixtures of several writers and of none, and readers of which most do what others do."""
    world = World()
    formats = (
        file_format(1),
        file_format(2, operators=("aten::div",), read_from=draw(st.sampled_from(RELEASES))),
        file_format(3, operators=("aten::div", "aten::mul"), read_from=draw(st.sampled_from(RELEASES))),
        file_format(4, no_writer="nobody did", read_from="1.1.0", mistaken=draw(st.sampled_from([None, "they take it for 3"]))),
        file_format(5, no_writer="nobody did", read_from="1.0.0").model_copy(update={"read_until": NOT_NOW}),
    )
    asked = draw(st.lists(st.sampled_from(RELEASES), min_size=1, unique=True))
    world.promise(
        rules=tuple(map(rule, oracle.RULES)),
        formats=formats,
        corpus=CorpusScope(writers=("1.0.0",), readers=tuple(asked)),
        forward_window_days=draw(st.sampled_from([0, 9, 300])),
    )
    world.promise(messages=tuple(_wording(draw, f"check-{at}") for at in range(draw(st.integers(0, 2)))))
    world.as_of = draw(st.sampled_from([world.as_of, DATES["1.1.1"]]))
    for version in draw(st.lists(st.sampled_from([*RELEASES, "synthetic"]), unique=True, max_size=4)):
        for recipe in draw(st.lists(st.sampled_from(["add", "div", "mul"]), unique=True, min_size=1)):
            _observed(draw, world, _fixture(draw, world, version, recipe))
    return world


def _wording(draw: st.DrawFn, name: str) -> KnownMessage:
    texts = draw(st.lists(st.sampled_from(WORDS), unique=True, min_size=2, max_size=3))
    return wording(*((text, draw(SETS)) for text in texts), name=name)


def _errors(draw: st.DrawFn) -> dict[str, Any]:
    """Errors that are others than the golden's, of which there may be several."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=2))
    errors = [["builtins.RuntimeError", item, "builtins.RuntimeError", other] for item, other in pairs]
    kind = {"kind": "error", "dtype": "", "count": len(errors), "frontier": None, "errors": errors}
    return {"heard": True, "digest": "3" * 16, "extent": (*draw(st.sampled_from([(), (NEAR,), (FAR,)])), kind)}


def _fixture(draw: st.DrawFn, world: World, version: str, recipe: str) -> Fixture:
    change = {
        "size": draw(st.sampled_from([1000, 2000])),
        "family": draw(st.sampled_from(["torch-save", "torchscript"])),
        "operators": draw(st.sampled_from([[], ["aten::div.Tensor"], ["aten::mul"]])),
        "golden": draw(st.sampled_from([{"calls": []}, {"crashed": {}}])),
    }
    if version == "synthetic":
        return world.synthetic(
            *draw(st.sampled_from([("file-format 4",), ("file-format 5",), ("file-format 4", "file-format 5")])),
            recipe=recipe,
            **change,
        )
    return world.fixture(version, recipe, **change)


def _observed(draw: st.DrawFn, world: World, fixture: Fixture) -> None:
    """What readers did with a fixture: a few outcomes, each of several readers."""
    for options in (DEFAULT, STRICT):
        did = st.sampled_from(draw(st.lists(st.sampled_from(["same", "close", "relaxed", *CAUSED]), min_size=1, max_size=3)))
        for version in draw(st.lists(st.sampled_from(BUILDS), unique=True, max_size=len(BUILDS))):
            for fresh in draw(st.sampled_from([(False,), (False,), (True,), (False, True)])):
                outcome = draw(did)
                change: dict[str, Any] = {}
                if outcome in {"refused", "raised"}:
                    change = draw(st.sampled_from([{}, {"errors": OTHER}, {"errors": NUMBERED}]))
                if outcome == "different" and draw(st.booleans()):
                    change = _errors(draw)
                if draw(st.integers(0, 9)) == 0:
                    change = {**change, "key": "0" * 20}
                world.observe(fixture, version, outcome, options, fresh=fresh, **change)


def facts(report: Report) -> dict[str, object]:
    """A report without the strays, which are no matter of sets."""
    result = oracle.facts(report)
    strays = [finding for finding in result["findings"] if finding[1].startswith("pairs-observed:stray:")]
    result["findings"] = [finding for finding in result["findings"] if finding not in strays]
    if strays:
        result["counts"]["fail"] -= sum(stray[3] for stray in strays)
    result["counts"] = {verdict: count for verdict, count in result["counts"].items() if count}
    return result


@settings(deadline=None, max_examples=150)
@given(worlds(), st.data())
def test_sets_say_what_cells_say(world: World, data: st.DataObject) -> None:
    if not world.fixtures:
        return
    report = world.judge()
    assert facts(report) == oracle.judge(world)
    outcomes = {str(item) for item in Outcome}
    failing = [
        finding for finding in report.findings if finding.verdict == "fail" and finding.recipes and finding.what in outcomes
    ]
    if not failing:
        return
    world.promise(waivers=tuple(_waiver(data.draw, failing, f"w{index}") for index in range(data.draw(st.integers(1, 3)))))
    world.as_of = max(world.as_of, data.draw(st.sampled_from([DATES["1.1.1"], DATES["2.0.0"]])))
    assert facts(world.judge()) == oracle.judge(world)
    _accept(data.draw, world)
    assert facts(world.judge()) == oracle.judge(world)


def _waiver(draw: Draw, failing: list[Finding], name: str) -> Waiver:
    parts = []
    for finding in draw(st.lists(st.sampled_from(failing), min_size=1, max_size=2)):
        says = draw(st.sampled_from([None, "is too new", "no such"]))
        recipes = " ".join(draw(st.lists(st.sampled_from(["add", "div", "mul"]), unique=True, min_size=says is None, max_size=2)))
        wrote = finding.writers != ("synthetic",)
        parts.append(
            covers(
                finding.what,
                recipes,
                writers=draw(SETS) if wrote else None,
                synthetic=None if wrote else True,
                readers=draw(SETS),
                options=tuple(draw(st.sets(st.sampled_from(["default", "strict"]), min_size=1))),
                says=says,
            )
        )
    return waiver(*(part for index, part in enumerate(parts) if part not in parts[:index]), name=name)


def _accept(draw: Draw, world: World) -> None:
    """Accept what there was before some releases and recipes were there, and with what some observations said before."""
    without = draw(st.sets(st.sampled_from(RELEASES), max_size=2))
    recipe = draw(st.sampled_from(["", "", "div"]))
    fixtures, recorded = world.fixtures, world.recorded
    world.fixtures = [fixture for fixture in fixtures if fixture.release not in without and fixture.recipe != recipe]
    names = {fixture.id for fixture in world.fixtures}
    world.recorded = {
        name: replace(
            reader,
            cells={
                cell: replace(item, **draw(st.sampled_from([{}] * 9 + [OTHERWISE])))
                for cell, item in reader.cells.items()
                if cell[0] in names
            },
        )
        for name, reader in recorded.items()
        if reader.release not in without
    }
    world.accept()
    world.fixtures, world.recorded = fixtures, recorded


# --------------------------------------------------------------------------------------------------------------- bits


@given(st.sets(st.integers(0, 200)))
def test_bits_are_a_set_of_places(members: set[int]) -> None:
    bits = sum(1 << member for member in members)
    assert list(places(bits)) == sorted(members)
    assert (lowest(bits), highest(bits)) == (min(members, default=-1), max(members, default=-1))


@given(st.lists(st.integers(0, 2**70)))
def test_sums_count_how_often_each_reader_was_in_a_set(sets: list[int]) -> None:
    sums = Sums()
    for bits in sets:
        sums.add(bits)
    expected = Counter(place for bits in sets for place in places(bits))
    assert list(sums.items()) == sorted(expected.items())


@pytest.mark.parametrize("turned", [False, True])
def test_readers_stand_by_release_then_name_and_the_recorded_first(turned: bool) -> None:
    given = [
        Reader("torch-1.0.0", "1.0.0", 0, True),
        Reader("torch-1.9.0+cpu", "1.9.0", 1, True),
        Reader("torch-1.9.0+cpu", "1.9.0", 1, False),
        Reader("torch-1.9.0+cu102", "1.9.0", 1, True),
        Reader("torch-1.10.0", "1.10.0", 2, False),
    ]
    readers = Readers(reversed(given) if turned else given)
    assert list(readers) == given
    assert len(readers) == 5
    assert readers.recorded == 0b01011
    assert [reader.name for reader in readers.of(0b10100)] == ["torch-1.9.0+cpu", "torch-1.10.0"]
    assert readers.first(0b11000).name == "torch-1.9.0+cu102"
    assert (readers.ranks(0b01110), readers.ranks(0b10001), readers.ranks(0)) == (0b010, 0b101, 0)
    assert readers.where(lambda reader: reader.rank >= 1) == 0b11110
