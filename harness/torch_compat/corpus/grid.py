"""Determines which releases must write a recipe: all of the corpus, or the reduced grid of a generated recipe.

A recipe that enumerates everything of a kind (each module class, each dtype) sets ``WRITERS = "reduced"``. It is then written by these of
the corpus's writers between its SINCE and UNTIL:

* the first and the last;
* for every version of its family's file format, the first that writes this version;
* those in its ``BESIDES``, in which a form that it enumerates first appears.

The readers are all releases, as for every recipe. The grid is computed from the calendar and the table of formats: a new release becomes
the last one and writes the recipe; existing archives stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_compat.corpus.recipes import Recipe
    from torch_compat.policy.policy import Policy

__all__ = ["asked_writers", "reduced"]


def asked_writers(policy: Policy, recipe: Recipe) -> tuple[str, ...]:
    """Return the versions of the releases whose manifests must have an entry for a recipe, oldest first."""
    if not recipe.reduced:
        return tuple(policy.corpus.writers)
    able = [version for version in policy.corpus.writers if Release(version) in recipe.writers]
    grid = {*reduced(policy, recipe.family, able), *recipe.besides}
    return tuple(sorted(grid.intersection(able), key=Release))


def reduced(policy: Policy, family: str, able: Iterable[str]) -> tuple[str, ...]:
    """Select, from the releases that can write a form, the first, the last, and the first of every version of the family's file format.

    Parameters:
        able: versions of releases of the corpus.
    """
    ordered = sorted(able, key=Release)
    chosen = {*ordered[:1], *ordered[-1:]}
    for entry in policy.formats:
        if entry.kind == "file-format" and entry.written_from is not None and family in (entry.families or (family,)):
            since = Release(entry.written_from.release)
            chosen.update([version for version in ordered if Release(version) >= since][:1])
    return tuple(version for version in ordered if version in chosen)
