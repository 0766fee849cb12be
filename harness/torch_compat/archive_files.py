"""The files of an archive: the file itself, or every file in it if the archive is a directory.

A distributed checkpoint is a directory. Its size is the sum of the sizes of its files, and its SHA-256 is the SHA-256 of the sorted list
of their names and digests. It contains no directories and no links. Code that needs the bytes of an archive, but not their meaning, uses
this module.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from io import FileIO
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.errors import CorpusError
from torch_compat.places import is_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["HIDDEN", "MeasuredFiles", "copy_archive", "is_archive", "is_member", "joined_digest", "measure", "members", "sizes"]

HIDDEN: Final = ".metadata"
"""The only file name in a directory that may start with a dot."""


class MeasuredFiles(NamedTuple):
    """The size and digests of the files of an archive.

    Attributes:
        sha256, size: of the archive.
        files: the SHA-256 of each file of a directory, by name, sorted; empty for a file.
    """

    sha256: str
    size: int
    files: dict[str, str]


def is_member(name: object) -> bool:
    """Whether a name is valid for a file in a directory."""
    return name == HIDDEN or is_plain(name)


def joined_digest(files: Iterable[tuple[str, str]]) -> str:
    """The SHA-256 of a directory, from the names and digests of its files in any order."""
    total = hashlib.sha256()
    for name, digest in sorted(files):
        total.update(os.fsencode(name) + f"\0{digest}\n".encode())
    return total.hexdigest()


def is_archive(path: Path) -> bool:
    """Whether the path is a file, or a directory with the metadata of a distributed checkpoint, and not a link."""
    return _is_regular(path) or (not path.is_symlink() and _is_regular(path / HIDDEN))


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def members(path: Path) -> tuple[str, ...]:
    """The names of the files of a directory, sorted; for a file, one empty name.

    Raises:
        CorpusError: (``not-a-file``) the directory contains a link, a directory or anything else that is not a regular file; (``outside``)
            the name of a file is not a plain name.
        OSError: the path does not exist or cannot be read.
    """
    if not path.is_dir():
        return ("",)
    with _opened(path) as folder, os.scandir(folder) as entries:
        results = sorted((entry.name, entry.is_file(follow_symlinks=False)) for entry in entries)
    for name, regular in results:
        if not is_member(name):
            raise CorpusError(f"contains {name[:80]!a}, which is not a plain file name", where=str(path), code="outside")
        if not regular:
            raise CorpusError(f"contains {name!r}, which is not a regular file", where=str(path), code="not-a-file")
    return tuple(name for name, _ in results)


def sizes(path: Path) -> dict[str, int]:
    """The size of each file of an archive, by name, without reading the files.

    Raises:
        CorpusError, OSError: as in :func:`members`.
    """
    return {name: (path / name).lstat().st_size if name else path.stat().st_size for name in members(path)}


def measure(path: Path) -> MeasuredFiles:
    """The size and digest of an archive.

    Raises:
        CorpusError, OSError: as in :func:`members`.
    """
    total, files = 0, {}
    for name, file in _files(path, members(path)):
        with file:
            total += os.fstat(file.fileno()).st_size
            files[name] = hashlib.file_digest(file, "sha256").hexdigest()
    if "" in files:
        return MeasuredFiles(files[""], total, {})
    return MeasuredFiles(joined_digest(files.items()), total, files)


def copy_archive(source: Path, target: Path, *, follow: bool = True) -> None:
    """Copy a file, or a directory with its files, to a path that does not exist or is a file.

    Parameters:
        follow: whether the source may be a link to a file.

    Raises:
        CorpusError, OSError: as in :func:`members`.
    """
    names = members(source)
    if names != ("",):
        target.mkdir()
    for name, file in _files(source, names, follow=follow):
        with file, (target / name if name else target).open("wb") as copied:
            shutil.copyfileobj(file, copied)


def _files(path: Path, names: tuple[str, ...], *, follow: bool = True) -> Iterator[tuple[str, FileIO]]:
    """Every file of an archive, open. A file of a directory is opened relative to the listed directory, and never through a link."""
    if names == ("",):
        yield "", _regular(path, 0 if follow else os.O_NOFOLLOW, str(path))
        return
    with _opened(path) as folder:
        for name in names:
            yield name, _regular(name, os.O_NOFOLLOW, str(path / name), folder)


def _regular(path: str | Path, flags: int, where: str, folder: int | None = None) -> FileIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorpusError("is not a regular file", where=where, code="not-a-file")
    return FileIO(descriptor, "rb")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a directory that is not a link, and yield its descriptor for the duration of the block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
