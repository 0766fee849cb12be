"""On-disk formats: what an archive is, by the records it holds."""

from __future__ import annotations

from harness.formats.identify import Identity, identify

__all__ = ["Identity", "identify"]
