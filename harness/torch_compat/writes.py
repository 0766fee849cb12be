"""Writing: files and archives whole or not at all, changes of several files whole or not at all, and one run at a time in a tree.

* A file is written beside its place (``.NAME.partial``), reaches the disk, and is renamed. An archive that is a directory is one thing: its files are
  written into ``.NAME.partial``, and the directory is renamed. It never replaces anything.
* What :func:`put`, :func:`put_copy` and :func:`remove` are given within :func:`changing` happens together, when the block ends.
  ``reports/latest/journal`` lists the files first. A line ``committed`` follows once all of them are on the disk, and only then are
  they renamed. A run that was killed is undone or completed by the next one that enters :func:`holding`: undone without that line,
  completed with it. A change of one file needs no such line, since its rename is all of it.
* ``reports/latest/lock`` is locked (``flock``) by whoever writes into the tree, and says who that is. The system releases it when the
  process ends, however it ends. A file that is read to be changed is read while the lock is held.

Whoever only reads takes no lock, so a tree that cannot be written can be judged.
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
    """Files of a tree that change together: by their path, what they are to hold; None where they go."""

    files: dict[Path, Content | None] = field(default_factory=dict)


@dataclass
class _Held:
    """A tree that this process writes into, and the change that is being gathered."""

    root: Path
    change: _Change | None = None


_held: ContextVar[_Held | None] = ContextVar("_held", default=None)


def put(path: Path, content: str | bytes, encoding: str = "ascii") -> None:
    """Write a file whole or not at all, its folder too where that is missing; within :func:`changing`, together with the others.

    Raises:
        WriteError: the disk is full, the tree is read-only, a permission is missing or the like. Nothing has changed.
    """
    _add(path, content.encode(encoding) if isinstance(content, str) else content)


def put_copy(path: Path, source: Path) -> None:
    """The same, with what another file holds, or with a directory of files. It must stay until the change is made."""
    _add(path, source)


def remove(path: Path) -> None:
    """Remove a file, or nothing where there is none; within :func:`changing`, together with the others."""
    _add(path, None)


@contextlib.contextmanager
def holding(root: Path) -> Iterator[None]:
    """Hold the lock of a tree. What a run that was killed left in it is completed or undone first. May be nested.

    Raises:
        WriteError: (``locked``) another run holds the lock for longer than :data:`TIMEOUT` says; or the tree cannot be written.
        UsageError: :data:`TIMEOUT` is no number of seconds.
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
    """Hold the lock of a tree, and make everything that is put and removed meanwhile one change. Nested, it is part of the outer one.

    What was put is not there to be read before the block ends. Where the block raises, nothing has changed.

    Raises:
        WriteError: as :func:`holding` does; or the change could not be made.
    """
    with holding(root):
        held = _held.get()
        assert held is not None  # noqa: S101 - it was set a line above
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
    made = [folder for path, content in change.files.items() if content is not None for folder in _missing(path.parent)]
    plan = {
        "form": FORM,
        "put": [_name(root, path) for path, content in change.files.items() if content is not None],
        "remove": [_name(root, path) for path, content in change.files.items() if content is None],
        "folders": [_name(root, folder) for folder in dict.fromkeys(made)],
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
        with contextlib.suppress(WriteError):  # the next run does it, as after one that was killed
            _undo(root, plan)
        raise
    try:
        _apply(root, plan)
    except KeyboardInterrupt:
        _apply(root, plan)
        raise


def _name(root: Path, path: Path) -> str:
    """The name of a file in a tree, which :func:`inside` takes."""
    name = path.relative_to(root).as_posix()
    inside(root, name)
    return name


def _apply(root: Path, plan: dict[str, Any]) -> None:
    """Rename and remove what a journal lists. Doing it again does the rest."""
    targets = [inside(root, name) for name in plan["put"]]
    gone = [inside(root, name) for name in plan["remove"]]
    for target in targets:
        with _in_words(target, "the next command that writes to this tree completes it"):
            try:
                os.replace(_partial(target), target)  # noqa: PTH105 - the functions of os are what tests count
            except FileNotFoundError:
                continue  # it was renamed before the run was killed
    for path in gone:
        _unlink(path)
    for folder in {path.parent for path in (*targets, *gone)}:
        if folder.is_dir():
            _reach_disk(folder)
    _unlink(inside(root, JOURNAL))


def _undo(root: Path, plan: dict[str, Any]) -> None:
    """Take back what a change put beside its files, and the folders that it made."""
    for name in plan["put"]:
        _unlink(_partial(inside(root, name)))
    for name in reversed(plan["folders"]):
        with contextlib.suppress(OSError):  # it never came into being, or holds something by now
            os.rmdir(inside(root, name))  # noqa: PTH106
    _unlink(inside(root, JOURNAL))


def _recover(root: Path) -> None:
    """Complete or undo what a run that was killed left."""
    journal = inside(root, JOURNAL)
    try:
        said = read_whole(journal)
    except FileNotFoundError:
        return
    line, end, rest = said.partition(b"\n")
    if not end:
        _unlink(journal)  # nothing comes before the whole line
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
    """Where a file is written before it is renamed. In a tree whose lock is held nobody else writes there."""
    return path.with_name(f".{path.name}.{number}.partial" if number else f".{path.name}.partial")


def _alone(path: Path, content: Content | None) -> None:
    """Write or remove a file that is in no tree whose lock is held: others may write it at the same time."""
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
    made = _missing(path.parent)
    try:
        _stage(path, content, partial)
        with _in_words(path):
            os.replace(partial, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError, WriteError):  # what went wrong before is told
            _unlink(partial)
            for folder in reversed(made):
                os.rmdir(folder)  # noqa: PTH106
        raise
    _reach_disk(path.parent)


def _sweep(path: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left beside it."""
    for left in path.parent.glob(glob.escape(f".{path.name}.") + "*.partial") if path.parent.is_dir() else ():
        number = left.name.removeprefix(f".{path.name}.").removesuffix(".partial")
        if number.isascii() and number.isdecimal() and not _runs(int(number)):
            _unlink(left)


def _runs(process: int) -> bool:
    """Whether there is a process of this number, whoever's it is."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _stage(path: Path, content: Content, partial: Path) -> None:
    """Put on the disk, beside a file, what it is to hold, with the permissions of the file that is there."""
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
    """The same for an archive that is a directory."""
    if os.path.lexists(path):
        raise WriteError(
            "already exists",
            where=str(path),
            hint="a directory cannot replace an existing path: remove that path first",
            code="exists",
        )
    _unlink(partial)  # of a run that was killed before its journal was written
    with _in_words(partial):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkdir(partial)  # noqa: PTH102
    for name in members(content):
        _stage(partial / name, content / name, partial / name)
    _reach_disk(partial)


def _write(path: Path, data: bytes, more: int = os.O_TRUNC, *, like: Path | None = None) -> None:
    """Write bytes to a file, behind what it holds with ``O_APPEND``, and wait until they are on the disk."""
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
    """Remove a file, or a directory of files, or nothing where there is none."""
    with _in_words(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if path.is_dir() and not path.is_symlink():
            for name in os.listdir(path):  # noqa: PTH208
                os.unlink(path / name)  # noqa: PTH108
            os.rmdir(path)  # noqa: PTH106
            return
        os.unlink(path)  # noqa: PTH108


def _reach_disk(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    with _in_words(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be made, the outermost first."""
    found = []
    while not folder.exists():
        found.append(folder)
        folder = folder.parent
    return found[::-1]


@contextlib.contextmanager
def _in_words(path: Path, then: str = "nothing was changed; run the same command again afterwards") -> Iterator[None]:
    """Errors of the system as ours: which file, what was wrong, what to do."""
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
    made = _missing(path.parent)
    try:
        descriptor = _acquired(path)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # a lock file that stays is nobody's lock
                os.unlink(path)  # noqa: PTH108
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):  # a folder that holds something stays
            for folder in reversed(made):
                os.rmdir(folder)  # noqa: PTH106


def _acquired(path: Path) -> int:
    """The lock file, locked by us. Who was to have it before may have removed it: then another one is made."""
    limit = _limit()
    began, told = time.monotonic(), False
    while True:
        try:
            with _in_words(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except WriteError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # who held the lock has removed the folder that it had made
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                with contextlib.suppress(OSError):  # on a full disk those who wait are not told for whom
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
    """Whether a name still stands for the file that was opened by it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _limit() -> float:
    said = os.environ.get(TIMEOUT)
    try:
        limit = WAITS if said is None else float(said)
    except ValueError:
        limit = -1.0
    if not limit >= 0:
        raise UsageError(f"is {said!r}, expected a number of seconds", where=TIMEOUT, code="bad-timeout")
    return limit


def _who() -> bytes:
    """Who writes, for those who wait."""
    command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])  # noqa: PTH119 - only text
    since = dt.datetime.now().astimezone().isoformat(" ", "seconds")
    return json.dumps({"pid": os.getpid(), "command": command[:500], "since": since}).encode("ascii")


def _holder(descriptor: int) -> str:
    """Who holds the lock, in words."""
    try:
        said = json.loads(os.pread(descriptor, 8192, 0))
        return f"process {int(said['pid'])} ({said['command']:.500}, since {said['since']:.40})"
    except (KeyError, TypeError, ValueError):  # it has only just taken the lock, and has not said so yet
        return "another process"
