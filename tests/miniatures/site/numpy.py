"""The part of numpy that the worker needs."""

from __future__ import annotations

__version__ = "1.26.4"
