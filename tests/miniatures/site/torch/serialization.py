"""As much of torch.serialization as the worker looks into: none of the newer accessors."""

from __future__ import annotations
