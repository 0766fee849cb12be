"""Common base of all containers: the bytes of a file, mapped read-only, and the damage found in them.

A small file is read whole, which is faster than mapping it. A larger one is mapped, so that a storage of many gigabytes becomes an array
without a copy. Parsers do not access the map but read the file (``raw[start:stop]``, :func:`windows`, :func:`find`): if the file is
truncated meanwhile, reading reports it, while the system kills a process that accesses a missing page. Only the storages from
:meth:`Archive.view`, and :attr:`Archive.data` (files without a directory of records), are accessed through the map.

A file is opened once: its digest and the archives inside it are read from the same descriptor, since the name may refer to another file
meanwhile.
"""

from __future__ import annotations

import mmap
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.allowance import FIND_PER_MB, MB, Allowance
from torch_compat.errors import Corrupt, UsageError
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

__all__ = [
    "CHANGED",
    "HEAD",
    "WINDOW",
    "Archive",
    "Damage",
    "Findings",
    "Mapped",
    "Raw",
    "close",
    "find",
    "let_go",
    "map_part",
    "read_raw",
    "windows",
]

MOST_DAMAGE = 1000  # contradictions that are listed
MOST_DETAIL = 1000  # characters in the text of one, and in its record name
MORE = "more-damage"
HEAD = 4096  # bytes by which a file is recognised
READ_WHOLE = 1 << 16  # up to here, reading is faster than mapping
WINDOW = 1 << 22
CHANGED = "changed"  # the code of the error if a file was truncated while it was read
READ = 1 << 18  # bytes per window: larger blocks are newly allocated each time
AHEAD = 1 << 12  # bytes that are read at once: directories are read a few dozen bytes after the other


class Damage(NamedTuple):
    """One contradiction inside an archive.

    Attributes:
        code: the kind, in kebab-case.
        record: the record that it concerns, or None if it concerns the container itself.
        detail: what was found and what was expected, in words.
        offset: the offset in the file, if known.
    """

    code: str
    record: str | None
    detail: str
    offset: int | None = None


class Findings(list[Damage]):
    """The contradictions in an archive: the first :data:`MOST_DAMAGE`, then the first of each further kind, and a count of the rest.

    A file of a megabyte can contradict itself a hundred thousand times, in names of 65,000 bytes.

    Attributes:
        left_out: how many are not listed.
    """

    def __init__(self, value: Iterable[Damage] = ()) -> None:
        super().__init__()
        self.left_out = 0
        self._codes: set[str] = set()
        for damage in value:
            self.append(damage)

    def append(self, damage: Damage) -> None:
        """Add a contradiction, or only count it."""
        code, record, detail, offset = damage
        if len(detail) > MOST_DETAIL or (record is not None and len(record) > MOST_DETAIL):
            record = None if record is None else _cut(record)
            damage = Damage(code, record, _cut(detail), offset)
        if len(self) < MOST_DAMAGE:
            self._codes.add(code)
            super().append(damage)
            return
        if code not in self._codes:
            self._codes.add(code)
            self.insert(MOST_DAMAGE, damage)
            return
        self.left_out += 1
        more = Damage(MORE, None, f"{self.left_out} more contradictions were found but not listed")
        if self.left_out > 1:
            self[-1] = more
        else:
            super().append(more)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_DETAIL else f"{text[:MOST_DETAIL]}... ({count_of(len(text), 'character')})"


class Mapped(mmap.mmap):
    """A mapped file with its own descriptor, from which further parts can be mapped.

    Slices and searches read the file and do not touch the map; its buffer is the map.

    Raises:
        Corrupt: (``changed``) the file was truncated after it was opened.
    """

    descriptor: int = -1  # not set if the map cannot be made
    start: int
    path: str
    _read: bytes
    _at: int

    def __new__(cls, descriptor: int, length: int, offset: int = 0, path: str = "") -> Self:
        """Map a part of a file; 0 bytes stand for all of it."""
        mapped = super().__new__(cls, descriptor, length, access=mmap.ACCESS_READ, offset=offset)
        mapped.descriptor = os.dup(descriptor)
        mapped.start = offset
        mapped.path = path
        mapped._read, mapped._at = b"", 0
        return mapped

    def __getitem__(self, where: Any) -> Any:  # the stubs give an int for an index, which nobody asks for
        start, stop, _ = where.indices(len(self))
        at = start - self._at
        if at < 0 or stop - self._at > len(self._read):
            if stop - start >= AHEAD:
                return self._part(start, max(start, stop))
            self._read, self._at = self._part(start, min(start + AHEAD, len(self))), start
            at = 0
        return self._read[at : at + stop - start] if stop > start else b""

    def find(self, wanted: Any, start: int = 0, stop: int | None = None) -> int:
        """The first position of bytes between two offsets; -1 if absent."""
        stop = len(self) if stop is None else min(stop, len(self))
        length, step = len(wanted), AHEAD
        while start + length <= stop:  # in growing steps, so that a near match costs little
            end = min(start + step + length - 1, stop)
            at: int = self[start:end].find(wanted)
            if at >= 0:
                return start + at
            start, step = end - length + 1, min(2 * step, READ)
        return -1

    def rfind(self, wanted: Any, start: int = 0, stop: int | None = None) -> int:
        """The last position of bytes between two offsets; -1 if absent."""
        stop = len(self) if stop is None else min(stop, len(self))
        length, step = len(wanted), AHEAD
        while start + length <= stop:
            first = max(stop - step - length + 1, start)
            at: int = self[first:stop].rfind(wanted)
            if at >= 0:
                return first + at
            stop, step = first + length - 1, min(2 * step, READ)
        return -1

    def _part(self, start: int, stop: int) -> bytes:
        parts = []
        while start < stop:
            part = os.pread(self.descriptor, stop - start, self.start + start)
            if not part:
                message = f"was truncated while being read: it had {count_of(self.start + len(self), 'byte')}, and now ends at {self.start + start}"
                raise Corrupt(
                    message, where=self.path or None, hint="try again when no other process is writing to it", code=CHANGED
                )
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


Raw = bytes | Mapped


class Archive:
    """An open archive.

    Attributes:
        path: the file.
        container: ``zip``, ``stream``, ``tar``, ``flatbuffer`` or ``pickle``.
        data: the whole file, read-only.
        size: its length in bytes.
        damage: the contradictions found in the part inspected so far.
        names: names of its records; empty if the container has none.
        allowance: the work budget for reading it.
    """

    container: str
    names: tuple[str, ...] = ()

    def __init__(
        self, path: str | os.PathLike[str], raw: Raw, container: str = "", *, allowance: Allowance | None = None
    ) -> None:
        self.path = os.fspath(path)
        self.raw = raw
        self.data = memoryview(raw)
        self.size = len(raw)
        self.allowance = Allowance.to_load(self.size) if allowance is None else allowance
        self.damage: Findings = Findings()
        if container:
            self.container = container

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go. Views of it that others still hold stay valid, and keep it mapped until they are gone."""
        self.data.release()
        close(self.raw)
        self.raw = b""

    def view(self, record: str) -> memoryview:
        """The bytes of a record."""
        raise UsageError(f"is a {self.container}, which has no records", where=f"{self.path}, record {record!r}")

    def record(self, record: str) -> bytes:
        """A copy of the bytes of a record."""
        return bytes(self.view(record))

    def verify(self) -> None:
        """Check every byte that can be checked, and record contradictions. Never raises for damage."""


def windows(raw: Raw, start: int, stop: int) -> Iterator[memoryview]:
    """The bytes of a file from ``start`` to ``stop``, a part at a time.

    Raises:
        Corrupt: (``changed``) the file was truncated after it was opened.
    """
    for at in range(start, stop, READ):
        with memoryview(raw[at : min(at + READ, stop)]) as part:
            yield part


def let_go(raw: Raw, start: int, stop: int) -> None:
    """Release pages that were accessed: they would count as memory of this process until the file is closed."""
    if isinstance(raw, mmap.mmap) and hasattr(raw, "madvise"):
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        raw.madvise(mmap.MADV_DONTNEED, first, stop - first)


def find(raw: Raw, wanted: bytes, start: int, stop: int, allowance: Allowance) -> int:
    """The first position of bytes in a part of a file; -1 if absent. Reads a few megabytes at a time, and pays for them.

    Raises:
        Unsafe: the work budget is spent.
    """
    while start < stop:
        end = min(start + WINDOW, stop)
        at = raw.find(wanted, start, min(end + len(wanted) - 1, stop))
        looked = (at if at >= 0 else end) - start
        allowance.spend(1 + FIND_PER_MB * looked // MB)
        if at >= 0:
            return at
        start = end
    return -1


def map_part(raw: Mapped, start: int, length: int) -> tuple[Mapped, int]:
    """A part of a file as a separate map, and the number of bytes before the part in that map."""
    before = start % mmap.ALLOCATIONGRANULARITY
    return Mapped(raw.descriptor, before + length, raw.start + start - before, raw.path), before


def close(raw: Raw) -> None:
    """Let a file go. Views of it that others hold stay valid, and keep it mapped until they are gone."""
    if isinstance(raw, mmap.mmap):
        with suppress(BufferError):  # a remaining view keeps the map
            raw.close()


def open_file(path: str) -> int:
    """Open a regular file for reading and return the descriptor.

    Raises:
        UsageError: there is no such file, it is a directory, or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not be waited for
    except FileNotFoundError:
        raise UsageError("file not found, expected a PyTorch archive", where=path) from None
    except PermissionError:
        raise UsageError("cannot be read: permission denied", where=path) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be opened: {_words(error)}", where=path) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise UsageError("is a directory, not an archive", where=path)
    raise UsageError("is not a regular file", where=path, hint="save it to a file first")


def read_raw(path: str, descriptor: int | None = None) -> Raw:
    """The bytes of a file: mapped, or read if it is small.

    Parameters:
        path: of the file, and its name in errors.
        descriptor: of the file, where it is open already; it is closed.

    Raises:
        UsageError: there is no such file, it is a directory, or it cannot be read.
    """
    if descriptor is None:
        descriptor = open_file(path)
    try:
        size = os.fstat(descriptor).st_size
        if size > READ_WHOLE:
            return Mapped(descriptor, 0, 0, path)
        return os.read(descriptor, size + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {_words(error)}", where=path) from error
    finally:
        os.close(descriptor)


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
