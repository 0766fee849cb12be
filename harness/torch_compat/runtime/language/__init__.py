"""TorchScript's serialized language: source to code.

* :mod:`torch_compat.runtime.language.types`: annotations, and values of declared types at the border
* :mod:`torch_compat.runtime.language.unit`: one file of source to functions and classes
* :mod:`torch_compat.runtime.language.body`: statements, :mod:`~torch_compat.runtime.language.expressions` within them; with :mod:`~torch_compat.runtime.language.inference` of types in loops
* :mod:`torch_compat.runtime.language.called`: what compiled bodies call beside operators
* :mod:`torch_compat.runtime.language.grammar`: the constructs that are taken, and those that a text holds
"""

from __future__ import annotations

from torch_compat.runtime.language.names import SourceError
from torch_compat.runtime.language.types import Type, parse_type, read_type
from torch_compat.runtime.language.unit import Unit

__all__ = ["SourceError", "Type", "Unit", "parse_type", "read_type"]
