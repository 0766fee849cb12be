"""Atomic writes of files, archives and changes of several files, and a lock that allows one writing run at a time in a tree.

* A file is written next to its target (``.NAME.partial``), flushed to disk, and renamed. An archive that is a directory counts as a
  whole: its files are written into ``.NAME.partial``, and the directory is renamed. It never replaces anything.
* The calls of :func:`put`, :func:`put_copy` and :func:`remove` within :func:`changing` take effect together, when the block ends.
  ``reports/latest/journal`` lists the files first. A line ``committed`` follows once all of them are on disk, and only then are
  they renamed. The next run that enters :func:`holding` undoes or completes a run that was killed: it undoes without that line, and
  completes with it. A change of one file needs no such line, since its rename is the whole change.
* A run that writes to the tree locks ``reports/latest/lock`` (``flock``), and stores its identity there. The system releases the lock when
  the process ends, however it ends. A file that is read in order to be changed is read while the lock is held.

A command that only reads takes no lock, so a read-only tree can be judged.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import glob
import json
import os
import stat
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch_compat.archive_files import members
from torch_compat.errors import UsageError, WriteError
from torch_compat.places import inside, read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["JOURNAL", "LOCK", "TIMEOUT", "changing", "holding", "put", "put_copy", "remove"]

LOCK: Final = "reports/latest/lock"
JOURNAL: Final = "reports/latest/journal"
TIMEOUT: Final = "TORCH_COMPAT_LOCK_TIMEOUT"
"""The environment variable with the number of seconds that a run waits for another run that is writing to the same tree."""
WAITS: Final = 600.0
POLL: Final = 0.05
COMMITTED: Final = b"committed\n"
AT_ONCE: Final = 1 << 20
FORM: Final = 1

Content = bytes | Path
"""The new contents of a path: these bytes, or a copy of that file or directory."""


@dataclass
class _Change:
    """Files of a tree that change together: the new contents of each path, or None for removal."""

    files: dict[Path, Content | None] = field(default_factory=dict)


@dataclass
class _Held:
    """A tree that this process writes to, and the change being collected."""

    root: Path
    change: _Change | None = None


_held: ContextVar[_Held | None] = ContextVar("_held", default=None)


def put(path: Path, content: str | bytes, encoding: str = "ascii") -> None:
    """Write a file atomically, and create its folder if missing; within :func:`changing`, together with the others.

    Raises:
        WriteError: the disk is full, the tree is read-only, a permission is missing, or similar. Nothing has changed.
    """
    _add(path, content.encode(encoding) if isinstance(content, str) else content)


def put_copy(path: Path, source: Path) -> None:
    """Like :func:`put`, with a copy of a file or of a directory of files. The source must exist until the change is made."""
    _add(path, source)


def remove(path: Path) -> None:
    """Remove a file, if it exists; within :func:`changing`, together with the others."""
    _add(path, None)


@contextlib.contextmanager
def holding(root: Path) -> Iterator[None]:
    """Hold the lock of a tree. First completes or undoes what a killed run left in it. May be nested.

    Raises:
        WriteError: (``locked``) another run holds the lock for longer than :data:`TIMEOUT` allows; or the tree cannot be written.
        UsageError: :data:`TIMEOUT` is not a number of seconds.
    """
    held = _held.get()
    if held is not None and held.root == root:
        yield
        return
    with _locked(root):
        _recover(root)
        token = _held.set(_Held(root))
        try:
            yield
        finally:
            _held.reset(token)


@contextlib.contextmanager
def changing(root: Path) -> Iterator[None]:
    """Hold the lock of a tree, and make all writes and removals in the block one change. A nested block is part of the outer change.

    Written contents cannot be read before the block ends. If the block raises, nothing has changed.

    Raises:
        WriteError: as in :func:`holding`; or the change could not be made.
    """
    with holding(root):
        held = _held.get()
        assert held is not None  # noqa: S101 - `holding` set it
        if held.change is not None:
            yield
            return
        held.change = change = _Change()
        try:
            yield
        finally:
            held.change = None
        _make(root, change)


def _add(path: Path, content: Content | None) -> None:
    held = _held.get()
    if held is None or not path.is_relative_to(held.root):
        _alone(path, content)
    elif held.change is not None:
        held.change.files[path] = content
    else:
        _make(held.root, _Change({path: content}))


# ---------------------------------------------------------------------------------------------------------------- the change


def _make(root: Path, change: _Change) -> None:
    """Make a change in a tree whose lock is held."""
    if not change.files:
        return
    journal = inside(root, JOURNAL)
    results = [folder for path, content in change.files.items() if content is not None for folder in _missing(path.parent)]
    plan = {
        "form": FORM,
        "put": [_name(root, path) for path, content in change.files.items() if content is not None],
        "remove": [_name(root, path) for path, content in change.files.items() if content is None],
        "folders": [_name(root, folder) for folder in dict.fromkeys(results)],
    }
    try:
        _write(journal, json.dumps(plan).encode("ascii") + b"\n")
        for path, content in change.files.items():
            if content is not None:
                _stage(path, content, _partial(path))
        if len(change.files) > 1:
            for folder in {path.parent for path, content in change.files.items() if content is not None}:
                _reach_disk(folder)
            _write(journal, COMMITTED, os.O_APPEND)
            _reach_disk(journal.parent)
    except BaseException:
        with contextlib.suppress(WriteError):  # otherwise the next run undoes it, as after a killed run
            _undo(root, plan)
        raise
    try:
        _apply(root, plan)
    except KeyboardInterrupt:
        _apply(root, plan)
        raise


def _name(root: Path, path: Path) -> str:
    """The name of a file in a tree, validated by :func:`inside`."""
    name = path.relative_to(root).as_posix()
    inside(root, name)
    return name


def _apply(root: Path, plan: dict[str, Any]) -> None:
    """Rename and remove the files listed in a journal. A repeated call does the remaining steps."""
    targets = [inside(root, name) for name in plan["put"]]
    gone = [inside(root, name) for name in plan["remove"]]
    for target in targets:
        with _in_words(target, "the next command that writes to this tree completes it"):
            try:
                os.replace(_partial(target), target)  # noqa: PTH105 - tests count the functions of os
            except FileNotFoundError:
                continue  # already renamed before the run was killed
    for path in gone:
        _unlink(path)
    for folder in {path.parent for path in (*targets, *gone)}:
        if folder.is_dir():
            _reach_disk(folder)
    _unlink(inside(root, JOURNAL))


def _undo(root: Path, plan: dict[str, Any]) -> None:
    """Remove the partial files and the folders that a change created."""
    for name in plan["put"]:
        _unlink(_partial(inside(root, name)))
    for name in reversed(plan["folders"]):
        with contextlib.suppress(OSError):  # it was never created, or is not empty by now
            os.rmdir(inside(root, name))  # noqa: PTH106
    _unlink(inside(root, JOURNAL))


def _recover(root: Path) -> None:
    """Complete or undo what a killed run left."""
    journal = inside(root, JOURNAL)
    try:
        message = read_whole(journal)
    except FileNotFoundError:
        return
    line, end, rest = message.partition(b"\n")
    if not end:
        _unlink(journal)  # nothing is written before the line is complete
        return
    try:
        plan = json.loads(line)
        names = [*plan["put"], *plan["remove"], *plan["folders"]]
        known = plan["form"] == FORM and all(isinstance(name, str) for name in names)
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known:
        raise WriteError(
            "is not the journal from an interrupted run of this version of torch-compat",
            where=str(journal),
            hint="check the tree with `git status`, restore changed files, and remove the journal",
            code="bad-journal",
        )
    if rest == COMMITTED:
        _apply(root, plan)
    else:
        _undo(root, plan)


# ----------------------------------------------------------------------------------------------------------------- the files


def _partial(path: Path, number: int = 0) -> Path:
    """The path where a file is written before it is renamed. While the lock of a tree is held, no other process writes there."""
    return path.with_name(f".{path.name}.{number}.partial" if number else f".{path.name}.partial")


def _alone(path: Path, content: Content | None) -> None:
    """Write or remove a file outside any locked tree: other processes may write it at the same time."""
    if content is None:
        _unlink(path)
        return
    if path.exists() and not path.is_file():  # such as /dev/stdout
        with _in_words(path):
            path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        return
    path = path.resolve()
    partial = _partial(path, os.getpid())
    _sweep(path)
    result = _missing(path.parent)
    try:
        _stage(path, content, partial)
        with _in_words(path):
            os.replace(partial, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError, WriteError):  # the original error is reported
            _unlink(partial)
            for folder in reversed(result):
                os.rmdir(folder)  # noqa: PTH106
        raise
    _reach_disk(path.parent)


def _sweep(path: Path) -> None:
    """Remove partial files of this file left by killed processes."""
    for left in path.parent.glob(glob.escape(f".{path.name}.") + "*.partial") if path.parent.is_dir() else ():
        number = left.name.removeprefix(f".{path.name}.").removesuffix(".partial")
        if number.isascii() and number.isdecimal() and not _runs(int(number)):
            _unlink(left)


def _runs(process: int) -> bool:
    """Whether a process with this number exists, whoever owns it."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _stage(path: Path, content: Content, partial: Path) -> None:
    """Write the new contents of a file to disk next to it, with the permissions of the existing file."""
    if isinstance(content, bytes):
        _write(partial, content, like=path)
        return
    if content.is_dir():
        _stage_directory(path, content, partial)
        return
    with content.open("rb") as source:
        _write(partial, b"", like=path)
        while part := source.read(AT_ONCE):
            _write(partial, part, os.O_APPEND)


def _stage_directory(path: Path, content: Path, partial: Path) -> None:
    """Do the same for an archive that is a directory."""
    if os.path.lexists(path):
        raise WriteError(
            "already exists",
            where=str(path),
            hint="a directory cannot replace an existing path: remove that path first",
            code="exists",
        )
    _unlink(partial)  # left by a run that was killed before its journal was written
    with _in_words(partial):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkdir(partial)  # noqa: PTH102
    for name in members(content):
        _stage(partial / name, content / name, partial / name)
    _reach_disk(partial)


def _write(path: Path, data: bytes, more: int = os.O_TRUNC, *, like: Path | None = None) -> None:
    """Write bytes to a file, with ``O_APPEND`` after its contents, and wait until they are on disk."""
    with _in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | more, 0o666)
        try:
            if like is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(descriptor, stat.S_IMODE(like.stat().st_mode))
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unlink(path: Path) -> None:
    """Remove a file or a directory of files, if it exists."""
    with _in_words(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if path.is_dir() and not path.is_symlink():
            for name in os.listdir(path):  # noqa: PTH208
                os.unlink(path / name)  # noqa: PTH108
            os.rmdir(path)  # noqa: PTH106
            return
        os.unlink(path)  # noqa: PTH108


def _reach_disk(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    with _in_words(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be created, the outermost first."""
    results = []
    while not folder.exists():
        results.append(folder)
        folder = folder.parent
    return results[::-1]


@contextlib.contextmanager
def _in_words(path: Path, then: str = "nothing was changed; run the same command again afterwards") -> Iterator[None]:
    """Translate system errors into ours: which file, what went wrong, what to do."""
    try:
        yield
    except OSError as error:
        what, do = WORDS.get(error.errno or 0, (error.strerror or str(error), "fix this"))
        raise WriteError(f"cannot be written: {what}", where=str(path), hint=f"{do}; {then}") from error


_FULL = ("the disk is full", "free some space")
WORDS: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("the disk quota is exceeded", "free some space"),
    errno.EFBIG: ("the file would exceed the file size limit of this process", "raise the limit (ulimit -f)"),
    errno.EROFS: ("the file system is read-only", "work on a writable copy"),
    errno.EACCES: ("permission denied", "change the permissions of the directory"),
    errno.EPERM: ("permission denied", "change the permissions of the directory"),
}


# ------------------------------------------------------------------------------------------------------------------ the lock


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    path = inside(root, LOCK)
    result = _missing(path.parent)
    try:
        descriptor = _acquired(path)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # a remaining lock file holds no lock
                os.unlink(path)  # noqa: PTH108
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):  # a folder that is not empty stays
            for folder in reversed(result):
                os.rmdir(folder)  # noqa: PTH106


def _acquired(path: Path) -> int:
    """The lock file, locked by this process. The previous holder may have removed it: then a new one is created."""
    limit = _limit()
    began, told = time.monotonic(), False
    while True:
        try:
            with _in_words(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except WriteError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # the holder of the lock has removed the folder that it had created
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                with contextlib.suppress(OSError):  # on a full disk, waiting runs do not learn who holds the lock
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, _who(), 0)
                return descriptor
        except BlockingIOError:
            holder = _holder(descriptor)
            if time.monotonic() - began >= limit:
                os.close(descriptor)
                raise WriteError(
                    f"{holder} is writing to this tree, and this run waited {limit:g} seconds for it",
                    where=str(path),
                    hint=f"run the same command again when it has finished, or wait longer: {TIMEOUT}=SECONDS",
                    code="locked",
                ) from None
            if not told:
                sys.stderr.write(f"waiting for {holder}, which is writing to this tree\n")
                told = True
            os.close(descriptor)
            time.sleep(POLL)
        except OSError as error:
            os.close(descriptor)
            with _in_words(path):
                raise error from None
        else:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether a path still refers to the file that was opened there."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _limit() -> float:
    message = os.environ.get(TIMEOUT)
    try:
        limit = WAITS if message is None else float(message)
    except ValueError:
        limit = -1.0
    if not limit >= 0:
        raise UsageError(f"is {message!r}, expected a number of seconds", where=TIMEOUT, code="bad-timeout")
    return limit


def _who() -> bytes:
    """The identity of this run, shown to waiting runs."""
    command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])  # noqa: PTH119 - only text
    since = dt.datetime.now().astimezone().isoformat(" ", "seconds")
    return json.dumps({"pid": os.getpid(), "command": command[:500], "since": since}).encode("ascii")


def _holder(descriptor: int) -> str:
    """The holder of the lock, in words."""
    try:
        message = json.loads(os.pread(descriptor, 8192, 0))
        return f"process {int(message['pid'])} ({message['command']:.500}, since {message['since']:.40})"
    except (KeyError, TypeError, ValueError):  # it has just taken the lock and has not stored its identity yet
        return "another process"
