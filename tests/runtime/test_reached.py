"""What a release's Python can access and return in a loaded program: results of 1.7.1, 1.8.1, 1.12.1 and 2.15.0."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.archives import archive
from torch_compat.errors import Raised
from torch_compat.runtime.encoding import Decoder, _reached, perform
from torch_compat.torchscript.parser import parse, parse_expression
from torch_compat.torchscript.scanner import scan

if TYPE_CHECKING:
    from pathlib import Path

ENUMERATION = """class Model(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.m.Model,
    n: int) -> Tuple[bool, bool, bool, bool]:
    if torch.eq(n, 1):
      a = __torch__.m.Color.RED
    else:
      a = __torch__.m.Color.GREEN
    _0 = torch.__is__(a, __torch__.m.Color.RED)
    _1 = torch.__is__(a, a)
    _2 = torch.eq(a, __torch__.m.Color.RED)
    _3 = torch.__isnot__(a, __torch__.m.Color.GREEN)
    return (_0, _1, _2, _3)
  def give(self: __torch__.m.Model) -> __torch__.m.Color:
    return __torch__.m.Color.RED
class Color(Enum):
  RED = 1
  GREEN = 2
"""
METHODS = """class Model(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.m.Model,
    xs: List[int],
    d: Dict[str, int]) -> int:
    return torch.len(xs)
  def other(self: __torch__.m.Model) -> int:
    return 7
  def half(self: __torch__.m.Model,
    n: int) -> int:
    return n
"""


def performed(source: str, family: str, tmp_path: Path, *calls: Any) -> list[Any]:
    path = tmp_path / "m.pt"
    path.write_bytes(archive({"__torch__/m.py": source}))
    asked = [{"method": method, "args": list(args)} for method, *args in calls]
    return [call["first"] for call in perform(path, family, asked, "reference@2.15.0")["calls"]]


def test_each_mention_of_a_member_is_an_object_of_its_own(tmp_path: Path) -> None:
    first, second = performed(ENUMERATION, "torchscript", tmp_path, ("forward", 1), ("forward", 2))
    assert first["value"] == {"tuple": [False, True, True, True]}
    assert second["value"] == {"tuple": [False, True, False, True]}


def test_members_are_not_given_to_a_python_without_their_class(tmp_path: Path) -> None:
    (given,) = performed(ENUMERATION, "torchscript", tmp_path, ("give",))
    assert given["error"]["message"] == "Unknown reference to ScriptClass __torch__.m.Color. (Did you forget to import it?)"


def test_methods_of_nn_module_are_not_replaced(tmp_path: Path) -> None:
    half, other = performed(METHODS, "torchscript", tmp_path, ("half", 1), ("other",))
    assert half["error"]["message"] == "half() takes 1 positional argument but 2 were given"
    assert other["value"] == 7


def dictionary(**items: int) -> dict[str, Any]:
    return {"dict": [[key, value] for key, value in items.items()]}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (([1], dictionary(a=1)), None),
        (([], dictionary(a=1)), "Tracer cannot infer type of []"),
        (([1], dictionary()), "Dictionary inputs must have entries"),
        (([[1], []], dictionary(a=1)), "Tracer cannot infer type of []"),
        (([True, 2], dictionary(a=1)), "Tracer cannot infer type of a list of several types"),
    ],
)
def test_the_lite_interpreter_infers_types_of_arguments(args: tuple[Any, ...], said: str | None) -> None:

    given = Decoder().decode({"tuple": list(args)})
    if said is None:
        _reached("mobile", "forward", given)
        return
    with pytest.raises(Raised) as raised:
        _reached("mobile", "forward", given)
    assert raised.value.message == said


def test_the_lite_interpreter_shows_forward_alone() -> None:

    with pytest.raises(Raised, match="'LiteScriptModule' object has no attribute 'other'"):
        _reached("mobile", "other", ())


def test_tuples_without_elements_as_1_5_spells_them() -> None:
    source = "def f(x: Tensor) -> Tuple[Tuple[]]:\n    return (%s,)"
    assert ast.unparse(parse(source % "()")) == "def f(x: Tensor) -> Tuple[Tuple[()]]:\n    return ((),)"
    assert ast.unparse(parse(source % '"Tuple[]"')).endswith("return ('Tuple[]',)")
    assert ast.unparse(parse_expression("Tuple[]")) == "Tuple[()]"
    with pytest.raises(SyntaxError):
        parse('x = "Tuple[]" +\n')


@pytest.mark.parametrize(
    ("source", "found"), [("-> Tuple[Tuple[()]]:", True), ('x = "Tuple[()]"', False), ("-> Tuple[]:", False)]
)
def test_the_newer_spelling_is_a_sign(source: str, found: bool) -> None:
    assert scan(source).empty_tuple is found
