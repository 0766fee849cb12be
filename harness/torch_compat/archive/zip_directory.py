"""Reads the end and the central directory of a zip archive, or only the local headers if those are damaged."""

from __future__ import annotations

import re
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Any

from torch_compat.allowance import MEMBER
from torch_compat.archive.base import find
from torch_compat.archive.zip_member import (
    DESCRIBED,
    DESCRIPTOR,
    DESCRIPTOR64,
    DESCRIPTOR_SIGNATURE,
    IN_ZIP64,
    LOCAL,
    LOCAL_SIGNATURE,
    LOCAL_SIZE,
    UTF8,
    Member,
    decode,
    from_zip64,
)  # fmt: skip
from torch_compat.errors import Corrupt
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Raw
    from torch_compat.archive.zip_member import Shared

__all__ = ["Directory", "ends_like_zip"]

CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
ZIP64_SIGNATURE = b"PK\x06\x06"
LOCATOR_SIGNATURE = b"PK\x06\x07"

CENTRAL = Struct("<4s4HI3I5H2I")  # signature, made by, as in a local header, length of comment, disk, attributes (2), offset
END = Struct("<4s4HIIH")  # signature, disks (2), entries (2), length and offset of the directory, length of comment
ZIP64_END = Struct("<4sQHHIIQQQQ")  # signature, length, made by, needs, disks (2), entries (2), length, offset
LOCATOR = Struct("<4sIQI")  # signature, disk, offset of the zip64 end record, disks
ENDS = Struct(ZIP64_END.format + LOCATOR.format[1:] + END.format[1:])
CENTRAL_SIZE, END_SIZE, ZIP64_SIZE, LOCATOR_SIZE = CENTRAL.size, END.size, ZIP64_END.size, LOCATOR.size

MADE_BY_TORCH, NEEDED_BY_TORCH = 0x31E, 45  # of the zip64 end record
FLAGS_OF_TORCH = frozenset({DESCRIBED | UTF8, UTF8})  # the latter where there are no data
ZIP64_NAMES = (
    "signature", "length", "made by", "needs", "disk", "disk of the directory", "entries on this disk", "entries",
    "length of the directory", "offset of the directory",
)  # fmt: skip
ZIP64_FREE = frozenset({1, 2, 3})  # other writers say other versions, and may put more into this record
LOCATOR_NAMES = ("signature", "disk", "offset", "disks")
END_NAMES = ("signature", *ZIP64_NAMES[4:], "comment")
NOT_IN_NAMES = re.compile(rb"PK[\1\3\5-\7]|FB.\0(?:Z|$)|[\0-\x1f]", re.DOTALL)  # headers, the padding field of torch's writer
TRY = 25  # units of work for one of them
MOST_TRIES = 1 << 20  # data descriptors looked at for the ends of members, in a file without a directory


class Directory:
    """Reads the end of a file and its central directory, or what can be recovered without one.

    Findings are recorded once the names of records and the writer of the archive (torch's or another) are known.
    """

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.raw = shared.raw
        self.members: list[Member] = []
        self.lost: dict[str, tuple[str, int]] = {}  # full names of truncated records, how, and where
        self.shift = 0  # bytes in front of the archive that its offsets do not count
        self.ordered = True  # whether no member starts before the one before it ends
        self.votes = 0  # for torch's writer
        self.plain = 0  # members with the values of torch's writer
        self.odd: list[tuple[Member, str]] = []  # values that torch's writer never writes
        self.wrong: list[tuple[str, Member | None, str, int]] = []
        self.ends: tuple[int, int, int] | None = None  # where zip64 end record, locator and end record stand; -1 for none
        self.length = 0
        size = len(self.raw)
        if size >= ENDS.size:
            ends = ENDS.unpack(self.raw[size - ENDS.size :])
            count, length, start = ends[7:10]
            if start + length + ENDS.size == size and ends == _torch_ends(count, length, start):
                self.votes = 2
                self._read(start, start + length)
                if count == len(self.members):
                    return
                self._add(
                    "directory-disagrees",
                    None,
                    f"has {count_of(len(self.members), 'entry', 'entries')}, but the end record states {count}",
                    start,
                )
                return
        self._find()

    def _add(self, code: str, member: Member | None, detail: str, offset: int) -> None:
        self.wrong.append((code, member, detail, offset))

    # ------------------------------------------------------------------------------------------------------- judging

    def judge(self) -> None:
        """Decide whether torch's writer wrote this, by evidence that no single damaged byte can change; record the findings."""
        members, shared = self.members, self.shared
        votes = self.votes + (self.plain > len(members) / 2)
        if votes in {2, 3}:
            votes += any(self._padded(member) for member in members[:3])
        shared.torch = votes >= 3
        for code, item, detail, offset in self.wrong:
            shared.note(code, item.record if item else None, detail, offset)
        if not self.ordered:
            self._overlaps()
        if shared.torch:
            for member, what in self.odd:
                message = f"its directory entry has {what}, which torch's writer never writes"
                shared.note("header-disagrees", member.record, message, member.header_offset)
        if self.ends is not None:
            self._compare_ends(*self.ends)

    def _padded(self, member: Member) -> bool:
        """Whether the local header contains an extra field of torch's writer."""
        start = member.header_offset + LOCAL_SIZE + member.name_length
        return self.raw[start : start + 2] == b"FB" or (member.zip64 and self.raw[start : start + 2] == b"\x01\x00")

    def _overlaps(self) -> None:
        """Record overlapping members, by the directory alone."""
        floor, after = 0, ""
        for member in sorted(self.members, key=lambda member: member.header_offset):
            start = member.header_offset
            if start < floor:
                message = f"starts at {start}, before record {after!r} ends at {floor}"
                self.shared.note("overlap", member.record, message, start)
            end = start + LOCAL_SIZE + member.name_length + member.stored_size
            if end >= floor:
                floor, after = end, member.record

    def _compare_ends(self, zip64: int, locator: int, end: int) -> None:
        """Compare the records after the directory with the directory that was found."""
        raw, note = self.raw, self.shared.note
        count, length, start = len(self.members), self.length, self.shared.directory - self.shift
        wanted = _torch_ends(count, length, start)
        if zip64 >= 0 and zip64 + ZIP64_SIZE <= len(raw):
            result = ZIP64_END.unpack(raw[zip64 : zip64 + ZIP64_END.size])
            for number, (what, here, there) in enumerate(zip(ZIP64_NAMES, result, wanted[:10], strict=True)):
                if here != there and (self.shared.torch or number not in ZIP64_FREE):
                    note(
                        "zip64-end-disagrees",
                        None,
                        f"the zip64 end record states {what} {_value(here)}, expected {_value(there)}",
                        zip64,
                    )
        if locator >= 0:
            result = LOCATOR.unpack(raw[locator : locator + LOCATOR.size])
            for what, here, there in zip(LOCATOR_NAMES, result, wanted[10:14], strict=True):
                if here != there and not (what == "offset" and here + self.shift == zip64):
                    note(
                        "zip64-locator-disagrees",
                        None,
                        f"the zip64 locator states {what} {_value(here)}, expected {_value(there)}",
                        locator,
                    )
        if end >= 0 and end + END_SIZE <= len(raw):
            result = END.unpack(raw[end : end + END.size])
            exact = wanted[14:]
            for what, here, there in zip(END_NAMES, result, exact, strict=True):
                if here == there or what == "comment":
                    continue
                if zip64 >= 0 and not self.shared.torch and here in {0xFFFF, IN_ZIP64}:
                    continue
                note("end-record-disagrees", None, f"the end record states {what} {_value(here)}, expected {_value(there)}", end)
            length = result[-1]
            behind = len(raw) - end - END_SIZE
            if length > behind:
                note(
                    "end-record-disagrees",
                    None,
                    f"the end record declares a comment of {length} bytes, but {behind} bytes follow it",
                    end,
                )
            elif behind > length:
                note("junk-after", None, f"{behind - length} bytes follow the end of the archive", end + END_SIZE + length)

    # ------------------------------------------------------------------------------------------------------ finding it

    def _find(self) -> None:
        """Find the directory if the end of the file is not exactly as torch's writer makes it."""
        raw = self.raw
        end = _end_record(raw)
        if end < 0:
            self._recover("has no end record: the end of the file is cut off or damaged")
            return
        locator = end - LOCATOR_SIZE if raw[max(0, end - LOCATOR_SIZE) : end][:4] == LOCATOR_SIGNATURE else -1
        nearest = end - LOCATOR_SIZE - ZIP64_SIZE
        zip64 = nearest if nearest >= 0 and raw[nearest : nearest + 4] == ZIP64_SIGNATURE else -1
        if zip64 < 0 <= locator:
            stated = LOCATOR.unpack(raw[locator : locator + LOCATOR.size])[2]
            if raw[stated : stated + 4] == ZIP64_SIGNATURE and stated + ZIP64_SIZE <= locator:
                zip64 = stated
            elif nearest >= 0:
                zip64 = nearest  # its signature is damaged
        elif zip64 >= 0 > locator:
            locator = end - LOCATOR_SIZE  # its signature is damaged
        self.votes = (zip64 >= 0) + (locator >= 0)
        self.ends = zip64, locator, end
        statements = []
        if zip64 >= 0:
            statements.append(ZIP64_END.unpack(raw[zip64 : zip64 + ZIP64_END.size])[7:10])
        statements.append(END.unpack(raw[end : end + END.size])[4:7])
        stop = zip64 if zip64 >= 0 else end
        for _, length, start in statements:
            if start + length == stop and (not length or self._seek(CENTRAL_SIGNATURE, start, stop) >= 0):
                self._read(start, stop)
                return
        for _, length, start in statements:
            real = stop - length
            if 0 <= start < real and raw[real : real + 4] == CENTRAL_SIGNATURE and raw[:4] != LOCAL_SIGNATURE:
                self.shift = real - start
                self._add("junk-before", None, f"{self.shift} bytes precede the archive, and its offsets do not include them", 0)
                self._read(real, stop)
                return
        for count, length, start in statements:
            if count and start < stop and raw[start : start + 4] == CENTRAL_SIGNATURE and self._lists_first(start, stop):
                self._read(start, stop, start + length)
                if start + length > stop:
                    message = f"the end record places the end of the directory at {start + length}, but the next structure starts at {stop}"
                    self._add("directory-disagrees", None, message, start)
                return
        for _, length, start in statements:
            real = stop - length
            if length and 0 <= real != start and raw[real : real + 4] == CENTRAL_SIGNATURE:
                if real > start and not self._lists_first(real, stop):
                    continue
                self.shared.slip = real - start
                message = "were inserted" if real > start else "are missing"
                message = f"the directory is at {real}, but the end record states {start}: {abs(real - start)} bytes {message} before it"
                self._add("directory-moved", None, message, real)
                self._read(real, stop)
                return
        self._recover("has no central directory at the offset in its end record", stop)

    def _seek(self, wanted: bytes, start: int, stop: int) -> int:
        return find(self.raw, wanted, start, stop, self.shared.allowance)

    def _lists_first(self, position: int, end: int) -> bool:
        """Whether a directory lists the member at the start of the file; the directory of an archive in a record does not."""
        raw = self.raw
        if raw[:4] != LOCAL_SIGNATURE or len(raw) < LOCAL_SIZE:
            return True
        name = raw[LOCAL_SIZE : LOCAL_SIZE + LOCAL.unpack(raw[: LOCAL.size])[8]]
        return self._seek(name, position, end) >= 0

    def _read(self, position: int, end: int, stated: int = -1) -> None:
        """Read the entries of the directory; one whose lengths are damaged is bounded by the next one.

        Args:
            position: where it starts.
            end: where the next structure starts.
            stated: where it ends according to the file, if that differs.
        """
        self.shared.directory = position
        self.length = end - position
        raw, members, shared = self.raw, self.members, self.shared
        shared.allowance.spend(MEMBER * (end - position) // CENTRAL_SIZE)  # as many entries as there can be
        floor = 0
        previous = -1
        while position < end:
            if position == stated and raw[position : position + 4] != CENTRAL_SIGNATURE:
                self._add("junk-between", None, f"{end - position} unused bytes follow the central directory", position)
                return
            if position + CENTRAL_SIZE > end:
                position = self._torn(previous, position, end)
                previous = -1
                continue
            (signature, result, needs, flags, method, time, crc, stored, size, name_length, extra_length, comment_length, disk,
             internal, external, offset) = CENTRAL.unpack(raw[position : position + CENTRAL.size])  # fmt: skip
            start = position + CENTRAL_SIZE
            stop = start + name_length + extra_length + comment_length
            whole = True
            if signature != CENTRAL_SIGNATURE and stop != end and raw[stop : stop + 4] != CENTRAL_SIGNATURE:
                position = self._torn(previous, position, end)
                previous = -1
                continue
            if stop > end:
                whole = False
                stop = self._seek(CENTRAL_SIGNATURE, start, end)
                stop = end if stop < 0 else stop
                name_length, extra_length = stop - start, 0
            raw_name = raw[start : start + name_length]
            zip64 = IN_ZIP64 in (stored, size, offset)
            odd = result or disk or internal or external or comment_length
            if extra_length:
                if zip64:
                    size, stored, offset = from_zip64(
                        raw[start + name_length : start + name_length + extra_length], size, stored, offset
                    )
                else:
                    odd = True
            if self.shift:
                offset += self.shift
            member = Member(
                shared, raw_name, decode(raw_name, flags), needs, flags, method, time, crc, stored, size, offset, zip64
            )
            members.append(member)
            if flags in FLAGS_OF_TORCH:
                self.plain += result == 0
            if odd:
                message = f"made by {result}, disk {disk}, attributes {internal} and {external}, {extra_length} bytes of extra fields, comment of {comment_length}"
                self.odd.append((member, message))
            if offset < floor:
                self.ordered = False
            floor = offset + LOCAL_SIZE + name_length + stored
            if signature != CENTRAL_SIGNATURE:
                self._add("bad-signature", member, f"its directory entry starts with {signature.hex(' ')}", position)
            if not whole:
                self._add("directory-disagrees", member, "its directory entry is longer than the directory", position)
            previous = position
            position = stop

    def _torn(self, previous: int, position: int, end: int) -> int:
        """Find the next entry after one whose lengths lead to no entry; the damaged one gets the bytes up to there."""
        raw = self.raw
        self.shared.allowance.spend(MEMBER)
        after = self._seek(CENTRAL_SIGNATURE, position + 1 if previous < 0 else previous + CENTRAL_SIZE, end)
        after = end if after < 0 else after
        if previous < 0:
            self._add(
                "bad-directory",
                None,
                f"{count_of(after - position, 'byte')} of the directory {'does' if after - position == 1 else 'do'} not belong to any entry",
                position,
            )
            return after
        old = self.members.pop()
        raw_name = raw[previous + CENTRAL_SIZE : after]
        if self.odd and self.odd[-1][0] is old:
            self.odd.pop()
        new = Member(
            self.shared, raw_name, decode(raw_name, old.flags), old.needs, old.flags, old.method, old.time, old.crc,
            old.stored_size, old.size, old.header_offset, old.zip64,
        )  # fmt: skip
        self.members.append(new)
        self._add("directory-disagrees", new, "the lengths in its directory entry do not lead to the next entry", previous)
        return after

    # ------------------------------------------------------------------------------------------------------- without it

    def _recover(self, why: str, stop: int = -1) -> None:
        """Walk the local headers from the first one on; read the directory behind them if there is one."""
        raw, shared = self.raw, self.shared
        size = len(raw)
        if not shared.allowance.complete:
            message = f"{why}; a file of {count_of(size, 'byte')} is searched for records only if it is read in full"
            raise Corrupt(message, where=shared.path, code="no-directory")
        position = self._seek(LOCAL_SIGNATURE, 0, size)
        directory = self._seek(CENTRAL_SIGNATURE, 0, size) if position < 0 else -1
        if directory >= 0:  # the only evidence left: it tells which records are missing
            self._add("cut-off", None, why, 0)
            self.shared.slip = -(1 << 64)
            self._read(directory, stop if stop >= 0 else size)
            return
        if position < 0:
            raise Corrupt(
                f"starts or ends like a zip archive, but {why}, and it contains no records",
                where=shared.path,
                code="no-directory",
            )
        self._add("no-directory", None, why, size)
        if position:
            self._add("junk-before", None, f"{count_of(position, 'byte precedes', 'bytes precede')} the first record", 0)
        walk = _Walk(raw, shared.allowance)
        padded = 0
        while True:
            shared.allowance.spend(MEMBER)
            signature = raw[position : position + 4]
            if signature in {CENTRAL_SIGNATURE, ZIP64_SIGNATURE, END_SIGNATURE} or position + len(signature) >= size:
                break
            if signature != LOCAL_SIGNATURE:
                after = self._seek(LOCAL_SIGNATURE, position + 1, size)
                after = size if after < 0 else after
                last = self.members[-1] if self.members else None
                self._add("junk-between", last, f"{after - position} unused bytes follow it", position)
                position = after
                continue
            member = walk.member(shared, position)
            if isinstance(member, Member):
                self.members.append(member)
                self.plain += member.flags in FLAGS_OF_TORCH
                padded += self._padded(member)
                position = walk.end
            else:
                name, message = member
                self.lost[name] = message, position
                position = walk.end
        shared.directory = min(position, size)
        if stop > position and raw[position : position + 4] == CENTRAL_SIGNATURE:
            self.members.clear()
            self.plain = 0
            self.ordered = True
            self._read(position, stop)
            return
        self.ends = None
        self.votes = 2 if padded * 2 > len(self.members) else 0
        if position < size and not self.lost:
            self._add("cut-off", None, f"the central directory, expected at {position}, is cut off or damaged", position)


class _Walk:
    """Finds the ends of members by the data before and after them. Linear in the size of the file."""

    def __init__(self, raw: Raw, allowance: Allowance) -> None:
        self.raw = raw
        self.allowance = allowance
        self.descriptors: list[int] | None = None
        self.tries = MOST_TRIES
        self.end = 0

    def member(self, shared: Shared, position: int) -> Member | tuple[str, str]:
        """The member whose local header is at an offset, or the name of the member truncated there, and how."""
        raw = self.raw
        size = len(raw)
        self.end = size
        if position + LOCAL_SIZE > size:
            return "", f"the file ends inside a local header, after {count_of(size - position, 'byte')}"
        _, needs, flags, method, time, crc, stored, length, name_length, extra_length = LOCAL.unpack(
            raw[position : position + LOCAL.size]
        )
        start = position + LOCAL_SIZE
        raw_name = raw[start : start + name_length]
        data = start + name_length + extra_length
        torn = NOT_IN_NAMES.search(raw_name)
        lost = decode(raw_name[: torn.start()] if torn else raw_name, flags)  # where the length of the name is what is damaged
        self.allowance.spend((name_length + extra_length) >> 7)
        if data > size:
            return lost, "the file ends inside its local header"
        extra = raw[start + name_length : data]
        zip64 = IN_ZIP64 in {stored, length} or extra[:2] == b"\x01\x00"
        if IN_ZIP64 in {stored, length}:
            length, stored, _ = from_zip64(extra, length, stored, 0)
        if flags & DESCRIBED and not stored:
            result = self._descriptor(data)
            if result is None:
                after = find(raw, LOCAL_SIGNATURE, data, size, self.allowance)
                self.end = size if after < 0 else after
                ends = "the file ends inside it, or" if after < 0 else ""
                return lost, f"{ends} its end cannot be found: {self.end - data} bytes follow its local header".strip()
            crc, stored, length, self.end = result
        else:
            self.end = data + stored
            if self.end > size:
                message = f"is truncated: only {size - data} of {stored} bytes are present"
                after = find(raw, LOCAL_SIGNATURE, start, size, self.allowance)
                self.end = size if after < 0 else after
                return lost, message
        name = decode(raw_name, flags)
        return Member(shared, raw_name, name, needs, flags, method, time, crc, stored, length, position, zip64)

    def _descriptor(self, data: int) -> tuple[int, int, int, int] | None:
        """Checksum, sizes and end of the first data descriptor that fits data starting at an offset."""
        raw = self.raw
        if self.descriptors is None:
            self.descriptors = list(_positions(raw, DESCRIPTOR_SIGNATURE, self.allowance))
        for index in range(bisect_left(self.descriptors, data), len(self.descriptors)):
            at = self.descriptors[index]
            self.tries -= 1
            self.allowance.spend(TRY)
            if self.tries < 0:
                return None
            if at + 16 > len(raw):
                return None
            _, crc, stored, size = DESCRIPTOR.unpack(raw[at : at + DESCRIPTOR.size])
            long = (
                at + 24 <= len(raw) and raw[at + 24 : at + 26] == b"PK" and DESCRIPTOR64.unpack(raw[at : at + DESCRIPTOR64.size])
            )
            if long and long[2] == at - data:
                return crc, long[2], long[3], at + 24
            if stored == at - data:
                return crc, stored, size, at + 16
        return None


def ends_like_zip(raw: Raw) -> bool:
    """Whether a file ends exactly with a zip end record."""
    size = len(raw)
    return size >= END_SIZE and raw[size - END_SIZE : size - END_SIZE + 4] == END_SIGNATURE and raw[size - 2 :] == b"\0\0"


def _end_record(raw: Raw) -> int:
    """The offset of the end record, -1 if there is none. If only its signature is damaged, its neighbors locate it."""
    size = len(raw)
    usual = size - END_SIZE
    if usual < 0:
        return -1
    if raw[usual : usual + 4] == END_SIGNATURE:
        return usual
    if usual >= LOCATOR_SIZE and raw[usual - LOCATOR_SIZE : usual - LOCATOR_SIZE + 4] == LOCATOR_SIGNATURE:
        return usual
    return raw.rfind(END_SIGNATURE, max(0, usual - 0xFFFF), usual + 4)


def _torch_ends(count: int, length: int, start: int) -> tuple[Any, ...]:
    """The records that torch's writer puts after the central directory."""
    return (
        ZIP64_SIGNATURE, 44, MADE_BY_TORCH, NEEDED_BY_TORCH, 0, 0, count, count, length, start,
        LOCATOR_SIGNATURE, 0, start + length, 1,
        END_SIGNATURE, 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(length, IN_ZIP64), min(start, IN_ZIP64), 0,
    )  # fmt: skip


def _positions(raw: Raw, wanted: bytes, allowance: Allowance) -> Iterator[int]:
    size = len(raw)
    at = find(raw, wanted, 0, size, allowance)
    while at >= 0:
        yield at
        allowance.spend(TRY)
        at = find(raw, wanted, at + 1, size, allowance)


def _value(value: object) -> str:
    return value.hex(" ") if isinstance(value, bytes) else str(value)
