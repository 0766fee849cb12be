"""What every container is: a file's bytes, mapped and read-only, and the damage found in them.

The bytes are mapped, so that a storage of many gigabytes is looked at without being copied; a small file is read whole,
which is quicker than mapping it. A file must not be cut shorter while it is open: the system would end this process.
"""

from __future__ import annotations

import mmap
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

__all__ = ["HEAD", "WINDOW", "Archive", "Damage", "Raw", "read_raw", "windows"]

Raw = bytes | mmap.mmap
HEAD = 4096  # bytes by which a file is recognised
READ_WHOLE = 1 << 16  # up to here, reading is quicker than mapping
WINDOW = 1 << 22


class Damage(NamedTuple):
    """One contradiction inside an archive.

    Attributes:
        code: what kind, in kebab-case.
        record: the record that it concerns, or None where it concerns the container itself.
        detail: what was found and what was expected, in words.
        offset: where in the file, as far as that is known.
    """

    code: str
    record: str | None
    detail: str
    offset: int | None = None


class Archive:
    """An open archive.

    Attributes:
        path: the file.
        container: ``zip``, ``stream``, ``tar``, ``flatbuffer`` or ``pickle``.
        data: the whole file, read-only.
        size: its length in bytes.
        damage: what contradicts itself in it, as far as it was looked at.
        names: names of its records; empty where the container has none.
    """

    container: str
    names: tuple[str, ...] = ()

    def __init__(self, path: str | os.PathLike[str], raw: Raw, container: str = "") -> None:
        self.path = os.fspath(path)
        self.raw = raw
        self.data = memoryview(raw)
        self.size = len(raw)
        self.damage: list[Damage] = []
        if container:
            self.container = container

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go. Views of it that others still hold stay valid, and keep it mapped until they are gone."""
        self.data.release()
        if isinstance(self.raw, mmap.mmap):
            with suppress(BufferError):  # a view is still held, and keeps the map
                self.raw.close()
        self.raw = b""

    def view(self, record: str) -> memoryview:
        """The bytes of a record."""
        raise UsageError(f"is a {self.container}, which has no records", where=f"{self.path}, record {record!r}")

    def record(self, record: str) -> bytes:
        """The bytes of a record, copied."""
        return bytes(self.view(record))

    def verify(self) -> None:
        """Look at every byte that can be checked, and note what contradicts itself. Never raises for damage."""


def windows(raw: Raw, start: int, stop: int) -> Iterator[memoryview]:
    """The bytes of a file from ``start`` to ``stop``, a few megabytes at a time.

    Mapped pages that were looked at would count as memory of this process until the file is closed; they are let go again.
    """
    with memoryview(raw) as whole:
        for at in range(start, stop, WINDOW):
            end = min(at + WINDOW, stop)
            with whole[at:end] as part:
                yield part
            if isinstance(raw, mmap.mmap) and hasattr(raw, "madvise"):
                first = at // mmap.PAGESIZE * mmap.PAGESIZE
                raw.madvise(mmap.MADV_DONTNEED, first, end - first)


def read_raw(path: str) -> Raw:
    """A file's bytes: mapped, or read where it is small.

    Raises:
        UsageError: there is no such file, it is a folder, or it may not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not be waited for
    except FileNotFoundError:
        raise UsageError("there is no such file", where=path) from None
    except PermissionError:
        raise UsageError("may not be read", where=path) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be opened: {_words(error)}", where=path) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise UsageError("is a folder, not an archive", where=path)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError("is no regular file", where=path, hint="save it to a file first")
        if status.st_size > READ_WHOLE:
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        return os.read(descriptor, status.st_size + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {_words(error)}", where=path) from error
    finally:
        os.close(descriptor)


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
