"""Bytes of an archive to records. Knows containers; knows no tensors and no pickles."""

from __future__ import annotations

from harness.archive.container import Archive, open_archive

__all__ = ["Archive", "open_archive"]
