"""Operators, a file per family; :mod:`torch_compat.runtime.registry` describes how operators are written.

Semantics are torch's, not NumPy's. A missing operator is not an error of the program: the result is ``unsupported`` and names it.
"""
