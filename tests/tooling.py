"""Programs of tools/ as modules: that folder is no package, and tests run where it is not on the path."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def program(name: str) -> Any:
    """The module of tools/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", Path(__file__).parents[1] / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
