"""torch.save, zip: one pickle and its storages.

Written by torch.save on request in 1.4 and 1.5 (``_use_new_zipfile_serialization=True``), and by default from 1.6 on. Read by
torch.load from 1.4 on.

Records, in the order of writing:

* 1.4: ``version`` (1), ``data.pkl``, ``tensors/KEY``
* 1.5: ``version`` (2), ``data.pkl``, ``data/KEY``
* 1.6 to 2.0: ``data.pkl``, ``data/KEY``, ``version`` (3, as in all that follow)
* 2.1 to 2.6: ``data.pkl``, ``byteorder`` (``little`` or ``big``, for the elements of storages), ``data/KEY``, ``version``,
  ``.data/serialization_id``
* 2.7 and newer: ``data.pkl``, ``.format_version`` (1), ``.storage_alignment`` (a number, 64 unless changed), ``byteorder``, ``data/KEY``,
  ``version``, ``.data/serialization_id``

The folder is the name of the file without its last extension; it is ``archive`` for files written to a stream, and always up to 1.12.
Keys are addresses in 1.4 to 1.8, numbers from 0 on from 1.9 on. Storages are written in the order of their keys as strings, from 2.7
on as numbers; the pickle names them in a different order. Nothing is compressed.

``data.pkl`` is a pickle of protocol 2, unless ``pickle_protocol`` says otherwise. A persistent id is ``("storage", class, key,
location, number of elements)``.

A storage record without a checksum that holds only zeros, in an archive whose ``data.pkl`` has a checksum, is a hole that
``skip_data`` (2.5 and newer) left. Without checksums at all (2.6 and newer, ``set_crc32_options(False)``) holes cannot be
distinguished from zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.archive.offsets import ALIGNMENT
from torch_compat.errors import Corrupt
from torch_compat.formats import _zip
from torch_compat.formats.model import Producer

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "read_markers", "recognise", "versions"]

LAYOUT, FAMILY = "torch_save_zip", "torch-save"
versions = _zip.file_format
ORDERS = {b"little": "little", b"big": "big"}


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return "data.pkl" if "data.pkl" in names else None


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    names = facts.records
    read_markers(archive, facts)
    facts.producer = _producer(archive, names)
    folder = "tensors/" if "data/0" not in names and _is_of_1_4(archive, names) else "data/"
    unpickled = _zip.read_pickle(archive, facts, "data.pkl")
    _zip.add_storages(archive, facts, unpickled.storages, folder.__add__)


def read_markers(archive: ZipArchive, facts: Facts) -> None:
    """Byte order and alignment, as their records state them.

    Raises:
        Corrupt: one of them makes no sense.
    """
    names = facts.records
    if "byteorder" in names:
        message = archive.record("byteorder")
        facts.byteorder = ORDERS.get(message)
        if facts.byteorder is None:
            where = f"{archive.path}, record 'byteorder'"
            raise Corrupt(f"contains {message[:40]!r}, expected little or big", where=where, code="bad-byteorder")
    if ".storage_alignment" in names:
        alignment = _zip.text(archive, ".storage_alignment")
        if not alignment.isdigit() or not 0 < len(alignment) < 10 or int(alignment) == 0:
            where = f"{archive.path}, record '.storage_alignment'"
            raise Corrupt(f"contains {alignment[:40]!r}, expected a positive integer", where=where, code="bad-alignment")
        facts.storage_alignment = int(alignment)
    elif archive.torch:
        facts.storage_alignment = ALIGNMENT


def _is_of_1_4(archive: ZipArchive, names: frozenset[str]) -> bool:
    """Whether the storages are in tensors/, and the version comes first or was lost when somebody repacked the archive."""
    first = archive.names[0] == "version" or "version" not in names
    return first and any(name.startswith("tensors/") for name in archive.names)


def _producer(archive: ZipArchive, names: frozenset[str]) -> Producer:
    if ".format_version" in names:
        return Producer(first="2.7", because=(".format_version record",))
    if "byteorder" in names:
        return Producer(first="2.1", last="2.6", because=("byteorder record", "no .format_version record"))
    if _is_of_1_4(archive, names):
        return Producer(first="1.4", last="1.4", because=("records in tensors/",))
    if "version" not in names:
        return Producer(
            first="1.4", last="2.0", because=("no version record (its position would narrow this down)", "no byteorder record")
        )
    if archive.names[0] == "version":
        return Producer(first="1.4", last="1.5", because=("version record comes first",))
    if archive.folder not in {"archive", ""}:
        because = ("the folder is named after a file", "no byteorder record")
        return Producer(first="1.13", last="2.0", because=because)
    return Producer(first="1.6", last="2.0", because=("version record comes last", "no byteorder record"))
