"""Which releases write and read the corpus, from what ``[corpus]`` says and the calendar.

Standard library only, on tables as TOML gives them: noxfile.py runs this very file without installing the package, so that
its sessions and the policy can never speak of different releases.

With ``lines = "newest-patch"``, the corpus holds the newest patch of every minor line as of the day ``settled``, every
release after that day, and those of ``besides``. So an entry in the calendar is all that a new release takes, and nothing
ever leaves: when 2.15.1 comes, 2.15.0 stays a writer and a reader. It could have been "the newest patch of every line" on
any day; then a patch would relieve the release before it of new fixtures, and its evidence, which is frozen, would go
stale without anybody being told. What it costs is one more row and column for each patch release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["corpus_scope"]


def corpus_scope(corpus: Mapping[str, Any], releases: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Writers and readers, as versions.

    Parameters:
        corpus: the table ``[corpus]``, either with ``writers`` and ``readers``, or with ``lines``, ``settled`` and ``besides``.
        releases: the tables ``[[release]]``.
    """
    if corpus.get("lines") is None:
        return tuple(corpus["writers"]), tuple(corpus["readers"])
    settled = corpus["settled"]
    newest: dict[tuple[int, ...], tuple[int, ...]] = {}
    chosen = {_numbers(version) for version in corpus.get("besides") or ()}
    for release in releases:
        numbers = _numbers(release["version"])
        if release["date"] > settled:
            chosen.add(numbers)
        else:
            newest[numbers[:2]] = max(numbers, newest.get(numbers[:2], numbers))
    versions = tuple(".".join(map(str, numbers)) for numbers in sorted(chosen.union(newest.values())))
    return versions, versions


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
