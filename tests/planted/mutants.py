"""Single-line changes of the code that decides verdicts, each with the tests that must fail with it.

A test that passes with and without such a change does not check it. tests/planted/test_mutants.py applies each change to a copy of the
package, and runs these tests there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTANTS", "PACKAGE", "ROOT", "Copy", "Mutant"]

ROOT = Path(__file__).parents[2]
PACKAGE = Path("harness", "torch_compat")
LINKED = ("docs", "fixtures", "policies", "reports")
"""Folders that the tests only read."""
FAILED = 1
"""The exit status of pytest if a test failed; every other one but 0 says that the tests did not run."""
INSIDE = """\
import pathlib, sys, pytest, torch_compat
assert pathlib.Path(torch_compat.__file__).is_relative_to(pathlib.Path.cwd()), torch_compat.__file__
sys.exit(pytest.main(sys.argv[1:]))
"""


class Mutant(NamedTuple):
    """A change that tests must notice.

    Attributes:
        file: the file, in the package.
        old, new: a text that occurs once in the file, and its replacement.
        tests: the tests that fail with the replacement, by node id.
        why: what would go unnoticed with it.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str


class Copy:
    """A copy of the package and of the tests.

    Parameters:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("harness", "tests", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def change(self, mutant: Mutant) -> None:
        """Apply a change."""
        path = self.folder / PACKAGE / mutant.file
        text = path.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file} has {text.count(mutant.old)} times {mutant.old!r}"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")

    def restore(self, mutant: Mutant) -> None:
        """Take a change back, with the time of the original file, so that no compiled file of the changed one is used."""
        shutil.copy2(ROOT / PACKAGE / mutant.file, self.folder / PACKAGE / mutant.file)

    def run(self, *tests: str) -> tuple[int, str]:
        """Run tests by node id with the package of the copy; return the exit status of pytest, and its output."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment["PYTHONPATH"] = f"{self.folder / 'harness'}{os.pathsep}{self.folder}"
        command = [sys.executable, "-c", INSIDE, "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


MUTANTS: dict[str, Mutant] = {}
