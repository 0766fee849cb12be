"""Decide which contradictions of an archive cast doubt on what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.archive import ZipArchive
from torch_compat.errors import Corrupt

if TYPE_CHECKING:
    from torch_compat.archive import Archive, Damage

__all__ = ["refuse_damage"]

# Contradictions that leave the contents of a record unambiguous.
HARMLESS = frozenset({
    "junk-after", "junk-before", "junk-between", "offset-disagrees", "outside-folder", "no-folder", "unlisted-record",
})  # fmt: skip


def refuse_damage(archive: Archive, touched: set[str]) -> None:
    """Raise the first contradiction that casts doubt on what was read.

    Raises:
        Corrupt: the archive contradicts itself.
    """
    for damage in archive.damage:
        if damage.code not in HARMLESS and (damage.record is None or damage.record in touched):
            raise Corrupt(damage.detail, where=_place(archive, damage), code=damage.code)


def _place(archive: Archive, damage: Damage) -> str:
    if damage.record is None:
        return archive.path
    kind = "record" if isinstance(archive, ZipArchive) else "storage"
    return f"{archive.path}, {kind} {damage.record!r}"
