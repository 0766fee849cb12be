"""For the tests of contributors, in any repository: proofs of upgraders, and calls of operators as strategies of hypothesis.

:func:`prove_upgrader` needs nothing but this package. The strategies (:mod:`torch_compat.testing.strategies`) need hypothesis.
"""

from __future__ import annotations

from torch_compat.testing.upgraders import NotPreservedError, prove_upgrader

__all__ = ["NotPreservedError", "prove_upgrader"]
