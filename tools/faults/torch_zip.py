"""A writer of zip archives with the layout of torch's writer, field by field; data may be holes, so that files can be huge."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

M = 0xFFFFFFFF


@dataclass
class Written:
    """The positions of a written member."""

    header: int
    data: int
    end: int
    central: bytes


def write_member(
    out: BinaryIO, name: bytes, data: bytes | int, *, alignment: int = 64, deflate: bool = False, crc32: bool = True
) -> Written:
    """Write local header, data and data descriptor; a number for data is the length of a hole."""
    header = out.tell()
    size = data if isinstance(data, int) else len(data)
    body = b"" if isinstance(data, int) else data
    if deflate:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = packer.compress(body) + packer.flush()
    stored = size if isinstance(data, int) else len(body)
    crc = zlib.crc32(data) if crc32 and isinstance(data, bytes) else 0
    method, needs, flags = (8, 20, 0x808) if deflate else (0, 0, 0x808 if size else 0x800)
    local_zip64, central_zip64 = b"", b""
    if size >= M:
        local_zip64 += struct.pack("<QQ", size, 0)
        central_zip64 += struct.pack("<QQ", size, stored)
    if header >= M:
        local_zip64 += struct.pack("<Q", header)
        central_zip64 += struct.pack("<Q", header)
    large = bool(local_zip64)
    if large:
        local_zip64 = struct.pack("<HH", 1, len(local_zip64)) + local_zip64
        central_zip64 = struct.pack("<HH", 1, len(central_zip64)) + central_zip64
    fill = -(header + 30 + len(name) + len(local_zip64) + 4) % alignment
    extra = local_zip64 + b"FB" + struct.pack("<H", fill) + b"Z" * fill
    out.write(struct.pack("<4sHHHIIIIHH", b"PK\3\4", needs, flags, method, 0, 0, 0, 0, len(name), len(extra)) + name + extra)
    start = out.tell()
    if isinstance(data, int):
        out.seek(data, 1)
    else:
        out.write(body)
    if size:
        out.write(struct.pack("<4sIQQ" if large else "<4sIII", b"PK\7\10", crc, stored, size))
    central = struct.pack(
        "<4sHHHHIIIIHHHHHII", b"PK\1\2", 0, needs, flags, method, 0, crc, M if size >= M else stored, min(M, size),
        len(name), len(central_zip64), 0, 0, 0, 0, min(header, M),
    )  # fmt: skip
    return Written(header, start, out.tell(), central + name + central_zip64)


def write_end(out: BinaryIO, members: list[Written]) -> None:
    """Write the central directory and the end records."""
    start = out.tell()
    directory = b"".join(member.central for member in members)
    count, length, end = len(members), len(directory), start + len(directory)
    out.write(directory)
    out.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 0x31E, 45, 0, 0, count, count, length, start))
    out.write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
    out.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), length, min(start, M), 0))


def write_torch_zip(
    path: Path,
    records: Mapping[str, bytes | int],
    *,
    folder: str = "archive",
    alignment: int = 64,
    deflate: frozenset[str] = frozenset(),
    crc32: bool = True,
) -> dict[str, Written]:
    """Write an archive; return the position of each record."""
    results = {}
    with path.open("wb") as out:
        for name, data in records.items():
            full = f"{folder}/{name}".encode()
            results[name] = write_member(out, full, data, alignment=alignment, deflate=name in deflate, crc32=crc32)
        write_end(out, list(results.values()))
    return results
