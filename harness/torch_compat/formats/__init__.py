"""On-disk formats: identifies an archive by its records, and reads all facts that it states.

One module for each format; its docstring is the specification of that format.
"""

from __future__ import annotations

from torch_compat.formats.facts import Call, Facts, Producer, StorageRecord, read_facts
from torch_compat.formats.identify import Identity, identify, is_exported

__all__ = ["Call", "Facts", "Identity", "Producer", "StorageRecord", "identify", "is_exported", "read_facts"]
