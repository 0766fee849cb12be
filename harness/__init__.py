"""torch-compat: a compatibility-policy test harness and fixture corpus for PyTorch archives."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.inspection import inspect

__all__ = ["__version__", "inspect"]

__version__ = "0.1.0"

# What is imported only when it is asked for, so that importing the package costs nothing.
LAZY = {"inspect": "harness.inspection"}


def __getattr__(name: str) -> Any:
    module = LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(module), name)
    return found
