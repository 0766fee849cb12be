"""A file that is truncated while it is read causes an error, not the end of the process."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.interrupted.dying import ran
from torch_compat.archive.base import AHEAD, WINDOW, map_part, read_raw, windows
from torch_compat.archive.container import open_archive
from torch_compat.archive.zip import ZipArchive
from torch_compat.errors import ArchiveError, Corrupt
from torch_compat.inspection import inspect

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 3 * WINDOW


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "large.pt"
    result.write_bytes(os.urandom(SIZE))
    return result


def test_slices_and_searches_are_those_of_the_bytes(path: Path) -> None:
    whole, raw = path.read_bytes(), read_raw(str(path))
    assert len(raw) == SIZE
    for start in (0, 1, AHEAD - 1, AHEAD, WINDOW - 3, SIZE - 5, SIZE, SIZE + 9, -7):
        for stop in (start, start + 1, start + 30, start + AHEAD, start + WINDOW, -1, None):
            assert raw[start:stop] == whole[start:stop], (start, stop)
    wanted = whole[WINDOW - 2 : WINDOW + 2]
    assert raw.find(wanted, 5) == whole.find(wanted, 5) == WINDOW - 2
    assert raw.rfind(wanted, 5, SIZE) == whole.rfind(wanted, 5, SIZE)
    assert raw.find(wanted, WINDOW) == whole.find(wanted, WINDOW)
    assert b"".join(bytes(part) for part in windows(raw, 3, SIZE - 3)) == whole[3:-3]


def test_a_part_of_a_part_is_where_it_was(path: Path) -> None:
    whole, raw = path.read_bytes(), read_raw(str(path))
    assert not isinstance(raw, bytes)
    part, before = map_part(raw, 100_000, 2_000_000)
    inner, more = map_part(part, before + 50_000, 500_000)
    for result in (inner[more : more + 30], memoryview(inner)[more : more + 30]):
        assert result == whole[150_000:150_030]


@pytest.mark.parametrize("left", [0, 5, WINDOW])
def test_what_is_gone_is_said(path: Path, left: int) -> None:
    raw = read_raw(str(path))
    os.truncate(path, left)
    for looks in (lambda: raw[SIZE - 30 :], lambda: list(windows(raw, 0, SIZE)), lambda: raw.rfind(b"PK", SIZE - 99, SIZE)):
        with pytest.raises(Corrupt, match=f"truncated while being read: it had {SIZE} bytes") as caught:
            looks()
        assert (caught.value.code, caught.value.where) == ("changed", str(path))


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as result:
        result.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        result.writestr("archive/version", b"3\n")
        for number in range(40):
            result.writestr(f"archive/data/{number}", os.urandom(100_000))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_open_archive_that_is_cut_ends_no_process(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.pt"
    archive(path)

    def read() -> None:
        with open_archive(path) as opened:
            assert isinstance(opened, ZipArchive)
            os.truncate(path, int(path.stat().st_size * share))
            refused = 0
            for name in opened.names:
                try:
                    opened.record(name)
                except ArchiveError:
                    refused += 1
            opened.verify()
            assert refused
            assert opened.damage

    ended = ran(tmp_path, read)
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize("when", [1, 2, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_inspecting_a_file_that_is_cut_meanwhile_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, when: int
) -> None:
    path = tmp_path / "model.pt"
    archive(path)
    pread, calls = os.pread, []

    def cut(descriptor: int, count: int, offset: int) -> bytes:
        calls.append(offset)
        if len(calls) == when:
            os.truncate(path, int(path.stat().st_size * share))
        return pread(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", cut)
    result = inspect(path)
    assert len(calls) >= when
    assert result["error"]["code"] == "changed"
