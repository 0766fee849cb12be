"""The container of torch 0.1, with the standard library as oracle, and the damage that can be detected in it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.archive import TarArchive, open_archive
from torch_compat.errors import ArchiveError, Corrupt, Unsupported, UsageError

FIXTURE = Path(__file__).parents[2] / "fixtures" / "synthetic" / "tar.pt"
RECORDS = {"sys_info": b"a" * 104, "pickle": b"b" * 600, "tensors": b"", "storages": b"c" * 512}


def tarred(records: dict[str, bytes], kind: int = tarfile.USTAR_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=kind) as out:
        for name, data in records.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def opened(folder: Path, data: bytes) -> TarArchive:
    path = folder / "archive.pt"
    path.write_bytes(data)
    archive = open_archive(path)
    assert isinstance(archive, TarArchive)
    archive.verify()
    return archive


def codes(archive: TarArchive) -> set[tuple[str, str | None]]:
    return {(damage.code, damage.record) for damage in archive.damage}


def test_the_fixture_is_read_as_the_standard_library_reads_it() -> None:
    archive = open_archive(FIXTURE)
    assert archive.container == "tar"
    with tarfile.open(FIXTURE) as oracle:
        assert archive.names == tuple(oracle.getnames())
        for name in archive.names:
            member = oracle.extractfile(name)
            assert member is not None
            assert archive.record(name) == member.read()
    assert archive.damage == []


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_both_forms_of_headers_are_read(kind: int, tmp_path: Path) -> None:
    archive = opened(tmp_path, tarred(RECORDS, kind))
    assert {name: archive.record(name) for name in archive.names} == RECORDS
    assert archive.damage == []
    assert archive.view("pickle").obj is archive.data.obj


def test_a_record_that_is_missing(tmp_path: Path) -> None:
    archive = opened(tmp_path, tarred({"pickle": b"x", "sys_info": b"", "tensors": b""}))
    assert codes(archive) == {("missing-record", "storages")}
    with pytest.raises(Corrupt) as caught:
        archive.view("storages")
    assert caught.value.code == "missing-record"


@pytest.mark.parametrize(
    ("at", "value", "found"),
    [
        (0, b"S", {("header-checksum", "Sys_info"), ("missing-record", "sys_info")}),
        (108, b"7", {("header-checksum", "sys_info")}),
        (148, b"7", {("header-checksum", "sys_info")}),
        (156, b"5", {("header-checksum", "sys_info"), ("not-a-file", "sys_info")}),
        (512 + 104, b"x", {("junk-between", "sys_info")}),
        (-1, b"x", {("junk-after", None)}),
    ],
)
def test_damage_is_named(at: int, value: bytes, found: set[tuple[str, str | None]], tmp_path: Path) -> None:
    data = bytearray(tarred(RECORDS))
    data[at] = value[0]
    assert codes(opened(tmp_path, bytes(data))) == found


def test_a_size_that_is_no_number(tmp_path: Path) -> None:
    data = tarred(RECORDS)
    archive = opened(tmp_path, data[:124] + b"wrong" + data[129:])
    assert ("size-disagrees", "sys_info") in codes(archive)
    with pytest.raises(Corrupt):
        archive.view("sys_info")


def test_a_size_beyond_the_file(tmp_path: Path) -> None:
    data = tarred(RECORDS)
    archive = opened(tmp_path, data[:124] + b"\x80" + bytes(3) + b"\x7f" * 8 + data[136:])
    assert ("cut-off", "sys_info") in codes(archive)


def test_every_cut_is_named(tmp_path: Path) -> None:
    data = tarred(RECORDS)
    whole = opened(tmp_path, data)
    last = whole.members[-1]
    for length in range(600, last.data_offset + last.size + 1024, 37):
        archive = opened(tmp_path, data[:length])
        assert "cut-off" in {damage.code for damage in archive.damage}, length
        for name in archive.names:
            assert archive.record(name) == RECORDS[name]
        for member in whole.members:
            if member.data_offset <= length < member.data_offset + member.size:
                assert ("cut-off", member.name) in codes(archive)
                with pytest.raises(Corrupt) as caught:
                    archive.view(member.name)
                assert caught.value.code == "cut-off"


def test_names_that_occur_twice(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as out:
        for name in (*RECORDS, "pickle"):
            info = tarfile.TarInfo(name)
            out.addfile(info, io.BytesIO())
    assert codes(opened(tmp_path, stream.getvalue())) == {("duplicate-name", "pickle")}


def test_another_tar_is_not_one_of_torch(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tarred({"model_weights.ckpt": b"1", "model_config.yaml": b"2"}))
    with pytest.raises(Unsupported, match=r"other files \(model_weights\.ckpt, model_config\.yaml\)") as caught:
        open_archive(tmp_path / "a")
    assert caught.value.code == "tar-archive"


def test_other_containers_have_no_records(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x80\x02}q\0.")
    with pytest.raises(UsageError, match="is a pickle, which has no records"):
        open_archive(tmp_path / "a").view("x")


@settings(deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_answered(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    spoilt = bytearray(tarred(RECORDS))
    for _ in range(data.draw(st.integers(1, 5))):
        spoilt[data.draw(st.integers(0, 4000))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed"
    path.write_bytes(bytes(spoilt))
    try:
        archive = open_archive(path)
    except ArchiveError:
        return
    for name in archive.names:
        assert isinstance(archive.record(name), bytes)


# ------------------------------------------------------------------------------------------------------------------- PAX


def with_pax(records: dict[str, bytes], headers: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, data in records.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.pax_headers = len(data), 1480000000.25, headers  # a fraction of a second needs one
            out.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def test_pax_headers_are_no_members_and_no_damage(tmp_path: Path) -> None:
    data = with_pax(RECORDS, {})
    assert b"PaxHeader" in data
    archive = opened(tmp_path, data)
    assert {name: archive.record(name) for name in archive.names} == RECORDS
    assert archive.damage == []


def test_a_name_and_a_size_in_a_pax_header_count(tmp_path: Path) -> None:
    archive = opened(tmp_path, with_pax({"x": b"1" * 600}, {"path": "pickle", "size": "600"}))
    assert archive.names == ("pickle",)
    assert archive.record("pickle") == b"1" * 600


@pytest.mark.parametrize("change", [(b"mtime=", b"mtime "), (b" mtime", b"0mtime"), (b"30 ", b"99 "), (b"30 ", b"00 ")])
def test_a_pax_header_of_another_form_is_damage(change: tuple[bytes, bytes], tmp_path: Path) -> None:
    whole = with_pax(RECORDS, {})
    line = whole[512:544]
    length = line.partition(b" ")[0]
    old, new = (item.replace(b"30", length) if item == b"30 " else item for item in change)
    archive = opened(tmp_path, whole.replace(line, line.replace(old, new, 1)[:32], 1))
    assert "bad-pax" in {code for code, _ in codes(archive)}
    assert set(archive.names) == set(RECORDS)


def test_a_size_in_a_pax_header_that_is_no_number_ends_the_reading(tmp_path: Path) -> None:
    archive = opened(tmp_path, with_pax(RECORDS, {"size": "-5"}))
    assert ("size-disagrees", "sys_info") in codes(archive)
