"""The time machine: requirements depend on the day; past events do not."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.rules.conftest import DATES, STRICT, file_format, waiver
from torch_compat.judging.sweep import Sweep, spans, sweep
from torch_compat.policy.model import CorpusScope, Milestone

if TYPE_CHECKING:
    from tests.rules.conftest import World

DAY = dt.timedelta(days=1)


def on(world: World, day: dt.date) -> World:
    world.as_of = day
    return world


@pytest.mark.parametrize(("days", "verdict"), [(-1, "no-promise"), (0, "fail: no fixture")])
def test_a_format_version_must_have_a_fixture_from_the_day_of_its_first_writer(world: World, days: int, verdict: str) -> None:
    entry = file_format(2).model_copy(update={"written_from": Milestone(release="2.0.0")})
    world.fixture()
    world.promise(formats=(file_format(1), entry))
    on(world, DATES["2.0.0"] + days * DAY)
    assert world.verdicts("versions-have-fixtures") == {"file-format 1": "pass", "file-format 2": verdict}


@pytest.mark.parametrize(("days", "verdict"), [(-1, "no-promise"), (0, "fail: no fixture")])
def test_a_version_that_nobody_writes_must_have_one_from_the_day_of_its_first_reader(
    world: World, days: int, verdict: str
) -> None:
    world.fixture()
    world.promise(formats=(file_format(1), file_format(2, no_writer="nobody did", read_from="2.0.0")))
    on(world, DATES["2.0.0"] + days * DAY)
    assert world.verdicts("versions-have-fixtures")["file-format 2"] == verdict


def test_a_fixture_before_its_day_is_a_pass(world: World) -> None:
    world.fixture()
    assert on(world, DATES["1.0.0"] - DAY).verdicts("versions-have-fixtures") == {"file-format 1": "pass"}


@pytest.mark.parametrize(("days", "verdict"), [(-1, "no-promise"), (0, "not-checked: no observations by this reader")])
def test_a_release_must_have_read_everything_from_its_day_on(world: World, days: int, verdict: str) -> None:
    fixture = world.fixture()
    world.observe(fixture, "1.0.0")
    subject = "torch-1.0.0/add" if days < 0 else "torch-2.0.0"
    assert on(world, DATES["2.0.0"] + days * DAY).pairs() == {("torch-1.0.0/add", "pass"): 1, (subject, verdict): 1}


@pytest.mark.parametrize(("days", "verdict"), [(-1, "no-promise"), (0, "fail: not produced")])
def test_a_release_must_have_written_every_recipe_from_its_day_on(world: World, days: int, verdict: str) -> None:
    world.fixture()
    world.promise(corpus=CorpusScope(writers=("1.0.0", "2.0.0"), readers=("1.0.0",)))
    result = on(world, DATES["2.0.0"] + days * DAY).verdicts("recipes-written")
    assert result["torch-2.0.0/add"] == verdict


def test_what_a_release_has_written_before_its_day_is_judged(world: World) -> None:
    world.promise(corpus=CorpusScope(writers=("2.0.0",), readers=("1.0.0",)))
    world.fixture("2.0.0", recipe_sha256="0" * 64)
    result = on(world, DATES["2.0.0"] - DAY).verdicts("recipes-written")
    assert result == {"torch-2.0.0/add": "fail: recipe changed"}


def test_a_waiver_of_what_has_not_happened_yet_is_not_unused(world: World) -> None:
    world.ask("pairs-observed", "waivers-exact")
    world.promise(waivers=(waiver(findings=("deprecations-timeline:too-early:a/removed@2.0.0",)),))
    world.observe(world.fixture(), "1.0.0")
    counts = [on(world, DATES["2.0.0"] + days * DAY).judge().counts for days in (-1, 0)]
    assert [count["fail"] for count in counts] == [0, 1]  # type: ignore[index]


# ----------------------------------------------------------------------------------------------------------------- sweeps


def swept(world: World) -> Sweep:
    return Sweep(world.evidence())


def test_a_sweep_finds_what_is_missing_on_each_day(world: World) -> None:
    entry = file_format(2).model_copy(update={"written_from": Milestone(release="2.0.0")})
    world.promise(formats=(file_format(1), entry), waivers=(waiver(findings=("a",), expires=DATES["1.1.0"]),))
    world.observe(world.fixture(), "1.0.0")
    result = swept(world)
    before, late = result.at(DATES["1.0.0"]), result.at(DATES["2.0.0"])
    assert (before.missing, before.expired) == (frozenset(), frozenset())
    assert result.at(DATES["1.1.0"] - DAY).expired == frozenset()
    assert result.at(DATES["1.1.0"]).expired == {"known"}
    assert result.at(DATES["2.0.0"] - DAY).missing == frozenset()
    assert late.missing == {"file-format 2", "observations of torch-2.0.0"}


def test_a_missing_fixture_of_a_new_writer_shows_on_its_day(world: World) -> None:
    world.promise(corpus=CorpusScope(writers=("1.0.0", "1.1.0"), readers=("1.0.0",)))
    world.observe(world.fixture(), "1.0.0")
    assert swept(world).at(DATES["1.1.0"] - DAY).missing == frozenset()
    assert swept(world).at(DATES["1.1.0"]).missing == {"fixtures of torch-1.1.0"}


def test_days_of_which_the_same_can_be_said_are_put_together(world: World) -> None:
    world.promise(options=(STRICT,))
    world.observe(world.fixture(), "1.0.0")
    evidence = world.evidence()
    first, last = DATES["1.0.0"], DATES["2.0.0"] + 10 * DAY
    days = list(sweep(evidence, first, last))
    together = list(spans(evidence, first, last))
    assert len(days) == (last - first).days + 1
    assert [(start, end) for start, end, _ in together] == [(first, DATES["2.0.0"] - DAY), (DATES["2.0.0"], last)]
    for start, end, result in together:
        assert all(replace(item, day=result.day) == result for day, item in days if start <= day <= end)
