"""The reference reader: programs of any release, run with numpy by :mod:`torch_compat.runtime`, as any release would have run them.

:func:`load` gives a program to Python. :class:`Reference` is the same as a reader among readers: a process of its own that
answers requests, of which one that dies or takes too long costs exactly one answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import select
import site
import subprocess
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch_compat import __version__
from torch_compat.archive.container import VERIFY_OFFSETS
from torch_compat.errors import ReaderError, UsageError
from torch_compat.fingerprint import code_fingerprint, content_fingerprint
from torch_compat.readers.isolation import plain_environ
from torch_compat.releases.data import packaged
from torch_compat.runtime.horizons import horizon
from torch_compat.runtime.limits import LIMITS, Limits
from torch_compat.runtime.program import load as load_program

if TYPE_CHECKING:
    from torch_compat.runtime.module import Module

__all__ = ["FAMILIES", "NAME", "Reference", "identity", "is_reference", "known_to_horizons", "load"]

NAME = "reference"
FAMILIES = ("torchscript", "mobile")
"""The families of archives that it reads."""
START_SECONDS = 60  # from a cold disk, on a busy machine
IDLE = "idle"
STOP_SECONDS = 5  # for a process that is no longer needed to end by itself
# One thread, and kernels that every x86-64 machine of the last decade has: the same bits everywhere.
DETERMINISM = {
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def is_reference(reader: str) -> bool:
    """Whether a reader's name is that of the reference reader, with or without a horizon."""
    return reader.partition("@")[0] == NAME


def load(path: str | os.PathLike[str], reader: str = NAME, *, limits: Limits = LIMITS) -> Module:
    """Load a TorchScript or mobile archive as a program that runs on numpy. Nothing of it reaches Python, torch is not needed.

    Arrays of numpy go in and come out (of ``ml_dtypes`` for bfloat16 and float8), numbers, texts, lists, tuples and
    dictionaries as they are::

        module = torch_compat.load("model.pt", reader="reference@1.5.1")
        module(x, y)  # with its hooks, as torch would
        module.forward(x)
        module.some_method(x)

    Parameters:
        path: the file.
        reader: ``reference`` (the newest), or what a release or a day knew: ``reference@1.5.1``, ``reference@2020-06-24``.
        steps: how many calls of functions and iterations of loops one call may take before it is raised as endless.

    Raises:
        UsageError: there is no such file or reader.
        Corrupt, Unsafe: the file is damaged, or wants to reach Python.
        Refused: a reader of this horizon refuses it, or dies of it (``SIGABRT``, ``SIGSEGV`` as the error's code).
        Unsupported: the reference reader lacks something, and names it. A missing operator is raised by the call that needs it.
    """
    if not is_reference(reader):
        hint = "to let a release run it: torch-compat run PATH --reader torch-2.13.0"
        raise UsageError(
            f"expected the reference reader (reference, reference@1.5.1), found {reader!r}", hint=hint, code="reader"
        )
    return load_program(Path(path), horizon(reader), limits=limits)


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
    """The reference reader in a process of its own. Use as a context manager.

    It inherits none of the user's variables, and ends with the thread that started it. A process that died or had to be ended is started again for the next request.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = contextlib.ExitStack()
        self._unread = b""
        self._stage = IDLE

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and return at once."""
        if self._process is not None:
            return
        with contextlib.ExitStack() as stack:
            empty = stack.enter_context(tempfile.TemporaryDirectory(prefix="torch-compat-"))
            self._said = stack.enter_context(tempfile.TemporaryFile())
            environ = {**plain_environ(Path(empty)), **_ours(), **DETERMINISM, "PYTHONPATH": str(Path(__file__).parents[2])}
            try:
                # -P: the folder that it runs in is no place to import from
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-W", "ignore", "-m", "torch_compat.readers.reference_process", str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._said,
                    cwd=empty,
                    env=environ,
                )
            except OSError as error:
                raise ReaderError(f"{sys.executable} does not start: {error}", code="does-not-start") from error
            stack.callback(self._stop)
            self._unread, self._stage = b"", IDLE
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the process, if there is one."""
        self._stack.close()

    def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
        """Send a request; its reply: ``result``, ``unsupported``, ``crashed`` or ``timed-out``.

        A death that is ``predicted`` is that of the release which the reader stands for; any other is its own.

        Parameters:
            do: ``observe`` or ``run`` (see harness/torch_compat/readers/reference_process.py).

        Raises:
            ReaderError: the process does not start, or says that the request makes no sense.
        """
        fresh = self._process is None
        self.start()
        assert self._process is not None and self._process.stdin is not None  # noqa: PT018, S101 - just started
        self._stage = "load"
        deadline = time.monotonic() + timeout_s + (START_SECONDS if fresh else 0)
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._dead()
        while True:
            line = self._line(deadline)
            if line is None:
                self.close()
                return {"timed-out": {"timeout_s": timeout_s, "stage": self._stage}}
            if not line:
                return self._dead()
            reply: dict[str, Any] = json.loads(line)
            if "started" in reply:
                deadline = time.monotonic() + timeout_s
            elif "stage" in reply:
                self._stage = reply["stage"]
            elif "failed" in reply:
                self._stage = IDLE
                raise ReaderError(f"the reference reader could not carry out {do!r}: {reply['failed']}", code="request-failed")
            else:
                self._stage = IDLE
                return reply

    def _line(self, deadline: float) -> bytes | None:
        """One whole line; nothing at the end of all lines; None when the time is over."""
        assert self._process is not None and self._process.stdout is not None  # noqa: PT018, S101 - there is a request
        fd = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(fd, 1 << 20)
            if not chunk:
                return b""
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _dead(self) -> dict[str, Any]:
        """What is to be said of a process that died."""
        assert self._process is not None  # noqa: S101 - it died of a request
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read()[-2000:].decode("utf-8", "replace")
        self.close()
        death: dict[str, Any] = {"stage": self._stage, "exit": code, "said": said}
        if code < 0:
            death["signal"] = _signal_name(-code)
        return {"crashed": death}

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        if self._stage != IDLE:  # it is busy, and nobody waits for it any more
            process.kill()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _ours() -> dict[str, str]:
    """The variables of this process without which this very Python could not import this very package, and our own."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", VERIFY_OFFSETS) if name in os.environ}
    if site.ENABLE_USER_SITE:  # where the packages may be installed, which its home would no longer say
        kept["PYTHONUSERBASE"] = site.getuserbase()
    return kept


def _signal_name(number: int) -> str:
    import signal  # noqa: PLC0415 - for what died alone

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
