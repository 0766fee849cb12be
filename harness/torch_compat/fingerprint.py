"""Hashes of our own code and packaged data: the keys of what the code computes and a later run may use again.

The unit is the package, never the file: :func:`code_fingerprint` takes a package, everything that its files import of
``torch_compat``, everything that those import, and so on. A hand-kept list of files is out of date with the first function that moves.
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
    """SHA-256, in hex, of the source of a package and of all that it imports of ours, directly or not.

    The hash depends on names and text alone: not on line endings, on compiled files or on the place of the installation.

    Parameters:
        package: a folder or file right below ``torch_compat``, by its name in imports: ``replay``.
        root: the folder of ``torch_compat``.
    """
    return content_fingerprint(root, code_of(package, root))


def code_of(package: str, root: Path = _PACKAGE) -> list[Path]:
    """The source files of a package and of all packages that it imports of ours, directly or not.

    ``torch_compat/__init__.py`` belongs to every package, but what it offers to others does not: it imports that on demand.
    """
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for path in root.rglob("*.py"):
        files[path.relative_to(root).parts[0].removesuffix(".py")].append(path)
    wanted, found = [package], {"__init__"}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += (one for path in files[name] for one in _imported(path.read_bytes()))
    return sorted(path for name in found for path in files[name])


def content_fingerprint(root: Path, files: Iterable[Path]) -> str:
    """SHA-256, in hex, of text files: their names below a folder, and their content whatever its line endings."""
    total = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{name}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


def _imported(source: bytes) -> Iterable[str]:
    """The packages of ours that a file imports, wherever in it."""
    for statement in _IMPORT.finditer(source):
        names = statement["package"] or re.sub(rb"#[^\n]*|[ \t]as[ \t]+%b" % _NAME, b"", statement["names"])
        yield from (name.decode() for name in re.findall(_NAME, names))
