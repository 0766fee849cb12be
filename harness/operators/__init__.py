"""Operators and names of PyTorch across releases: what every release has, as recorded from the real ones.

:mod:`harness.operators.history` reads the recorded histories, :mod:`harness.operators.shape` what a call needs to know of a schema.
:mod:`harness.operators.schema` and :mod:`harness.operators.types` are the whole grammar, :mod:`harness.operators.compatibility` PyTorch's
rules over pairs of schemas, :mod:`harness.operators.changes` what they say of two releases.
Standard library only, and quick to import: inspecting a small archive must not wait for it.
"""
