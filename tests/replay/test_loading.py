"""Which release loads which archive: a load that returned counts, and an unreliable one is an error."""

from __future__ import annotations

import pytest

from torch_compat.corpus.observations import Observation
from torch_compat.errors import CorpusError
from torch_compat.replay.loading import loads

SAME = Observation("torch-1.5.1/add", "default", "0" * 20, "same")
REFUSED = Observation("torch-1.5.1/add", "default", "0" * 20, "refused")
CRASHED = Observation("torch-1.5.1/add", "default", "0" * 20, "crashed", stage="call", signal="SIGSEGV")
DIED = Observation("torch-1.5.1/add", "default", "0" * 20, "crashed", stage="load", signal="SIGSEGV")


def unstable(*both: Observation) -> Observation:
    return Observation("torch-1.5.1/add", "default", "0" * 20, "unstable", both=both)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (SAME, True),
        (REFUSED, False),
        (CRASHED, True),
        (DIED, False),
        (unstable(SAME, CRASHED), True),
        (unstable(REFUSED, DIED), False),
    ],
)
def test_whether_it_loads(cell: Observation, expected: bool) -> None:
    assert loads(cell) is expected


def test_what_loads_once_of_twice() -> None:
    with pytest.raises(CorpusError, match=r"torch-1\.5\.1/add default: loaded in only one of two runs"):
        loads(unstable(SAME, REFUSED))
