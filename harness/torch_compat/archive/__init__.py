"""Reads the records of archives: containers only, no tensors or pickles."""

from __future__ import annotations

from torch_compat.archive.base import Archive, Damage
from torch_compat.archive.container import open_archive
from torch_compat.archive.tar import TarArchive
from torch_compat.archive.zip import Member, ZipArchive

__all__ = ["Archive", "Damage", "Member", "TarArchive", "ZipArchive", "open_archive"]
