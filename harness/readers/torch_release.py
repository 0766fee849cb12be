"""A real torch release as a reader and writer: starts the worker in its environment and speaks the protocol with it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from packaging.version import InvalidVersion, Version

from harness.errors import ReaderError, WrongVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.readers.environments import Environment

__all__ = ["DETERMINISM", "PROTOCOL", "TorchRelease", "remembered_identity"]

PROTOCOL = 1
IDENTITY = "identity.json"
WORKER = Path(__file__).with_name("worker.py")
# Traced programs hold the file names and lines of the code that called them. The worker runs under a name that is the same on
# every machine and as if it were all on one line, so that neither a path nor a later edit of it gets into an archive.
BOOT = """
import ast, sys
__file__ = sys.argv.pop(1)
with open(__file__, encoding="utf-8") as stream:
    tree = ast.parse(stream.read())
for node in ast.walk(tree):
    if hasattr(node, "lineno"):
        node.lineno = node.end_lineno = 1
        node.col_offset = node.end_col_offset = 0
exec(compile(tree, "worker.py", "exec"))
"""
START_SECONDS = 180  # importing torch from a cold disk takes up to half a minute; a start that hangs must end some day
GRACE_SECONDS = 30  # beyond a request's own limit, which the worker itself keeps
STOP_SECONDS = 10  # for a worker that is no longer needed to end by itself

# One thread, and the same kernels on every x86-64 machine of the last decade: without these, a newer CPU takes wider
# kernels, which round differently in the last place. The fuser of 1.9 to 2.x compiles kernels for the very CPU that it runs on,
# and heeds none of the others: it is off.
FUSER = "PYTORCH_TENSOREXPR"
NEEDS_ITS_FUSER = ("1.11.",)  # without it, the second call of a program that returns strings never ends
DETERMINISM: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "DNNL_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    FUSER: "0",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "",
}


class TorchRelease:
    """A running worker of one environment. Use as a context manager.

    Parameters:
        environment: what to run in.
        seed: 0 or more; two observers of one cell use different ones, so that what hangs on the order of a set, or on
            memory that nobody wrote to, shows (see :func:`_seeded`).

    Raises:
        ReaderError: the worker does not start, or does not speak the protocol.
        WrongVersion: it runs another torch than the environment is for.
    """

    def __init__(self, environment: Environment, *, seed: int = 0) -> None:
        self.environment = environment
        self.seed = seed
        self.identity: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: IO[bytes] | None = None
        self._unread = b""
        self._stack = contextlib.ExitStack()
        self._sent = 0

    @property
    def name(self) -> str:
        """The reader's name, by its exact version: ``torch-1.12.1+cu102``."""
        return f"torch-{self.identity['torch']}"

    def __enter__(self) -> Self:
        self.start()
        try:
            self._check_identity(self._reply(START_SECONDS))
        except BaseException:
            self.close()
            raise
        return self

    def start(self) -> None:
        """Start the process and return at once: importing torch takes seconds, in which others can be asked.

        Entering the context waits for it. Call :meth:`close` where it is never entered.
        """
        if self._process is not None:
            return
        with contextlib.ExitStack() as stack:
            empty = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torch-compat-")))
            self._said = stack.enter_context(tempfile.TemporaryFile())
            read_fd, write_fd = os.pipe()
            self._replies = stack.enter_context(os.fdopen(read_fd, "rb", buffering=0))
            environ = {**self.environment.environ(DETERMINISM), **_seeded(self.seed), "TMPDIR": str(empty)}
            if self.environment.version.startswith(NEEDS_ITS_FUSER):
                del environ[FUSER]
            try:
                self._process = subprocess.Popen(
                    [self.environment.python, "-c", BOOT, WORKER, str(write_fd), self.environment.version],
                    stdin=subprocess.PIPE,
                    stdout=self._said,
                    stderr=self._said,
                    cwd=empty,
                    env=environ,
                    pass_fds=[write_fd],
                )
            except OSError as error:
                raise ReaderError(f"{self.environment.python} does not start: {error}", code="does-not-start") from error
            finally:
                os.close(write_fd)
            stack.callback(self._stop)
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process. Nothing happens where none was started, or it has ended."""
        self._stack.close()

    def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
        """Send a request; its reply: ``result``, ``crashed`` or ``timed-out`` (see harness/readers/worker.py).

        Raises:
            ReaderError: the worker itself died, does not answer, or says that the request could not be carried out.
        """
        return self._ask(do, {"timeout_s": timeout_s, **arguments}, timeout_s + GRACE_SECONDS)

    def request_many(self, do: str, requests: list[dict[str, Any]], *, timeout_s: float = 60) -> list[dict[str, Any]]:
        """Send requests that may share a process for as long as they leave no trace in it; a reply to each, in their order.

        Raises:
            ReaderError: as :meth:`request`, for any of them.
        """
        body = {"requests": [{"do": do, "timeout_s": timeout_s, **one} for one in requests]}
        replies: list[dict[str, Any]] = self._ask("many", body, len(requests) * timeout_s + GRACE_SECONDS)["result"]
        if len(replies) != len(requests):
            raise ReaderError(
                f"the worker of {self.environment.version} gave {len(replies)} replies to {len(requests)} requests",
                code="protocol",
            )
        for reply in replies:
            self._refuse_fault(do, reply)
        return replies

    def _ask(self, do: str, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self._process is not None and self._process.stdin is not None  # noqa: PT018, S101 - within the context
        self._sent += 1
        message = {"id": self._sent, "do": do, **body}
        try:
            self._process.stdin.write(json.dumps(message, allow_nan=False).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._died() from error
        reply = self._reply(seconds)
        if reply.pop("id", None) != self._sent:
            raise ReaderError(
                f"the worker of {self.environment.version} answered another request than it was asked", code="protocol"
            )
        self._refuse_fault(do, reply)
        return reply

    def _refuse_fault(self, do: str, reply: dict[str, Any]) -> None:
        if "failed" in reply:
            fault = reply["failed"]
            raise ReaderError(
                f"torch {self.environment.version} could not carry out {do!r}: {fault['type']}: {fault['message']}\n{fault['trace']}",
                code="request-failed",
            )

    def _reply(self, seconds: float) -> dict[str, Any]:
        line = self._line(seconds)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise ReaderError(
                f"the worker of torch {self.environment.version} does not speak JSON: {line[:80]!r}", code="protocol"
            ) from error
        if not isinstance(reply, dict):
            raise ReaderError(f"the worker of torch {self.environment.version} answered {line[:80]!r}", code="protocol")
        return reply

    def _line(self, seconds: float) -> bytes:
        """One whole line, or the error that says why there is none in this time."""
        assert self._replies is not None  # noqa: S101 - within the context
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ReaderError(
                    f"the worker of torch {self.environment.version} has not answered for {seconds:.0f} s", code="no-answer"
                )
            chunk = os.read(self._replies.fileno(), 1 << 16)
            if not chunk:
                raise self._died()
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _died(self) -> ReaderError:
        self._said.seek(0)
        words = [line for line in self._said.read()[-2000:].decode("utf-8", "replace").splitlines() if line.strip()]
        last = words[-1] if words else "it said nothing"
        return ReaderError(f"the worker of torch {self.environment.version} died: {last}", code="worker-died")

    def _check_identity(self, reply: dict[str, Any]) -> None:
        identity = reply.get("identity")
        if not isinstance(identity, dict) or identity.get("protocol") != PROTOCOL or not isinstance(identity.get("torch"), str):
            raise ReaderError(
                f"the worker of torch {self.environment.version} does not introduce itself as protocol {PROTOCOL} asks",
                code="protocol",
            )
        try:
            public = Version(identity["torch"]).public
        except InvalidVersion:
            public = identity["torch"]
        if public != self.environment.version:
            raise WrongVersion(
                f"torch {identity['torch']} answered, expected {self.environment.version}",
                where=str(self.environment.prefix),
                hint=f"torch-compat readers remove torch-{self.environment.version}, then build it again",
            )
        described = self.environment.description
        if described.get("torch", identity["torch"]) != identity["torch"]:
            raise WrongVersion(
                f"torch {identity['torch']} answered, but {described['torch']} was installed",
                where=str(self.environment.prefix),
                hint=f"torch-compat readers remove torch-{self.environment.version}, then build it again",
            )
        self.identity = {
            **{key: value for key, value in identity.items() if key != "protocol"},
            "wheel_sha256": described.get("wheel_sha256", ""),
            "cuda": described.get("cuda", ""),
        }
        _remember_identity(self.environment, self.identity)

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _seeded(seed: int) -> dict[str, str]:
    """Variables that make a process repeatable where the release itself is not, and different from one of another seed.

    PYTHONHASHSEED orders sets. MALLOC_PERTURB_ lets glibc fill memory with a byte when it is handed out or given back:
    a release that reads what nobody wrote then does the same each time for one seed, and something else for another.
    """
    return {"PYTHONHASHSEED": str(seed), "MALLOC_PERTURB_": str(0x5A + 0x11 * seed)}


# ------------------------------------------------------------------------------------------------- remembered identities
# Importing torch takes seconds, and a replay that has nothing new to ask would import it just to hear who answers.


def remembered_identity(environment: Environment) -> dict[str, Any] | None:
    """The identity with which this environment last introduced itself, on this machine, to this worker; None if unknown."""
    try:
        remembered = json.loads((environment.prefix / IDENTITY).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(remembered, dict) or remembered.get("seal") != _seal(environment):
        return None
    identity = remembered.get("identity")
    return identity if isinstance(identity, dict) else None


def _remember_identity(environment: Environment, identity: dict[str, Any]) -> None:
    path = environment.prefix / IDENTITY
    partial = path.with_name(f".{IDENTITY}.{os.getpid()}.{id(identity)}")
    with contextlib.suppress(OSError):  # a cache that may only be read costs the time, nothing else
        partial.write_text(json.dumps({"seal": _seal(environment), "identity": identity}), encoding="ascii")
        partial.replace(path)


def _seal(environment: Environment) -> str:
    """Hash of everything that an identity can depend on."""
    processor = [line for line in _processor().splitlines() if line.startswith(("model name", "flags"))]
    parts = [
        WORKER.read_text(encoding="utf-8"),
        json.dumps(dict(environment.description), sort_keys=True),
        json.dumps(dict(DETERMINISM), sort_keys=True),
        *sorted(set(processor)),
        *(f"{path.stat().st_mtime_ns}" for path in sorted(environment.prefix.glob("lib/python*/site-packages/torch/version.py"))),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _processor() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
