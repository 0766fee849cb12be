"""Programs of tools/ and benchmarks/ as modules: these folders are not packages, and tests run where they are not on the path."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def program(name: str, folder: str = "tools") -> Any:
    """The module of FOLDER/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", Path(__file__).parents[1] / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
