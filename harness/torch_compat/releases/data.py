"""Where the policies and the recorded facts lie that came with this package.

A wheel carries them inside the package, in ``_packaged``. In a checkout they are the folders of the repository.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["packaged"]

_PACKAGE = Path(__file__).resolve().parents[1]
_INSIDE = _PACKAGE / "_packaged"


def packaged(*parts: str) -> Path:
    """The path of packaged data, such as ``packaged("policies", "torch", "formats.toml")``. It need not exist."""
    return (_INSIDE if _INSIDE.is_dir() else _PACKAGE.parents[1]).joinpath(*parts)
