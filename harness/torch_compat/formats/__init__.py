"""On-disk formats: identify an archive by its records, and read all facts that it states.

Each format has one module, whose docstring is the specification of the format.
"""

from __future__ import annotations

from torch_compat.formats.facts import Call, Facts, Producer, StorageRecord, read_facts
from torch_compat.formats.identify import Identity, identify, is_exported

__all__ = ["Call", "Facts", "Identity", "Producer", "StorageRecord", "identify", "is_exported", "read_facts"]
