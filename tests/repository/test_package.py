"""The package is called torch_compat, is typed, and exports few names."""

from __future__ import annotations

import ast
from pathlib import Path

import torch_compat

REPOSITORY = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("harness", "tests", "benchmarks", "tools", "fixtures")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
]
PUBLIC = 24  # names that people may rely on: as many as a person can look over


def test_no_file_imports_the_folder() -> None:
    for path in [*SOURCES, REPOSITORY / "noxfile.py"]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.partition(".")[0] == "harness" for name in names), path


def test_types_are_published() -> None:
    assert (Path(torch_compat.__file__).parent / "py.typed").is_file()


def test_the_public_names_are_few_exist_and_say_what_they_do() -> None:
    assert len(torch_compat.__all__) <= PUBLIC
    for name in torch_compat.__all__:
        result = getattr(torch_compat, name)
        assert name == "__version__" or result.__doc__, name
