"""Commands in a separate process that dies, as by ``kill -9``, at a chosen file operation in a tree or at a chosen moment.

A file operation is anything that changes the disk: opening for writing, writing, truncating, syncing, renaming, removing, and creating or
removing a folder. They are detected with Python's audit events, whatever code causes them, and those without an event by wrapping the
functions of ``os``. A write is half done when the process dies.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KILLED", "Ended", "begun", "ran"]

WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES: Final = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"})
KILLED: Final = -signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit status, the signal with a minus, what it said, and how many file operations it did."""

    status: int
    out: str
    err: str
    operations: int


@dataclass
class Running:
    """A process that was begun."""

    pid: int
    folder: tempfile.TemporaryDirectory[str]

    def end(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        with self.folder as folder:
            out, err = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err"))
            count = Path(folder) / "count"
            operations = int(count.read_text(encoding="ascii")) if count.exists() else -1
        return Ended(os.waitstatus_to_exitcode(status), out, err, operations)


def ran(root: Path, function: Callable[[], Any], *, dies_at: int = 0) -> Ended:
    """Run a function in a process of its own that dies at this file operation in the tree, counted from 1; 0 for none."""
    return begun(root, function, dies_at=dies_at).end()


def begun(root: Path, function: Callable[[], Any], *, dies_at: int = 0, dies_after_s: float = 0.0) -> Running:
    """Begin to run a function in a process of its own; it may also die after some time."""
    sys.stdout.flush()
    sys.stderr.flush()
    folder = tempfile.TemporaryDirectory(prefix="interrupted-")
    pid = os.fork()
    if pid:
        return Running(pid, folder)
    status = 70
    try:
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{folder.name}/{name}", os.O_WRONLY | os.O_CREAT), number)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open as long as the process lives
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.chdir(root)
        if dies_after_s:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, dies_after_s)
        operations = _Operations(root, dies_at)
        try:
            function()
            status = 0
        except SystemExit as error:
            status = int(error.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        operations.root = ""
        Path(folder.name, "count").write_text(str(operations.count), encoding="ascii")
    except BaseException:  # noqa: BLE001 - it must not come back into the tests
        import traceback  # noqa: PLC0415

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


class _Operations:
    """Counts the file operations of this process in a tree, and kills it at one of them."""

    def __init__(self, root: Path, dies_at: int) -> None:
        self.root = f"{root}/"
        self.dies_at = dies_at
        self.count = 0
        self.pid = os.getpid()
        sys.addaudithook(self.audit)
        for name in ("write", "pwrite", "fsync", "ftruncate", "fchmod"):
            setattr(os, name, self.watched(getattr(os, name), half=name == "write"))

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            path = arguments[1] if event in {"os.rename", "os.link", "os.symlink"} else arguments[0]
            if isinstance(path, str | os.PathLike) and self.root and str(Path(path).absolute()).startswith(self.root):
                self.happens()

    def watched(self, function: Callable[..., Any], *, half: bool) -> Callable[..., Any]:
        def watching(descriptor: int, *arguments: Any) -> Any:
            if (
                self.root
                and os.getpid() == self.pid
                and str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith(self.root)
            ):
                last = self.count + 1 == self.dies_at
                if half and last:
                    function(descriptor, arguments[0][: len(arguments[0]) // 2])
                self.happens()
            return function(descriptor, *arguments)

        return watching

    def happens(self) -> None:
        if os.getpid() == self.pid:  # what a process forks off is no part of it
            self.count += 1
            if self.count == self.dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(10)
