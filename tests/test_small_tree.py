"""The small tree that other tests use is real evidence, complete and without failures, and every rule judges something in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.small_tree import RECIPES, RELEASES, make_small_tree, once
from torch_compat.corpus.corpus import FROZEN, load_corpus, read_frozen
from torch_compat.judging.cell import Outcome
from torch_compat.judging.gathering import gather
from torch_compat.judging.judge import judge
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def evidence(small_tree: Path) -> Evidence:
    place = Root(small_tree)
    return gather(place, place.policy(), as_of=None)


def test_it_is_green(evidence: Evidence) -> None:
    report = judge(evidence)
    assert report.exit_status == 0, (report.not_checked, [finding.id for finding in report.findings])


def test_it_has_what_was_chosen_and_nothing_else(evidence: Evidence) -> None:
    corpus = evidence.corpus
    assert {manifest.release for manifest in corpus.manifests if manifest.release != "synthetic"} == set(RELEASES)
    assert [recipe.name for recipe in corpus.recipes] == sorted(RECIPES)
    assert {reader.release for reader in evidence.recorded.values()} == set(RELEASES)
    assert {entry.recipe for entry in corpus.entries if entry.release != "synthetic"} == set(RECIPES)


def test_what_it_has_is_as_the_repository_has_it(evidence: Evidence) -> None:
    frozen = read_frozen(REPOSITORY / "fixtures" / FROZEN)
    assert evidence.corpus.damage == ()
    assert all(frozen[entry.id] == entry.pin for entry in evidence.corpus.entries)


def test_there_is_something_of_everything_to_spoil(evidence: Evidence) -> None:
    outcomes = {cell.outcome for cell in evidence.cells}
    assert outcomes >= {Outcome.SAME, Outcome.DIFFERENT, Outcome.REFUSED, Outcome.RAISED, Outcome.RELAXED, Outcome.CRASHED}
    assert {fixture.family for fixture in evidence.corpus.fixtures.values()} >= {"torch-save", "torchscript", "mobile", "package"}
    assert len(evidence.policy.waivers) >= 10
    assert len(evidence.policy.formats) >= 10


def test_every_rule_selects_something_but_those_that_need_near_releases_or_newer_records(evidence: Evidence) -> None:
    notes = [note for note in judge(evidence).notes if "selects nothing" in note]
    assert {note.partition(" ")[0] for note in notes} == {"forward-window"}


def test_one_made_for_fewer_releases_and_recipes_is_whole_too(small_tree: Path, tmp_path: Path) -> None:
    make_small_tree(small_tree, tmp_path / "smaller", ("1.6.0", "2.13.0"), ("div", "state_dict"))
    place = Root(tmp_path / "smaller")
    evidence = gather(place, place.policy(), as_of=None)
    assert judge(evidence).exit_status == 0
    names = {name for name in load_corpus(place.fixtures).fixtures if name.startswith("torch-")}
    assert names == {f"torch-{release}/{recipe}" for release in ("1.6.0", "2.13.0") for recipe in ("div", "state_dict")}


def test_it_is_made_the_same_each_time(small_tree: Path, tmp_path: Path) -> None:
    make_small_tree(REPOSITORY, tmp_path / "again")

    def everything(root: Path) -> dict[str, bytes]:
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert everything(tmp_path / "again") == everything(small_tree)


def test_what_is_made_once_is_not_made_again_and_a_half_made_one_is_made_anew(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        path.mkdir()
        (path / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        once(tmp_path, "it", broken)
    result = once(tmp_path, "it", Path.mkdir)
    assert list(result.iterdir()) == []
    assert once(tmp_path, "it", broken) == result
