"""Allowed differences between two trees for a recipe that another processor rounds differently."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torch_compat.corpus.observations import Observation
from torch_compat.replay.rehearsal import _told_apart_by_bits
from torch_compat.values.compare import Difference

SAME = Observation("torch-2.15.0/roots", "default", "a", "same", heard=True)


def off_by(ulp: int, kind: str = "value") -> Observation:
    """The same cell with numbers that differ from the golden."""
    result = Difference(kind, "calls[0].first.value", "float32", {"count": 1, "max_ulp": ulp})
    return replace(
        SAME, result="differs", differences=(result,), extent=({"kind": kind, "count": 1},), count=1, digest="b", key="c"
    )


@pytest.mark.parametrize(
    ("one", "other", "recipes", "bits"),
    [
        (SAME, off_by(1), {"roots"}, True),
        (off_by(1), off_by(2), {"roots"}, True),
        (SAME, off_by(1), {"others"}, False),
        (SAME, off_by(1000), {"roots"}, False),
        (SAME, off_by(1, "dtype"), {"roots"}, False),
        (SAME, replace(SAME, warnings=(("UserWarning", "no"),)), {"roots"}, False),
        (SAME, replace(SAME, result="refused", errors=({"type": "RuntimeError", "message": "no"},)), {"roots"}, False),
        (SAME, None, {"roots"}, False),
    ],
)
def test_only_last_bits_of_a_recipe_that_is_rounded_elsewhere_are_passed_over(
    one: Observation, other: Observation | None, recipes: set[str], *, bits: bool
) -> None:
    assert _told_apart_by_bits(one, other, recipes) is bits
