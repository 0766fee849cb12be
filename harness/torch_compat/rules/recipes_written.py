"""Every writer ran every recipe.

What: for every recipe and every writer of the policy, the manifest has a fixture, or evidence that this release cannot write one (for a
recipe with a reduced grid of writers: for every writer of that grid); and this agrees with the claims of the recipe (``SINCE``, ``UNTIL``,
``EXCEPT``). Recipes that did not run are reported with the nox session
that runs them, and only counted if there are many. A new recipe, which no release has run, is not checked, and has no other effect.

Why: a feature that a release lacks is evidence. A recipe that did not run, or failed for a trivial reason, is a gap that looks
like such evidence.

Example: a recipe with a typo is "not writable" everywhere.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.corpus.grid import asked_writers
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.releases.sets import ReleaseSet
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.recipes import Recipe
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import CalendarRelease, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING

FEW = 2
"""Maximum number of recipes that did not run to list by name."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every recipe with every writer, and every entry whose recipe no longer exists."""
    policy = evidence.policy
    written = {entry.id for entry in evidence.corpus.entries}
    ran = {entry.recipe for entry in evidence.corpus.entries}
    new = [recipe for recipe in evidence.corpus.recipes if recipe.name not in ran]
    for recipe in new if ran else ():
        text = f"{recipe.name}: no release has run this recipe yet; torch-compat observe --recipe {recipe.name} --everywhere"
        yield Judgement(rule.id, Verdict.NOT_CHECKED, recipe.name, Cause("new recipe", recipe.name, text))
    known = [recipe for recipe in evidence.corpus.recipes if recipe not in new] if ran else evidence.corpus.recipes
    grid = {recipe.name: frozenset(asked_writers(policy, recipe)) for recipe in known}
    for version in policy.corpus.writers:
        release = policy.calendar[version]
        asked = [item for item in known if version in grid[item.name] or f"{release.name}/{item.name}" in written]
        left = sum(f"{release.name}/{recipe.name}" not in written for recipe in asked)
        for recipe in asked:
            subject = f"{release.name}/{recipe.name}"
            if release.date > evidence.as_of and subject not in written:
                yield Judgement(rule.id, Verdict.NO_PROMISE, subject)  # this release does not exist yet
                continue
            what, text = _wrong(evidence, recipe, release, subject)
            cause = Cause(what, recipe.name, f"{subject}: {text}") if what else None
            if what == "not produced" and left > FEW:
                text = f"{release.name}: {left} of {count_of(len(asked), 'recipe was not run', 'recipes were not run')}; {_session(release)}"
                cause = Cause(what, release.name, text)
            yield Judgement(rule.id, Verdict.FAIL if what else Verdict.PASS, subject, cause)
    names = {recipe.name for recipe in evidence.corpus.recipes}
    for entry in evidence.corpus.entries:
        if entry.recipe not in names and entry.release != SYNTHETIC:
            text = f"{entry.id}: its recipe no longer exists"
            yield Judgement(rule.id, Verdict.FAIL, entry.id, Cause("no recipe", entry.recipe, text))


def _wrong(evidence: Evidence, recipe: Recipe, release: CalendarRelease, subject: str) -> tuple[str, str]:
    calendar = evidence.policy.calendar
    lacking = ReleaseSet.parse(recipe.lacking).ends if recipe.lacking is not None else frozenset()
    for bound in (recipe.since, recipe.until, *sorted(lacking), *recipe.besides):
        if bound is not None and bound not in calendar:
            return "bad bound", f"the recipe names {bound}, which is not a release in the calendar"
    writable = release.parsed in recipe.writers
    entry = evidence.corpus.fixtures.get(subject) or evidence.corpus.not_writable.get(subject)
    if entry is None:
        return "not produced", f"the manifest lists neither an archive nor a reason for its absence; {_session(release)}"
    if entry.recipe_sha256 != recipe.sha256:
        return "recipe changed", "the recipe has changed since it was run"
    if subject in evidence.corpus.fixtures and not writable:
        return (
            "writable after all",
            f"was written, although the recipe is for releases from {recipe.since} to {recipe.until or 'the newest'}",
        )
    if subject in evidence.corpus.not_writable and writable:
        reason = evidence.corpus.not_writable[subject].message.splitlines() or [""]
        return "not writable", f"could not be written, although the recipe is for releases from {recipe.since} on: {reason[0]}"
    return "", ""


def _session(release: CalendarRelease) -> str:
    return f'run nox -s "produce({release.name})"'
