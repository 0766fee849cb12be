"""The corpus of a root: recipes, manifests, and the integrity of every file.

``fixtures/FROZEN`` pins every manifest entry (and with it every archive's hash): one line ``<digest>  torch-1.5.1/div`` each.
Lines are added when something is produced and never change. This also applies to synthetic fixtures.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from torch_compat.archive_files import measure
from torch_compat.corpus.goldens import GOLDENS, Goldens
from torch_compat.corpus.manifest import (
    MANIFEST,
    SYNTHETIC,
    DirectoryFixture,
    Fixture,
    Manifest,
    NotWritable,
    Synthetic,
    read_manifest,
    release_folder,
)
from torch_compat.corpus.recipes import read_deprecation, read_probe, read_recipe
from torch_compat.errors import CorpusError, UsageError
from torch_compat.places import inside, is_plain, read_whole
from torch_compat.releases.release import Release
from torch_compat.words import count_of, did_you_mean, similar_names, suggest
from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from torch_compat.corpus.recipes import DeprecationFile, ProbeFile, Recipe

__all__ = ["FROZEN", "Corpus", "CorpusDamage", "load_corpus", "load_deprecations", "read_frozen", "write_frozen"]

FROZEN = "FROZEN"
MAKER = frozenset({"make.py", "README.md"})  # the program that made the synthetic fixtures, and their description
Read = TypeVar("Read")


@dataclass(frozen=True)
class CorpusDamage:
    """One deviation of the corpus from its recorded state.

    Attributes:
        kind: ``unreadable-manifest``, ``missing-file``, ``outside`` (a link that leads out of the corpus, or is not listed),
            ``wrong-size``, ``wrong-hash``, ``orphan-file``, ``not-frozen``, ``changed-entry``, ``missing-entry``, ``unreadable-recipe``,
            ``unreadable-probe``, ``unreadable-deprecation`` or ``unreadable-pins``.
        subject: the fixture or file, relative to ``fixtures/``.
        detail: what was found and what was expected.
    """

    kind: str
    subject: str
    detail: str


@dataclass(frozen=True)
class Corpus:
    """Everything under ``fixtures/`` that rules use."""

    folder: Path
    recipes: tuple[Recipe, ...]
    probes: tuple[ProbeFile, ...]
    manifests: tuple[Manifest, ...]
    damage: tuple[CorpusDamage, ...]
    deprecations: tuple[DeprecationFile, ...] = ()

    @cached_property
    def fixtures(self) -> dict[str, Fixture]:
        """Every fixture, by id."""
        return {fixture.id: fixture for manifest in self.manifests for fixture in manifest.fixtures}

    @cached_property
    def synthetic(self) -> tuple[Synthetic, ...]:
        """Every fixture that no release wrote, sorted by name."""
        return tuple(fixture for fixture in self.fixtures.values() if isinstance(fixture, Synthetic))

    @cached_property
    def entries(self) -> tuple[Fixture | NotWritable, ...]:
        """Every manifest entry, sorted by release and recipe."""
        return tuple(entry for manifest in self.manifests for entry in manifest.entries)

    @cached_property
    def not_writable(self) -> dict[str, NotWritable]:
        """Every recorded inability to write a recipe, by id."""
        return {entry.id: entry for manifest in self.manifests for entry in manifest.not_writable}

    def __repr__(self) -> str:
        return f"<corpus of {count_of(len(self.fixtures), 'fixture')} in {self.folder}>"  # the generated repr takes megabytes and hides errors next to it

    def path(self, fixture: Fixture) -> Path:
        """Return the path of a fixture's archive, a file or a directory, as passed to a reader.

        Raises:
            CorpusError: its name or a link leads out of the corpus.
        """
        folder = release_folder(fixture.release)
        return inside(self.folder, f"{folder}/{fixture.file}", where=f"{self.folder / folder / MANIFEST}, {fixture.recipe}")

    def damage_of(self, fixture: Fixture) -> CorpusDamage | None:
        """Return the damage of a fixture's archive, if any. Observing a damaged archive would record a wrong fact."""
        subject = f"{release_folder(fixture.release)}/{fixture.file}"
        return next(
            (damage for damage in self.damage if damage.subject == subject or damage.subject.startswith(f"{subject}/")), None
        )

    def named(self, names: Sequence[str]) -> list[Fixture]:
        """Return fixtures by id; all if no name is given.

        Raises:
            UsageError: a fixture does not exist.
        """
        for name in names:
            if name in self.not_writable:
                why = self.not_writable[name].message.splitlines()[0]
                raise UsageError(f"{name} does not exist: this release cannot write the recipe ({why})", code="not-writable")
            if name not in self.fixtures:
                raise UsageError(f"there is no fixture {name!r}", hint=self._instead_of(name), code="unknown-fixture")
        return [self.fixtures[name] for name in names] if names else list(self.fixtures.values())

    def of_recipe(self, recipe: str, fixtures: Iterable[Fixture]) -> list[Fixture]:
        """Return the fixtures that a recipe wrote.

        Raises:
            UsageError: there are none.
        """
        results = [fixture for fixture in fixtures if fixture.recipe == recipe]
        if not results:
            known = {fixture.recipe for fixture in self.fixtures.values()}
            message = f"no fixture was written by a recipe named {recipe!r}"
            otherwise = f"to write one: torch-compat produce torch-X.Y.Z --recipe {recipe}"
            if not (is_plain(recipe) and inside(self.folder, f"recipes/{recipe}.py").is_file()):
                otherwise = "fixtures/recipes has no such recipe, either: `torch-compat new recipe` creates one"
            raise UsageError(message, hint=suggest(recipe, sorted(known), otherwise), code="unknown-recipe")
        return results

    def _instead_of(self, name: str) -> str:
        """Return what to do about an unknown fixture: its recipe may not have been run."""
        release, slash, recipe = name.partition("/")
        if slash and is_plain(recipe) and inside(self.folder, f"recipes/{recipe}.py").is_file():
            return f"the release has not run the recipe: torch-compat produce {release} --recipe {recipe}"
        return did_you_mean(self._similar(name))

    def _similar(self, name: str) -> list[str]:
        """Return the fixtures that a name may stand for; for the name of a recipe, its newest fixtures."""
        if "/" in name:
            return similar_names(name, self.fixtures)
        recipes = {fixture.recipe for fixture in self.fixtures.values() if fixture.release != SYNTHETIC}
        meant = name if name in recipes else next(iter(similar_names(name, sorted(recipes), most=1)), None)
        written = [fixture for fixture in self.fixtures.values() if fixture.recipe == meant and fixture.release != SYNTHETIC]
        return [fixture.id for fixture in sorted(written, key=lambda fixture: Release(fixture.release), reverse=True)]


def load_corpus(folder: Path) -> Corpus:
    """Read a corpus and verify every byte of it. Damage is reported as a finding, not raised.

    Parameters:
        folder: ``fixtures/`` of a root.
    """
    damage: list[CorpusDamage] = []
    manifests = []
    goldens = Goldens(folder)
    for name, error in goldens.unreadable.items():
        damage.append(CorpusDamage("unreadable-manifest", name, str(error).replace(f"{folder}/", "")))
    for release in sorted(path for path in (*folder.glob("torch-*"), folder / SYNTHETIC) if path.is_dir()):
        try:
            manifest = read_manifest(inside(folder, f"{release.name}/{MANIFEST}"), goldens)
        except CorpusError as error:
            detail = str(error).replace(f"{folder}/", "")  # the report contains no local paths
            damage.append(CorpusDamage("unreadable-manifest", f"{release.name}/{MANIFEST}", detail))
            continue
        manifests.append(manifest)
        damage.extend(_files(folder, release, manifest))
    recipes = _programs(folder, "recipe", read_recipe, damage)
    probes = _programs(folder, "probe", read_probe, damage)
    deprecations = _programs(folder, "deprecation", read_deprecation, damage)
    damage.extend(_pins(folder, manifests))
    return Corpus(folder, recipes, probes, tuple(manifests), tuple(damage), deprecations)


def load_deprecations(folder: Path) -> Corpus:
    """Load only the deprecation probes, without checking any archive."""
    damage: list[CorpusDamage] = []
    deprecations = _programs(folder, "deprecation", read_deprecation, damage)
    return Corpus(folder, (), (), (), tuple(damage), deprecations)


def _programs(folder: Path, kind: str, read: Callable[[Path], Read], damage: list[CorpusDamage]) -> tuple[Read, ...]:
    """Read every recipe, probe or deprecation probe, sorted by name; an unreadable file does not affect the others."""
    results = []
    for path in sorted(folder.glob(f"{kind}s/*.py")):
        try:
            results.append(read(inside(folder, f"{kind}s/{path.name}")))
        except CorpusError as error:
            detail = str(error).replace(f"{folder}/", "")
            how = "unfinished" if error.code == "unfinished" else "unreadable"
            damage.append(CorpusDamage(f"{how}-{kind}", f"{kind}s/{path.name}", detail))
    return tuple(results)


def _files(folder: Path, release: Path, manifest: Manifest) -> list[CorpusDamage]:
    damage = []
    listed = {MANIFEST, GOLDENS, *(MAKER if manifest.release == SYNTHETIC else ())}
    for fixture in manifest.fixtures:
        listed.add(fixture.file)
        subject = f"{release.name}/{fixture.file}"
        try:
            path = inside(folder, subject, where=f"{release.name}/{MANIFEST}, {fixture.recipe}")
        except CorpusError as error:
            damage.append(CorpusDamage("outside", subject, str(error)))
            continue
        listed.update(f"{fixture.file}/{name}" for name in _pinned(fixture) if name)
        damage.extend(_archive(path, subject, fixture))
    for name, link in sorted(_found(os.fspath(release), "")):
        if name not in listed:
            what = "is a link that is not listed in the manifest" if link else "is not listed in the manifest"
            damage.append(
                CorpusDamage("outside" if link else "orphan-file", f"{release.name}/{name}", what)
            )  # `produce` would write through it
    return damage


def _archive(path: Path, subject: str, fixture: Fixture) -> Iterator[CorpusDamage]:
    """Yield how the files of an archive differ from their record. Unlisted files are found elsewhere."""
    pinned = _pinned(fixture)
    if isinstance(fixture, DirectoryFixture) and (path.is_symlink() or not path.is_dir()):
        what = "is not a directory" if os.path.lexists(path) else "does not exist"
        yield CorpusDamage("missing-file", subject, f"is listed in the manifest, but {what}")
        return
    size = 0
    for name in pinned:
        file, about = (path / name, f"{subject}/{name}") if name else (path, subject)
        try:
            there = file.lstat() if name else file.stat()
        except OSError:
            there = None
        if there is None or not stat.S_ISREG(there.st_mode):
            what = "is not a regular file" if os.path.lexists(file) else "does not exist"
            yield CorpusDamage("missing-file", about, f"is listed in the manifest, but {what}")
            return
        size += there.st_size
    if size != fixture.size:  # checked first: a file far larger than its listed size is not read
        yield CorpusDamage("wrong-size", subject, f"has {count_of(size, 'byte')}, expected {fixture.size}")
        return
    for name, expected in pinned.items():
        file, about = (path / name, f"{subject}/{name}") if name else (path, subject)
        if (result := measure(file).sha256) != expected:
            yield CorpusDamage("wrong-hash", about, f"has SHA-256 {result[:12]}…, expected {expected[:12]}…")


def _pinned(fixture: Fixture) -> dict[str, str]:
    """Return the SHA-256 of each file of an archive by name; the name is empty if the archive is a single file."""
    return fixture.files if isinstance(fixture, DirectoryFixture) else {"": fixture.sha256}


def _found(folder: str, above: str) -> Iterator[tuple[str, bool]]:
    """Walk a folder recursively; yield each relative name and whether it is a link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _found(entry.path, f"{above}{entry.name}/")
            else:
                yield f"{above}{entry.name}", entry.is_symlink()


def _pins(folder: Path, manifests: list[Manifest]) -> list[CorpusDamage]:
    entries = {entry.id: entry.pin for manifest in manifests for entry in manifest.entries}
    try:
        frozen = read_frozen(inside(folder, FROZEN))
    except CorpusError as error:
        if error.code != "missing-file":
            return [CorpusDamage("unreadable-pins", FROZEN, str(error).replace(f"{folder}/", ""))]
        return (
            [
                CorpusDamage(
                    "missing-file",
                    FROZEN,
                    f"file not found, but the manifests have {count_of(len(entries), 'entry', 'entries')} to pin",
                )
            ]
            if entries
            else []
        )
    damage = []
    for name, pin in sorted(entries.items()):
        if name not in frozen:
            damage.append(CorpusDamage("not-frozen", name, f"is in the manifest, but not in {FROZEN}"))
        elif frozen[name] != pin:
            damage.append(CorpusDamage("changed-entry", name, f"its manifest entry does not match the one pinned in {FROZEN}"))
    damage.extend(
        CorpusDamage("missing-entry", name, f"is pinned in {FROZEN}, but not listed in any manifest")
        for name in sorted(frozen.keys() - entries.keys())
    )
    return damage


def read_frozen(path: Path) -> dict[str, str]:
    """Read the pins by fixture id.

    Raises:
        CorpusError: the file does not exist, is too large, or a line is not a pin.
    """
    if not path.is_file():
        raise CorpusError("file not found", where=str(path), code="missing-file")
    pins: dict[str, str] = {}
    try:
        lines = read_whole(path).decode("ascii").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", where=str(path), code="unreadable-file") from error
    if lines.pop():
        raise CorpusError("does not end with a newline: its last line may be cut off", where=str(path), code="not-whole")
    for number, line in enumerate(lines, 1):
        pin, gap, name = line.partition("  ")
        if not gap or len(pin) != 64 or name in pins or not all(map(is_plain, name.split("/"))):
            raise CorpusError(
                "does not have the form '<digest>  <fixture>', or repeats a fixture", where=f"{path}:{number}", code="bad-line"
            )
        pins[name] = pin
    return pins


def write_frozen(path: Path, pins: dict[str, str]) -> None:
    """Write the pins, sorted by fixture."""
    put(path, "".join(f"{pin}  {name}\n" for name, pin in sorted(pins.items())))
