"""Operators, one file for each family; see :mod:`torch_compat.runtime.registry` for how one is written.

Semantics are torch's, not numpy's. An operator that is missing is no error of the program: it is ``unsupported``, and named.
"""
