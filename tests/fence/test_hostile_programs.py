"""Programs of an attacker cannot escape: no foreign memory, no invalid value, no audit event of Python."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tools.fence.children import run_all
from tools.fence.oracle import Outside, check_value, inside
from tools.fence.programs import generated, operators
from torch_compat.runtime.tensor import Tensor

COUNT = 1000  # `python -m tools.fence --count 10000` runs more


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux keeps to a limit of address space")
def test_no_program_gets_outside() -> None:
    done = run_all(20261122, list(range(COUNT)))
    assert [item for item in done if item.outside] == []
    assert len(done) == COUNT
    assert sum(item.outcome == "value" for item in done) > COUNT / 40  # they do run


def test_programs_are_the_same_each_time_and_reach_every_operator() -> None:
    assert generated(1, 5) == generated(1, 5)
    assert len({name for name, _, _ in operators()}) > 900


# The oracle itself notices what is outside.


def test_the_oracle_notices_memory_outside() -> None:
    owner = np.arange(8)
    good = owner[2:6]
    assert inside(owner)
    assert inside(good[::-1])
    assert inside(np.broadcast_to(owner[:1], (5, 5)))
    assert not inside(np.lib.stride_tricks.as_strided(owner, (9,), (8,)))
    assert not inside(np.lib.stride_tricks.as_strided(good, (4,), (-8,)))
    assert not inside(np.lib.stride_tricks.as_strided(np.frombuffer(b"12345678", np.uint8), (2,), (8,)))
    assert not inside(np.array([None, 1]))


VALUES_OF_PYTHON = {
    "builtin": len, "method": [1].index, "type": int, "class": Tensor, "object": object(), "inside": [(1, {2: eval})], "function": lambda: 1,
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES_OF_PYTHON.values(), ids=VALUES_OF_PYTHON)
def test_the_oracle_notices_values_of_python(value: object) -> None:
    with pytest.raises(Outside):
        check_value(value)
