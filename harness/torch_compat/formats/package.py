"""torch.package: Python source, pickled objects and resources in a zip archive.

Written by torch.package.PackageExporter and read by PackageImporter of 1.8 and newer.

Records:

* ``extern_modules`` (1.8), ``.data/extern_modules`` (1.9 and newer)    the modules that are not included, one per line
* ``PACKAGE/RESOURCE.pkl``, ``PACKAGE/RESOURCE``, ``PACKAGE/MODULE.py``    what was saved
* ``data/KEY`` (1.8), ``.data/KEY.storage`` (1.9 and newer)    storages; keys are addresses up to 1.9, numbers from 1.10 on
* ``.data/ts_code/N/data.pkl``, ``constants.pkl`` and ``.data/ts_code/code/...``    scripted modules (1.9 and newer); their storages are
  among those of the package, with keys that end in ``.storage``
* ``.data/python_version`` (1.12 and newer)    ``3.11.7``
* ``version`` (3, in 1.8), ``.data/version`` (6, in 1.9 and newer); ``byteorder`` and ``.data/serialization_id`` from 2.1 on

Pickles are of protocol 3. A persistent id is ``("storage", class, key, location, number of elements)``, or
``("reduce_package", id, function, arguments)``: a call at loading; the id is an address up to 2.x.
A ``.pkl`` that is a pickled object looks like one that the user saved as a resource, so records that are not pickles are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.allowance import NAME
from torch_compat.errors import Corrupt
from torch_compat.formats import _zip
from torch_compat.formats.model import Producer
from torch_compat.formats.torch_save_zip import read_markers
from torch_compat.formats.torchscript import read_sources

if TYPE_CHECKING:
    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "recognise", "versions"]

LAYOUT, FAMILY = "package", "package"
MARKERS = (".data/extern_modules", ".data/python_version", "extern_modules")
versions = _zip.file_format


def recognise(names: frozenset[str]) -> str | None:
    """The record that identifies this format."""
    return next((record for record in MARKERS if record in names), None)


def read(archive: ZipArchive, facts: Facts) -> None:
    """Fill in the facts of the archive.

    Raises:
        ArchiveError: a record of it cannot be read.
    """
    names = facts.records
    read_markers(archive, facts)
    python = _zip.text(archive, ".data/python_version") if ".data/python_version" in names else None
    facts.producer = _producer(facts, names, python)
    for record in ("extern_modules", ".data/extern_modules"):
        if record in names:
            modules = str(archive.view(record), "utf-8", "replace")
            facts.extra["extern_modules"] = results = [line for line in modules.splitlines() if line]
            archive.allowance.spend(NAME * len(results) + len(modules) // 8)
    old = "extern_modules" in names

    def record_of(key: str) -> str:
        return f"data/{key}" if old else f".data/{key.removesuffix('.storage')}.storage"

    for record in archive.names:
        if record.endswith(".pkl") and _begins_like_pickle(archive, record):
            storages = _zip.read_pickle(archive, facts, record).storages
            _zip.add_storages(archive, facts, storages, record_of)
    read_sources(archive, facts)


def _begins_like_pickle(archive: ZipArchive, record: str) -> bool:
    head = bytes(archive.view(record)[:2])
    if head[:1] == b"\x80":
        return True
    if record.startswith(".data/"):
        where = f"{archive.path}, record {record!r}"
        raise Corrupt(f"begins with {head.hex(' ') or 'nothing'}, expected a pickle", where=where, code="bad-pickle")
    return False


def _producer(facts: Facts, names: frozenset[str], python: str | None) -> Producer:
    if "byteorder" in names:
        return Producer(first="2.1", python=python, because=("byteorder record",))
    if python is not None:
        return Producer(first="1.12", last="2.0", python=python, because=(".data/python_version record", "no byteorder record"))
    if "extern_modules" in names:
        return Producer(
            first="1.8", last="1.8", because=("extern_modules record", f"file format {facts.versions.get('file-format')}")
        )
    return Producer(first="1.9", last="1.11", because=("record .data/extern_modules", "no .data/python_version record"))
