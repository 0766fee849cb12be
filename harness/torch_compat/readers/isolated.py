"""Programs in processes of their own, seen from the process that asks: nothing that comes back is believed.

A :class:`Workshop` starts the template (:mod:`torch_compat.readers.child`), which forks children, one ahead of need. A child serves one
archive. It may be under the control of whoever made that archive, so each of its messages is bounded, its tensors pass through
:mod:`torch_compat.arrays`, its data is copied before it is looked at, and it can have no error raised here but those of the family.
"""

from __future__ import annotations

import builtins
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
import warnings
import weakref
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from torch_compat import arrays, errors
from torch_compat.archive.base import open_file
from torch_compat.archive.container import VERIFY_OFFSETS
from torch_compat.errors import HarnessError, ReaderError, UsageError
from torch_compat.readers.isolation import Isolation, plain_environ
from torch_compat.readers.wire import INLINE, Arena, Gone, Lines, Reading, Writing, bad, rounded
from torch_compat.runtime.exchange import Exchange
from torch_compat.runtime.limits import LIMITS, ROOM, Exhausted, Limits

__all__ = ["ChildProcess", "IsolatedModule", "Workshop", "load_isolated", "supported"]

START_SECONDS = 60  # of a template, from a cold disk, on a busy machine
SPARE = 2  # seconds of processor time beyond those of the program, so that it ends by its own limit, in words
GRACE_SECONDS = 30  # that a child has beyond the time that its program may take, before it is ended from outside
STOP_SECONDS = 5
TIME = struct.Struct("@ll")  # of the kernel: seconds and microseconds
CALLED = "__call__"
PARTS = ("network", "home")
OURS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HarnessError)}
ENDS = {
    "SIGXCPU": "it took more processor time than it may (RLIMIT_CPU)",
    "SIGXFSZ": "it tried to write a file (RLIMIT_FSIZE)",
    "SIGKILL": "it was killed, as a system does that runs out of memory",
    "SIGBUS": "it read behind the end of a file: the archive became shorter meanwhile",
    "SIGSEGV": "it touched memory that is not its own",
    "SIGSYS": "it made a system call that it may not make",
}


def supported() -> str | None:
    """Why programs cannot have processes of their own on this system; None where they can."""
    return None if sys.platform.startswith("linux") else f"processes of their own need Linux, this is {sys.platform}"


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
                        raise ReaderError(f"{sys.executable} does not start: {error}", code="does-not-start") from error
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
                raise ReaderError(
                    f"the process that makes processes for programs is gone: {error}", code="does-not-start"
                ) from error

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
                raise bad("it does not say what it is kept from")
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
            said = f"the process that runs the program did not answer within {self.spec.seconds + GRACE_SECONDS} s while it was to {self.stage}, and was ended"
            raise ReaderError(said, code="timed-out") from None
        except BaseException:
            self.kill()
            raise
        if reply.__class__ is not dict:
            self.kill()
            raise bad(f"a {type(reply).__name__}")
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
        how = "nobody knows how" if end["exit"] is None else end.get("signal", f"exit status {end['exit']}")
        why = f": {end['said']}" if end["said"] else ""
        return ReaderError(
            f"the process that runs the program died while it was to {self.stage}: {how}{why}",
            hint="nothing outside of it was changed; load the archive again to go on",
            code="died",
        )


def signal_name(number: int) -> str:
    """The name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class IsolatedModule:
    """A program in a process of its own, as people use it: called, methods by name, arrays of numpy in and out.

    What :class:`torch_compat.runtime.module.Module` gives, this gives. Two things stay in the other process: objects of the program,
    which come out as names that can be given back to it, and its tensors, of which :meth:`state` gives copies.

    Attributes:
        notes: what to know about how it is run.
        isolation: what the program cannot reach.
        methods: names of its methods.
    """

    def __init__(self, child: ChildProcess, reply: dict[str, Any], limits: Limits) -> None:
        methods: Any = reply.get("methods")
        notes: Any = reply.get("notes")
        for names in (methods, notes):
            if names.__class__ is not list or any(name.__class__ is not str for name in names):
                raise bad("no list of methods or notes")
        self.methods = frozenset(methods)
        self.notes: list[str] = notes
        self.isolation = child.isolation
        self._child = child
        self._most = limits.memory
        self._lock = threading.Lock()
        self._arena: Arena | None = None
        self._dead: str | None = None
        self._end = weakref.finalize(self, _close, child, os.getpid())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the module as Python would, hooks included (:mod:`torch_compat.runtime.exchange`).

        Raises:
            Raised: the program raised, or the arguments do not fit.
            Unsupported: the reference reader lacks something that the call needs.
            ReaderError: its process died, took too long, or answered what is no answer. The program is gone then.
        """
        return self._call(CALLED, args, keywords)

    def __getattr__(self, name: str) -> Any:
        """A method by its name."""
        if name.startswith("__") or name not in self.__dict__.get("methods", ()):
            raise AttributeError(f"the module has no method {name}")
        return lambda *args, **keywords: self._call(name, args, keywords)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its process. It is ended, too, when nobody holds the module any more."""
        with self._lock:
            self._dead = self._dead or "it was closed"
            self._end()

    def state(self) -> dict[str, Any]:
        """Its parameters and buffers by name, as copies.

        Raises:
            ReaderError: as for a call.
        """
        with self._lock:
            exchange = Exchange(elsewhere=True)
            reply, data = self._ask({"state": True}, [], [], "tell its state")
            found: dict[str, Any] = self._value(reply, data, exchange)
            return found

    # ---------------------------------------------------------------------------------------------------------------- calls

    def _call(self, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        exchange = Exchange(elsewhere=True)
        given = [exchange.take(arg) for arg in args]
        named = {name: exchange.take(arg) for name, arg in keywords.items()}
        writing = Writing(exchange.copies)
        document: dict[str, Any] = {
            "call": method,
            "args": [writing.put(arg) for arg in given],
            "words": {name: writing.put(arg) for name, arg in named.items()},
            "sizes": [copy.nbytes for copy in exchange.copies],
        }
        writing.storages()
        storages = [copy.ravel(order="K").view(np.uint8) for copy in exchange.copies]
        with self._lock:
            total = sum(map(rounded, document["sizes"]))
            descriptors: list[int] = []
            parts: list[Any] = []
            if total > INLINE:
                if self._arena is None or self._arena.size < total:
                    self._arena = self._larger(total)
                    document["arena"] = self._arena.size
                    descriptors = [self._arena.descriptor]
                at = 0
                for one in storages:
                    self._arena.bytes[at : at + one.nbytes] = one
                    at += rounded(one.nbytes)
            else:
                parts = Writing.parts(storages)
            reply, data = self._ask(document, parts, descriptors, f"call {method}")
            return self._value(reply, data, exchange)

    def _larger(self, size: int) -> Arena:
        if size > self._most:
            said = f"a call has tensors of {size} bytes; the program may have {self._most} (limits.memory)"
            raise errors.Raised(said, code="memory-limit")
        return Arena(1 << max(20, (size - 1).bit_length()))

    def _ask(self, document: Any, parts: list[Any], descriptors: list[int], stage: str) -> tuple[dict[str, Any], Any]:
        if self._dead is not None:
            raise ReaderError(f"the process of this program is gone: {self._dead}", hint="load the archive again", code="died")
        if self._child.owner != os.getpid():
            raise UsageError(
                "this program was loaded by another process, which this one was forked from", hint="load it here", code="forked"
            )
        child = self._child
        child.stage = stage
        child.grant()
        try:
            reply, data = child.ask(document, parts, descriptors, most=INLINE)
            if self._arena is not None:
                self._arena.handed_over()
            if "need" in reply:
                size = reply["need"]
                self._check_need(size)
                self._arena = self._larger(size)
                reply, data = child.ask({"arena": self._arena.size}, [], [self._arena.descriptor], most=INLINE)
                self._arena.handed_over()
        except BaseException as error:
            self._give_up(error)
            raise
        if len(data) or self._arena is None:
            return reply, data
        return reply, self._arena.bytes

    def _check_need(self, size: Any) -> None:
        if size.__class__ is not int or not 0 < size <= self._most:
            raise bad(f"it asks for a shared memory of {size!r:.40} bytes; it may have {self._most}")

    def _give_up(self, error: BaseException) -> None:
        """A child of which an answer was not understood, or is still to come, is not asked again."""
        self._dead = f"{type(error).__name__}: {error}"[:500]
        self._child.kill()
        self._end()

    def _value(self, reply: dict[str, Any], data: Any, exchange: Exchange) -> Any:
        """The value that an answer holds; what it changed of the arguments is written back.

        Raises:
            ReaderError: it is no answer.
        """
        try:
            return self._understood(reply, data, exchange)
        except ReaderError as error:
            self._give_up(error)
            raise

    def _understood(self, reply: dict[str, Any], data: Any, exchange: Exchange) -> Any:
        known = len(exchange.copies)
        bases: dict[int, Any] = {}

        def tensor(place: int, dtype: Any, shape: list[int], strides: list[int] | None, offset: int) -> Any:
            if place < known:
                steps = list(arrays.contiguous_strides(_sizes(shape))) if strides is None else strides
                return exchange.alias(place, dtype, _sizes(shape), _integers(steps), offset)
            if place not in bases:
                bases[place] = np.array(reading.storages[place - known], np.uint8)
            return arrays.view(bases[place], dtype, shape, strides, offset)

        reading = Reading(reply.get("sizes", []), data, tensor)
        changed = reply.get("changed", [])
        if changed.__class__ is not list or any(place.__class__ is not int or not 0 <= place < known for place in changed):
            raise bad("changed arguments that are none")
        if len(set(changed)) != len(changed) or len(changed) > len(reading.storages):
            raise bad("more changed arguments than storages")
        new = reading.storages[len(reading.storages) - len(changed) :]
        for place, memory in zip(changed, new, strict=True):
            copy = exchange.copies[place]
            if len(memory) != copy.nbytes:
                raise bad(f"an argument of {copy.nbytes} bytes becomes one of {len(memory)}")
            steps = [step // copy.itemsize for step in copy.strides]
            now = arrays.view(memory, copy.dtype, copy.shape, steps)
            exchange.write_back(place, now)
        for category, said in _warned(reply):
            warnings.warn(said, category, stacklevel=5)
        if "error" in reply:
            raise _error(reply["error"])
        if "value" not in reply:
            raise bad("neither a value nor an error")
        return reading.get(reply["value"])


def _close(child: ChildProcess, owner: int) -> None:
    if os.getpid() == owner:
        child.close()


def _integers(numbers: list[int]) -> list[int]:
    if any(number.__class__ is not int for number in numbers):
        raise TypeError("a number of a tensor is no integer")
    return numbers


def _sizes(shape: list[int]) -> list[int]:
    if len(shape) > arrays.MOST_DIMENSIONS:
        raise ValueError(f"{len(shape)} dimensions")
    return _integers(shape)


def _warned(reply: dict[str, Any]) -> list[tuple[type[Warning], str]]:
    """The warnings of an answer.

    Raises:
        ReaderError: they are none.
    """
    found = []
    heard = reply.get("warnings", [])
    if heard.__class__ is not list:
        raise bad("warnings that are none")
    for one in heard:
        if one.__class__ is not list or len(one) != 2 or any(part.__class__ is not str for part in one):
            raise bad("a warning that is none")
        category = getattr(builtins, one[0], None)
        if not (isinstance(category, type) and issubclass(category, Warning)):
            category = UserWarning
        found.append((category, one[1]))
    return found


def _error(said: Any) -> HarnessError:
    """The error of an answer.

    Raises:
        ReaderError: it is none of the family.
    """
    if said.__class__ is not list or len(said) != 6 or any(part is not None and part.__class__ is not str for part in said):
        raise bad("an error that is none")
    name, message, where, hint, code, slip = said
    if name is None or message is None or code is None:
        raise bad("an error without a name, a text or a code")
    kind = OURS.get(name)
    if slip is not None:
        kind = _dying(name, slip)
    elif name == Exhausted.__name__:
        kind = Exhausted
    elif name == "SourceError":
        from torch_compat.runtime.language import SourceError  # noqa: PLC0415 - brings the whole compiler

        kind = SourceError
    if kind is None or issubclass(kind, errors.PolicyError | ReaderError):
        raise bad(f"an error of the class {name[:80]!r}")
    made = kind.__new__(kind)
    HarnessError.__init__(made, message, where=where, hint=hint, code=code)
    if slip is not None:
        made.slip = _slips()[slip]  # type: ignore[attr-defined]
    return made


def _dying(name: str, slip: str) -> type[HarnessError]:
    from torch_compat.runtime.slips import DiesCalled, DiesLoading  # noqa: PLC0415 - of a release that dies

    kinds: dict[str, type[HarnessError]] = {"DiesCalled": DiesCalled, "DiesLoading": DiesLoading}
    if name not in kinds or slip not in _slips():
        raise bad(f"a death of {slip[:80]!r}")
    return kinds[name]


def _slips() -> dict[str, Any]:
    from torch_compat.runtime.slips import every  # noqa: PLC0415 - as above

    return {slip.id: slip for slip in every()}


# ----------------------------------------------------------------------------------------------------------------- loading


def load_isolated(workshop: Workshop, path: str, reader: str, limits: Limits) -> IsolatedModule:
    """Load an archive in a process of its own.

    Raises:
        UsageError: there is no such file.
        HarnessError: as :func:`torch_compat.load`.
        ReaderError: the process died, or answered what is no answer.
    """
    descriptor = open_file(path)
    try:
        child = workshop.child(Spec(limits.memory, math.ceil(limits.seconds) + SPARE, reader))
        child.stage = f"load {path}"
        try:
            child.isolation  # noqa: B018 - its first message
            reply, _ = child.ask({"load": path, "reader": reader, "limits": list(limits)}, descriptors=[descriptor])
        finally:
            workshop.ahead(child.spec)
    finally:
        os.close(descriptor)
    try:
        for category, said in _warned(reply):
            warnings.warn(said, category, stacklevel=4)
        made = _error(reply["error"]) if "error" in reply else IsolatedModule(child, reply, limits)
    except BaseException:
        child.kill()
        raise
    if isinstance(made, IsolatedModule):
        return made
    child.close()
    raise made


def _ours() -> dict[str, str]:
    """The variables of this process without which this very Python could not import this very package, and our own."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", VERIFY_OFFSETS) if name in os.environ}
    if site.ENABLE_USER_SITE:  # where the packages may be installed, which its home would no longer say
        kept["PYTHONUSERBASE"] = site.getuserbase()
    return kept
