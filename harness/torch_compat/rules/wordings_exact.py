"""Wordings are exact.

What: every text of a ``[[message]]`` equates errors in the recorded evidence that would otherwise differ, and every observed
release that is listed for it raises it. A note says how many cells pass only because of wordings.

Why: an unused text, or a release that never raised it, would excuse the next error that happens to look like it.

Example: a wording for 2.0.0 and newer, although 2.16.0 raises an internal assertion instead.

Reference: this project.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.relaxed import UNTOLD, raised
from torch_compat.releases.release import Release
from torch_compat.values.normalise import plain_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.sayings import KnownMessage

__all__ = ["judge", "notes"]

ASKS: Final = Asks.BOOKKEEPING

_KEPT: Final = frozenset({Outcome.SAME, Outcome.CLOSE})


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every wording by the cells that need it."""
    used: dict[str, set[int]] = {}
    recipes: dict[str, set[str]] = {}
    for cells in evidence.cells:
        for use in cells.worded:
            used.setdefault(use.wording, set()).update((use.wrote, use.read))
            recipes.setdefault(use.wording, set()).add(cells.fixture.recipe)
    message = _said(evidence, frozenset().union(*recipes.values()))
    for wording in evidence.policy.wordings:
        heard = _Said()
        for recipe in sorted(recipes.get(wording.id, ())):
            heard.take(message.get(recipe, _Said()))
        wrong = [*_unused(wording, used.get(wording.id, set())), *_unsaid(wording, used.get(wording.id, set()), heard)]
        if not wrong:
            yield Judgement(rule.id, Verdict.PASS, wording.id)
        for what, text in wrong:
            yield Judgement(rule.id, Verdict.FAIL, wording.id, Cause(what, wording.id, f"wording {wording.id}: {text}"))


def notes(evidence: Evidence, rule: RuleEntry) -> Iterator[str]:
    """Yield the number of cells that pass because a wording treats their errors as equal."""
    passed: Counter[str] = Counter()
    total = 0
    for cells in evidence.cells:
        if cells.worded and cells.outcome in _KEPT:
            total += cells.count
            for name in {use.wording for use in cells.worded}:
                passed[name] += cells.count
    if total:
        each = ", ".join(f"{name} {count:,}" for name, count in sorted(passed.items()))
        yield f"{rule.id}: {total:,} cells pass because a wording treats the errors of reader and writer as equal: {each}"


def _unused(wording: KnownMessage, used: set[int]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a wording that no cell needs."""
    for at, phrase in enumerate(wording.says):
        if at not in used:
            yield "unused", f"no recorded cell needs {phrase.type}: {phrase.text}"


def _unsaid(wording: KnownMessage, used: set[int], heard: _Said) -> Iterator[tuple[str, str]]:
    """Yield the releases that are listed for a text and were observed, but did not raise it."""
    for at, phrase in enumerate(wording.says):
        silent = [
            release
            for release in sorted(heard.asked, key=Release)
            if Release(release) in phrase.releases and not any(phrase.says(*error) for error in heard.errors[release])
        ]
        if silent and at in used:
            yield "too wide", f"{', '.join(silent)} should say {phrase.type}: {phrase.text}"


@dataclass
class _Said:
    """The errors that releases raised.

    Attributes:
        errors: the errors by release, as a writer and as a compared reader.
        asked: the releases that were readers; those that were only writers are not checked.
    """

    errors: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def note(self, release: str, errors: Iterable[tuple[str, str]]) -> None:
        """Record the errors of a release."""
        self.errors.setdefault(release, set()).update(errors)

    def take(self, other: _Said) -> None:
        """Merge other errors into these."""
        self.asked |= other.asked
        for release, errors in other.errors.items():
            self.note(release, errors)


def _said(evidence: Evidence, recipes: Iterable[str]) -> dict[str, _Said]:
    """Return the errors that releases raised in programs of these recipes, by recipe."""
    wanted = set(recipes)
    results: dict[str, _Said] = {}
    for cells in evidence.cells:
        fixture, observation = cells.fixture, cells.observation
        if fixture.recipe not in wanted or fixture.release == SYNTHETIC or cells.outcome in UNTOLD or not observation.heard:
            continue
        place = results.setdefault(fixture.recipe, _Said())
        place.note(fixture.release, map(plain_error, raised(fixture.golden)))
        errors = set(map(plain_error, raised(observation.own_result(fixture.golden))))
        for reader in evidence.readers.of(cells.readers):
            place.note(reader.release, errors)
            place.asked.add(reader.release)
    return results
