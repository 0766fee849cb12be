"""The zip reader, with the standard library as oracle where it is right, and with planted damage that it does not detect."""

from __future__ import annotations

import io
import random
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.faults.torch_zip import write_end, write_member, write_torch_zip
from torch_compat.archive import ZipArchive, open_archive, zip_member
from torch_compat.archive.zip_directory import ENDS, _torch_ends
from torch_compat.errors import ArchiveError, Corrupt, Unsafe, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDS: dict[str, bytes | int] = {
    "data.pkl": b"\x80\x02}q\0.",
    ".format_version": b"1",
    "code/model.py": b"def forward(self):\n    pass\n" * 20,
    "data/0": bytes(range(256)),
    "data/1": b"",
    "version": b"3\n",
}
DEFLATED = frozenset({"code/model.py"})
PACKER = zlib.compressobj(9, zlib.DEFLATED, -15)
PACKED = PACKER.compress(b"def forward(self):\n    pass\n" * 20) + PACKER.flush()


def opened(path: Path) -> ZipArchive:
    archive = open_archive(path)
    assert isinstance(archive, ZipArchive)
    return archive


def written(folder: Path, data: bytes) -> Path:
    path = folder / "archive.pt"
    path.write_bytes(data)
    return path


def good(folder: Path, *, crc32: bool = True) -> bytes:
    path = folder / "good.pt"
    write_torch_zip(path, RECORDS, deflate=DEFLATED, crc32=crc32)
    return path.read_bytes()


def verified(folder: Path, data: bytes) -> ZipArchive:
    archive = opened(written(folder, data))
    archive.verify()
    return archive


def codes(archive: ZipArchive) -> set[tuple[str, str | None]]:
    return {(damage.code, damage.record) for damage in archive.damage}


# ------------------------------------------------------------------------------------------------------------ sound archives


def test_what_torch_writes_is_read_without_damage(tmp_path: Path) -> None:
    archive = verified(tmp_path, good(tmp_path))
    assert archive.damage == []
    assert archive.torch
    assert archive.folder == "archive"
    assert archive.names == tuple(RECORDS)
    for name, data in RECORDS.items():
        member = archive.member(name)
        assert archive.record(name) == data
        assert member.name == f"archive/{name}"
        assert member.data_offset % 64 == 0
        assert member.padding is not None
        assert member.descriptor is (data != b"")
        assert member.protected
        assert not member.zip64


def test_a_stored_record_is_not_copied(tmp_path: Path) -> None:
    data = bytes(1 << 18)
    write_torch_zip(tmp_path / "a", {"data/0": data})
    archive = opened(tmp_path / "a")
    view = archive.view("data/0")
    assert view.obj is archive.data.obj
    assert len(view) == len(data)
    archive.close()
    assert view[-1] == 0  # still mapped, for whoever holds it


def test_an_archive_is_a_context(tmp_path: Path) -> None:
    with opened(written(tmp_path, good(tmp_path))) as archive:
        kept = archive.record("version")
    assert kept == b"3\n"
    with pytest.raises(ValueError, match="released"):
        archive.data[0]


def test_records_without_checksum_are_not_protected_which_is_no_damage(tmp_path: Path) -> None:
    data = good(tmp_path, crc32=False)
    archive = verified(tmp_path, data)
    assert archive.damage == []
    assert {name for name in archive.names if not archive.member(name).protected} == set(RECORDS) - {"data/1"}
    spoilt = data.replace(b"\x80\x02}q\0.", b"\x80\x03}q\0.")
    assert spoilt != data
    assert verified(tmp_path, spoilt).damage == []


def test_a_record_of_a_sum_of_zero_is_protected(tmp_path: Path) -> None:
    data = b"\xff\xff\xff\xff"  # its checksum is 0xFFFFFFFF; and these have 0:
    zero = data + struct.pack("<I", 0xFFFFFFFF ^ 0xFFFFFFFF) if zlib.crc32(data) == 0 else bytes.fromhex("9d0ad96d")
    assert zlib.crc32(zero) == 0
    write_torch_zip(tmp_path / "a", {"x": zero})
    archive = opened(tmp_path / "a")
    archive.verify()
    assert archive.record("x") == zero
    assert archive.damage == []


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=12)


class OneWay(io.RawIOBase):
    """A stream that cannot seek: zipfile then writes data descriptors."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        self.data += data
        return memoryview(data).nbytes


@settings(deadline=None, max_examples=80)
@given(
    records=st.dictionaries(NAMES, st.binary(max_size=300), min_size=1, max_size=6),
    methods=st.lists(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), min_size=6, max_size=6),
    streamed=st.booleans(),
    zip64=st.booleans(),
    comment=st.binary(max_size=30).filter(lambda text: b"PK" not in text),
)
def test_what_zipfile_writes_is_read_as_zipfile_reads_it(
    records: dict[str, bytes], methods: list[int], streamed: bool, zip64: bool, comment: bytes
) -> None:
    one_way, stream = OneWay(), io.BytesIO()
    with zipfile.ZipFile(cast("IO[bytes]", one_way) if streamed else stream, "w") as out:
        out.comment = comment
        for (name, data), method in zip(records.items(), methods, strict=False):
            info = zipfile.ZipInfo(f"top/{name}")
            info.compress_type = method
            info.comment = comment
            with out.open(info, "w", force_zip64=zip64) as content:
                content.write(data)
    whole = bytes(one_way.data) if streamed else stream.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        archive = verified(Path(folder), whole)
        assert archive.damage == []
        assert not archive.torch
        with zipfile.ZipFile(io.BytesIO(whole)) as oracle:
            assert [member.name for member in archive.members] == oracle.namelist()
            for info, member in zip(oracle.infolist(), archive.members, strict=True):
                assert archive.record(member.record) == oracle.read(info)
                assert (member.crc, member.size, member.stored_size) == (info.CRC, info.file_size, info.compress_size)
                assert (member.header_offset, member.method) == (info.header_offset, info.compress_type)


@settings(deadline=None, max_examples=60)
@given(
    records=st.dictionaries(NAMES, st.binary(max_size=300), min_size=1, max_size=6),
    alignment=st.sampled_from([1, 64, 4096]),
    deflate=st.booleans(),
)
def test_what_torch_writes_is_read_as_zipfile_reads_it(records: dict[str, bytes], alignment: int, deflate: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        packed = frozenset(name for name, data in records.items() if deflate and data)
        write_torch_zip(path, dict(records), alignment=alignment, deflate=packed)
        archive = opened(path)
        archive.verify()
        assert archive.damage == []
        assert archive.torch
        with zipfile.ZipFile(path) as oracle:
            assert {name: archive.record(name) for name in archive.names} == {
                info.filename.removeprefix("archive/"): oracle.read(info) for info in oracle.infolist()
            }


# ------------------------------------------------------------------------------------------------------------------- damage


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    spoilt = bytearray(data)
    spoilt[at] ^= 1 << bit
    return bytes(spoilt)


def local(data: bytes, name: bytes) -> int:
    """Where the local header of a record starts."""
    return data.index(b"archive/" + name) - 30


def central(data: bytes, name: bytes) -> int:
    """Where the entry of a record in the directory starts."""
    return data.rindex(b"archive/" + name) - 46


def descriptor(data: bytes, name: bytes) -> int:
    """Where the data descriptor of a record starts."""
    return data.index(b"PK\7\10", local(data, name))


def shorter_directory(data: bytes) -> bytes:
    """The end says that the directory stops before its last entry."""
    at = len(data) - 98
    count, length = struct.unpack_from("<QQ", data, at + 32)
    end = struct.pack("<QQQ", count - 1, count - 1, length - 46 - len("archive/version"))
    short = struct.pack("<HHI", count - 1, count - 1, length - 46 - len("archive/version"))
    return data[: at + 24] + end + data[at + 48 : -14] + short + data[-6:]


PLANTED: dict[str, tuple[Callable[[bytes], bytes], str, str | None]] = {
    "a byte of the data": (lambda d: flip(d, d.index(bytes(range(256))) + 9), "crc-mismatch", "data/0"),
    "a byte of compressed data": (
        lambda d: d.replace(PACKED, bytes([PACKED[0] | 6]) + PACKED[1:]),
        "bad-compression",
        "code/model.py",
    ),
    "a local signature": (lambda d: flip(d, local(d, b"data/0")), "bad-signature", "data/0"),
    "a local version": (lambda d: flip(d, local(d, b"data/0") + 4), "header-disagrees", "data/0"),
    "local flags": (lambda d: flip(d, local(d, b"data/0") + 6, 3), "header-disagrees", "data/0"),
    "a local method": (lambda d: flip(d, local(d, b"data/0") + 8), "header-disagrees", "data/0"),
    "a local time": (lambda d: flip(d, local(d, b"data/0") + 11), "header-disagrees", "data/0"),
    "a local checksum": (lambda d: flip(d, local(d, b"data/0") + 14), "crc-disagrees", "data/0"),
    "a local size": (lambda d: flip(d, local(d, b"data/0") + 22), "size-disagrees", "data/0"),
    "a length of a local name": (lambda d: flip(d, local(d, b"data/0") + 26), "name-disagrees", "data/0"),
    "a length of a local field": (lambda d: flip(d, local(d, b"data/0") + 28), "padding-disagrees", "data/0"),
    "a local name": (lambda d: flip(d, local(d, b"data/0") + 35), "name-disagrees", "data/0"),
    "the padding's letters": (lambda d: flip(d, local(d, b"data/0") + 44), "padding-disagrees", "data/0"),
    "the padding's length": (lambda d: flip(d, local(d, b"data/0") + 46), "padding-disagrees", "data/0"),
    "the padding": (lambda d: flip(d, local(d, b"data/0") + 49), "padding-disagrees", "data/0"),
    "a descriptor's signature": (lambda d: flip(d, descriptor(d, b"data/0")), "bad-descriptor", "data/0"),
    "a descriptor's checksum": (lambda d: flip(d, descriptor(d, b"data/0") + 4), "crc-disagrees", "data/0"),
    "a descriptor's size": (lambda d: flip(d, descriptor(d, b"data/0") + 12), "size-disagrees", "data/0"),
    "a central signature": (lambda d: flip(d, central(d, b"data/0")), "bad-signature", "data/0"),
    "who made it": (lambda d: flip(d, central(d, b"data/0") + 4), "header-disagrees", "data/0"),
    "a central checksum": (lambda d: flip(d, central(d, b"data/0") + 16), "crc-disagrees", "data/0"),
    "a central stored size": (lambda d: flip(d, central(d, b"data/0") + 20), "size-disagrees", "data/0"),
    "a central size": (lambda d: flip(d, central(d, b"data/0") + 24), "size-disagrees", "data/0"),
    "a central size of nothing": (lambda d: flip(d, central(d, b"data/1") + 24), "size-disagrees", "data/1"),
    "a large central size": (lambda d: flip(d, central(d, b"data/0") + 27, 6), "size-disagrees", "data/0"),
    "a length of a central name": (lambda d: flip(d, central(d, b"version") + 28), "directory-disagrees", "version"),
    "an extra field": (lambda d: flip(d, central(d, b"data/0") + 30, 7), "directory-disagrees", "data/0"),
    "a comment": (lambda d: flip(d, central(d, b"data/0") + 32, 3), "directory-disagrees", "data/0"),
    "a disk": (lambda d: flip(d, central(d, b"data/0") + 34), "header-disagrees", "data/0"),
    "attributes": (lambda d: flip(d, central(d, b"data/0") + 38), "header-disagrees", "data/0"),
    "a header offset": (lambda d: flip(d, central(d, b"data/0") + 42, 1), "no-header", "data/0"),
    "a header offset beyond": (lambda d: flip(d, central(d, b"data/0") + 45, 1), "cut-off", "data/0"),
    "a central name": (lambda d: flip(d, central(d, b"data/0") + 46 + 13), "name-disagrees", "data/1"),
    "a folder": (lambda d: flip(d, central(d, b"data/0") + 46), "outside-folder", "`rchive/data/0"),
    "the zip64 end record": (lambda d: flip(d, len(d) - 98 + 24), "zip64-end-disagrees", None),
    "its signature": (lambda d: flip(d, len(d) - 98), "zip64-end-disagrees", None),
    "who made that": (lambda d: flip(d, len(d) - 98 + 12), "zip64-end-disagrees", None),
    "its offset": (lambda d: flip(d, len(d) - 98 + 48), "zip64-end-disagrees", None),
    "the locator": (lambda d: flip(d, len(d) - 42 + 8), "zip64-locator-disagrees", None),
    "the locator's signature": (lambda d: flip(d, len(d) - 42), "zip64-locator-disagrees", None),
    "the end record": (lambda d: flip(d, len(d) - 22 + 16), "end-record-disagrees", None),
    "the end's signature": (lambda d: flip(d, len(d) - 22), "end-record-disagrees", None),
    "the end's comment": (lambda d: flip(d, len(d) - 2), "end-record-disagrees", None),
    "a whole entry": (lambda d: d[: (at := central(d, b"data.pkl"))] + bytes(46) + d[at + 46 :], "bad-directory", None),
    "a directory that stops": (shorter_directory, "zip64-end-disagrees", None),
    "junk behind": (lambda d: d + b"junk", "junk-after", None),
    "junk in front": (lambda d: b"junk" + d, "junk-before", None),
    "no end": (lambda d: d[:-30], "no-directory", None),
    "no directory": (lambda d: d[: central(d, b"version") + 3], "no-directory", None),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_damage_is_named(planted: str, tmp_path: Path) -> None:
    spoil, code, record = PLANTED[planted]
    data = good(tmp_path)
    spoilt = spoil(data)
    assert spoilt != data
    archive = verified(tmp_path, spoilt)
    assert (code, record) in codes(archive), archive.damage
    for name in archive.names:  # what can still be read is right
        try:
            result = archive.record(name)
        except ArchiveError:
            continue
        assert result == RECORDS[name] if name in RECORDS and name != record else result in RECORDS.values()


def test_what_a_single_place_says_wrongly_does_not_lose_the_record(tmp_path: Path) -> None:
    data = good(tmp_path)
    lost = {"a byte of the data", "a byte of compressed data", "a header offset", "a header offset beyond"}
    for planted, (spoil, _, record) in PLANTED.items():
        if record in RECORDS and planted not in lost | {"a central name"}:
            assert verified(tmp_path, spoil(data)).record(record) == RECORDS[record], planted


def test_a_damaged_record_is_refused_each_time_and_noted_once(tmp_path: Path) -> None:
    data = good(tmp_path)
    archive = opened(written(tmp_path, data.replace(bytes(range(256)), bytes(256))))
    for _ in range(2):
        with pytest.raises(Corrupt, match="checksum") as caught:
            archive.view("data/0")
        assert caught.value.code == "crc-mismatch"
        assert "data/0" in str(caught.value.where)
    archive.verify()
    archive.verify()
    assert [damage.code for damage in archive.damage] == ["crc-mismatch"]
    assert archive.record("version") == b"3\n"


def test_a_checksum_need_not_be_compared(tmp_path: Path) -> None:
    data = good(tmp_path)
    archive = opened(written(tmp_path, data.replace(bytes(range(256)), bytes(256))))
    assert archive.view("data/0", check=False) == bytes(256)


def test_names_that_occur_twice(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        out.writestr("top/x", b"one")
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("top/x", b"two")
    archive = verified(tmp_path, stream.getvalue())
    assert codes(archive) == {("duplicate-name", "x")}
    assert archive.record("x") == b"one"
    assert archive.names == ("x", "x")


def joined(members: list[tuple[bytes, bytes]], between: bytes = b"", unlisted: bytes = b"") -> bytes:
    stream = io.BytesIO()
    results = []
    for name, data in members:
        item = write_member(stream, name, data)
        if name != unlisted:
            results.append(item)
        stream.write(between)
    write_end(stream, results)
    return stream.getvalue()


def test_bytes_between_members(tmp_path: Path) -> None:
    archive = verified(tmp_path, joined([(b"a/x", b"1"), (b"a/y", b"2")], between=b"junk"))
    assert codes(archive) == {("junk-between", "x"), ("junk-between", "y")}


def test_members_that_the_directory_does_not_list(tmp_path: Path) -> None:
    archive = verified(tmp_path, joined([(b"a/x", b"1"), (b"a/y", b"2"), (b"a/z", b"3")], unlisted=b"a/y"))
    assert codes(archive) == {("unlisted-record", "y")}
    assert archive.names == ("x", "z")


def test_members_upon_each_other(tmp_path: Path) -> None:
    stream = io.BytesIO()
    item = write_member(stream, b"a/x", b"1" * 50)
    write_end(stream, [item, item])
    archive = verified(tmp_path, stream.getvalue())
    assert ("overlap", "x") in codes(archive)
    assert [damage.record for damage in archive.damage if damage.code == "overlap"] == ["x"]  # named when it was opened, and once


def test_bytes_in_front_that_offsets_count(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as out:
        out.write(b"#!/bin/sh\n")
        write_end(out, [write_member(out, b"a/x", b"1")])
    archive = opened(path)
    archive.verify()
    assert codes(archive) == {("junk-before", None)}
    assert archive.record("x") == b"1"


def test_no_common_folder(tmp_path: Path) -> None:
    archive = verified(tmp_path, joined([(b"x", b"1"), (b"y", b"2")]))
    assert codes(archive) == {("no-folder", None)}
    assert archive.names == ("x", "y")


def test_every_cut_is_named_with_the_record_that_it_cuts(tmp_path: Path) -> None:
    data = good(tmp_path)
    archive = opened(written(tmp_path, data))
    spans = [(member.header_offset, member.end, member.record) for member in archive.members]
    start = archive.directory_offset
    for length in range(4, len(data)):
        cut = verified(tmp_path, data[:length])
        assert ("no-directory", None) in codes(cut), length
        whole = {name: cut.record(name) for name in cut.names}
        assert whole == {record: RECORDS[record] for _, end, record in spans if end <= length}
        for first, end, record in spans:
            if first + 30 + len(f"archive/{record}") <= length < end:
                assert ("cut-off", record) in codes(cut), (length, record)
                with pytest.raises(Corrupt) as caught:
                    cut.record(record)
                assert caught.value.code == "cut-off"
        assert length <= start or ("cut-off", None) in codes(cut)


@pytest.mark.parametrize(
    ("flags", "method", "code"), [(0x801, 0, "encrypted"), (0x800, 12, "compression"), (0x800, 14, "compression")]
)
def test_what_torch_never_writes_is_unsupported(flags: int, method: int, code: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        out.writestr("top/x", b"1")
    data = bytearray(stream.getvalue())
    for at in (6, data.rindex(b"PK\1\2") + 8):
        data[at : at + 4] = struct.pack("<HH", flags, method)
    archive = opened(written(tmp_path, bytes(data)))
    with pytest.raises(Unsupported) as caught:
        archive.view("x")
    assert caught.value.code == code
    archive.verify()
    assert codes(archive) == {(code, "x")}


# -------------------------------------------------------------------------------------------------------------------- bombs


def bomb(size: int, stated: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    stream = io.BytesIO()
    stream.write(struct.pack("<4s5HIIIHH", b"PK\3\4", 20, 0, 8, 0, 0, 1, len(body), stated, 5, 0) + b"top/x" + body)
    start = stream.tell()
    fields = (0, 20, 0, 8, 0, 0, 1, len(body), stated, 5, 0, 0, 0, 0, 0, 0)
    stream.write(struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields) + b"top/x")
    length = stream.tell() - start
    stream.write(struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, 1, 1, length, start, 0))
    return stream.getvalue()


def test_a_bomb_that_tells_its_size_is_refused(tmp_path: Path) -> None:
    archive = opened(written(tmp_path, bomb(128 << 20, 128 << 20)))
    with pytest.raises(Unsafe) as caught:
        archive.view("x")
    assert caught.value.code == "too-large"
    assert codes(archive) == {("too-large", "x")}


def test_a_bomb_that_lies_about_its_size_stops_there(tmp_path: Path) -> None:
    archive = opened(written(tmp_path, bomb(32 << 20, 100)))
    with pytest.raises(Corrupt, match="inflates to 101 bytes or more") as caught:
        archive.view("x")
    assert caught.value.code == "size-disagrees"


def test_members_that_share_their_bytes_are_inflated_but_once(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = bytes(1 << 16)
    body = packer.compress(data) + packer.flush()
    stream = io.BytesIO()
    crc = zlib.crc32(data)
    stream.write(struct.pack("<4s5HIIIHH", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(body), len(data), 5, 0) + b"top/x" + body)
    start = stream.tell()
    fields = (0, 20, 0, 8, 0, 0, crc, len(body), len(data), 5, 0, 0, 0, 0, 0, 0)
    for _ in range(1000):
        stream.write(struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields) + b"top/x")
    length = stream.tell() - start
    stream.write(struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, 1000, 1000, length, start, 0))
    archive = verified(tmp_path, stream.getvalue())
    assert {"overlap", "duplicate-name"} <= {damage.code for damage in archive.damage}
    refused = [member for member in archive.members if member.state < 2]
    assert len(refused) > 200


def test_numbers_that_are_larger_than_the_file_allocate_nothing(tmp_path: Path) -> None:
    data = good(tmp_path)
    for at, size in ((len(data) - 98 + 24, 32), (len(data) - 22 + 8, 12), (len(data) - 42 + 8, 8)):
        verified(tmp_path, data[:at] + b"\xfe" * size + data[at + size :])
    with pytest.raises(Corrupt, match="no record"):
        opened(written(tmp_path, b"PK\5\6" + struct.pack("<4HIIH", 0, 0, 60000, 60000, 1 << 30, 0, 0)))


# ---------------------------------------------------------------------------------------------------------------- mini fuzz

FUZZED = [
    "torch-1.0.0/clamp.pt",
    "torch-1.3.1/clamp.pt",
    "torch-1.6.0/mobile.ptl",
    "torch-2.13.0/package.pt",
    "torch-2.13.0/save_dict_keys.pt",
    "torch-2.13.0/save_storage_alignment.pt",
    "torch-2.13.0/traced.pt",
]


@pytest.mark.parametrize("file", FUZZED)
def test_each_flipped_bit_is_named_or_changes_no_record(file: str, tmp_path: Path) -> None:
    data = (FIXTURES / file).read_bytes()
    whole = verified(tmp_path, data)
    assert whole.torch
    assert whole.damage == []
    records = {name: whole.record(name) for name in whole.names}
    spans = [(member.header_offset, member.end, member.record) for member in whole.members]
    at = whole.directory_offset
    for member in whole.members:
        spans.append((at, at + 46 + member.name_length, member.record))
        at += 46 + member.name_length
    choose = random.Random(file)
    named = 0
    for _ in range(50):
        place, bit = choose.randrange(len(data)), choose.randrange(8)
        archive = verified(tmp_path, flip(data, place, bit))
        owner = next((record for start, end, record in spans if start <= place < end), None)
        message = f"bit {bit} of {place}, in {owner!r}: {archive.damage}"
        if any(damage.record == owner or (owner is not None and owner in damage.detail) for damage in archive.damage):
            named += 1
        else:
            assert archive.damage == [], message
            assert {name: archive.record(name) for name in archive.names} == records, message
        for name in records.keys() & set(archive.names) - {owner}:
            assert archive.record(name) == records[name], message
    assert named >= 48


def test_a_folder_of_exactly_half_of_the_members_is_not_common(tmp_path: Path) -> None:
    archive = verified(tmp_path, joined([(b"a/x", b"1"), (b"y", b"2")]))
    assert codes(archive) == {("no-folder", None)}
    assert archive.names == ("a/x", "y")


def placed(*members: tuple[int, bytes, int, bytes, bytes, bytes]) -> bytes:
    """An archive whose members lie where they are put: offset, name, method, what is stored, what that is, extra field."""
    raw, directory = bytearray(), b""
    for at, name, method, stored, data, extra in members:
        raw[at:] = raw[at:] if len(raw) < at else raw[at:at]
        head = struct.pack(
            "<4s5HIIIHH", b"PK\3\4", 20, 0, method, 0, 0, zlib.crc32(data), len(stored), len(data), len(name), len(extra)
        )
        raw[at:] = head + name + extra + stored
        fields = (0, 20, 0, method, 0, 0, zlib.crc32(data), len(stored), len(data), len(name), 0, 0, 0, 0, 0, at)
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields) + name
    end = struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(raw), 0)
    return bytes(raw) + directory + end


@pytest.mark.parametrize("behind", [b"behind", b"b" * 100_000])
@pytest.mark.parametrize("pieces", [False, True])
def test_bytes_behind_deflated_data_are_damage(
    pieces: bool, behind: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is inflated at once or, as a large one is, piece by piece; and whether the rest is in the same piece or in another."""
    if pieces:
        monkeypatch.setattr(zip_member, "AT_ONCE", 10)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = bytes(range(100)) * 10
    body = packer.compress(data) + packer.flush()
    monkeypatch.setattr(zip_member, "FED", len(body) if len(behind) > 10 else zip_member.FED)  # the rest in a piece of its own
    assert codes(verified(tmp_path, placed((0, b"a/x", 8, body, data, b"")))) == set()
    archive = verified(tmp_path, placed((0, b"a/x", 8, body + behind, data, b"")))
    assert codes(archive) == {("size-disagrees", "x")}
    with pytest.raises(Corrupt, match="has bytes after its compressed data"):
        archive.record("x")


def test_a_member_that_reaches_into_the_next_by_its_padding_alone(tmp_path: Path) -> None:
    """The directory alone does not show it: it does not say how long the field in the local header is."""
    second = (63, b"a/y", 0, b"2", b"2", b"")
    head = placed((0, *second[1:]))[:10]
    data = b"1" * 20 + head
    archive = verified(tmp_path, placed((0, b"a/x", 0, data, data, b"FB\6\0" + b"Z" * 6), second))
    assert codes(archive) == {("overlap", "y")}
    assert archive.record("x") == data


def test_compressed_data_without_an_end_are_damage_even_where_all_bytes_came_out(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = bytes(range(100))
    body = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    archive = verified(tmp_path, placed((0, b"a/x", 8, body, data, b"")))
    assert codes(archive) == {("size-disagrees", "x")}
    with pytest.raises(Corrupt, match="ends before its compressed data ends"):
        archive.record("x")


@pytest.mark.parametrize("method", [0, 8])
def test_a_size_that_both_headers_state_wrongly_is_damage(method: int, tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(b"12345") + packer.flush() if method else b"12345"
    archive = verified(tmp_path, placed((0, b"a/x", method, body, b"1234567", b"")))
    assert codes(archive) == {("size-disagrees", "x")}
    with pytest.raises(Corrupt) as caught:
        archive.record("x")
    assert caught.value.code == "size-disagrees"


@pytest.mark.parametrize(("flags", "damaged"), [(0x800, True), (0x8, True), (0x2, False)])
def test_flags_that_change_the_meaning_agree_in_both_headers(flags: int, damaged: bool, tmp_path: Path) -> None:
    data = placed((0, b"a/x", 0, b"1", b"1", b""))
    archive = verified(tmp_path, data[:6] + flags.to_bytes(2, "little") + data[8:])
    assert codes(archive) == ({("header-disagrees", "x")} if damaged else set())


def test_data_do_not_reach_into_the_directory(tmp_path: Path) -> None:
    data = bytearray(placed((0, b"a/x", 0, b"12345", b"12345", b"")))
    entry = data.index(b"PK\1\2")
    for at in (14, entry + 16):  # in both headers: no checksum, and 20 bytes more than there are
        data[at : at + 12] = struct.pack("<III", 0, 25, 25)
    archive = verified(tmp_path, bytes(data))
    assert codes(archive) == {("cut-off", "x")}
    with pytest.raises(Corrupt):
        archive.record("x")


def test_stored_bytes_that_members_share_are_summed_but_once(tmp_path: Path) -> None:
    data = b"1" * 4000
    shared = placed((0, b"a/x", 0, data, data, b""))
    start = shared.index(b"PK\1\2")
    entry = shared[start:-22]
    end = struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, 50, 50, 50 * len(entry), start, 0)
    archive = verified(tmp_path, shared[:start] + 50 * entry + end)
    assert any("add up to more than the file size" in damage.detail for damage in archive.damage)


def test_members_that_overlap_are_named_when_an_archive_is_opened(tmp_path: Path) -> None:
    stream = io.BytesIO()
    item = write_member(stream, b"a/x", b"1" * 50)
    write_end(stream, [item, item])
    assert ("overlap", "x") in codes(opened(written(tmp_path, stream.getvalue())))


def with_ends(data: bytes, count: int = -1) -> bytes:
    """The same archive with the records that torch's writer puts after the directory, which may state another number of entries."""
    start = data.index(b"PK\1\2")
    directory = data[start : data.rindex(b"PK\5\6")]
    stated = directory.count(b"PK\1\2") if count < 0 else count
    return data[:start] + directory + ENDS.pack(*_torch_ends(stated, len(directory), start))


@pytest.mark.parametrize("flags", [0, 0x800])
def test_the_end_of_a_file_alone_does_not_make_it_one_of_torch(flags: int, tmp_path: Path) -> None:
    """Not even if half of its members have the flags of torch's writer; other writers state zip64 ends, too."""
    data = placed((0, b"a/x", 0, b"1", b"1", b""), (34, b"a/y", 0, b"2", b"2", b""))
    entry = data.index(b"PK\1\2")
    word = flags.to_bytes(2, "little")
    data = data[:6] + word + data[8 : entry + 8] + word + data[entry + 10 :]
    archive = verified(tmp_path, with_ends(data))
    assert not archive.torch
    assert codes(archive) == set()


def test_the_number_of_entries_is_compared_with_that_of_an_exact_end(tmp_path: Path) -> None:
    data = placed((0, b"a/x", 0, b"1", b"1", b""))
    assert codes(verified(tmp_path, with_ends(data))) == set()
    assert ("directory-disagrees", None) in codes(verified(tmp_path, with_ends(data, 2)))
