"""What requires gradients as of the second call: results of releases from 1.11.0 to 2.15.0 for the same methods, for machines without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime import differentiated, groups
from torch_compat.runtime.differentiated import _held
from torch_compat.runtime.doubts import tensors_of
from torch_compat.runtime.groups import RETURN, Groups, Operation, TooManySteps
from torch_compat.runtime.tensor import Tensor

HEAD = """class Model(Module):
  __parameters__ = ["w", ]
  w : Tensor
  d : Tensor
"""
TWICE = "y = torch.mul(x, 2)\n"
PRODUCT = "p = torch.matmul(x, self.d)\n"
SQUARE = [[0.5, 0.6, 0.7], [0.2, 0.3, 0.4], [0.6, 0.4, 0.2]]
ALL = ("1.11.0", "1.12.1", "1.13.1", "2.4.1", "2.15.0")


def model(source: str, horizon: str, *, parameter: bool = True, functions: str = "") -> Any:
    body = "".join(f"    {line}\n" for line in source.split("\n"))
    method = f"{HEAD}  def forward(self: __torch__.m.Model, x: Tensor) -> Any:\n{body}"
    module = program(method + functions, f"reference@{horizon}")
    setattr(module.object, "a_w", Tensor(np.ones(3, np.float32), requires_grad=parameter, is_parameter=True))  # noqa: B010
    setattr(module.object, "a_d", Tensor(np.eye(3, dtype=np.float32)))  # noqa: B010
    return module


def called(module: Any) -> str:
    results = module.run("forward", (Tensor(np.array(SQUARE, np.float32)),))
    return "".join("FT"[item.requires_grad] for item in results)


def second(source: str, horizon: str, **options: Any) -> str:
    """What the results of the second call require; those of the third call require the same."""
    module = model(source, horizon, **options)
    called(module)
    result = called(module)
    assert called(module) == result
    return result


W = "return (torch.mul(self.w, 2), "


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{TWICE}{W}torch.add(y, 1, 1), y)", {"1.12.1": "TTT", "1.13.1": "TFF"}),
        (f"{TWICE}{W}torch.exp(torch.sin(torch.add(y, 1, 1))), y)", {"1.12.1": "TTT", "2.4.1": "TFF"}),
        (f"{W}torch.mul(x, 2))", {"1.12.1": "TF", "2.15.0": "TF"}),
        (f"{TWICE}{W}torch.cumsum(y, 0), y)", {"1.12.1": "TFF"}),
        (f"{TWICE}{W}torch.mul(torch.dropout(y, 0.5, False), 3))", {"1.12.1": "TF"}),
        (f"{TWICE}return (torch.detach(self.w), torch.add(y, 1, 1))", {"1.12.1": "FF"}),
        (f"{TWICE}{W}torch.leaky_relu(y))", {"1.12.1": "TT", "1.13.1": "TF"}),
        (f"{TWICE}{W}torch.layer_norm(y, [3]))", {"1.11.0": "TT"}),
        (f"{TWICE}{W}torch.where(torch.gt(y, 0.5), y, self.d), y)", {"1.12.1": "TTT"}),
        (f"{TWICE}{W}torch.where(torch.gt(y, self.d), y, self.d), y)", {"1.12.1": "TFF"}),
        (f"{TWICE}{W}torch.mul(y, float(torch.size(y, 0))), y)", {"1.12.1": "TFF"}),
        (f"{TWICE}s = torch.sum(y, [1], True)\n{W}torch.div(y, s), y, s)", {"1.12.1": "TFFF"}),
        (f"y = torch.cat([torch.mul(x, 2), torch.mul(x, 3)], 0)\n{W}torch.mul(y, 2), y)", {"1.12.1": "TTT"}),
        (f"z = torch.mul(x, 2)\n{TWICE}{W}torch.add(z, 1, 1), y)", {"1.12.1": "TTT"}),
        (f"y = torch.cumsum(x, 1)\n{W}torch.mul(y, 2), torch.add(y, 1, 1))", {"1.11.0": "TFF"}),
        (f"t = torch.t(x)\nu = torch.add(t, 1, 1)\n{W}t, u, torch.mul(u, 2))", {"1.11.0": "TFFF"}),
        (f"t = torch.t(x)\nu = torch.add(t, 1, 1)\n{W}u, torch.mul(u, 2))", {"1.11.0": "TTT"}),
        (f"{TWICE}t = torch.t(y)\n{W}y, t, torch.add(y, 1, 1))", {"1.11.0": "TTTT"}),
        (f"{TWICE}t = torch.t(y)\n{W}y, t, torch.add(t, 1, 1))", {"1.11.0": "TFFF"}),
    ],
)
def test_results_of_a_group_require_gradients_up_to_1_12(source: str, expected: dict[str, str]) -> None:
    assert {horizon: second(source, horizon) for horizon in expected} == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("torch.mul(p, self.w), p", "TT"),
        ("torch.add(p, self.w, alpha=1), p", "TF"),
        ("torch.mul(torch.sin(p), self.w), p, torch.sin(p)", "TTT"),
        ("torch.add(torch.exp(p), self.w, alpha=1), p, torch.exp(p)", "TFT"),
        ("torch.mul(torch.mul(p, self.d), self.w), p", "TF"),
        ("torch.div(self.d, torch.add(p, 1, 1)), self.w", "FT"),
        ("torch.max(p, self.w), p", "TT"),
        ("torch.linear(torch.relu(p), torch.mul(self.w, self.d)), p, torch.relu(p)", "TFT"),
        ("torch.mul(self.w, 2), p, torch.sin(p)", "TTF"),
        ("torch.mul(torch.sum(torch.mul(p, p)), self.w), p, torch.mul(p, p)", "TFF"),
        ("torch.mul(torch.softmax(torch.mul(x, 2), -1, None), self.w), torch.softmax(torch.mul(x, 2), -1, None)", "TF"),
        ("torch.mul(torch.mean(x, [1]), self.w), torch.mean(x, [1])", "TT"),
        ("torch.mul(torch.mean(x), self.w), torch.mean(x)", "TF"),
    ],
)
def test_as_of_1_13_only_what_the_backward_pass_keeps_requires_gradients(result: str, expected: str) -> None:
    for horizon in ("1.13.1", "2.4.1", "2.15.0"):
        assert second(f"{PRODUCT}return ({result})", horizon) == expected


def test_2_0_knows_the_derivatives_of_gather_and_index_select() -> None:
    source = f"{PRODUCT}i = torch.argmax(x, 0)\nq = torch.index_select(p, 0, i)\nreturn (torch.mul(torch.sin(q), self.w), q)"
    assert [second(source, horizon) for horizon in ("1.13.1", "2.0.1", "2.1.2")] == ["TF", "TT", "TF"]


@pytest.mark.parametrize("horizon", ALL)
def test_the_first_call_and_programs_without_such_parameters_are_as_before(horizon: str) -> None:
    source = f"{PRODUCT}return (torch.mul(torch.sin(torch.sin(p)), self.w), p)"
    assert called(model(source, horizon)) == "TF"
    assert second(source, horizon) == "TT"
    assert second(source, horizon, parameter=False) == "FF"
    assert second(source, "1.7.1") == second(source, "1.10.2") == "TF"  # whose fuser is off in readers


def test_a_call_that_fails_profiles_nothing() -> None:
    module = model(f"{PRODUCT}return (torch.mul(p, self.w), p)", "2.4.1")
    with pytest.raises(Raised, match="shapes cannot be multiplied"):
        module.run("forward", (Tensor(np.ones((2, 2), np.float32)),))
    assert [called(module), called(module)] == ["TF", "TT"]


OPTION = """def scores(x: Tensor, dim: Optional[int]=None) -> Tensor:
  if torch.__is__(dim, None):
    y = torch.relu(x)
  else:
    y = torch.softmax(x, unchecked_cast(int, dim), None)
  return y
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s = __torch__.m.scores(torch.mul(x, 2), 1)", "TT"),
        ("if torch.eq(torch.dim(x), 2):\n  pass\nelse:\n  ops.prim.RaiseException('no')\ns = torch.sin(torch.mul(x, 2))", "TT"),
        ("if torch.eq(torch.dim(x), 2):\n  s = torch.sin(torch.mul(x, 2))\nelse:\n  s = x", "TF"),
        ("print(1)\ns = torch.sin(torch.mul(x, 2))", "TF"),
        ("s = torch.sin(torch.add_(torch.mul(x, 2), 1, 1))", "TF"),
    ],
)
def test_assertions_and_options_of_functions_do_not_divide_groups(source: str, expected: str) -> None:
    """The last three are not modeled: their results are those of the first call."""
    assert second(f"{source}\nreturn (torch.mul(self.w, 2), s)", "1.12.1", functions=OPTION) == expected


def test_shared_containers_are_visited_once() -> None:
    value: list[Any] = [Tensor(np.ones(1))]
    for _ in range(64):
        value = [value, value]
    assert len(list(tensors_of(value))) == 1


def test_what_every_module_shares_is_visited_once() -> None:
    """The tensors of a module with 300 attributes, all of them one list of 30,000 tensors; it would take minutes otherwise."""
    module = model("return (x,)", "2.15.0")
    shared = [Tensor(np.ones(1))] * 30_000
    for number in range(300):
        setattr(module.object, f"a_list{number}", shared)
    held = _held(module.object, [])
    assert sum(tensor is shared[0] for tensor in held) == 1


def dense(count: int) -> Groups:
    """Operators, each of which reads the results of all before it; every other one is a member."""
    values = [Tensor(np.ones(1), requires_grad=True)]
    nodes = []
    for number in range(count):
        node = Operation("mul", list(range(len(values))), member=number % 2 == 0)
        node.results.append(len(values))
        values.append(Tensor(np.ones(1)))
        nodes.append(node)
    nodes.append(Operation(RETURN, list(range(len(values)))))
    return Groups(Release("2.15.0"), nodes, values, set())


def test_a_graph_that_is_too_dense_is_not_modeled() -> None:
    assert dense(20).required() == set()
    with pytest.raises(TooManySteps):
        dense(400).required()


def test_a_chain_of_a_thousand_operators_is_modeled() -> None:
    source = "y = torch.matmul(x, self.d)\nz = torch.sin(y)\n" + "z = torch.sin(z)\n" * 990
    assert second(f"{source}return (torch.mul(z, self.w), y)", "2.15.0") == "TT"


def test_a_call_with_too_many_operators_is_not_modeled(monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"{PRODUCT}return (torch.mul(torch.sin(p), self.w), p)"
    monkeypatch.setattr(groups, "STEPS", 3)
    assert second(source, "2.15.0") == "TF"
    monkeypatch.undo()
    monkeypatch.setattr(differentiated, "MOST_READS", 3)
    assert second(source, "2.15.0") == "TF"
    monkeypatch.undo()
    assert second(source, "2.15.0") == "TT"
