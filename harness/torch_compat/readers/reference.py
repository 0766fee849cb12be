"""The reference reader: programs of any release, run with numpy by :mod:`torch_compat.runtime`, as any release would have run them.

:func:`load` gives a program to Python. :class:`Reference` is the same as a reader among readers: a process of its own that
answers requests, of which one that dies or takes too long costs exactly one answer.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from torch_compat.archive.base import open_file
from torch_compat.errors import ReaderError, UsageError
from torch_compat.fingerprint import code_fingerprint, content_fingerprint
from torch_compat.readers.replies import checked, stage_of
from torch_compat.readers.wire import Gone
from torch_compat.releases.data import packaged
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.limits import LIMITS, Limits
from torch_compat.version import __version__

if TYPE_CHECKING:
    from torch_compat.readers.child_processes import ChildProcess, Spec, Workshop
    from torch_compat.readers.isolated import IsolatedModule
    from torch_compat.readers.isolation import Isolation
    from torch_compat.runtime.exported.program import ExportedModule
    from torch_compat.runtime.module import Module

__all__ = ["FAMILIES", "NAME", "Reference", "identity", "is_reference", "known_to_horizons", "load"]

NAME = "reference"
FAMILIES = ("torchscript", "mobile", "export")
"""The families of archives that the reference reader reads."""
# A process that forks has one thread
THREADS = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Kernels that every x86-64 machine of the last decade has: the same bits everywhere
DETERMINISM = {"OPENBLAS_CORETYPE": "Haswell", "PYTHONHASHSEED": "0"}
MUCH = 24 * 3600  # seconds of processor time of a process that answers for many archives, each of them bounded by the clock
ENDS = frozenset({"crashed", "timed-out"})  # after which a process is no more
PROCESSOR_SECONDS = 60  # that a request may take beyond its time on the clock, before the kernel ends it


def is_reference(reader: str) -> bool:
    """Whether a reader's name is that of the reference reader, with or without a horizon."""
    return reader.partition("@")[0] == NAME


@overload
def load(
    path: str | os.PathLike[str], reader: str = ..., *, limits: Limits = ..., in_process: Literal[True]
) -> Module | ExportedModule: ...
@overload
def load(
    path: str | os.PathLike[str], reader: str = ..., *, limits: Limits = ..., in_process: bool = ...
) -> IsolatedModule | Module | ExportedModule: ...
def load(
    path: str | os.PathLike[str], reader: str = NAME, *, limits: Limits = LIMITS, in_process: bool = False
) -> IsolatedModule | Module | ExportedModule:
    """Load a TorchScript or mobile archive, or an exported program, as a program that runs on numpy. Nothing of it reaches Python, torch is not needed.

    Arrays of numpy go in and come out (of ``ml_dtypes`` for bfloat16 and float8), numbers, texts, lists, tuples and
    dictionaries as they are::

        module = torch_compat.load("model.pt", reader="reference@1.5.1")
        module(x, y)  # with its hooks, as torch would
        module.forward(x)
        module.some_method(x)

    The program runs in a process of its own, which ends with the module: with bounds of memory, processor time and files, without
    privileges, network and file system (``module.isolation`` says what this machine cannot shut off). Where the system is not Linux it
    runs in this process, and a RuntimeWarning says so.

    Parameters:
        path: the file.
        reader: ``reference`` (the newest), or what a release or a day knew: ``reference@1.5.1``, ``reference@2020-06-24``.
        limits: what loading, and each call, may take: steps, seconds, memory; what is beyond is raised.
        in_process: run it in this process. Small calls take a fraction of the time, and :meth:`torch_compat.runtime.module.Module.run` takes
            tensors with all that torch knows of them. It gives up the second line of defence: a mistake of the reference reader, such as a
            view outside of its memory, is then one of this process, which the archive may crash, read or change; memory and
            processor time are bounded only as far as operators look at their budgets.

    Raises:
        UsageError: there is no such file or reader.
        Corrupt, Unsafe: the file is damaged, or wants to reach Python.
        Refused: a reader of this horizon refuses it, or dies of it (``SIGABRT``, ``SIGSEGV`` as the error's code).
        Unsupported: the reference reader lacks something, and names it. A missing operator is raised by the call that needs it.
        ReaderError: the process of the program died (``died``), took too long (``timed-out``), or answered what is no answer (``bad-reply``).
    """
    if not is_reference(reader):
        hint = "to run it with a release: torch-compat run PATH --reader torch-2.13.0"
        raise UsageError(
            f"expected the reference reader (reference, reference@1.5.1), found {reader!r}", hint=hint, code="reader"
        )
    known = horizon(reader)
    if not in_process:
        from torch_compat.readers import child_processes, isolated  # noqa: PLC0415 - not for those who do without

        lacking = child_processes.supported()
        if lacking is None:
            return isolated.load_isolated(_workshop(), str(path), known.name, limits)
        warnings.warn(f"the program runs in this process: {lacking}", RuntimeWarning, stacklevel=2)
    from torch_compat.runtime.load import load as load_program  # noqa: PLC0415 - brings every operator

    return load_program(Path(path), known, limits=limits)


@lru_cache(maxsize=1)
def _workshop() -> Workshop:
    """Where the processes of this one's programs are made. It has one thread: numpy may not start any before a fork."""
    from torch_compat.readers.child_processes import Workshop  # noqa: PLC0415 - as above

    made = Workshop({**THREADS, "PYTHONPATH": str(Path(__file__).parents[2])})
    atexit.register(made.close)
    return made


@lru_cache(maxsize=1)
def identity() -> dict[str, Any]:
    """What exactly answers: our version, a digest of the code and the policies behind answers, and what calculates."""
    from importlib.metadata import version  # noqa: PLC0415 - takes as long as loading a small archive

    code = code_fingerprint("readers") + content_fingerprint(packaged(), known_to_horizons())
    return {
        "reader": NAME,
        "version": __version__,
        "code": hashlib.sha256(code.encode()).hexdigest()[:16],
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "ml_dtypes": version("ml_dtypes"),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
    }


def known_to_horizons() -> list[Path]:
    """The packaged files that say what a horizon knew: what releases did and have, not what is promised or accepted of each."""
    folders = (("policies", "torch", "*.toml"), *(("fixtures", name, "*") for name in ("beside", "globals", "operators")))
    return [path for *folder, pattern in folders for path in packaged(*folder).glob(pattern) if path.is_file()]


class Reference:
    """The reference reader, each request in a process of its own (:mod:`torch_compat.readers.child`). Use as a context manager.

    The processes inherit none of the user's variables, and end with this one, however it ends.

    Parameters:
        together: whether one process answers for all archives of a horizon, until it dies. Takes a tenth of the time. Only for archives that are
            pinned: what one of them did to the process would be in the answers for the others.
    """

    def __init__(self, *, together: bool = False) -> None:
        from torch_compat.readers.child_processes import Workshop  # noqa: PLC0415 - whoever asks only for names needs none

        self._workshop = Workshop({**THREADS, **DETERMINISM, "PYTHONPATH": str(Path(__file__).parents[2])})
        self.isolation: Isolation | None = None
        self.together = together
        self._kept: tuple[Spec, ChildProcess] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process that makes the others, and return at once."""
        self._workshop.start()

    def close(self) -> None:
        """End the processes, if there are any."""
        self._let_go()
        self._workshop.close()

    def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
        """Send a request; its reply: ``result``, ``unsupported``, ``crashed`` or ``timed-out``.

        A death that is ``predicted`` is that of the release which the reader stands for; any other is its own.

        Parameters:
            do: ``observe`` or ``run`` (see harness/torch_compat/readers/requests.py).

        Raises:
            ReaderError: the process does not start, says that the request makes no sense, or answers what is no answer.
        """
        from torch_compat.readers.child_processes import Spec  # noqa: PLC0415 - as above

        try:
            descriptor = open_file(arguments["path"])
        except UsageError as error:
            raise _failed(do, str(error)) from error
        try:
            seconds = MUCH if self.together else int(timeout_s) + PROCESSOR_SECONDS
            spec = Spec(seconds=seconds, horizon=arguments["horizon"])
            if self._kept is None or self._kept[0] != spec:
                self._let_go()
                self._kept = spec, self._workshop.child(spec)
            child = self._kept[1]
            child.stage = "load"
            self.isolation = child.isolation
            lives = False
            try:
                reply = self._answer(child, {"do": do, **arguments}, descriptor, timeout_s)
                lives = reply.keys().isdisjoint(ENDS) or "predicted" in reply.get("crashed", ())
                return reply
            finally:
                if not (self.together and lives):
                    self._workshop.ahead(spec)
                    self._let_go()
        finally:
            os.close(descriptor)

    def _let_go(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()

    def _answer(self, child: ChildProcess, request: dict[str, Any], descriptor: int, timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        try:
            child.lines.send({"ask": request}, descriptors=[descriptor])
            while True:
                child.wait(max(deadline - time.monotonic(), 0.001))
                reply, _ = child.lines.receive(0)
                if reply.__class__ is not dict or "stage" not in reply:
                    break
                child.stage = stage_of(reply)
        except BlockingIOError:
            child.kill()
            return {"timed-out": {"timeout_s": timeout_s, "stage": child.stage}}
        except Gone:
            return {"crashed": child.end()}
        except BaseException:
            child.kill()
            raise
        if reply.__class__ is dict and reply.get("failed").__class__ is str:
            raise _failed(request["do"], reply["failed"])
        return checked(reply, request["do"])


def _failed(do: str, said: str) -> ReaderError:
    return ReaderError(f"the reference reader could not run {do!r}: {said}", code="request-failed")
