"""Helpers for contributors' tests in any repository: proofs of upgraders, and operator calls as hypothesis strategies.

:func:`prove_upgrader` needs only this package. The strategies (:mod:`torch_compat.testing.strategies`) need hypothesis.
"""

from __future__ import annotations

from torch_compat.testing.upgraders import NotPreservedError, prove_upgrader

__all__ = ["NotPreservedError", "prove_upgrader"]
