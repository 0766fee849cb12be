r"""Which container an archive is, and its records.

* ``zip``         first bytes ``PK\\x03\\x04``; members lie in one top folder, whose name is not part of a record's name here
                  (but for exported programs of 2.1 to 2.8, which have none)
* ``stream``      stacked pickles: the first is the magic number 0x1950a86a20f9469cfc6c, the second the protocol 1001
* ``tar``         torch 0.1: a POSIX tar with the members sys_info, pickle, storages, tensors
* ``flatbuffer``  the identifier ``PTMF`` at byte 4
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from harness.errors import Corrupt, Unsupported, UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Archive", "open_archive"]

ZIP_MAGIC = b"PK\x03\x04"
# PROTO n, LONG1 of 10 bytes: the magic number, little endian, in pickle protocol 2 and above
STREAM_MAGIC = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
# What the standard library raises at damaged archives: itself, its decompressors, and its arithmetic with nonsense. A bit
# that says "encrypted" gives RuntimeError, one that names another compression or version NotImplementedError.
ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError,
)  # fmt: skip
# torch.export.save of 2.1 to 2.8 puts its records into no folder; this one is always there. Nothing else does that.
WITHOUT_FOLDER = "serialized_exported_program.json"
HEAD_SIZE = 512  # a tar header is one block of 512 bytes; nothing else that tells containers apart lies further in


@dataclass(frozen=True)
class Archive:
    """An archive on disk.

    Attributes:
        path: the file.
        container: ``zip``, ``stream``, ``tar`` or ``flatbuffer``.
        head: its first 512 bytes, or all of them.
    """

    path: Path
    container: str
    head: bytes

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the records of a zip archive, in order, without the top folder. Empty for other containers."""
        if self.container != "zip":
            return ()
        with _zip(self.path) as archive:
            return tuple(_record_names(archive, self.path))

    def record(self, name: str) -> bytes:
        """The bytes of one record of a zip archive, inflated, its CRC checked unless the writer left it out (0).

        Raises:
            Corrupt: there is no such record, or it is damaged.
        """
        with _zip(self.path) as archive:
            for info, record in zip(archive.infolist(), _record_names(archive, self.path), strict=True):
                if record == name:
                    return _read(archive, info, self.path)
        raise Corrupt(f"has no record {name!r}", where=str(self.path), code="missing-record")


def open_archive(path: Path) -> Archive:
    """Recognise the container of a file by its bytes.

    Raises:
        UsageError: there is no such file, or it is a folder.
        Unsupported: it is no archive that PyTorch writes.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_SIZE)
    except IsADirectoryError:
        raise UsageError("is a folder, not an archive", where=str(path)) from None
    except FileNotFoundError:
        raise UsageError("there is no such file", where=str(path)) from None
    except PermissionError:
        raise UsageError("may not be read", where=str(path)) from None
    if head.startswith(ZIP_MAGIC):
        container = "zip"
    elif head[:1] == b"\x80" and STREAM_MAGIC in (head[2:14], head[11:23]):  # from pickle protocol 4 on, a frame comes first
        container = "stream"
    elif head[4:8] == b"PTMF":
        container = "flatbuffer"
    elif head[257:262] == b"ustar":
        container = "tar"
    else:
        found = "an empty file" if not head else f"a file that starts with {head[:8].hex(' ')}"
        raise Unsupported(f"is {found}, not an archive that PyTorch writes", where=str(path), code="no-archive")
    return Archive(path, container, head)


def _zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise Corrupt(f"starts like a zip archive, but {error}".replace("File is", "it is"), where=str(path)) from error


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> bytes:
    if info.CRC == 0:  # not protected, which is legal; the standard library would call it damaged
        info.CRC = None  # type: ignore[assignment]
    try:
        data = archive.read(info)
    except ZIP_ERRORS as error:
        raise Corrupt(f"record {info.filename!r} cannot be read: {error}", where=str(path), code="damaged-record") from error
    stored = info.compress_size if info.compress_type == zipfile.ZIP_STORED else info.file_size
    if not len(data) == info.file_size == stored:
        said = f"has {len(data)} bytes, but is said to have {info.file_size}, stored as {info.compress_size}"
        raise Corrupt(f"record {info.filename!r} {said}", where=str(path), code="damaged-record")
    return data


def _record_names(archive: zipfile.ZipFile, path: Path) -> list[str]:
    names = archive.namelist()
    return names if WITHOUT_FOLDER in names else [_without_folder(name, path) for name in names]


def _without_folder(name: str, path: Path) -> str:
    folder, slash, record = name.partition("/")
    if not slash:
        raise Corrupt(f"member {folder!r} lies in no folder; PyTorch puts every record into one", where=str(path))
    return record
