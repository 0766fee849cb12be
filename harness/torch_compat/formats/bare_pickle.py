"""A single pickle and nothing else: ``data.pkl`` extracted from an archive, or the output of pickle.dump.

No release of torch writes this by itself, and torch.load refuses it (it expects the magic number of a stream first). It is read here
because people have such files: its names can be reported, but its storages are absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.archive import Damage
from torch_compat.formats.model import StorageRecord
from torch_compat.pickles import unpickle
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.archive import Archive
    from torch_compat.formats.model import Facts

__all__ = ["FAMILY", "LAYOUT", "read", "versions"]

LAYOUT, FAMILY = "bare_pickle", "torch-save"
WHY = "the file contains no storages"


def versions(archive: Archive) -> dict[str, int]:  # noqa: ARG001 - as every format
    """No version that torch knows."""
    return {}


def read(archive: Archive, facts: Facts) -> None:
    """Fill in the facts of the pickle.

    Raises:
        ArchiveError: it cannot be read.
    """
    unpickled = facts.pickles["pickle"] = unpickle(archive.data, where=archive.path, allowance=archive.allowance)
    facts.extra["pickle_protocol"] = unpickled.protocol
    for storage in unpickled.storages:
        facts.storages.append(
            StorageRecord(storage.key, storage.dtype, storage.nbytes, None, absent=True, why=WHY, device=storage.location)
        )
    if unpickled.end < len(archive.data):
        message = f"{count_of(len(archive.data) - unpickled.end, 'byte follows', 'bytes follow')} the pickle"
        facts.damage.append(Damage("junk-after", None, message, unpickled.end))
