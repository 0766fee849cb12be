"""One member of a zip archive: its values in the directory, local header and data descriptor, and its bytes."""

from __future__ import annotations

import zlib
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from torch_compat.archive import offsets
from torch_compat.archive.base import WINDOW, Damage, windows
from torch_compat.errors import Corrupt, Unsafe, Unsupported
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Findings, Raw
    from torch_compat.errors import ArchiveError

__all__ = ["Member", "Shared", "decode", "from_zip64", "padding"]

LOCAL_SIGNATURE = b"PK\x03\x04"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"

# Date and time are read as one number, since nothing here uses them.
LOCAL = Struct("<4s3HI3I2H")  # signature, needs, flags, method, time, crc, stored size, size, length of name, of extra field
LOCAL_SIZE = LOCAL.size
DESCRIPTOR = Struct("<4s3I")
DESCRIPTOR64 = Struct("<4sIQQ")
UNSIGNED = Struct("<3I")  # data descriptors without a signature
UNSIGNED64 = Struct("<IQQ")

IN_ZIP64 = 0xFFFFFFFF  # stands for a number that is in the zip64 field
ZIP64_FIELD = 1
PADDING_FIELD = int.from_bytes(b"FB", "little")
STORED, DEFLATED = 0, 8
ENCRYPTED, DESCRIBED, UTF8 = 0x1, 0x8, 0x800
FIELDS = ("version needed", "flags", "method", "time")
COMPARED_FLAGS = ENCRYPTED | DESCRIBED | UTF8  # the others tell how hard a deflater tried

LONGEST_SHOWN = 200  # bytes of a name
MOST_INFLATED = 8 << 30  # bytes of one record
FREELY_INFLATED = 8 << 20  # below it, any ratio is accepted
HIGHEST_RATIO = 100  # beyond it: text compresses to a tenth, zeros to a thousandth
AT_ONCE = 16 << 20  # bytes that are inflated at once if only their checksum is needed
FED = 1 << 16  # bytes passed to an inflater at a time: it copies the rest that it does not consume
COMPARED = 300  # units of work for headers that are not as torch's writer writes them
MOST_FIELDS = 64  # of an extra field: 16,000 fit into one, and a thousand members may share it


class Shared:
    """State shared by an archive and its members, so that they need no reference cycle and closing needs no garbage collector.

    Attributes:
        path: the file.
        raw: its bytes.
        view: a view of them, for slicing without copies.
        damage: the damage found so far.
        directory: where the central directory starts; no member reaches beyond it.
        torch: whether torch's writer wrote the archive.
        inflated: bytes of the file that were inflated so far.
        summed: bytes of the file whose checksum was calculated so far, of stored members.
        allowance: the work budget of the archive.
        slip: distance of the directory from the offset that its end record states; members after inserted or removed bytes have moved as
            far.
    """

    __slots__ = ("allowance", "damage", "directory", "inflated", "path", "raw", "slip", "summed", "torch", "view")

    def __init__(self, path: str, raw: Raw, view: memoryview, damage: Findings, allowance: Allowance) -> None:
        self.path = path
        self.raw = raw
        self.view = view
        self.damage = damage
        self.directory = len(raw)
        self.torch = False
        self.inflated = 0
        self.summed = 0
        self.slip = 0
        self.allowance = allowance

    def note(self, code: str, record: str | None, detail: str, offset: int | None = None) -> None:
        """Note damage."""
        self.damage.append(Damage(code, record, detail, offset))


class Member:
    """One member of a zip archive.

    Attributes:
        name: its full name.
        record: its name without the top folder.
        name_length: the length of the full name in bytes.
        header_offset: where its local header starts.
        stored_size: its bytes in the file.
        size: its bytes after inflating.
        crc: the checksum that the central directory states.
        method: 0 stored, 8 deflated.
        flags: the general purpose bits.
        protected: False if the writer omitted the checksum; certain only after the record has been read.
        zip64: whether it has a zip64 field.
        state: 0 all is from the directory alone, 1 local header and data descriptor compared, 2 checksum compared.
    """

    __slots__ = (
        "_crc", "_descriptor", "_end", "_fault", "_name", "_offset", "_other_size", "_padding", "_shared", "_size", "_stored", "crc", "flags",
        "header_offset", "method", "name", "name_length", "needs", "protected", "record", "size", "state", "stored_size",
        "time", "zip64",
    )  # fmt: skip
    _crc: int  # other stated checksums, if local header or data descriptor disagree with the directory
    _descriptor: bool
    _end: int
    _offset: int
    _other_size: int  # other stated sizes
    _padding: int | None
    _size: int  # the sizes that the majority of places state
    _stored: int

    def __init__(
        self, shared: Shared, raw_name: bytes, name: str, needs: int, flags: int, method: int, time: int, crc: int,
        stored_size: int, size: int, header_offset: int, zip64: bool,
    ) -> None:  # fmt: skip
        self._shared = shared
        self.state = 0
        self._fault: ArchiveError | None = None  # why its bytes cannot be returned
        self._name = raw_name
        self.name = self.record = name
        self.name_length = len(raw_name)
        self.needs = needs
        self.flags = flags
        self.method = method
        self.time = time
        self.crc = crc
        self.stored_size = stored_size
        self.size = size
        self.header_offset = header_offset
        self.zip64 = zip64
        self.protected = crc != 0 or size == 0

    def __repr__(self) -> str:
        return f"<Member {self.name!r}: {count_of(self.size, 'byte')}, header at {self.header_offset}>"

    @property
    def data_offset(self) -> int:
        """The offset of its bytes. Reads the local header.

        Raises:
            Corrupt: there is no local header to read.
        """
        self._placed()
        return self._offset

    @property
    def end(self) -> int:
        """Its end, including its data descriptor; -1 if unknown."""
        if not self.state:
            self._place()
        return self._end

    @property
    def padding(self) -> int | None:
        """The number of bytes in the padding field of torch's writer; None if there is no such field."""
        self._placed()
        return self._padding

    @property
    def descriptor(self) -> bool:
        """Whether a data descriptor follows the data."""
        self._placed()
        return self._descriptor

    def named_alike(self) -> bool:
        """Whether its local header states the same name as the directory."""
        start = self.header_offset + LOCAL_SIZE
        return self._shared.raw[start : start + self.name_length] == self._name

    def _placed(self) -> None:
        if not self.state:
            self._place()
        if self._offset < 0 and self._fault is not None:
            raise self._fault

    def _spoil(self, code: str, detail: str, offset: int | None = None) -> Corrupt:
        """Record damage that makes the bytes of a record unavailable; return the corresponding error."""
        shared = self._shared
        shared.note(code, self.record, detail, offset)
        self._fault = error = Corrupt(detail, where=f"{shared.path}, record {self.record!r}", code=code)
        return error

    # ----------------------------------------------------------------------------------------- where the bytes of a member are

    def _place(self) -> None:
        """Compare local header and data descriptor of a member with its entry in the directory."""
        shared = self._shared
        self.state = 1
        self._padding = None
        self._descriptor = False
        self._offset = self._end = -1
        self._crc = self.crc
        self._stored = stored = self.stored_size
        self._size = self._other_size = self.size
        raw = shared.raw
        if shared.slip:
            self._slip(shared.slip)
        start = self.header_offset
        if start < 0:
            self._spoil("cut-off", "was in the missing part at the start of the file", 0)
            return
        named = start + LOCAL_SIZE
        if named > shared.directory:
            message = f"the directory states that its local header starts at {start}, but records end at {shared.directory}"
            self._spoil("cut-off", message, start)
            return
        local = LOCAL.unpack(raw[start : start + LOCAL.size])
        length = self.name_length
        extra = local[9]
        data = named + length + extra
        if extra > 1024:  # many members may share one header
            shared.allowance.spend(extra >> 4)
        # Nearly every member of nearly every archive is exactly this.
        if (
            shared.torch
            and not self.zip64
            and local == (LOCAL_SIGNATURE, self.needs, self.flags, self.method, self.time, 0, 0, 0, length, extra)
            and raw[named:data] == self._name + padding(extra)
            and (self.method or stored == self.size)
        ):
            end = data + stored
            if self.size:
                wanted = DESCRIPTOR.pack(DESCRIPTOR_SIGNATURE, self.crc, stored, self.size)
                good = raw[end : end + 16] == wanted and self.flags & DESCRIBED
                end += 16
            else:
                good = not self.flags & DESCRIBED and not stored and not self.crc
            if good and end <= shared.directory:
                self._offset, self._end, self._padding = data, end, extra - 4
                self._descriptor = self.size != 0
                return
        self._compare(local)

    def _slip(self, by: int) -> None:
        """Correct the offset of a member that has moved with the directory."""
        raw, moved = self._shared.raw, self.header_offset + by
        if self.named_alike() and raw[self.header_offset : self.header_offset + 4] == LOCAL_SIGNATURE:
            return
        start = moved + LOCAL_SIZE
        if moved < 0 or raw[start : start + self.name_length] == self._name or raw[moved : moved + 4] == LOCAL_SIGNATURE:
            self.header_offset = moved

    def _compare(self, local: tuple[Any, ...]) -> None:
        """Compare one field after the other, for any writer."""
        shared = self._shared
        shared.allowance.spend(COMPARED)
        signature, _, flags, _, _, crc, stored, size, name_length, extra_length = local
        start, raw, torch = self.header_offset, shared.raw, shared.torch
        named = start + LOCAL_SIZE
        name = raw[named : named + name_length]
        if signature != LOCAL_SIGNATURE:
            if name != self._name:
                self._spoil("no-header", f"no local header was found at {start}, its offset in the directory", start)
                return
            shared.note("bad-signature", self.record, f"its local header starts with {signature.hex(' ')}", start)
        if name != self._name:
            message = f"its local header has the name {_shown(name)}, but the directory has {self.name!r}"
            shared.note("name-disagrees", self.record, message, named)
        entry = (self.needs, self.flags, self.method, self.time)
        for number, (what, here, there) in enumerate(zip(FIELDS, local[1:5], entry, strict=True)):
            if here != there and (torch or (number and (number != 1 or (here ^ there) & COMPARED_FLAGS))):
                message = f"its local header has {what} {here:#x}, but the directory has {there:#x}"
                shared.note("header-disagrees", self.record, message, start)
        described = bool(self.flags & DESCRIBED) if self.flags == flags or not torch else self.size > 0
        extra = raw[named + name_length : named + name_length + extra_length]
        if torch:
            length = self._torch_extra(extra, named + name_length)
            if crc or stored or size:
                message = (
                    f"its local header states checksum {crc:#010x} and sizes {stored}, {size}; torch's writer leaves these 0"
                )
                shared.note("size-disagrees" if stored or size else "crc-disagrees", self.record, message, start)
            if not described and (self.size or self.stored_size or self.crc):
                message = "is marked as empty in its flags, but the directory has sizes and a checksum for it"
                shared.note("size-disagrees", self.record, message, start)
                self._stored = self._size = self._crc = 0
        else:
            length = 0
            if IN_ZIP64 in (size, stored):
                size, stored, _ = from_zip64(extra, size, stored, 0)
            self._padding = _padding_field(extra)
            for code, what, here, there in (
                ("size-disagrees", "size", size, self.size),
                ("size-disagrees", "stored size", stored, self.stored_size),
                ("crc-disagrees", "checksum", crc, self.crc),
            ):
                if here != there and not (described and here == 0):
                    shared.note(code, self.record, f"its local header has {what} {here}, but the directory has {there}", start)
                    if code == "crc-disagrees":
                        self._crc = crc
        places = [named + name_length + extra_length]
        if torch:
            wide = offsets.zip64_field_length(start, self.size) > 0
        else:
            wide = any(identifier == ZIP64_FIELD for identifier, _, _ in _fields(extra))
        if torch:  # its lengths may be what is damaged
            places += [named + self.name_length + extra_length, named + name_length + length]
            places.append(offsets.data_offset(start, self.name_length, self.size))
        self._find_end(places, described=described, wide=wide)

    def _torch_extra(self, extra: bytes, offset: int) -> int:
        """Compare the extra field with the one that torch's writer makes; return the length that the padding field states."""
        wanted = b""
        if self.size >= offsets.ZIP64_FROM:
            wanted += self.size.to_bytes(8, "little") + bytes(8)
        if self.header_offset >= offsets.ZIP64_FROM:
            wanted += self.header_offset.to_bytes(8, "little")
        if wanted:
            wanted = ZIP64_FIELD.to_bytes(2, "little") + len(wanted).to_bytes(2, "little") + wanted
        self._padding = _padding_field(extra)
        if extra != wanted + padding(len(extra) - len(wanted)):
            message = "its local header should end with "
            message += "a zip64 field and " if wanted else ""
            message += f"a padding field ('FB', a length, then only 'Z') of {count_of(len(extra), 'byte')} in total, but ends with {_shown(extra)}"
            self._shared.note("padding-disagrees", self.record, message, offset)
        field = extra[len(wanted) : len(wanted) + 4]
        return len(wanted) + 4 + int.from_bytes(field[2:], "little") if field[:2] == b"FB" else len(extra)

    def _find_end(self, places: list[int], *, described: bool, wide: bool) -> None:
        """Find the end of the data, by the data descriptor if one is required."""
        shared = self._shared
        stored = self._stored
        lengths = [stored] if self.method else [stored, self._size]
        if not described:
            self._offset, self._end = places[0], places[0] + stored
        else:
            result = next(
                (
                    (place, length, end)
                    for place in places
                    for length in lengths
                    if (end := self._descriptor_end(place + length, length, wide=wide))
                ),
                None,
            )
            self._descriptor = True
            if result is None:
                self._offset = places[0]
                self._wrong_descriptor(wide=wide)
            else:
                self._offset, self._stored, self._end = result
                if self._offset != places[0]:
                    message = f"its data starts at {self._offset}, but at {places[0]} according to its local header"
                    shared.note("header-disagrees", self.record, message, self.header_offset)
                if self._stored != stored:
                    message = f"has {self._stored} stored bytes, but the directory has {stored}"
                    shared.note("size-disagrees", self.record, message, self._offset)
        if self._offset + self._stored > shared.directory:
            message = f"should have {self._stored} bytes at offset {self._offset}, but records end at {shared.directory}"
            self._spoil("cut-off", message, self._offset)
            self._offset = self._end = -1
        elif self.method == STORED and self._stored != self._size:
            message = f"declares a size of {count_of(self._size, 'byte')}, but stores {self._stored} bytes uncompressed"
            self._spoil("size-disagrees", message, self._offset)

    def _descriptor_end(self, at: int, stored: int, *, wide: bool) -> int:
        """The end of the data descriptor if it is at an offset and agrees with the directory, else 0."""
        raw, numbers = self._shared.raw, (self.crc, stored, self.size)
        narrow = max(stored, self.size) <= IN_ZIP64
        if self._shared.torch:
            forms: tuple[Struct, ...] = (DESCRIPTOR64 if wide else DESCRIPTOR,)
        else:  # without a signature, too; and which sizes have 64 bits is not certain in all writers
            forms = (DESCRIPTOR64, UNSIGNED64, DESCRIPTOR, UNSIGNED) if wide else (DESCRIPTOR, UNSIGNED, DESCRIPTOR64, UNSIGNED64)
        for form in forms:
            if not narrow and form in {DESCRIPTOR, UNSIGNED}:
                continue
            signed = form in {DESCRIPTOR, DESCRIPTOR64}
            if raw[at : at + form.size] == (form.pack(DESCRIPTOR_SIGNATURE, *numbers) if signed else form.pack(*numbers)):
                return at + form.size
        return 0

    def _wrong_descriptor(self, *, wide: bool) -> None:
        """Record how a data descriptor disagrees with the directory."""
        shared = self._shared
        at = self._offset + self._stored
        form = DESCRIPTOR64 if wide else DESCRIPTOR
        if at + form.size > shared.directory:
            shared.note("cut-off", self.record, "ends without the data descriptor that must follow", at)
            return
        signature, *numbers = form.unpack(shared.raw[at : at + form.size])
        stated = [self.crc, self.stored_size, self.size]
        same = [here == there for here, there in zip(numbers, stated, strict=True)]
        if signature != DESCRIPTOR_SIGNATURE and not all(same):
            shared.note("bad-descriptor", self.record, "no data descriptor follows its data", at)
            return
        self._end = at + form.size
        if signature != DESCRIPTOR_SIGNATURE:
            shared.note("bad-descriptor", self.record, f"its data descriptor starts with {signature.hex(' ')}", at)
        if not same[0]:
            message = f"its data descriptor has checksum {numbers[0]:#010x}, but the directory has {self.crc:#010x}"
            shared.note("crc-disagrees", self.record, message, at)
            self._crc = numbers[0]
        if not (same[1] and same[2]):
            message = f"its data descriptor has sizes {numbers[1]}, {numbers[2]}, but the directory has {stated[1]}, {stated[2]}"
            shared.note("size-disagrees", self.record, message, at)
            self._other_size = numbers[2]
            if self.method == STORED and numbers[2] == self._stored:
                self._size = numbers[2]

    # ------------------------------------------------------------------------------------------------------- the bytes

    def content(self, *, check: bool, mapped: bool = True) -> memoryview:
        """The bytes of a member, mapped or read; compares their checksum once."""
        shared = self._shared
        if not self.state:
            self._place()
        if self._fault is not None:
            raise self._fault
        offset = self._offset
        data = memoryview(b"")
        if self.method == STORED:
            end = offset + self._stored
            data = shared.view[offset:end] if mapped else memoryview(shared.raw[offset:end])
        if self.flags & ENCRYPTED:
            message = "is encrypted, which torch's writer never does"
            raise Unsupported(message, where=f"{shared.path}, record {self.record!r}", code="encrypted")
        if self.method == DEFLATED:
            data = memoryview(self._inflated(shared.raw[offset : offset + self._stored]))
        elif self.method != STORED:
            message = f"is compressed with method {self.method}; torch's writer stores (0) or deflates (8)"
            raise Unsupported(message, where=f"{shared.path}, record {self.record!r}", code="compression")
        if check and self.state < 2:
            self.state = 2
            if self.method == STORED:
                shared.summed += self._stored
                if shared.summed > len(shared.raw):  # overlapping members would be read again and again
                    raise self._refuse("overlap", "the declared record sizes add up to more than the file size")
            if self.method == STORED and self._stored > WINDOW:
                if not shared.allowance.complete:
                    message = "the file was not read in full: checksums of large records were not verified"
                    shared.allowance.omit("checksums", message)
                    return data
                crc = 0
                for part in windows(shared.raw, offset, offset + self._stored):
                    crc = zlib.crc32(part, crc)
            else:
                crc = zlib.crc32(shared.raw[offset : offset + self._stored] if self.method == STORED and mapped else data)
            if crc != self.crc:
                self._compare_sum(crc)
        return data

    def check(self) -> None:
        """Compare the checksum of a member, if that has not been done; a large deflated one is inflated piece by piece."""
        if not self.state:
            self._place()
        if self._fault is not None:
            raise self._fault
        if self.method != DEFLATED or self.flags & ENCRYPTED or max(self._size, self._other_size) <= AT_ONCE:
            self.content(check=True)
            return
        shared, crc, length = self._shared, 0, 0
        sizes = (self._size, self._other_size)
        self._pay(self._stored, max(sizes))
        self.state = 2
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        fed = 0
        try:
            while not inflater.eof and fed < self._stored and length <= max(sizes):
                given = shared.raw[self._offset + fed : self._offset + min(fed + FED, self._stored)]
                fed += len(given)
                left: bytes | memoryview = given
                while len(left) and length <= max(sizes) and not inflater.eof:
                    part = inflater.decompress(left, WINDOW)
                    left = inflater.unconsumed_tail
                    crc = zlib.crc32(part, crc)
                    length += len(part)
            if not inflater.eof and length <= max(sizes):
                part = inflater.decompress(b"", WINDOW)
                crc, length = zlib.crc32(part, crc), length + len(part)
        except zlib.error as error:
            raise self._spoil("bad-compression", f"cannot be inflated: {error}", self._offset) from error
        self._compare_length(length, sizes, whole=inflater.eof, more=bool(inflater.unused_data) or fed < self._stored)
        self._compare_sum(crc)

    def _compare_sum(self, crc: int) -> None:
        """Compare a calculated checksum with the stated ones."""
        if crc != self.crc:
            if self.crc == 0 or self._crc == 0:
                self.protected = False
            elif crc != self._crc:  # a checksum that differs from that of the data descriptor has been noted
                message = f"its bytes have checksum {crc:#010x}, expected {self.crc:#010x}"
                raise self._spoil("crc-mismatch", message, self._offset)

    def _pay(self, stored: int, size: int) -> None:
        """Pay for inflating so many bytes to so many.

        Raises:
            Unsafe: this is too much for one member, or too much was inflated before.
        """
        shared = self._shared
        if size > MOST_INFLATED or (size > FREELY_INFLATED and size > HIGHEST_RATIO * stored):
            raise self._refuse("too-large", f"expands from {stored} bytes to {size}, more than the limit for one record")
        if self.state < 2:  # overlapping members would inflate the same bytes again and again
            shared.inflated += stored
            if shared.inflated > len(shared.raw):
                raise self._refuse("overlap", "the declared compressed sizes add up to more than the file size")
        try:
            shared.allowance.expand(size)
        except Unsafe as error:
            error.where = f"{shared.path}, record {self.record!r}"
            self._fault = error
            raise

    def _inflated(self, data: bytes) -> bytes:
        shared, sizes = self._shared, (self._size, self._other_size)
        size = max(sizes)
        if size > shared.allowance.whole:
            message = f"must be read in one piece, and expands to {count_of(size, 'byte')}; the limit is {shared.allowance.whole}"
            raise self._refuse("too-large", message)
        self._pay(len(data), size)
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            result = inflater.decompress(data, size + 1)
        except zlib.error as error:
            raise self._spoil("bad-compression", f"cannot be inflated: {error}", self._offset) from error
        self._compare_length(len(result), sizes, whole=inflater.eof, more=bool(inflater.unused_data))
        return result

    def _compare_length(self, length: int, sizes: tuple[int, int], *, whole: bool, more: bool) -> None:
        """Compare the inflated length with the stated ones."""
        if length in sizes and whole and not more:
            return
        message = f"inflates to {length} bytes{' or more' if length > max(sizes) else ''}, expected {self._size}"
        if length in sizes:
            message = "has bytes after its compressed data" if whole else "ends before its compressed data ends"
        raise self._spoil("size-disagrees", message, self._offset)

    def _refuse(self, code: str, detail: str) -> Unsafe:
        shared = self._shared
        shared.note(code, self.record, detail, self.header_offset)
        self._fault = error = Unsafe(detail, where=f"{shared.path}, record {self.record!r}", code=code)
        return error


@lru_cache(256)
def padding(length: int) -> bytes:
    """The padding field of torch's writer with a given total length; empty if no field has that length."""
    if length < 4:
        return b""
    return b"FB" + (length - 4).to_bytes(2, "little") + b"Z" * (length - 4)


def _fields(extra: bytes) -> Iterator[tuple[int, int, int]]:
    """The extra fields: identifier, start, end. Stops at an invalid field, and after the first :data:`MOST_FIELDS`."""
    position = 0
    for _ in range(MOST_FIELDS):
        if position + 4 > len(extra):
            return
        identifier = int.from_bytes(extra[position : position + 2], "little")
        start = position + 4
        position = start + int.from_bytes(extra[position + 2 : start], "little")
        if position > len(extra):
            return
        yield identifier, start, position


def from_zip64(extra: bytes, size: int, stored: int, offset: int) -> tuple[int, int, int]:
    """Size, stored size and offset, those that are 0xFFFFFFFF taken from the zip64 field if present there."""
    numbers = [size, stored, offset]
    for identifier, first, end in _fields(extra):
        if identifier == ZIP64_FIELD:
            start = first
            for index, number in enumerate(numbers):
                if number == IN_ZIP64 and start + 8 <= end:
                    numbers[index] = int.from_bytes(extra[start : start + 8], "little")
                    start += 8
            break
    return numbers[0], numbers[1], numbers[2]


def _padding_field(extra: bytes) -> int | None:
    """The length that a padding field of torch's writer states, None if there is no such field."""
    return next((end - start for identifier, start, end in _fields(extra) if identifier == PADDING_FIELD), None)


def decode(name: bytes, flags: int) -> str:
    """A name as text; invalid bytes are shown as escapes, so that different names stay different."""
    if flags & UTF8 or name.isascii():
        return name.decode("utf-8", "backslashreplace")
    return name.decode("cp437")


def _shown(data: bytes) -> str:
    return repr(data if len(data) <= LONGEST_SHOWN else data[:LONGEST_SHOWN] + b"...")
