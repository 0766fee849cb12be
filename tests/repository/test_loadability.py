"""Predictions of which releases read an archive, compared with all observations of real releases."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.recordings import readers_of
from tools.predictions import UNRECORDED
from torch_compat.loadability import Judge, Rules, load_rules, packaged_rules
from torch_compat.policy import load_policy
from torch_compat.replay.loading import LoadingEvidence, takers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.corpus import Corpus

REPOSITORY = Path(__file__).parents[2]
COUNTS = load_policy(REPOSITORY / "policies" / "torch").counts
PLANTED = ("word-nonetype", "model-json", "storages-in-data", "package-importer", "pickle-protocol-5", "pt2-archive")


@pytest.fixture(scope="module")
def rules() -> Rules:
    return packaged_rules()


@pytest.fixture(scope="module")
def evidence(corpus: Corpus, rules: Rules) -> LoadingEvidence:
    return LoadingEvidence.of(corpus, readers_of(REPOSITORY).values(), rules)


def test_every_fixture_was_given_to_every_reader(evidence: LoadingEvidence, rules: Rules) -> None:
    readers = sum(1 << at for at, release in enumerate(rules.releases) if release not in rules.stands_for)
    assert set(evidence.asked["default"]) == set(evidence.facts)
    assert set(evidence.asked["default"].values()) == {readers}


def test_the_verdict_agrees_with_every_observation(evidence: LoadingEvidence, rules: Rules) -> None:
    assert evidence.deviations(rules) == Counter()


def test_spans_say_what_the_needs_say(evidence: LoadingEvidence, rules: Rules) -> None:
    judge = Judge(rules)
    for fixture, facts in evidence.facts.items():
        needs = judge(facts)
        inside = {
            release
            for first, last in needs.readable_by
            for release in rules.releases[rules.releases.index(first) : rules.releases.index(last) + 1]
        }
        takers = takers_of(judge.items(facts)) & rules.everyone
        assert inside == {release for at, release in enumerate(rules.releases) if takers >> at & 1}, fixture
        assert needs.minimum_release == (needs.readable_by[0][0] if needs.readable_by else None)
        assert bool(needs.reasons) is (takers != rules.everyone), fixture


def test_weights_only_agrees_with_every_observation(evidence: LoadingEvidence, rules: Rules) -> None:
    """Loading with ``weights_only=True`` returns where the loader takes the archive at all, and the pickle is not refused."""
    judge = Judge(rules._replace(default=0))
    wrong = []
    for fixture, asked in evidence.asked["weights-only"].items():
        facts = evidence.facts[fixture]
        takers = takers_of(judge.items(facts)) & rules.everyone
        refused = judge(facts).weights_only
        for at, release in enumerate(rules.releases):
            if asked >> at & 1:
                expected = bool(takers >> at & 1) and refused[release] is None
                if expected != bool(evidence.loaded["weights-only"][fixture] >> at & 1):
                    wrong.append((fixture, release))
    assert wrong == []


@pytest.mark.parametrize("name", [need.id for need in packaged_rules().needs])
def test_every_need_explains_something_and_exceptions_as_much_as_the_lock_states(
    name: str, evidence: LoadingEvidence, rules: Rules
) -> None:
    missed = evidence.explained(name, rules)
    if ("behavior", name) in UNRECORDED:
        assert not missed, f"{name} changes a verdict: take it out of UNRECORDED in tools/predictions.py"
        return
    assert missed, f"{name} changes no verdict: nothing shows that it is true"
    assert missed == COUNTS.get(("behavior", name), missed), f"{name} explains {missed} cells: nox -s predictions -- --write"


def test_what_explains_nothing_is_noticed(evidence: LoadingEvidence, rules: Rules) -> None:
    assert evidence.deviations_if("no-such-need", rules.everyone) == 0


def shifted(rules: Rules, name: str) -> Iterator[int]:
    """Who takes an archive with a need, with one end moved by one release that was asked."""
    asked = [at for at, release in enumerate(rules.releases) if release not in rules.stands_for]
    takers = rules.takers[name]
    for before, after in pairwise(asked):
        if (takers >> before ^ takers >> after) & 1:
            yield from (takers ^ 1 << at for at in (before, after))


@pytest.mark.parametrize("name", PLANTED)
def test_a_need_that_ends_one_release_too_early_or_too_late_is_noticed(
    name: str, evidence: LoadingEvidence, rules: Rules
) -> None:
    noticed = [evidence.deviations_if(name, planted) for planted in shifted(rules, name)]
    assert noticed
    assert any(noticed), f"{name} may begin or end anywhere"


def test_a_format_version_that_one_more_release_reads_is_noticed(evidence: LoadingEvidence, rules: Rules) -> None:
    older = rules.releases.index("1.10.2")
    takers, meaning = rules.formats["file-format", 8]
    formats = {**rules.formats, ("file-format", 8): (takers | 1 << older, meaning)}
    assert evidence.deviations(rules._replace(formats=formats)).total()


def test_a_default_that_came_one_release_later_is_noticed(evidence: LoadingEvidence, rules: Rules) -> None:
    later = rules._replace(default=rules.default & ~(1 << rules.releases.index("2.6.0")))
    assert evidence.deviations(later)["torch-save"] > 200


def test_a_builtin_that_is_missing_is_noticed(evidence: LoadingEvidence, rules: Rules) -> None:
    assert evidence.deviations(rules._replace(builtins={}))["torchscript"]


@pytest.mark.parametrize("package", sorted(packaged_rules().beside))
def test_a_package_that_is_missing_is_noticed(package: str, evidence: LoadingEvidence, rules: Rules) -> None:
    beside = {**rules.beside, package: rules.beside[package]._replace(takers=(0,) * len(rules.beside[package].takers))}
    assert evidence.deviations(rules._replace(beside=beside))["torch-save"]


def test_a_tree_is_judged_by_its_own_rules(tmp_path: Path, evidence: LoadingEvidence) -> None:
    """A policy that says something else is one that judges differently."""
    for file in (REPOSITORY / "policies" / "torch").glob("*.toml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    needs = tmp_path / "behaviors.toml"
    text = needs.read_text(encoding="utf-8")
    planted = text.replace('readers = "..1.10.2"', 'readers = "..1.9.1"')
    assert planted != text
    needs.write_text(planted, encoding="utf-8")
    assert evidence.deviations(load_rules(tmp_path, REPOSITORY / "fixtures"))["torchscript"]
