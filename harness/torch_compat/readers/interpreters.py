"""Finds the CPython interpreters of this machine and the one that a release of torch runs on.

Every candidate is run in a short process to query its version: a name on PATH proves nothing, since the shims of version managers fail for
versions that are not selected, and links can point anywhere. Candidates that do not answer are skipped.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_compat.errors import EnvironmentUnavailable
from torch_compat.readers.commands import clean_environ
from torch_compat.releases.release import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch_compat.policy import CalendarRelease

__all__ = ["OLDEST", "PREFERRED", "Interpreter", "find_interpreters", "fitting", "in_order_of_preference"]

OLDEST = (3, 6)
"""The worker's syntax and standard library require 3.6."""

PREFERRED = (3, 11)
"""Using the same Python for a release on every machine keeps its reader's identity stable. This version is used if the release supports
it."""

_ANSWER_WITHIN = 10.0  # seconds; a cold start takes well under one
_QUESTION = """
import ensurepip, json, os, platform, sys, venv
print(json.dumps({
    "implementation": platform.python_implementation(),
    "version": list(sys.version_info[:3]),
    "level": sys.version_info[3],
    "executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A CPython of this machine that can create virtual environments.

    Attributes:
        version: all three numbers, such as ``3.8.18``.
        path: the executable itself, never a link, a shim or that of a virtual environment.
    """

    version: str
    path: Path

    @property
    def minor(self) -> str:
        """The major and minor version, as written in the calendar: ``3.8``."""
        return ".".join(map(str, dotted(self.version)[:2]))


@functools.cache
def find_interpreters() -> tuple[Interpreter, ...]:
    """Return all CPythons from 3.6 on that are found here, newest first; the search runs once per process."""
    results: dict[Path, Interpreter] = {}
    for candidate in _distinct(_candidates()):
        interpreter = _ask(candidate)
        if interpreter is not None:
            results.setdefault(interpreter.path, interpreter)
    return tuple(
        sorted(results.values(), key=lambda interpreter: (dotted(interpreter.version), str(interpreter.path)), reverse=True)
    )


def in_order_of_preference(pythons: Iterable[str]) -> list[str]:
    """Sort versions by preference: 3.11, then older ones from newest to oldest, then newer ones from oldest to newest."""
    usable = sorted({dotted(python) for python in pythons if dotted(python) >= OLDEST})
    older = [python for python in usable if python < PREFERRED]
    newer = [python for python in usable if python > PREFERRED]
    ordered = [PREFERRED] * (PREFERRED in usable) + older[::-1] + newer
    return [".".join(map(str, python)) for python in ordered]


def fitting(release: CalendarRelease, interpreters: Sequence[Interpreter]) -> Interpreter:
    """Return the interpreter to install this release for.

    If several have the same major and minor version, the newest is used.

    Raises:
        EnvironmentUnavailable: none fits; the message lists those that would and those that were found.
    """
    wanted = in_order_of_preference(release.pythons)
    wanted = sorted(wanted, key=lambda python: python != release.python)  # stable: the others keep their order
    for python in wanted:
        fits = [interpreter for interpreter in interpreters if interpreter.minor == python]
        if fits:
            return max(fits, key=lambda interpreter: dotted(interpreter.version))
    here = sorted({interpreter.minor for interpreter in interpreters}, key=dotted)
    raise EnvironmentUnavailable(
        f"torch {release.version} runs on CPython {_listed(sorted(wanted, key=dotted))}; found here: {_listed(here)}",
        hint=f"install CPython {wanted[0]}, with pyenv, uv or the system's packages" if wanted else None,
        code="no-interpreter",
    )


def _candidates() -> Iterator[Path]:
    """Yield the usual paths of interpreters; a path may not exist, and one interpreter may appear several times."""
    yield Path(sys.executable)
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], sys.version_info.minor + 10))]
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/bin", "/usr/bin"]:
        yield from (Path(result) for name in names if folder and (result := shutil.which(name, path=folder)))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob("versions/*/bin/python"))
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    managed_by_uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    yield from sorted(managed_by_uv.glob("*/bin/python3"))


def _distinct(candidates: Iterable[Path]) -> Iterator[Path]:
    """Yield each executable once, regardless of how many links lead to it.

    A virtual environment's ``python`` is also a link, and its target is used.
    """
    seen: set[Path] = set()
    for candidate in candidates:
        target = candidate.resolve()
        if target not in seen and target.is_file():
            seen.add(target)
            yield target


def _ask(candidate: Path) -> Interpreter | None:
    """Query a candidate; None if it does not answer, is not CPython, is too old or cannot create environments."""
    try:
        answer = subprocess.run(
            [candidate, "-I", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=_ANSWER_WITHIN,
            check=True,
            stdin=subprocess.DEVNULL,
            env=clean_environ(),
        )
        message = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if message["implementation"] != "CPython" or message["level"] != "final" or tuple(message["version"]) < OLDEST:
        return None
    return Interpreter(".".join(map(str, message["version"])), Path(message["executable"]))


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items) if items else "none"
