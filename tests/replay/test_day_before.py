"""The evidence of the day before contains nothing that begins with a release or a later one, or names one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import CorpusError, UsageError
from torch_compat.judging.gathering import gather
from torch_compat.replay import day_before as module
from torch_compat.replay.day_before import backtested, day_before, leaks
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.judging.evidence import Evidence
    from torch_compat.replay.day_before import DayBefore

REPOSITORY = Path(__file__).parents[2]
VERSION = "1.7.1"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """All that is recorded."""
    place = Root(REPOSITORY)
    return gather(place, place.policy(), as_of=None)


@pytest.fixture(scope="module")
def day(evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> DayBefore:
    """The day before 1.7.1."""
    return day_before(evidence, REPOSITORY, VERSION, tmp_path_factory.mktemp("scratch"))


def test_every_minor_line_since_1_6_is_asked_once(evidence: Evidence) -> None:
    result = backtested(evidence)
    lines = [".".join(item.split(".")[:2]) for item in result]
    assert lines[0] == "1.6"
    assert (
        len(lines) == len(set(lines)) == len({reader.rpartition(".")[0] for reader in evidence.policy.corpus.readers}) - 6
    )  # 1.0 to 1.5
    assert "2.0.0" in result  # not the patch release, where both are recorded


def test_what_is_known_ends_before_the_release(day: DayBefore, evidence: Evidence) -> None:
    assert day.base.release == "1.6.0"
    assert day.fresh.release == VERSION
    assert {manifest.release for manifest in day.evidence.corpus.manifests} == {
        manifest.release for manifest in evidence.corpus.manifests if manifest.release not in day.gone
    }
    assert "2.15.0" in day.gone
    assert day.own.fixtures
    assert {fixture.release for fixture in day.own.fixtures.values()} == {VERSION}
    assert {place[0] for place in day.older.cells} <= day.own.fixtures.keys()
    assert day.unwritten
    assert day.evidence.as_of == day.release.date
    ids = {waiver.id for waiver in day.evidence.policy.waivers}
    assert ids < {waiver.id for waiver in evidence.policy.waivers}
    assert not leaks(day)


def _text(day: DayBefore) -> DayBefore:
    return replace(day, texts={**day.texts, "changes.toml": 'reason = "since 2.6 it is refused"\n'})


def _lock(day: DayBefore) -> DayBefore:
    return replace(
        day, texts={**day.texts, "waivers.lock": day.texts["waivers.lock"] + "a backward different default 0 1.5.1 1.7.1 b\n"}
    )


def _reader(day: DayBefore) -> DayBefore:
    recorded = {**day.evidence.recorded, day.fresh.name: day.fresh}
    return replace(day, evidence=replace(day.evidence, recorded=recorded))


def _writer(day: DayBefore) -> DayBefore:
    corpus = replace(day.evidence.corpus, manifests=(*day.evidence.corpus.manifests, *day.own.manifests))
    return replace(day, evidence=replace(day.evidence, corpus=corpus))


def _cell(day: DayBefore) -> DayBefore:
    base = replace(day.base, cells={**day.base.cells, **day.older.cells})
    return replace(day, evidence=replace(day.evidence, recorded={**day.evidence.recorded, base.name: base}))


def _recipe(day: DayBefore) -> DayBefore:
    recipes = (*day.evidence.corpus.recipes, replace(day.evidence.corpus.recipes[0], since="2.0.0"))
    return replace(day, evidence=replace(day.evidence, corpus=replace(day.evidence.corpus, recipes=recipes)))


def _change(day: DayBefore) -> DayBefore:
    item = day.evidence.policy.changes[0].model_copy(update={"since": VERSION})
    return replace(day, evidence=replace(day.evidence, policy=replace(day.evidence.policy, changes=(item,))))


@pytest.mark.parametrize("plant", [_text, _lock, _reader, _writer, _cell, _recipe, _change])
def test_a_planted_leak_is_found(day: DayBefore, plant: Callable[[DayBefore], DayBefore]) -> None:
    assert leaks(plant(day))


def test_later_operators_are_a_leak(day: DayBefore, evidence: Evidence) -> None:
    assert evidence.operators is not None
    result = leaks(replace(day, operators=(evidence.operators.schemas, *day.operators[1:])))
    assert any("schemas.txt mentions 2.15.0" in leak for leak in result)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("_unnamed", lambda policies, _gone: {p.name: p.read_text("utf-8") for p in policies.rglob("*.toml")}),
        ("_corpus", lambda corpus, _gone, _probes: corpus),
    ],
)
def test_what_is_left_out_of_the_removal_ends_the_backtest(
    name: str, left: Callable[..., object], evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, left)
    with pytest.raises(CorpusError) as raised:
        day_before(evidence, REPOSITORY, VERSION, tmp_path)
    assert raised.value.code == "leak"


def test_a_policy_that_keeps_later_releases_is_a_leak(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(policies: Path, _gone: frozenset[str]) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(policies.rglob("*")) if path.is_file()}

    monkeypatch.setattr(module, "remove_from_policies", lambda _policies, _releases: frozenset())
    monkeypatch.setattr(module, "_unnamed", texts)
    with pytest.raises(CorpusError, match=r"names \d") as raised:
        day_before(evidence, REPOSITORY, VERSION, tmp_path)
    assert raised.value.code == "leak"


def test_the_oldest_release_has_no_day_before(evidence: Evidence, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no release would be left"):
        day_before(evidence, REPOSITORY, "1.0.0", tmp_path)
