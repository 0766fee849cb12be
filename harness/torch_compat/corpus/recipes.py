"""Recipes and probes: reads their constants without running or importing anything.

A deprecation probe gives the dotted name of the deprecated feature in SUBJECT.

A recipe is a Python 3.6 file that uses only the standard library and torch. Its constants:

* ``FAMILY``     the family of the archive that it writes
* ``OPERATORS``  qualified names of the operators it exercises; tolerances and version bumps are looked up by them. ``["*"]``: every
  operator that the writer can serialize
* ``SINCE``      the earliest release known to write it; ``UNTIL`` the last one (optional)
* ``EXCEPT``     releases in between that cannot write it, a release set such as ``"2.2.2"`` (optional)
* ``WHY``        why it cannot be written before, after or in between, if SINCE is not the beginning
* ``WRITERS``    ``reduced`` if not every release has to write it: :func:`torch_compat.corpus.grid.asked_writers` tells which do (optional)
* ``BESIDES``    with ``WRITERS``, the releases in which a form that the recipe enumerates first appears: these also write it (optional)

The ``sha256`` that identifies a recipe does not cover these claims about releases (all but FAMILY and OPERATORS), because later evidence
corrects them; it covers the rest, the program that was run.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch_compat.corpus.manifest import EXTENSIONS
from torch_compat.errors import CorpusError, HarnessError, UsageError
from torch_compat.places import MOST_OF_A_PROGRAM, is_plain, read_whole
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.words import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "EVERY",
    "UNFINISHED",
    "DeprecationFile",
    "ProbeFile",
    "Recipe",
    "read_deprecation",
    "read_probe",
    "read_recipe",
    "unknown_recipe",
]

UNFINISHED = "<replace this: "
"""Marks what the author of a new recipe must fill in. A file with such a placeholder is not accepted as a recipe."""


CLAIMS = frozenset({"SINCE", "UNTIL", "EXCEPT", "WHY", "WRITERS", "BESIDES"})
REDUCED = "reduced"
EVERY = "*"
"""In ``OPERATORS``: every operator that the writer can serialize."""


@dataclass(frozen=True)
class Recipe:
    """The declarations of a recipe.

    Attributes:
        lacking: the releases between ``since`` and ``until`` that cannot write it, a release set as text.
        reduced: whether only some of the releases that can write it must do so.
        besides: versions of releases that must write it in addition to the reduced grid.
    """

    name: str
    path: Path
    sha256: str
    summary: str
    family: str
    operators: tuple[str, ...]
    since: str
    until: str | None
    why: str
    lacking: str | None = None
    reduced: bool = False
    besides: tuple[str, ...] = ()

    @cached_property
    def writers(self) -> ReleaseSet:
        """The releases that it declares able to write it; UsageError if it names no release."""
        result = ReleaseSet.between(Release(self.since), Release(self.until) if self.until is not None else None)
        return result if self.lacking is None else result - ReleaseSet.parse(self.lacking)

    @property
    def file(self) -> str:
        """The name of the archive that it writes."""
        return self.name + EXTENSIONS[self.family]


@dataclass(frozen=True)
class ProbeFile:
    """The declarations of a probe."""

    name: str
    path: Path
    sha256: str
    summary: str


@dataclass(frozen=True)
class DeprecationFile(ProbeFile):
    """The declarations of a deprecation probe.

    Attributes:
        subject: dotted name of the deprecated feature, also used to look up its documentation.
        since: the first release of the calendar that has the feature.
        alternative: dotted name of the replacement, if it is a name rather than another way of calling.
    """

    subject: str
    since: str
    alternative: str | None


def read_recipe(path: Path) -> Recipe:
    """Read the declarations of a recipe file.

    Raises:
        CorpusError: it is not valid Python 3.6, or lacks a constant.
    """
    constants, summary, sha256 = _constants(path)
    family = _text(constants, "FAMILY", path)
    if family not in EXTENSIONS:
        raise CorpusError(f"FAMILY is {family!r}, expected one of {', '.join(EXTENSIONS)}", where=str(path))
    operators = constants.get("OPERATORS")
    if not isinstance(operators, list) or not all(isinstance(name, str) for name in operators):
        raise CorpusError(
            "has no OPERATORS constant; it must be a list of qualified names, empty if the recipe targets no operators",
            where=str(path),
        )
    since = _text(constants, "SINCE", path)
    until = _text(constants, "UNTIL", path) if "UNTIL" in constants else None
    why = _text(constants, "WHY", path) if "WHY" in constants else ""
    lacking = constants.get("EXCEPT")
    if lacking is not None:
        _releases(lacking, path)
    for claim, message in (("UNTIL", until), ("EXCEPT", lacking)):
        if message is not None and not why:
            raise CorpusError(f"has {claim}, but no WHY", where=str(path))
    return Recipe(path.stem, path, sha256, summary, family, tuple(operators), since, until, why, lacking, *_grid(constants, path))


def unknown_recipe(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that no recipe has, with the names that it may stand for."""
    hint = suggest(name, sorted(known), "`torch-compat new recipe` creates one")
    return UsageError(f"there is no recipe {name!r} in fixtures/recipes", hint=hint, code="unknown-recipe")


def _releases(message: Any, path: Path) -> ReleaseSet:
    """Return the releases in EXCEPT."""
    try:
        result = ReleaseSet.parse(message) if isinstance(message, str) else ReleaseSet()
    except UsageError as error:
        raise CorpusError(f"EXCEPT: {error.message}", where=str(path)) from None
    if not result:
        raise CorpusError(f"EXCEPT is {message!r}, expected a set of releases such as '2.2.2'", where=str(path))
    return result


def _grid(constants: dict[str, Any], path: Path) -> tuple[bool, tuple[str, ...]]:
    """Return whether a recipe has a reduced grid of writers, and the releases that it adds to the grid."""
    writers, besides = constants.get("WRITERS"), constants.get("BESIDES", [])
    if writers not in (None, REDUCED):
        raise CorpusError(f"WRITERS is {writers!r}, expected {REDUCED!r}; otherwise omit WRITERS", where=str(path))
    if not isinstance(besides, list) or not all(isinstance(version, str) for version in besides):
        raise CorpusError(f"BESIDES is {besides!r}, expected a list of releases", where=str(path))
    if besides and writers is None:
        raise CorpusError(
            f"has BESIDES, but no WRITERS = {REDUCED!r}", where=str(path), hint="without WRITERS, every release runs the recipe"
        )
    return writers is not None, tuple(besides)


def read_probe(path: Path) -> ProbeFile:
    """Read the declarations of a probe file.

    Raises:
        CorpusError: it is not valid Python 3.6, or has no docstring.
    """
    _, summary, sha256 = _constants(path)
    return ProbeFile(path.stem, path, sha256, summary)


def read_deprecation(path: Path) -> DeprecationFile:
    """Read the declarations of a deprecation probe.

    Raises:
        CorpusError: it is not valid Python 3.6, or lacks its docstring, SUBJECT, SINCE or one of its functions.
    """
    constants, summary, sha256 = _constants(path)
    subject, since = _text(constants, "SUBJECT", path), _text(constants, "SINCE", path)
    alternative = _text(constants, "ALTERNATIVE", path) if "ALTERNATIVE" in constants else None
    tree = ast.parse(read_whole(path, MOST_OF_A_PROGRAM), filename=path.name)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in ("deprecated", "alternative"):
        if name not in functions:
            raise CorpusError(f"has no function {name}()", where=str(path))
    return DeprecationFile(path.stem, path, sha256, summary, subject, since, alternative)


def _constants(path: Path) -> tuple[dict[str, Any], str, str]:
    if not is_plain(path.stem):
        what = f"is named {path.stem[:80]!a}, expected letters, digits and _ . + -"
        raise CorpusError(what, where=str(path), code="outside")
    try:
        source = read_whole(path, MOST_OF_A_PROGRAM)
        _refuse_unfinished(source, path)
        tree = ast.parse(source, filename=path.name, feature_version=(3, 6))
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise CorpusError(f"is not valid Python 3.6: {error.msg}", where=where) from error
    except ValueError as error:  # a null byte
        if isinstance(error, HarnessError):
            raise
        raise CorpusError(f"is not valid Python 3.6: {error}", where=str(path)) from error
    except (RecursionError, MemoryError) as error:  # the parser's errors for deep nesting
        raise CorpusError("is nested too deeply to be parsed", where=str(path)) from error
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper():
                constants[name] = _literal(node.value, path)
    summary = (ast.get_docstring(tree) or "").strip()
    if not summary:
        raise CorpusError("has no docstring that says what it tests", where=f"{path}:1")
    return constants, summary, _program_hash(source, tree)


def _program_hash(source: bytes, tree: ast.Module) -> str:
    lines = source.splitlines(keepends=True)
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id in CLAIMS for target in node.targets):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = b""
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _refuse_unfinished(source: bytes, path: Path) -> None:
    lines = source.decode("utf-8", "replace").splitlines()
    left = [(number, line) for number, line in enumerate(lines, 1) if UNFINISHED in line]
    if left:
        number, line = left[0]
        wanted = line.partition(UNFINISHED)[2].partition(">")[0]
        others = [str(other) for other, _ in left[1:]]
        also = f" (also on {'line' if len(others) == 1 else 'lines'} {', '.join(others)})" if others else ""
        raise CorpusError(
            f"is unfinished: replace the placeholder with {wanted}{also}",
            where=f"{path}:{number}",
            hint=f"placeholders look like {UNFINISHED}...>",
            code="unfinished",
        )


def _literal(node: ast.expr, path: Path) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise CorpusError("constants in capitals must be literals", where=f"{path}:{node.lineno}") from error


def _text(constants: dict[str, Any], name: str, path: Path) -> str:
    value = constants.get(name)
    if not isinstance(value, str) or not value:
        raise CorpusError(f"has no constant {name}", where=str(path))
    return value
