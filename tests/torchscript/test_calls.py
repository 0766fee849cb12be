"""Operators in TorchScript source, in the spelling of each release."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.torchscript.calls import Call
from torch_compat.torchscript.scanner import called, calls


def shapes(source: str) -> set[tuple[str, int | None, tuple[str, ...]]]:
    result = calls(source)
    assert {call.overload for call in result} <= {None}
    return {(call.name, call.positional, call.keywords) for call in result}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("  return torch.add(a, b)", {("aten::add", 2, ())}),
        ("  return torch.add(a, b, alpha=1)", {("aten::add", 2, ("alpha",))}),
        ('  x = torch.div(a, b, rounding_mode="trunc", out=c)', {("aten::div", 2, ("rounding_mode", "out"))}),
        ("  x = torch.rand()", {("aten::rand", 0, ())}),
        ("  x = torch.stack([a, b, c], 0)", {("aten::stack", 2, ())}),
        ("  x = torch.f((a, b), {1: 2, 3: 4}, k=[1, 2])", {("aten::f", 2, ("k",))}),
        ("  x = torch.mul(torch.add(a, 1, 1), torch.neg(b))", {("aten::mul", 2, ()), ("aten::add", 3, ()), ("aten::neg", 1, ())}),
        ('  ops.prim.RaiseException("a, torch.b(c)", "builtins.ValueError")', {("prim::RaiseException", 2, ())}),
        ("  x = ops.quantized.conv2d(a, b)", {("quantized::conv2d", 2, ())}),
        ("  x = ops.a.b.c(d)", {("a.b::c", 1, ())}),
        ("  if bool(torch.gt(a, 1)):", {("aten::Bool", 1, ()), ("aten::gt", 2, ())}),
        ("  x = int(a) ", {("aten::Int", 1, ())}),
        ("  print(a, b)", {("prim::Print", 2, ())}),
        ("  x = xs[0]", {("aten::__getitem__", 2, ())}),
        ("  x = torch.size(a)[0]", {("aten::size", 1, ()), ("aten::__getitem__", 2, ())}),
        ("  x = (pair)[0]", set()),
        ("  x = [a, b]", set()),
        ("  return [a, b]", set()),
        ("  x = annotate(List[int], [])", set()),
        ("  x : Optional[Dict[str, Tensor]] = unchecked_cast(Tensor, y)", set()),
        ("  _0 = (self).pick(flag, )\n  _1 = (x).int(3, )", set()),
        ("  _0 = __torch__.torch.nn.functional.elu(x, 1., )", set()),
        ("def torch(self, add: int=3) -> Tensor:\n  pass", set()),
        ("class Point(NamedTuple):\n  x : Tensor", set()),
        ("  for i in range(torch.len(xs)):", {("aten::len", 1, ())}),
        ('  x = "torch.add(a)" # torch.sub(b)', set()),
        ("  x = 'it\\'s torch.add(a)'", set()),
        ('  x = torch.format("{} \\" (", a)', {("aten::format", 2, ())}),
        ("  x = torch.full([2], 1, dtype=None, layout=None)", {("aten::full", 2, ("dtype", "layout"))}),
        ("  x = torch.a(\n    b,\n    c=d)", {("aten::a", 1, ("c",))}),
        ("  torch.Delete(d, -7)", {("aten::Delete", 2, ())}),
    ],
)
def test_what_a_line_calls(source: str, found: set[tuple[str, int, tuple[str, ...]]]) -> None:
    assert shapes(source) == found


def test_the_same_shape_is_told_once() -> None:
    assert calls("  x = torch.add(a, b)\n  y = torch.add(c, d)") == {Call("aten::add", None, 2, ())}


@given(st.text(alphabet="torch.add(),[]{}=\"'#\\ \n_1:->", max_size=200))
def test_no_text_is_too_much(source: str) -> None:
    assert all(call.name and (call.positional or 0) >= 0 for call in calls(source))


def test_a_long_text_takes_time_in_proportion() -> None:
    """A scanner that looks back would need minutes for it."""
    assert calls('"' * 1_000_000 + "(" * 100_000 + "a" * 1_000_000) == frozenset()


def test_what_stands_below_torch_autograd_is_an_operator_of_torch() -> None:
    result = called("def f(x: Tensor) -> Tensor:\n  return torch.autograd.grad([x], [x])\n")
    assert {shape.name for shape in result.shapes} == {"aten::grad"}
