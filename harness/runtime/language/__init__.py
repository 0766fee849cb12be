"""TorchScript's serialized language: source to code.

* :mod:`harness.runtime.language.types`: annotations, and values of declared types at the border
* :mod:`harness.runtime.language.unit`: one file of source to functions and classes
* :mod:`harness.runtime.language.body`: the body of a function; with :mod:`~harness.runtime.language.inference` of types in loops
* :mod:`harness.runtime.language.called`: what compiled bodies call beside operators
"""

from __future__ import annotations

from harness.runtime.language.types import Type, parse_type, read_type
from harness.runtime.language.unit import SourceError, Unit

__all__ = ["SourceError", "Type", "Unit", "parse_type", "read_type"]
