"""torch-compat: a compatibility-policy test harness and fixture corpus for PyTorch archives."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.inspection import inspect
    from harness.readers.reference import load
    from harness.state import fill_storages, load_state

__all__ = ["__version__", "fill_storages", "inspect", "load", "load_state"]

__version__ = "0.1.0"

# What is imported only when it is asked for, so that importing the package costs nothing.
LAZY = {
    "fill_storages": "harness.state",
    "inspect": "harness.inspection",
    "load": "harness.readers.reference",
    "load_state": "harness.state",
}


def __getattr__(name: str) -> Any:
    module = LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(module), name)
    return found
