"""The container of torch 0.1: a POSIX tar of the members sys_info, pickle, storages and tensors.

torch 0.1 wrote it by Python's tarfile in the form of POSIX.1-2001 (PAX); members are plain files of 512-byte blocks. A PAX header may
precede a member: a separate member with lines "LENGTH KEY=VALUE" for a fractional time, or a name or size that does not fit into the plain
header. Only headers are protected, by a sum of their bytes: a changed byte in a member cannot be detected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.allowance import MEMBER
from torch_compat.archive.base import Archive, Damage, windows
from torch_compat.errors import Corrupt, NoArchive
from torch_compat.words import count_of

if TYPE_CHECKING:
    from os import PathLike

    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Raw

__all__ = ["TarArchive", "looks_like_tar"]

BLOCK = 512
RECORDS = ("sys_info", "pickle", "storages", "tensors")
DIGITS = 16  # of a number in a PAX header
LINE = 20  # units of work for one of its lines
BASE_256 = 0x80  # set in the first byte of a number that is not octal text
LONGEST_PAX = 1 << 20  # bytes of one: Python's tarfile writes less than a kilobyte
CHECKSUM = slice(148, 156)
SEEN_AFTER = 1 << 20  # bytes inspected after the end of the archive in a file that is not read as a whole


class TarMember:
    """One member: its name, and where its bytes are."""

    __slots__ = ("data_offset", "header_offset", "name", "size")

    def __init__(self, name: str, header_offset: int, size: int) -> None:
        self.name = name
        self.header_offset = header_offset
        self.data_offset = header_offset + BLOCK
        self.size = size


class TarArchive(Archive):
    """An open archive of torch 0.1.

    Parameters:
        of_others: accept a tar with any members, even if it is not a torch archive.

    Attributes:
        members: its members, in order.
        names: their names.
    """

    container = "tar"

    def __init__(
        self, path: str | PathLike[str], raw: Raw, allowance: Allowance | None = None, *, of_others: bool = False
    ) -> None:
        super().__init__(path, raw, allowance=allowance)
        self.members: list[TarMember] = []
        self._index: dict[str, TarMember] = {}
        self._lost: dict[str, str] = {}
        self._stated: dict[str, str] = {}  # by the PAX header in front of the next member
        self._read()
        self.names = tuple(member.name for member in self.members)
        if of_others:
            return
        if not {*self.names, *self._lost} & {*RECORDS}:
            held = ", ".join(self.names[:5]) or "nothing"
            raise NoArchive(f"a tar archive of other files ({held})", where=str(path), hint="unpack it first", code="tar-archive")
        for record in RECORDS:
            if record not in self._index and record not in self._lost:
                self._note("missing-record", record, "is missing; the format requires all four members", self.size)

    def _note(self, code: str, record: str | None, detail: str, offset: int) -> None:
        self.damage.append(Damage(code, record, detail, offset))

    def _read(self) -> None:
        position = 0
        while position + BLOCK <= self.size:
            header = bytes(self.raw[position : position + BLOCK])
            if not any(header):  # two blocks of zeros end an archive; torch 0.1 fills up to 10240 bytes
                self._end(position)
                return
            position = self._member(header, position)
            if position < 0:
                return
        self._note("cut-off", None, "does not end with a block of zeros: the file is truncated", position)

    def _member(self, header: bytes, position: int) -> int:
        """Add one member; return the offset of the next header, or -1 if reading cannot continue."""
        self.allowance.spend(MEMBER)
        name = header[:100].split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
        stated = _number(header[CHECKSUM])
        # the sum counts its own field as spaces
        result = sum(header) - sum(header[CHECKSUM]) + 8 * 0x20
        size = _number(header[124:136])
        if stated != result:
            message = f"the header of {name!r} has checksum {result}, but declares {stated}"
            self._note("header-checksum", name, message, position)
        if size is None:
            self._note("size-disagrees", name, f"has size {header[124:136]!r}, which is not a number", position)
            self._lost[name] = "has no size"
            return -1
        if header[156:157] in {b"x", b"g"}:
            return self._pax(name, position, size)
        name = self._stated.pop("path", name)
        told = self._stated.pop("size", None)
        if told is not None:
            size = int(told) if told.isascii() and told.isdigit() and len(told) < DIGITS else -1
            if size < 0:
                self._note("size-disagrees", name, f"has size {told[:40]!r} in its PAX header, which is not a number", position)
                self._lost[name] = "has no size"
                return -1
        if header[156:157] not in {b"0", b"\0"}:
            message = f"has type {header[156:157]!r}; torch 0.1 wrote only regular files"
            self._note("not-a-file", name, message, position)
        after = position + BLOCK + size
        if after > self.size:
            message = (
                f"is truncated: only {self.size - position - BLOCK} of {count_of(size, 'byte is present', 'bytes are present')}"
            )
            self._note("cut-off", name, message, position)
            self._lost[name] = message
            return -1
        end = after + -after % BLOCK
        if any(self.raw[after:end]):
            self._note("junk-between", name, "its last block is not padded with zeros", after)
        member = TarMember(name, position, size)
        self.members.append(member)
        if name in self._index:
            message = f"appears more than once: at {self._index[name].header_offset} and at {position}"
            self._note("duplicate-name", name, message, position)
        else:
            self._index[name] = member
        return end

    def _pax(self, name: str, position: int, size: int) -> int:
        """Read a PAX header; return the offset of the next header, or -1 if reading cannot continue."""
        start, end = position + BLOCK, position + BLOCK + size
        if end > self.size or size > LONGEST_PAX:
            message = f"is a PAX header of {count_of(size, 'byte')} ({self.size - start} present); the limit is {LONGEST_PAX}"
            self._note("cut-off" if end > self.size else "bad-pax", name, message, position)
            return -1
        self.allowance.expand(size)
        data, at = bytes(self.raw[start:end]), 0
        while at < size:
            self.allowance.spend(LINE)
            length, space, _ = data[at : at + DIGITS + 1].partition(b" ")
            count = int(length) if space and length.isdigit() else 0
            line = data[at : at + count]
            key, equals, value = line[len(length) + 1 : -1].partition(b"=")
            if not equals or len(line) != count or not line.endswith(b"\n"):
                self._note("bad-pax", name, f"its line at {at} is invalid: expected LENGTH KEY=VALUE", start + at)
                break
            if key in {b"path", b"size"}:
                self._stated[key.decode()] = value.decode("utf-8", "backslashreplace")
            at += count
        return end + -end % BLOCK

    def _end(self, position: int) -> None:
        stop = self.size
        if not self.allowance.complete:
            stop = min(stop, position + SEEN_AFTER)
            if stop < self.size:
                self.allowance.omit(
                    "end", f"the {count_of(self.size - stop, 'byte')} after the end of the tar archive at {stop} were not checked"
                )
        start = position
        for part in windows(self.raw, position, stop):
            if part.nbytes != bytes(part).count(0):
                self._note("junk-after", None, "non-zero bytes follow the end of the archive", start)
                return
            start += part.nbytes
        if self.size < position + 2 * BLOCK:
            self._note("cut-off", None, "ends with one block of zeros instead of two", position)

    def view(self, record: str) -> memoryview:
        """The bytes of a record, in the file itself.

        Raises:
            Corrupt: there is no such record, or it is truncated.
        """
        member = self._index.get(record)
        if member is None:
            if record in self._lost:
                raise Corrupt(self._lost[record], where=f"{self.path}, record {record!r}", code="cut-off")
            raise Corrupt(f"has no record {record!r}", where=str(self.path), code="missing-record")
        return self.data[member.data_offset : member.data_offset + member.size]


def looks_like_tar(head: bytes) -> bool:
    """Whether the first bytes are a tar header, as POSIX and GNU write it."""
    return head[257:262] == b"ustar"


def _number(field: bytes) -> int | None:
    """A number of a header: octal text, or base 256 if the first bit is set; None if it is neither."""
    if field[0] & BASE_256:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if not text:
        return 0
    return int(text, 8) if len(text) < len(field) + 1 and not text.strip(b"01234567") else None
