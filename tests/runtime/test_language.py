from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.archives import HEAD, archive, program, run
from torch_compat.errors import Raised, Refused, Unsupported


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torch.add(3, 4)", 7),
        ("torch.add(9223372036854775807, 1)", -9223372036854775808),
        ("torch.mul(4611686018427387904, 2)", -9223372036854775808),
        ("torch.neg(-9223372036854775808)", -9223372036854775808),
        ("torch.floordiv(-7, 2)", -4),
        ("torch.remainder(-7, 2)", 1),
        ("torch.div(7, 2)", 3.5),
        ("torch.add(1, 0.5)", 1.5),
        ("int(-2.7)", -2),
        ("float(3)", 3.0),
        ("bool(0)", False),
        ("str(2.)", "2."),
        ("torch.format('{}|{}', 1, 0.5)", "1|0.5"),
        ("torch.__not__(True)", False),
        ("torch.__is__(None, None)", True),
        ("inf", math.inf),
        ("[1, 2, 3][-1]", 3),
        ("torch.slice([1, 2, 3, 4], 1, 9223372036854775807, 2)", [2, 4]),
        ("(1, 2, 3)[1:3]", (2, 3)),
        ("{'a': 1}['a']", 1),
        ("annotate(List[int], [])", []),
        ("annotate(number, ops.prim.NumToTensor(3))", 3),
        ("annotate(int, ops.prim.NumToTensor(3))", 3),
        ("annotate(float, torch.tensor(2.5))", 2.5),
        ("unchecked_cast(int, 5)", 5),
        ("isinstance(5, int)", True),
        ("isinstance(5, (float, str))", False),
        ("isinstance(None, Optional[int])", True),
        ("1 if torch.lt(2, 3) else 0", 1),
        ("not True", False),
        ("(2 + 3) * 4 - 1", 19),
        ("-7 // 2", -4),
        ("3 in [1, 2, 3]", True),
        (r"'it\'s\n\"'", "it's\n\""),
        (r"'\303\251'", "é"),
    ],
)
def test_expressions(expression: str, value: Any) -> None:
    result = run(f"def forward(self) -> Any:\n  return {expression}")
    assert result == value
    assert type(result) is type(value)


def test_texts_are_bytes_inside_and_texts_outside() -> None:
    source = "def forward(self, s: str) -> Tuple[int, str, str]:\n  return (torch.len(s), torch.add(s, 'é'), torch.upper(s))"
    assert run(source, "caf\u00e9") == (5, "caf\u00e9\u00e9", "CAF\u00e9")


def test_half_a_character_cannot_leave() -> None:
    with pytest.raises(Raised) as caught:
        run("def forward(self, s: str) -> str:\n  return s[0]", "\u00e9")
    assert caught.value.code == "UnicodeDecodeError"


def test_loops_carry_values() -> None:
    source = """
def forward(self, n: int) -> Tuple[int, List[int]]:
  seen = annotate(List[int], [])
  total = 0
  for i in range(n):
    total = torch.add(total, i)
    _0 = torch.append(seen, total)
  more, left = True, total
  while more:
    left = torch.sub(left, 3)
    more = torch.gt(left, 0)
  return (left, seen)
"""
    assert run(source, 5) == (-2, [0, 1, 3, 6, 10])


COUNTING = """
def forward(self, n: int, f: float, l: List[int]) -> Tuple[int, float, int, int, bool]:
  i = n
  total = 4611686018427387904
  half = f
  last = 0
  small = True
  for k in range(torch.len(l)):
    total = torch.add(torch.mul(total, 3), torch.sub(i, l[k]))
    half = torch.add(torch.mul(half, 0.5), k)
    last = torch.remainder(torch.sub(k, 7), 4)
    i = torch.add(i, torch.floordiv(torch.neg(k), 2))
    small = torch.lt(total, half)
  return (total, half, last, i, small)
"""


@given(
    n=st.integers(-(2**63), 2**63 - 1), f=st.floats(allow_nan=False), items=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6)
)
@settings(max_examples=60, deadline=None)
def test_arithmetic_of_loops_is_that_of_the_operators(n: int, f: float, items: list[int]) -> None:
    """What is certainly a number is calculated without operators: the same bits have to come out."""

    def wrapped(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    i, total, half, last, small = n, 4611686018427387904, f, 0, True
    for k, item in enumerate(items):
        total = wrapped(total * 3 + (i - item))
        half = half * 0.5 + k
        last = (k - 7) % 4
        i = wrapped(i + -k // 2)
        small = total < half
    assert program(COUNTING).run("forward", (n, f, items)) == (total, half, last, i, small)


def test_what_is_declared_wrongly_is_found_where_it_comes_in() -> None:
    source = """
def forward(self, n: int) -> int:
  return (self).count("text", )
def count(self, n: int) -> int:
  total = n
  for i in range(3):
    total = torch.add(total, n)
  return total
"""
    with pytest.raises(Raised, match="expected an int, found a value of type str"):
        run(source, 1)


def test_classes_functions_named_tuples_and_enumerations() -> None:
    source = (
        HEAD
        + """  def forward(self: __torch__.m.Model,
    n: int) -> Tuple[int, int, str, int]:
    p = __torch__.m.Pair.__new__(__torch__.m.Pair)
    _0 = (p).__init__(n, )
    q = __torch__.m.Point(n, 2)
    a, b, = q
    _1 = __torch__.m.double
    mode = __torch__.m.Mode.FAST
    if torch.eq(mode, __torch__.m.Mode.SLOW):
      name = "slow"
    else:
      name = (mode).value
    return ((p).grow(3, ), _1(torch.add(a, (q)[1]), ), name, torch.add(p.a, b))
class Pair:
  a : int
  def __init__(self: __torch__.m.Pair,
    a: int) -> NoneType:
    self.a = a
    return None
  def grow(self: __torch__.m.Pair,
    by: int) -> int:
    a = self.a
    self.a = torch.add(a, by)
    return self.a
class Point(NamedTuple):
  x : int
  y : int
class Mode(Enum):
  FAST = "fast"
  SLOW = "it's slow"
def double(n: int) -> int:
  return torch.mul(n, 2)
"""
    )
    assert program(source).run("forward", (4,)) == (7, 12, "fast", 9)


def test_attributes_with_names_that_are_no_identifiers() -> None:
    source = """class Model(Module):
  __parameters__ = []
  __annotations__ = []
  __annotations__["0"] = int
  training : bool
  limit : Final[int] = 5
  def forward(self: __torch__.m.Model) -> int:
    return torch.add(getattr(self, "0"), self.limit)
"""
    assert program(source, attributes={"0": 7}).run("forward") == 12


def test_fork_and_wait() -> None:
    source = """
def forward(self, n: int) -> int:
  def __fork():
    return torch.mul(n, 2)
  first = fork(__fork)
  second = fork(__torch__.m.Model.other, self, n)
  return torch.add(torch.wait(first), torch.wait(second))
def other(self, n: int) -> int:
  return torch.add(n, 1)
"""
    assert run(source, 5) == 16


def test_a_fork_raises_where_it_is_waited_for() -> None:
    source = """
def forward(self, n: int) -> int:
  first = fork(__torch__.m.Model.other, self, n)
  if torch.gt(n, 3):
    return 0
  return torch.wait(first)
def other(self, n: int) -> int:
  ops.prim.RaiseException("no")
  return n
"""
    assert run(source, 5) == 0
    with pytest.raises(Raised, match="no"):
        run(source, 1)


def test_with_calls_enter_and_exit_also_when_the_body_raises() -> None:
    source = (
        HEAD
        + """  log : List[int]
  def forward(self, fail: bool) -> int:
    with __torch__.m.Guard.__new__(__torch__.m.Guard) as g:
      _0 = torch.append(self.log, 1)
      if fail:
        ops.prim.RaiseException("failed")
      else:
        pass
    return torch.len(self.log)
class Guard:
  def __enter__(self: __torch__.m.Guard) -> int:
    return 3
  def __exit__(self: __torch__.m.Guard,
    type: Any,
    value: Any,
    trace: Any) -> NoneType:
    torch.set_grad_enabled(True)
    return None
"""
    )
    module = program(source, attributes={"log": []})
    assert module.run("forward", (False,)) == 1
    with pytest.raises(Raised, match="failed"):
        module.run("forward", (True,))


def test_what_is_written_through_the_result_of_enter_is_read_later() -> None:
    """As 1.12.1 to 2.15.0 return it for a program of 2.13.0."""
    source = """class Model(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self) -> List[int]:
    log = __torch__.m.Log.__new__(__torch__.m.Log)
    _1 = (log).__init__()
    with log as again:
      lines = again.lines
      _0 = torch.append(lines, 2)
    return log.lines
class Log:
  lines : List[int]
  def __enter__(self: __torch__.m.Log) -> __torch__.m.Log:
    _0 = torch.append(self.lines, 1)
    return self
  def __exit__(self: __torch__.m.Log,
    type: Any,
    value: Any,
    trace: Any) -> NoneType:
    _0 = torch.append(self.lines, 3)
    return None
  def __init__(self: __torch__.m.Log) -> NoneType:
    self.lines = annotate(List[int], [])
    return None
"""
    assert program(source).run("forward", ()) == [1, 2, 3]


def test_hooks_run_when_the_module_itself_is_called() -> None:
    source = """class Model(Module):
  __parameters__ = []
  __buffers__ = []
  __forward_pre_hooks__ = ["before", ]
  __forward_hooks__ = ["after", ]
  training : bool
  def forward(self, n: int) -> int:
    return torch.mul(n, 2)
  def before(self, input: Tuple[int]) -> Tuple[int]:
    return (torch.add((input)[0], 1),)
  def after(self, input: Tuple[int], output: int) -> int:
    return torch.neg(output)
"""
    module = program(source)
    assert module(3) == -8
    assert module.forward(3) == 6


def test_arguments_are_converted_as_torch_does() -> None:
    module = program(
        "def forward(self, a: float, b: Optional[List[int]], c: Dict[str, Tuple[int, float]]=None) -> Any:\n  return (a, b)"
    )
    assert module.run("forward", (2, (1, True), {})) == (2.0, [1, 1])
    assert module.run("forward", (2, None)) == (2.0, None)
    for wrong in (("x", None), (1.0, ["x"]), (1.0, None, {1: (1, 2)}), (1.0, None, {"a": (1,)}), ()):
        with pytest.raises(Raised):
            module.run("forward", wrong)
    assert module.run("forward", (), {"b": [3], "a": 1}) == (1.0, [3])


def test_lists_are_copied_at_the_border() -> None:
    given = [1]
    module = program("def forward(self, a: List[int]) -> List[int]:\n  _0 = torch.append(a, 2)\n  return a")
    assert module.run("forward", (given,)) == [1, 2]
    assert given == [1]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("[1][3]", "IndexError"), ("{'a': 1}['b']", "RuntimeError"), ("torch.floordiv(1, 0)", "RuntimeError"),
     ("torch.pop([], 0)", "IndexError")],
)  # fmt: skip
def test_errors_of_the_program_are_raised(expression: str, kind: str) -> None:
    with pytest.raises(Raised) as caught:
        run(f"def forward(self) -> Any:\n  return {expression}")
    assert caught.value.code == kind


def test_a_variable_without_a_value_is_the_programs_error() -> None:
    with pytest.raises(Raised):
        run("def forward(self, n: int) -> int:\n  if torch.gt(n, 0):\n    x = 1\n  else:\n    pass\n  return x", 0)


def test_an_operator_that_is_missing_is_unsupported_and_named_only_where_it_is_called() -> None:
    module = program(
        "def forward(self, n: int) -> int:\n  if torch.gt(n, 0):\n    n = torch.no_such(n)\n  else:\n    pass\n  return n"
    )
    assert module.program.missing == {"aten::no_such"}
    assert module.run("forward", (0,)) == 0
    with pytest.raises(Unsupported, match="aten::no_such"):
        module.run("forward", (1,))


def test_a_literal_of_the_wrong_type_is_refused_as_its_own_release_does() -> None:
    with pytest.raises(Refused, match="annotated"):
        program("def forward(self) -> Tuple[float, float]:\n  return (30000000000000000, 1e+18)")


def test_files_may_refer_to_each_other_in_circles() -> None:
    other = "class Leaf:\n  n : int\n  def up(self, m: __torch__.m.Model) -> int:\n    return (m).size()\n"
    source = (
        HEAD
        + """  def forward(self) -> int:
    leaf = __torch__.other.Leaf.__new__(__torch__.other.Leaf)
    return (leaf).up(self, )
  def size(self) -> int:
    return 3
"""
    )
    from torch_compat.runtime.load import load  # noqa: PLC0415

    assert load(archive({"__torch__/m.py": source, "__torch__/other.py": other})).run("forward") == 3


@pytest.mark.parametrize("horizon", ["reference@1.4.0", "reference@1.5.1", "reference@1.6.0"])
def test_walks_over_dictionaries_are_sorted_up_to_1_5(horizon: str) -> None:
    source = "def forward(self) -> List[str]:\n  return torch.keys({'b': 1, 'a': 2})"
    expected = ["b", "a"] if horizon.endswith("1.6.0") else ["a", "b"]
    assert run(source, horizon=horizon, version=1) == expected
