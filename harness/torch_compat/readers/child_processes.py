"""Processes for programs of archives, seen from the parent: the template that forks children, and messages to a child.

A :class:`Workshop` starts the template (:mod:`torch_compat.readers.child`), which forks children, one in advance.
:mod:`torch_compat.readers.isolated` runs a program in a child.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import site
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from torch_compat.archive.container import VERIFY_OFFSETS
from torch_compat.errors import ReaderError
from torch_compat.readers.isolation import Isolation, plain_environ
from torch_compat.readers.wire import Gone, Lines, bad
from torch_compat.runtime.limits import LIMITS, ROOM
from torch_compat.words import count_of

__all__ = ["SPARE", "ChildProcess", "Spec", "Workshop", "supported"]

START_SECONDS = 60  # startup of a template, from a cold disk, on a busy machine
SPARE = 2  # seconds of CPU time beyond the program's, so that it hits its own limit first, with an error message
GRACE_SECONDS = 30  # that a child gets beyond the time limit of its program, before it is killed
STOP_SECONDS = 5
TIME = struct.Struct("@ll")  # the kernel's struct timeval: seconds and microseconds
PARTS = ("network", "home")
ENDS = {
    "SIGXCPU": "it exceeded the limit on CPU time (RLIMIT_CPU)",
    "SIGXFSZ": "it tried to write a file (RLIMIT_FSIZE)",
    "SIGKILL": "it was killed, possibly because the system ran out of memory",
    "SIGBUS": "it read past the end of a file: the archive was truncated while in use",
    "SIGSEGV": "it accessed invalid memory",
    "SIGSYS": "it made a forbidden system call",
}


def supported() -> str | None:
    """Return why programs cannot run in their own processes on this system; None if they can."""
    return None if sys.platform.startswith("linux") else f"separate processes need Linux; this is {sys.platform}"


class Spec(NamedTuple):
    """The limits of a child: see :class:`torch_compat.readers.child.Child`."""

    memory: int = ROOM
    seconds: int = math.ceil(LIMITS.seconds) + SPARE
    horizon: str = "reference"


class Workshop:
    """A template, and a child forked in advance. The template starts with the first child; threads take turns.

    Parameters:
        environ: environment variables of the template, in addition to those it needs to start.
        module: the program of the template.
    """

    def __init__(self, environ: dict[str, str], module: str = "torch_compat.readers.child") -> None:
        self.environ = environ
        self.module = module
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        self._stack = contextlib.ExitStack()
        self._owner = os.getpid()
        self._before: list[Any] = []  # belongs to the process that this one was forked from, and is not ended here
        self._asked: list[Spec] = []
        self._spare: ChildProcess | None = None

    def start(self) -> None:
        """Start the template, and return at once.

        Raises:
            ReaderError: it does not start.
        """
        with self._lock:
            if self._owner != os.getpid():  # forked: the template belongs to the parent process
                self._before.append((self.process, self._stack.pop_all(), self._spare))
                self.process, self._asked, self._spare, self._owner = None, [], None, os.getpid()
            if self.process is not None and self.process.poll() is None:
                return
            self._stack.close()
            with contextlib.ExitStack() as stack:
                empty = stack.enter_context(tempfile.TemporaryDirectory(prefix="torch-compat-"))
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
                stack.callback(ours.close)
                ours.settimeout(START_SECONDS)
                with theirs:
                    command = [sys.executable, "-P", "-W", "ignore", "-m", self.module, str(os.getpid()), str(theirs.fileno())]
                    try:
                        # -P: do not import from the working directory
                        self.process = subprocess.Popen(
                            command,
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL,
                            cwd=empty,
                            env={**plain_environ(Path(empty)), **_ours(), **self.environ},
                            pass_fds=[theirs.fileno()],
                        )
                    except OSError as error:
                        raise ReaderError(f"{sys.executable} failed to start: {error}", code="does-not-start") from error
                self._lines = Lines(ours)
                self._asked = []
                stack.callback(self._stop)
                self._stack = stack.pop_all()

    def close(self) -> None:
        """End the template, and every child with it."""
        with self._lock:
            if self._owner == os.getpid():
                self._stack.close()

    def child(self, spec: Spec) -> ChildProcess:
        """Return an unused child.

        Raises:
            ReaderError: no child can be created.
        """
        with self._lock:
            self.start()
            try:
                while True:
                    while self._asked:
                        self._receive()
                    spare, self._spare = self._spare, None
                    if spare is not None and spare.spec == spec:
                        return spare
                    if spare is not None:
                        spare.close()
                    self.ahead(spec)
            except (Gone, OSError) as error:
                self._stack.close()
                raise ReaderError(f"the launcher process has exited: {error}", code="does-not-start") from error

    def ahead(self, spec: Spec) -> None:
        """Request a child in advance, without waiting for it."""
        with self._lock, contextlib.suppress(Gone):  # whoever needs it raises the error
            if self._owner == os.getpid() and self.process is not None and not self._asked and self._spare is None:
                self._lines.send({"fork": spec._asdict()})
                self._asked.append(spec)

    def _receive(self) -> None:
        results: list[int] = []
        reply, _ = self._lines.receive(0, results)
        self._spare = ChildProcess(self, reply["pid"], socket.socket(fileno=results[0]), self._asked.pop())

    def ended(self, process: int, *, kill: bool = False) -> int | None:
        """Return the exit status of a child that stopped answering, negative for a signal; None if unknown.

        Parameters:
            kill: kill it first; otherwise it gets a second to exit by itself.
        """
        with self._lock:
            try:
                while self._asked:
                    self._receive()
                self._lines.send({"ended": process, "kill": kill})
                reply, _ = self._lines.receive(0)
            except (Gone, OSError):
                return None
            status: int | None = reply["status"]
            return status

    def _stop(self) -> None:
        process, self.process = self.process, None
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        if process is None:
            return
        self._lines.connection.close()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class ChildProcess:
    """A process for one archive, seen from the parent.

    Attributes:
        spec: its limits.
        pid: its process id.
        stage: what it is doing, in a word, for the error message if it dies.
        isolation: what it cannot reach.
    """

    def __init__(self, workshop: Workshop, pid: int, connection: socket.socket, spec: Spec) -> None:
        self.workshop = workshop
        self.pid = pid
        self.spec = spec
        self.stage = "start"
        self.lines = Lines(connection)
        self.owner = os.getpid()
        self._isolation: Isolation | None = None
        self._granted = self._spent = float(spec.seconds)
        self._took = 0.0
        self.wait(spec.seconds + GRACE_SECONDS)

    def wait(self, seconds: float) -> None:
        """Set how long an answer may take."""
        self.lines.patience = seconds
        whole = int(seconds)
        self.lines.connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, TIME.pack(whole, max(1, int((seconds - whole) * 1e6)))
        )

    @property
    def isolation(self) -> Isolation:
        """What it cannot reach, as it reported before receiving any input."""
        if self._isolation is None:
            reply, _ = self.receive(0)
            fence = reply.get("fence")
            if fence.__class__ is not dict:
                raise bad("its reply does not report whether it is isolated")
            reasons = {part: str(fence[part]) for part in PARTS if fence.get(part, "not said") is not None}
            self._isolation = Isolation("network" not in reasons, "home" not in reasons, reasons)
        return self._isolation

    def close(self) -> None:
        """Close the connection, which lets it exit."""
        self.lines.connection.close()

    def kill(self) -> None:
        """Kill it, whatever it is doing; its exit status is not queried."""
        self.close()
        self.workshop.ended(self.pid, kill=True)

    def ask(self, document: Any, data: Any = (), descriptors: Any = (), *, most: int = 0) -> tuple[dict[str, Any], memoryview]:
        """Send a message and wait for the answer.

        Parameters:
            most: bytes that the answer may have in addition to its document.

        Raises:
            ReaderError: it died (``died``), did not answer in time (``timed-out``), or sent an invalid answer (``bad-reply``). It is gone
                then.
        """
        began = time.monotonic()
        try:
            self.lines.send(document, data, descriptors)
        except Gone:
            raise self.death() from None
        result = self.receive(most)
        if self.lines.unread:
            self.kill()
            raise bad(f"{count_of(len(self.lines.unread), 'byte follows', 'bytes follow')} it")
        self._took += time.monotonic() - began
        return result

    def receive(self, most: int) -> tuple[dict[str, Any], memoryview]:
        """Return the next message.

        Raises:
            ReaderError: as for :meth:`ask`.
        """
        try:
            reply, more = self.lines.receive(most)
        except Gone:
            raise self.death() from None
        except BlockingIOError:
            self.kill()
            message = f"the process that runs the program did not respond within {self.spec.seconds + GRACE_SECONDS} s while trying to {self.stage}, and was killed"
            raise ReaderError(message, code="timed-out") from None
        except BaseException:
            self.kill()
            raise
        if reply.__class__ is not dict:
            self.kill()
            raise bad(f"a value of type {type(reply).__name__}")
        return reply, more

    def grant(self) -> None:
        """Occasionally grant it CPU time for one more call. Time that it uses between requests is not refunded."""
        if self._took > self.spec.seconds / 8:  # what is left of the last grant is always enough for a call
            import resource  # noqa: PLC0415 - not on every system

            self._granted += self._took
            self._took = 0.0
            with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):  # it is gone, or at its hard limit
                _, most = resource.prlimit(self.pid, resource.RLIMIT_CPU)
                resource.prlimit(self.pid, resource.RLIMIT_CPU, (math.ceil(self._granted), most))

    def end(self) -> dict[str, Any]:
        """Return how a child that closed its connection ended, as in a reader's reply: ``{"stage", "exit", "said"}`` and ``signal``."""
        status = self.workshop.ended(self.pid)
        self.close()
        results: dict[str, Any] = {"stage": self.stage, "exit": status, "said": ""}
        if status is not None and status < 0:
            results["signal"] = signal_name(-status)
            results["said"] = ENDS.get(results["signal"], "")
        return results

    def death(self) -> ReaderError:
        """Return the error for a child that closed its connection."""
        end = self.end()
        how = "for an unknown reason" if end["exit"] is None else end.get("signal", f"exit status {end['exit']}")
        why = f": {end['said']}" if end["said"] else ""
        return ReaderError(
            f"the process that runs the program died while trying to {self.stage}: {how}{why}",
            hint="nothing outside that process was changed; load the archive again to continue",
            code="died",
        )


def signal_name(number: int) -> str:
    """The name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _ours() -> dict[str, str]:
    """Return the environment variables that this Python needs to import this package, and our own."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", VERIFY_OFFSETS) if name in os.environ}
    if site.ENABLE_USER_SITE:  # packages may be installed there, and the child's home would not lead to it
        kept["PYTHONUSERBASE"] = site.getuserbase()
    return kept
