"""The schema of exported programs in each release, and how each loader treats what it does not know.

Both histories are recorded by ``torch-compat admit`` and ``observe --record --survey`` (harness/torch_compat/inside/exported.py):

* ``fixtures/operators/export_schema.txt``: version, records, unions and enums of the schema, with their fields;
* ``fixtures/operators/export_witnesses.txt``: the behavior of ``torch.export.load`` with altered archives (see
  :mod:`torch_compat.replay.witnesses`).

The change log consists of the differences between consecutive releases in the first file. None of it is written by hand.
"""

from __future__ import annotations

import enum
import json
import re
from bisect import insort
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch_compat.operators.history import FactHistory
from torch_compat.releases.data import packaged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "BASE",
    "SCHEMA_FILE",
    "WITNESSES_FILE",
    "Alteration",
    "Answer",
    "FieldChange",
    "Reaction",
    "SchemaHistory",
    "SchemaVersion",
    "Witnesses",
    "packaged_log",
]

SCHEMA_FILE: Final = "export_schema.txt"
WITNESSES_FILE: Final = "export_witnesses.txt"
STEP: Final = " > "
VERSION: Final = "version"
AS_BASE: Final = "as its base"
ROOT: Final = "ExportedProgram"
DEFAULT: Final = " = "


class Alteration(enum.StrEnum):
    """The alteration of an archive; the value is the first half of the name of the altered archive."""

    NOTHING = "unaltered"
    FIELD_OF_PROGRAM = "field-of-program"
    FIELD_OF_NODE = "field-of-node"
    FIELD_OF_ARGUMENT = "field-of-argument"
    FIELD_OF_TENSOR = "field-of-tensor"
    FIELD_OF_SIGNATURE = "field-of-signature"
    KIND_OF_VALUE = "kind-of-value"
    KIND_OF_INPUT = "kind-of-input"
    DTYPE = "dtype"
    LAYOUT = "layout"
    ARGUMENT_KIND = "argument-kind"
    VERIFIER = "verifier"
    MINOR_NEWER = "minor-newer"
    MINOR_ZERO = "minor-zero"
    MAJOR_NEWER = "major-newer"
    MAJOR_OLDER = "major-older"
    OPSET_NEWER = "opset-newer"
    OPSET_OLDER = "opset-older"
    OPSET_OTHER = "opset-other"
    OPSET_NONE = "opset-none"
    GUARDS = "guards"
    NODE_NAME = "node-name"

    @property
    def said(self) -> str:
        """The alteration in words."""
        return _SAID[self]

    @property
    def major(self) -> int:
        """The first major version of the schema that has the altered part."""
        return _MAJORS.get(self, 1)


_MAJORS: Final = {
    Alteration.KIND_OF_INPUT: 2,
    Alteration.VERIFIER: 2,
    Alteration.MINOR_NEWER: 5,
    Alteration.MINOR_ZERO: 5,
    Alteration.ARGUMENT_KIND: 8,
    Alteration.GUARDS: 8,
    Alteration.NODE_NAME: 8,
}
_SAID: Final = {
    Alteration.NOTHING: "nothing",
    Alteration.FIELD_OF_PROGRAM: "an unknown field of the program",
    Alteration.FIELD_OF_NODE: "an unknown field of a node",
    Alteration.FIELD_OF_ARGUMENT: "an unknown field of an argument of a node",
    Alteration.FIELD_OF_TENSOR: "an unknown field of the metadata of a tensor",
    Alteration.FIELD_OF_SIGNATURE: "an unknown field of the signature",
    Alteration.KIND_OF_VALUE: "an argument of an unknown kind",
    Alteration.KIND_OF_INPUT: "an input of an unknown kind",
    Alteration.DTYPE: "an unknown number for a dtype",
    Alteration.LAYOUT: "an unknown number for the layout of a tensor",
    Alteration.ARGUMENT_KIND: "an unknown number for how an argument is passed",
    Alteration.VERIFIER: "an unknown verifier, or dialect",
    Alteration.MINOR_NEWER: "a minor schema version that is 100 higher",
    Alteration.MINOR_ZERO: "the minor schema version 0",
    Alteration.MAJOR_NEWER: "the next major schema version",
    Alteration.MAJOR_OLDER: "the previous major schema version",
    Alteration.OPSET_NEWER: "the next operator set version",
    Alteration.OPSET_OLDER: "the operator set version 1",
    Alteration.OPSET_OTHER: "a version of an unknown operator set besides aten",
    Alteration.OPSET_NONE: "no operator set version",
    Alteration.GUARDS: "a guard in guards_code, a field that was added in 8.14",
    Alteration.NODE_NAME: "the name of a node, a field that was added in 8.17",
}
BASE: Final = Alteration.NOTHING


class Reaction(enum.StrEnum):
    """What a release does with an altered archive, derived from observations."""

    REFUSED = "refused"
    """The loader refuses it."""
    ANNOUNCED = "announced"
    """The loader accepts it, and prints something that it does not print for the base."""
    FOLLOWED = "followed"
    """The loader accepts it, and the program computes different results than the base."""
    KEPT = "kept"
    """The loader accepts it, the program computes the same results as the base, and saving writes the alteration again."""
    DROPPED = "dropped"
    """The loader accepts it silently, and the program computes the same results as the base; the alteration is lost when
    the program is saved again."""
    IGNORED = "ignored"
    """The same, but saving again does not show whether it is preserved, as with version numbers."""


@dataclass(frozen=True)
class FieldChange:
    """One difference between two schemas.

    Attributes:
        text: ``+``, ``-`` or ``~`` for added, removed or changed, then the field with its type, or the record.
        breaks: whether an archive of the other schema can contain something that no longer fits, or lack something required.
    """

    text: str
    breaks: bool


@dataclass(frozen=True)
class SchemaVersion:
    """One version of the schema, as stated by the recorded releases.

    Attributes:
        major: the number that loaders compare.
        minor: the number that loaders ignore; None in 2.1 and 2.2, which state one number.
        releases: the releases that write it, oldest first.
        changes: the differences from the previous release; empty for the first version.
    """

    major: int
    minor: int | None
    releases: tuple[str, ...]
    changes: tuple[FieldChange, ...]

    @property
    def label(self) -> str:
        """``8.20``, or ``2``."""
        return str(self.major) if self.minor is None else f"{self.major}.{self.minor}"


class _Surveyed:
    """A recorded history of every release that has ``torch.export.load``.

    Parameters:
        path: the file; the packaged one by default.

    Raises:
        CorpusError: the file cannot be read.
    """

    FILE: ClassVar[str]

    def __init__(self, path: Path | None = None) -> None:
        self.facts = FactHistory(path if path is not None else packaged("fixtures", "operators", self.FILE))

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases with recorded data, oldest first."""
        return tuple(release for release in self.facts.releases if self.facts.complete(release))


class SchemaHistory(_Surveyed):
    """The schema of each release."""

    FILE = SCHEMA_FILE

    def version(self, release: str) -> tuple[int, int | None]:
        """The major and minor version that a release writes.

        Raises:
            KeyError: the release has no schema.
        """
        stated = self.facts.value(VERSION, release)
        return (stated[0], stated[1]) if isinstance(stated, list) else (stated, None)

    def log(self) -> tuple[SchemaVersion, ...]:
        """Every version, oldest first, with its changes. Consecutive releases with the same version share an entry."""
        entries: list[SchemaVersion] = []
        for (major, minor), group in groupby(self.releases, self.version):
            releases = tuple(group)
            changes = self.changes(entries[-1].releases[-1], releases[0]) if entries else ()
            entries.append(SchemaVersion(major, minor, releases, changes))
        return tuple(entries)

    def _entries(self, release: str) -> dict[str, Any]:
        bit = self.facts.bit(release)
        return {key: json.loads(value) for key, value, bits in self.facts.facts() if bits & bit and key != VERSION}

    def changes(self, old: str, new: str) -> tuple[FieldChange, ...]:
        """The differences between the schemas of two releases; a record added or removed as a whole is one change."""
        before, after = self._entries(old), self._entries(new)
        olds, news = ({_owner(key) for key in entries} for entries in (before, after))
        held = self._held(before)
        results = set()
        for key in before.keys() | after.keys():
            owner, (kind, _, name) = _owner(key), key.replace(STEP, ".").partition(".")
            was, now = before.get(key), after.get(key)
            within = owner.partition(STEP)[2]
            if was == now:
                continue
            if owner not in news or owner not in olds:
                results.add(FieldChange(f"{'-' if owner in olds else '+'} {within}", owner in olds and within in held))
            elif now is None:
                results.add(FieldChange(f"- {name}: {was}", within in held))
            elif was is None:
                results.add(FieldChange(f"+ {name}: {now}", kind == "records" and within in held and DEFAULT not in str(now)))
            else:
                wider = str(now) in {f"{was}?", f"{was}{DEFAULT}null"} or str(now).startswith(f"{was}{DEFAULT}")
                results.add(FieldChange(f"~ {name}: {was} -> {now}", within in held and not wider))
        return tuple(sorted(results, key=lambda change: (change.text[2:], change.text)))

    @staticmethod
    def _held(entries: Mapping[str, Any]) -> frozenset[str]:
        """The records, unions and enums that an exported program can contain, according to the types of their fields."""
        fields: dict[str, set[str]] = {}
        for key, kind in entries.items():
            fields.setdefault(_owner(key).partition(STEP)[2], set()).update(re.findall(r"\w+", str(kind).partition(DEFAULT)[0]))
        held, waiting = set(), [ROOT]
        while waiting:
            name = waiting.pop()
            if name in fields and name not in held:
                held.add(name)
                waiting += fields[name]
        return frozenset(held)


@cache
def packaged_log() -> tuple[SchemaVersion, ...]:
    """The packaged change log, read once."""
    return SchemaHistory().log()


def _owner(key: str) -> str:
    """The record, union or enum of a fact, with its kind: ``records > Node``."""
    return key.rpartition(STEP)[0] or key


@dataclass(frozen=True)
class Answer:
    """The behavior of one release with one altered archive.

    Attributes:
        release: the release.
        alteration: what was altered.
        writer: the release that wrote the archive.
        archive: SHA-256, in hex, of the altered archive.
        loads: ``loads``, or ``refused: `` and the error.
        says: warnings and messages on loading.
        computes: a text for each call; ``as its base`` if all equal those of the base; None if it does not load.
        keeps: whether the alteration survives when the program is saved again; None if unknown.
        base_says: warnings and messages on loading the base.
    """

    release: str
    alteration: Alteration
    writer: str
    archive: str
    loads: str
    says: tuple[str, ...]
    computes: str | tuple[str, ...] | None
    keeps: bool | None
    base_says: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the altered archive."""
        return f"{self.alteration}@{self.writer}"

    @property
    def reaction(self) -> Reaction:
        """The reaction that follows from the answer."""
        if self.loads != "loads":
            return Reaction.REFUSED
        if set(self.says) - set(self.base_says):
            return Reaction.ANNOUNCED
        if self.alteration is not BASE and self.computes != AS_BASE:
            return Reaction.FOLLOWED
        if self.keeps is None:
            return Reaction.IGNORED
        return Reaction.KEPT if self.keeps else Reaction.DROPPED


class Witnesses(_Surveyed):
    """The answers of all releases."""

    FILE = WITNESSES_FILE

    def answers(self) -> tuple[Answer, ...]:
        """Every answer about an archive whose writer is a recorded release, by release, then in the order of the file."""
        told: dict[str, dict[str, dict[str, Any]]] = {release: {} for release in self.releases}
        for key, value, bits in self.facts.facts():
            name, _, field = key.partition(STEP)
            if name.partition("@")[2] not in told:
                continue
            for release in self.facts.of(bits):
                if release in told:
                    given = told[release].setdefault(name, {})
                    if field.endswith("[]"):
                        insort(given.setdefault(field[:-2], []), json.loads(value))
                    else:
                        given[field] = json.loads(value)
        return tuple(
            self._answer(release, name, given, entries) for release, entries in told.items() for name, given in entries.items()
        )

    @staticmethod
    def _answer(release: str, name: str, given: dict[str, Any], entries: dict[str, dict[str, Any]]) -> Answer:
        alteration, _, writer = name.partition("@")
        computes = given["computes"]
        return Answer(
            release, Alteration(alteration), writer, given["archive"], given["loads"], tuple(given["says"]),
            tuple(computes) if isinstance(computes, list) else computes, given["keeps"],
            tuple(entries[f"{BASE}@{writer}"]["says"]),
        )  # fmt: skip
