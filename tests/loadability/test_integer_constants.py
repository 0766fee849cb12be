"""Floats written as ints. 1.11.0, 2.4.1 and 2.15.0 wrote and read each program below; the results are theirs."""

from __future__ import annotations

import pytest

from torch_compat.loadability.integer_constants import MIXED, WHOLE, has_whole_constant, mistaken

BIG = "30000000000000000"


def signs(
    body: str, *, head: str = "self: __torch__.m.Model, x: Tensor, n: int", returns: str = "Tensor", more: str = ""
) -> set[str]:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = (
        f"class Model(Module):\n  by : float\n  sub : __torch__.other.Sub\n{more}  def forward({head}) -> {returns}:\n{lines}"
    )
    other = (
        "class Sub(Module):\n  def scaled(self: __torch__.other.Sub, x: Tensor, by: float=2.) -> Tensor:\n    return torch.mul(x, by)\n"
        "class Pair(NamedTuple):\n  first : float\n  second : int\n"
        "def twice(x: float, y: int) -> float:\n  return torch.mul(x, 2)\n"
    )
    return set(mistaken({"code/__torch__/m.py": source, "code/__torch__/other.py": other}))


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        (f"return {BIG}", "float"),
        (f"return (1, -{BIG})", "Tuple[int, float]"),
        (f"return (-{BIG}, 1.)", "Tuple[float, float]"),
        (f"_0 = (1e+18, {BIG})\nreturn _0", "Tuple[float, float]"),
        (f"return {BIG}", "Optional[float]"),
        (f"return [{BIG}, {BIG}]", "List[float]"),
        (f"return {{'a': {BIG}}}", "Dict[str, float]"),
        (f"r = torch.add({BIG}, n)\nreturn r", "float"),
        (f"return torch.neg(torch.floordiv({BIG}, n))", "float"),
        (f"if torch.gt(n, 0):\n  r = {BIG}\nelse:\n  r = 2.5\nreturn torch.mul(x, r)", "Tensor"),
        (f"r = {BIG}\nfor i in range(n):\n  r = torch.mul(r, 0.5)\nreturn torch.mul(x, r)", "Tensor"),
        (f"r = {BIG}\n_0 = True\nwhile _0:\n  s = torch.div(r, 10)\n  _0, r = torch.gt(s, 1.), s\nreturn x", "Tensor"),
        (f"r = annotate(Optional[float], None)\nif torch.gt(n, 0):\n  r = {BIG}\nelse:\n  pass\nreturn x", "Tensor"),
        (f"self.by = {BIG}\nreturn x", "Tensor"),
        (f"return (self.sub).scaled(x, {BIG})", "Tensor"),
        (f"sub = self.sub\nreturn (sub).scaled(x, {BIG}, )", "Tensor"),
        (f"return (self.sub).scaled(x, by={BIG})", "Tensor"),
        (f"_0 = __torch__.other.twice\nreturn torch.mul(x, _0({BIG}, 3))", "Tensor"),
        (f"p = __torch__.other.Pair({BIG}, 3)\nreturn x", "Tensor"),
        (f"r = annotate(List[float], [])\n_0 = torch.append(r, {BIG})\nreturn x", "Tensor"),
        (f"r = annotate(Dict[str, float], {{}})\ntorch._set_item(r, 'a', {BIG})\nreturn x", "Tensor"),
        (f"r = annotate(List[float], [{BIG}, 1.5])\nreturn x", "Tensor"),
        (f"r = annotate(float, {BIG})\nreturn x", "Tensor"),
        (f"r = [{BIG}, 1.5]\nreturn (x, r)", "Tuple[Tensor, List[float]]"),
        (f"if torch.gt(n, 3):\n  return 1.5\nelse:\n  return {BIG}", "float"),
    ],
)
def test_an_int_where_a_float_is_asked_for(body: str, returns: str) -> None:
    assert WHOLE in signs(body, returns=returns)


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        ("return 3.", "float"),
        (f"return {BIG}", "int"),
        (f"return ({BIG}, 1.)", "Tuple[int, float]"),
        (f"return torch.mul({BIG}, 2.5)", "float"),
        (f"return torch.div({BIG}, 3)", "float"),
        (f"return float({BIG})", "float"),
        (f"return torch.mul(x, {BIG})", "Tensor"),
        (f"r = [{BIG}, {BIG}]\nreturn torch.mul(x, r[n])", "Tensor"),
        (
            f"m = {BIG}\nif torch.gt(n, 2):\n  f, m0 = 2.5, 3\nelse:\n  f, m0 = 1e+18, m\nreturn (x, m0, f)",
            "Tuple[Tensor, int, float]",
        ),
        (f"_0 = __torch__.other.twice\nreturn torch.mul(x, _0(1.5, {BIG}))", "Tensor"),
        (
            f"if torch.gt(n, 3):\n  r = 1.5\nelse:\n  ops.prim.RaiseException('x')\n  r = uninitialized(float)\nreturn torch.mul(r, {BIG})",
            "float",
        ),
        (f"r = {BIG}\nreturn torch.mul(x, torch.unknown(r))", "Tensor"),
        (f"if torch.gt(n, 3):\n  a = 1.5\nelse:\n  a = {BIG}\nreturn x", "Tensor"),
    ],
)
def test_ints_that_nobody_minds(body: str, returns: str) -> None:
    assert signs(body, returns=returns) == set()


def test_what_is_declared_in_a_head_or_a_class_asks_too() -> None:
    assert signs("return x", head=f"self: __torch__.m.Model, x: Tensor, by: float={BIG}") == {WHOLE}
    assert signs("return x", head=f"self: __torch__.m.Model, x: Tensor, by: int={BIG}") == set()
    assert signs("return x", more=f"  c : Final[float] = {BIG}\n") == {WHOLE}
    assert signs("return x", more=f"  c : Final[int] = {BIG}\n") == set()


def test_items_of_two_types_are_another_sign_until_floats_are_asked_for() -> None:
    assert signs(f"d = {{'a': 2.5, 'b': {BIG}}}\nreturn torch.mul(x, d['b'])") == {MIXED}
    assert signs(f"r = [{BIG}, 1.5]\nreturn x") == {MIXED}


@pytest.mark.parametrize(
    ("code", "has"),
    [(BIG, True), ("10000000000", True), ("1000000000", False), ("300000000000000000", False), ("3e+18", False), ("30000000000.", False),
     ("x30000000000", False), ("1.30000000000", False), ("-30000000000,", True)],
)  # fmt: skip
def test_constants_that_may_have_been_floats(code: str, has: bool) -> None:
    assert has_whole_constant(code) is has


def test_what_is_no_source_says_nothing() -> None:
    assert mistaken({"code/__torch__/m.py": f"return ( {BIG}"}) == {}
    assert mistaken({"code/__torch__/m.py": "x = " + "-" * 100_000 + BIG}) == {}
