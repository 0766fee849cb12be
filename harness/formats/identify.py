"""Family, container and versions of an archive, from which records it holds.

Archives carry no name of their format, only records; the same version number stands for several layouts. So, for zip:

* ``archive_format``, or ``serialized_exported_program.json`` before there were pt2 archives    export (.pt2)
* ``.data/extern_modules``, ``.data/python_version``, or ``extern_modules`` in 1.8    package
* ``bytecode.pkl``                                mobile (a TorchScript archive with bytecode beside its source)
* ``model.json`` (1.0 to 1.2) or ``constants.pkl``    torchscript
* ``data.pkl`` alone                              torch-save

The file format version stands in ``.data/version`` (from version 6 on) or in ``version``. The schema version of an exported
program stands in its JSON; before there were pt2 archives, ``version`` is that version ("7.3"), and there is no other one.
"""

from __future__ import annotations

import json
import pickletools
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.archive import open_archive
from harness.errors import Corrupt, Unsupported

if TYPE_CHECKING:
    from pathlib import Path

    from harness.archive import Archive

__all__ = ["Identity", "identify"]

VERSION_RECORDS = (".data/version", "version")
PLAIN_EXPORT = "serialized_exported_program.json"


@dataclass(frozen=True)
class Identity:
    """What an archive is.

    Attributes:
        family: ``torch-save``, ``torchscript``, ``mobile``, ``package`` or ``export``.
        container: ``zip``, ``stream``, ``tar`` or ``flatbuffer``.
        versions: the version numbers found inside, by kind: ``file-format``, ``bytecode``, ``stream-protocol``,
            ``export-schema`` (the major number, the only one that loaders compare).
    """

    family: str
    container: str
    versions: dict[str, int]


def identify(path: Path) -> Identity:
    """Say what an archive is.

    Raises:
        UsageError: no such file, or a folder.
        Corrupt: it contradicts its own container.
        Unsupported: no format that PyTorch writes.
    """
    archive = open_archive(path)
    if archive.container == "zip":
        return Identity(_zip_family(archive), "zip", _zip_versions(archive))
    if archive.container == "stream":
        return Identity("torch-save", "stream", {"stream-protocol": 1001})
    if archive.container == "tar":
        return Identity("torch-save", "tar", {})
    return Identity("mobile", "flatbuffer", {"bytecode": _flatbuffer_bytecode_version(archive)})


def _zip_family(archive: Archive) -> str:
    names = set(archive.names)
    if names & {"archive_format", PLAIN_EXPORT}:
        return "export"
    if names & {".data/extern_modules", ".data/python_version", "extern_modules"}:
        return "package"
    if "bytecode.pkl" in names:
        return "mobile"
    if names & {"model.json", "constants.pkl"}:
        return "torchscript"
    if "data.pkl" in names:
        return "torch-save"
    raise Unsupported(
        f"is a zip archive without any record that PyTorch writes; it holds {', '.join(sorted(names)[:5]) or 'nothing'}",
        where=str(archive.path),
        code="no-format",
    )


def _zip_versions(archive: Archive) -> dict[str, int]:
    names = archive.names
    versions = {}
    if PLAIN_EXPORT in names:
        return {"export-schema": _schema_version(archive, PLAIN_EXPORT)}
    record = next((name for name in VERSION_RECORDS if name in names), None)
    if record is not None:
        text = archive.record(record).decode("ascii", "replace").strip()
        if not text.isdigit() or len(text) > 9:
            raise Corrupt(f"record {record!r} holds {text!r}, expected a number", where=str(archive.path), code="bad-version")
        versions["file-format"] = int(text)
    if "bytecode.pkl" in names:
        number = _bytecode_version(archive.record("bytecode.pkl"), archive.path)
        if number is not None:
            versions["bytecode"] = number
    program = next((name for name in sorted(names) if name.startswith("models/") and name.endswith(".json")), None)
    if program is not None and "archive_format" in names:
        versions["export-schema"] = _schema_version(archive, program)
    return versions


def _schema_version(archive: Archive, record: str) -> int:
    """The major number of the ``schema_version``: ``{"major": 8, "minor": 1}``, or one number in 2.1 and 2.2."""
    try:
        program = json.loads(archive.record(record))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"record {record!r} is no JSON: {error}", where=str(archive.path), code="damaged-record") from error
    version = program.get("schema_version") if isinstance(program, dict) else None
    major = version.get("major") if isinstance(version, dict) else version
    if not isinstance(major, int) or isinstance(major, bool) or major < 0:
        said = f"record {record!r} has the schema version {version!r}, expected a number or a major and a minor one"
        raise Corrupt(said, where=str(archive.path), code="bad-version")
    return major


def _flatbuffer_bytecode_version(archive: Archive) -> int:
    """The first field, ``bytecode_version:uint``, of the root table (see mobile_bytecode.fbs)."""
    head = archive.head
    try:
        (root,) = struct.unpack_from("<I", head, 0)
        (to_vtable,) = struct.unpack_from("<i", head, root)
        if to_vtable > root:  # struct would count a negative offset from the end
            raise Corrupt("its root table points before the file", where=str(archive.path))
        (field,) = struct.unpack_from("<H", head, root - to_vtable + 4)
        return int(struct.unpack_from("<I", head, root + field)[0]) if field else 0
    except struct.error as error:
        raise Corrupt(f"its root table cannot be read: {error}", where=str(archive.path)) from error


def _bytecode_version(record: bytes, path: Path) -> int | None:
    """The number that opens ``bytecode.pkl``; None where the functions follow at once, as in 1.5 and 1.6."""
    try:
        for opcode, argument, _ in pickletools.genops(record):
            if opcode.name not in {"PROTO", "MARK"}:
                return argument if isinstance(argument, int) and opcode.name.startswith("BININT") else None
    except ValueError as error:
        raise Corrupt(f"record 'bytecode.pkl' is no pickle: {error}", where=str(path), code="damaged-record") from error
    return None
