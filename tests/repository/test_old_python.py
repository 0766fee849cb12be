"""Code that runs inside an old torch: Python 3.6 syntax, the standard library and torch only."""

from __future__ import annotations
import __future__

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torch_compat.readers.interpreters import find_interpreters

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
FILES = [
    *sorted(REPOSITORY.glob("fixtures/awaiting/*.py")),
    *sorted(REPOSITORY.glob("fixtures/programs/*/*/*.py")),
    *sorted(REPOSITORY.glob("fixtures/deprecations/*.py")),
    *sorted(REPOSITORY.glob("fixtures/recipes/*.py")),
    *sorted(REPOSITORY.glob("fixtures/probes/*.py")),
    *sorted(REPOSITORY.glob("harness/torch_compat/inside/[!_]*.py")),
    *sorted((REPOSITORY / "tests" / "runtime").glob("torch_*.py")),
]
OLDEST = (3, 6)
NEWER = {"contextvars", "dataclasses", "graphlib", "tomllib", "zoneinfo"}  # of the standard library, and not in 3.6
ALLOWED = (sys.stdlib_module_names - NEWER) | {"numpy", "torch"}
NUMPY_ONLY_IN = {"worker.py", "saved_arrays_of_records.py", "saved_numbers_of_numpy.py"}
"""The worker states which numpy torch works with; the programs, which only their writers run, save values of numpy."""


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def faults(source: str, name: str) -> list[str]:
    """Why Python 3.6 with torch alone could not run this."""
    try:
        tree = ast.parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    modules = {module for module in imported(tree) if module != "__future__"}
    results = [f"imports {module}" for module in sorted(modules) if module.partition(".")[0] not in ALLOWED]
    results += ["imports numpy"] * ("numpy" in modules and name not in NUMPY_ONLY_IN)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            features = [alias.name for alias in node.names if getattr(__future__, alias.name).optional[:2] > OLDEST]
            results += [f"from __future__ import {name}" for name in features]
    return results


def test_the_files_are_found() -> None:
    assert len(FILES) >= 20
    assert all(path.is_file() for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_runs_on_the_oldest_python(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8"), path.name) == []


@pytest.mark.parametrize(
    "planted",
    [
        "if (n := 1): pass",
        "def f(a, /): pass",
        "match 1:\n    case 1: pass",
        "from __future__ import annotations",
        "import dataclasses",
        "import numpy",
        "def f():\n    from torch_compat.errors import HarnessError",
        "from . import worker",
        "import packaging.version",
    ],
)
def test_a_planted_fault_is_found(planted: str) -> None:
    assert faults(planted, "recipe.py")


def test_a_real_oldest_python_compiles_them() -> None:
    here = [interpreter for interpreter in find_interpreters() if interpreter.minor == "3.6"]
    if not here:
        pytest.skip("no Python 3.6 on this machine to compile recipes and worker with")
    script = "import sys\nfor path in sys.argv[1:]:\n    compile(open(path, 'rb').read(), path, 'exec')"
    done = subprocess.run([here[0].path, "-c", script, *FILES], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
