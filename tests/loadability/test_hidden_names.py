"""Variables that shadow names called by the source. 1.10.2 and 2.13.0 wrote each function, and both loaded or refused it as stated."""

from __future__ import annotations

import pytest

from torch_compat.loadability.hidden_names import hiding, may_hide
from torch_compat.torchscript.scanner import scan

HEAD = "self: __torch__.m.Model, x: Tensor, n: float"
OTHER = (
    "class Sub(Module):\n  def forward(self: __torch__.other.Sub, x: Tensor) -> Tensor:\n    return x\n"
    "class SubAdd(Module):\n  def add(self: __torch__.other.SubAdd, x: Tensor, n: int) -> Tensor:\n    return x\n"
)


def refused(attribute: str, type_: str, body: str, head: str = HEAD) -> bool:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"class Model(Module):\n  {attribute} : {type_}\n  def forward({head}) -> Tensor:\n{lines}"
    result = hiding({"code/__torch__/m.py": source, "code/__torch__/other.py": OTHER})
    assert result in {None, "code/__torch__/m.py"}
    assert result is None or may_hide(scan(source).code)
    return result is not None


@pytest.mark.parametrize(
    ("attribute", "type_", "body"),
    [
        ("torch", "int", "torch = self.torch\nreturn torch.add(x, torch)"),
        ("torch", "NoneType", "torch = self.torch\nreturn torch.add(x, 1)"),
        ("torch", "str", "torch = self.torch\nreturn torch.add(x, 1)"),
        ("torch", "Dict[str, int]", "torch = self.torch\nreturn torch.add(x, 1)"),
        ("torch", "__torch__.other.Sub", "torch = self.torch\ny = (torch).forward(x, )\nreturn torch.add(x, 1)"),
        ("int", "int", "int = self.int\nreturn int(x)"),
        ("int", "__torch__.other.Sub", "int = self.int\ny = (int).forward(x, )\nreturn int(x)"),
        ("float", "str", "float = self.float\nif n:\n  return float(x)\nelse:\n  pass\nreturn x"),
        ("bool", "int", "bool = self.bool\nif bool(x):\n  _0 = 1\nelse:\n  _0 = 2\nreturn x"),
        ("str", "Tensor", "str = self.str\nreturn str(n)"),
        ("print", "int", 'print = self.print\nprint("a")\nreturn x'),
        ("range", "int", "range = self.range\nfor i in range(2):\n  x = torch.add(x, i)\nreturn x"),
        ("isinstance", "int", "isinstance = self.isinstance\n_0 = isinstance(n, int)\nreturn x"),
        ("annotate", "int", "annotate = self.annotate\nb = annotate(List[int], [])\nreturn x"),
        ("int", "int", "if n:\n  int = self.int\nelse:\n  int = 3\nreturn int(x)"),
    ],
)
def test_what_no_release_loads(attribute: str, type_: str, body: str) -> None:
    assert refused(attribute, type_, body)


def test_a_parameter_hides_too() -> None:
    assert refused("a", "int", "return torch.add(torch, n)", "self: __torch__.m.Model, torch: int, n: float")
    assert not refused("a", "int", "return __torch__.m.f(str, n, )", "self: __torch__.m.Model, str: int, n: float")


@pytest.mark.parametrize(
    ("attribute", "type_", "body"),
    [
        ("torch", "Tensor", "torch = self.torch\nreturn torch.softmax(x, -1)"),
        ("torch", "str", "torch = self.torch\nreturn torch.format(x, n)"),
        ("torch", "__torch__.other.Sub", "y = torch.add(x, 1)\ntorch = self.torch\nreturn (torch).forward(y, )"),
        ("torch", "__torch__.other.SubAdd", "torch = self.torch\nreturn torch.add(x, 1)"),
        ("int", "__torch__.other.Sub", "y = int(x)\nint = self.int\nreturn (int).forward(x, )"),
        ("int", "__torch__.other.Sub", "if n:\n  int = self.int\n  x = (int).forward(x, )\nelse:\n  pass\nreturn int(x)"),
        ("int", "__torch__.other.Sub", "if n:\n  int = self.int\nelse:\n  int0 = self.int\nreturn int(x)"),
        ("list", "int", "list = self.list\nreturn torch.list(x)"),
        ("complex", "int", "complex = self.complex\nreturn torch.Complex(n, n)"),
    ],
)
def test_what_releases_load(attribute: str, type_: str, body: str) -> None:
    assert not refused(attribute, type_, body)


def test_most_source_has_no_such_variable() -> None:
    assert not may_hide(
        "class M(Module):\n  int : int\n  def forward(self: __torch__.M, x: int) -> int:\n    a = torch.add(x, int(x))\n"
    )


def test_a_line_of_many_names_is_read_once() -> None:
    """A million names take no longer for each than a hundred do: the time of all is bounded by what a test may take."""
    assert not may_hide(f"    {'int, ' * 1_000_000}x\n")
    assert may_hide(f"    {'a, ' * 1_000_000}int = x\n")
