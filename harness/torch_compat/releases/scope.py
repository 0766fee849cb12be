"""Determines which releases write and read the corpus, from the ``[policy]`` table and the calendar.

Works on raw TOML tables without dependencies: noxfile.py calls the same function without installing the package, so that its sessions and
the policy always use the same releases.

With ``lines = "newest-patch"``, the corpus consists of the newest patch of every minor version as of the date ``settled``, every release
after that date, and those in ``besides``. A new release therefore only needs an entry in the calendar, and no release is ever dropped:
when 2.15.1 is released, 2.15.0 remains a writer and a reader. With "the newest patch of every minor version" on any day, a patch would
exempt the previous release from new fixtures, and its frozen evidence would silently become stale. The cost is one more row and column for
each patch release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["corpus_scope"]


def corpus_scope(corpus: Mapping[str, Any], releases: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the versions of the writers and of the readers.

    Parameters:
        corpus: the ``[policy]`` table, with either ``writers`` and ``readers``, or ``lines``, ``settled`` and ``besides``.
        releases: the ``[[release]]`` tables.
    """
    if corpus.get("lines") is None:
        return tuple(corpus["writers"]), tuple(corpus["readers"])
    settled = corpus["settled"]
    newest: dict[str, Release] = {}
    chosen = set(map(Release, corpus.get("besides") or ()))
    for table in releases:
        release = Release(table["version"])
        if table["date"] > settled:
            chosen.add(release)
        else:
            newest[release.line] = max(release, newest.get(release.line, release))
    versions = tuple(map(str, sorted(chosen.union(newest.values()))))
    return versions, versions
