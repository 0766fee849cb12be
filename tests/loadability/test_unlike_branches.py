"""Branches without a common type. 1.10.2, 2.1.2 and 2.13.0 wrote such functions, 1.12.1, 2.4.1 and 2.15.0 loaded them."""

from __future__ import annotations

import pytest

from torch_compat.loadability.unlike_branches import may_differ, with_unlike_branches
from torch_compat.torchscript.scanner import scan

FALLS_THROUGH = """_0 = uninitialized({unset})
if torch.eq(n, 0):
  _1, _2 = True, 5
else:
  if torch.eq(n, 1):
    _3, _4 = True, {second}
  else:
    _3, _4 = False, _0
  _1, _2 = _3, _4
if _1:
  _5 : Union[int, str] = _2
else:
  _5 = n
return _5"""
IN_A_LOOP = """_0 = uninitialized(Union[int, str])
_1 = uninitialized(str)
_2 = uninitialized(bool)
_3 = False
_4: Union[int, str] = _0
_5 = 0
_6 = torch.gt(n, 0)
while _6:
  if torch.eq(_5, 3):
    _7, _8, _9 = True, _2, _5
  else:
    if torch.eq(_5, 5):
      _10, _11 = True, {second}
    else:
      _10, _11 = False, _1
    _7, _8, _9 = _10, True, _11
  if _7:
    _12 = False
  else:
    _12 = _8
  _13 = torch.add(_5, 1)
  _14 = torch.__and__(torch.lt(_13, n), _12)
  _6, _3, _4, _5 = _14, _7, _9, _13
if _3:
  _15 : Union[int, str] = _4
else:
  _15 = "none"
return _15"""
DECLARED = """_0 = uninitialized(str)
if torch.eq(n, 0):
  _1 : Union[int, str] = 5
else:
  if torch.eq(n, 1):
    _2 : Union[int, str] = "a"
  else:
    _2 = n
  _1 = _2
return _1"""
UNREAD = """_0 = uninitialized(str)
if torch.eq(n, 0):
  _1, _2 = True, 5
else:
  _1, _2 = False, "a"
return n"""
FIRST_RETURNS = """_0 = uninitialized(int)
if torch.eq(n, 0):
  _1, _2 = True, 5
else:
  _1, _2 = False, _0
if _1:
  _3 : Union[int, str] = _2
else:
  _3 = "a"
return _3"""


def refused(body: str) -> bool:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"class Model(Module):\n  def forward(self: __torch__.m.Model, n: int, x: Tensor) -> Union[int, str]:\n{lines}"
    return may_differ(scan(source).code) and with_unlike_branches(source)


@pytest.mark.parametrize(
    "body",
    [
        FALLS_THROUGH.format(unset="str", second='"a"'),
        FALLS_THROUGH.format(unset="Tensor", second="torch.tensor(5)"),
        FALLS_THROUGH.format(unset="Tensor", second="x"),
        IN_A_LOOP.format(second='"five"'),
    ],
)
def test_a_variable_without_a_common_type_is_refused(body: str) -> None:
    assert refused(body)


@pytest.mark.parametrize(
    "body",
    [
        FALLS_THROUGH.format(unset="int", second="7"),
        DECLARED,
        UNREAD,
        FIRST_RETURNS,
        "return n",
        "_0 = uninitialized(int)\nreturn x",
    ],
)
def test_other_functions_are_not(body: str) -> None:
    assert not refused(body)


OF_STRINGS = ('torch.upper("a")', 'torch.format("{}", n)', 'torch.add("a", "b")', "str(n)")
OF_TENSORS = (
    "torch.relu(x)",
    "torch.mul(n, x)",
    "torch.sum(x)",
    "torch.max(x, x)",
    "torch.ones([2])",
    "torch.where(torch.gt(x, 0), x, x)",
)
OF_FLOATS = ("torch.div(n, 2)", "float(n)", "torch.mul(n, 0.5)", "torch.pow(1.5, n)")
OF_BOOLS = ("torch.gt(n, 3)", "torch.__not__(torch.gt(n, 3))", 'torch.eq("a", "b")', "bool(n)")
OF_INTS = (
    "torch.len([n])",
    "torch.size(x, 0)",
    "torch.floordiv(n, 2)",
    "torch.max(n, 3)",
    'ord("a")',
    "torch.dim(x)",
    "torch.floor(1.5)",
)


@pytest.mark.parametrize("result", [*OF_STRINGS, *OF_TENSORS, *OF_FLOATS, *OF_BOOLS])
def test_results_of_operators_have_types(result: str) -> None:
    assert refused(IN_A_LOOP.format(second=result))


@pytest.mark.parametrize("result", [*OF_INTS, "torch.sum([n, n])", "torch.max([n, n])", "torch.item(x)", "torch.max(x, 0)"])
def test_ints_and_unknown_results_are_not_refused(result: str) -> None:
    assert not refused(IN_A_LOOP.format(second=result).replace("uninitialized(str)", "uninitialized(int)"))


def test_source_that_is_not_parsed_is_left_to_the_reader() -> None:
    assert not with_unlike_branches("def f(x: Tensor:\n  return uninitialized(Union[int, str])\n")
