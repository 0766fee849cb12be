"""Versions of torch are parsed in one place, and sets of releases have one form: torch_compat.releases."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "harness" / "torch_compat"
ALONE = ("extension.py", "inside/")
"""Single files that import nothing of ours."""
ALLOWED = {
    ("loadability/loading_releases.py", 'split(".")'): "the names of a module",
    ("operators/history.py", 'split(".")'): "the names of a module",
    ("pickles/dangers.py", 'split(".")'): "the names of a module",
    ("loadability/load_calls.py", 'split(".")'): "the names of a module",
    ("runtime/program.py", 'split(".")'): "the names of a class",
    ("runtime/language/unused.py", 'split(".")'): "the names of a function",
    ("releases/release.py", 'split(".")'): "here versions are read",
    ("releases/release.py", 'partition("+")'): "here versions are read",
}
"""What may cut a text at a dot or a plus, and what that text is."""
CUTS = {"split": ".+", "rsplit": ".+", "partition": "+", "rpartition": "+"}


def modules() -> list[str]:
    results = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return [name for name in results if not name.startswith((*ALONE, "_packaged/"))]


def cuts(tree: ast.AST) -> Iterator[str]:
    """Every call that cuts a text as the parts of a version are cut, and every import of another type for versions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CUTS and node.args:
            mark = node.args[0]
            if isinstance(mark, ast.Constant) and isinstance(mark.value, str) and mark.value in set(CUTS[node.func.attr]):
                yield f'{node.func.attr}("{mark.value}")'
        elif isinstance(node, ast.ImportFrom) and node.module in {"packaging.version", "packaging"}:
            yield from (f"packaging.{name.name}" for name in node.names if node.module != "packaging" or name.name == "version")
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("packaging.version"))


def test_nobody_else_takes_a_version_apart() -> None:
    results = {
        (name, cut) for name in modules() for cut in cuts(ast.parse((PACKAGE / name).read_text(encoding="utf-8"), filename=name))
    }
    assert results == set(ALLOWED), "use torch_compat.releases, or say in ALLOWED what is cut there"


@pytest.mark.parametrize(
    "text",
    ['v.split(".")', 'v.partition("+")[0]', 'v.split("+", maxsplit=1)', 'v.rsplit(".", 1)', "from packaging.version import Version",
     "import packaging.version", "from packaging import version"],
)  # fmt: skip
def test_what_takes_a_version_apart_is_seen(text: str) -> None:
    assert list(cuts(ast.parse(text)))


def test_what_takes_something_else_apart_is_not() -> None:
    assert not list(cuts(ast.parse('v.split(","); v.partition("."); v.split(); from packaging.specifiers import SpecifierSet')))
