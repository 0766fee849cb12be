"""The zip container, read so that nothing is hidden.

A zip archive states most values twice: in the central directory and in front of each member; torch's writer states them a third time after
the member (data descriptor). Ordinary readers trust one of these places. This one compares them, and each contradiction becomes a
:class:`~torch_compat.archive.base.Damage`. Values that differ from those of torch's writer but agree with each other are damage only if
everything else shows that torch's writer wrote the archive. It always writes these parts the same way:

* local header: checksum and sizes 0 (they follow the data), and an extra field of its own: the zip64 field if one is needed, then ``FB``, a
  length, and ``Z`` up to the next aligned offset (:mod:`torch_compat.archive.offsets`)
* data descriptor with signature; none after an empty record
* central directory: made by 0, flags 0x808 (0x800 for an empty record), no extra field but zip64, no comments, no attributes
* end: zip64 end record (made by 0x31e, needs 45), locator, end record without comment, nothing between or after them

So in such an archive each byte is either checked by a checksum or known. With ``crc32`` off (2.6 and newer) checksums are 0:
then the bytes of records are *not protected*, which is legal, and reported by ``Member.protected``.

Opening reads only the central directory. Local headers, descriptors and checksums are compared when a record is first read, and all of them
by :meth:`ZipArchive.verify`. Without a central directory, the local headers are walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.allowance import MEMBER
from torch_compat.archive import offsets
from torch_compat.archive.base import CHANGED, WINDOW, Archive, find, let_go
from torch_compat.archive.zip_directory import Directory
from torch_compat.archive.zip_member import LOCAL, LOCAL_SIGNATURE, LOCAL_SIZE, UTF8, Member, Shared, decode
from torch_compat.errors import ArchiveError, Corrupt, Unsafe, Unsupported

if TYPE_CHECKING:
    from os import PathLike

    from torch_compat.allowance import Allowance
    from torch_compat.archive.base import Raw

__all__ = ["Member", "ZipArchive"]

# torch.export.save of 2.1 to 2.8 puts its records into no folder; this one is always there. Nothing else does that.
WITHOUT_FOLDER = "serialized_exported_program.json"

KEPT = 1 << 20  # inflated records up to this size are kept, as far as all of them together do not exceed KEPT_ALL
KEPT_ALL = 16 << 20
LONGEST_UNLISTED = 200  # bytes in the name of a record without an entry, which may claim all that follows as its name
UNCHECKED = "the file was not read in full: checksums of unused records were not verified"


class ZipArchive(Archive):
    """An open zip archive.

    Attributes:
        members: its members, in the order of the central directory.
        names: the names of its records, in the same order: without the top folder.
        folder: the top folder, without its slash; empty where there is none.
        torch: whether torch's writer wrote it; then more is known about its bytes.
        directory_offset: where the central directory starts.
        moved: records that :meth:`verify_offsets` did not find at the calculated offset.
    """

    container = "zip"

    def __init__(self, path: str | PathLike[str], raw: Raw, allowance: Allowance | None = None) -> None:
        super().__init__(path, raw, allowance=allowance)
        self._shared = shared = Shared(self.path, raw, self.data, self.damage, self.allowance)
        directory = Directory(shared)
        self.members = tuple(directory.members)
        self.directory_offset = shared.directory
        self._shift = directory.shift
        self._ordered = directory.ordered
        self.moved: set[str] = set()
        self._verified = False
        self._kept: dict[str, memoryview] = {}
        self._keep = KEPT_ALL
        self._index: dict[str, Member] = {}
        self._places: dict[int, dict[str, int]] = {}  # by alignment: where the data of each record start, calculated
        self._name_records()
        self._lost: dict[str, str] = {}
        for name, (message, offset) in directory.lost.items():
            record = name.removeprefix(f"{self.folder}/") if self.members else name.partition("/")[2] or name
            self._lost[record] = message
            shared.note("cut-off", record, message, offset)
        directory.judge()
        self.torch = shared.torch

    def close(self) -> None:
        """Let the file go. Views of it that others still hold stay valid, and keep it mapped until they are gone."""
        self._shared.raw = b""
        self._shared.view = memoryview(b"")
        self._kept.clear()
        super().close()

    def _name_records(self) -> None:
        """Remove the top folder from names; members outside it keep their full names."""
        members, index = self.members, self._index
        first, slash, _ = members[0].name.partition("/") if members else ("", "", "")
        prefix = first + slash
        names = [member.name for member in members]
        if WITHOUT_FOLDER in names:
            prefix = ""
        elif not slash or not all(name.startswith(prefix) for name in names):
            prefix = self._common_folder(names)
        self.folder = prefix[:-1]
        cut = len(prefix)
        for member in members:
            record = member.name
            if prefix and record.startswith(prefix):
                member.record = record = record[cut:]
            elif prefix:
                self._shared.note("outside-folder", record, f"is outside the folder {self.folder!r}", member.header_offset)
            if record in index:
                message = f"appears more than once: at {index[record].header_offset} and at {member.header_offset}"
                self._shared.note("duplicate-name", record, message, member.header_offset)
                if member.named_alike() and not index[record].named_alike():  # the other one's name is what is damaged
                    index[record] = member
            else:
                index[record] = member
        self.names = tuple([member.record for member in members])

    def _common_folder(self, names: list[str]) -> str:
        """The folder of more than half of the members, with its slash; damage and no folder if there is none."""
        counts: dict[str, int] = {}
        for name in names:
            folder, slash, _ = name.partition("/")
            counts[folder + slash] = counts.get(folder + slash, 0) + bool(slash)
        best = max(counts, key=counts.__getitem__, default="")
        if counts and 2 * counts[best] > len(names):
            return best
        if names:
            self._shared.note(
                "no-folder", None, "its members are not in a common folder; PyTorch puts all records in the same folder"
            )
        return ""

    def member(self, record: str) -> Member:
        """A member by the name of its record; the first one if there are several.

        Raises:
            Corrupt: there is no such record.
        """
        try:
            return self._index[record]
        except KeyError:
            lost = self._lost.get(record)
            if lost is not None:
                raise Corrupt(lost, where=f"{self.path}, record {record!r}", code="cut-off") from None
            raise Corrupt(f"has no record {record!r}", where=self.path, code="missing-record") from None

    def view(self, record: str, *, check: bool = True, mapped: bool = True) -> memoryview:
        """The bytes of a record: in the file itself if they are stored, inflated if they are deflated.

        Args:
            record: its name, without the top folder.
            check: whether to compare the checksum; it is compared once.
            mapped: whether stored bytes are a map of the file. Otherwise they are read, so that a truncated file does not kill the process.

        Raises:
            Corrupt: there is no such record, or it is damaged.
            Unsafe: it would inflate to more than is allowed.
            Unsupported: it is encrypted, or compressed in another way.
        """
        kept = self._kept.get(record)
        if kept is not None:
            return kept
        member = self.member(record)
        data = member.content(check=check, mapped=mapped)
        if member.method and len(data) <= min(KEPT, self._keep):
            self._kept[record] = data
            self._keep -= len(data)
        return data

    def record(self, record: str) -> bytes:
        """The bytes of a record, read."""
        return bytes(self.view(record, mapped=False))

    def verify(self) -> None:
        """Read every member once and account for every byte of the file; fills ``damage``, never raises for it.

        If a file is too large to be read as a whole, only headers are compared. If more would be read or expanded than is allowed, it stops
        and records this as damage.
        """
        if self._verified:
            return
        self._verified = True
        try:
            self._check()
            self._account()
        except (Corrupt, Unsafe) as error:  # the file was truncated, or the budget of all members together is spent
            self._shared.note(error.code, None, f"{error.message}; the rest was not checked")

    def _check(self) -> None:
        raw, allowance, looked = self.raw, self.allowance, 0
        for member in self.members:
            if member.state >= 2:
                continue
            try:
                if allowance.complete:
                    member.check()
                elif member.end >= 0:
                    allowance.omit("checksums", UNCHECKED)
            except Unsupported as error:
                self._shared.note(error.code, member.record, error.message, member.header_offset)
            except Unsafe:
                if allowance.spent:
                    raise
            except ArchiveError as error:
                if error.code == CHANGED:
                    raise
                continue  # recorded where it was raised
            looked += member.stored_size
            if looked > 16 * WINDOW:
                looked = 0
                let_go(raw, 0, len(raw))

    def _account(self) -> None:
        """Compare the ends of members with the starts of the next ones."""
        cursor, after = 0, ""
        overlapping = {damage.record for damage in self.damage if damage.code == "overlap"}
        members = self.members if self._ordered else sorted(self.members, key=lambda member: member.header_offset)
        for member in members:
            start = member.header_offset
            if start > self.directory_offset:
                continue  # no header can start there, as was noted when it was read; the gap before it would end behind the file
            if start != cursor >= 0:
                self._between(cursor, start, after, member, overlapping)
            cursor, after = member.end, member.record
        if cursor != self.directory_offset and cursor >= 0:
            self._between(cursor, self.directory_offset, after, None, overlapping)

    def _between(self, start: int, end: int, after: str, member: Member | None, overlapping: set[str | None]) -> None:
        note, raw = self._shared.note, self.raw
        if start > end:
            if member is not None and member.record not in overlapping:
                message = f"starts at {end}, before record {after!r} ends at {start}"
                note("overlap", member.record, message, end)
            return
        if start == 0 and end == self._shift:
            return  # said when it was opened
        if raw[start : start + 4] == LOCAL_SIGNATURE and start + LOCAL_SIZE <= end:
            self._unlisted(start, end)
        elif start == 0:
            note("junk-before", None, f"{end} bytes precede the first record", 0)
        else:
            message = f"{end - start} unused bytes follow record {after!r}"
            note("junk-between", after, message, start)

    def _unlisted(self, start: int, end: int) -> None:
        """Record each member between others that has no directory entry."""
        raw = self.raw
        while 0 <= start <= end - LOCAL_SIZE:
            length = min(LOCAL.unpack(raw[start : start + LOCAL.size])[8], LONGEST_UNLISTED)
            self.allowance.spend(2 * MEMBER)
            name = decode(raw[start + LOCAL_SIZE : start + LOCAL_SIZE + length], UTF8)
            record = name.removeprefix(f"{self.folder}/")
            message = "has a local header but no entry in the central directory"
            self._shared.note("unlisted-record", record, message, start)
            start = find(raw, LOCAL_SIGNATURE, start + LOCAL_SIZE, end, self.allowance)

    # ----------------------------------------------------------------------------------------------------- offsets

    def alignment(self) -> int:
        """The alignment of data offsets: the record ``.storage_alignment``, else 64.

        Raises:
            Corrupt: that record contains no number above 0.
        """
        if ".storage_alignment" not in self._index:
            return offsets.ALIGNMENT
        text = bytes(self.view(".storage_alignment")[:20])
        if not text.isdigit() or int(text) == 0:
            where = f"{self.path}, record '.storage_alignment'"
            raise Corrupt(f"contains {text!r}, expected a positive integer", where=where, code="bad-alignment")
        return int(text)

    def calculated_offsets(self, alignment: int | None = None, cursor: int = 0) -> list[tuple[int, int]]:
        """Header and data offset of each member, calculated from names and sizes alone, in the order of the directory.

        Args:
            alignment: what offsets of data are multiples of; :meth:`alignment` unless told.
            cursor: where the first header stands.
        """
        sizes = [(member.name_length, member.size, member.stored_size) for member in self.members]
        return offsets.calculated_offsets(sizes, alignment or self.alignment(), cursor)

    def places(self, alignment: int) -> dict[str, int]:
        """The data offset of each record, from names and sizes alone; empty if torch's writer did not write the archive.

        Args:
            alignment: what offsets of data are multiples of.
        """
        if not self.torch:
            return {}
        results = self._places.get(alignment)
        if results is None:
            members = self.members
            before = min(item.header_offset for item in members)  # bytes before the archive that it does not count
            offsets = self.calculated_offsets(alignment)
            results = {item.record: before + place for item, (_, place) in zip(members, offsets, strict=True)}
            self._places[alignment] = results
        return results

    def verify_offsets(self) -> None:
        """Compare calculated offsets with the local headers; each record at another offset is damage."""
        try:
            alignment = self.alignment()
        except ArchiveError as error:
            self._shared.note(error.code, ".storage_alignment", error.message)
            return
        cursor = 0
        for member in self.members:
            wanted = offsets.data_offset(cursor, member.name_length, member.size, alignment)
            try:
                result = member.data_offset
            except ArchiveError:  # recorded where it was raised; whatever follows is compared from where it stands
                cursor = offsets.next_header_offset(cursor, wanted, member.size, member.stored_size)
                continue
            if (member.header_offset, result) != (cursor, wanted):
                message = (
                    f"its data starts at {result} (header at {member.header_offset}), expected {wanted} (header at {cursor})"
                )
                self._shared.note("offset-disagrees", member.record, message, result)
                self.moved.add(member.record)
                wanted = result
            cursor = offsets.next_header_offset(member.header_offset, wanted, member.size, member.stored_size)
