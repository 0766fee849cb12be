"""Manifests: what each release wrote, and what it computed on that day. One file per release, frozen once merged."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.corpus.lines import digest, dump, read_lines, write_lines
from harness.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EXTENSIONS", "MANIFEST", "Fixture", "Manifest", "NotWritable", "read_manifest", "write_manifest"]

MANIFEST = "manifest.jsonl"
EXTENSIONS = {"torch-save": ".pt", "torchscript": ".pt", "mobile": ".ptl", "package": ".pt", "export": ".pt2"}
_TYPES: dict[str, type | tuple[type, ...]] = {  # of an entry's values; all others are texts
    "size": int,
    "versions": dict,
    "operators": list,
    "calls": list,
    "golden": dict,
    "readback": (dict, str),
}
VARYING = ("sha256", "size", "written", "writer")  # what producing again may change; everything else must come out equal


@dataclass(frozen=True)
class Fixture:
    """An archive that a real release wrote, with its golden.

    Attributes:
        release: the writer, as ``1.5.1``.
        recipe: name of the recipe that was run; ``recipe_sha256`` pins its text on that day.
        file: name of the archive inside the release's folder.
        sha256, size: of the archive's bytes.
        content: digest of what the archive says apart from what varies (see harness.formats.content).
        writer: id of the writer's identity, in the same manifest.
        written: the day (ISO, UTC).
        family, container, versions: what the archive is.
        operators: qualified names that the recipe exercises; tolerances and version bumps are looked up by them.
        calls: ``[{"method", "args": [neutral values]}]``; empty where loading is all there is to do.
        golden: the result in the writer's memory.
        readback: the writer's own result on reading its file back, or "same".
    """

    release: str
    recipe: str
    recipe_sha256: str
    file: str
    sha256: str
    size: int
    content: str
    writer: str
    written: str
    family: str
    container: str
    versions: dict[str, int]
    operators: list[str]
    calls: list[dict[str, Any]] = field(repr=False)
    golden: dict[str, Any] = field(repr=False)
    readback: dict[str, Any] | str = field(repr=False)

    @property
    def id(self) -> str:
        """``torch-1.5.1/div``."""
        return f"torch-{self.release}/{self.recipe}"

    @cached_property
    def subject(self) -> str:
        """Digest of everything a reader is given and compared with: archive, calls and golden."""
        return digest(self.sha256, self.family, self.calls, self.golden)

    @cached_property
    def pin(self) -> str:
        """Digest of the whole entry, as frozen in fixtures/FROZEN."""
        return digest(_facts(self))


@dataclass(frozen=True)
class NotWritable:
    """Evidence that a release cannot write what a recipe asks for."""

    release: str
    recipe: str
    recipe_sha256: str
    writer: str
    written: str
    type: str
    message: str

    @property
    def id(self) -> str:
        """``torch-1.2.0/mobile``."""
        return f"torch-{self.release}/{self.recipe}"

    @cached_property
    def pin(self) -> str:
        """Digest of the whole entry, as frozen in fixtures/FROZEN."""
        return digest(_facts(self))


def _facts(entry: Fixture | NotWritable) -> dict[str, Any]:
    """Every field by name; unlike ``dataclasses.asdict`` without copying goldens."""
    return {one.name: getattr(entry, one.name) for one in fields(entry)}


@dataclass(frozen=True)
class Manifest:
    """All that one release wrote or could not write."""

    release: str
    writers: dict[str, dict[str, Any]]
    fixtures: tuple[Fixture, ...]
    not_writable: tuple[NotWritable, ...]

    @property
    def entries(self) -> tuple[Fixture | NotWritable, ...]:
        """Both kinds of entries, by recipe."""
        both: list[Fixture | NotWritable] = [*self.fixtures, *self.not_writable]
        return tuple(sorted(both, key=lambda entry: entry.recipe))

    @cached_property
    def digest(self) -> str:
        """Digest of every entry."""
        return digest(self.writers, [entry.pin for entry in self.entries])


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest; entries sorted by recipe, so that diffs stay small."""
    entries: list[dict[str, Any]] = [
        {"kind": "writer", "id": key, "identity": identity} for key, identity in sorted(manifest.writers.items())
    ]
    for entry in manifest.entries:
        body = _facts(entry)
        del body["release"]
        entries.append({"kind": "fixture" if isinstance(entry, Fixture) else "not-writable", **body})
    write_lines(path, {"kind": "manifest", "release": manifest.release}, entries)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        CorpusError: it is missing, not whole, of another release, or an entry lacks something.
    """
    header, lines = read_lines(path, "manifest")
    release = header.get("release")
    if not isinstance(release, str) or path.parent.name != f"torch-{release}":
        raise CorpusError(f"is the manifest of release {release!r}, but lies in {path.parent.name!r}", where=f"{path}:1")
    writers: dict[str, dict[str, Any]] = {}
    fixtures: list[Fixture] = []
    not_writable: list[NotWritable] = []
    seen: dict[str, int] = {}
    for number, entry in lines:
        where = f"{path}:{number}"
        kind = entry.pop("kind")
        try:
            if kind == "writer":
                identity = entry["identity"]
                if entry["id"] != digest(identity)[:12] or identity["torch"].partition("+")[0] != release:
                    raise CorpusError(f"is not the identity of the writer {entry['id']}", where=where, code="wrong-writer")
                writers[entry["id"]] = identity
                continue
            if kind == "fixture":
                fixtures.append(Fixture(release=release, **entry))
            elif kind == "not-writable":
                not_writable.append(NotWritable(release=release, **entry))
            else:
                raise CorpusError(f"has the unknown kind {kind!r}", where=where, code="bad-line")
        except (TypeError, KeyError, AttributeError) as error:
            raise CorpusError(f"is not a complete entry: {error}", where=where, code="bad-line") from error
        wrong = [name for name, value in entry.items() if not isinstance(value, _TYPES.get(name, str))]
        if wrong:
            raise CorpusError(f"has a value of a wrong type for {', '.join(sorted(wrong))}", where=where, code="bad-line")
        recipe = entry["recipe"]
        if recipe in seen:
            raise CorpusError(f"lists recipe {recipe!r} again, after line {seen[recipe]}", where=where, code="duplicate")
        seen[recipe] = number
        if entry["writer"] not in writers:
            raise CorpusError(f"names the unknown writer {entry['writer']!r}", where=where, code="bad-line")
    return Manifest(release, writers, tuple(fixtures), tuple(not_writable))


def same_but_for_varying(old: Fixture | NotWritable, new: Fixture | NotWritable) -> list[str]:
    """Names of the fields in which a fixture that was produced again is not the recorded one. Empty: reproduced."""
    if type(old) is not type(new):
        return ["writable" if isinstance(new, Fixture) else "not writable any more"]
    a, b = _facts(old), _facts(new)
    return [name for name in a if name not in VARYING and dump(a[name]) != dump(b[name])]
