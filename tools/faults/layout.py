"""The byte layout of an undamaged archive, read independently of the code under test."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CENTRAL", "LOCAL", "Layout", "Member", "Span", "layout"]

LOCAL = Struct("<4s5H3I2H")
CENTRAL = Struct("<4s6H3I5H2I")
END = Struct("<4s4HIIH")
WITHOUT_FOLDER = b"serialized_exported_program.json"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a zip archive: the positions of its header, data, footer and directory entry."""

    full_name: bytes
    record: str
    header: int
    data: int
    data_end: int
    end: int
    entry: int
    entry_end: int
    crc: int
    method: int

    def content(self, raw: bytes) -> bytes:
        """The inflated data."""
        stored = raw[self.data : self.data_end]
        return zlib.decompress(stored, -15) if self.method else stored


@dataclass(frozen=True, slots=True)
class Span:
    """A byte range and its record; without a record if it belongs to the archive as a whole."""

    start: int
    end: int
    part: str
    record: str | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout; without members if the container is not a zip archive."""

    members: tuple[Member, ...]
    spans: tuple[Span, ...]
    directory: int

    @property
    def protected(self) -> frozenset[str]:
        """Records protected by a checksum."""
        return frozenset(member.record for member in self.members if member.crc or member.data == member.data_end)

    def records_at(self, places: Iterable[int]) -> frozenset[str]:
        """The records to which the bytes belong."""
        wanted = sorted(places)
        return self._records([span for span in self.spans if bisect_left(wanted, span.end) > bisect_left(wanted, span.start)])

    def records_in(self, start: int, end: int) -> frozenset[str]:
        """The records with bytes in a range."""
        return self._records([span for span in self.spans if span.start < end and start < span.end])

    def _records(self, spans: list[Span]) -> frozenset[str]:
        """Damage that spans several directory entries, or one entry and what follows it, belongs to the directory and to no record."""
        directory = sum(span.part in {"entry", "end"} for span in spans)
        return frozenset(span.record for span in spans if span.record is not None and (span.part != "entry" or directory == 1))


def layout(raw: bytes) -> Layout:
    """The layout of an undamaged archive."""
    if raw[:4] != b"PK\3\4":
        return Layout((), (Span(0, len(raw), "stream", None),), len(raw))
    _, _, _, _, count, length, start, _ = END.unpack_from(raw, len(raw) - END.size)
    members: list[Member] = []
    names: list[bytes] = []
    entries = []
    at = start
    for _ in range(count):
        (_, _, _, _, method, _, _, crc, stored, size, name_length, extra_length, comment_length,
         _, _, _, header) = CENTRAL.unpack_from(raw, at)  # fmt: skip
        name = raw[at + CENTRAL.size : at + CENTRAL.size + name_length]
        after = at + CENTRAL.size + name_length + extra_length + comment_length
        entries.append((name, method, crc, stored, size, header, at, after))
        names.append(name)
        at = after
    prefix = b"" if WITHOUT_FOLDER in names else names[0][: names[0].find(b"/") + 1]
    for name, method, crc, stored, size, header, entry, entry_end in entries:
        local = LOCAL.unpack_from(raw, header)
        data = header + LOCAL.size + local[9] + local[10]
        end = (
            data + stored + (16 if local[2] & 8 and (size or local[2] == 0x808) and raw[data + stored :][:4] == b"PK\7\10" else 0)
        )
        record = name.removeprefix(prefix).decode()
        members.append(Member(name, record, header, data, data + stored, end, entry, entry_end, crc, method))
    spans: list[Span] = []
    for member in members:
        spans.append(Span(member.header, member.data, "header", member.record))
        if member.data_end > member.data:
            spans.append(Span(member.data, member.data_end, "data", member.record))
        if member.end > member.data_end:
            spans.append(Span(member.data_end, member.end, "footer", member.record))
        spans.append(Span(member.entry, member.entry_end, "entry", member.record))
    spans.append(Span(start + length, len(raw), "end", None))
    spans.sort(key=lambda span: span.start)
    return Layout(tuple(members), tuple(spans), start)
