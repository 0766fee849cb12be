"""Manifests: what each release wrote, and what it computed at that time. One file per release, frozen once merged.

One more manifest is for what no release can write: ``fixtures/synthetic/`` contains archives built from their format's specification.

Most releases compute the same values as others. Calls, goldens and read-backs are therefore stored in separate files next to the manifests
(see :mod:`torch_compat.corpus.goldens`), each distinct value once, and manifests reference them by digest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, fields
from functools import cached_property
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from torch_compat.archive_files import is_member, joined_digest
from torch_compat.corpus.goldens import Goldens, canonical, settle, short_form, value_id
from torch_compat.corpus.json_lines import digest, dump, dump_again, read_lines, write_lines
from torch_compat.errors import CorpusError, HarnessError
from torch_compat.places import is_plain
from torch_compat.releases.release import public, stated
from torch_compat.values.normalise import brief_result

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "DIRECTORIES",
    "EXTENSIONS",
    "MANIFEST",
    "SYNTHETIC",
    "DirectoryFixture",
    "Fixture",
    "Manifest",
    "NotWritable",
    "Synthetic",
    "read_manifest",
    "release_folder",
    "write_manifest",
]

MANIFEST = "manifest.jsonl"
SYNTHETIC = "synthetic"
"""Used instead of a release for archives that no release wrote."""
EXTENSIONS = {
    "torch-save": ".pt", "torchscript": ".pt", "mobile": ".ptl", "package": ".pt", "export": ".pt2", "distributed": ".dcp",
}  # fmt: skip
DIRECTORIES = frozenset({"distributed"})
"""The families whose archives are directories."""
_TYPES: dict[str, type | tuple[type, ...]] = {  # types of an entry's values; all others are strings
    "size": int,
    "versions": dict,
    "operators": list,
    "calls": list,
    "golden": dict,
    "readback": (dict, str),
    "formats": list,
    "files": dict,
}
SHA256 = re.compile(r"[0-9a-f]{64}")
VALUES = frozenset({"calls", "golden", "readback"})
"""The fields whose values are stored in separate files."""
VARYING = ("sha256", "size", "files", "written", "writer")  # fields that reproducing may change; everything else must be equal


def release_folder(release: str) -> str:
    """Return the folder of a release's fixtures, also the prefix of their ids: ``torch-1.5.1``, or ``synthetic``."""
    return SYNTHETIC if release == SYNTHETIC else f"torch-{release}"


@dataclass(frozen=True)
class Fixture:
    """An archive that a real release wrote, with its golden.

    Attributes:
        release: the writer, such as ``1.5.1``.
        recipe: name of the recipe that was run; ``recipe_sha256`` pins its text at that time.
        file: name of the archive, a file or a directory, in the release's folder.
        sha256, size: those of the archive's bytes (see torch_compat.archive_files).
        content: digest of the archive's content except for the parts that vary (see torch_compat.formats.content).
        writer: id of the writer's identity, in the same manifest.
        written: the date (ISO, UTC).
        family, container, versions: the kind of archive.
        operators: qualified names that the recipe exercises; tolerances and version bumps are looked up by them.
        calls: ``[{"method", "args": [neutral values]}]``; empty if the archive is only loaded.
        golden: the result in the writer's memory.
        readback: the writer's result of reading its own file back, or "same".
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

    @cached_property
    def id(self) -> str:
        """The id, such as ``torch-1.5.1/div``."""
        return f"{release_folder(self.release)}/{self.recipe}"

    @cached_property
    def subject(self) -> str:
        """Digest of a reader's input and expected result: archive, calls and golden."""
        texts = (dump(self.sha256), dump(self.family), canonical(self.calls), canonical(self.golden))
        return hashlib.sha256("".join(f"{text}\n" for text in texts).encode()).hexdigest()

    @cached_property
    def pin(self) -> str:
        """Digest of the whole entry, as frozen in fixtures/FROZEN."""
        return _pin(self)


@dataclass(frozen=True)
class Synthetic(Fixture):
    """An archive that no release of the calendar can write, built, like its golden, from the specification of its format.

    ``release`` is ``synthetic``, ``recipe`` is its name; there is no recipe file and no read-back.

    Attributes:
        formats: the formats it represents, by their labels in the policy: ``["container tar"]``. Readers that support all of them must
            produce the golden.
        base: id of the fixture that it is derived from, "" if none.
    """

    formats: list[str]
    base: str


@dataclass(frozen=True)
class DirectoryFixture(Fixture):
    """An archive that is a directory, such as a distributed checkpoint. Its size and SHA-256 cover all its files.

    Attributes:
        files: the SHA-256 of each file, by name.
    """

    files: dict[str, str]


@dataclass(frozen=True)
class NotWritable:
    """Evidence that a release cannot write a recipe's archive."""

    release: str
    recipe: str
    recipe_sha256: str
    writer: str
    written: str
    type: str
    message: str

    @property
    def id(self) -> str:
        """The id, such as ``torch-1.2.0/mobile``."""
        return f"torch-{self.release}/{self.recipe}"

    @cached_property
    def pin(self) -> str:
        """Digest of the whole entry, as frozen in fixtures/FROZEN."""
        return digest(_facts(self))


def _facts(entry: Fixture | NotWritable) -> dict[str, Any]:
    """Return every field by name; unlike ``dataclasses.asdict``, goldens are not copied."""
    return {item.name: getattr(entry, item.name) for item in fields(entry)}


def _pin(entry: Fixture) -> str:
    """Return the digest of an entry's fields. Calls and golden, most of the bytes, are usually shared with other releases."""
    texts = {
        name: encode_basestring_ascii(value)
        if value.__class__ is str
        else canonical(value)
        if name in {"calls", "golden"}
        else dump_again(value)
        for name, value in _facts(entry).items()
    }
    line = ",".join(f'"{name}":{texts[name]}' for name in sorted(texts))
    return hashlib.sha256(f"{{{line}}}\n".encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """Everything that one release wrote or could not write, or all synthetic fixtures."""

    release: str
    writers: dict[str, dict[str, Any]]
    fixtures: tuple[Fixture, ...]
    not_writable: tuple[NotWritable, ...]

    @property
    def entries(self) -> tuple[Fixture | NotWritable, ...]:
        """Both kinds of entries, sorted by recipe."""
        both: list[Fixture | NotWritable] = [*self.fixtures, *self.not_writable]
        return tuple(sorted(both, key=lambda entry: entry.recipe))

    @cached_property
    def digest(self) -> str:
        """Digest of every entry."""
        return digest(self.writers, [entry.pin for entry in self.entries])


_KINDS: dict[type[Fixture | NotWritable], str] = {
    Fixture: "fixture", DirectoryFixture: "directory", Synthetic: "synthetic", NotWritable: "not-writable",
}  # fmt: skip


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest; entries are sorted by recipe, so that diffs stay small. Values that older releases have are not repeated."""
    values: dict[str, Any] = {}
    entries: list[dict[str, Any]] = [
        {"kind": "writer", "id": key, "identity": identity} for key, identity in sorted(manifest.writers.items())
    ]
    for entry in manifest.entries:
        body = _facts(entry)
        del body["release"]
        for name in VALUES & body.keys():
            if body[name].__class__ is not str:  # a read-back that equals the golden is "same"
                value = short_form(body[name]) if name == "golden" else body[name]
                body[name] = value_id(value)
                values[body[name]] = value
        entries.append({"kind": _KINDS[type(entry)], **body})
    header = {"kind": "manifest", "release": manifest.release}
    settle(path.parent.parent, path.parent.name, values, lambda: write_lines(path, header, entries))


def read_manifest(path: Path, goldens: Goldens | None = None) -> Manifest:
    """Read a manifest.

    Parameters:
        goldens: the values that manifests of this corpus reference; read from its files by default.

    Raises:
        CorpusError: it is missing, incomplete, of another release, or an entry is incomplete, has a value that does not have the form that
            releases produce (see torch_compat.values.form), or a name that is not a valid file name.
    """
    header, lines = read_lines(path, "manifest")
    release = header.get("release")
    if not isinstance(release, str) or path.parent.name != release_folder(release):
        raise CorpusError(f"is the manifest of release {release!r}, but is in {path.parent.name!r}", where=f"{path}:1")
    if release != SYNTHETIC:
        _check_release(release, f"{path}:1")
    goldens = goldens or Goldens(path.parent.parent)
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
                _check_identity(identity)
                if entry["id"] != digest(identity)[:12] or public(identity["torch"]) != release:
                    raise CorpusError(
                        f"does not match the identity of the writer {entry['id']}", where=where, code="wrong-writer"
                    )
                writers[entry["id"]] = identity
                continue
            for name in VALUES & entry.keys():
                entry[name] = goldens.value(name, entry[name], where, entry.get("recipe"))
            if (kind == SYNTHETIC) is not (release == SYNTHETIC):
                message = f"is of kind {kind!r} in the manifest of {release_folder(release)}; only archives that no release wrote are synthetic"
                raise CorpusError(message, where=where, code="bad-line")
            if kind == SYNTHETIC:
                fixtures.append(Synthetic(release=release, **entry))
            elif kind == "fixture":
                fixtures.append(Fixture(release=release, **entry))
            elif kind == "directory":
                fixtures.append(DirectoryFixture(release=release, **entry))
            elif kind == "not-writable":
                not_writable.append(NotWritable(release=release, **entry))
            else:
                raise CorpusError(f"has unknown kind {kind!r}", where=where, code="bad-line")
        except (TypeError, KeyError, AttributeError) as error:
            raise CorpusError(f"is not a complete entry: {error}", where=where, code="bad-line") from error
        except ValueError as error:
            if isinstance(error, HarnessError):
                raise
            raise CorpusError(f"is not a complete entry: {_named(entry)}{error}", where=where, code="bad-line") from error
        wrong = [name for name, value in entry.items() if not isinstance(value, _TYPES.get(name, str))]
        if wrong:
            raise CorpusError(f"has a value of the wrong type for {', '.join(sorted(wrong))}", where=where, code="bad-line")
        _check_entry(entry, where)
        recipe = entry["recipe"]
        if recipe in seen:
            raise CorpusError(f"recipe {recipe!r} is already listed on line {seen[recipe]}", where=where, code="duplicate")
        seen[recipe] = number
        if entry["writer"] not in writers:
            raise CorpusError(f"refers to the unknown writer {entry['writer']!r}", where=where, code="bad-line")
    return Manifest(release, writers, tuple(fixtures), tuple(not_writable))


def _check_release(release: str, where: str) -> None:
    if stated(release) is None:
        raise CorpusError(f"is the manifest of {release!r}, expected a release such as '1.5.1'", where=where)
    if not is_plain(release):
        raise CorpusError(f"is the manifest of {release!r}, which is not a valid directory name", where=where, code="outside")


def _check_identity(identity: Any) -> None:
    if not isinstance(identity, dict):
        raise TypeError(f"identity is {identity.__class__.__name__}, expected an object")
    for name, value in identity.items():
        if value is not None and value.__class__ not in {str, int, float, bool}:
            raise ValueError(f"identity.{name!r:.60} is {value.__class__.__name__}, expected a string or a number")


def _check_entry(entry: dict[str, Any], where: str) -> None:
    """Check what the types of the fields do not ensure."""
    odd = next(
        (name for name, text in entry.items() if text.__class__ is str and not text.isascii() and not _is_whole(text)), None
    )
    if odd is not None:
        raise CorpusError(f"contains an unpaired surrogate in {odd}", where=where, code="bad-line")
    recipe = entry["recipe"]
    if not is_plain(recipe):
        what = f"recipe is {recipe[:80]!a}, expected a file name made of letters, digits and _ . + -"
        raise CorpusError(what, where=where, code="outside")
    if "file" not in entry:
        return
    family, file = entry["family"], entry["file"]
    if family not in EXTENSIONS:
        what = f"{recipe}: family is {family[:80]!a}, expected one of {', '.join(EXTENSIONS)}"
        raise CorpusError(what, where=where, code="bad-line")
    if (family in DIRECTORIES) is not ("files" in entry):
        what = f"{recipe}: an archive of the family {family} is {'a directory' if family in DIRECTORIES else 'one file'}"
        raise CorpusError(what, where=where, code="bad-line")
    if not is_plain(file) or file == MANIFEST:
        raise CorpusError(
            f"{recipe}: file is {file[:80]!a}, expected the file name of an archive in the manifest's directory, "
            f"such as {recipe}{EXTENSIONS[family]}",
            where=where,
            code="outside",
        )
    if entry["size"].__class__ is not int or entry["size"] < 0:
        raise CorpusError(f"{recipe}: size is {entry['size']!r}, expected 0 or more bytes", where=where, code="bad-line")
    try:
        _check_lists(entry)
    except ValueError as error:
        raise CorpusError(f"is not a complete entry: {_named(entry)}{error}", where=where, code="bad-line") from error


def _check_lists(entry: dict[str, Any]) -> None:
    for name, version in entry["versions"].items():
        if version.__class__ is not int or version < 0:
            raise ValueError(f"versions.{name!r:.60} is {version!r:.60}, expected a number, 0 or more")
    if "files" in entry:
        _check_files(entry)
    for name in ("operators", "formats"):
        for text in entry.get(name, ()):
            if text.__class__ is not str:
                raise ValueError(f"{name} contains {text!r:.60}, expected strings")


def _check_files(entry: dict[str, Any]) -> None:
    for name, digest_of_file in entry["files"].items():
        if not is_member(name):
            raise ValueError(f"files contains {name!r:.60}, expected plain file names")
        if digest_of_file.__class__ is not str or not SHA256.fullmatch(digest_of_file):
            raise ValueError(f"files.{name} is {digest_of_file!r:.80}, expected a SHA-256")
    if joined_digest(entry["files"].items()) != entry["sha256"]:
        raise ValueError("sha256 does not match the digest of files")


def _is_whole(text: str) -> bool:
    """Whether a string contains no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _named(entry: dict[str, Any]) -> str:
    return f"{entry['recipe'][:80]!r}: " if isinstance(entry.get("recipe"), str) else ""


def same_but_for_varying(old: Fixture | NotWritable, new: Fixture | NotWritable) -> list[str]:
    """Return the names of the fields in which a reproduced fixture differs from the recorded one; empty if reproduced exactly.

    Errors are compared without program tracebacks, which older entries contain.
    """
    if type(old) is not type(new):
        return ["writable" if isinstance(new, Fixture) else "no longer writable"]
    a, b = _facts(old), _facts(new)
    return [name for name in a if name not in VARYING and dump(brief_result(a[name])) != dump(brief_result(b[name]))]
