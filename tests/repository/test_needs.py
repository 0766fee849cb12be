"""What the harness says of who reads an archive, against everything that real releases were seen to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.observations import read_observations
from torch_compat.formats.facts import read_facts
from torch_compat.needs import Judge, Rules, load_rules, packaged_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.observations import Observation
    from torch_compat.formats.model import Facts
    from torch_compat.needs.verdict import Item

REPOSITORY = Path(__file__).parents[2]
PLANTED = ("word-nonetype", "model-json", "storages-in-data", "package-importer", "pickle-protocol-5", "pt2-archive")


@dataclass(frozen=True)
class Evidence:
    """Facts and needs of every fixture; which releases loaded it, and which were asked, as bits over the calendar."""

    facts: dict[str, Facts]
    items: dict[str, tuple[Item, ...]]
    loaded: dict[str, dict[str, int]]
    asked: dict[str, dict[str, int]]

    def deviations(self, rules: Rules) -> Counter[str]:
        """Cells in which the verdict by these rules is not what was observed, by family."""
        judge = Judge(rules)
        found: Counter[str] = Counter()
        for fixture, facts in self.facts.items():
            found[facts.family] += self.wrong(fixture, takers_of(judge.items(facts)))
        return +found

    def deviations_if(self, need: str, takers: int) -> int:
        """The same, if these were the releases that take what has a need."""
        return sum(
            self.wrong(fixture, takers_of([item._replace(takers=takers) if item.what == need else item for item in items]))
            for fixture, items in self.items.items()
        )

    def wrong(self, fixture: str, takers: int) -> int:
        """In how many cells of a fixture these releases are not those that loaded it."""
        return ((takers ^ self.loaded["default"][fixture]) & self.asked["default"][fixture]).bit_count()


def takers_of(items: Iterable[Item]) -> int:
    """The releases that meet all needs, as bits over any calendar."""
    takers = -1
    for item in items:
        takers &= item.takers
    return takers


def loads(cell: Observation) -> bool:
    """Whether the load call returned, both times."""
    if cell.result == "unstable":
        both = {loads(one) for one in cell.both}
        assert len(both) == 1, f"{cell.cell}: it loads on some days only, so nothing can be said of it"
        return both.pop()
    if cell.result in {"crashed", "timed-out"}:
        return cell.stage == "call"
    return cell.result != "refused"


@pytest.fixture(scope="module")
def rules() -> Rules:
    return packaged_rules()


@pytest.fixture(scope="module")
def evidence(corpus: Corpus, rules: Rules) -> Evidence:
    bits = {release: 1 << at for at, release in enumerate(rules.releases)}
    facts = {name: read_facts(corpus.path(fixture)) for name, fixture in corpus.fixtures.items()}
    loaded: dict[str, dict[str, int]] = {}
    asked: dict[str, dict[str, int]] = {}
    for path in sorted((REPOSITORY / "reports" / "observations").glob("*.jsonl")):
        reader = read_observations(path)
        for (fixture, options), cell in reader.cells.items():
            of_options = asked.setdefault(options, {})
            of_options[fixture] = of_options.get(fixture, 0) | bits[reader.release]
            if loads(cell):
                taken = loaded.setdefault(options, {})
                taken[fixture] = taken.get(fixture, 0) | bits[reader.release]
    complete = {options: {fixture: taken.get(fixture, 0) for fixture in asked[options]} for options, taken in loaded.items()}
    judge = Judge(rules)
    return Evidence(facts, {name: judge.items(one) for name, one in facts.items()}, complete, asked)


def test_every_fixture_was_given_to_every_reader(evidence: Evidence, rules: Rules) -> None:
    readers = sum(1 << at for at, release in enumerate(rules.releases) if release not in rules.stands_for)
    assert set(evidence.asked["default"]) == set(evidence.facts)
    assert set(evidence.asked["default"].values()) == {readers}


def test_the_verdict_agrees_with_every_observation(evidence: Evidence, rules: Rules) -> None:
    assert evidence.deviations(rules) == Counter()


def test_spans_say_what_the_needs_say(evidence: Evidence, rules: Rules) -> None:
    judge = Judge(rules)
    for fixture, facts in evidence.facts.items():
        found = judge(facts)
        inside = {
            release
            for first, last in found.readable_by
            for release in rules.releases[rules.releases.index(first) : rules.releases.index(last) + 1]
        }
        takers = takers_of(judge.items(facts)) & rules.everyone
        assert inside == {release for at, release in enumerate(rules.releases) if takers >> at & 1}, fixture
        assert found.minimum_release == (found.readable_by[0][0] if found.readable_by else None)
        assert bool(found.reasons) is (takers != rules.everyone), fixture


def test_weights_only_agrees_with_every_observation(evidence: Evidence, rules: Rules) -> None:
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
def test_every_need_explains_something_and_quirks_as_much_as_they_say(name: str, evidence: Evidence, rules: Rules) -> None:
    (need,) = (one for one in rules.needs if one.id == name)
    missed = evidence.deviations_if(name, rules.everyone)
    if need.cells is None:
        assert missed, f"{name} changes no verdict: nothing shows that it is true"
    else:
        assert missed == need.cells, f"{name} explains {missed} cells"


def test_what_explains_nothing_is_noticed(evidence: Evidence, rules: Rules) -> None:
    assert evidence.deviations_if("no-such-need", rules.everyone) == 0


def shifted(rules: Rules, name: str) -> Iterator[int]:
    """Who takes an archive with a need, with one end moved by one release that was asked."""
    asked = [at for at, release in enumerate(rules.releases) if release not in rules.stands_for]
    (need,) = (one for one in rules.needs if one.id == name)
    for before, after in pairwise(asked):
        if (need.takers >> before ^ need.takers >> after) & 1:
            yield from (need.takers ^ 1 << at for at in (before, after))


@pytest.mark.parametrize("name", PLANTED)
def test_a_need_that_ends_one_release_too_early_or_too_late_is_noticed(name: str, evidence: Evidence, rules: Rules) -> None:
    noticed = [evidence.deviations_if(name, planted) for planted in shifted(rules, name)]
    assert noticed
    assert any(noticed), f"{name} may begin or end anywhere"


def test_a_format_version_that_one_more_release_reads_is_noticed(evidence: Evidence, rules: Rules) -> None:
    older = rules.releases.index("1.10.2")
    takers, meaning = rules.formats["file-format", 8]
    formats = {**rules.formats, ("file-format", 8): (takers | 1 << older, meaning)}
    assert evidence.deviations(rules._replace(formats=formats)).total()


def test_a_default_that_came_one_release_later_is_noticed(evidence: Evidence, rules: Rules) -> None:
    later = rules._replace(default=rules.default & ~(1 << rules.releases.index("2.6.0")))
    assert evidence.deviations(later)["torch-save"] > 200


def test_a_builtin_that_is_missing_is_noticed(evidence: Evidence, rules: Rules) -> None:
    assert evidence.deviations(rules._replace(builtins={}))["torchscript"]


@pytest.mark.parametrize("module", sorted(packaged_rules().modules))
def test_a_module_that_is_missing_is_noticed(module: str, evidence: Evidence, rules: Rules) -> None:
    modules = {name: one for name, one in rules.modules.items() if name != module}
    assert evidence.deviations(rules._replace(modules=modules))["torch-save"]


def test_a_tree_is_judged_by_its_own_rules(tmp_path: Path, evidence: Evidence) -> None:
    """A policy that says something else is one that judges differently."""
    for file in (REPOSITORY / "policies" / "torch").glob("*.toml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    needs = tmp_path / "needs.toml"
    text = needs.read_text(encoding="utf-8")
    planted = text.replace('readers = [{ last = "1.10.2" }]', 'readers = [{ last = "1.9.1" }]')
    assert planted != text
    needs.write_text(planted, encoding="utf-8")
    assert evidence.deviations(load_rules(tmp_path, REPOSITORY / "fixtures"))["torchscript"]
