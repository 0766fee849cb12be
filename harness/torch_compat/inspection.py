"""What an archive is and what it needs to be read: the facts of the file, and what is recorded of the releases.

:func:`inspect` is the library's form of ``torch-compat inspect``; both give the same object. Nothing that an archive says is
executed or imported, and torch is not needed.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import HASHED
from torch_compat.archive.base import close, read_raw, windows
from torch_compat.archive.container import recognised_archive
from torch_compat.errors import ArchiveError, Corrupt, UsageError
from torch_compat.formats.facts import fill
from torch_compat.formats.identify import recognised
from torch_compat.needs import of as needs_of
from torch_compat.needs.signs import COMPILED, not_looked_at
from torch_compat.pickles import cut, dangerous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.archive import Damage
    from torch_compat.archive.base import Raw
    from torch_compat.errors import HarnessError
    from torch_compat.formats import Facts, Producer
    from torch_compat.needs import Needs

__all__ = ["Inspected", "files_of", "inspect", "look_at"]


class Inspected:
    """One file: what was found out, as far as it could be.

    Attributes:
        path: as it was given.
        size, sha256: of the file; None where it could not even be opened, the digest also where the file is too large.
        omitted: what was not done because the file is too large, by name, with the reason.
        facts: None where it is no archive, or nothing of it can be read.
        damage: what contradicts itself in it, and what is ambiguous.
        needs: None where it cannot be read to its end, and so nobody can say.
        error: why it could not be read further, or the first damage; None where all of it is sound.
    """

    __slots__ = ("damage", "error", "facts", "needs", "omitted", "path", "sha256", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size: int | None = None
        self.sha256: str | None = None
        self.facts: Facts | None = None
        self.damage: list[Damage] = []
        self.needs: Needs | None = None
        self.omitted: dict[str, str] = {}
        self.error: HarnessError | None = None

    def row(self) -> dict[str, Any]:
        """The object that stands for it in JSON."""
        row: dict[str, Any] = {"path": self.path, "sha256": self.sha256, "size": self.size}
        if self.facts is None:
            row.update(UNKNOWN)
        else:
            row.update(_identified(*_identity(self.facts)))
            row.update(NOT_SAID if self.needs is None else _needed(self.needs))
            row.update(_held(self.facts))
        row["sixteen_bits"] = self.sixteen_bits
        self._judge(row)
        return row

    def json(self) -> str:
        """The same as text: what :func:`json.dumps` makes of :meth:`row`. Many archives are alike in what they are and need."""
        if self.facts is None or self.needs is None:
            return json.dumps(self.row())
        rest = _held(self.facts)
        rest["sixteen_bits"] = self.sixteen_bits
        self._judge(rest)
        return (
            f'{{"path": {json.dumps(self.path)}, "sha256": {_quoted(self.sha256)}, "size": {self.size}, '
            f"{_identified_text(*_identity(self.facts))}, {_needed_text(self.needs)}, {json.dumps(rest)[1:]}"
        )

    def _judge(self, row: dict[str, Any]) -> None:
        """Add what is wrong with it."""
        row["dangers"] = [{"global": name, "record": record, "because": because} for name, record, because in self.dangers]
        row["damage"] = [{"code": one.code, "record": one.record, "detail": one.detail} for one in self.damage]
        row["omitted"] = [{"what": what, "because": because} for what, because in self.omitted.items()]
        error = self.error
        row["error"] = None if error is None else {"code": error.code, "message": self.message}

    @property
    def sixteen_bits(self) -> list[dict[str, Any]]:
        """Of a program with tensors of float16 or bfloat16, the operators that some releases refuse to compute with them on the CPU.

        Which tensors reach which operator is not known before it runs: these are the operators of the program, each with the releases
        that compute it.
        """
        facts = self.facts
        if facts is None or facts.family not in COMPILED:
            return []
        found = []
        held = {one.dtype for one in facts.storages}
        for dtype in ("bfloat16", "float16"):
            if dtype not in held:
                continue
            from torch_compat.operators.halves import computed_by  # noqa: PLC0415 - few archives hold any

            for operator in facts.operators:
                told = computed_by(operator.partition(".")[0], dtype)
                if told is not None:
                    known, bits = told
                    spans = [{"from": first, "to": last} for first, last in known.spans(bits)]
                    found.append({"dtype": dtype, "operator": operator, "computed_by": spans})
        return found

    @property
    def dangers(self) -> list[tuple[str, str, str]]:
        """What its pickles name that is known to do harm when it is called: the name, the record, why.

        Nothing here calls it; whoever loads the file without ``weights_only`` may. That the list is empty is no promise.
        """
        if self.facts is None:
            return []
        return [
            (one.path, record, because)
            for record, unpickled in self.facts.pickles.items()
            for one in unpickled.globals
            if (because := _danger(one)) is not None
        ]

    @property
    def message(self) -> str:
        """The error without the path; empty where there is none."""
        error = self.error
        if error is None:
            return ""
        where = (error.where or "").removeprefix(self.path).lstrip(", ")
        said = cut(f"{where}: {error.message}" if where else error.message, LONGEST)
        return f"{said} ({error.hint})" if error.hint else said


def _quoted(digest: str | None) -> str:
    return "null" if digest is None else f'"{digest}"'


LONGEST = 2000  # characters of an error
_danger = lru_cache(maxsize=4096)(dangerous)  # a handful of names stand in nearly every file

UNKNOWN: dict[str, Any] = {
    "family": None, "container": None, "name": None, "format_version": None, "bytecode_version": None,
    "schema_version_export": None, "producer": None, "readable_by": None, "minimum_release": None, "maximum_release": None,
    "reasons": [], "operators": [], "globals": [], "weights_only": None, "weights_only_default": None, "byteorder": None,
    "storage_alignment": None, "storages": [], "dangers": [], "damage": [], "omitted": [],
}  # fmt: skip


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Say what an archive is, what it holds and which releases read it; executes nothing.

    Returns:
        One object of ``torch-compat inspect --format json``; its schema is ``harness/torch_compat/schemas/inspect.schema.json``. An archive
        that cannot be read gives one, too: ``error`` says why, and everything that was found out before it is there.

    Raises:
        UsageError: there is no such file, it is a folder, or it may not be read.
    """
    found = look_at(os.fspath(path))
    if isinstance(found.error, UsageError):
        raise found.error
    return found.row()


def look_at(path: str) -> Inspected:
    """Find out everything about a file.

    Never raises for what is in it.

    Raises:
        PolicyError: what is recorded of the releases cannot be read.
    """
    found = Inspected(path)
    try:
        raw = read_raw(path)
    except UsageError as error:
        found.error = error
        return found
    found.size = len(raw)
    try:
        found.sha256 = _sha256(raw)
        if found.sha256 is None:
            found.omitted["sha256"] = f"the file has {found.size} bytes; up to {HASHED} bytes are read for a digest"
        archive = recognised_archive(path, raw, inspecting=True)
    except ArchiveError as error:
        found.error = error
        return found
    finally:
        if found.error is not None:
            close(raw)
    with archive:
        found.damage = archive.damage
        found.omitted.update(archive.allowance.omitted)
        archive.allowance.omitted = found.omitted
        try:
            facts, module = recognised(archive)
            found.facts = facts
            fill(facts, module, archive)
        except ArchiveError as error:
            found.error = error
            archive.verify()  # what else is damaged may say more than what was met first
            return found
        found.needs = needs_of(facts)
        found.omitted.update(not_looked_at(facts))
        if found.damage:
            first = found.damage[0]
            where = f"{path}, record {first.record!r}" if first.record else path
            found.error = Corrupt(first.detail, where=where, code=first.code)
    return found


def _sha256(raw: Raw) -> str | None:
    """Of the whole file, in hex, from the descriptor that everything else is read from; None where it is too large for that."""
    if isinstance(raw, bytes):
        return hashlib.sha256(raw).hexdigest()
    if len(raw) > HASHED:
        return None
    digest = hashlib.sha256()
    for part in windows(raw, 0, len(raw)):
        digest.update(part)
    return digest.hexdigest()


Identity = tuple[str, str, str, int | None, int | None, str | None, "Producer | None"]


def _identity(facts: Facts) -> Identity:
    versions = facts.versions
    return (
        facts.family, facts.container, facts.name, versions.get("file-format"), versions.get("bytecode"), facts.export_schema,
        facts.producer,
    )  # fmt: skip


def _identified(*identity: *Identity) -> dict[str, Any]:
    family, container, name, file_format, bytecode, schema, producer = identity
    return {
        "family": family,
        "container": container,
        "name": name,
        "format_version": file_format,
        "bytecode_version": bytecode,
        "schema_version_export": schema,
        "producer": _produced(producer),
    }


@lru_cache(maxsize=512)
def _identified_text(*identity: *Identity) -> str:
    return json.dumps(_identified(*identity))[1:-1]


def _held(facts: Facts) -> dict[str, Any]:
    return {
        "operators": facts.operators,
        "globals": facts.globals,
        "byteorder": facts.byteorder,
        "storage_alignment": facts.storage_alignment,
        "storages": [
            {
                "key": one.key,
                "dtype": one.dtype,
                "nbytes": one.nbytes,
                "offset": one.offset,
                "calculated_offset": one.calculated_offset,
                "absent": one.absent,
            }
            for one in facts.storages
        ],
    }


# Of an archive that cannot be read to its end nobody can say what it needs.
NOT_SAID: dict[str, Any] = {
    name: UNKNOWN[name]
    for name in ("readable_by", "minimum_release", "maximum_release", "reasons", "weights_only", "weights_only_default")
}


def _needed(needs: Needs) -> dict[str, Any]:
    return {
        "readable_by": [{"from": first, "to": last} for first, last in needs.readable_by],
        "minimum_release": needs.minimum_release,
        "maximum_release": needs.maximum_release,
        "reasons": [{"needs": reason.needs, "because": reason.because} for reason in needs.reasons],
        "weights_only": {
            release: None if refusal is None else {"code": refusal.code, "detail": refusal.detail}
            for release, refusal in needs.weights_only.items()
        },
        "weights_only_default": dict(needs.weights_only_default),
    }


@lru_cache(maxsize=512)
def _needed_text(needs: Needs) -> str:
    return json.dumps(_needed(needs))[1:-1]


def _produced(producer: Producer | None) -> dict[str, Any] | None:
    if producer is None:
        return None
    return {
        "torch": producer.torch,
        "from": producer.first,
        "to": producer.last,
        "python": producer.python,
        "because": list(producer.because),
    }


def files_of(path: str) -> Iterator[str]:
    """The path itself; of a folder every file in it and in the folders in it, in order of their names."""
    if not os.path.isdir(path):  # noqa: PTH112 - a million of them: text is quicker
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            yield os.path.join(folder, name)  # noqa: PTH118
