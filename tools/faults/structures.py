"""Structure-aware faults: tables of flatbuffers, and fields that occur in several places of a zip archive."""

from __future__ import annotations

import io
import struct
import zlib
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tools.faults.faults import ENTRY_FIELDS, LOCAL_FIELDS, records_of
from tools.faults.layout import CENTRAL, LOCAL
from tools.faults.torch_zip import Written, write_end, write_member

if TYPE_CHECKING:
    import random

    from tools.faults.faults import Made, Sample

__all__ = ["container_fields", "mutated_tables"]

OF_TENSORS = 0.3  # share of the changes to a flatbuffer with tensors: one element too many must be noticed by the gate for views
MOST_SIZES, LARGE_SIZE = 8, 1 << 20
LARGE = (0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


# ------------------------------------------------------------------------------------------------------- flatbuffers


class Table(NamedTuple):
    """A table of a flatbuffer: the positions of the table, its vtable and its field values."""

    at: int
    vtable: int
    fields: tuple[int, ...]


@lru_cache(2048)
def tables(data: bytes) -> tuple[Table, ...]:
    """Possible tables: the vtable is inside the file and consistent."""
    results = []
    for at in range(4, len(data) - 3, 4):
        vtable = at - int.from_bytes(data[at : at + 4], "little", signed=True)
        if not 4 <= vtable <= len(data) - 4 or vtable % 2:
            continue
        length, size = struct.unpack_from("<2H", data, vtable)
        if length % 2 or not 6 <= length <= 64 or size < 4 or vtable + length > len(data) or at + size > len(data):
            continue
        offsets = struct.unpack_from(f"<{length // 2 - 2}H", data, vtable + 4)
        if all(offset == 0 or 4 <= offset < size for offset in offsets):
            results.append(Table(at, vtable, tuple(at + offset for offset in offsets if offset and at + offset + 4 <= len(data))))
    return tuple(results)


@lru_cache(2048)
def tensors(data: bytes) -> tuple[int, ...]:
    """The positions of the sizes and strides of possible tensors: tables that refer to two vectors with equally many small numbers."""
    results = []
    for table in tables(data):
        vectors = [numbers for numbers in (_small_numbers(data, field) for field in table.fields) if numbers]
        for item, two in pairwise(vectors):
            if len(item) == len(two):
                results += [*item, *two]
    return tuple(results)


def _small_numbers(data: bytes, field: int) -> range:
    """The positions of the numbers of a vector, if a field can refer to one; else none."""
    start = field + int.from_bytes(data[field : field + 4], "little")
    length = int.from_bytes(data[start : start + 4], "little")
    places = range(start + 4, start + 4 + 4 * length, 4)
    fits = 0 < length <= MOST_SIZES and places.stop <= len(data)
    return places if fits and all(int.from_bytes(data[at : at + 4], "little") < LARGE_SIZE for at in places) else range(0)


def mutated_tables(rng: random.Random, data: bytes) -> tuple[str, bytes] | None:
    """Change entries of vtables, references to other tables, or lengths of vectors; None if there is no table."""
    known = tables(data)
    if not known:
        return None
    changed = bytearray(data)
    messages = [_one_of_tables(rng, changed, known, tensors(data)) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
    return ", ".join(messages), bytes(changed)


def _one_of_tables(rng: random.Random, data: bytearray, known: tuple[Table, ...], sizes: tuple[int, ...]) -> str:
    if sizes and rng.random() < OF_TENSORS:
        at = rng.choice(sizes)
        now = int.from_bytes(data[at : at + 4], "little")
        _put(data, at, now + rng.choice((1, 1, 1, 1, -1, 8, now)), 4)
        return f"size or stride at {at}"
    table = rng.choice(known)
    what = rng.choice(
        ["entry", "entry", "length of vtable", "vtable", "reference", "reference", "vector", "vector", "fields exchanged"]
    )
    if not table.fields:
        what = "vtable"
    if what == "entry":
        size = int.from_bytes(data[table.vtable + 2 : table.vtable + 4], "little")
        place = (
            table.vtable + 4 + 2 * rng.randrange(max(1, int.from_bytes(data[table.vtable : table.vtable + 2], "little") // 2 - 2))
        )
        _put(data, place, rng.choice([0, 2, 4, 6, size - 4, size - 1, size, size + 4, 0xFFFF, rng.randrange(64)]), 2)
    elif what == "length of vtable":
        now = int.from_bytes(data[table.vtable : table.vtable + 2], "little")
        _put(data, table.vtable, rng.choice([0, 2, 4, 5, now - 2, now + 2, now + 20, 0xFFFE, 0xFFFF]), 2)
    elif what == "vtable":
        _put(data, table.at, rng.choice([0, 4, -4, table.at, table.at - rng.choice(known).vtable, table.at + 4, *LARGE]), 4)
    elif what == "reference":
        field, other = rng.choice(table.fields), rng.choice(known)
        target = rng.choice(
            [other.at, other.vtable, table.at, *(other.fields[:1] or (0,)), len(data) - 4, len(data), len(data) + 4]
        )
        _put(data, field, rng.choice([target - field, target - field, 0, rng.choice(LARGE)]), 4)
    elif what == "vector":
        field = rng.choice(table.fields)
        start = field + int.from_bytes(data[field : field + 4], "little")
        if start + 4 <= len(data):
            now, left = int.from_bytes(data[start : start + 4], "little"), len(data) - start - 4
            new = rng.choice([0, now - 1, now + 1, 2 * now, left, left + 1, left // 4, left // 4 + 1, left // 8 + 1, *LARGE])
            _put(data, start, new, 4)
    else:
        item, two = rng.choice(table.fields), rng.choice(rng.choice(known).fields or table.fields)
        data[item : item + 4], data[two : two + 4] = data[two : two + 4], data[item : item + 4]
    return f"{what} of the table at {table.at}"


def _put(data: bytearray, at: int, value: int, width: int) -> None:
    data[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")


# --------------------------------------------------------------------------------------------------------------- zip

SHARED = ("flags", "method", "crc", "stored size", "size", "length of name")
CHARACTERS = b"/\\.\0 \x1b\xff\xc3A0:"


def container_fields(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Change what local header, directory entry and footer state about a member; extra fields, comments, zip64 numbers."""
    if not sample.layout.members:
        return None
    out = io.BytesIO()
    records = records_of(sample)
    written = [
        write_member(out, member.full_name, data, deflate=member.method != 0 or rng.random() < 0.1) for member, data in records
    ]
    directory = out.tell()
    write_end(out, written)
    data = bytearray(out.getvalue()[:directory])
    messages = []
    for _number in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(written))
        written[at], what = _one_of_fields(rng, data, written[at], records[at][0].full_name)
        messages.append(f"{records[at][0].record}: {what}")
    if rng.random() < 0.1:
        rng.shuffle(written)
        messages.append("entries in another order")
    out = io.BytesIO(bytes(data))
    out.seek(directory)
    write_end(out, written)
    result = out.getvalue()
    if rng.random() < 0.15:
        comment = rng.choice([b"x", result[-22:], b"PK\5\6", b"\0" * 65535])
        result = result[:-2] + struct.pack("<H", len(comment)) + comment
        messages.append("a comment behind it")
    elif rng.random() < 0.15:
        result = result[:-98] + result[-22:]
        messages.append("no end record of zip64")
    return ", ".join(messages), result, frozenset(), False


def _one_of_fields(rng: random.Random, data: bytearray, written: Written, name: bytes) -> tuple[Written, str]:
    what = rng.choice(
        ["number", "number", "number", "number", "name", "extra of the entry", "extra of the header", "comment", "zip64"]
    )
    central = bytearray(written.central)
    header = written.header
    if what == "number":
        field = rng.choice(SHARED)
        at, width = ENTRY_FIELDS[field]
        now = int.from_bytes(central[at : at + width], "little")
        new = rng.choice([0, 1, 8, 9, 12, now + 1, now - 1, 2 * now, now ^ 1 << rng.randrange(8 * width), len(data), *LARGE])
        _put(central, at, new, width)
        at, width = LOCAL_FIELDS[field]
        _put(data, header + at, new, width)
        footer = {"crc": 4, "stored size": 8, "size": 12}.get(field)
        if footer is not None and data[written.end - 16 : written.end - 12] == b"PK\7\10":
            _put(data, written.end - 16 + footer, new, 4)
        what = f"{field} is {new} everywhere"
    elif what == "name":
        place, new = rng.randrange(len(name)), rng.choice(CHARACTERS)
        central[CENTRAL.size + place] = data[header + LOCAL.size + place] = new
        what = f"character {place} of the name is {new}"
    elif what == "extra of the header":
        length = int.from_bytes(data[header + 28 : header + 30], "little")
        start = header + LOCAL.size + len(name)
        data[start : start + length] = _extra(rng)[:length].ljust(length, b"\0")
    else:
        extra = _extra(rng) if what == "extra of the entry" else b""
        comment = rng.choice([b"x", b"PK\5\6", bytes(central), b"\0" * 5000]) if what == "comment" else b""
        if what == "zip64":
            values = [int.from_bytes(central[at : at + 4], "little") for at in (24, 20, 42)]
            chosen = [number for number in range(3) if rng.random() < 0.6]
            for number in chosen:
                _put(central, (24, 20, 42)[number], 0xFFFFFFFF, 4)
            stated = [(values[n] + rng.choice([0, 0, 0, 1, 1 << 32, 1 << 63])) & (1 << 64) - 1 for n in chosen]
            extra = struct.pack(f"<HH{len(chosen)}Q", 1, 8 * len(chosen) + rng.choice([0, 0, 0, -8, 8, 4]) & 0xFFFF, *stated)
        _put(central, 30, len(extra), 2)
        _put(central, 32, len(comment), 2)
        central[CENTRAL.size + len(name) :] = extra + comment
    return Written(header, written.data, written.end, bytes(central)), what


def _extra(rng: random.Random) -> bytes:
    """Extra fields: zip64, padding, a name, an unknown id; complete or truncated."""
    result = b""
    for _ in range(rng.choice([1, 1, 2, 3])):
        body = rng.choice(
            [
                b"",
                rng.randbytes(8),
                rng.randbytes(24),
                b"Z" * 40,
                struct.pack("<B", 1) + zlib.crc32(b"x").to_bytes(4, "little") + b"../x",
            ]
        )
        length = len(body) + rng.choice([0, 0, 0, 0, 1, -1, 8, 0xFFF0])
        result += struct.pack("<HH", rng.choice([1, 0x4246, 0x7075, 0x5455, 0x9901, rng.getrandbits(16)]), length & 0xFFFF) + body
    return result[: rng.choice([len(result)] * 4 + [max(0, len(result) - 3)])]
