"""Strings passed as ``Any``: 1.6.0 converts them to devices when it loads programs of 1.7.1 and 2.13.0, 1.7.1 does not.

The results of 1.6.0 and 1.7.1 for these methods are stated here, for machines without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.archives import program
from torch_compat.errors import Raised

if TYPE_CHECKING:
    from torch_compat.runtime.module import Module

SOURCE = """class Model(Module):
  __parameters__ = []
  __buffers__ = []
  name : str
  def whole(self: __torch__.m.Model,
    x: Any) -> int:
    if isinstance(x, int):
      r = unchecked_cast(int, x)
    else:
      r = -1
    return r
  def unread(self: __torch__.m.Model,
    x: Any) -> int:
    return -2
  def declared(self: __torch__.m.Model,
    s: str) -> str:
    return s
  def given(self: __torch__.m.Model,
    s: str) -> int:
    return (self).whole(s, )
  def item(self: __torch__.m.Model,
    l: List[str]) -> int:
    return (self).whole(l[0], )
  def made(self: __torch__.m.Model,
    n: int) -> int:
    _0 = torch.add("a", str(n))
    return (self).whole(_0, )
  def attribute(self: __torch__.m.Model,
    n: int) -> int:
    return (self).whole(self.name, )
  def function(self: __torch__.m.Model,
    s: str) -> int:
    return __torch__.m.kept(2, s, )
  def dropped(self: __torch__.m.Model,
    s: str) -> int:
    return (self).unread(s, )
  def any(self: __torch__.m.Model,
    x: Any) -> int:
    return (self).whole(x, )
  def annotated(self: __torch__.m.Model,
    s: str) -> int:
    return (self).whole(unchecked_cast(Any, s), )
  def text(self: __torch__.m.Model,
    s: str) -> str:
    return (self).declared(s, )
def kept(n: int,
    x: Any) -> int:
  if isinstance(x, str):
    r = 1
  else:
    r = n
  return r
"""
NO_DEVICE = "Expected one of cpu, cuda, .* device type at start of device string: |Device string must not be empty"


def _model(horizon: str) -> Module:
    return program(SOURCE, f"reference@{horizon}", attributes={"name": "b"})


@pytest.mark.parametrize(("method", "value"), [("given", ""), ("item", ["b"]), ("made", 1), ("attribute", 1), ("function", "b")])
def test_a_text_that_names_no_device_is_refused_where_any_is_declared_up_to_1_6(method: str, value: Any) -> None:
    with pytest.raises(Raised, match=NO_DEVICE):
        _model("1.6.0").run(method, (value,))
    for horizon in ("1.7.1", "2.13.0"):
        assert _model(horizon).run(method, (value,)) in {-1, 1}


def test_one_that_names_a_device_becomes_it_up_to_1_6() -> None:
    assert _model("1.6.0").run("given", ("cpu",)) == -1
    assert _model("1.6.0").run("function", ("cpu",)) == 2
    assert _model("1.7.1").run("function", ("cpu",)) == 1


@pytest.mark.parametrize(("method", "expected"), [("dropped", -2), ("any", -1), ("annotated", -1), ("text", "b")])
def test_what_is_not_read_or_not_known_as_a_text_stays_one(method: str, expected: Any) -> None:
    assert _model("1.6.0").run(method, ("b",)) == expected
