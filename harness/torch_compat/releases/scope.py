"""Which releases write and read the corpus, from what ``[policy]`` says and the calendar.

Without any dependency, on tables as TOML gives them: noxfile.py asks this very function without installing the package, so that
its sessions and the policy can never speak of different releases.

With ``lines = "newest-patch"``, the corpus holds the newest patch of every minor line as of the day ``settled``, every
release after that day, and those of ``besides``. So an entry in the calendar is all that a new release takes, and nothing
ever leaves: when 2.15.1 comes, 2.15.0 stays a writer and a reader. It could have been "the newest patch of every line" on
any day; then a patch would relieve the release before it of new fixtures, and its evidence, which is frozen, would go
stale without anybody being told. What it costs is one more row and column for each patch release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["corpus_scope"]


def corpus_scope(corpus: Mapping[str, Any], releases: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Writers and readers, as versions.

    Parameters:
        corpus: the table ``[policy]``, either with ``writers`` and ``readers``, or with ``lines``, ``settled`` and ``besides``.
        releases: the tables ``[[release]]``.
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
