"""Damage: a sound archive with one change to its bytes. Checksums are not corrected, except for bombs and inserted members."""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tools.faults.layout import CENTRAL, LOCAL, Layout, Member, layout
from tools.faults.torch_zip import Written, write_end, write_member

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

__all__ = [
    "BOMB", "DAMAGE", "Fault", "Made", "Sample", "packed", "packed_member", "rebuilt", "records_of", "sample_of", "samples", "upon_each_other",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
BOMB = "bomb"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sound archive of the corpus."""

    path: Path
    raw: bytes
    layout: Layout

    @property
    def name(self) -> str:
        """The name in the corpus, without the last extension."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def container(self) -> str:
        """The container of the records."""
        if self.layout.members:
            return "zip"
        return "flatbuffer" if self.raw[4:8] == b"PTMF" else "tar" if self.raw[257:262] == b"ustar" else "stream"


@dataclass(frozen=True, slots=True)
class Fault:
    """A damaged archive.

    Attributes:
        number: determines everything else, together with the seed.
        kind: one of :data:`tools.faults.kinds.KINDS`.
        said: a description of the change.
        sample: the undamaged archive.
        data: the resulting bytes.
        hit: the changed records; an error has to name one of them.
        every: whether an error has to name all of them, for example if bytes of several records were changed.
        resealed: whether it is another archive instead of a damaged one: all its checksums and sizes are correct.
    """

    number: int
    kind: str
    said: str
    sample: Sample
    data: bytes
    hit: frozenset[str] = frozenset()
    every: bool = False
    resealed: bool = False

    @property
    def still_named(self) -> frozenset[str]:
        """The damaged records whose complete name still appears in a header or in an entry of the directory."""
        names = {member.record: member.full_name for member in self.sample.layout.members}
        return frozenset(item for item in self.hit if _stands_in_header(names[item], self.data))


def _stands_in_header(name: bytes, data: bytes) -> bool:
    at = data.find(name)
    while at >= 0:
        if data[max(0, at - LOCAL.size) : at][:4] == b"PK\3\4" or data[max(0, at - CENTRAL.size) : at][:4] == b"PK\1\2":
            return True
        at = data.find(name, at + 1)
    return False


Made = tuple[str, bytes, frozenset[str], bool]


@lru_cache(1)
def samples() -> list[list[Path]]:
    """Choose archives of the corpus, each combination of family and container equally often, so that rare ones are covered."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for manifest in sorted(ROOT.glob("fixtures/*/manifest.jsonl")):
        for line in manifest.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if (
                "container" in entry and entry["container"] != "directory"
            ):  # a checkpoint of several files has no single file to damage
                groups.setdefault((entry["family"], entry["container"]), []).append(manifest.parent / entry["file"])
    return [groups[name] for name in sorted(groups)]


@lru_cache(4096)
def sample_of(path: Path) -> Sample:
    """An archive and its layout."""
    raw = path.read_bytes()
    return Sample(path, raw, layout(raw))


# ------------------------------------------------------------------------------------------------------------- bytes


def _place(rng: random.Random, sample: Sample) -> int:
    """Any byte, or a byte of any part, so that small parts are hit as often as large ones."""
    if rng.random() < 0.5:
        return rng.randrange(len(sample.raw))
    span = rng.choice(sample.layout.spans)
    return rng.randrange(span.start, span.end)


def _written(sample: Sample, changes: dict[int, int]) -> tuple[bytes, frozenset[str]]:
    data = bytearray(sample.raw)
    for at, value in changes.items():
        data[at] = value
    return bytes(data), sample.layout.records_at([at for at in changes if data[at] != sample.raw[at]])


def bit(rng: random.Random, sample: Sample, _: object) -> Made:
    at, number = _place(rng, sample), rng.randrange(8)
    data, hit = _written(sample, {at: sample.raw[at] ^ 1 << number})
    return f"bit {number} of the byte at {at} flipped", data, hit, True


def byte(rng: random.Random, sample: Sample, _: object) -> Made:
    at = _place(rng, sample)
    value = rng.choice([0, 0xFF, 0x7F, 0x80, 0x2E, rng.randrange(256), rng.randrange(256)])
    data, hit = _written(sample, {at: value})
    return f"the byte at {at} set to {value}", data, hit, True


def several(rng: random.Random, sample: Sample, _: object) -> Made:
    if rng.random() < 0.5:
        start = _place(rng, sample)
        places = list(range(start, min(len(sample.raw), start + rng.randint(2, 64))))
    else:
        places = sorted({_place(rng, sample) for _ in range(rng.randint(2, 6))})
    data, hit = _written(sample, {at: rng.randrange(256) for at in places})
    return f"{len(places)} bytes from {places[0]} to {places[-1]} changed", data, hit, True


def zeroed(rng: random.Random, sample: Sample, _: object) -> Made:
    page = rng.choice([16, 64, 512, 4096])
    start = _place(rng, sample) // page * page
    end = min(len(sample.raw), start + page * rng.randint(1, 3))
    data, hit = _written(sample, dict.fromkeys(range(start, end), 0))
    return f"zeros from {start} to {end}", data, hit, True


# ----------------------------------------------------------------------------------------------------------- lengths


def cut_back(rng: random.Random, sample: Sample, _: object) -> Made:
    at = _place(rng, sample)
    results = sample.layout.records_in(at, at + 1) if at < sample.layout.directory else frozenset()
    if any(member.header == at for member in sample.layout.members):
        results = frozenset()  # between two records: no byte of the second record identifies it
    return f"cut off at {at}", sample.raw[:at], results, False


def cut_front(rng: random.Random, sample: Sample, _: object) -> Made:
    at = _place(rng, sample) + 1
    return f"the first {at} bytes cut off", sample.raw[at:], sample.layout.records_in(0, min(at, sample.layout.directory)), False


def cut_middle(rng: random.Random, sample: Sample, _: object) -> Made:
    start, end = sorted((_place(rng, sample), _place(rng, sample) + 1))
    return f"cut out from {start} to {end}", sample.raw[:start] + sample.raw[end:], sample.layout.records_in(start, end), False


def removed(rng: random.Random, sample: Sample, _: object) -> Made:
    start = _place(rng, sample)
    end = min(len(sample.raw), start + rng.choice([1, 1, 2, 4, 16, 64]))
    return (
        f"{end - start} bytes removed at {start}",
        sample.raw[:start] + sample.raw[end:],
        sample.layout.records_in(start, end),
        False,
    )


def inserted(rng: random.Random, sample: Sample, _: object) -> Made:
    at = rng.choice([_place(rng, sample), _place(rng, sample), 0, len(sample.raw)])
    new = rng.randbytes(rng.choice([1, 1, 2, 4, 16, 64, 4096]))
    hit = frozenset(span.record for span in sample.layout.spans if span.record is not None and span.start < at < span.end)
    return f"{len(new)} bytes inserted at {at}", sample.raw[:at] + new + sample.raw[at:], hit, False


def joined(rng: random.Random, sample: Sample, groups: list[list[Path]]) -> Made:
    other = sample_of(rng.choice(rng.choice(groups)))
    between = b"\0" * rng.choice([0, 0, 1, 512])
    return f"{other.name} put behind it", sample.raw + between + other.raw, frozenset(), False


# ----------------------------------------------------------------------------------------------------------- members


def swapped(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Swap two members: their bytes, their names in the directory, or everything before the directory."""
    members, raw = sample.layout.members, sample.raw
    if len(members) < 2:
        return None
    item, two = sorted(rng.sample(members, 2), key=lambda member: member.header)
    both = frozenset({item.record, two.record})
    what = rng.choice(["data", "names", "whole"])
    if what == "data":
        data = _exchanged(raw, item.data, item.data_end, two.data, two.data_end)
    elif what == "whole":
        data = _exchanged(raw, item.header, item.end, two.header, two.end)
    else:
        start = CENTRAL.size
        data = _exchanged(
            raw, item.entry + start, item.entry + start + len(item.full_name),
            two.entry + start, two.entry + start + len(two.full_name),
        )  # fmt: skip
        if len(item.full_name) != len(two.full_name):
            data = _patched(data, item.entry + 28, len(two.full_name), 2)
            data = _patched(data, two.entry + len(two.full_name) - len(item.full_name) + 28, len(item.full_name), 2)
    return f"{what} of {item.record} and {two.record} exchanged", data, both, False


def _exchanged(raw: bytes, a: int, a_end: int, b: int, b_end: int) -> bytes:
    if b < a:
        a, a_end, b, b_end = b, b_end, a, a_end
    return raw[:a] + raw[b:b_end] + raw[a_end:b] + raw[a:a_end] + raw[b_end:]


def duplicated(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Duplicate a record: its entry in the directory, the member with it, or a second member with other bytes."""
    if not sample.layout.members:
        return None
    member = rng.choice(sample.layout.members)
    what = rng.choice(["entry", "member", "other bytes"])
    if what == "entry":
        at = rng.choice([member.entry_end, sample.layout.directory])
        data = sample.raw[:at] + sample.raw[member.entry : member.entry_end] + sample.raw[at:]
        if rng.random() < 0.5:
            data = _ends_mended(data, sample, len(sample.layout.members) + 1, member.entry_end - member.entry)
        return f"the entry of {member.record} twice in the directory", data, frozenset({member.record}), False
    new = member.content(sample.raw)
    if what == "other bytes":
        new = bytes(rng.randrange(256) for _ in range(max(1, len(new))))
    records = records_of(sample)
    at = rng.randint(0, len(records))
    records.insert(at, (member, new))
    return f"{member.record} a second time, {what}", rebuilt(records), frozenset({member.record}), False


def _ends_mended(data: bytes, sample: Sample, count: int, longer: int) -> bytes:
    """Adjust count and length of the directory for an additional entry."""
    end, zip64 = len(data) - 22, len(data) - 22 - 20 - 56
    length = sample.layout.spans[-1].start - sample.layout.directory + longer
    if data[zip64 : zip64 + 4] == b"PK\6\6":
        for at in (24, 32):
            data = _patched(data, zip64 + at, count, 8)
        data = _patched(data, zip64 + 40, length, 8)
        data = _patched(data, zip64 + 56 + 8, sample.layout.directory + length, 8)
    for at in (8, 10):
        data = _patched(data, end + at, count, 2)
    return _patched(data, end + 12, length, 4)


def _patched(data: bytes, at: int, value: int, width: int) -> bytes:
    return data[:at] + (value & (1 << 8 * width) - 1).to_bytes(width, "little") + data[at + width :]


def records_of(sample: Sample) -> list[tuple[Member, bytes]]:
    """Each member and its bytes."""
    return [(member, member.content(sample.raw)) for member in sample.layout.members]


def rebuilt(records: list[tuple[Member, bytes]], more: Callable[[io.BytesIO], list[Written]] | None = None) -> bytes:
    """An archive with these records and the layout of torch's writer, with all numbers correct."""
    out = io.BytesIO()
    written = [
        write_member(out, member.full_name, data, deflate=member.method != 0, crc32=member.crc != 0 or not data)
        for member, data in records
    ]
    if more is not None:
        written += more(out)
    write_end(out, written)
    return out.getvalue()


# -------------------------------------------------------------------------------------------------------------- lies

ENTRY_FIELDS = {"flags": (8, 2), "method": (10, 2), "crc": (16, 4), "stored size": (20, 4), "size": (24, 4), "length of name": (28, 2),
                "length of extra field": (30, 2), "length of comment": (32, 2), "disk": (34, 2), "offset": (42, 4)}  # fmt: skip
LOCAL_FIELDS = {"flags": (6, 2), "method": (8, 2), "crc": (14, 4), "stored size": (18, 4), "size": (22, 4), "length of name": (26, 2),
                "length of extra field": (28, 2)}  # fmt: skip
FOOTER_FIELDS = {"crc": (4, 4), "stored size": (8, 4), "size": (12, 4)}
ZIP64_FIELDS = {"length": (4, 8), "disk": (16, 4), "entries on this disk": (24, 8), "entries": (32, 8), "length of directory": (40, 8),
                "offset of directory": (48, 8), "locator disk": (60, 4), "locator offset": (64, 8), "locator disks": (72, 4)}  # fmt: skip
END_FIELDS = {"disk": (4, 2), "entries on this disk": (8, 2), "entries": (10, 2), "length of directory": (12, 4),
              "offset of directory": (16, 4), "length of comment": (20, 2)}  # fmt: skip


def lie(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """Change one number of the container."""
    raw = sample.raw
    if not sample.layout.members:
        return _stream_lie(rng, sample)
    member = rng.choice(sample.layout.members)
    where = rng.choice(["directory", "directory", "local header", "descriptor", "end record", "zip64 end record", "zip64 field"])
    hit = frozenset({member.record})
    if where == "zip64 field":
        return _zip64_lie(rng, sample, member)
    end = len(raw) - 22
    if where == "directory":
        fields, start = ENTRY_FIELDS, member.entry
    elif where == "local header":
        fields, start = LOCAL_FIELDS, member.header
    elif where == "descriptor":
        if member.end == member.data_end:
            return None
        fields, start = FOOTER_FIELDS, member.data_end
    elif where == "end record":
        fields, start, hit = END_FIELDS, end, frozenset()
    else:
        if raw[end - 76 : end - 72] != b"PK\6\6":
            return None
        fields, start, hit = ZIP64_FIELDS, end - 76, frozenset()
    what = rng.choice(list(fields))
    at, width = fields[what]
    now = int.from_bytes(raw[start + at : start + at + width], "little")
    new = _other_number(rng, now, 8 * width, len(raw))
    return (
        f"{where} of {', '.join(hit) or 'the archive'} states {what} {new} instead of {now}",
        _patched(raw, start + at, new, width),
        hit,
        True,
    )


def _other_number(rng: random.Random, now: int, bits: int, size: int) -> int:
    most = (1 << bits) - 1
    new = rng.choice([0, 1, now + 1, now - 1, now * 2, most, most - 1, most >> 1, now ^ 1 << rng.randrange(bits), rng.randrange(size),
                      rng.getrandbits(bits)])  # fmt: skip
    return new & most


def _zip64_lie(rng: random.Random, sample: Sample, member: Member) -> Made:
    """Sizes moved to a zip64 field of the directory, with right or wrong numbers."""
    entry = sample.raw[member.entry : member.entry_end]
    stated = list(struct.unpack_from("<II", entry, 20)) + list(struct.unpack_from("<I", entry, 42))
    which = rng.randrange(3)
    numbers = [stated[1], stated[0], stated[2]]  # the field's order: size, stored size, offset
    number = rng.choice([numbers[which], numbers[which] + 1, 0, 1 << 40, 1 << 63, (1 << 64) - 1, rng.getrandbits(64)])
    width = rng.choice([8, 8, 8, 4])
    field = struct.pack("<HH", 1, width) + number.to_bytes(8, "little")[:width]
    entry = _patched(entry, (24, 20, 42)[which], 0xFFFFFFFF, 4)
    entry = _patched(entry, 30, len(field) + int.from_bytes(entry[30:32], "little"), 2)
    name_end = CENTRAL.size + len(member.full_name)
    entry = entry[:name_end] + field + entry[name_end:]
    data = sample.raw[: member.entry] + entry + sample.raw[member.entry_end :]
    data = _ends_mended(data, sample, len(sample.layout.members), len(field))
    what = ("size", "stored size", "offset")[which]
    return (
        f"zip64 field of {member.record} states {what} {number} instead of {numbers[which]}",
        data,
        frozenset({member.record}),
        True,
    )


def _stream_lie(rng: random.Random, sample: Sample) -> Made:
    """Overwrite eight bytes of a file without members with a number: sizes of storages, offsets in flatbuffers."""
    at = _place(rng, sample)
    width = rng.choice([2, 4, 8])
    now = int.from_bytes(sample.raw[at : at + width], "little")
    new = _other_number(rng, now, 8 * width, len(sample.raw))
    data = _patched(sample.raw, at, new, width)[: len(sample.raw)]
    return f"the {width} bytes at {at} state {new} instead of {now}", data, frozenset(), False


# ------------------------------------------------------------------------------------------------------------- bombs

FILLERS = (b"\0", b"(", b'"', b'\\"', b"[", b"{}", b")->", b"torch.add(", b"a,", b"    ", b"def ", b"]", b"0q\0(", b"1234")
LENGTHS = (1 << 20, 1 << 31, (1 << 31) - 1, (1 << 32) - 1)
LONG_LENGTHS = (1 << 20, 1 << 32, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


@lru_cache(64)
def packed(megabytes: int, what: bytes = b"\0") -> tuple[bytes, int]:
    """A short text repeated to the given number of megabytes and deflated, with its checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    megabyte = what * ((1 << 20) // len(what))
    body = packer.compress(megabyte) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(megabytes):
        crc = zlib.crc32(megabyte, crc)
    return body * megabytes + b"\3\0", crc


def packed_member(out: io.BytesIO, name: bytes, body: bytes, size: int, crc: int) -> Written:
    """A deflated member with the given values in its headers."""
    header = out.tell()
    fill = -(header + LOCAL.size + len(name) + 4) % 64
    local = (b"PK\3\4", 20, 0x808, 8, 0, 0, 0, 0, 0, len(name), 4 + fill)
    out.write(LOCAL.pack(*local) + name + b"FB" + struct.pack("<H", fill) + b"Z" * fill)
    start = out.tell()
    out.write(body + struct.pack("<4sIII", b"PK\7\10", crc, len(body), size))
    entry = CENTRAL.pack(b"PK\1\2", 0, 20, 0x808, 8, 0, 0, crc, len(body), size, len(name), 0, 0, 0, 0, 0, header)
    return Written(header, start, out.tell(), entry + name)


def bomb(rng: random.Random, sample: Sample, _: object) -> Made | None:
    """A small file that expands to a large one."""
    members = sample.layout.members
    if not members:
        return _pickle_bomb(rng, sample)
    what = rng.choice(["deflated", "many entries", "one body", "count", "pickle", "pickle", "pickle", "pickle"])
    item = rng.choice(members)
    records = records_of(sample)
    if what == "deflated":
        megabytes = rng.choice([1, 1, 8, 63, 65, 300])
        filler = rng.choice(FILLERS)
        body, crc = packed(megabytes, filler)
        size = rng.choice([megabytes << 20, 100, (megabytes << 20) - 1, 0xFFFFFFFE])
        kept = [(member, data) for member, data in records if member is not item]
        data = rebuilt(kept, lambda out: [packed_member(out, item.full_name, body, size, crc)])
        return f"{item.record} inflates to {megabytes} MiB of {filler!r} and states {size}", data, frozenset({item.record}), False
    if what == "many entries":
        count = rng.choice([1000, 20_000])
        folder = members[0].full_name.partition(b"/")[0]
        names = [b"%b/data/x%d" % (folder, number) for number in range(count)]
        data = rebuilt(records, lambda out: _empty_members(out, names))
        return f"{count} more entries of nothing", data, frozenset(), False
    if what == "one body":
        count = rng.choice([100, 3000])
        body, crc = packed(1)
        data = rebuilt(records, lambda out: upon_each_other(out, members[0].full_name, body, crc, count))
        return f"{count} entries of one body that inflates to 1 MiB", data, frozenset(), False
    if what == "count":
        count = rng.choice([0xFFFE, 1 << 31, (1 << 63) - 1, (1 << 64) - 1])
        data = _ends_mended(sample.raw, sample, count, 0)
        return f"the end states {count} entries", data, frozenset(), False
    pickles = [member for member in members if member.record.endswith(".pkl")]
    if not pickles:
        return None
    item = rng.choice(pickles)
    message, new = _hungry_pickle(rng, item.content(sample.raw))
    data = rebuilt([(member, new if member is item else data) for member, data in records])
    return f"{item.record}: {message}", data, frozenset({item.record}), False


def _empty_members(out: io.BytesIO, names: list[bytes]) -> list[Written]:
    return [write_member(out, name, b"") for name in names]


def upon_each_other(out: io.BytesIO, name: bytes, body: bytes, crc: int, count: int) -> list[Written]:
    """One deflated member of 1 MiB, and many entries for it under different names."""
    first = packed_member(out, name, body, 1 << 20, crc)
    return [
        Written(first.header, first.data, first.end, first.central[:28] + (len(name) + 6).to_bytes(2, "little")
                + first.central[30:] + b"%06d" % number)
        for number in range(count)
    ]  # fmt: skip


def _pickle_bomb(rng: random.Random, sample: Sample) -> Made | None:
    """A file of pickles alone: the first pickle with an object is replaced."""
    at = sample.raw.find(b"\x80\x02", 20)
    if at < 0:
        return None
    message, new = _hungry_pickle(rng, sample.raw[at:])
    return f"from {at} on: {message}", sample.raw[:at] + new, frozenset(), False


def _hungry_pickle(rng: random.Random, pickled: bytes) -> tuple[str, bytes]:
    """A pickle that states huge numbers, or whose value is far larger than the pickle."""
    what, make_it = rng.choice(PICKLES)
    body = make_it(rng)
    if rng.random() < 0.3 and pickled[:1] == b"\x80":  # before the original pickle
        return f"{what} in front", pickled[:2] + body + b"0" + pickled[2:]
    return what, b"\x80\x04" + body + b"."


def _laughs(rng: random.Random) -> bytes:
    depth, width = rng.choice([10, 60, 300]), rng.choice([2, 10])
    opcode = rng.choice([b"t", b"l"])
    start = b"(" + b"X\3\0\0\0lol" * width + opcode + b"q\0"
    return start + b"".join(b"0(" + b"h" + bytes([level % 250]) + (b"h" + bytes([level % 250])) * (width - 1) + opcode
                            + b"q" + bytes([(level + 1) % 250]) for level in range(depth))  # fmt: skip


def _nested(rng: random.Random) -> bytes:
    depth = rng.choice([1000, 3000, 100_000])
    return rng.choice([
        b"(" * depth + b"t" * depth, b"N" + b"\x85" * depth, b"]" * depth + b"a" * (depth - 1),
        b"}N" * depth + b"}" + b"s" * depth, b"N\x85q\0" + b"0h\0\x85q\0" * depth, b"N" + b"cbuiltins\nset\n]" * depth,
    ])  # fmt: skip


def _huge_storage(rng: random.Random) -> bytes:
    count = rng.choice([1 << 30, (1 << 31) - 1, 1 << 40, 1 << 60, (1 << 63) - 1])
    number = b"\x8a\x08" + count.to_bytes(8, "little")
    storage = b"(X\7\0\0\0storagectorch\nDoubleStorage\nX\1\0\0\0000X\3\0\0\0cpu" + number + b"tQ"
    shape = rng.choice([number + b"\x85", number + number + b"\x86", b"K\1" * 3 + b"\x87"])
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + shape + shape + b"\x89ccollections\nOrderedDict\n)RtR"


PICKLES: list[tuple[str, Callable[[random.Random], bytes]]] = [
    ("a text of a huge length", lambda rng: b"X" + rng.choice(LENGTHS).to_bytes(4, "little") + b"abc"),
    ("a text of a huge length in 64 bits", lambda rng: b"\x8d" + rng.choice(LONG_LENGTHS).to_bytes(8, "little") + b"abc"),
    ("bytes of a huge length", lambda rng: b"\x8e" + rng.choice(LONG_LENGTHS).to_bytes(8, "little") + b"abc"),
    ("a bytearray of a huge length", lambda rng: b"\x96" + rng.choice(LONG_LENGTHS).to_bytes(8, "little") + b"abc"),
    ("a number of a huge length", lambda rng: b"\x8b" + rng.choice(LENGTHS).to_bytes(4, "little") + b"abc"),
    ("a number of many digits", lambda rng: b"I" + b"9" * rng.choice([4000, 5000, 40_000]) + b"\n"),
    ("a frame of a huge length", lambda rng: b"\x95" + rng.choice(LONG_LENGTHS).to_bytes(8, "little") + b"N"),
    ("an index of the memo that is huge", lambda rng: b"Nr" + rng.choice(LENGTHS).to_bytes(4, "little")),
    ("a storage of a huge size", _huge_storage),
    ("billions of laughs", _laughs),
    ("nesting", _nested),
    ("a range that is huge", lambda _: b"cbuiltins\nrange\n\x8a\x08" + b"\xff" * 7 + b"\x7f\x85R"),
    ("bytes made by a number", lambda _: b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R"),
    ("many keys of one hash", lambda rng: b"}(" + b"".join(
        b"\x8a\x10" + (number * ((1 << 61) - 1)).to_bytes(16, "little") + b"N" for number in range(rng.choice([1000, 20_000]))) + b"u"),
    ("a deque that is limited by a huge number", lambda _: b"ccollections\ndeque\n)\x8a\x08" + b"\xff" * 7 + b"\x7f\x86R"),
]  # fmt: skip


DAMAGE: dict[str, tuple[float, Callable[[random.Random, Sample, list[list[Path]]], Made | None]]] = {
    "bit flipped": (20, bit),
    "byte changed": (12, byte),
    "several bytes changed": (12, several),
    "zeroed page": (8, zeroed),
    "cut off at the back": (7, cut_back),
    "cut off in front": (5, cut_front),
    "cut out": (5, cut_middle),
    "bytes removed": (5, removed),
    "bytes inserted": (5, inserted),
    "members exchanged": (5, swapped),
    "member duplicated": (4, duplicated),
    "lying number": (14, lie),
    BOMB: (3, bomb),
    "two archives joined": (3, joined),
}
"""The frequency and the function for each kind."""
