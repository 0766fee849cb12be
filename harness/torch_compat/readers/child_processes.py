"""Processes for programs of archives, from outside: the template that forks children, and what is said to a child.

A :class:`Workshop` starts the template (:mod:`torch_compat.readers.child`), which forks children, one ahead of need.
:mod:`torch_compat.readers.isolated` runs a program in one.
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

__all__ = ["SPARE", "ChildProcess", "Spec", "Workshop", "supported"]

START_SECONDS = 60  # of a template, from a cold disk, on a busy machine
SPARE = 2  # seconds of processor time beyond those of the program, so that it ends by its own limit, in words
GRACE_SECONDS = 30  # that a child has beyond the time that its program may take, before it is ended from outside
STOP_SECONDS = 5
TIME = struct.Struct("@ll")  # of the kernel: seconds and microseconds
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
    """Why programs cannot have processes of their own on this system; None where they can."""
    return None if sys.platform.startswith("linux") else f"separate processes need Linux; this is {sys.platform}"


class Spec(NamedTuple):
    """The bounds of a child: see :class:`torch_compat.readers.child.Child`."""

    memory: int = ROOM
    seconds: int = math.ceil(LIMITS.seconds) + SPARE
    horizon: str = "reference"


class Workshop:
    """A template, and a child that it has forked ahead of need. It is started for the first child; threads take turns.

    Parameters:
        environ: variables of the template beside those without which it would not start.
        module: the program of the template.
    """

    def __init__(self, environ: dict[str, str], module: str = "torch_compat.readers.child") -> None:
        self.environ = environ
        self.module = module
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        self._stack = contextlib.ExitStack()
        self._owner = os.getpid()
        self._before: list[Any] = []  # what belongs to the process that this one was forked from, and is not ended here
        self._asked: list[Spec] = []
        self._spare: ChildProcess | None = None

    def start(self) -> None:
        """Start the template, and return at once.

        Raises:
            ReaderError: it does not start.
        """
        with self._lock:
            if self._owner != os.getpid():  # forked: the template is that of the process before
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
                        # -P: the folder that it runs in is no place to import from
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
        """End the template, and with it every child."""
        with self._lock:
            if self._owner == os.getpid():
                self._stack.close()

    def child(self, spec: Spec) -> ChildProcess:
        """A child that nobody has used.

        Raises:
            ReaderError: there is none to be had.
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
        """Have a child made, and do not wait for it."""
        with self._lock, contextlib.suppress(Gone):  # whoever needs it will say so
            if self._owner == os.getpid() and self.process is not None and not self._asked and self._spare is None:
                self._lines.send({"fork": spec._asdict()})
                self._asked.append(spec)

    def _receive(self) -> None:
        found: list[int] = []
        reply, _ = self._lines.receive(0, found)
        self._spare = ChildProcess(self, reply["pid"], socket.socket(fileno=found[0]), self._asked.pop())

    def ended(self, process: int, *, kill: bool = False) -> int | None:
        """The exit status of a child that does not answer any more, negative for a signal; None where nobody knows.

        Parameters:
            kill: end it first; else it has a second to end by itself.
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
    """A process for one archive, from outside.

    Attributes:
        spec: its bounds.
        pid: its number.
        stage: what it does, in a word, for whoever asks what it died of.
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
        """How long an answer may take."""
        self.lines.patience = seconds
        whole = int(seconds)
        self.lines.connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, TIME.pack(whole, max(1, int((seconds - whole) * 1e6)))
        )

    @property
    def isolation(self) -> Isolation:
        """What it cannot reach, as it said before it was given anything."""
        if self._isolation is None:
            reply, _ = self.receive(0)
            fence = reply.get("fence")
            if fence.__class__ is not dict:
                raise bad("its reply does not report whether it is isolated")
            reasons = {part: str(fence[part]) for part in PARTS if fence.get(part, "not said") is not None}
            self._isolation = Isolation("network" not in reasons, "home" not in reasons, reasons)
        return self._isolation

    def close(self) -> None:
        """Let it end."""
        self.lines.connection.close()

    def kill(self) -> None:
        """End it, whatever it does; how it ended is not asked for."""
        self.close()
        self.workshop.ended(self.pid, kill=True)

    def ask(self, document: Any, data: Any = (), descriptors: Any = (), *, most: int = 0) -> tuple[dict[str, Any], memoryview]:
        """Send a message, and wait for the answer.

        Parameters:
            most: bytes beside its document that the answer may have.

        Raises:
            ReaderError: it died (``died``), does not answer in time (``timed-out``), or answers what is no answer (``bad-reply``). It is gone then.
        """
        began = time.monotonic()
        try:
            self.lines.send(document, data, descriptors)
        except Gone:
            raise self.death() from None
        found = self.receive(most)
        if self.lines.unread:
            self.kill()
            raise bad(f"{len(self.lines.unread)} bytes follow it")
        self._took += time.monotonic() - began
        return found

    def receive(self, most: int) -> tuple[dict[str, Any], memoryview]:
        """The next message.

        Raises:
            ReaderError: as for :meth:`ask`.
        """
        try:
            reply, more = self.lines.receive(most)
        except Gone:
            raise self.death() from None
        except BlockingIOError:
            self.kill()
            said = f"the process that runs the program did not respond within {self.spec.seconds + GRACE_SECONDS} s while trying to {self.stage}, and was killed"
            raise ReaderError(said, code="timed-out") from None
        except BaseException:
            self.kill()
            raise
        if reply.__class__ is not dict:
            self.kill()
            raise bad(f"a value of type {type(reply).__name__}")
        return reply, more

    def grant(self) -> None:
        """Give it processor time for one more call, now and then. What it uses while nobody asks it anything is not given back."""
        if self._took > self.spec.seconds / 8:  # what is left of the last grant is always enough for a call
            import resource  # noqa: PLC0415 - not on every system

            self._granted += self._took
            self._took = 0.0
            with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):  # it is gone, or has no more to get
                _, most = resource.prlimit(self.pid, resource.RLIMIT_CPU)
                resource.prlimit(self.pid, resource.RLIMIT_CPU, (math.ceil(self._granted), most))

    def end(self) -> dict[str, Any]:
        """How a child ended that closed its connection, in the form of a reader's reply: ``{"stage", "exit", "said"}`` and ``signal``."""
        status = self.workshop.ended(self.pid)
        self.close()
        found: dict[str, Any] = {"stage": self.stage, "exit": status, "said": ""}
        if status is not None and status < 0:
            found["signal"] = signal_name(-status)
            found["said"] = ENDS.get(found["signal"], "")
        return found

    def death(self) -> ReaderError:
        """The error of a child that closed its connection."""
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
    """The variables of this process without which this very Python could not import this very package, and our own."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", VERIFY_OFFSETS) if name in os.environ}
    if site.ENABLE_USER_SITE:  # where the packages may be installed, which its home would no longer say
        kept["PYTHONUSERBASE"] = site.getuserbase()
    return kept
