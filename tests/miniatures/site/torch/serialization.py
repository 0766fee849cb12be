"""The part of torch.serialization that the worker needs, without the newer accessors."""

from __future__ import annotations
