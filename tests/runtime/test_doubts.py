"""What requires gradients in 1.6: results of 1.6.0 for the same methods, for machines without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.runtime.tensor import Tensor

HEAD = """class Model(Module):
  __parameters__ = []
  b : Tensor
  n : int
  ts : List[Tensor]
"""
PLAIN = HEAD.replace("  ts : List[Tensor]\n", "")
X = "self: __torch__.m.Model, x: Tensor"


def required(source: str, horizon: str = "1.6.0", *, parameter: bool = False, head: str = HEAD, given: Any = None) -> bool:
    body = "".join(f"    {line}\n" for line in source.split("\n"))
    module = program(f"{head}  def forward({X}) -> Tensor:\n{body}", f"reference@{horizon}", attributes={"n": 0})
    setattr(module.object, "a_b", Tensor(np.ones(2, np.float32), requires_grad=parameter))  # noqa: B010
    setattr(module.object, "a_ts", [Tensor(np.ones(2, np.float32))])  # noqa: B010
    result = module.run("forward", (Tensor(np.array([1, 2], np.float32)) if given is None else given,))
    return bool(result.requires_grad)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.add(self.b, x, alpha=1)", True),
        ("torch.mul(self.b, x)", False),
        ("torch.exp(torch.mul(self.b, x))", True),
        ("torch.exp(torch.exp(torch.exp(torch.exp(self.b))))", False),
        ("torch.exp(torch.exp(torch.exp(torch.exp(torch.exp(self.b)))))", True),
        ("torch.sum(torch.mul(self.b, x), [0], False, dtype=None)", False),
        ("torch.add(torch.atan2(self.b, x), x, alpha=1)", True),
        ("torch.add(torch.detach(self.b), x, alpha=1)", False),
        ("torch.cat([x, x], 0)", True),
        ("torch.stack([x, x], 0)", False),
        ("torch.add(x, x, alpha=1)", False),
        ("torch.gt(self.b, x)", False),
    ],
)
def test_of_what_nobody_knows_five_nodes_are_differentiated(expression: str, expected: bool) -> None:
    assert required(f"return {expression}") is expected
    assert not required(f"return {expression}", "1.7.1")


def test_without_a_list_a_parameter_or_a_tensor_that_is_set_nothing_is_in_doubt() -> None:
    source = "return torch.add(self.b, x, alpha=1)"
    assert not required(source, head=PLAIN)
    assert required("y = torch.add(self.b, x, alpha=1)\nself.b = x\nreturn y", head=PLAIN)
    assert not required("self.n = 1\n" + source, head=PLAIN)


def test_integers_never_require_gradients() -> None:
    assert not required("return torch.to(torch.add(self.b, x, alpha=1), 4, False, False, None)")


@pytest.mark.parametrize(("horizon", "expected"), [("1.6.0", True), ("1.7.1", False), ("2.13.0", False)])
def test_elements_of_a_list_that_is_given_are_in_doubt(horizon: str, expected: bool) -> None:
    module = program(
        "def forward(self, xs: List[Tensor]) -> Tensor:\n  return torch.add(torch.mul(xs[0], 2), xs[1], alpha=1)",
        f"reference@{horizon}",
    )
    item = Tensor(np.ones(2, np.float32))
    assert module.run("forward", ([item, Tensor(np.ones(2, np.float32))],)).requires_grad is expected
    assert not item.requires_grad
