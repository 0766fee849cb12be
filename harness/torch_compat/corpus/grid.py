"""Which releases have to write a recipe: all of the corpus, or the reduced grid of a generated recipe.

A recipe that walks through everything of a kind (each module class, each dtype) says ``WRITERS = "reduced"``. Then these write it, of
the corpus's writers between its SINCE and UNTIL:

* the first and the last of them;
* of every version of the file format that its family has, the first that writes this version;
* those of its ``BESIDES``, in which a form begins that it walks through.

The readers are all releases, as for every recipe. The grid is calculated from the calendar and the table of formats: a new release is
the last one and writes the recipe, and what was written before stays.
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
    """The versions of the releases of which the manifest has to say something of a recipe, oldest first."""
    if not recipe.reduced:
        return tuple(policy.corpus.writers)
    able = [version for version in policy.corpus.writers if Release(version) in recipe.writers]
    grid = {*reduced(policy, recipe.family, able), *recipe.besides}
    return tuple(sorted(grid.intersection(able), key=Release))


def reduced(policy: Policy, family: str, able: Iterable[str]) -> tuple[str, ...]:
    """Of the releases that can write a form: the first, the last, and the first of every version of the family's file format.

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
