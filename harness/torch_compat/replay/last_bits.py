"""Goldens that differ only in the last bits of floating-point numbers, as on another processor.

The libraries behind matrix products, decompositions and special functions choose their code by processor, so the same release rounds
differently on two machines.
"""

from __future__ import annotations

from typing import Final

from torch_compat.corpus.manifest import Fixture, NotWritable, same_but_for_varying
from torch_compat.values.compare import all_differences
from torch_compat.values.dtypes import DTYPES

__all__ = ["LAST_BITS", "is_rounded", "only_last_bits"]

LAST_BITS: Final = 4
"""How many ULPs a computed floating-point number may differ by between processors."""


def is_rounded(recorded: Fixture | NotWritable, again: Fixture | NotWritable) -> bool:
    """Whether a fixture that was produced again differs from the recorded one only in last bits, and in the content that stores them."""
    if not (isinstance(recorded, Fixture) and isinstance(again, Fixture)):
        return False
    fields = set(same_but_for_varying(recorded, again))
    return fields in ({"content", "golden"}, {"golden"}) and only_last_bits(recorded, again)


def only_last_bits(fixture: Fixture, other: Fixture) -> bool:
    """Whether two goldens differ only in the last bits of floating-point numbers, which depend on the processor."""
    if ("error" in fixture.golden) is not ("error" in other.golden):
        return False
    apart, errors = all_differences(fixture.golden, other.golden)
    kept = [
        result for result in apart if result.kind == "value" and result.dtype in DTYPES and DTYPES[result.dtype].kind == "float"
    ]
    return bool(apart) and kept == apart and not errors and all(float(result.facts["max_ulp"]) <= LAST_BITS for result in apart)
