"""Names from the data of a tree as paths inside that tree; and files of a tree, read completely but with a size limit.

A tree may come from a stranger: a pull request adds manifests, recipes, policies and recordings. So names in them become
paths only through :func:`inside`, and :func:`read_whole` reads every file of the tree that is parsed.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from torch_compat.errors import CorpusError

__all__ = ["LONGEST", "MOST", "MOST_OF_A_PROGRAM", "inside", "is_plain", "read_whole"]

LONGEST: Final = 200
"""Maximum length of a name. File systems allow 255 bytes, and names get prefixes and suffixes."""
MOST: Final = 64 << 20
"""Maximum size of a file of recorded lines in bytes; the largest recording of one reader has about 1 MiB."""
MOST_OF_A_PROGRAM: Final = 4 << 20
"""Maximum size of a recipe, probe or policy file in bytes."""
SHOWN: Final = 80  # maximum number of characters of a name quoted in a message

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_HINT = "names may contain only letters, digits and _ . + -, and no part of a path may be a link that points outside the tree"


def is_plain(name: object) -> bool:
    """Whether a name is valid for a file or folder on any system: no separator, no leading dot, no control characters."""
    return isinstance(name, str) and len(name) <= LONGEST and _PLAIN.fullmatch(name) is not None


def inside(root: Path, name: str, *, where: str | None = None) -> Path:
    """The path of a name inside a folder. The file need not exist.

    The folder itself may be a link. A link inside it is followed only if it leads to something inside it.

    Parameters:
        root: the folder that the path must not leave.
        name: relative, its parts joined by ``/``: ``torch-1.5.1/div.pt``.
        where: the source of the name, for the error: file, line and entry; the folder itself by default.

    Raises:
        CorpusError: (``outside``) the name is absolute, goes up, contains a backslash, a NUL or another character not allowed in names
            of the tree, is empty, or leads out of the folder through a link.
    """
    parts = name.split("/")
    wrong = next((part for part in parts if not is_plain(part)), None)
    if wrong is not None:
        quoted = ascii(name if len(name) <= SHOWN else name[: SHOWN - 1] + "…")
        raise CorpusError(
            f"refers to the file {quoted}, expected a plain relative name", where=where or str(root), hint=_HINT, code="outside"
        )
    path = os.fspath(root)
    for part in parts:
        path = f"{path}/{part}"
        if os.path.islink(path) and not _stays(path, root):  # noqa: PTH114 - runs for every fixture: ten times as fast
            raise CorpusError(
                f"refers to {name!r}, but {part!r} is a link that points outside the tree",
                where=where or str(root),
                hint="replace the link with the file",
                code="outside",
            )
    return Path(path)


def _stays(link: str, root: Path) -> bool:
    """Whether the target of a link lies inside the folder; False for a loop."""
    try:
        return Path(link).resolve(strict=False).is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a loop; RuntimeError until Python 3.12
        return False


def read_whole(path: Path, most: int = MOST) -> bytes:
    """The bytes of a regular file. Anything else is refused before reading: a pipe would block forever.

    Parameters:
        most: maximum size of the file in bytes.

    Raises:
        OSError: the file is missing, a folder, or cannot be read.
        CorpusError: (``not-a-file``) it is a pipe, a device or a socket; (``too-large``) it is larger than ``most``.
    """
    result = path.stat()
    if stat.S_ISREG(result.st_mode) or stat.S_ISDIR(result.st_mode):  # opening a folder raises the right error
        with open(path, "rb", opener=_without_waiting) as file:
            result = os.fstat(file.fileno())  # of the opened file: the path may have been replaced meanwhile
            if stat.S_ISREG(result.st_mode):
                if result.st_size > most:
                    raise CorpusError(
                        f"has {result.st_size:,} bytes, expected at most {most:,}", where=str(path), code="too-large"
                    )
                data = file.read(most + 1)
                if len(data) > most:
                    raise CorpusError(
                        f"grew to more than {most:,} bytes while it was being read", where=str(path), code="too-large"
                    )
                return data
    raise CorpusError("is not a regular file", where=str(path), code="not-a-file")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
