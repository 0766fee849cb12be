"""Lists of constant tensors as indices: rejected by 1.8.1, 1.10.2 and 1.11.0, accepted by 1.7.1, 1.12.1 and 2.13.0."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised
from torch_compat.runtime.tensor import Tensor

MADE = "torch.tensor([0, -1], dtype=None, device=None, requires_grad=False)"
CONSTANT = [
    f"i = {MADE}\n  return torch.index(x, [i])",
    f"return torch.index(x, [{MADE}])",
    f"i = torch.add({MADE}, 0, alpha=1)\n  return torch.index(x, [i])",
    f"l = [{MADE}]\n  return torch.index(x, l)",
    f"i = {MADE}\n  return torch.index_put(x, [i], torch.neg(x), False)",
    f"i = {MADE}\n  return torch.index_put_(torch.neg(x), [i], x, False)",
]
OTHER = [
    "return torch.index(x, [torch.argmax(x, 1, False)])",
    f"return torch.index(x, [{MADE}, torch.argmax(x, 1, False)])",
    f"l = annotate(List[Optional[Tensor]], [{MADE}])\n  return torch.index(x, l)",
    f"i = {MADE}\n  return torch.stack([i, i], 0)",
    "return torch.index(torch.cat([x, x], 0), [torch.tensor([torch.len(torch.size(x)), 0], dtype=None, device=None, requires_grad=False)])",
    f"if torch.gt(torch.dim(x), 5):\n    y = torch.index(x, [{MADE}])\n  else:\n    y = x\n  return y",
]


def _run(body: str, horizon: str) -> Tensor:
    x = Tensor(np.array([[0, 1], [2, 3]], np.float32))
    result = program(f"def forward(self, x: Tensor) -> Tensor:\n  {body}", f"reference@{horizon}").run("forward", (x,))
    assert isinstance(result, Tensor)
    return result


@pytest.mark.parametrize("body", CONSTANT)
def test_from_1_8_to_1_11_a_list_of_constant_tensors_is_no_index(body: str) -> None:
    for horizon in ("1.8.1", "1.10.2", "1.11.0"):
        with pytest.raises(Raised, match="Tried to cast a List<Tensor> to a List<Tensor\\?>"):
            _run(body, horizon)
    for horizon in ("1.7.1", "1.12.1", "2.13.0"):
        assert _run(body, horizon).shape == (2, 2)


@pytest.mark.parametrize("body", OTHER)
def test_any_other_list_is_one(body: str) -> None:
    assert _run(body, "1.10.2").array.size
