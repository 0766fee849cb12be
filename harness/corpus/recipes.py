"""Recipes and probes: what they say of themselves, read without running or importing anything.

A recipe is a Python 3.6 file of the standard library and torch. Its constants:

* ``FAMILY``     what it writes
* ``OPERATORS``  qualified operator names it exercises; tolerances and version bumps are looked up by them
* ``SINCE``      the earliest release known to write it; ``UNTIL`` the last one (optional)
* ``WHY``        why not before or after, where SINCE is not the beginning
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.corpus.manifest import EXTENSIONS
from harness.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ProbeFile", "Recipe", "read_probes", "read_recipes"]


@dataclass(frozen=True)
class Recipe:
    """What a recipe says of itself."""

    name: str
    path: Path
    sha256: str
    summary: str
    family: str
    operators: tuple[str, ...]
    since: str
    until: str | None
    why: str

    @property
    def file(self) -> str:
        """Name of the archive that it writes."""
        return self.name + EXTENSIONS[self.family]


@dataclass(frozen=True)
class ProbeFile:
    """What a probe says of itself."""

    name: str
    path: Path
    sha256: str
    summary: str


def read_recipes(folder: Path) -> tuple[Recipe, ...]:
    """Every recipe of a folder, by name.

    Raises:
        CorpusError: a recipe is no Python, or lacks a constant.
    """
    recipes = []
    for path in sorted(folder.glob("*.py")):
        constants, summary, sha256 = _constants(path)
        family = _text(constants, "FAMILY", path)
        if family not in EXTENSIONS:
            raise CorpusError(f"FAMILY is {family!r}, expected one of {', '.join(EXTENSIONS)}", where=str(path))
        operators = constants.get("OPERATORS")
        if not isinstance(operators, list) or not all(isinstance(name, str) for name in operators):
            raise CorpusError("has no constant OPERATORS, a list of qualified names (empty where none matters)", where=str(path))
        until = constants.get("UNTIL")
        since = _text(constants, "SINCE", path)
        if until is not None and not constants.get("WHY"):
            raise CorpusError("says UNTIL, but not WHY", where=str(path))
        recipes.append(Recipe(path.stem, path, sha256, summary, family, tuple(operators), since, until, constants.get("WHY", "")))
    return tuple(recipes)


def read_probes(folder: Path) -> tuple[ProbeFile, ...]:
    """Every probe of a folder, by name."""
    found = []
    for path in sorted(folder.glob("*.py")):
        _, summary, sha256 = _constants(path)
        found.append(ProbeFile(path.stem, path, sha256, summary))
    return tuple(found)


def _constants(path: Path) -> tuple[dict[str, Any], str, str]:
    source = path.read_bytes()
    try:
        tree = ast.parse(source, filename=path.name, feature_version=(3, 6))
    except SyntaxError as error:
        raise CorpusError(f"is not Python 3.6: {error.msg}", where=f"{path}:{error.lineno}") from error
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper():
                constants[name] = _literal(node.value, path)
    summary = (ast.get_docstring(tree) or "").strip()
    if not summary:
        raise CorpusError("has no docstring that says its one idea", where=f"{path}:1")
    return constants, summary, hashlib.sha256(source).hexdigest()


def _literal(node: ast.expr, path: Path) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise CorpusError("constants in capitals must be literals", where=f"{path}:{node.lineno}") from error


def _text(constants: dict[str, Any], name: str, path: Path) -> str:
    value = constants.get(name)
    if not isinstance(value, str) or not value:
        raise CorpusError(f"has no constant {name}", where=str(path))
    return value
