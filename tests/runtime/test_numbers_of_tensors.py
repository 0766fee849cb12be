"""Numbers from a tensor whose type the source does not state: a bool among them is treated as an integer, and an assertion fails.

42 functions of ``x.item()`` were written by 1.10.2 and 2.13.0 and read by 1.8.1, 1.9.1, 1.12.1 and 2.15.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import run
from torch_compat.errors import Raised
from torch_compat.runtime.tensor import Tensor


def told(body: str, value: Any, horizon: str) -> Any:
    """What a method gives, of a tensor without dimensions; "raises" where an assertion fails."""
    lines = body.replace("\n", "\n  ")
    try:
        tensor = run(
            f"\ndef forward(self: __torch__.m.Model,\n    x: Tensor) -> Any:\n  {lines}\n",
            Tensor(np.array(value)),
            horizon=f"reference@{horizon}",
        )
    except Raised as error:
        return "raises" if "isInt() INTERNAL ASSERT FAILED" in error.message else error.message
    return tensor.array.tolist() if isinstance(tensor, Tensor) else tensor


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("return float(torch.item(x))", 1.0),
        ("v = torch.item(x)\nreturn float(v)", 1.0),
        ("if bool(x):\n  v = torch.item(x)\nelse:\n  v = 0\nreturn float(v)", 1.0),
        ("return torch.add(torch.item(x), 1)", 2),
        ("return torch.add(1, torch.item(x))", 2),
        ("return torch.neg(torch.item(x))", -1),
        ("return torch.lt(torch.item(x), 2)", True),
        ("return torch.eq(torch.item(x), 1)", True),
        ("v = torch.item(x)\nreturn torch.eq(v, v)", True),
        ("return ops.prim.abs(torch.item(x))", 1),
        ("return ops.prim.min(torch.item(x), 2)", 1),
        ("return torch.floor(torch.item(x))", 1),
        ("return torch.tensor(float(torch.item(x)))", 1.0),
    ],
)
def test_operators_of_numbers_refuse_a_bool_from_1_9_on(body: str, before: Any) -> None:
    assert told(body, True, "1.8.1") == before
    for horizon in ("1.9.1", "1.12.1", "2.15.0"):
        assert told(body, True, horizon) == "raises"
        assert told(body, 1, horizon) == before


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return int(torch.item(x))", 1),
        ("return bool(torch.item(x))", True),
        ("return str(torch.item(x))", "True"),
        ("return torch.mul(torch.tensor([2., 3.]), torch.item(x))", [2.0, 3.0]),
        ("return torch.full([2], torch.item(x))", [True, True]),
        ("b = bool(x)\nreturn float(b)", 1.0),
    ],
)
def test_other_operators_take_it(body: str, found: Any) -> None:
    assert told(body, True, "1.9.1") == found
    assert told(body, True, "2.15.0") == found
