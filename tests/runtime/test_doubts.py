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


FIVE = "torch.mul(torch.add(torch.mul(torch.mul(x, 2), x), torch.mul(x, 3), alpha=1), x)"
NEW = "g = torch.zeros([2], dtype=None, layout=None, device=None, pin_memory=None)\n"
COPIED = f"{NEW}_0 = torch.copy_(g, x, False)\n"


@pytest.mark.parametrize(
    ("source", "result", "expected"),
    [
        (NEW, "{h}, g", False),
        (COPIED, "{h}, g", True),
        (COPIED, "{h}, torch.select(g, 0, 0)", True),
        (COPIED, "{h}, torch.view(g, [1, 2])", True),
        (COPIED, "{h}, torch.reshape(g, [1, 2])", False),
        (COPIED, "{h}, torch.contiguous(g, memory_format=0)", False),
        (COPIED, "{h}, torch.add(g, 1, 1)", False),
        (COPIED, "{h}, x", False),
        (f"{COPIED}a, b, = torch.chunk(g, 2, 0)\n", "{h}, a", True),
        (f"{COPIED}k = torch.add_(g, 1, 1)\n", "{h}, k", True),
        (f"{NEW}_0 = torch.copy_(torch.select(g, 0, 0), torch.select(x, 0, 0), False)\n", "{h}, g", True),
        (f"{NEW}_0 = torch.add_(g, x, alpha=1)\n", "{h}, g", False),
        (f"{NEW}_0 = torch.fill_(g, 2)\n", "{h}, g", False),
        (f"{NEW}_0 = torch.resize_(g, [1], memory_format=None)\n", "{h}, g", True),
        (f"{NEW}_0 = torch.add(x, x, alpha=1, out=g)\n", "{h}, g", True),
        ("_0 = torch.copy_(x, x, False)\n", "{h}, 2", True),
        ("_0 = torch.copy_(self.b, x, False)\n", "{h}, 2", True),
    ],
)
def test_a_method_that_resizes_what_others_may_hold_doubts_its_inputs(source: str, result: str, expected: bool) -> None:
    """Asked of 1.6.0. A returned list counts as well, but a single tensor does not."""
    body = "".join(f"    {line}\n" for line in f"{source}return ({result.format(h=FIVE)})".split("\n"))
    method = f"{PLAIN}  def forward({X}) -> Tuple[Tensor, Any]:\n{body}"
    for horizon in ("1.6.0", "1.7.1"):
        module = program(method, f"reference@{horizon}", attributes={"n": 0})
        setattr(module.object, "a_b", Tensor(np.ones(2, np.float32)))  # noqa: B010
        first = module.run("forward", (Tensor(np.array([1, 2], np.float32)),))[0]
        assert first.requires_grad is (expected and horizon == "1.6.0")
    assert not required(f"{COPIED}return g", head=PLAIN)
