"""Values passed as ``Any`` and narrowed: written by 1.10.2, which runs them; 1.6.0, 1.7.1, 1.8.1 and 1.9.1 refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised
from torch_compat.runtime.tensor import Tensor

SOURCE = """class Model(Module):
  __parameters__ = []
  training : bool
  def kind(self: __torch__.m.Model,
    x: Any) -> int:
    if isinstance(x, Tensor):
      r = 1
    else:
      x0 = unchecked_cast(Any, x)
      if isinstance(x0, int):
        r0 = unchecked_cast(int, x0)
      else:
        r0 = 2
      r = r0
    return r
  def whole(self: __torch__.m.Model,
    x: Any) -> int:
    if isinstance(x, int):
      r = unchecked_cast(int, x)
    else:
      r = 0
    return r
  def dims(self: __torch__.m.Model,
    x: Any) -> int:
    if isinstance(x, Tensor):
      r = torch.dim(unchecked_cast(Tensor, x))
    else:
      r = 0
    return r
  def tensor_as_int(self: __torch__.m.Model,
    x: Tensor) -> int:
    return (self).kind(x, )
  def int_as_int(self: __torch__.m.Model,
    n: int) -> int:
    return (self).kind(n, )
  def int_as_tensor(self: __torch__.m.Model,
    n: int) -> int:
    return (self).dims(n, )
  def text_as_int(self: __torch__.m.Model,
    s: str) -> int:
    return (self).whole(s, )
  def list_as_int(self: __torch__.m.Model,
    l: List[int]) -> int:
    y = l
    return (self).whole(y, )
  def list_as_tensor(self: __torch__.m.Model,
    l: List[int]) -> int:
    return (self).dims(l, )
  def any_as_int(self: __torch__.m.Model,
    x: Any) -> int:
    return (self).kind(x, )
  def item_as_int(self: __torch__.m.Model,
    l: List[int]) -> int:
    return (self).whole(l[0], )
  def tuple_as_int(self: __torch__.m.Model,
    l: List[int]) -> int:
    return (self).whole((1, l), )
  def optional_as_int(self: __torch__.m.Model,
    x: Optional[Tensor]) -> int:
    return (self).whole(x, )
  def never_reached(self: __torch__.m.Model,
    x: Tensor) -> int:
    if torch.gt(torch.dim(x), 5):
      r = (self).whole(x, )
    else:
      r = 5
    return r
"""
X = Tensor(np.ones(2, np.float32))
CASES = [
    ("tensor_as_int", X, 1, True),
    ("int_as_int", 1, 1, False),
    ("int_as_tensor", 1, 0, True),
    ("text_as_int", "cpu", 0, False),
    ("list_as_int", [1], 0, True),
    ("list_as_tensor", [1], 0, False),
    ("any_as_int", X, 1, False),
    ("any_as_int", 1, 1, False),
    ("item_as_int", [1], 1, False),
    ("tuple_as_int", [1], 0, False),
    ("optional_as_int", None, 0, False),
    ("never_reached", X, 5, True),
]


@pytest.mark.parametrize(("method", "given", "result", "refused"), CASES)
def test_what_can_be_written_into_is_not_narrowed_to_what_cannot(method: str, given: Any, result: int, refused: bool) -> None:
    assert program(SOURCE, "reference@1.10.2").run(method, (given,)) == result
    for release in ("1.6.0", "1.9.1"):
        module = program(SOURCE, f"reference@{release}")
        if refused:
            for _ in range(2):
                with pytest.raises(Raised, match="expected_kind INTERNAL ASSERT FAILED"):
                    module.run(method, (given,))
        else:
            assert module.run(method, (given,)) == result


def test_an_optional_tensor_is_a_tensor_to_1_6_where_it_is_there() -> None:
    with pytest.raises(Raised, match="intTensor"):
        program(SOURCE, "reference@1.6.0").run("optional_as_int", (X,))
    assert program(SOURCE, "reference@1.6.0").run("optional_as_int", (None,)) == 0
    assert program(SOURCE, "reference@1.7.1").run("optional_as_int", (X,)) == 0


def given(type_: str, value: Any, horizon: str) -> Any:
    source = f"class Model(Module):\n  def forward(self: __torch__.m.Model,\n    x: {type_}) -> bool:\n    return isinstance(x, float)\n"
    try:
        return program(source, f"reference@{horizon}").run("forward", (value,))
    except Raised:
        return "raises"


@pytest.mark.parametrize(
    ("type_", "value", "found"),
    [
        ("Union[float, str]", 1, "raises"),
        ("Union[int, str]", True, "raises"),
        ("Union[float, int]", True, "raises"),
        ("Union[float, int]", 1, False),
        ("Union[Tensor, float]", 1, "raises"),
        ("Union[Tensor, float]", 1.5, True),
        ("Union[List[float], str]", [1], "raises"),
        ("Union[List[float], str]", [1.5], False),
        ("Union[List[float], str]", [], "raises"),
        ("Union[Tuple[int, float], str]", (1, 2), "raises"),
        ("Union[Tuple[int, float], str]", (1, 2.5), False),
        ("Optional[float]", 1, True),
        ("List[Union[int, str]]", [True], "raises"),
    ],
)
def test_numbers_do_not_widen_to_a_member_of_a_union(type_: str, value: Any, found: Any) -> None:
    """Asked of 1.10.2, 1.12.1, 2.1.2 and 2.15.0."""
    assert given(type_, value, "1.12.1") == found
    assert given(type_, value, "2.15.0") == found
