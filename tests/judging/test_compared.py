"""Comparison of two readers: random differences are neither new nor fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.deprecations import DeprecationObservation, Use
from torch_compat.corpus.observations import ObservedReader
from torch_compat.judging.compared import compare_deprecations

if TYPE_CHECKING:
    from torch_compat.judging.compared import Compared

LATE, WORKED, RAISED = Use("timed-out"), Use("worked"), Use("raised", error={"type": "builtins.TypeError", "message": "no"})


def compared(before: Use, after: Use) -> Compared:
    """Two readers that differ in one deprecated thing."""
    earlier, later = (
        ObservedReader(
            name, {"torch": "1.6.0"}, "2026-01-01", 1, {}, {}, {"old": DeprecationObservation("old", "k", use, WORKED, ())}
        )
        for name, use in (("torch-1.6.0", before), ("torch-1.7.0", after))
    )
    return compare_deprecations(earlier, later, ())


@pytest.mark.parametrize(("before", "after"), [(WORKED, LATE), (LATE, WORKED), (RAISED, LATE), (LATE, RAISED)])
def test_what_comes_to_no_end_with_one_reader_alone_is_not_compared(before: Use, after: Use) -> None:
    result = compared(before, after)
    assert (result.moved, result.same, result.unended) == ((), 0, ("old (deprecated)",))


def test_what_ends_is_compared_and_what_never_ends_is_the_same() -> None:
    assert [item.state for item in compared(WORKED, RAISED).moved] == ["new"]
    assert [item.state for item in compared(RAISED, WORKED).moved] == ["mended"]
    assert compared(LATE, LATE).same == 1
