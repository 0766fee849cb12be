"""The records about operators that judging uses."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torch_compat.operators.history import FactHistory, History
from torch_compat.places import inside, read_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SCHEMAS", "VERSIONS", "RecordedOperators", "read_operators"]

SCHEMAS: Final = "schemas.txt"
VERSIONS: Final = "operator_versions.txt"


@dataclass(frozen=True)
class RecordedOperators:
    """The recorded operators of all releases.

    Attributes:
        schemas: every schema, with the releases that have it.
        versions: the upgraders of every release that exposes them.
        digest: SHA-256, in hex, of the files.
    """

    schemas: History
    versions: FactHistory
    digest: str


def read_operators(fixtures: Path) -> RecordedOperators | None:
    """Return a corpus's records about operators; None if it has none.

    Raises:
        CorpusError: the files cannot be read, or one of the two is missing.
    """
    files = [inside(fixtures, f"operators/{name}") for name in (SCHEMAS, VERSIONS)]
    if not any(file.exists() for file in files):
        return None
    schemas, versions = History(files[0]), FactHistory(files[1])
    digest = hashlib.sha256()
    for file in files:
        digest.update(read_whole(file))
    return RecordedOperators(schemas, versions, digest.hexdigest())
