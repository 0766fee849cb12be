"""Exported programs from before pt2 archives existed: JSON and torch.save archives in a plain zip archive without a folder.

Written by torch.export.save of 2.1 to 2.7 with Python's zipfile (time of writing, no padding, nothing aligned); read by
torch.export.load of the releases with the same major number of the schema.

Records, in the order of writing:

* ``serialized_exported_program.json``: the program; ``schema_version`` 1 (2.1), 2 (2.2), 5.1 (2.3), 5.3 (2.4), 7.3 (2.5), 8.2 (2.6),
  8.7 (2.7); ``opset_version``; from 2.5 on ``torch_version``
* ``serialized_state_dict.pt``, ``serialized_constants.pt`` (2.2 and newer), ``serialized_example_inputs.pt`` (2.4 and newer): each a zip
  archive of torch.save; 2.1 and 2.2 name the first ones ``.json``, although the format is the same
* ``extra_files/NAME``
* ``version``: the schema version as text. There is no file format version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.formats import _export, _nested, _zip
from torch_compat.formats.model import Producer

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Call, Facts

__all__ = ["FAMILY", "LAYOUT", "read", "recognise", "versions"]

LAYOUT, FAMILY = "export_plain", "export"
PROGRAM = "serialized_exported_program.json"
NESTED = ("serialized_state_dict", "serialized_constants", "serialized_example_inputs")
LINES = {"1": "2.1", "2": "2.2", "5.1": "2.3", "5.3": "2.4", "7.3": "2.5", "8.2": "2.6", "8.7": "2.7"}


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return PROGRAM if PROGRAM in names else None


def versions(archive: ZipArchive, names: frozenset[str]) -> dict[str, int]:  # noqa: ARG001 - as every format
    """The major number of the schema.

    Raises:
        Corrupt: the program cannot be read.
    """
    return {"export-schema": _export.schema_version(archive, PROGRAM, _export.load_json(archive, PROGRAM))[0]}


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    calls: set[Call] = set()
    _export.add_program(archive, facts, PROGRAM, _export.load_json(archive, PROGRAM), calls)
    facts.calls = frozenset(calls)
    message = _zip.text(archive, "version") if "version" in facts.records else None
    if message is not None and message != facts.export_schema:
        _zip.note(
            archive,
            "version-disagrees",
            "version",
            f"contains {message[:40]!r}, but the program has schema version {facts.export_schema!r}",
        )
    torch = _export.release(facts)
    line = LINES.get(facts.export_schema or "")
    because = (f"schema version {facts.export_schema}",)
    facts.producer = Producer(torch, line or "2.1", line or "2.8", because=because)
    for record in archive.names:
        if record.rpartition(".")[0] in NESTED and archive.member(record).size:  # nothing is written for None
            _nested.add(archive, facts, record)
