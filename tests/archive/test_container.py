"""Containers: recognised by their bytes, records read whole, and damage answered as damage."""

from __future__ import annotations

import contextlib
import io
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.archive import open_archive
from harness.errors import ArchiveError, Corrupt, Unsupported, UsageError

if TYPE_CHECKING:
    from harness.corpus.corpus import Corpus

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
        assert bool(archive.names) is (fixture.container == "zip"), name
        for record in archive.names:
            assert isinstance(archive.record(record), bytes), name


@pytest.mark.parametrize(
    ("data", "container"),
    [
        (zipped({"a/b": b"x"}), "zip"),
        (STREAM, "stream"),
        (STREAM.replace(b"\x80\x02", b"\x80\x04"), "stream"),
        (b"\x10\0\0\0PTMF" + bytes(20), "flatbuffer"),
        (bytes(257) + b"ustar\x0000" + bytes(300), "tar"),
    ],
)
def test_a_container_is_recognised_by_its_bytes(data: bytes, container: str, tmp_path: Path) -> None:
    assert open_archive(write(tmp_path, data)).container == container


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is an empty file"),
        (b"PK", "starts with 50 4b,"),
        (b"\x89HDF\r\n\x1a\n", "starts with 89 48 44 46 0d 0a 1a 0a,"),
        (b"\x80\x02}q\x00.", "not an archive that PyTorch writes"),
    ],
)
def test_what_is_no_archive_is_unsupported(data: bytes, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, data)
    with pytest.raises(Unsupported) as caught:
        open_archive(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_folder_or_nothing_is_a_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        open_archive(tmp_path)
    with pytest.raises(UsageError, match="there is no such file"):
        open_archive(tmp_path / "nowhere")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_records_are_read_without_their_top_folder(compression: int, tmp_path: Path) -> None:
    archive = open_archive(write(tmp_path, zipped({"top/data.pkl": b"1" * 99, "top/data/0": b""}, compression)))
    assert archive.names == ("data.pkl", "data/0")
    assert archive.record("data.pkl") == b"1" * 99
    with pytest.raises(Corrupt, match=r"has no record 'data\.pk'"):
        archive.record("data.pk")


def test_a_member_outside_any_folder_is_damage(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="lies in no folder"):
        _ = open_archive(write(tmp_path, zipped({"data.pkl": b""}))).names


def test_an_exported_program_of_its_first_years_has_no_folder(tmp_path: Path) -> None:
    records = {"serialized_exported_program.json": b"{}", "serialized_state_dict.pt": b"1", "version": b"2"}
    archive = open_archive(write(tmp_path, zipped(records)))
    assert archive.names == tuple(records)
    assert archive.record("version") == b"2"


def test_a_checksum_is_checked_unless_the_writer_left_it_out(tmp_path: Path) -> None:
    good = zipped({"top/x": b"0123456789"})
    with pytest.raises(Corrupt, match="Bad CRC-32"):
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
        (4, b"\xff\xff"),  # needs a version of zip that there is not
        (6, b"\x01\x00"),  # encrypted
        (6, b"\x20\x00"),  # patched data
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
    with pytest.raises(Corrupt):
        open_archive(path).record("x")


SMALL = zipped({"top/version": b"3\n", "top/data.pkl": b"\x80\x02}q\x00.", "top/data/0": bytes(16)})
DEFLATED = zipped({"top/version": b"3\n", "top/data.pkl": b"\x80\x02}q\x00." * 20}, zipfile.ZIP_DEFLATED)


def read_all(data: bytes) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        archive = open_archive(write(Path(folder), data))
        return {name: archive.record(name) for name in archive.names}


@pytest.mark.parametrize("whole", [SMALL, DEFLATED], ids=["stored", "deflated"])
def test_no_cut_gives_less_than_everything(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(ArchiveError):
            read_all(whole[:length])


@pytest.mark.parametrize("whole", [SMALL, DEFLATED], ids=["stored", "deflated"])
@settings(deadline=None)
@given(data=st.data())
def test_a_flipped_bit_gives_damage_or_the_same_records_or_other_names(whole: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    spoilt = bytearray(whole)
    spoilt[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read_all(bytes(spoilt))
    except ArchiveError:
        return
    before = read_all(whole)
    assert all(found[name] == before[name] for name in found.keys() & before.keys())


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", STREAM, b"\x10\0\0\0PTMF"]))
def test_nonsense_is_answered(data: bytes, head: bytes) -> None:
    with contextlib.suppress(ArchiveError):
        read_all(head + data)
