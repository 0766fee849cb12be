"""Hashes of our own code and packaged data: cache keys for results that a later run may reuse.

The unit is the package, never the file: :func:`code_fingerprint` covers a package and all of its direct and indirect imports from
``torch_compat``. A list of files maintained by hand would be outdated as soon as a function moves.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["code_fingerprint", "code_of", "content_fingerprint"]

_PACKAGE: Final = Path(__file__).resolve().parent
_NAME: Final = rb"[A-Za-z_][A-Za-z0-9_]*"
# `import torch_compat.x.y`, `from torch_compat.x import ...`; `from torch_compat import x, y`, in parentheses or not
_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+torch_compat(?:[.](?P<package>%b)|[ \t]+import[ \t]+(?P<names>[(][^)]*[)]|[^\r\n;]*))" % _NAME,
    re.MULTILINE,
)


@functools.cache
def code_fingerprint(package: str, root: Path = _PACKAGE) -> str:
    """The SHA-256, in hex, of the source of a package and of its direct and indirect imports from ``torch_compat``.

    The hash depends on names and text alone: not on line endings, compiled files or the location of the installation.

    Parameters:
        package: a folder or file directly in ``torch_compat``, by its import name: ``replay``.
        root: the folder of ``torch_compat``.
    """
    return content_fingerprint(root, code_of(package, root))


def code_of(package: str, root: Path = _PACKAGE) -> list[Path]:
    """The source files of a package and of all ``torch_compat`` packages that it imports, directly or not.

    ``torch_compat/__init__.py`` belongs to every package, but its lazy imports do not count.
    """
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for path in root.rglob("*.py"):
        files[path.relative_to(root).parts[0].removesuffix(".py")].append(path)
    wanted, result = [package], {"__init__"}
    while wanted:
        name = wanted.pop()
        if name not in result:
            result.add(name)
            wanted += (item for path in files[name] for item in _imported(path.read_bytes()))
    return sorted(path for name in result for path in files[name])


def content_fingerprint(root: Path, files: Iterable[Path]) -> str:
    """The SHA-256, in hex, of text files: their names relative to a folder, and their content with line endings normalized."""
    total = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{name}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


def _imported(source: bytes) -> Iterable[str]:
    """The ``torch_compat`` packages that a file imports, anywhere in the file."""
    for statement in _IMPORT.finditer(source):
        names = statement["package"] or re.sub(rb"#[^\n]*|[ \t]as[ \t]+%b" % _NAME, b"", statement["names"])
        yield from (name.decode() for name in re.findall(_NAME, names))
