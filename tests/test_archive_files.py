"""An archive is one file or a directory of files: its measurements, and what it may not contain."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from torch_compat.archive_files import copy_archive, is_archive, joined_digest, measure, members, sizes
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.dcp"
    path.mkdir()
    (path / ".metadata").write_bytes(b"about")
    (path / "__0_0.distcp").write_bytes(b"parts")
    (path / "__1_0.distcp").write_bytes(b"")
    return path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_directory_is_measured_by_all_its_files(folder: Path) -> None:
    files = {".metadata": sha256(b"about"), "__0_0.distcp": sha256(b"parts"), "__1_0.distcp": sha256(b"")}
    listed = "".join(f"{name}\0{digest}\n" for name, digest in sorted(files.items()))
    assert measure(folder) == (sha256(listed.encode()), 10, files)
    assert members(folder) == tuple(sorted(files))
    assert sizes(folder) == {".metadata": 5, "__0_0.distcp": 5, "__1_0.distcp": 0}


def test_a_file_is_measured_by_itself(folder: Path) -> None:
    assert measure(folder / ".metadata") == (sha256(b"about"), 5, {})
    assert sizes(folder / ".metadata") == {"": 5}


def test_the_order_of_the_files_is_of_no_importance() -> None:
    assert joined_digest([("b", "1"), ("a", "2")]) == joined_digest([("a", "2"), ("b", "1")])
    assert joined_digest([("a", "1"), ("b", "2")]) != joined_digest([("a", "2"), ("b", "1")])


def test_a_copy_has_the_same_files(folder: Path, tmp_path: Path) -> None:
    copy_archive(folder, tmp_path / "copy.dcp")
    assert measure(tmp_path / "copy.dcp") == measure(folder)
    copy_archive(folder / ".metadata", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"about"


@pytest.mark.parametrize("what", ["link", "directory", "pipe"])
def test_only_files_may_be_in_it(folder: Path, tmp_path: Path, what: str) -> None:
    path = folder / "__2_0.distcp"
    if what == "link":
        path.symlink_to(tmp_path)
    elif what == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    for act in (lambda: members(folder), lambda: measure(folder), lambda: copy_archive(folder, tmp_path / "copy")):
        with pytest.raises(CorpusError, match=r"contains '__2_0\.distcp', which is not a regular file"):
            act()
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", [".hidden", "a b", "line\nbreak"])
def test_its_files_have_plain_names(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    with pytest.raises(CorpusError, match="is not a plain file name"):
        members(folder)


def test_a_link_is_no_archive_and_is_not_followed(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.dcp"
    link.symlink_to(folder)
    assert (is_archive(folder), is_archive(folder / ".metadata"), is_archive(link), is_archive(tmp_path / "none")) == (
        True,
        True,
        False,
        False,
    )
    (folder / ".metadata").unlink()
    assert not is_archive(folder)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        measure(link)
    (tmp_path / "file").symlink_to(folder / "__0_0.distcp")
    with pytest.raises(OSError, match="symbolic links"):
        copy_archive(tmp_path / "file", tmp_path / "copied", follow=False)
