"""Builds of torch that are on no package index: a user's Python with torch installed, which reads and writes like a release.

A build is named ``python:PATH``. Its version is the one that its torch reports. Its date is the one in the version of a nightly, else the
one that the build reports, else the date of its file ``torch/version.py``. All its files are hashed before use and checked again
afterwards: results of two builds of one version are never mixed, and the results of a build that changed in the meantime are discarded.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch_compat.errors import BuildError, ReaderError, UsageError
from torch_compat.readers.environments import Environment
from torch_compat.readers.isolation import Isolation, isolation, launch, launcher_environ, widened
from torch_compat.releases.release import Release, stated
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["BUILD", "KINDS", "Build", "fenced", "is_build", "python_build", "python_of", "unchanged", "variant_of"]

KINDS: Final = ("python", "wheel", "nightly")
BUILD: Final = "build"
"""The key for the digest of a build, in the description of its environment and in the identity of its reader."""
SECONDS: Final = 180  # importing a debug build from a cold disk takes more than a minute
CLOCK: Final = dt.timedelta(
    days=1
)  # time zones: a nightly is named after the date of its index, its files are dated by another machine
MOST_SAID: Final = 1 << 16
MOST_FILES: Final = 200_000  # torch has some 15,000

_LOCATE: Final = """
import importlib.util, json, os, sys
spec = importlib.util.find_spec("torch")
print(json.dumps({
    "prefixes": [sys.prefix, sys.base_prefix],
    "path": [os.path.abspath(entry) for entry in sys.path if entry and os.path.exists(entry)],
    "torch": spec.origin if spec is not None else None,
}))
"""
_ASK: Final = """
import json, sys
import torch
try:
    import numpy
except ImportError:
    numpy = None
version = getattr(torch, "version", None)
with open(sys.argv[1], "w") as stream:
    json.dump({
        "torch": str(torch.__version__),
        "git_revision": getattr(version, "git_version", None),
        "cuda": getattr(version, "cuda", None),
        "hip": getattr(version, "hip", None),
        "xpu": getattr(version, "xpu", None),
        "debug": getattr(version, "debug", None),
        "built": getattr(version, "build_date", None),
        "file": torch.__file__,
        "numpy": numpy is not None,
    }, stream)
"""


@dataclass(frozen=True)
class Build:
    """A build that can be queried.

    Attributes:
        name: as the user named it: ``python:venv/bin/python``.
        release: the version that its torch reports, with its local part.
        day, day_from: its date, and the source of the date: ``version``, ``build`` or ``file``.
        variant: ``cpu``, ``cuda 13.2``, ``rocm 6.4`` or ``xpu 2025``.
        folder: the folder of its torch.
        digest: SHA-256, in hex, of the names and contents of all files of its torch.
        environment: the environment it runs in.
    """

    name: str
    release: Release
    day: dt.date
    day_from: str
    variant: str
    folder: Path
    digest: str
    environment: Environment
    _stamps: str

    @property
    def reader(self) -> str:
        """The name of this build as a reader: ``torch-2.16.0.dev20261120+cpu``."""
        return f"torch-{self.release}"

    def as_json(self) -> dict[str, Any]:
        """The fields that identify it, for human and machine-readable output."""
        return {
            "name": self.name,
            "torch": str(self.release),
            "line": self.release.line,
            "day": self.day.isoformat(),
            "day_from": self.day_from,
            "variant": self.variant,
            "git": self.environment.description.get("git_revision"),
            "python": self.environment.description.get("python"),
            "digest": self.digest,
        }


def is_build(environment: Environment) -> bool:
    """Whether an environment is a build of the user's rather than one created here for a release."""
    return BUILD in environment.description


def python_of(path: Path) -> Environment:
    """Return a user's Python that has torch, as an environment whose release is not known yet.

    Raises:
        UsageError: the program does not exist.
    """
    if not (path.is_file() and os.access(path, os.X_OK)):
        result = "is a directory" if path.is_dir() else "is not executable" if path.exists() else "program not found"
        hint = "pass the path of a Python executable that can import torch, such as python:venv/bin/python"
        raise UsageError(result, where=str(path), hint=hint, code="no-python")
    python = path.absolute()  # not resolved: the location of its link identifies a virtual environment
    return Environment("", python.parent.parent, python, {})


def python_build(path: Path, *, name: str | None = None, today: dt.date, built: dt.date | None = None) -> Build:
    """Return the build that is installed in a Python.

    Parameters:
        name: its name in messages; ``python:PATH`` by default.
        today: a build cannot be dated later.
        built: the date on which its files were packed, if known.

    Raises:
        UsageError: the program does not exist.
        BuildError: it has no torch, its torch cannot be imported, or reports an impossible version or date.
    """
    name = name or f"python:{path}"
    bare = python_of(path)
    located = _located(bare, name)
    folder = Path(located["torch"]).absolute().parent
    reads = tuple(dict.fromkeys(Path(prefix) for prefix in (*located["prefixes"], *located["path"], str(folder))))
    environment = Environment("", bare.prefix, bare.python, {}, reads)
    message = _asked(environment, name)
    release = stated(message["torch"])
    if release is None:
        raise BuildError(
            f"its torch reports the version {message['torch']!r:.80}, expected one such as 2.16.0.dev20261120+cpu", where=name
        )
    if Path(message["file"]).resolve().parent != folder.resolve():
        raise BuildError(f"its torch is in {folder} but was imported from {message['file']}", where=name, code="build-changed")
    stamps, digest = _stamps(folder), _digest(folder)
    day, day_from = _day(release, message, folder, name, today, built)
    description = {
        "torch": message["torch"],
        "git_revision": message["git_revision"],
        "python": message["python"],
        "cuda": variant_of(message),
        "wheel_sha256": "",
        BUILD: digest,
    }
    whole = Environment(release.public, bare.prefix, bare.python, description, reads)
    return Build(name, release, day, day_from, variant_of(message), folder, digest, whole, stamps)


def unchanged(build: Build) -> None:
    """Check that a build has not changed since it was identified.

    Raises:
        BuildError: a file of its torch was added, removed or written in the meantime.
    """
    if _stamps(build.folder) != build._stamps and _digest(build.folder) != build.digest:  # noqa: SLF001 - a function of the same module
        raise BuildError(
            f"{build.reader} changed while in use; discarding its results",
            where=build.name,
            hint=f"do not install or compile anything in {build.folder} during the run, then rerun the same command",
            code="build-changed",
        )


def variant_of(message: dict[str, Any]) -> str:
    """Return what a build was compiled for, from what it reports about itself."""
    for key, variant in (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu")):
        if message.get(key):
            return f"{variant} {message[key]}"
    return "cpu"


def _day(
    release: Release, message: dict[str, Any], folder: Path, name: str, today: dt.date, built: dt.date | None
) -> tuple[dt.date, str]:
    """Return the date of a build and the source of the date; reject an impossible date.

    Raises:
        BuildError: its build date is malformed, or the date in its version is in the future, later than its files, or differs from the date
            on which it was packed.
    """
    version = folder / "version.py"
    written = dt.datetime.fromtimestamp((version if version.is_file() else folder / "__init__.py").stat().st_mtime, dt.UTC).date()
    if release.day is None:
        own = message.get("built")
        try:
            return (dt.date.fromisoformat(str(own)[:10]), "build") if own else (built, "build") if built else (written, "file")
        except ValueError:
            raise BuildError(
                f"its torch.version.build_date is {own!r:.40}, expected a date such as 2026-11-20", where=name
            ) from None
    wrong = (
        f"that date is in the future; today is {today}"
        if release.day > today + CLOCK
        else f"its files were packed on {built}"
        if built is not None and abs(release.day - built) > CLOCK
        else f"its files are older, dated {written}"
        if written < release.day - CLOCK
        else ""
    )
    if wrong:
        raise BuildError(
            f"torch {release} reports the date {release.day}, but {wrong}",
            where=name,
            hint="the forward compatibility window starts on that date: the version must contain the build date",
            code="build-day",
        )
    return release.day, "version"


def _located(environment: Environment, name: str) -> dict[str, Any]:
    """Return where a Python finds its modules, without importing torch."""
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        place = Path(scratch).resolve()
        try:
            done = subprocess.run(
                [environment.python, "-c", _LOCATE],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=place, timeout=SECONDS,
                env=environment.environ({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}, scratch=place), check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"failed to start: {error}", where=name, hint="pass the path of a Python executable") from error
    try:
        located = json.loads(done.stdout.strip().splitlines()[-1])
        assert isinstance(located["path"], list) and isinstance(located["prefixes"], list)  # noqa: PT018, S101 - as below
    except (ValueError, IndexError, KeyError, TypeError, AssertionError):
        message = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
        raise BuildError("is not a Python interpreter: it did not report its module paths", where=name, hint=message[0]) from None
    if not located["torch"]:
        raise BuildError(
            "this Python has no torch",
            where=name,
            hint="install torch there, or use another Python; PYTHONPATH and user site-packages are ignored",
            code="build-without-torch",
        )
    return dict(located)


def _asked(environment: Environment, name: str) -> dict[str, Any]:
    """Return what the torch of a Python reports about itself.

    Raises:
        BuildError: it cannot be imported.
    """
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as folder:
        place = Path(folder).resolve()
        target = place / "said.json"
        variables = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "CUDA_VISIBLE_DEVICES": ""}
        fence = widened(isolation(), environment.folders)
        try:
            done, launched = fenced(environment, fence, place, [environment.python, "-c", _ASK, target], variables, SECONDS)
        except ReaderError as error:
            raise BuildError(error.message, where=name) from error
        if launched:
            raise BuildError(f"failed to start: {launched}", where=name)
        try:
            if target.stat().st_size > MOST_SAID:
                raise BuildError(
                    f"its torch printed {count_of(target.stat().st_size, 'byte')} of build information, expected a few hundred",
                    where=name,
                )
            messages: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            words = done.stderr.strip().splitlines()[-1:] or [f"it exited with status {done.returncode}"]
            raise BuildError("its torch cannot be imported", where=name, hint=words[0], code="build-not-imported") from None
    for key in ("torch", "file"):
        if not isinstance(messages.get(key), str):
            raise BuildError(f"its torch does not report {key!r}", where=name)
    if messages.get("numpy") is not True:
        raise BuildError(
            "this Python has no numpy, which torch-compat needs to read tensors and archives",
            where=name,
            hint=f"{environment.python} -m pip install numpy",
            code="build-without-numpy",
        )
    messages["git_revision"] = messages["git_revision"] if isinstance(messages.get("git_revision"), str) else None
    python = _version_of(environment)
    return {**messages, "python": python}


def _version_of(environment: Environment) -> str:
    done = subprocess.run(
        [environment.python, "-c", "import platform; print(platform.python_version())"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, env=environment.environ(), check=False,
    )  # fmt: skip
    return done.stdout.strip()


def fenced(
    environment: Environment,
    fence: Isolation,
    place: Path,
    command: Sequence[str | Path],
    variables: dict[str, str] | None = None,
    seconds: int = SECONDS,
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a command of an environment inside a fence to completion; also return why it did not start, empty if it did.

    Parameters:
        place: its working directory, the only folder it may write to.

    Raises:
        ReaderError: it cannot be started, or takes too long.
    """
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd) as replies:
        try:
            line = launch(command, fence=fence, reads=environment.folders, writes=[place], reply=write_fd)
            done = subprocess.run(
                line,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=place, timeout=seconds,
                env=launcher_environ(environment.environ(variables, scratch=place)), pass_fds=[write_fd], check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ReaderError(f"{command[0]}: {error}", code="does-not-start") from error
        finally:
            os.close(write_fd)
        reply = replies.readline()
    return done, str(json.loads(reply)["launch"]) if reply.strip() else ""


# -------------------------------------------------------------------------------------------------------------- its files


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file of a torch with its relative name, in order, except Python's caches."""
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(item for item in folders if item != "__pycache__")
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file():
                count += 1
                if count > MOST_FILES:
                    raise BuildError(f"has more than {MOST_FILES} files: this is not a torch package", where=str(folder))
                yield path.relative_to(folder).as_posix(), path


def _stamps(folder: Path) -> str:
    """Digest of the names, sizes and times of all files: it changes when a file does, without reading any file."""
    result = hashlib.sha256()
    for name, path in _files(folder):
        status = path.stat()
        result.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return result.hexdigest()


def _digest(folder: Path) -> str:
    """Digest of the names and contents of all files."""
    result = hashlib.sha256()
    for name, path in _files(folder):
        with path.open("rb", buffering=0) as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        result.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))
    return result.hexdigest()
