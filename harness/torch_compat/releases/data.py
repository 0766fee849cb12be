"""Locates the policies and recorded facts of this package, and reads policy files unchecked.

A wheel contains them inside the package, in ``_packaged``. In a checkout, they are folders of the repository.

:mod:`torch_compat.policy` checks all files of a folder together, reports errors with file and line, and requires pydantic. Code that needs
only a few entries, such as ``inspect`` for each file, gets them here unchecked. Both parse the text with :func:`parsed`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.errors import PolicyError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["entries", "packaged", "parsed"]

_PACKAGE = Path(__file__).resolve().parents[1]
_INSIDE = _PACKAGE / "_packaged"
_LINE = re.compile(r" \(at line (\d+), column \d+\)")


def packaged(*parts: str) -> Path:
    """Return the path of packaged data, such as ``packaged("policies", "torch", "formats.toml")``. It need not exist."""
    return (_INSIDE if _INSIDE.is_dir() else _PACKAGE.parents[1]).joinpath(*parts)


def parsed(text: str, name: str) -> dict[str, Any]:
    """Parse a TOML text.

    Parameters:
        name: the name of the file, for errors.

    Raises:
        PolicyError: the text is not valid TOML; with the line.
    """
    import tomllib  # noqa: PLC0415 - not every command that locates data reads any

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        line = int(match.group(1)) if match else text.count("\n") + 1
        what = _LINE.sub("", str(error)).removesuffix(" (at end of document)")
        problem = Problem(name, line, "", f"is not valid TOML: {what[:1].lower()}{what[1:]}")
        raise PolicyError([problem]) from error
    except (ValueError, RecursionError) as error:  # an integer with thousands of digits, or a thousand brackets
        what = "is nested too deeply" if isinstance(error, RecursionError) else f"is not valid TOML: {error}"
        raise PolicyError([Problem(name, 1, "", what)]) from error


def entries(folder: Path, files: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of policy files by table, unchecked.

    Parameters:
        files: the file names, without ``.toml``.

    Raises:
        PolicyError: a file is missing, or not valid TOML.
    """
    results: dict[str, list[dict[str, Any]]] = {}
    for name in files:
        path = folder / f"{name}.toml"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise PolicyError([Problem(path.as_posix(), 0, "", f"cannot be read: {error}")]) from error
        for table, several in parsed(text, path.as_posix()).items():
            results.setdefault(table, []).extend(several)
    return results
