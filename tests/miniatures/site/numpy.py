"""As much of numpy as the worker asks of it."""

from __future__ import annotations

__version__ = "1.26.4"
