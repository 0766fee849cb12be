"""Identifies the format of an archive by its records.

Archives do not state their format, and several layouts share a version number. So, for zip, the first of these records that is present
decides (each format's module names its record):

* ``archive_format``; ``serialized_exported_program.json``     export (pt2 archives; older archives)
* ``.data/extern_modules``, ``.data/python_version``, ``extern_modules``    package
* ``bytecode.pkl``                                mobile (a TorchScript archive with bytecode beside its source)
* ``model.json`` (1.0 to 1.2), ``constants.pkl``    torchscript
* ``data.pkl`` alone                              torch-save

If an archive contains records of two formats that no writer combines, it is damaged: ``ambiguous-format``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from torch_compat.archive import Damage, ZipArchive, open_archive
from torch_compat.errors import Corrupt, NoArchive
from torch_compat.formats import (
    bare_pickle,
    distributed,
    export_plain,
    export_pt2,
    mobile_flatbuffer,
    mobile_pickle,
    package,
    torch_save_stream,
    torch_save_tar,
    torch_save_zip,
    torchscript,
    torchscript_json,
)
from torch_compat.formats.model import Facts

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.archive import Archive

__all__ = ["Identity", "add_versions", "identify", "is_exported", "recognised"]


class ZipFormat(Protocol):
    """The interface of modules for formats in zip archives."""

    LAYOUT: str
    FAMILY: str

    def recognise(self, names: frozenset[str]) -> str | None:
        """The record that identifies this format."""

    def versions(self, archive: ZipArchive, names: frozenset[str]) -> dict[str, int]:
        """The version numbers found inside."""

    def read(self, archive: ZipArchive, facts: Facts) -> None:
        """Fill in the facts of the archive."""


class OtherFormat(Protocol):
    """The interface of modules for formats in other containers."""

    LAYOUT: str
    FAMILY: str

    def versions(self, archive: Archive) -> dict[str, int]:
        """The version numbers found inside."""

    def read(self, archive: Archive, facts: Facts) -> None:
        """Fill in the facts of the archive."""


IN_ZIP: tuple[ZipFormat, ...] = (
    export_pt2, export_plain, package, mobile_pickle, torchscript_json, torchscript, torch_save_zip,
)  # fmt: skip
MARKERS = frozenset({
    "archive_format", "serialized_exported_program.json", *package.MARKERS, "bytecode.pkl", "model.json", "constants.pkl", "data.pkl",
})  # fmt: skip
OTHERS: dict[str, OtherFormat] = {
    "stream": torch_save_stream, "tar": torch_save_tar, "flatbuffer": mobile_flatbuffer, "pickle": bare_pickle,
}  # fmt: skip
FOLDERS = frozenset({"no-folder", "outside-folder"})  # other archives need not keep their records in one folder
# A mobile archive is a TorchScript archive with one more record, and a TorchScript archive contains a pickle as torch.save writes it.
LAYERS = (mobile_pickle.LAYOUT, torchscript.LAYOUT, torch_save_zip.LAYOUT)


class Identity(NamedTuple):
    """The identity of an archive.

    Attributes:
        family: ``torch-save``, ``torchscript``, ``mobile``, ``package``, ``export`` or ``distributed``.
        container: ``zip``, ``stream``, ``tar``, ``flatbuffer``, ``pickle`` or ``directory``.
        versions: the version numbers found inside, by kind: ``file-format``, ``bytecode``, ``stream-protocol``,
            ``export-schema`` (the major number, the only one that loaders compare).
    """

    family: str
    container: str
    versions: dict[str, int]


def identify(path: Path) -> Identity:
    """Identify an archive.

    Raises:
        UsageError: no such file.
        Corrupt: it violates the format of its container.
        NoArchive: no format that PyTorch writes.
    """
    if distributed.is_checkpoint(str(path)):
        return Identity(distributed.FAMILY, distributed.CONTAINER, {})
    if path.is_dir():
        raise NoArchive("a directory that is not a distributed checkpoint", where=str(path), code="no-format")
    with open_archive(path, inspecting=True) as archive:
        facts, module = recognised(archive)
        add_versions(facts, module, archive)
        return Identity(facts.family, facts.container, facts.versions)


def recognised(archive: Archive) -> tuple[Facts, ZipFormat | OtherFormat]:
    """Facts that only identify the format of an archive, and the format module, which can fill in the rest.

    Raises:
        Corrupt: the records that identify its format are damaged.
        NoArchive: no format that PyTorch writes.
    """
    facts = Facts(archive.path, archive.size, container=archive.container, damage=archive.damage)
    if not isinstance(archive, ZipArchive):
        other = OTHERS[archive.container]
        facts.family, facts.layout = other.FAMILY, other.LAYOUT
        return facts, other
    facts.names = archive.names
    facts.records = records = frozenset(archive.names)
    result, rest = _among(records & MARKERS)
    if result is None:
        first = next((item for item in archive.damage if item.code not in FOLDERS), None)
        if first is not None:
            where = f"{archive.path}, record {first.record!r}" if first.record else archive.path
            raise Corrupt(f"has no complete record that identifies its format: {first.detail}", where=where, code=first.code)
        held = ", ".join(sorted(records)[:5])[:200] or "nothing"
        raise NoArchive(f"a zip archive of other files ({held})", where=archive.path, code="no-format")
    facts.family, facts.layout = result.FAMILY, result.LAYOUT
    if rest:
        message = f"contains records of several formats: {', '.join(rest)}; it is read as the first one"
        archive.damage.append(Damage("ambiguous-format", None, message))
    if "version" in records and ".data/version" in records:
        message = "contains both version and .data/version; readers use the latter"
        archive.damage.append(Damage("ambiguous-version", "version", message))
    return facts, result


def add_versions(facts: Facts, module: ZipFormat | OtherFormat, archive: Archive) -> None:
    """Fill in the version numbers.

    Raises:
        ArchiveError: one of them cannot be read.
    """
    if isinstance(archive, ZipArchive):
        facts.versions = cast("ZipFormat", module).versions(archive, facts.records)
    else:
        facts.versions = cast("OtherFormat", module).versions(archive)


def is_exported(archive: Archive) -> bool:
    """Whether an archive is one of torch.export's formats, by the names of its records alone."""
    return (
        isinstance(archive, ZipArchive)
        and (result := _among(frozenset(archive.names) & MARKERS)[0]) is not None
        and result.FAMILY == "export"
    )


@lru_cache(maxsize=256)
def _among(markers: frozenset[str]) -> tuple[ZipFormat | None, tuple[str, ...]]:
    """The format that these records identify; and all identified formats, if no single writer combines them."""
    results = [(item, record) for item in IN_ZIP if (record := item.recognise(markers))]
    if not results:
        return None, ()
    told = [f"{item.LAYOUT} ({record})" for item, record in results if item.LAYOUT not in LAYERS]
    layered = next((f"{item.LAYOUT} ({record})" for item, record in results if item.LAYOUT in LAYERS), None)
    if layered is not None:
        told.append(layered)
    return results[0][0], tuple(told) if len(told) > 1 else ()
