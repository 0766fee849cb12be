"""Bytes of an archive to records. Knows containers; knows no tensors and no pickles."""

from __future__ import annotations

from harness.archive.base import Archive, Damage
from harness.archive.container import open_archive
from harness.archive.tar import TarArchive
from harness.archive.zip import Member, ZipArchive

__all__ = ["Archive", "Damage", "Member", "TarArchive", "ZipArchive", "open_archive"]
