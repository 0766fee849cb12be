"""Records about exported programs besides their archives: each release's schema, and its loader's behavior on altered archives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torch_compat.operators.export_schema import SCHEMA_FILE, WITNESSES_FILE, SchemaHistory, Witnesses
from torch_compat.operators.history import FactHistory
from torch_compat.places import inside, read_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RecordedExports", "read_exports"]

CONSTANTS: Final = "constants.txt"
OPSET: Final = "max_operator_version"


@dataclass(frozen=True)
class RecordedExports:
    """The recorded schemas and loader behavior of all releases.

    Attributes:
        schemas: the schema of each release.
        witnesses: each loader's behavior on altered archives.
        constants: the constants that releases write and report, including the operator set version.
        digest: SHA-256, in hex, of the files.
    """

    schemas: SchemaHistory
    witnesses: Witnesses
    constants: FactHistory
    digest: str

    def opset(self, release: str) -> int | None:
        """Return the operator set version that a release writes into exported programs; None if it is not recorded."""
        if release not in self.constants.releases:
            return None
        try:
            version = self.constants.value(OPSET, release)
        except KeyError:
            return None
        return version if isinstance(version, int) else None


def read_exports(fixtures: Path) -> RecordedExports | None:
    """Return a corpus's records about exported programs; None if it has none.

    Raises:
        CorpusError: the files cannot be read, or one of them is missing.
    """
    files = [inside(fixtures, f"operators/{name}") for name in (SCHEMA_FILE, WITNESSES_FILE, CONSTANTS)]
    if not any(file.exists() for file in files[:2]):
        return None
    schemas, witnesses, constants = SchemaHistory(files[0]), Witnesses(files[1]), FactHistory(files[2])
    digest = hashlib.sha256()
    for file in files:
        digest.update(read_whole(file))
    return RecordedExports(schemas, witnesses, constants, digest.hexdigest())
