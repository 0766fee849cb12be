"""Trees of builds: what a build wrote, and how it was observed, outside the corpus.

A folder holds one tree for each build: ``torch-2.16.0.dev20261120+cpu-1a2b3c4d``, named by its version and the digest of its files::

    build.json             which build this is, and the day of this tree
    fixtures/              what the build wrote, as in a corpus: manifest, goldens, pins
    reports/observations/  what the build did with fixtures, recorded as for releases
    operators.txt          its operators, one per line
    candidate.json         the last report of ``torch-compat candidate``
    reproduce/             plain Python programs that reproduce its differences without torch-compat

A tree is evidence of the day on which it was made. After some days it is no longer used.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import BuildError, CorpusError, UsageError
from torch_compat.readers.environments import cache_folder, remove_environment
from torch_compat.releases.release import Release
from torch_compat.words import count_of
from torch_compat.writes import changing, put, remove

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.readers.builds import Build

__all__ = ["KEPT_DAYS", "BuildTree", "builds_folder", "earlier_trees", "expire", "open_tree", "trees_at", "trees_in"]

KEPT_DAYS: Final = 14
"""The same as the forward compatibility window: an older nightly is not evidence for what that window promises."""
STATE: Final = "build.json"
REPORT: Final = "candidate.json"
SCHEMA_VERSION: Final = 1
DIGITS: Final = 8


@dataclass(frozen=True)
class BuildTree:
    """The tree of one build.

    Attributes:
        path: its folder.
        release: the version that the build reports, with its local part.
        day: the build's day.
        digest: the digest of the build's files.
        made: the day on which it was last observed.
    """

    path: Path
    release: Release
    day: dt.date
    digest: str
    made: dt.date

    @property
    def name(self) -> str:
        """The name of the build as a reader."""
        return f"torch-{self.release}"

    @property
    def fixtures(self) -> Path:
        """The folder with the archives that the build wrote."""
        return self.path / "fixtures"

    @property
    def observations(self) -> Path:
        """The folder of the build's observations."""
        return self.path / "reports" / "observations"

    def age(self, today: dt.date) -> int:
        """Days since the build was observed."""
        return (today - self.made).days

    def report(self) -> dict[str, Any] | None:
        """The last report about the build; None if there is none.

        Raises:
            CorpusError: the report cannot be read.
        """
        path = self.path / REPORT
        if not path.is_file():
            return None
        try:
            report = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise CorpusError(f"cannot be read: {error}", where=str(path), hint="remove the tree", code="bad-tree") from error
        if not isinstance(report, dict) or not isinstance(report.get("new"), list):
            raise CorpusError(
                "is not a report from torch-compat candidate", where=str(path), hint="remove the tree", code="bad-tree"
            )
        return report


def builds_folder() -> Path:
    """The default folder for the trees of builds."""
    return cache_folder() / "builds"


def open_tree(folder: Path, build: Build, today: dt.date, shard: tuple[int, int] | None = None) -> BuildTree:
    """Return the tree of a build in a folder, creating it if it is missing.

    Parameters:
        shard: the part and the number of parts, if it is the tree of a part; each part has its own tree.

    Raises:
        BuildError: the folder is inside the corpus, or its tree belongs to another build.
        WriteError: the tree cannot be written.
    """
    part = f"-{shard[0]}-of-{shard[1]}" if shard is not None else ""
    path = folder.absolute() / f"{build.reader}-{build.digest[:DIGITS]}{part}"
    for parent in (folder.absolute(), *folder.absolute().parents):
        if (parent / "policies").is_dir() and (parent / "fixtures" / "FROZEN").is_file():
            raise BuildError(
                "files from a build must not be written to a corpus, but this directory is inside a corpus",
                where=str(folder),
                hint=f"use --into with a directory outside {parent}",
                code="build-in-corpus",
            )
    if (path / STATE).is_file() and (there := _read(path)).digest != build.digest:
        raise BuildError(f"contains results from another build of {there.name}", where=str(path), code="twin-builds")
    state = {
        "schema_version": SCHEMA_VERSION,
        "torch": str(build.release),
        "day": build.day.isoformat(),
        "digest": build.digest,
        "variant": build.variant,
        "made": today.isoformat(),
    }
    with changing(path):
        put(path / STATE, json.dumps(state, indent=2) + "\n")
    return BuildTree(path, build.release, build.day, build.digest, today)


def trees_in(folder: Path) -> list[BuildTree]:
    """Every tree of a folder, by the build's day and version.

    Raises:
        CorpusError: a tree does not state which build it belongs to.
    """
    results = [_read(path.parent) for path in sorted(folder.glob(f"torch-*/{STATE}"))]
    return sorted(results, key=lambda tree: (tree.day, tree.release, tree.made, tree.digest))


def trees_at(folder: Path) -> list[BuildTree]:
    """The tree at a folder, or else every tree in the folder.

    Raises:
        UsageError: the folder is not a tree and holds none.
        CorpusError: a tree does not state which build it belongs to.
    """
    result = [_read(folder)] if (folder / STATE).is_file() else trees_in(folder)
    if not result:
        raise UsageError(
            "contains no results from a build",
            where=str(folder),
            hint=f"use a directory with {STATE}, or the --into directory of a `torch-compat candidate` run",
            code="no-tree",
        )
    return result


def expire(folder: Path, today: dt.date, days: int = KEPT_DAYS) -> list[BuildTree]:
    """Remove the trees of a folder that are older than ``days``; return the removed trees."""
    old = [tree for tree in trees_in(folder) if tree.age(today) > days]
    for tree in old:
        remove(tree.path / STATE)  # first, so that an interrupted removal leaves nothing that looks like evidence
        remove_environment(tree.path)
    return old


def _read(path: Path) -> BuildTree:
    try:
        state = json.loads((path / STATE).read_bytes())
        day, result = dt.date.fromisoformat(state["day"]), dt.date.fromisoformat(state["made"])
        return BuildTree(path, Release(state["torch"]), day, str(state["digest"]), result)
    except (OSError, ValueError, KeyError, TypeError, UsageError) as error:
        raise CorpusError(
            f"does not record which build this is: {type(error).__name__}: {error}",
            where=str(path / STATE),
            hint=f"remove {path}",
            code="bad-tree",
        ) from error


def earlier_trees(folders: list[Path], tree: BuildTree, today: dt.date, keep: int) -> tuple[list[BuildTree], list[str]]:
    """The earlier builds of some folders that still count, and notes on the others."""
    results: list[BuildTree] = []
    messages: list[str] = []
    for other in {item.path: item for folder in folders for item in trees_in(folder)}.values():
        if other.path == tree.path or (other.digest == tree.digest and other.release.public == tree.release.public):
            continue  # this tree, or another shard of it
        if other.release == tree.release and str(other.release) == str(tree.release) and other.digest != tree.digest:
            messages.append(
                f"{other.path.name} is another build that also reports {tree.release}; it is not compared with this one"
            )
        elif other.age(today) > keep:
            messages.append(
                f"{other.name} was observed {count_of(other.age(today), 'day')} ago, more than {keep}: it does not count"
            )
        elif other.day <= tree.day:
            results.append(other)
    return sorted(results, key=lambda item: (item.day, item.release)), messages
