"""Operators and names of PyTorch across releases: what every release has, as recorded from the real ones.

:mod:`torch_compat.operators.history` reads the recorded histories, :mod:`torch_compat.operators.call_signature` what a call needs to know of a schema.
:mod:`torch_compat.operators.schema` and :mod:`torch_compat.operators.types` are the whole grammar, :mod:`torch_compat.operators.compatibility` PyTorch's
rules over pairs of schemas, :mod:`torch_compat.operators.changes` what they say of two releases.
Standard library only, and quick to import: inspecting a small archive must not wait for it.
"""
