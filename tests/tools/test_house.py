"""The counts of tools/house.py: each planted violation is detected, and the repository keeps its limits."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOL = REPOSITORY / "tools" / "house.py"
HOUSE: dict[str, Any] = runpy.run_path(str(TOOL))
PLANTS = {
    "files that read the numbers of a version": "def f(text):\n    return tuple(int(part) for part in text.split('.'))\n",
    "forms of a set of releases": "def f(text):\n    return text.partition('..')\n",
    "loaders of policy": "import tomllib\n",
    "tables of dtypes": "SIZES = {'int8': 1, 'int16': 2, 'int32': 4, 'int64': 8, 'float32': 4, 'float64': 8}\n",
    "readers of pickles": "import pickle\n",
    "places that look for packaged data": "HERE = '_packaged'\n",
    "circles of imports": "from torch_compat import other\n",
    "names of two classes or more": "class Twice:\n    pass\n",
    "variables that are not nouns": "def f(texts):\n    return [one for one in texts]\n",
    "files over 600 lines": "x = 1\n" * 601,
    "readers of schemas": "def f(text):\n    return text.split('->')\n",
    "readers of TorchScript text": "import re\nre.compile(r'def (\\w+)')\n",
}


def tree(root: Path, **files: str) -> Path:
    """A checkout whose package has these files."""
    package = root / "harness" / "torch_compat"
    package.mkdir(parents=True)
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return root


def counts(root: Path) -> dict[str, int]:
    house = HOUSE["House"](root)
    return {row.title: len(row.count(house)) for row in HOUSE["COUNTS"]}


@pytest.mark.parametrize("title", PLANTS)
def test_what_is_planted_is_counted(title: str, tmp_path: Path) -> None:
    known = "class Twice:\n    pass\n"
    other = f"from torch_compat import planted\n\n{known}" if title.startswith("circles") else known
    before = counts(tree(tmp_path / "without", other=known, planted=""))
    after = counts(tree(tmp_path / "with", other=other, planted=PLANTS[title]))
    assert after[title] == before[title] + 1
    assert {name: count for name, count in after.items() if name != title} == {
        name: count for name, count in before.items() if name != title
    }


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("readers of schemas", "def f(text):\n    return text.rfind(') -> ')\n"),
        ("readers of schemas", "def f(text):\n    return text.startswith('->')\n"),
        ("readers of schemas", "import re\nre.search(r'\\) -> (.*)', '')\n"),
        ("readers of TorchScript text", "import ast\nast.parse('')\n"),
        ("readers of TorchScript text", "from ast import parse\n"),
        ("readers of TorchScript text", "import tokenize\n"),
        ("readers of TorchScript text", "def f(line):\n    return line.startswith('def ')\n"),
    ],
)
def test_there_is_more_than_one_way_to_read_a_text(title: str, text: str, tmp_path: Path) -> None:
    assert counts(tree(tmp_path, planted=text))[title] == 1


@pytest.mark.parametrize(
    "back",
    [
        "from torch_compat.inner.two import TWO\n",
        "import torch_compat.inner.two\n",
        "from .two import TWO\n",
        "from . import two\n",
        "from torch_compat.inner import two\n",
        "def f():\n    from torch_compat.inner import two\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch_compat.inner.two import Two\n",
    ],
)
def test_files_of_one_package_that_import_each_other_are_above_the_limit(back: str, tmp_path: Path) -> None:
    root = tree(tmp_path)
    inner = root / "harness" / "torch_compat" / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("from torch_compat.inner.two import TWO\n", encoding="utf-8")
    (inner / "two.py").write_text("from torch_compat.inner import one\n", encoding="utf-8")
    (inner / "one.py").write_text("ONE = 1\n", encoding="utf-8")
    command: list[str | Path] = [sys.executable, TOOL, "--root", root, "--check"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    (inner / "one.py").write_text(back, encoding="utf-8")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "torch_compat.inner.one, torch_compat.inner.two" in ended.stdout


def test_every_count_but_that_of_policy_tables_is_planted() -> None:
    assert {row.title for row in HOUSE["COUNTS"]} == {*PLANTS, "policy tables"}


def test_above_a_limit_the_check_fails_and_names_the_places(tmp_path: Path) -> None:
    root = tree(tmp_path, one="import tomllib\n", two="import tomllib\n")
    ended = subprocess.run([sys.executable, TOOL, "--root", root, "--check"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "above the limit: loaders of policy" in ended.stderr
    assert all(f"{name}.py" in ended.stdout for name in ("one", "two"))


def test_the_repository_keeps_its_limits() -> None:
    ended = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
