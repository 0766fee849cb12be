"""Operators and names of PyTorch across releases: what every release has, as recorded from the real ones.

:mod:`harness.operators.history` reads the recorded histories, :mod:`harness.operators.shape` what a call needs to know of a schema.
Standard library only, and quick to import: inspecting a small archive must not wait for it.
"""
