"""The facts extracted from TorchScript source."""

from __future__ import annotations

import pytest

from torch_compat.torchscript.calls import CallShape
from torch_compat.torchscript.scanner import _kept_result, bases, outline, scan, uses


def shapes(text: str) -> set[str]:
    return {str(shape) for shape in scan(text).shapes}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return torch.relu(x)", "aten::relu(_)"),
        ("x = torch.add(a, b, alpha=1)", "aten::add(_, _, alpha=int)"),
        ("x = torch.mul(a, 0.5)", "aten::mul(_, float)"),
        ("x = torch.mul(a, 1e+22)", "aten::mul(_, float)"),
        ("x = torch.mul(a, 2.)", "aten::mul(_, float)"),
        ("x = torch.sub(a, -1)", "aten::sub(_, int)"),
        ("x = torch.full([2], True, dtype=6, layout=None)", "aten::full(list, bool, dtype=int, layout=None)"),
        ("x = torch.mul(a, 2j)", "aten::mul(_, complex)"),
        ('x = torch.div(a, b, rounding_mode="trunc")', "aten::div(_, _, rounding_mode=str)"),
        ("x = torch.t((self).forward(x, ))", "aten::t(_)"),
        ("x = torch.slice(x, 0, None, 2, 1)", "aten::slice(_, int, None, int, int)"),
        ("x = ops.prim.data(x)", "prim::data(_)"),
        ("x = ops.my.lib.go(x)", "my.lib::go(_)"),
        ("x = torch.zeros([2, torch.len(y)], dtype=None)", "aten::zeros(list, dtype=None)"),
        ("x = torch.rand()", "aten::rand()"),
        ("x = torch.add(a[0], {1: 2}[1], )", "aten::add(_, _)"),
        ("x = torch.f(torch.g(a), k=torch.g(b), j=[1])", "aten::f(_, k=_, j=list)"),
        ('x = torch.f(a, k="=", j=(1, 2))', "aten::f(_, k=str, j=_)"),
        ("x=torch.f(a,k=1)", "aten::f(_, k=int)"),
        ("x = torch.f(a == b)", "aten::f(_)"),
        ("x = torch.f((a) == b, c <= 1)", "aten::f(_, _)"),
        ("x = torch.f(a=)", "aten::f(a=_)"),
        ("x = torch.f(a, k=(b) == c, )", "aten::f(_, k=_)"),
    ],
)
def test_a_call_has_the_shape_of_its_arguments(text: str, expected: str) -> None:
    assert expected in shapes(text)


def test_a_parameter_shows_the_kind_that_it_is_declared_with_until_the_next_function() -> None:
    text = """
def first(a: bool,
    b: bool=False,
    c: Optional[bool]=None,
    d: Tensor) -> bool:
  return torch.ne(a, b, c, d)
def second(a: int, s: str) -> Tensor:
  return torch.eq(a, b, s)
"""
    assert shapes(text) == {"aten::ne(bool, bool, bool?, _)", "aten::eq(int, _, str)"}


def test_methods_functions_and_texts_of_the_program_are_no_operators() -> None:
    text = """
class Model(Module):
  def forward(self: __torch__.Model, x: Tensor) -> Tensor:
    # torch.commented(x)
    _0 = __torch__.torch.nn.functional.relu
    _1 = "torch.quoted(x)"
    _2 = 'torch.single(x)'
    return (self).pick(_0(x, ), )
"""
    assert shapes(text) == set()


def test_unbalanced_brackets_end_without_an_error() -> None:
    assert shapes("torch.add(x, 1)) ] } ( torch.mul(x") == {"aten::add(_, int)"}


def test_words_in_texts_and_comments_are_none() -> None:
    code = scan('class A(Module):\n  x : NoneType\n  y = "Final"\n  # __buffers__\n').code
    assert uses(code, "NoneType") == {"type"}
    assert not uses(code, "Final")
    assert not uses(code, "__buffers__")


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("  x : W\n", "type"),
        ("  x : Final[W] = 1\n", "type"),
        ("    x: W,\n", "type"),
        ("    x: W=None) -> int:\n", "type"),
        ("def f(x: W) -> int:\n", "type"),
        ("    x: int) -> W:\n", "type"),
        ("    x: Dict[str, Tuple[int, W]]) -> int:\n", "type"),
        ("    _0 = annotate(W, x)\n", "type"),
        ("    _0 = annotate(List[W], [])\n", "type"),
        ("    _0 = isinstance(x, W)\n", "type"),
        ("    _0 = torch.f(isinstance(x, (int, W)))\n", "type"),
        ("    _0 = unchecked_cast(W, x)\n", "type"),
        ("    _0 = W(Tensor, x)\n", "function"),
        ("    return torch.add(W(Tensor, x), 1)\n", "function"),
        ('class A(Module):\n  W = ["a", ]\n', "class-sets"),
        ("def f(x):\n  return x\nclass A(Module):\n  W = []\n", "class-sets"),
        ("def f(x: Tensor) -> Tensor:\n  W = [x]\n", "name"),
        ("class A(Module):\n  x : int\ndef f(x: Tensor) -> Tensor:\n  W = [x]\n", "name"),
        ("    W = torch.add(x, 1)\n", "name"),
        ("    W: Tensor,\n", "name"),
        ("  W : int\n", "name"),
        ("    return torch.add(x, W)\n", "name"),
        ("    _0 = annotate(Tensor, W)\n", "name"),
        ("    return x[W]\n", "name"),
        ("    return self.W\n", "attribute"),
        ("    return (self).W(x, )\n", "attribute"),
        ("  def W(self: __torch__.A) -> int:\n", "name"),
        ("    for W in range(3):\n", "name"),
        ("    return [W, x]\n", "name"),
        ("Wx aW _W W_ a.Wx", None),
        ("", None),
    ],
)
def test_a_word_is_what_its_place_makes_it(code: str, use: str | None) -> None:
    assert uses(code, "W") == ({use} if use else set())


def test_bases_of_classes() -> None:
    assert list(bases("class A(Module):\n  pass\nclass B(Enum):\n  X = 1\nclass C:\n")) == ["Module", "Enum"]


CLASSES = """class A(Module):
  __parameters__ = ["w", ]
  w : Tensor
  training : bool
  inner : Dict[str, Optional[__torch__.m.B]]
  is : NoneType
  size : int = 3
  scale = 1.5
  def forward(self: __torch__.A) -> Tensor:
    local = 1
    return self.w
class B:
  pass
class C(Enum):
  X = 1
x : int
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "A",
            (
                "Module",
                (("Tensor",), ("bool",), ("Dict", "str", "Optional", "__torch__.m.B"), ("NoneType",)),
                ("__parameters__", "scale"),
            ),
        ),
        ("B", ("", (), ())),
        ("C", ("Enum", (), ("X",))),
        ("D", None),
        ("x", None),
    ],
)
def test_a_class_in_outline(name: str, expected: tuple[str, tuple[tuple[str, ...], ...], tuple[str, ...]] | None) -> None:
    assert outline(CLASSES, name) == expected


def test_shapes_are_equal_by_value() -> None:
    assert scan("torch.add(x, 1)").shapes == scan("y = torch.add(z, 2)").shapes == {CallShape("aten::add", "xi", ())}


def test_results_of_calls_with_more_arguments_than_operators_take_are_not_kept() -> None:
    """A source can contain thousands of calls, each with a million arguments: their kinds would fill the memory."""
    before = _kept_result.cache_info()
    assert "aten::add(_, int)" in shapes(f"return torch.add(torch.gcd({', '.join(['1'] * 1000)}), 1)")
    after = _kept_result.cache_info()
    assert after.misses + after.hits == before.misses + before.hits + 1  # of add
