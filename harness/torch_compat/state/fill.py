"""The second pass over an archive with skipped storages: write each storage at its calculated offset.

Under ``torch.serialization.skip_data`` (2.5 and newer) ``torch.save`` only seeks past each storage: the result is a
complete archive with holes of zeros. Headers, data descriptors and the central directory are present and give 0 as the checksum of
each hole. Torch does not verify checksums when reading, so it reads an archive that was filled in place; this module writes the
checksums as well, for readers that do verify them. The record ``.data/serialization_id``, which torch's writer derives from
all checksums, is left unchanged: nothing checks it, and it still distinguishes archives.

Filling in place cannot lose data: every name, size and offset is compared before the first byte is written, holes hold nothing, and
only holes and their checksums are written to. For each storage the checksums are written before the data, so an interrupted
run shows up as a damaged record, never as wrong numbers, and filling the archive again from a mapping repairs it. (Without checksums
an interrupted run cannot be detected: write a copy instead.)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from torch_compat.archive import ZipArchive, open_archive
from torch_compat.archive.offsets import ZIP64_FROM
from torch_compat.arrays import elements
from torch_compat.errors import Corrupt, UsageError
from torch_compat.state.damage import refuse_damage
from torch_compat.state.dtypes import array_dtype, is_raw
from torch_compat.state.load import objects_of
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive import Member
    from torch_compat.formats import Facts, StorageRecord

__all__ = ["Source", "fill_storages"]

Source = Mapping[str, Any] | Callable[[str], Any]
"""Data keyed by storage key: bytes in the byte order of the archive, or a NumPy array."""

CENTRAL = Struct("<4s4HI3I5H2I")  # a directory entry: the lengths of name, extra field and comment are fields 9 to 11
CENTRAL_SIGNATURE = b"PK\x01\x02"
CRC_IN_ENTRY = 16
CRC_IN_DESCRIPTOR = 4
AT_ONCE = 16 << 20  # bytes
UNFINISHED = frozenset({"crc-mismatch", "crc-disagrees"})  # what a run leaves behind if it is interrupted within a storage


@dataclass(slots=True)
class _Hole:
    """A storage that was skipped.

    Attributes:
        one: the record of the storage according to the format.
        entry: offset of its entry in the central directory.
    """

    one: StorageRecord
    entry: int

    @property
    def place(self) -> int:
        """The calculated offset."""
        assert self.one.calculated_offset is not None  # noqa: S101 - asked for before it was made
        return self.one.calculated_offset


def fill_storages(path: str | os.PathLike[str], source: Source, *, to: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Write the storages of an archive that was saved under ``skip_data``, in place or in a copy.

    Storages are requested one after the other, in file order, so a callable needs to hold only one in memory. If the
    archive has no checksums at all (``set_crc32_options(False)``), holes cannot be distinguished from zeros: every storage that holds only
    zeros then counts as a hole, and no checksum is written.

    Parameters:
        path: the archive.
        source: the data of every hole, by the key of its storage (``"0"``): a mapping, or a callable that takes the key. Bytes are
            written as they are; a NumPy array is converted to the byte order of the archive, and must have the dtype of the
            storage, unless one of the two is uint8. For quantized dtypes it must have the dtype of their integers.
        to: where to write a filled copy, which appears there complete or not at all; the archive itself is not modified.

    Returns:
        The keys of the filled storages.

    Raises:
        UsageError: the archive has no holes, a key is missing or unknown, or a size is not exactly that of its storage. With a callable
            this is only detected when it is called: the preceding storages are then filled, and the following ones are still holes.
        Corrupt: the archive contradicts itself, or its storages are not at their calculated offsets.
        Unsupported: the file is not an archive of torch.save.
    """
    path = Path(path)
    if to is None:
        return _fill(path, path, source)
    to = Path(to)
    _holes(path, source)  # before anything is copied
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{to.name}.", dir=to.parent)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(to)) from error
    os.close(descriptor)
    temporary = Path(name)
    try:
        shutil.copyfile(path, temporary)
        shutil.copymode(path, temporary)
        filled = _fill(temporary, path, source)
        temporary.replace(to)
    finally:
        temporary.unlink(missing_ok=True)
    return filled


def _fill(path: Path, named: Path, source: Source) -> tuple[str, ...]:
    holes, byteorder, protected = _holes(path, source)
    with path.open("r+b") as file:
        for hole in holes:
            data = _data(source, hole, byteorder, str(named))
            if protected:
                _write_crc(file, hole, zlib.crc32(data))
                _reach_disk(file)
            file.seek(hole.place)
            for start in range(0, len(data), AT_ONCE):
                file.write(data[start : start + AT_ONCE])
            _reach_disk(file)
    return tuple(hole.one.key for hole in holes)


def _reach_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _write_crc(file: BinaryIO, hole: _Hole, crc: int) -> None:
    message = crc.to_bytes(4, "little")
    file.seek(hole.place + hole.one.nbytes + CRC_IN_DESCRIPTOR)
    file.write(message)
    file.seek(hole.entry + CRC_IN_ENTRY)
    file.write(message)


# ------------------------------------------------------------------------------------------------------------------------ asking


def _holes(path: Path, source: Source) -> tuple[list[_Hole], str, bool]:
    """The holes of an archive in file order, its byte order, and whether it has checksums.

    Raises:
        UsageError: there are no holes, or the source does not match them.
        Corrupt: the archive contradicts itself.
    """
    with open_archive(path) as archive:
        facts = objects_of(archive)
        if not isinstance(archive, ZipArchive):
            raise _no_holes(path, f"is a {archive.container}; only zip archives can have skipped data")
        holes, protected = _found(archive, facts, source)
        if not holes:
            raise _no_holes(path, "has no skipped storages: the data of every storage is present")
        filled = {hole.one.record for hole in holes}
        archive.damage[:] = [damage for damage in archive.damage if damage.record not in filled or damage.code not in UNFINISHED]
        refuse_damage(archive, set(facts.names))
        return holes, facts.byteorder or "little", protected


def _no_holes(path: Path, text: str) -> UsageError:
    return UsageError(text, where=str(path), hint="save it with torch.serialization.skip_data", code="no-holes")


def _found(archive: ZipArchive, facts: Facts, source: Source) -> tuple[list[_Hole], bool]:
    entries = _entries(archive)
    protected = archive.member("data.pkl").crc != 0
    holes = []
    for storage in facts.storages:
        if storage.record is None or storage.record not in facts.records:
            continue
        member = archive.member(storage.record)
        if storage.nbytes and (_is_hole(archive, storage, member, protected) or _interrupted(archive, storage, member, source)):
            _check_place(archive, storage, member)
            holes.append(_Hole(storage, entries[member.header_offset]))
    holes.sort(key=lambda hole: hole.place)
    if isinstance(source, Mapping):
        _check_keys(archive.path, source, [hole.one.key for hole in holes])
        for hole in holes:
            _data(source, hole, facts.byteorder or "little", archive.path)
    return holes, protected


def _is_hole(archive: ZipArchive, record: StorageRecord, member: Member, protected: bool) -> bool:
    if record.absent or protected or member.crc:
        return record.absent
    return not elements(archive.view(record.record or ""), np.dtype(np.uint8)).any()


def _interrupted(archive: ZipArchive, record: StorageRecord, member: Member, source: Source) -> bool:
    """Whether an earlier run wrote the checksum of this hole and did not finish; writing the same data then repairs it."""
    if not member.crc or not isinstance(source, Mapping) or record.key not in source:
        return False
    try:
        archive.view(record.record or "")
    except Corrupt as error:
        return error.code in UNFINISHED
    return any(damage.record == record.record and damage.code in UNFINISHED for damage in archive.damage)


def _check_place(archive: ZipArchive, record: StorageRecord, member: Member) -> None:
    where = f"{archive.path}, storage {record.key!r}"
    if member.size != record.nbytes or member.method:
        message = f"has a record of {count_of(member.size, 'byte')}, expected {record.nbytes}"
        raise Corrupt(message, where=where, code="size-disagrees")
    if record.calculated_offset is None:
        raise Corrupt(f"has no calculated offset: {record.why}", where=where, code="no-offset")
    if record.calculated_offset != member.data_offset:
        message = f"should start at {record.calculated_offset}, but starts at {member.data_offset}"
        raise Corrupt(message, where=where, code="offset-disagrees")


def _check_keys(path: str, source: Mapping[str, Any], keys: list[str]) -> None:
    missing = [key for key in keys if key not in source]
    unknown = [str(key) for key in source if key not in keys]
    if missing or unknown:
        message = f"has holes for storages {', '.join(keys) or 'none'};"
        message += f" no data was given for {', '.join(missing)}" if missing else ""
        message += f" data was given for {', '.join(unknown)}, which are not holes" if unknown else ""
        raise UsageError(message, where=path, code="wrong-keys")


def _entries(archive: ZipArchive) -> dict[int, int]:
    """The offset of each member's entry in the central directory, keyed by the offset of its local header."""
    results = {}
    position = archive.directory_offset
    data = archive.data
    for member in archive.members:
        fields = CENTRAL.unpack_from(data, position)
        if fields[0] != CENTRAL_SIGNATURE or fields[-1] not in {member.header_offset, ZIP64_FROM}:
            message = f"has no entry for {member.record!r} at {position} in its central directory"
            raise Corrupt(message, where=archive.path, code="bad-directory")
        results[member.header_offset] = position
        position += CENTRAL.size + sum(fields[9:12])
    return results


def _data(source: Source, hole: _Hole, byteorder: str, path: str) -> memoryview:
    """The bytes to write into a hole.

    Raises:
        UsageError: the source has no usable data for it, or data of the wrong size or dtype.
    """
    item = hole.one
    where = f"{path}, storage {item.key!r}"
    given = source[item.key] if isinstance(source, Mapping) else source(item.key)
    if isinstance(given, np.ndarray):
        given = _bytes_of(given, item, byteorder, where)
    try:
        data = memoryview(given).cast("B")
    except (TypeError, ValueError) as error:
        message = f"was given a value of type {type(given).__name__}; expected bytes or an array"
        raise UsageError(message, where=where, code="wrong-data") from error
    if len(data) != item.nbytes:
        raise UsageError(
            f"was given {count_of(len(data), 'byte')}; expected exactly {item.nbytes}", where=where, code="wrong-size"
        )
    return data


def _bytes_of(given: np.ndarray[Any, np.dtype[Any]], record: StorageRecord, byteorder: str, where: str) -> Any:
    """The bytes of an array, in the byte order of the archive."""
    wanted = None if record.dtype is None or is_raw(record.dtype) else array_dtype(record.dtype, sys.byteorder)
    if given.dtype != np.uint8 and wanted is not None and wanted != np.uint8 and given.dtype.newbyteorder("=") != wanted:
        message = f"was given an array of {given.dtype}, expected {record.dtype}"
        raise UsageError(message, where=where, code="wrong-dtype")
    if given.dtype.type is np.void or given.dtype.kind not in "biufcV":  # numpy reports ml_dtypes as void, except for their type
        raise UsageError(f"was given an array of {given.dtype}; expected numbers", where=where, code="wrong-dtype")
    data = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
    order = {"<": "little", ">": "big"}.get(given.dtype.byteorder, sys.byteorder)
    size = given.dtype.itemsize // (2 if given.dtype.kind == "c" else 1)
    if order != byteorder and size > 1:
        data = np.ascontiguousarray(data.reshape(-1, size)[:, ::-1]).reshape(-1)
    return data.data
