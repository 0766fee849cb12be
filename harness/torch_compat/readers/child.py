"""The processes that run programs: a template process, which forks children, and a child, which serves one archive and exits.

Run as ``python -P -m torch_compat.readers.child PARENT CONTROL``: the id of the parent process, and the descriptor of a socket to it. The
template imports everything once, has one thread, and never sees an archive. It receives messages (:mod:`torch_compat.readers.wire`) and
answers them in order:

* ``{"fork": {"memory", "seconds", "horizon"}}``  forks a child; the answer is ``{"pid"}`` and a descriptor of a socket to the child
* ``{"ended": pid, "kill": bool}``               how a child ended: ``{"status"}``, as given by ``os.waitstatus_to_exitcode``

A child builds its fence before it receives any input: it dies with the template; its memory, CPU time, number of files and their size are
limited; it gains no privileges, makes only the system calls that computing needs, and reads only files of this package, of Python and of
numpy. It receives the archive as an open file. Its first message is ``{"fence": {"network", "home"}}``, with a reason for each part that
this machine does not support. It then receives

* once ``{"load": path, "reader", "limits"}`` with the file, or ``{"ask": request}`` with it (see :mod:`torch_compat.readers.requests`);
  a second request of the latter kind is sent only if the archives are as trusted as our own
* ``{"call": method, "args", "words", "sizes", "arena"}``, ``{"state": true}``

and answers ``{"value", ...}`` or ``{"error": [class, message, where, hint, code, slip]}``; ``{"need": bytes}`` asks for shared memory,
which is sent with ``{"arena": bytes}``.
"""

from __future__ import annotations

import errno
import gc
import io
import itertools
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import warnings
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from torch_compat import arrays
from torch_compat.archive import open_archive
from torch_compat.errors import HarnessError
from torch_compat.readers import launcher, requests
from torch_compat.readers.wire import INLINE, Arena, EncodedTexts, Gone, Lines, Reading, Writing, padded, rounded, whole
from torch_compat.releases.data import packaged
from torch_compat.runtime import registry
from torch_compat.runtime.exchange import same_bytes
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.limits import Limits, bound_memory, meter
from torch_compat.runtime.load import load
from torch_compat.runtime.slips import DiesCalled, DiesLoading
from torch_compat.runtime.tensor import Tensor, owner

if TYPE_CHECKING:
    from torch_compat.runtime.exported.program import ExportedModule
    from torch_compat.runtime.module import Module

__all__ = ["Child", "Template", "main"]

MOST_FILES = 64  # file descriptors of a child
MOST_REMEMBERED = 1024  # exit statuses of children that have not been queried yet
WARM = b"""class Model(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.m.Model, x: Tensor) -> Tensor:
    return torch.add(torch.mul(x, 2), 1)
"""


class Template:
    """Forks children for its parent and records how they ended.

    Parameters:
        parent: the id of the parent process.
        control: a socket to it.
    """

    def __init__(self, parent: int, control: socket.socket) -> None:
        self.parent = parent
        self.control = control
        self.lines = Lines(control)
        self.children: set[int] = set()
        self.ends: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until the parent ends, for whatever reason."""
        try:
            alive = os.pidfd_open(self.parent)
        except ProcessLookupError:
            return
        if os.getppid() != self.parent:
            return  # it ended before it could be watched; its pid may have been reused
        poll = select.poll()
        poll.register(alive, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if alive in ready:
                return
            try:
                request, _ = self.lines.receive(0)
                self.reap()
                if "fork" in request:
                    self.fork(request["fork"], alive)
                else:
                    self.lines.send({"status": self.end_of(request["ended"], kill=request["kill"])})
            except Gone:
                return

    def fork(self, spec: dict[str, Any], alive: int) -> None:
        """Fork a child, and pass a socket to the child to the parent."""
        warm(spec["horizon"])
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        template = os.getpid()
        process = os.fork()
        if process == 0:
            status = 1
            try:
                self.control.close()
                ours.close()
                os.close(alive)
                Child(theirs, template, spec).serve()
                status = 0
            finally:
                os._exit(status)
        theirs.close()
        self.children.add(process)
        try:
            self.lines.send({"pid": process}, descriptors=[ours.fileno()])
        finally:
            ours.close()

    def reap(self) -> None:
        """Reap the children that ended and record their exit statuses."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            self.children.discard(process)
            self.ends[process] = os.waitstatus_to_exitcode(status)
            if len(self.ends) > MOST_REMEMBERED:
                del self.ends[next(iter(self.ends))]

    def end_of(self, process: int, *, kill: bool) -> int | None:
        """Return how a child that stopped answering ended; kill it if it has not ended within a second."""
        if process in self.children:  # not reaped, so the pid is still its own
            watched = os.pidfd_open(process)
            try:
                if kill or not select.select([watched], [], [], 1)[0]:
                    signal.pidfd_send_signal(watched, signal.SIGKILL)
                    select.select([watched], [], [])
            finally:
                os.close(watched)
            self.reap()
        return self.ends.pop(process, None)


class _Plan(NamedTuple):
    """The last request with only row-major tensors as arguments: the offset of each in the message's bytes, its dtype and shape.

    A request with the same text is the same object (:attr:`torch_compat.readers.wire.Lines.repeats`), and is not parsed again.
    """

    request: dict[str, Any] | None
    size: int  # bytes
    tensors: list[tuple[int, np.dtype[Any], tuple[int, ...]]]


class Child:
    """A process for one archive.

    Parameters:
        connection: a socket to the process that sends requests.
        template: the process that it was forked from.
        spec: its limits: ``memory`` in bytes beyond what it already uses, ``seconds`` of CPU time until it is granted more; and
            ``horizon``.
    """

    def __init__(self, connection: socket.socket, template: int, spec: dict[str, Any]) -> None:
        self.lines = Lines(connection)
        self.template = template
        self.spec = spec
        self.arena: Arena | None = None
        self.module: Module | ExportedModule | None = None
        self.kept: list[Any] = []
        self.texts = EncodedTexts()
        self.plan = _Plan(None, 0, [])
        self.heard: list[list[str]] = []

    def serve(self) -> None:
        """Build the fence, then answer requests until the connection closes."""
        try:
            self.lines.send({"fence": self.fence()})
            warm_up(self.spec["horizon"])  # triggers copy-on-write of pages shared with the template before the first request
            warnings.resetwarnings()
            warnings.simplefilter("always")
            warnings.showwarning = self.hear
            self.begin()
            self.lines.repeats = True
            while True:
                self.lines.send(*self.answer(*self.receive()))
        except Gone:
            return

    def hear(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Store a warning for the next answer."""
        self.heard.append([category.__name__, str(message)])

    # ------------------------------------------------------------------------------------------------------------ the fence

    def fence(self) -> dict[str, str | None]:
        """Isolate this process; for each part, return why this machine cannot, or None."""
        launcher.die_with(self.template)
        meter.prepare()
        self.bound()
        launcher.gain_nothing()
        reasons: dict[str, str | None] = {"network": None, "home": None}
        try:
            launcher.shut_off_files(_readable(), [], alone=True)
            launcher.drop_capabilities(None)
            _check_files()
        except launcher.NotPossible as error:
            reasons["home"] = str(error)
        try:
            launcher.shut_off_calls()
            launcher.check_network()
        except launcher.NotPossible as error:
            reasons["network"] = str(error)
        return reasons

    def bound(self) -> None:
        """Limit memory, CPU time, open files and file size."""
        bound_memory(self.spec["memory"])
        memory, _ = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        seconds = self.spec["seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if most == resource.RLIM_INFINITY else min(seconds, most), most))
        for limit, value in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, MOST_FILES)):
            resource.setrlimit(limit, (value, value))

    # ------------------------------------------------------------------------------------------------------------- requests

    def receive(self) -> tuple[dict[str, Any], memoryview]:
        """Return the next request; shared memory that comes with it replaces the previous one."""
        results: list[int] = []
        request, data = self.lines.receive(self.spec["memory"], results)
        if results:
            self.arena = Arena(request["arena"], results[0])
            self.arena.handed_over()
        return request, data

    def begin(self) -> None:
        """Receive the archive."""
        results: list[int] = []
        request, _ = self.lines.receive(0, results)
        (descriptor,) = results
        while "ask" in request:
            asked = request["ask"]
            opened = partial(open_archive, asked["path"], descriptor=descriptor)
            self.lines.send(requests.answer(asked, lambda stage: self.lines.send({"stage": stage}), opened))
            results = []
            request, _ = self.lines.receive(0, results)
            (descriptor,) = results
        try:
            self.module = load(
                open_archive(request["load"], descriptor=descriptor),
                horizon(request["reader"]),
                limits=Limits(*request["limits"]),
            )
            reply = {"methods": sorted(self.module.methods), "notes": self.module.notes}
        except HarnessError as error:
            reply = {"error": _error(error)}
        self.lines.send({**reply, **self.warned()})

    def warned(self) -> dict[str, Any]:
        """Return the warnings since the last answer."""
        heard, self.heard = self.heard, []
        return {"warnings": heard} if heard else {}

    def answer(self, request: dict[str, Any], data: memoryview) -> tuple[Any, list[Any]]:
        """Return the answer to a request: a document and its bytes."""
        assert self.module is not None  # noqa: S101 - it was loaded before
        if "state" in request:
            writing = Writing()
            state = {"value": {"d": [[name, writing.put(tensor)] for name, _, tensor in self.module.named_tensors()]}}
            return self.with_bytes(state, writing.storages())
        args, words, originals, copies = self.arguments(request, data)
        results: dict[str, Any] = {}
        value = None
        try:
            value = self.module.run(request["call"], args, words)
        except HarnessError as error:
            results = {"error": _error(error)}
        changed = [place for place, copy in enumerate(copies) if not same_bytes(originals[place], copy)]
        layout = None if results or changed or self.heard else _alone(value, copies)
        text = self.texts.get(layout)
        if text is not None and value.__class__ is Tensor:
            return text, [padded(value.array)]
        writing = Writing(copies, self.keep)
        if not results:
            try:
                results = {"value": writing.put(value)}
            except HarnessError as error:
                writing = Writing(copies)
                results = {"error": _error(error)}
        storages = writing.storages()
        if changed:
            results["changed"] = changed
            storages += [copies[place].ravel(order="K").view(np.uint8) for place in changed]
        document, parts = self.with_bytes({**results, **self.warned()}, storages)
        if layout is not None and "value" in results:
            self.texts.remember(layout, document)
        return document, parts

    def arguments(
        self, request: dict[str, Any], data: memoryview
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Any], list[Any]]:
        """Return a call's arguments and keywords, and for each array its bytes as received and the copy that the program gets."""
        plan = self.plan
        if request is plan.request and len(data) >= plan.size:
            originals = [arrays.view(data[at:], dtype, shape) for at, dtype, shape in plan.tensors]
            copies = list(map(np.array, originals))
            return tuple(map(Tensor, copies)), {}, originals, copies
        sizes, memory = request["sizes"], data
        if not len(data) and any(sizes) and self.arena is not None:
            memory = self.arena.bytes.data
        given: dict[int, Tensor] = {}
        came: dict[int, Any] = {}

        def tensor(place: int, dtype: Any, shape: list[int], strides: list[int] | None, offset: int) -> Tensor:
            if place not in given:
                came[place] = arrays.view(reading.storages[place], dtype, shape, strides, offset)
                given[place] = Tensor(np.array(came[place]))
                return given[place]
            return Tensor(given[place].array)

        reading = Reading(sizes, memory, tensor, self.kept.__getitem__)
        args = tuple(reading.get(arg) for arg in request["args"])
        words = {name: reading.get(arg) for name, arg in request["words"].items()}
        places = range(len(sizes))
        originals, copies = [came[place] for place in places], [given[place].array for place in places]
        named = [arg["x"][0] if arg.__class__ is dict and "x" in arg else None for arg in request["args"]]
        if not words and len(data) and named == list(places) and all(map(whole, originals)):
            starts = [0, *itertools.accumulate(map(rounded, sizes))]
            tensors = [(at, original.dtype, original.shape) for at, original in zip(starts, originals, strict=False)]
            self.plan = _Plan(request, starts[-1], tensors)
        return args, words, originals, copies

    def keep(self, value: Any) -> int:
        """Keep an object that only this process can use; return its number."""
        self.kept.append(value)
        return len(self.kept) - 1

    def with_bytes(self, value: dict[str, Any], storages: list[Any]) -> tuple[Any, list[Any]]:
        """Return an answer with its storages, in the message or in shared memory."""
        if not storages:
            return value, []
        value["sizes"] = [item.nbytes for item in storages]
        total = sum(map(rounded, value["sizes"]))
        if total <= INLINE:
            return value, list(map(padded, storages))
        if self.arena is None or self.arena.size < total:
            self.lines.send({"need": total})
            self.receive()
            assert self.arena is not None  # noqa: S101 - it has just been received
        at = 0
        for storage in storages:
            self.arena.bytes[at : at + storage.nbytes] = storage
            at += rounded(storage.nbytes)
        return value, []


def _alone(value: Any, copies: list[Any]) -> Any:
    """The key of an answer that is one row-major tensor covering its own storage: all its text depends on. None for other answers."""
    if value.__class__ is not Tensor:
        return None
    array = value.array
    memory = owner(array)
    if not whole(array) or not array.nbytes == memory.nbytes <= INLINE or any(memory is copy for copy in copies):
        return None
    return len(copies), array.dtype, array.shape


def _error(error: HarnessError) -> list[Any]:
    slip = error.slip.id if isinstance(error, DiesCalled | DiesLoading) else None
    return [type(error).__name__, error.message, error.where, error.hint, error.code, slip]


@cache
def _readable() -> list[str]:
    """Return what a child may read: this package with its data, Python's standard library, and numpy."""
    folders = [
        Path(__file__).parents[1],
        packaged("policies"),
        *(packaged("fixtures", name) for name in ("beside", "globals", "operators")),
    ]
    libraries = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    modules = [Path(str(module.__file__)).parent for module in (np, ml_dtypes)]
    return [str(folder) for folder in (*folders, *libraries, *modules)]


def _check_files() -> None:
    """Try to read files that must be inaccessible.

    Raises:
        NotPossible: one of them can be read.
    """
    for path in ("/", "/etc/passwd", f"/proc/{os.getppid()}/environ"):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT):
                continue
        raise launcher.NotPossible(f"{path} can still be read")


# ---------------------------------------------------------------------------------------------------------------- template


@cache
def _warm_archive() -> bytes:
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__.m\nModel\n)\x81}X\x08\x00\x00\x00training\x89sb.")
        archive.writestr("m/code/__torch__/m.py", WARM)
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", b"3\n")
    return result.getvalue()


@cache
def warm(reader: str) -> None:
    """Load the recorded data of a horizon, so that no child has to."""
    warm_up(reader)
    gc.collect()
    gc.freeze()  # the garbage collector of a child would write to every page that is shared


def warm_up(reader: str) -> None:
    """Load and call one of our own programs at a horizon."""
    try:
        load(_warm_archive(), horizon(reader)).run("forward", (Tensor(np.ones(2, np.float32)),))
    except HarnessError:
        return  # this horizon cannot read it; the lookup of the reason is warm now


def main() -> None:
    """Run the template process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent to a whole terminal: when its recipient, the parent, ends, so do we
    sys.dont_write_bytecode = True
    parent, control = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    registry.known()
    _readable()
    Template(parent, control).serve()


if __name__ == "__main__":
    main()
