"""Zip archives of torch.save nested as records in another zip archive, as in exported programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.allowance import NESTED
from torch_compat.archive import Damage, ZipArchive
from torch_compat.archive.base import Mapped, map_part
from torch_compat.errors import Corrupt
from torch_compat.formats import _zip, torch_save_zip
from torch_compat.formats.model import Facts

if TYPE_CHECKING:
    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Raw

__all__ = ["add", "opened", "torch_save"]

ZIP_MAGIC = b"PK\x03\x04"
COPIED = 16 << 20  # records up to this size are copied; longer uncompressed records are mapped again
PACKED = "the archive that contains it is compressed"


def add(archive: ZipArchive, facts: Facts, record: str) -> None:
    """Read the archive in a record, and add its facts.

    Raises:
        ArchiveError: it cannot be read.
    """
    member = archive.member(record)
    inner, result, before = opened(archive, record)
    with inner:
        for damage in inner.damage:
            if not (damage.code == "junk-before" and before and damage.offset == 0):
                offset = None if damage.offset is None else damage.offset + member.data_offset - before
                facts.damage.append(
                    Damage(damage.code, f"{record}/{damage.record}" if damage.record else record, damage.detail, offset)
                )
    places = _zip.calculated(archive, facts) if facts.layout != "export_plain" else {}
    for storage in result.storages:
        storage.record = f"{record}/{storage.record}"
        if member.method:
            storage.offset, storage.calculated_offset, storage.why = None, None, PACKED
        elif storage.offset is not None:
            storage.offset += member.data_offset - before
            if storage.calculated_offset is not None:
                if record in places:
                    storage.calculated_offset += places[record] - before
                else:
                    storage.calculated_offset, storage.why = None, _zip.NOT_TORCH
    facts.storages += result.storages
    facts.held.update(item.record for item in result.storages)
    facts.pickles.update({f"{record}/{name}": unpickled for name, unpickled in result.pickles.items()})
    facts.byteorder = facts.byteorder or result.byteorder


def opened(archive: ZipArchive, record: str) -> tuple[ZipArchive, Facts, int]:
    """The archive in a record, its torch.save facts, and the number of bytes before it in its memory.

    Raises:
        ArchiveError: it cannot be read.
    """
    archive.allowance.spend(NESTED)
    view = archive.view(record)
    where = f"{archive.path}, record {record!r}"
    if view[:4] != ZIP_MAGIC:
        message = f"begins with {bytes(view[:4]).hex(' ') or 'nothing'}, expected a zip archive of torch.save"
        raise Corrupt(message, where=where, code="bad-nested")
    raw, before = _raw(archive, record)
    return *torch_save(where, raw, archive.allowance), before


def torch_save(where: str, raw: Raw, allowance: Allowance) -> tuple[ZipArchive, Facts]:
    """A zip archive of torch.save, and its facts.

    Raises:
        ArchiveError: it cannot be read.
    """
    inner = ZipArchive(where, raw, allowance)
    facts = Facts(where, len(raw), names=inner.names, records=frozenset(inner.names))
    if torch_save_zip.recognise(facts.records) is None:
        inner.close()
        raise Corrupt("is a zip archive without a record 'data.pkl'", where=where, code="bad-nested")
    torch_save_zip.read(inner, facts)
    return inner, facts


def _raw(archive: ZipArchive, record: str) -> tuple[Raw, int]:
    """The bytes of a record as a separate file, and the number of bytes before the record in it."""
    view = archive.view(record)
    member = archive.member(record)
    if len(view) > COPIED and not member.method and isinstance(archive.raw, Mapped):
        return map_part(archive.raw, member.data_offset, len(view))
    archive.allowance.expand(len(view))
    return bytes(view), 0
