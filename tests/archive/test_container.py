"""Containers: recognized by their bytes, records read completely, and damage reported as damage."""

from __future__ import annotations

import collections
import contextlib
import io
import mmap
import os
import pickle
import resource
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.archive import open_archive
from torch_compat.archive.container import VERIFY_OFFSETS
from torch_compat.errors import ArchiveError, Corrupt, Unsupported, UsageError

if TYPE_CHECKING:
    from torch_compat.corpus.corpus import Corpus

STREAM = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."


def zipped(records: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return stream.getvalue()


def write(folder: Path, data: bytes) -> Path:
    path = folder / "archive"
    path.write_bytes(data)
    return path


def test_every_fixture_is_in_the_container_that_its_manifest_names(small_corpus: Corpus) -> None:
    for name, fixture in small_corpus.fixtures.items():
        archive = open_archive(small_corpus.path(fixture))
        assert archive.container == fixture.container, name
        archive.verify()
        assert archive.damage == [], name
        assert bool(archive.names) is (fixture.container in {"zip", "tar"}), name
        for record in archive.names:
            assert isinstance(archive.record(record), bytes), name


@pytest.mark.parametrize(
    ("data", "container"),
    [
        (zipped({"a/b": b"x"}), "zip"),
        (b"#!/bin/sh\n" + zipped({"a/b": b"x"}), "zip"),
        (STREAM, "stream"),
        (STREAM.replace(b"\x80\x02", b"\x80\x04"), "stream"),
        (b"L119547037146038801333356L\n.I1001\n.", "stream"),
        (b"\x10\0\0\0PTMF" + bytes(20), "flatbuffer"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"\x80\x05\x95\x01\0\0\0\0\0\0\0N.", "pickle"),
        (pickle.dumps({"a": 1}, 0), "pickle"),
        (pickle.dumps({"a": 1}, 1), "pickle"),
        (pickle.dumps([1.5, "x"], 0), "pickle"),
        (b"cmodels.resnet\nResNet\np0\n.", "pickle"),
        (pickle.dumps(collections.OrderedDict(a=1), 0), "pickle"),
    ],
)
def test_a_container_is_recognised_by_its_bytes(data: bytes, container: str, tmp_path: Path) -> None:
    archive = open_archive(write(tmp_path, data))
    assert archive.container == container
    assert bytes(archive.data) == data
    assert archive.size == len(data)


@pytest.mark.parametrize("data", [b"\x80\x06}.", b"(dp0\nno end", b"PK\x05", b"}{", b"contents\nhere\n.", b"(I think so)."])
def test_what_is_no_archive_is_unsupported(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(Unsupported):
        open_archive(write(tmp_path, data))


def test_a_file_that_is_two_things_says_so(tmp_path: Path) -> None:
    archive = open_archive(write(tmp_path, STREAM + zipped({"a/b": b"x"})))
    assert archive.container == "stream"
    assert [damage.code for damage in archive.damage] == ["polyglot"]
    both = bytearray(zipped({"a/" + "b" * 300: b"x"}))
    both[257:262] = b"ustar"
    archive = open_archive(write(tmp_path, bytes(both)))
    assert archive.container == "zip"
    assert "polyglot" in {damage.code for damage in archive.damage}


def test_a_large_file_is_mapped(tmp_path: Path) -> None:
    with open_archive(write(tmp_path, STREAM + bytes(1 << 20))) as archive:
        assert isinstance(archive.data.obj, mmap.mmap)
        view = archive.data[: len(STREAM)]
    assert bytes(view) == STREAM


def test_a_file_that_cannot_be_mapped_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write(tmp_path, STREAM)
    os.truncate(path, 1 << 42)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    open_before = sorted(Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_AS, (1 << 41, hard))
    try:
        with pytest.raises(UsageError, match="cannot be read: Cannot allocate memory") as caught:
            open_archive(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert str(caught.value).startswith(str(path))
    assert sorted(Path("/proc/self/fd").iterdir()) == open_before


@pytest.mark.parametrize("switch", ["1", "0", None])
def test_offsets_are_verified_where_that_is_switched_on(
    switch: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, zipped({"archive/data.pkl": b"x", "archive/.format_version": b"1", "archive/data/0": b"12"}))
    if switch is None:
        monkeypatch.delenv(VERIFY_OFFSETS)
    else:
        monkeypatch.setenv(VERIFY_OFFSETS, switch)
    results = {(damage.code, damage.record) for damage in open_archive(path).damage}
    wrong = {("offset-disagrees", record) for record in ("data.pkl", ".format_version", "data/0")}
    assert results == (wrong if switch == "1" else set())
    assert {(damage.code, damage.record) for damage in open_archive(path, verify_offsets=True).damage} == wrong
    assert open_archive(path, verify_offsets=False).damage == []


def test_offsets_of_archives_that_state_no_format_version_are_left_alone(tmp_path: Path) -> None:
    assert open_archive(write(tmp_path, zipped({"a/data.pkl": b"x"})), verify_offsets=True).damage == []


def test_an_alignment_that_is_no_number(tmp_path: Path) -> None:
    records = {"archive/.format_version": b"1", "archive/.storage_alignment": b"0"}
    archive = open_archive(write(tmp_path, zipped(records)), verify_offsets=True)
    assert {damage.code for damage in archive.damage} == {"bad-alignment"}


def test_the_switch_is_on_throughout_the_tests() -> None:
    assert os.environ[VERIFY_OFFSETS] == "1"


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        open_archive(tmp_path / "pipe")
    with pytest.raises(UsageError, match="cannot be opened"):
        open_archive("a\0b")
    with pytest.raises(UsageError, match="cannot be opened"):
        open_archive(tmp_path / ("x" * 300))


def test_a_folder_or_nothing_is_a_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"):
        open_archive(tmp_path)
    with pytest.raises(UsageError, match="file not found"):
        open_archive(tmp_path / "nowhere")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_records_are_read_without_their_top_folder(compression: int, tmp_path: Path) -> None:
    archive = open_archive(write(tmp_path, zipped({"top/data.pkl": b"1" * 99, "top/data/0": b""}, compression)))
    assert archive.names == ("data.pkl", "data/0")
    assert archive.record("data.pkl") == b"1" * 99
    with pytest.raises(Corrupt, match=r"has no record 'data\.pk'"):
        archive.record("data.pk")


def test_members_outside_the_folder_are_damage(tmp_path: Path) -> None:
    archive = open_archive(write(tmp_path, zipped({"data.pkl": b""})))
    assert [(damage.code, damage.record) for damage in archive.damage] == [("no-folder", None)]
    archive = open_archive(write(tmp_path, zipped({"a/data.pkl": b"", "a/version": b"", "b/version": b""})))
    assert [(damage.code, damage.record) for damage in archive.damage] == [("outside-folder", "b/version")]
    assert archive.names == ("data.pkl", "version", "b/version")


def test_an_exported_program_of_its_first_years_has_no_folder(tmp_path: Path) -> None:
    records = {"serialized_exported_program.json": b"{}", "serialized_state_dict.pt": b"1", "version": b"2"}
    archive = open_archive(write(tmp_path, zipped(records)))
    assert archive.names == tuple(records)
    assert archive.record("version") == b"2"


def test_a_checksum_is_checked_unless_the_writer_left_it_out(tmp_path: Path) -> None:
    good = zipped({"top/x": b"0123456789"})
    with pytest.raises(Corrupt, match="have checksum"):
        open_archive(write(tmp_path, good.replace(b"0123456789", b"0123456780"))).record("x")
    checksum = struct.pack("<I", zlib.crc32(b"0123456789"))
    assert open_archive(write(tmp_path, good.replace(checksum, bytes(4)))).record("x") == b"0123456789"


def patched(data: bytes, offset: int, value: bytes) -> bytes:
    """Change a field of the only member, in both of its headers; the offset is that of the local one."""
    central = data.rindex(b"PK\x01\x02")
    for start in (offset, central + offset + 2):
        data = data[:start] + value + data[start + len(value) :]
    return data


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (6, b"\x01\x00"),  # encrypted
        (8, b"\x63\x00"),  # an unknown compression
        (8, b"\x08\x00"),  # not deflated, though it says so
        (8, b"\x0c\x00"),  # no bzip2
        (8, b"\x0e\x00"),  # no LZMA
        (18, b"\xff\xff\xff\x7f"),  # longer than the file
        (22, b"\xff\xff\xff\x7f"),
    ],
)
def test_a_member_that_contradicts_its_header_is_damage(offset: int, value: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, patched(zipped({"top/x": b"0123456789" * 5}), offset, value))
    with pytest.raises(ArchiveError):
        open_archive(path).record("x")


SMALL = zipped({"top/version": b"3\n", "top/data.pkl": b"\x80\x02}q\x00.", "top/data/0": bytes(16)})
DEFLATED = zipped({"top/version": b"3\n", "top/data.pkl": b"\x80\x02}q\x00." * 20}, zipfile.ZIP_DEFLATED)


def read_all(data: bytes) -> tuple[dict[str, bytes], bool]:
    """All records, and whether damage was found."""
    with tempfile.TemporaryDirectory() as folder:
        archive = open_archive(write(Path(folder), data))
        archive.verify()
        return {name: archive.record(name) for name in archive.names}, bool(archive.damage)


@pytest.mark.parametrize("whole", [SMALL, DEFLATED], ids=["stored", "deflated"])
def test_no_cut_goes_unsaid(whole: bytes) -> None:
    records, damaged = read_all(whole)
    assert not damaged
    for length in range(len(whole)):
        try:
            result, damaged = read_all(whole[:length])
        except ArchiveError:
            continue
        assert damaged
        assert result.items() <= records.items()


@pytest.mark.parametrize("whole", [SMALL, DEFLATED], ids=["stored", "deflated"])
@settings(deadline=None)
@given(data=st.data())
def test_a_flipped_bit_gives_damage_or_the_same_records(whole: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    spoilt = bytearray(whole)
    spoilt[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        result, damaged = read_all(bytes(spoilt))
    except ArchiveError:
        return
    before, _ = read_all(whole)
    assert damaged or result == before
    assert all(result[name] == before[name] for name in result.keys() & before.keys())


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", STREAM, b"\x10\0\0\0PTMF"]))
def test_nonsense_is_answered(data: bytes, head: bytes) -> None:
    with contextlib.suppress(ArchiveError):
        read_all(head + data)
    with contextlib.suppress(ArchiveError):
        read_all(data + head)
    with contextlib.suppress(ArchiveError):
        read_all(head + data + SMALL[-100:])
