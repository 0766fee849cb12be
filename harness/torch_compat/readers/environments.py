"""Environments of real torch releases, built once in a cache folder outside the repository and reused by every later run.

An environment exists if its ``environment.json`` does: that file is written last, and a folder without it is left over from a failed build.
Virtual environments cannot be moved, so each is built in its final location, and removed completely if any step fails.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import platformdirs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torch_compat.errors import EnvironmentUnavailable, UsageError, WrongVersion
from torch_compat.readers.commands import Commands, Run, clean_environ, run_command
from torch_compat.readers.cuda_stubs import build_stubs, find_gap, need_tool
from torch_compat.readers.interpreters import Interpreter, find_interpreters, fitting
from torch_compat.readers.isolation import plain_environ
from torch_compat.releases.release import Release, stated

if TYPE_CHECKING:
    from torch_compat.policy import CalendarRelease

__all__ = [
    "ASK_TARGET",
    "NEEDED_BYTES",
    "Cuda",
    "Environment",
    "EnvironmentBuild",
    "Environments",
    "cache_folder",
    "remove_environment",
]

Cuda = Literal["stub", "real"]
Progress = Callable[[str], None]

GB = 10**9
NEEDED_BYTES: Mapping[Cuda, int] = {
    "stub": 6 * GB,  # up to 1 GB of wheel, 2 GB installed, and an old pip unpacks into a second place before it copies
    "real": 12 * GB,  # the CUDA packages are up to 3 GB of wheels and 5 GB installed in addition
}

STATE = "environment.json"
SCHEMA_VERSION = 1

_SMALL_AND_REAL = re.compile(r"nvidia-cuda-(runtime|cupti)(-cu\d+)?")
"""Libraries of a few megabytes that are also called on the CPU (torch queries devices, and its profiler registers itself):
they are never stubbed."""

_GATHERED = "cuda-toolkit"
"""An empty package whose extras pin the CUDA libraries for releases from 2026 on."""

_COMPILERS = frozenset({"pytorch-triton", "triton"})
"""Packages that compile for GPUs; they contain no library that torch loads."""

ASK_TARGET = """
import json, os, platform, sys, sysconfig
info = sys.version_info
print(json.dumps({
    "site": sysconfig.get_paths()["platlib"],
    "markers": {
        "implementation_name": sys.implementation.name,
        "implementation_version": platform.python_version(),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    },
}))
"""

_VERIFY = """
import json, platform
import torch
total = torch.ones(2).sum().item()
import numpy
shared = torch.from_numpy(numpy.arange(3.0)).sum().item()
print()
print(json.dumps({
    "torch": str(torch.__version__),
    "git_revision": getattr(torch.version, "git_version", None),
    "python": platform.python_version(),
    "numpy": numpy.__version__,
    "sums": [total, shared],
}))
"""


@dataclass(frozen=True)
class Environment:
    """One built environment.

    Attributes:
        version: the release's public version, such as ``1.5.1``.
        prefix: its root folder.
        python: the executable that imports this torch.
        description: the contents of ``environment.json``: ``torch`` (exact, with the local part), ``git_revision`` (None for the oldest
            releases, which do not report it), ``python``, ``numpy``, ``wheel`` and ``wheel_sha256``, ``cuda`` (``none``: nothing was
            missing; ``stub``; ``real``), ``stubs`` (file names), ``built`` (UTC day), ``size`` (bytes), ``seconds`` (build time).
        reads: additional folders that its processes have to read, if it is a build of the user's (see
            :mod:`torch_compat.readers.builds`); nothing is ever written into such an environment.
    """

    version: str
    prefix: Path
    python: Path
    description: Mapping[str, Any]
    reads: tuple[Path, ...] = ()

    def environ(self, more: Mapping[str, str] | None = None, *, scratch: Path | None = None) -> dict[str, str]:
        """Return the environment variables for a process of this environment. None are inherited from the user.

        Parameters:
            more: additional variables.
            scratch: its home folder (see :func:`torch_compat.readers.isolation.plain_environ`).
        """
        return plain_environ(scratch) | dict(more or {})

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that its processes must be able to read: its own, and that of the Python it was created with."""
        programs = {self.python.parent.resolve(), self.python.resolve().parent}
        results = {
            self.prefix.resolve(),
            *(folder.parent if folder.name == "bin" else folder for folder in programs),
            *(folder.resolve() for folder in self.reads),
        }
        try:
            settings = (self.prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            settings = []
        for line in settings:
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip():
                base = Path(value.strip())  # the bin folder of that Python, possibly under another name
                results |= {base.parent, base.resolve().parent}
        return tuple(sorted(results))


class Environments:
    """All environments of one cache folder.

    Parameters:
        root: the cache folder; ``$TORCH_COMPAT_CACHE`` or the user's cache folder by default.
        run: how commands are run.
        interpreters: returns the available Pythons; by default, searched for when first needed.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        run: Run = run_command,
        interpreters: Callable[[], tuple[Interpreter, ...]] = find_interpreters,
    ) -> None:
        self.root = (root or cache_folder()).absolute()
        self._run = run
        self._interpreters = interpreters

    def get(self, version: str) -> Environment | None:
        """Return the environment of a release, if it has been built and its Python still exists."""
        prefix = self._prefix(version)
        python = prefix / "bin" / "python"
        try:
            state = json.loads((prefix / STATE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(state, dict) or state.pop("schema_version", None) != SCHEMA_VERSION or not python.exists():
            return None
        return Environment(version, prefix, python, state)

    def need(self, version: str, *, otherwise: str = "") -> Environment:
        """Return the environment of a release, or raise.

        Parameters:
            otherwise: what the user can do instead of building it.

        Raises:
            EnvironmentUnavailable: it is not built here.
        """
        result = self.get(version)
        if result is None:
            hint = f"torch-compat readers build torch-{version}" + (f"; {otherwise}" if otherwise else "")
            raise EnvironmentUnavailable(f"torch-{version} is not built here", hint=hint, code="not-built")
        return result

    def all(self) -> tuple[Environment, ...]:
        """Every environment that has been built, oldest release first."""
        names = [path.parent.name for path in self.root.glob(f"readers/torch-*/{STATE}")]
        results = [self.get(name.removeprefix("torch-")) for name in names]
        return tuple(sorted((item for item in results if item), key=lambda item: Release(item.version)))

    def build(self, release: CalendarRelease, *, cuda: Cuda = "stub", progress: Progress = lambda _step: None) -> Environment:
        """Return the environment of a release: the existing one, else a new one.

        Parameters:
            release: its calendar entry.
            cuda: whether the CUDA libraries that its wheel lacks are replaced by stubs or installed.
            progress: called with a short description of each step.

        Raises:
            EnvironmentUnavailable: it cannot be built here; only the log is kept.
            WrongVersion: a torch other than the requested one was installed; only the log is kept.
            UsageError: it exists with stubs, and the real libraries are requested.
        """
        if not (there := self.get(release.version)):
            interpreter = fitting(release, self._interpreters())
            self._refuse_if_short(release, cuda)
            if release.install == "stubs":
                need_tool("readelf", package="binutils")  # fail before a gigabyte is downloaded
            with self._locked(release.version, wait=progress):
                there = self.get(release.version) or self._build(release, interpreter, cuda, progress)
        if cuda == "real" and there.description["cuda"] == "stub":
            raise UsageError(
                f"torch {release.version} is built with stubs for its CUDA libraries",
                hint=f"remove it first: torch-compat readers remove torch-{release.version}",
            )
        return there

    def remove(self, version: str) -> int:
        """Remove a release's environment, or the remains of one; return the number of bytes freed, 0 if there was none.

        Raises:
            EnvironmentUnavailable: it is currently being built.
        """
        prefix = self._prefix(version)
        if not prefix.exists():
            return 0
        with self._locked(version, wait=None):
            freed = _size(prefix)
            remove_environment(prefix)
        return freed

    def log(self, version: str) -> Path:
        """Return the path of the log with all tool output from the last build of this release."""
        return self.root / "logs" / f"torch-{version}.log"

    def _prefix(self, version: str) -> Path:
        if not re.fullmatch(r"\d[0-9A-Za-z.]*", version):
            raise UsageError(f"{version!r} is not the version of a release", hint="use a version such as 1.5.1")
        return self.root / "readers" / f"torch-{version}"

    def _refuse_if_short(self, release: CalendarRelease, cuda: Cuda) -> None:
        existing = next(folder for folder in (self.root, *self.root.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if free < NEEDED_BYTES[cuda]:
            raise EnvironmentUnavailable(
                f"building torch {release.version} needs {NEEDED_BYTES[cuda] / GB:.0f} GB of disk space; {free / GB:.1f} GB are free",
                where=str(self.root),
                hint="free some space, or set TORCH_COMPAT_CACHE to another directory",
                code="disk-short",
            )

    @contextlib.contextmanager
    def _locked(self, version: str, *, wait: Progress | None) -> Iterator[None]:
        """Hold a release's lock, which the system releases when the process ends for any reason."""
        path = self.root / "locks" / f"torch-{version}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if wait is None:
                    raise EnvironmentUnavailable(
                        f"torch {version} is being built by another process", hint="try again when it is done", code="busy"
                    ) from error
                wait(f"waiting for another process that is building torch {version}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build(self, release: CalendarRelease, interpreter: Interpreter, cuda: Cuda, progress: Progress) -> Environment:
        prefix = self._prefix(release.version)
        remove_environment(prefix)
        log = self.log(release.version)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        try:
            EnvironmentBuild(release, interpreter, prefix, log, self._run, progress=progress).whole(cuda)
        finally:
            if not (prefix / STATE).exists():
                remove_environment(prefix)
        built = self.get(release.version)
        if built is None:
            raise AssertionError(f"{prefix / STATE} was written, but cannot be read")
        return built


class EnvironmentBuild:
    """The steps that build one environment, in order."""

    def __init__(
        self, release: CalendarRelease, interpreter: Interpreter, prefix: Path, log: Path, run: Run, *, progress: Progress
    ) -> None:
        self.release = release
        self.interpreter = interpreter
        self.prefix = prefix
        self.python = prefix / "bin" / "python"
        self.scratch = prefix / "scratch"
        self.progress = progress
        # pip downloads and unpacks below TMPDIR: on the disk that was checked for space, and removed with everything else
        settings = {"LC_ALL": "C", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "TMPDIR": str(self.scratch)}
        self.command = Commands(log, clean_environ(settings), run)

    def whole(self, cuda: Cuda) -> None:
        """Run all steps; the state file is written last."""
        began = time.monotonic()
        self.progress(f"creating an environment with Python {self.interpreter.version}")
        self.scratch.mkdir(parents=True)
        self.command([self.interpreter.path, "-m", "venv", self.prefix], purpose="python -m venv")
        wheel, sha256 = self.install_torch()
        target = json.loads(
            self.command([self.python, "-I", "-c", ASK_TARGET], purpose="inspecting the new Python", environ=plain_environ())
        )
        site = Path(target["site"])
        requirements = self.requirements(site, "torch", target["markers"])
        self.progress("installing the dependencies of torch")
        self.install([str(item) for item in requirements if not _is_for_gpu(item)] + [f"numpy{self.release.numpy}"])
        used, stubs = self.complete_cuda(cuda, site, requirements, target["markers"])
        self.progress("checking that torch can be imported and used")
        message = self.verify()
        shutil.rmtree(self.scratch)
        description = {
            "schema_version": SCHEMA_VERSION,
            "torch": message["torch"],
            "git_revision": message["git_revision"],
            "python": message["python"],
            "numpy": message["numpy"],
            "wheel": wheel,
            "wheel_sha256": sha256,
            "cuda": used,
            "stubs": list(stubs),
            "built": datetime.now(UTC).date().isoformat(),
            "size": _size(self.prefix),
            "seconds": round(time.monotonic() - began, 1),
        }
        unfinished = self.prefix / f"{STATE}.unfinished"
        unfinished.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.prefix / STATE)

    def install_torch(self) -> tuple[str, str]:
        """Install only torch, from the wheel that pip chooses; return the wheel's name and SHA-256."""
        self.progress(f"downloading torch {self.release.version}")
        wheels = self.scratch / "wheels"
        item = f"torch=={self.release.version}"
        self.pip("download", "--no-deps", "--no-cache-dir", "-d", str(wheels), item, purpose=f"downloading {item}")
        result = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
        if len(result) != 1:
            names = ", ".join(path.name for path in sorted(wheels.glob("*"))) or "nothing"
            raise EnvironmentUnavailable(f"pip download {item} returned {names}, expected one wheel", code="no-wheel")
        self.progress(f"installing {result[0].name}")
        with result[0].open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        self.pip("install", "--no-deps", "--no-cache-dir", str(result[0]), purpose=f"installing {result[0].name}")
        result[0].unlink()
        return result[0].name, sha256

    def for_gpu(self, requirement: Requirement) -> bool:
        """Whether torch uses a package only with a GPU."""
        return _is_for_gpu(requirement)

    def install(self, requirements: list[str], *options: str) -> None:
        """Install packages from the user's index."""
        self.pip("install", *options, *requirements, purpose=f"installing {', '.join(requirements)}")

    def pip(self, *arguments: str, purpose: str) -> None:
        """Run the environment's own pip; that of Python 3.6 is 18.1 and supports only older options."""
        self.command([self.python, "-m", "pip", *arguments], purpose=purpose)

    def requirements(
        self, site: Path, package: str, markers: Mapping[str, str], extras: frozenset[str] = frozenset()
    ) -> list[Requirement]:
        """Return the requirements of an installed package on the environment's own Python, with these extras."""
        results = sorted(site.glob(f"{package.replace('-', '_')}-*.dist-info/METADATA"))
        if not results:
            raise EnvironmentUnavailable(f"pip installed {package} without metadata", where=str(site), code="no-metadata")
        lines = HeaderParser().parsestr(results[0].read_text(encoding="utf-8")).get_all("Requires-Dist") or []
        try:
            stated = [Requirement(line) for line in lines]
        except InvalidRequirement as error:
            raise EnvironmentUnavailable(
                f"{package} declares a requirement that cannot be parsed: {error}", code="no-metadata"
            ) from error
        needed = []
        for item in stated:
            if item.marker is None or any(item.marker.evaluate({**markers, "extra": extra}) for extra in extras or {""}):
                item.marker = None
                needed.append(item)
        return needed

    def complete_cuda(
        self, cuda: Cuda, site: Path, requirements: list[Requirement], markers: Mapping[str, str]
    ) -> tuple[Literal["none", "stub", "real"], tuple[str, ...]]:
        """Provide the CUDA libraries that torch's wheel lacks; return how, and the names of the stubs."""
        if self.release.install == "whole":
            return "none", ()
        for_gpu = [item for item in requirements if _is_for_gpu(item) and canonicalize_name(item.name) not in _COMPILERS]
        if cuda == "stub":
            for_gpu = self.small_and_real(site, for_gpu, markers)
        if for_gpu:
            self.progress("installing the CUDA packages" + ", several gigabytes" * (cuda == "real"))
            dependencies = ["--no-deps"] if cuda == "stub" else []
            self.install([str(item) for item in for_gpu], "--no-cache-dir", *dependencies)
        self.progress("looking for the libraries that torch loads")
        gap = find_gap(site / "torch", self.command)
        if not gap:
            return ("real" if for_gpu else "none"), ()
        if cuda == "real":
            raise EnvironmentUnavailable(f"the CUDA packages lack {', '.join(gap.libraries)}", code="cuda-incomplete")
        self.progress("compiling stubs for the other CUDA libraries")
        return "stub", build_stubs(gap, site / "torch" / "lib", self.command)

    def small_and_real(self, site: Path, for_gpu: list[Requirement], markers: Mapping[str, str]) -> list[Requirement]:
        """Return torch's CUDA packages that are never stubbed, including those pinned by another package."""
        candidates = list(for_gpu)
        for item in for_gpu:
            if canonicalize_name(item.name) == _GATHERED:
                self.install([str(item)], "--no-deps")
                candidates += self.requirements(site, _GATHERED, markers, frozenset(item.extras))
        return [item for item in candidates if _SMALL_AND_REAL.fullmatch(canonicalize_name(item.name))]

    def verify(self) -> Mapping[str, Any]:
        """Import torch in a separate process in an empty folder, compute, and compare its version with the requested one."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as empty:
            out = self.command(
                [self.python, "-I", "-c", _VERIFY],
                purpose=f"importing torch {self.release.version}",
                cwd=Path(empty),
                environ=plain_environ(Path(empty)),  # only pip needs some of the user's variables
            )
        messages: dict[str, Any] = json.loads(out.splitlines()[-1])
        if stated(messages["torch"]) != Release(self.release.version):
            raise WrongVersion(f"expected torch {self.release.version}, got {messages['torch']}", where=str(self.python))
        if messages["sums"] != [2.0, 3.0]:
            raise EnvironmentUnavailable(
                f"torch {messages['torch']} computes {messages['sums']} instead of [2.0, 3.0]", code="wrong-result"
            )
        return messages


def cache_folder() -> Path:
    """Return the folder for environments and their logs."""
    named = os.environ.get("TORCH_COMPAT_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("torch-compat")


def _is_for_gpu(requirement: Requirement) -> bool:
    """Whether torch uses a package only with a GPU."""
    name = canonicalize_name(requirement.name)
    return name in _COMPILERS or name.startswith(("nvidia-", "cuda-"))


def _size(folder: Path) -> int:
    """Return the total size of all files below a folder in bytes; links are not followed."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def remove_environment(folder: Path) -> None:
    """Remove a folder and its contents, state file first, so that an interrupted removal leaves nothing that looks built."""
    (folder / STATE).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
