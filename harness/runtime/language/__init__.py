"""TorchScript's serialized language: source to code.

* :mod:`harness.runtime.language.types`: annotations, and values of declared types at the border
* :mod:`harness.runtime.language.compiler`: one file of source to functions and classes
"""

from __future__ import annotations

from harness.runtime.language.compiler import SourceError, Unit
from harness.runtime.language.types import Type, parse_type, read_type

__all__ = ["SourceError", "Type", "Unit", "parse_type", "read_type"]
