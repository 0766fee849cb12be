"""A real torch release as a reader and writer: starts the worker in its environment and communicates with it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from torch_compat.archive_files import copy_archive, is_archive
from torch_compat.errors import BuildError, CorpusError, ReaderError, WrongVersion
from torch_compat.inside import script
from torch_compat.readers.builds import BUILD, is_build
from torch_compat.readers.isolation import isolation, launch, launcher_environ, refuse_unless_trusted, trust_nothing, widened
from torch_compat.releases.release import public, stated
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.readers.environments import Environment
    from torch_compat.readers.isolation import Trust

__all__ = ["DETERMINISM", "PROTOCOL", "TorchRelease", "remembered_identity"]

PROTOCOL = 1
IDENTITY = "identity.json"
WORKER = script("worker")
FILES = frozenset({"path", "probe", "recipe", "script"})  # the fields of a request that name a file
LOADS = frozenset({"observe"})  # the requests in which that file is an archive
# Traced programs contain the file names and lines of the code that called them. The worker runs under the same file name on every machine
# and as if all its code were on one line, so that neither a path nor a later edit of it gets into an archive.
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
START_SECONDS = 180  # importing torch from a cold disk takes up to half a minute; bounds a start that hangs
GRACE_SECONDS = 30  # beyond a request's own limit, which the worker itself enforces
STOP_SECONDS = 10  # for a worker that is no longer needed to exit by itself

# One thread, and the same kernels on every x86-64 machine of the last decade: without these, a newer CPU uses wider kernels, which round
# differently in the last place. The fuser of 1.9 to 2.x compiles kernels for the CPU it runs on and ignores the other variables, so it is
# off.
FUSER = "PYTORCH_TENSOREXPR"
NEEDS_ITS_FUSER = ("1.11.",)  # without it, the second call of a program that returns strings never ends
DETERMINISM: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "DNNL_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    FUSER: "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # 2.3 starts a process pool on import, which needs semaphores that a fenced process does not have
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "",
}


class TorchRelease:
    """A running worker of one environment. Use as a context manager.

    The process inherits none of the user's variables, has an empty home folder, and has no access to the network and to files that it does
    not need, as far as the machine supports this (see :attr:`isolation`). Files named in a request are copied to where the process can read
    them. The process ends when the thread that started it does.

    Parameters:
        environment: the environment to run in.
        seed: 0 or more; two observers of one cell use different seeds, to reveal dependence on set order or uninitialized memory (see
            :func:`_seeded`).
        reads: files and folders that the process may read in place.
        trust: which archives it may load if it is not isolated; by default only those that it wrote itself.

    Raises:
        ReaderError: the worker does not start, or does not follow the protocol.
        WrongVersion: it runs a different torch than the environment is for.
    """

    def __init__(
        self, environment: Environment, *, seed: int = 0, reads: Iterable[Path] = (), trust: Trust = trust_nothing
    ) -> None:
        self.environment = environment
        self.seed = seed
        self.reads = tuple(path.resolve() for path in reads)
        self.trust = trust
        self.isolation = widened(isolation(), [*self.reads, *environment.folders])
        self._written: set[Path] = set()
        self.identity: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: IO[bytes] | None = None
        self._unread = b""
        self._stack = contextlib.ExitStack()
        self._sent = 0

    @property
    def name(self) -> str:
        """The reader's name with its exact version: ``torch-1.12.1+cu102``."""
        return f"torch-{self.identity['torch']}"

    def _stated(self) -> str:
        """The version that the worker must find, as torch writes it: a build may omit a zero that the release's name has."""
        return public(str(self.environment.description.get("torch", self.environment.version)))

    def __enter__(self) -> Self:
        self.start()
        try:
            self._check_identity(self._reply(START_SECONDS))
        except BaseException:
            self.close()
            raise
        return self

    def start(self) -> None:
        """Start the process and return at once: importing torch takes seconds, during which other readers can be queried.

        Entering the context waits for it. Call :meth:`close` if the context is never entered.
        """
        if self._process is not None:
            return
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torch-compat-"))).resolve()
            self._given, self._scratch = folder / "given", folder / "scratch"
            for part in (self._given, self._scratch):
                part.mkdir()
            self._said = stack.enter_context(tempfile.TemporaryFile())
            read_fd, write_fd = os.pipe()
            self._replies = stack.enter_context(os.fdopen(read_fd, "rb", buffering=0))
            environ = {**self.environment.environ(DETERMINISM, scratch=self._scratch), **_seeded(self.seed)}
            if self.environment.version.startswith(NEEDS_ITS_FUSER):
                del environ[FUSER]
            command = launch(
                [self.environment.python, "-c", BOOT, WORKER, str(write_fd), self._stated()],
                fence=self.isolation,
                reads=[*self.environment.folders, *self.reads, WORKER],
                writes=[self._scratch, self._given],  # torch also opens files mapped as shared for writing; these are copies
                reply=write_fd,
            )
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=self._said,
                    stderr=self._said,
                    cwd=self._scratch,
                    env=launcher_environ(environ),
                    pass_fds=[write_fd],
                    start_new_session=True,  # without a terminal: nothing can prompt the user
                )
            except OSError as error:
                raise ReaderError(f"{command[0]} failed to start: {error}", code="does-not-start") from error
            finally:
                os.close(write_fd)
            stack.callback(self._stop)
            self._stack = stack.pop_all()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.kill()  # its pending work is not needed; outside the terminal's session, it did not receive the interrupt
        self.close()

    def close(self) -> None:
        """End the process. Does nothing if none was started or it has ended."""
        self._stack.close()

    def kill(self) -> None:
        """Kill the process and all its descendants at once; a caller waiting for a reply gets a ReaderError. Safe from any thread."""
        if self._process is not None and self._process.returncode is None:  # otherwise its pid may have been reused
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def request(self, do: str, *, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its reply: ``result``, ``crashed`` or ``timed-out`` (see harness/torch_compat/inside/worker.py).

        Raises:
            ReaderError: the worker itself died, does not answer, or reports that it could not carry out the request.
            Untrusted: the request loads an archive that is not trusted, and the worker is not isolated.
        """
        with contextlib.ExitStack() as stack:
            handed = _Handed(self._given, self._scratch, stack)
            body = self._handed(handed, {"timeout_s": timeout_s, **arguments}, loads=do in LOADS, writes=do == "produce")
            reply = handed.named(self._ask(do, body, timeout_s + GRACE_SECONDS))
            if do == "produce" and handed.take(Path(arguments["path"])):
                self._written.add(Path(arguments["path"]))
        return reply

    def request_many(self, do: str, requests: list[dict[str, Any]], *, timeout_s: float = 60) -> list[dict[str, Any]]:
        """Send requests that may share a process as long as they do not change its state; return the replies in order.

        Raises:
            ReaderError, Untrusted: as :meth:`request`, for any of them.
        """
        with contextlib.ExitStack() as stack:
            handed = _Handed(self._given, self._scratch, stack)
            asked = [
                self._handed(handed, {"do": do, "timeout_s": timeout_s, **item}, loads=True, writes=False) for item in requests
            ]
            reply = self._ask("many", {"requests": asked}, len(requests) * timeout_s + GRACE_SECONDS)
            replies: list[dict[str, Any]] = handed.named(reply)["result"]
        if len(replies) != len(requests):
            raise ReaderError(
                f"the worker of {self.environment.version} sent {count_of(len(replies), 'reply', 'replies')} to {count_of(len(requests), 'request')}",
                code="protocol",
            )
        for reply in replies:
            self._refuse_fault(do, reply)
        return replies

    def _handed(self, handed: _Handed, body: dict[str, Any], *, loads: bool, writes: bool) -> dict[str, Any]:
        """Return a request with the file names that the worker sees."""
        for key in FILES & body.keys():
            path = Path(body[key])
            if writes and key == "path":
                body[key] = handed.empty(path)
                continue
            if loads and path not in self._written:
                refuse_unless_trusted(path, self.isolation, self.trust)
            if not any(path.resolve().is_relative_to(folder) for folder in self.reads):
                body[key] = handed.copy(path)
        return body

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
            raise ReaderError(f"the worker for torch {self.environment.version} answered a different request", code="protocol")
        self._refuse_fault(do, reply)
        return reply

    def _refuse_fault(self, do: str, reply: dict[str, Any]) -> None:
        if "failed" in reply:
            fault = reply["failed"]
            raise ReaderError(
                f"torch {self.environment.version} failed to run {do!r}: {fault['type']}: {fault['message']}\n{fault['trace']}",
                code="request-failed",
            )

    def _reply(self, seconds: float) -> dict[str, Any]:
        line = self._line(seconds)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise ReaderError(
                f"the worker for torch {self.environment.version} sent a reply that is not JSON: {line[:80]!r}", code="protocol"
            ) from error
        if isinstance(reply, dict) and isinstance(reply.get("launch"), str):  # from the launcher: the worker did not start
            raise ReaderError(f"{self.environment.python} failed to start: {reply['launch']}", code="does-not-start")
        if not isinstance(reply, dict):
            raise ReaderError(f"the worker of torch {self.environment.version} answered {line[:80]!r}", code="protocol")
        return reply

    def _line(self, seconds: float) -> bytes:
        """Return one whole line, or raise the error that says why there is none within this time."""
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
        last = words[-1] if words else "it printed nothing"
        return ReaderError(f"the worker of torch {self.environment.version} died: {last}", code="worker-died")

    def _check_identity(self, reply: dict[str, Any]) -> None:
        identity = reply.get("identity")
        if not isinstance(identity, dict) or identity.get("protocol") != PROTOCOL or not isinstance(identity.get("torch"), str):
            raise ReaderError(
                f"the worker of torch {self.environment.version} does not identify itself as protocol {PROTOCOL} requires",
                code="protocol",
            )
        answered = stated(identity["torch"])
        described = self.environment.description
        if is_build(self.environment):
            if identity["torch"] != described["torch"]:
                raise BuildError(
                    f"the installed torch changed during the run: expected {described['torch']}, got {identity['torch']}",
                    where=str(self.environment.python),
                    hint="do not install or compile anything there during the run",
                    code="build-changed",
                )
        elif answered is None or answered.public != self.environment.version:
            raise WrongVersion(
                f"expected torch {self.environment.version}, got {identity['torch']}",
                where=str(self.environment.prefix),
                hint=f"torch-compat readers remove torch-{self.environment.version}, then build it again",
            )
        if described.get("torch", identity["torch"]) != identity["torch"]:
            raise WrongVersion(
                f"expected torch {described['torch']}, which was installed, got {identity['torch']}",
                where=str(self.environment.prefix),
                hint=f"torch-compat readers remove torch-{self.environment.version}, then build it again",
            )
        self.identity = {
            **{key: value for key, value in identity.items() if key != "protocol"},
            "wheel_sha256": described.get("wheel_sha256", ""),
            "cuda": described.get("cuda", ""),
            **({BUILD: described[BUILD]} if is_build(self.environment) else {}),
        }
        _remember_identity(self.environment, self.identity)

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        if process.returncode is None:
            deadline, pause = time.monotonic() + STOP_SECONDS, 0.001
            # not yet reaped, so that its pid still identifies its process group: processes that an archive started must not outlive it
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None and time.monotonic() < deadline:
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
            self.kill()
            process.wait()


class _Handed:
    """Files of one request at paths that the worker can read or write, for the duration of the request."""

    def __init__(self, given: Path, scratch: Path, stack: contextlib.ExitStack) -> None:
        self._given, self._scratch, self._stack = given, scratch, stack
        self._names: dict[str, str] = {}
        self._empty: Path | None = None

    def _folder(self, parent: Path, path: Path) -> Path:
        folder = Path(tempfile.mkdtemp(dir=parent))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._names[json.dumps(str(folder))[1:-1]] = json.dumps(str(path.parent))[1:-1]
        return folder

    def copy(self, path: Path) -> str:
        """Copy a file, or an archive that is a directory, under its own name. If it does not exist, the worker reports the error."""
        if not path.exists():
            return str(path)
        copy = self._folder(self._given, path) / path.name
        copy_archive(path, copy)
        return str(copy)

    def empty(self, path: Path) -> str:
        """Return a path to write a file of this name to."""
        self._empty = self._folder(self._scratch, path)
        return str(self._empty / path.name)

    def take(self, path: Path) -> bool:
        """Copy what was written to the requested path; return whether there was an archive. Links to elsewhere do not count."""
        assert self._empty is not None  # noqa: S101 - a path was given
        written = self._empty / path.name
        if not is_archive(written):
            return False
        try:
            copy_archive(written, path, follow=False)
        except (CorpusError, OSError):
            return False
        return True

    def named(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return a reply with the original names of the files' folders."""
        text = json.dumps(reply)
        if str(self._given.parent) not in text:
            return reply
        for name, own in self._names.items():
            text = text.replace(name, own)
        renamed: dict[str, Any] = json.loads(text)
        return renamed


def _seeded(seed: int) -> dict[str, str]:
    """Return variables that make a process deterministic even if the release is not, and different for each seed.

    PYTHONHASHSEED determines set order. MALLOC_PERTURB_ makes glibc fill memory with a byte when it is allocated or freed: a release that
    reads uninitialized memory then behaves the same every time for one seed, and differently for another.
    """
    return {"PYTHONHASHSEED": str(seed), "MALLOC_PERTURB_": str(0x5A + 0x11 * seed)}


# ------------------------------------------------------------------------------------------------- remembered identities
# Importing torch takes seconds, and a replay with no new requests would import it only to get the reader's identity.


def remembered_identity(environment: Environment) -> dict[str, Any] | None:
    """Return the identity that this environment last reported, on this machine and to this worker; None if unknown."""
    if is_build(environment):
        return None  # it may have changed since, and nothing is written into it
    try:
        remembered = json.loads((environment.prefix / IDENTITY).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(remembered, dict) or remembered.get("seal") != _seal(environment):
        return None
    identity = remembered.get("identity")
    return identity if isinstance(identity, dict) else None


def _remember_identity(environment: Environment, identity: dict[str, Any]) -> None:
    if is_build(environment):
        return
    path = environment.prefix / IDENTITY
    partial = path.with_name(f".{IDENTITY}.{os.getpid()}.{id(identity)}")
    with contextlib.suppress(OSError):  # a read-only cache only costs time
        partial.write_text(json.dumps({"seal": _seal(environment), "identity": identity}), encoding="ascii")
        partial.replace(path)


def _seal(environment: Environment) -> str:
    """Return a hash of everything that an identity can depend on."""
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
