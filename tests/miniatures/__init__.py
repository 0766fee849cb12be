"""Miniature releases: a pure Python ``torch`` that the real worker runs under this very Python, well-behaved or not."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

from torch_compat.readers.environments import SCHEMA_VERSION, STATE, Environment
from torch_compat.readers.torch_release import IDENTITY

__all__ = ["miniature", "run_by_this_python"]

SITE = Path(__file__).with_name("site")


def miniature(cache: Path, version: str, *, says: str | None = None, built_as: str | None = None, **hooks: str) -> Environment:
    """Build a miniature release into a cache folder, as ``readers build`` would, replacing the one that is there.

    Parameters:
        says: the version that it answers with, where that is not ``version``.
        built_as: the exact version that was found when it was built, where that is not ``version``.
        hooks: ``at_import``, ``at_load``, ``at_call``: source texts (see site/torch).
    """
    prefix = cache / "readers" / f"torch-{version}"
    site = prefix / "site"
    python = prefix / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    (prefix / IDENTITY).unlink(missing_ok=True)  # who was here before is not remembered
    behaviour = json.dumps({"version": version if says is None else says, **hooks})
    shutil.copytree(SITE, site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    # -S: nothing of this Python's own packages; the fake numpy is enough, and starting costs milliseconds
    settings = f"PYTHONPATH=${{0%/*}}/../site MINIATURE_TORCH={shlex.quote(behaviour)}"  # wherever a copy of it lies
    run_by_this_python(python, prefix, f'{settings} exec {{python}} -S "$@"')
    description = {"torch": built_as or version, "wheel_sha256": "0" * 64, "cuda": "none", "built": "2026-07-01", "size": 1}
    state = {"schema_version": SCHEMA_VERSION, **description}
    (prefix / STATE).write_text(json.dumps(state), encoding="utf-8")
    return Environment(version, prefix, python, description)


def run_by_this_python(program: Path, prefix: Path, line: str) -> None:
    """Write a program of an environment: a line of shell, in which ``{python}`` is the Python that runs the tests.

    The environment says, as every virtual environment does, which Python it was made with, so a process of it may read that.
    """
    base = Path(sys.executable).resolve()
    (prefix / "pyvenv.cfg").write_text(f"home = {base.parent}\n", encoding="utf-8")
    program.write_text(f"#!/bin/sh\n{line.replace('{python}', shlex.quote(str(base)))}\n", encoding="utf-8")
    program.chmod(0o755)
