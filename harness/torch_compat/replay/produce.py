"""Run recipes with a real release to produce fixtures with goldens. Existing fixtures are reproduced, never replaced."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch_compat.archive_files import measure
from torch_compat.corpus.corpus import FROZEN, read_frozen, write_frozen
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import (
    DIRECTORIES,
    MANIFEST,
    DirectoryFixture,
    Fixture,
    Manifest,
    NotWritable,
    read_manifest,
    same_but_for_varying,
    write_manifest,
)
from torch_compat.errors import CorpusError, Corrupt, ReaderError, Unsupported
from torch_compat.formats import identify
from torch_compat.formats.content import content_digest, same_content
from torch_compat.formats.facts import read_facts
from torch_compat.replay.last_bits import is_rounded
from torch_compat.values.compare import compare
from torch_compat.values.form import check_calls, check_result
from torch_compat.values.normalise import normalise, normalise_result
from torch_compat.writes import changing, put_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.corpus.recipes import Recipe
    from torch_compat.readers.torch_release import TorchRelease

__all__ = ["Produced", "produce"]

Entry = Fixture | NotWritable
OBJECT: Final = "model/object.pkl"
OF_THE_RECIPE: Final = frozenset({"not-written", "not-recordable", "wrong-family"})
"""Errors that concern a single recipe; the worker can still run the next recipe."""


@dataclass(frozen=True)
class Produced:
    """The result of producing.

    Attributes:
        added: new entries.
        reproduced: ids of recorded entries that the release reproduced exactly.
        rounded: ids of recorded entries whose numbers differ only in their last bits, as on another processor.
        differing: ids of recorded entries that the release did not reproduce, with the fields that differ. The recorded entries are kept.
    """

    added: tuple[Entry, ...]
    reproduced: tuple[str, ...]
    differing: tuple[tuple[str, tuple[str, ...]], ...]
    rounded: tuple[str, ...] = ()


def produce(
    corpus: Corpus,
    reader: TorchRelease,
    recipes: Iterable[Recipe],
    today: date,
    progress: Callable[[str], None] = lambda _: None,
    failures: dict[str, str] | None = None,
) -> Produced:
    """Run recipes with a release. New fixtures are added and frozen; recorded ones are produced again and compared.

    Parameters:
        failures: filled with the recipes that crashed while writing, took too long, wrote another family or a value that cannot
            be recorded, and why (used for builds); without it, the first such recipe ends the run.

    Raises:
        ReaderError: a recipe made the worker fail, crash while writing, or take too long, or its value cannot be recorded; nothing is
            recorded then.
        CorpusError: a frozen entry is missing, or a file exists where a new fixture belongs.
        WriteError: the tree cannot be written; nothing is recorded then.
    """
    release = reader.environment.version
    folder = corpus.folder / f"torch-{release}"
    recipes = tuple(recipes)
    known = _known(folder)
    _refuse_to_replace(corpus.folder, folder, [recipe for recipe in recipes if recipe.name not in known])
    writer = digest(reader.identity)[:12]
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        results: list[tuple[Recipe, Entry]] = []
        for recipe in recipes:
            progress(f"torch-{release}/{recipe.name}")
            try:
                results.append((recipe, _produce_one(recipe, reader, Path(scratch), writer, today)))
            except ReaderError as error:
                if failures is None or error.code not in OF_THE_RECIPE:
                    raise
                failures[recipe.name] = error.message
        with changing(corpus.folder.parent):
            known = _known(folder)  # again: another run may have recorded something meanwhile
            new = [(recipe, entry) for recipe, entry in results if recipe.name not in known]
            _refuse_to_replace(corpus.folder, folder, [recipe for recipe, _ in new])
            added = [entry for _, entry in new]
            if added:
                _record(corpus.folder, folder, Path(scratch), {writer: reader.identity}, added)
        reproduced: list[str] = []
        rounded: list[str] = []
        differing: list[tuple[str, tuple[str, ...]]] = []
        for recipe, entry in results:
            if recipe.name in known:
                differences = same_but_for_varying(known[recipe.name], entry)
                if differences == ["content"] and same_content(folder / recipe.file, Path(scratch) / recipe.file):
                    differences = []
                if differences and is_rounded(known[recipe.name], entry):
                    rounded.append(entry.id)
                elif differences:
                    differing.append((entry.id, tuple(differences)))
                else:
                    reproduced.append(entry.id)
    return Produced(tuple(added), tuple(reproduced), tuple(differing), tuple(rounded))


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    return read_manifest(path) if path.exists() else Manifest(folder.name.removeprefix("torch-"), {}, (), ())


def _known(folder: Path) -> dict[str, Entry]:
    """The manifest entries of a folder, keyed by recipe."""
    return {entry.recipe: entry for entry in _manifest(folder).entries}


def _refuse_to_replace(root: Path, folder: Path, new: list[Recipe]) -> None:
    """Refuse to produce entries that a manifest has lost: producing them again would hide the loss."""
    pins = _pins(root)
    for recipe in new:
        if f"{folder.name}/{recipe.name}" in pins:
            raise CorpusError(
                f"{folder.name}/{recipe.name} is pinned in {FROZEN}, but {folder.name}/{MANIFEST} does not list it",
                where=str(root / FROZEN),
                hint=f"restore {folder.name} from version control",
                code="missing-entry",
            )
        if (folder / recipe.file).exists():
            raise CorpusError(
                f"exists where {recipe.name!r} would be written, but {MANIFEST} does not list it",
                where=str(folder / recipe.file),
                hint="remove it, or restore the manifest from version control",
                code="orphan-file",
            )


def _pins(root: Path) -> dict[str, str]:
    frozen = root / FROZEN
    return read_frozen(frozen) if frozen.exists() else {}


def _record(root: Path, folder: Path, scratch: Path, writers: dict[str, dict[str, Any]], added: list[Entry]) -> None:
    manifest = _manifest(folder)
    for entry in added:
        if isinstance(entry, Fixture):
            put_copy(folder / entry.file, scratch / entry.file)
    fixtures = (*manifest.fixtures, *(entry for entry in added if isinstance(entry, Fixture)))
    not_writable = (*manifest.not_writable, *(entry for entry in added if isinstance(entry, NotWritable)))
    known = {**manifest.writers, **writers}
    write_manifest(folder / MANIFEST, replace(manifest, writers=known, fixtures=fixtures, not_writable=not_writable))
    write_frozen(root / FROZEN, _pins(root) | {entry.id: entry.pin for entry in added})


def _produce_one(recipe: Recipe, reader: TorchRelease, scratch: Path, writer: str, today: date) -> Entry:
    release = reader.environment.version
    path = scratch / recipe.file
    name = f"torch-{release}/{recipe.name}"
    reply = reader.request("produce", recipe=str(recipe.path), name=recipe.name, path=str(path), timeout_s=120)
    if "result" not in reply:
        raise ReaderError(f"{name} was not written: {reply}", code="not-written", hint="fix the recipe: writing must not crash")
    result = reply["result"]
    common = {
        "release": release,
        "recipe": recipe.name,
        "recipe_sha256": recipe.sha256,
        "writer": writer,
        "written": today.isoformat(),
    }
    if "not_writable" in result:
        error = result["not_writable"]
        message = normalise(error["message"], {str(path): "<archive>", str(scratch): "<folder>"})
        return NotWritable(**common, type=error["type"], message=message)
    if "not_recordable" in result:
        raise _not_recordable(name, result["not_recordable"])
    try:
        identity = identify(path)
        content = content_digest(path)
    except (Corrupt, Unsupported) as error:  # 1.9 to 1.11 write an empty archive when asked to backport to their own version
        message = normalise(str(error), {str(path): "<archive>", str(scratch): "<folder>"})
        return NotWritable(**common, type="torch_compat.NoArchive", message=f"it wrote a file that is not an archive: {message}")
    if identity.family != recipe.family:
        raise ReaderError(f"{name} declares family {recipe.family!r}, but wrote {identity.family!r}", code="wrong-family")
    if recipe.family == "package" and OBJECT not in read_facts(path).names:
        raise _not_recordable(name, f"it has no pickle {OBJECT}, which is all that readers load of a package")
    readback = reader.request("observe", family=recipe.family, path=str(path), calls=result["calls"], options={})
    golden = normalise_result(result["golden"], path)
    try:  # the same check as on reading: an invalid line would make the manifest of the whole folder unreadable
        check_calls(result["calls"])
        check_result(golden, "golden")
    except ValueError as error:
        raise _not_recordable(name, error) from error
    again = normalise_result(readback.get("result", readback), Path(path.name))
    measured = measure(path)
    entry = Fixture(
        **common,
        file=recipe.file,
        sha256=measured.sha256,
        size=measured.size,
        content=content,
        family=identity.family,
        container=identity.container,
        versions=identity.versions,
        operators=list(recipe.operators),
        calls=result["calls"],
        golden=golden,
        readback="same" if compare(golden, again).result == "same" else again,
    )
    return DirectoryFixture(**vars(entry), files=measured.files) if recipe.family in DIRECTORIES else entry


def _not_recordable(name: str, why: object) -> ReaderError:
    return ReaderError(
        f"{name} cannot be recorded: {why}",
        code="not-recordable",
        hint="use values that a manifest can hold: numbers, texts, tensors, and containers of them with little nesting",
    )
