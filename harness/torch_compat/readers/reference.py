"""The reference reader: runs programs of any release with numpy (:mod:`torch_compat.runtime`), as any chosen release would have.

:func:`load` makes a program callable from Python. :class:`Reference` has the interface of the other readers: a separate process that
answers requests; a request that crashes or times out loses only its own answer.
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
from torch_compat.runtime.horizons import known_horizon
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
# A process that forks must have one thread
THREADS = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Kernels that every x86-64 machine of the last decade supports: bitwise identical results everywhere
DETERMINISM = {"OPENBLAS_CORETYPE": "Haswell", "PYTHONHASHSEED": "0"}
MUCH = 24 * 3600  # seconds of CPU time for a process that serves many archives, each limited by wall-clock time
ENDS = frozenset({"crashed", "timed-out"})  # outcomes after which the process is gone
PROCESSOR_SECONDS = 60  # that a request may take beyond its wall-clock limit, before the kernel kills it


def is_reference(reader: str) -> bool:
    """Whether a name denotes the reference reader, with or without a horizon."""
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
    """Load a TorchScript or mobile archive, or an exported program, as a program that runs on numpy, without torch.

    Nothing in the file can execute Python code. Inputs and outputs are numpy arrays (with dtypes of ``ml_dtypes`` for bfloat16 and float8);
    numbers, strings, lists, tuples and dictionaries are passed unchanged::

        module = torch_compat.load("model.pt", reader="reference@1.5.1")
        module(x, y)  # with its hooks, as torch would
        module.forward(x)
        module.some_method(x)

    The program runs in a separate process, which ends with the module. That process has limited memory, CPU time and files, and no
    privileges, network or file system (``module.isolation`` says what this machine cannot shut off). On systems other than Linux the
    program runs in this process, with a RuntimeWarning.

    Parameters:
        path: the file.
        reader: ``reference`` (the newest), or the state at a release or date: ``reference@1.5.1``, ``reference@2020-06-24``.
        limits: limits for loading and for each call: steps, seconds, memory; exceeding one raises an error.
        in_process: run it in this process. Small calls take a fraction of the time, and :meth:`torch_compat.runtime.module.Module.run`
            takes tensors with all their torch metadata. This gives up the second line of defense: through a bug in the reference reader,
            such as a view outside its memory, an archive may crash, read or change this process; memory and CPU time are limited only as
            far as operators check their budgets.

    Raises:
        UsageError: there is no such file or reader.
        Corrupt, Unsafe: the file is damaged, or tries to execute Python code.
        Refused: a reader of this horizon refuses it, or crashes on it (``SIGABRT``, ``SIGSEGV`` as the error's code).
        Unsupported: the reference reader does not support something; the error names it. A missing operator is reported by the call that
            needs it.
        ReaderError: the process of the program died (``died``), took too long (``timed-out``), or sent an invalid answer (``bad-reply``).
    """
    if not is_reference(reader):
        hint = "to run it with a release: torch-compat run PATH --reader torch-2.13.0"
        raise UsageError(
            f"expected the reference reader (reference, reference@1.5.1), found {reader!r}", hint=hint, code="reader"
        )
    known = known_horizon(reader)
    if not in_process:
        from torch_compat.readers import child_processes, isolated  # noqa: PLC0415 - not needed by in-process callers

        lacking = child_processes.supported()
        if lacking is None:
            return isolated.load_isolated(_workshop(), str(path), known.name, limits)
        warnings.warn(f"the program runs in this process: {lacking}", RuntimeWarning, stacklevel=2)
    from torch_compat.runtime.load import load as load_program  # noqa: PLC0415 - imports every operator

    return load_program(Path(path), known, limits=limits)


@lru_cache(maxsize=1)
def _workshop() -> Workshop:
    """Return the template that forks processes for this process's programs. Single-threaded: numpy must not start threads first."""
    from torch_compat.readers.child_processes import Workshop  # noqa: PLC0415 - as above

    result = Workshop({**THREADS, "PYTHONPATH": str(Path(__file__).parents[2])})
    atexit.register(result.close)
    return result


@lru_cache(maxsize=1)
def identity() -> dict[str, Any]:
    """Return what determines the answers: our version, a digest of code and policies, and the numerical libraries."""
    from importlib.metadata import version  # noqa: PLC0415 - importing it takes as long as loading a small archive

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
    """Return the packaged files that define a horizon: how releases behaved, not what is promised or accepted for each."""
    folders = (("policies", "torch", "*.toml"), *(("fixtures", name, "*") for name in ("beside", "globals", "operators")))
    return [path for *folder, pattern in folders for path in packaged(*folder).glob(pattern) if path.is_file()]


class Reference:
    """The reference reader, with each request in a separate process (:mod:`torch_compat.readers.child`). Use as a context manager.

    The processes inherit none of the user's variables, and end with this one, for whatever reason it ends.

    Parameters:
        together: whether one process serves all archives of a horizon, until it dies. Takes a tenth of the time. Only for pinned archives,
            because one archive's effects on the process could change the answers for others.
    """

    def __init__(self, *, together: bool = False) -> None:
        from torch_compat.readers.child_processes import Workshop  # noqa: PLC0415 - not needed to query names only

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
        """Start the process that creates the others, and return at once."""
        self._workshop.start()

    def close(self) -> None:
        """End the processes, if there are any."""
        self._let_go()
        self._workshop.close()

    def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its reply: ``result``, ``unsupported``, ``crashed`` or ``timed-out``.

        A ``predicted`` crash is one of the emulated release; any other is a crash of the reader itself.

        Parameters:
            do: ``observe`` or ``run`` (see harness/torch_compat/readers/requests.py).

        Raises:
            ReaderError: the process does not start, rejects the request as invalid, or sends an invalid answer.
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


def _failed(do: str, text: str) -> ReaderError:
    return ReaderError(f"the reference reader could not run {do!r}: {text}", code="request-failed")
