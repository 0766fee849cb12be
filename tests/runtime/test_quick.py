"""Fast replacements for operators in loops do the same as the operators, for all arguments and horizons."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.runtime.archives import described, program
from torch_compat.errors import HarnessError
from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.language.quick import QUICK, SHORT
from torch_compat.runtime.tensor import Tensor

HORIZONS = [Release(release) for release in ("1.0.0", "1.2.0", "1.5.1", "1.6.0", "1.10.2", "2.0.1", "2.6.0", "2.15.0")]
GREATEST = (1 << 63) - 1
NUMBERS = (
    st.sampled_from([0, 1, -1, 2, 3, (1 << 63) - 1, -(1 << 63), 0.0, -0.0, 0.5, math.inf, -math.inf, math.nan, True, False])
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats()
)
SIMPLE = NUMBERS | st.sampled_from(["", "a", "b", "a" * SHORT, "a" * (SHORT + 1), None, 1j])
TENSORS = st.builds(
    lambda number, shape: Tensor(np.full(shape, number, np.float32)), st.integers(0, 3), st.sampled_from([(), (2,)])
)
KEYS = st.sampled_from([0, 1, 2, -1, 3, "a", 0.5, True])
VALUES = (
    SIMPLE | TENSORS | st.lists(NUMBERS, max_size=3) | st.lists(TENSORS, max_size=2) | st.dictionaries(KEYS, NUMBERS, max_size=3)
)


def end(call: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call ends in, and what it leaves of its arguments, in words that tell classes, bits and identities apart."""
    args = copy.deepcopy(args)
    try:
        with np.errstate(all="ignore"):
            value = call(*args)
    except HarnessError as error:
        return type(error), str(error), error.code, said(args)
    except (TypeError, AttributeError, ValueError, KeyError, IndexError) as error:  # which the module tells in its own words
        return type(error), said(args)
    return said(value), [value is arg for arg in args], said(args)


def said(value: Any) -> Any:
    """A value in words."""
    if isinstance(value, Tensor):
        return "tensor", value.array.dtype, value.array.shape, value.array.tobytes()
    if isinstance(value, list | tuple):
        return type(value), [said(item) for item in value]
    if isinstance(value, dict):
        return [(said(key), said(item)) for key, item in value.items()]
    return type(value), repr(value)


@pytest.mark.parametrize("name", QUICK)
@given(st.data())
@settings(max_examples=150)
def test_it_does_what_the_operator_does(name: str, data: st.DataObject) -> None:
    operator = registry.resolve(name, data.draw(st.sampled_from(HORIZONS)))
    alike = data.draw(st.booleans())
    values = data.draw(st.sampled_from([NUMBERS, VALUES]))
    args = tuple(data.draw(values) for _ in range(QUICK[name].arguments))
    if alike and len(args) == 2 and args[1].__class__ is not args[0].__class__:
        args = (args[0], copy.deepcopy(args[0]))
    quick = QUICK[name].made(operator)
    assert end(quick, args) == end(operator, args)


@pytest.mark.parametrize(
    ("name", "first", "second"), [("aten::add", GREATEST, 1), ("aten::sub", -GREATEST, 2), ("aten::mul", GREATEST, 3)]
)
def test_integers_wrap_as_the_operator_wraps_them(name: str, first: int, second: int) -> None:
    operator = registry.resolve(name, HORIZONS[-1])
    wrapped = QUICK[name].made(operator)(first, second)
    assert -GREATEST <= wrapped + 1 <= GREATEST + 1
    assert wrapped == operator(first, second)


@pytest.mark.parametrize("name", ["aten::append", "aten::pop", "aten::_set_item", "aten::__contains__"])
@given(st.data())
@settings(max_examples=150)
def test_it_does_what_the_operator_does_with_containers(name: str, data: st.DataObject) -> None:
    operator = registry.resolve(name, data.draw(st.sampled_from(HORIZONS)))
    container = data.draw(st.lists(NUMBERS, max_size=3) | st.dictionaries(KEYS, NUMBERS, max_size=3))
    args = (container, *(data.draw(KEYS | VALUES) for _ in range(QUICK[name].arguments - 1)))
    assert end(QUICK[name].made(operator), args) == end(operator, args)


SUM = """def forward(self, x: List[int], n: int):
  found = annotate(List[int], [])
  seen = annotate(Dict[int, int], {})
  for i in range(n):
    _0 = torch.append(found, x[i])
    if torch.__contains__(seen, x[i]):
      _1 = torch._set_item(seen, x[i], torch.add(seen[x[i]], 1))
    else:
      _1 = torch._set_item(seen, x[i], 1)
  while torch.gt(torch.len(found), 2):
    _2 = torch.pop(found)
  return (found, seen)
"""


@given(st.lists(st.integers(-3, 3), max_size=8))
@example([])
@settings(max_examples=30)
def test_loops_over_containers(numbers: list[int]) -> None:
    result, seen = program(SUM).run("forward", (numbers, len(numbers)))
    assert result == numbers[:2]
    assert seen == {number: numbers.count(number) for number in numbers}


def test_what_a_release_makes_something_else_of_is_left_to_it() -> None:
    """1.0 and 1.1 hold sums back until their last use, so that they are no operators that another function may stand for."""
    source = "def forward(self, x: Tensor) -> Tensor:\n  for i in range(2):\n    x = torch.add(x, x)\n  return x\n"
    old, new = described(source, "reference@1.0.0"), program(source, "reference@2.15.0")
    assert old.program.quick("aten::add", 2) is None
    assert new.program.quick("aten::add", 2) is not None
    assert new.program.quick("aten::add", 3) is None
    assert new.program.quick("aten::relu", 1) is None
