"""The small policy and that of this repository, whose calendars are tested here."""

from __future__ import annotations

from tests.policy.conftest import files, pristine, small, torch, write

__all__ = ["files", "pristine", "small", "torch", "write"]
