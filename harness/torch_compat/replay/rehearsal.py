"""Compare two trees to which the same release was added, reporting every difference except those that may vary.

Policies (apart from waivers), surveys and everything generated must be equal byte for byte. Archives of the release must be equal in
content, except for the last bits of what a recipe computes: the same machine code rounds differently on another processor. The fields in
:data:`torch_compat.corpus.manifest.VARYING` may differ, and with them the pins and the keys of cells; so may the day of an
observation, what the release reports about its machine, and where a warning appears that a process issues only once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from torch_compat.corpus.corpus import FROZEN, read_frozen
from torch_compat.corpus.goldens import GOLDENS
from torch_compat.corpus.manifest import MANIFEST, Fixture, read_manifest, release_folder, same_but_for_varying
from torch_compat.corpus.recorded import read_recorded
from torch_compat.corpus.surveys import RELEASES, surveyed_releases
from torch_compat.formats.content import same_content
from torch_compat.policy.load import load_policy
from torch_compat.replay.last_bits import LAST_BITS, is_rounded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from torch_compat.corpus.manifest import NotWritable
    from torch_compat.corpus.observations import Observation, ObservedReader
    from torch_compat.policy.sayings import KnownMessage

__all__ = ["DECIDED", "differences", "rounded_elsewhere"]

COMPARED: Final = ("README.md", "fixtures", "policies", "reports")
PASSED_OVER: Final = ("reports/latest/", "policies/torch/waivers/", "policies/torch/operator_waivers/")
DECIDED: Final = "policies/torch"
"""Folders that contain human decisions. There, admitting a release changes only the calendar and the generated files."""
OBSERVATIONS: Final = "reports/observations"
TOLERANCES: Final = "reports/tolerances.md"
"""For each recipe, how much results may differ in their last bits."""


def differences(expected: Path, path: Path, release: str) -> Iterator[str]:
    """Yield every difference between two roots that is not allowed, one line each: the file, and what differs.

    Parameters:
        expected: the existing root.
        path: the root to which a release was added again.
        release: that release, ``2.15.0``.
    """
    ours, theirs = _files(expected), _files(path)
    folder = f"fixtures/{release_folder(release)}/"
    rounded = rounded_elsewhere(expected, path, release)
    archives: dict[str, None] = {}  # those with a file that differs
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield f"{name}: is missing"
        elif name not in ours:
            yield f"{name}: is new"
        elif name.startswith(f"{OBSERVATIONS}/"):
            pass  # below, as observations
        elif name == f"{folder}{MANIFEST}":
            yield from _manifest(name, ours[name], theirs[name], {fixture.recipe for fixture in rounded})
        elif name == f"{folder}{GOLDENS}":
            pass  # its values are looked up by the manifest, and compared with it
        elif name == f"fixtures/{FROZEN}":
            yield from _pins(name, ours[name], theirs[name], release)
        elif name == TOLERANCES:
            names = [fixture.recipe for fixture in rounded]
            if _without_rows(ours[name], names) != _without_rows(theirs[name], names):
                yield f"{name}: {_first_line(ours[name], theirs[name])}"
        elif name == f"fixtures/{RELEASES}":
            yield from _surveyed(name, expected, path, release)
        elif ours[name].read_bytes() != theirs[name].read_bytes():
            if not name.startswith(folder):
                yield f"{name}: {_first_line(ours[name], theirs[name])}"
            else:
                archives["/".join(name.split("/")[:3])] = None
    for archive in archives:
        mine, other = (root / archive for root in (expected, path))
        if archive not in {folder + fixture.file for fixture in rounded} and not same_content(mine, other):
            yield f"{archive}: the contents of the archive differ"
    once = tuple(warning for warning in load_policy(expected / DECIDED).warnings if warning.once)
    yield from _observations(_readers(expected, once), _readers(path, once), release, {fixture.recipe for fixture in rounded})


def rounded_elsewhere(expected: Path, path: Path, release: str) -> list[Fixture]:
    """The fixtures of a release whose goldens differ only in the last bits of floating-point numbers, and in no field but their content.

    The contents of such an archive are compared by what it loads, since its digest covers the bits. Its readers, and other writers of its
    recipe, may or may not see the same bits.
    """
    ours, theirs = (_fixtures(root, release) for root in (expected, path))
    return [item for recipe, item in ours.items() if recipe in theirs and is_rounded(item, theirs[recipe])]


def _fixtures(root: Path, release: str) -> dict[str, Fixture]:
    path = root / "fixtures" / release_folder(release) / MANIFEST
    return {fixture.recipe: fixture for fixture in read_manifest(path).fixtures} if path.is_file() else {}


def _files(root: Path) -> dict[str, Path]:
    paths = (path for name in COMPARED for path in ((root / name), *(root / name).rglob("*")))
    named = {path.relative_to(root).as_posix(): path for path in paths if path.is_file() and "__pycache__" not in path.parts}
    return {name: path for name, path in named.items() if not name.startswith(PASSED_OVER)}


def _first_line(old: Path, new: Path) -> str:
    """A short description of the first line that differs."""
    lines = [path.read_bytes().splitlines() for path in (old, new)]
    at = next((at for at, (item, other) in enumerate(zip(*lines, strict=False)) if item != other), min(map(len, lines)))
    was, is_ = (repr(some[at].decode("utf-8", "replace"))[:120] if at < len(some) else "the end" for some in lines)
    return f"line {at + 1} is {is_}, expected {was}"


def _manifest(name: str, old: Path, new: Path, rounded: Collection[str]) -> Iterator[str]:
    ours, theirs = ({entry.recipe: entry for entry in read_manifest(path).entries} for path in (old, new))
    for recipe in sorted(ours.keys() | theirs.keys()):
        if recipe not in theirs or recipe not in ours:
            yield f"{name}: {recipe} {'is missing' if recipe in ours else 'is new'}"
        elif (fields := same_but_for_varying(ours[recipe], theirs[recipe])) and recipe not in rounded:
            if fields == ["content"] and _exported_again(old.parent, ours[recipe], new.parent, theirs[recipe]):
                continue
            yield f"{name}: {recipe} differs in {', '.join(fields)}"


def _exported_again(folder: Path, entry: Fixture | NotWritable, other_folder: Path, other_entry: Fixture | NotWritable) -> bool:
    """Whether two archives differ, but only in what an exported program says about the process that exported it."""
    if not (isinstance(entry, Fixture) and isinstance(other_entry, Fixture)):
        return False
    archive, other = folder / entry.file, other_folder / other_entry.file
    return archive.is_file() and archive.read_bytes() != other.read_bytes() and same_content(archive, other)


def _pins(name: str, old: Path, new: Path, release: str) -> Iterator[str]:
    """For the release's own entries only the names are compared: a pin covers the day and the writer."""
    ours, theirs = (
        {entry: "" if entry.startswith(f"{release_folder(release)}/") else pin for entry, pin in read_frozen(path).items()}
        for path in (old, new)
    )
    for entry in sorted(ours.keys() | theirs.keys()):
        if ours.get(entry) != theirs.get(entry):
            yield f"{name}: {entry} is pinned differently, or in only one of the two"


def _surveyed(name: str, expected: Path, path: Path, release: str) -> Iterator[str]:
    ours, theirs = (surveyed_releases(root / "fixtures") for root in (expected, path))
    for item in sorted(ours.keys() | theirs.keys()):
        if item == release and item in ours and item in theirs:
            continue
        if ours.get(item) != theirs.get(item):
            yield f"{name}: {item} differs"


def _readers(root: Path, once: Collection[KnownMessage]) -> dict[str, ObservedReader]:
    """The recorded readers, without warnings that a process issues only once: where they appear depends on what was loaded before."""
    result = read_recorded(root / OBSERVATIONS).readers
    return {
        name: replace(reader, cells={key: _without(once, cell) for key, cell in reader.cells.items()})
        for name, reader in result.items()
    }


def _without(once: Collection[KnownMessage], cell: Observation) -> Observation:
    heard = tuple(pair for pair in cell.warnings if not any(message.said(pair[1]) for message in once))
    return cell if heard == cell.warnings else replace(cell, warnings=heard)


def _without_rows(path: Path, recipes: Collection[str]) -> list[str]:
    """The lines of a document without the rows of tables that begin with a recipe."""
    rows = tuple(f"| {recipe} |" for recipe in recipes)
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(rows)]


def _observations(
    ours: dict[str, ObservedReader], theirs: dict[str, ObservedReader], release: str, rounded: Collection[str]
) -> Iterator[str]:
    for name in sorted(ours.keys() & theirs.keys()):
        item, other = ours[name], theirs[name]
        if item.release != release and item.identity != other.identity:
            yield f"{name}: the answer came from a different reader"
        own = release_folder(release) if item.release != release else ""
        for kind in ("cells", "probes", "deprecations"):
            before, after = (_keyless(getattr(reader, kind), own, anew=reader.release == release) for reader in (item, other))
            for key in sorted(before.keys() | after.keys()):
                if before.get(key) != after.get(key):
                    if kind == "cells" and _told_apart_by_bits(before.get(key), after.get(key), rounded):
                        continue
                    what = " ".join(key) if isinstance(key, tuple) else key
                    state = "is missing" if key not in after else "is new" if key not in before else "differs"
                    yield f"{name}: {kind}: {what} {state}"


def _told_apart_by_bits(observation: Observation | None, other: Observation | None, rounded: Collection[str]) -> bool:
    """Whether two observations of a recipe that another processor rounds differently differ only in the last bits of values.

    If there are more differences than an observation lists, their kinds are known, and the listed ones stand for the others.
    """
    if observation is None or other is None or observation.fixture.partition("/")[2] not in rounded:
        return False
    plain: dict[str, Any] = {
        "key": "", "result": "same", "differences": (), "extent": (), "count": 0, "digest": "", "departures": (),
    }  # fmt: skip
    alike = replace(observation, **plain) == replace(other, **plain) and {observation.result, other.result} <= {"same", "differs"}
    kinds = {summed["kind"] for cell in (observation, other) for summed in cell.extent}
    shown = (difference for cell in (observation, other) for difference in cell.differences)
    return alike and kinds <= {"value"} and all(difference.facts["max_ulp"] <= LAST_BITS for difference in shown)


def _keyless(entries: dict[Any, Any], folder: str, *, anew: bool) -> dict[Any, Any]:
    """Observations without the keys that identify their bytes or machine, where these may differ."""
    return {
        key: replace(entry, key="") if anew or (isinstance(key, tuple) and key[0].startswith(f"{folder}/")) else entry
        for key, entry in entries.items()
    }
