"""Common to the formats in zip archives: the version record, storages in records, the first and last release that write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.archive import Damage
from torch_compat.archive.base import windows
from torch_compat.archive.offsets import ALIGNMENT
from torch_compat.errors import Corrupt
from torch_compat.formats.model import StorageRecord
from torch_compat.pickles import unpickle
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch_compat.archive import ZipArchive
    from torch_compat.formats.model import Facts
    from torch_compat.pickles import Storage, Unpickled

__all__ = ["add_storages", "calculated", "file_format", "note", "read_pickle", "text"]

VERSION_RECORDS = (".data/version", "version")
NOT_TORCH = "this archive was not laid out by torch's writer"
COMPRESSED = "its record is compressed"
BEGINNING = 1 << 20  # bytes


def note(archive: ZipArchive, code: str, record: str | None, detail: str) -> None:
    """Record a contradiction of the format, or an ambiguity."""
    archive.damage.append(Damage(code, record, detail))


def text(archive: ZipArchive, record: str, longest: int = 1 << 16) -> str:
    """The short text in a record, stripped.

    Raises:
        Corrupt: it is damaged, or longer.
    """
    data = archive.record(record)
    if len(data) > longest:
        message = f"contains {count_of(len(data), 'byte')}, expected a short text"
        raise Corrupt(message, where=f"{archive.path}, record {record!r}", code="bad-record")
    return data.decode("ascii", "replace").strip()


def file_format(archive: ZipArchive, names: frozenset[str]) -> dict[str, int]:
    """The file format version: ``.data/version`` from version 6 on, else ``version``.

    Raises:
        Corrupt: it is not a number.
    """
    for record in VERSION_RECORDS:
        if record in names:
            message = text(archive, record)
            if not message.isdigit() or len(message) > 9:
                where = f"{archive.path}, record {record!r}"
                raise Corrupt(f"contains {message[:40]!r}, expected a number", where=where, code="bad-version")
            return {"file-format": int(message)}
    return {}


def read_pickle(archive: ZipArchive, facts: Facts, record: str) -> Unpickled:
    """Unpickle a record, once.

    Raises:
        Corrupt: it is not a pickle.
        Unsafe: it needs something that only this process knows, or more than a pickle needs.
    """
    result = facts.pickles.get(record)
    if result is None:
        where = f"{archive.path}, record {record!r}"
        result = facts.pickles[record] = unpickle(archive.view(record, mapped=False), where=where, allowance=archive.allowance)
    return result


def calculated(archive: ZipArchive, facts: Facts) -> dict[str, int]:
    """The data offset of each record, from names and sizes alone; empty if torch's writer did not write the archive."""
    return archive.places(facts.storage_alignment or ALIGNMENT)


def add_storages(
    archive: ZipArchive,
    facts: Facts,
    storages: Iterable[Storage],
    record_of: Callable[[str], str],
    *,
    key_of: str = "",
    skipped: bool = False,
) -> None:
    """Fill in the locations of the storages that a pickle names.

    Parameters:
        record_of: returns the record of the storage with a key.
        key_of: prefix of a key, if two pickles of an archive may use the same key.
        skipped: whether the format leaves records empty instead of writing data.
    """
    places: dict[str, int] | None = None
    records = facts.records
    holes = _may_have_holes(archive, records)
    seen = facts.held
    for storage in storages:
        record = record_of(storage.key)
        if record in seen:
            continue
        seen.add(record)
        item = StorageRecord(key_of + storage.key, storage.dtype, storage.nbytes, None, None, record, device=storage.location)
        facts.storages.append(item)
        if record not in records:
            item.why = f"has no record {record!r} for a storage of {count_of(storage.nbytes, 'byte')}"
            note(archive, "missing-record", record, item.why)
            continue
        if places is None:
            places = calculated(archive, facts)
        member = archive.member(record)
        item.offset = offset = member.data_offset
        if skipped and not member.size:
            item.absent = storage.nbytes > 0
        elif member.size != storage.nbytes:
            message = f"contains {count_of(member.size, 'byte')}, but the pickle expects {storage.nbytes}"
            note(archive, "size-disagrees", record, message)
        if member.method:
            item.offset, item.why = None, COMPRESSED
        elif not places:
            item.why = NOT_TORCH
        else:
            item.calculated_offset = places[record]
            if places[record] != offset and record not in archive.moved:
                message = f"starts at {offset}, but should start at {places[record]} according to the record sizes"
                note(archive, "offset-disagrees", record, message)
        if holes and member.crc == 0 and member.size and not member.method:
            item.absent = _is_hole(archive, offset, member.size)


def _may_have_holes(archive: ZipArchive, records: frozenset[str]) -> bool:
    """Whether checksums were calculated on writing; if so, a nonempty record without one was never written.

    With ``skip_data`` the writer only skips the size of a storage; the checksum stays 0. With checksums turned off, all records have 0, and
    the two cases cannot be distinguished.
    """
    return "data.pkl" in records and archive.member("data.pkl").crc != 0


def _is_hole(archive: ZipArchive, offset: int, size: int) -> bool:
    """Whether a record contains only zeros. If the file is not read as a whole, only the start of the record is checked.

    Raises:
        Unsafe: too much was read before: the records overlap.
    """
    looked = size
    if not archive.allowance.complete and size > BEGINNING:
        looked = BEGINNING
        message = f"the file was not read in full: only {BEGINNING} bytes of each record without a checksum were examined"
        archive.allowance.omit("absent", message)
    archive.allowance.spend(looked >> 9)
    return _zeros(windows(archive.raw, offset, offset + looked))


def _zeros(parts: Iterator[memoryview]) -> bool:
    """Whether there are only zeros, as in an unfilled hole."""
    return all(part.tobytes() == bytes(len(part)) for part in parts)
