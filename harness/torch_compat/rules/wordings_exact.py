"""Wordings are exact.

What: every text of a ``[[wording]]`` makes errors of the recorded evidence one that would else be two, and every release that is said to
raise it does, where it was asked. How many cells pass only because of wordings is said in a note.

Why: a text that nobody needs, or a release that never said it, would explain the next error that happens to read like it.

Example: a wording for 2.0.0 and newer, of which 2.16.0 raises an internal assertion instead.

Reference: this project.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.releases.release import Release
from torch_compat.rules.judgement import Asks, Cause, Judgement, Outcome, Verdict
from torch_compat.rules.relaxed import UNTOLD, raised
from torch_compat.values.normalise import plain_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.policy.model import Wording
    from torch_compat.rules.evidence import Evidence

__all__ = ["judge", "notes"]

ASKS: Final = Asks.BOOKKEEPING

_KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every wording by the cells that it explains."""
    used: dict[str, set[int]] = {}
    recipes: dict[str, set[str]] = {}
    for cells in evidence.cells:
        for use in cells.worded:
            used.setdefault(use.wording, set()).update((use.wrote, use.read))
            recipes.setdefault(use.wording, set()).add(cells.fixture.recipe)
    said = _said(evidence, frozenset().union(*recipes.values()))
    for wording in evidence.policy.wordings:
        asked = [said[recipe] for recipe in sorted(recipes.get(wording.id, ())) if recipe in said]
        wrong = [*_unused(wording, used.get(wording.id, set())), *_unsaid(wording, used.get(wording.id, set()), asked)]
        if not wrong:
            yield Judgement(rule.id, Verdict.PASS, wording.id)
        for what, text in wrong:
            yield Judgement(rule.id, Verdict.FAIL, wording.id, Cause(what, wording.id, f"wording {wording.id}: {text}"))


def notes(evidence: Evidence, rule: RuleEntry) -> Iterator[str]:
    """How many cells pass since a wording says that their errors are one."""
    passed: Counter[str] = Counter()
    total = 0
    for cells in evidence.cells:
        if cells.worded and cells.outcome in _KEPT:
            total += cells.count
            for name in {use.wording for use in cells.worded}:
                passed[name] += cells.count
    if total:
        each = ", ".join(f"{name} {count:,}" for name, count in sorted(passed.items()))
        yield f"{rule.id}: {total:,} cells pass since a wording says that what the reader raises is what the writer raised: {each}"


def _unused(wording: Wording, used: set[int]) -> Iterator[tuple[str, str]]:
    """The texts of a wording that no cell needs."""
    for at, phrase in enumerate(wording.says):
        if at not in used:
            yield "unused", f"no recorded cell needs {phrase.type}: {phrase.text}"


def _unsaid(wording: Wording, used: set[int], asked: Iterable[dict[str, set[tuple[str, str]]]]) -> Iterator[tuple[str, str]]:
    """The releases that are stated to say a text, were asked, and did not."""
    heard: dict[str, set[tuple[str, str]]] = {}
    for recipe in asked:
        for release, errors in recipe.items():
            heard.setdefault(release, set()).update(errors)
    for at, phrase in enumerate(wording.says):
        silent = [
            release
            for release in sorted(heard, key=Release)
            if Release(release) in phrase.releases and not any(phrase.says(*error) for error in heard[release])
        ]
        if silent and at in used:
            yield "too wide", f"{', '.join(silent)} should say {phrase.type}: {phrase.text}"


def _said(evidence: Evidence, recipes: Iterable[str]) -> dict[str, dict[str, set[tuple[str, str]]]]:
    """What releases raised in programs of some recipes, by recipe and release: those that read, and were compared; also as writers."""
    wanted = set(recipes)
    found: dict[str, dict[str, set[tuple[str, str]]]] = {}
    wrote: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for cells in evidence.cells:
        fixture, observation = cells.fixture, cells.observation
        if fixture.recipe not in wanted or fixture.release == SYNTHETIC or cells.outcome in UNTOLD or not observation.heard:
            continue
        wrote.setdefault(fixture.recipe, {}).setdefault(fixture.release, set()).update(map(plain_error, raised(fixture.golden)))
        errors = set(map(plain_error, raised(observation.own_result(fixture.golden))))
        for reader in evidence.readers.of(cells.readers):
            found.setdefault(fixture.recipe, {}).setdefault(reader.release, set()).update(errors)
    for recipe, releases in found.items():
        for release in releases:
            releases[release] |= wrote[recipe].get(release, set())
    return found
