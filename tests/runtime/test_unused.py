"""Unused code does not run, so it does not raise.

In all releases from 1.2.0 to 2.15.0, each of 57 functions raised as it does here, in three consecutive runs.
"""

from __future__ import annotations

import ast
from random import Random

import numpy as np
import pytest

from tests.runtime.archives import archive, program
from torch_compat.errors import Raised, Refused
from torch_compat.runtime.language.all_read import _Words, _words, all_read
from torch_compat.runtime.language.unused import Callees, _Function, unused
from torch_compat.runtime.load import load
from torch_compat.runtime.tensor import Tensor

PARAMETERS = "x: Tensor,\n    bad: Tensor,\n    l: List[int]"
OTHERS = {
    "pure": "return torch.add(x, bad)",
    "raising": 'if torch.gt(torch.len(l), 1):\n    ops.prim.RaiseException("a")\n  else:\n    pass\n  return x',
    "writes": "_0 = torch.add_(x, 1)\n  return x",
    "shifts": "_0 = torch.__ilshift__(x, 1)\n  return x",
    "writes_its_own": "y = torch.matmul(x, torch.t(bad))\n  _0 = torch.add_(y, bad)\n  return _0",
    "counts": "self.count = torch.add(self.count, 1)\n  return torch.add(x, bad)",
    "calls": "return (self).pure(x, bad, l, )",
    "itself": "return (self).itself(x, bad, l, )",
}


def raises(body: str, horizon: str = "reference") -> bool:
    methods = {"forward": body, **OTHERS}
    source = "".join(f"def {name}(self: __torch__.m.Model,\n    {PARAMETERS}):\n  {text}\n" for name, text in methods.items())
    module = program(source, horizon)
    module.object.__dict__["a_count"] = 0
    try:
        module.run("forward", (Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones(4, np.float32)), [1, 2]))
    except Raised:
        return True
    return False


@pytest.mark.parametrize("horizon", ["reference@1.5.1", "reference@1.8.1", "reference@2.15.0"])
@pytest.mark.parametrize(
    ("body", "raised"),
    [
        ("y = (self).pure(x, bad, l, )\n  return x", False),
        ("y = (self).calls(x, bad, l, )\n  return x", False),
        ("y = (self).raising(x, bad, l, )\n  return x", True),
        ("y = (self).writes_its_own(x, bad, l, )\n  return x", False),
        ("_0 = self\n  y = (_0).pure(x, bad, l, )\n  return x", False),
        ("y = (self).pure(x, bad, l, )\n  return y", True),
        ("y = (self).pure(x, bad, l, )\n  print(y)\n  return x", True),
        ("y = torch.add(x, bad)\n  return x", False),
        ("y = (l)[7]\n  return x", False),
        ("a, b, c, = l\n  return x", False),
        ("a, b, c, = l\n  return torch.add(x, a)", True),
        ("y = torch.clone(x)\n  _0 = torch.add_(y, bad)\n  return x", False),
        ("y = torch.clone(x)\n  _0 = torch.add_(torch.select(y, 0, 0), bad)\n  return x", False),
        ("_0 = torch.add_(torch.select(x, 0, 0), bad)\n  return x", True),
        ("y = torch.clone(x)\n  z = torch.select(y, 0, 0)\n  _0 = torch.add_(z, bad)\n  return y", True),
        ("y = [1]\n  z = (l)[9]\n  _0 = torch.append(y, 3)\n  _1 = torch.pop(y, 7)\n  return x", False),
        ("_0 = torch.append(l, (l)[9])\n  return x", True),
        ("y = annotate(List[Tensor], [])\n  _0 = torch.append(y, x)\n  _1 = torch.add_((y)[0], bad)\n  return x", True),
        ("if torch.gt(torch.len(l), 1):\n    y = torch.add(x, bad)\n  else:\n    y = x\n  return x", False),
        ("if bool(x):\n    y = 1\n  else:\n    y = 2\n  return x", False),
        ('if bool(x):\n    print("a")\n  else:\n    pass\n  return x', True),
        ("for i in range(torch.len(l)):\n    y = torch.add(x, bad)\n  return x", False),
        ("y = x\n  for i in range(torch.len(l)):\n    y = torch.add(y, bad)\n  return x", True),
        ("for i in range((l)[9]):\n    pass\n  return x", False),
        ("i = 0\n  _0 = True\n  while _0:\n    i0 = torch.add(i, (l)[9])\n    _0, i = torch.lt(i0, 2), i0\n  return x", True),
        ("i = 0\n  _0 = True\n  while _0:\n    y = (l)[9]\n    i0 = torch.add(i, 1)\n    _0, i = torch.lt(i0, 2), i0\n  return x", False),
        ("y = torch.add(x, bad)\n  y = torch.mul(x, 2)\n  return y", False),
    ],
)  # fmt: skip
def test_what_nobody_reads_does_not_raise(body: str, raised: bool, horizon: str) -> None:
    assert raises(body, horizon) is raised


@pytest.mark.parametrize("method", ["writes", "shifts", "counts", "itself"])
def test_what_has_an_effect_is_run(method: str) -> None:
    source = "".join(
        f"def {name}(self: __torch__.m.Model,\n    {PARAMETERS}):\n  {text}\n"
        for name, text in {"forward": f"y = (self).{method}(x, bad, l, )\n  return x", **OTHERS}.items()
    )
    module = program(source, steps=100)
    module.object.__dict__["a_count"] = 0
    x = Tensor(np.ones((2, 3), np.int64))
    if method in {"writes", "shifts"}:
        module.run("forward", (x, x, []))
        assert x.array.max() == 2
    else:
        with pytest.raises(Raised):
            module.run("forward", (x, Tensor(np.ones(4, np.float32)), []))
        assert module.attribute("count") == (method == "counts")


def test_functions_of_other_files_and_of_modules_that_are_attributes() -> None:
    """As F.linear of 1.5 is written, which adds in place to what it made."""
    linear = (
        "def linear(input: Tensor,\n    weight: Tensor) -> Tensor:\n  output = torch.matmul(input, torch.t(weight))\n"
        "  output0 = torch.add_(output, weight)\n  return output0\n"
        "class Pair(NamedTuple):\n  a : Tensor\n"
    )
    layer = (
        "class Layer(Module):\n  __parameters__ = []\n  def forward(self: __torch__.n.Layer,\n    x: Tensor) -> Tensor:\n"
        "    return torch.mm(x, x)\ndef nothing() -> None:\n  return None\n"
    )
    model = (
        "class Model(Module):\n  __parameters__ = []\n  training : bool\n  layer : __torch__.n.Layer\n"
        "  def forward(self: __torch__.m.Model,\n    x: Tensor) -> Tensor:\n    _1 = __torch__.f.linear\n    y = _1(x, x, )\n"
        "    z = __torch__.f.Pair(torch.mm(x, x))\n    _0 = self.layer\n    w = (_0).forward(x, )\n    _2 = __torch__.n.nothing()\n{tail}    return x\n"
    )
    x = Tensor(np.ones((2, 3), np.float32))
    for tail, raised in (("", False), ("    print(z)\n", True), ("    print(w)\n", True)):
        sources: dict[str, str | bytes] = {
            "__torch__/f.py": linear,
            "__torch__/n.py": layer,
            "__torch__/m.py": model.format(tail=tail),
        }
        module = load(archive(sources), "reference")
        module.object.__dict__["a_layer"] = module.program.classes("__torch__.n.Layer")()  # type: ignore[union-attr]
        if raised:
            with pytest.raises(Raised):
                module.run("forward", (x,))
        else:
            assert module.run("forward", (x,)) is x


def test_what_is_not_run_is_compiled() -> None:
    with pytest.raises(Refused, match="undefined value"):
        raises("y = torch.add(x, nothing)\n  return x")


@pytest.mark.parametrize(("count", "raised"), [(5, False), (200, True)])
def test_what_takes_too_much_to_find_out_is_run(count: int, raised: bool) -> None:
    """Each write shows that the next one is read, against the order in which statements are looked at."""
    result = "".join(f"y{n} = torch.clone(x)\n  " for n in range(count + 1))
    writes = "".join(f"_{n} = torch.add_(y{n}, y{n + 1})\n  " for n in range(count))
    assert raises(f"{result}{writes}z = (self).pure(x, bad, l, )\n  return y0") is raised


@pytest.mark.parametrize(("count", "raised"), [(5, False), (60, True)])
def test_calls_that_are_too_deep_are_run(count: int, raised: bool) -> None:
    deep = "".join(f"def f{n}(x: Tensor) -> Tensor:\n  return __torch__.f.f{n + 1}(x, )\n" for n in range(count))
    sources: dict[str, str | bytes] = {
        "__torch__/f.py": f"{deep}def f{count}(x: Tensor) -> Tensor:\n  return torch.mm(x, x)\n",
        "__torch__/m.py": "class Model(Module):\n  __parameters__ = []\n  training : bool\n"
        "  def forward(self: __torch__.m.Model,\n    x: Tensor) -> Tensor:\n    y = __torch__.f.f0(x, )\n    return x\n",
    }
    module = load(archive(sources), "reference")
    x = Tensor(np.ones((2, 3), np.float32))
    if raised:
        with pytest.raises(Raised):
            module.run("forward", (x,))
    else:
        assert module.run("forward", (x,)) is x


def test_names_that_go_round_in_a_circle_are_no_module() -> None:
    source = "def forward(self, a, b):\n  a = b\n  b = a\n  y = (a).layer.pure(a, )\n  return b\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    result = unused(function, source.split("\n"), Callees(lambda _: None), "__torch__.m.Model")
    assert id(function.body[2]) not in result


SHORT = [
    "y = torch.add(x, 1)\n  return y",
    "if bool(x):\n    y = 1\n  else:\n    y = 2\n  return y",
    'n = torch.len(l)\n  if torch.gt(n, 1):\n    ops.prim.RaiseException("a")\n  else:\n    pass\n  return x',
    "for i in range(3):\n    print(i)\n  return x",
    "_0 = torch.add_(x, 1)\n  return x",
    "y = torch.slice(torch.view(x, [-1]), 0, 0, 1, 1)\n  _0 = torch.mul_(torch.select(y, 0, 0), 2)\n  return l",
    "_0 = torch.append(l.items, 1)\n  return x",
    "y, z, = torch.max(x, 0)\n  return z if l else z",
    "y = [1]\n  _0 = torch.append(y, 2)\n  _1 = torch.append(y, 3)\n  return y",
    "y = [1]\n  for i in range(3):\n    _0 = torch.append(y, 2)\n  return y",
    "y = 1\n  for i in range(3):\n    y = torch.mul(y, 2)\n  return y",
    "y, z = 1, True\n  while z:\n    y = torch.mul(y, 2)\n    z = torch.lt(y, 9)\n  return x",
    "y, z = 1, 1\n  for i in range(3):\n    y, z = torch.mul(y, z), torch.add(y, z)\n  return y",
]


LONG = {
    "a parameter is set and not read": "x = torch.add(x, 1)\n  return l",
    "a variable is set and not read": "y = torch.add(x, 1)\n  return l",
    "a variable is named in a text alone": 'y = torch.add(x, 1)\n  print("y", l)\n  return l',
    "a variable is named as an attribute alone": "y = torch.add(x, 1)\n  return (l).y",
    "a variable is named as a keyword alone": "y = torch.add(x, 1)\n  return torch.sum(x, y=l)",
    "a variable is named in a comment alone": "y = torch.add(x, 1)\n  return l  # y",
    "a variable is set on two paths and not read": "if bool(x):\n    y = 1\n  else:\n    y = 2\n  return l",
    "no variable of a tuple is read": "y, z, = torch.max(x, 0)\n  return l",
    "a list is appended to and not read": "y = [1]\n  _0 = torch.append(y, 2)\n  return x",
    "a list is read by an append to it alone": "y = [1]\n  z = y[0]\n  _0 = torch.append(y, z)\n  return x",
    "a loop sets a variable that nothing else reads": "y = 1\n  for i in range(3):\n    y = torch.mul(y, 2)\n  return x",
    "a loop sets a variable before it reads it": "y = 1\n  for i in range(3):\n    y = 2\n    print(y)\n  return x",
    "a loop does nothing": "for i in range(3):\n    pass\n  return x",
    "a variable is set twice": "y = torch.add(x, 1)\n  y = torch.add(x, 2)\n  return y",
    "a new tensor is written": "y = torch.clone(x)\n  _0 = torch.add_(torch.select(y, 0, 0), 1)\n  return x",
    "one of two paths writes": "if bool(x):\n    y = torch.clone(x)\n  else:\n    y = torch.add_(x, 1)\n  return l",
    "a new tensor is written on one of two paths": "if bool(x):\n    y = torch.clone(x)\n  else:\n    y = x\n  _0 = torch.add_(y, 1)\n  return l",
    "names form a circle": "y = torch.t(z)\n  z = torch.t(y)\n  _0 = torch.add_(z, 1)\n  return l",
    "a text goes on in the next line": 'y = [1]\n  _0 = torch.append(y, 2)\n  print("a\\\ny")\n  return x',
    "a text has several lines": 'y = torch.add(x, 1)\n  print("""a"y""")\n  return l',
}


def _taken(body: str, monkeypatch: pytest.MonkeyPatch) -> frozenset[int]:
    source = f"def forward(self, x, l):\n  {body}"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    monkeypatch.setattr("torch_compat.runtime.language.unused._Function", None)
    return unused(function, source.split("\n"), Callees(lambda _: None))


@pytest.mark.parametrize("body", SHORT)
def test_the_short_way_is_taken_where_nothing_is_unused(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _taken(body, monkeypatch) == frozenset()


@pytest.mark.parametrize("why", LONG)
def test_the_short_way_is_not_taken(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="not callable"):
        _taken(LONG[why], monkeypatch)


@pytest.mark.parametrize("statement", ["  _{n} = torch.append(y, {n})\n", "  for i{n} in range(3):\n    z = torch.add(z, {n})\n"])
def test_the_short_way_reads_a_source_twice_at_most(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost is proportional to the source, also if every statement asks which words follow it."""
    body = "".join(statement.format(n=n) for n in range(500))
    source = f"def forward(self, x):\n  y = [1]\n  z = 1\n{body}  return (y, z)"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    read: list[int] = []

    def words(text: str) -> list[str]:
        read.append(len(text))
        return _words(text)

    monkeypatch.setattr("torch_compat.runtime.language.all_read._words", words)
    assert all_read(function, source.split("\n"))
    assert sum(read) <= 2 * len(source)


def test_a_statement_is_asked_once_however_many_variables_it_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ", ".join(f"a{n}" for n in range(200))
    source = f"def forward(self, x):\n  y = [1]\n  {names}, = torch.append(y, 1)\n  return y"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    asked: list[set[str]] = []
    stays = _Words._stays

    def counted(self: _Words, node: ast.expr | None, names: set[str], unread: set[str]) -> bool:
        asked.append(names)
        return stays(self, node, names, unread)

    monkeypatch.setattr(_Words, "_stays", counted)
    assert all_read(function, source.split("\n"))
    assert [len(names) for names in asked] == [200]


STATEMENTS = (
    "{new} = torch.add({old}, {other})", "{new} = torch.clone({old})", "{new} = torch.select({old}, 0, 0)", "{new} = [{old}, {other}]",
    "_{n} = torch.add_({old}, {other})", "_{n} = torch.append({old}, {other})", "_{n} = torch.copy_(torch.select({old}, 0, 0), {other})",
    "{new}, {more}, = torch.max({old}, 0)", "{old} = torch.mul({old}, {other})", "print({old})", "_{n} = torch.max({old})",
)  # fmt: skip


def _drawn(rng: Random, names: list[str], depth: int, indent: str) -> list[str]:
    """A block of source that reads and sets these variables, and sets more of them."""
    lines: list[str] = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(8) if depth else 7
        n = rng.randrange(1000)
        if kind == 0:
            lines += [f"{indent}for i{n} in range({rng.choice(names)}):", *_drawn(rng, list(names), depth - 1, indent + "  ")]
        elif kind == 1:
            lines += [f"{indent}while {rng.choice(names)}:", *_drawn(rng, list(names), depth - 1, indent + "  ")]
        elif kind == 2:
            both = [[*_drawn(rng, list(names), depth - 1, indent + "  "), f"{indent}  v{n} = {rng.choice(names)}"] for _ in "12"]
            lines += [f"{indent}if bool({rng.choice(names)}):", *both[0], f"{indent}else:", *both[1]]
            names.append(f"v{n}")
        else:
            text = rng.choice(STATEMENTS)
            new = rng.choice([f"v{n}", rng.choice(names)]) if rng.random() < 0.2 else f"v{n}"
            lines.append(indent + text.format(new=new, more=f"w{n}", old=rng.choice(names), other=rng.choice(names), n=n))
            names += [name for name, there in ((new, "{new}" in text), (f"w{n}", "{more}" in text)) if there]
    return lines


def test_the_short_way_agrees_with_the_analysis() -> None:
    rng, short = Random(31), 0
    for _ in range(6000):
        names = ["x", "l"]
        lines = _drawn(rng, names, 2, "  ")
        source = "\n".join(["def forward(self, x, l):", *lines, f"  return ({rng.choice(names)}, {rng.choice(names)})"])
        function = ast.parse(source).body[0]
        assert isinstance(function, ast.FunctionDef)
        if all_read(function, source.split("\n")):
            short += len(lines) > 3
            assert _Function(function, Callees(lambda _: None), "").found() == frozenset(), source
    assert short > 100
