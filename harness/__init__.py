"""torch-compat: a compatibility-policy test harness and fixture corpus for PyTorch archives."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
