"""torch-compat: a compatibility-policy test harness and fixture corpus for PyTorch archives."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from torch_compat import errors
from torch_compat.version import __version__

if TYPE_CHECKING:
    from torch_compat.inspection import inspect
    from torch_compat.readers.reference import load
    from torch_compat.state import fill_storages, load_state

__all__ = ["__version__", "errors", "fill_storages", "inspect", "load", "load_state"]

# Imported on first access, so that importing the package stays cheap.
LAZY = {
    "fill_storages": "torch_compat.state",
    "inspect": "torch_compat.inspection",
    "load": "torch_compat.readers.reference",
    "load_state": "torch_compat.state",
}


def __getattr__(name: str) -> Any:
    module = LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    result = globals()[name] = getattr(importlib.import_module(module), name)
    return result
