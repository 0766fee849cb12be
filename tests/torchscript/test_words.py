"""Obstacles to loading, found by outside programs."""

from __future__ import annotations

import pytest

from torch_compat.torchscript.scanner import called, scan, uses


@pytest.mark.parametrize(
    ("text", "ill_formed"),
    [
        (r'"\0)+"', True), (r'"\303\237"', False), (r'"\\0"', False), (r'"\n\t\"0"', False), (r'"\03"', True), (r"'\7'", True), ("0", False),
        (r'"\r"', True), (r'"a\r\n"', True), (r'"\015\n"', False), (r'"\377"', False), (r'"\400"', True), (r'"\x41"', True), (r'"\u0041"', True),
        (r'"\q"', True), (r'"\8"', True), (r'"\\r"', False), (r'"\a\b\f\v\\\"\'"', False), (r'"\-71"', True), (r'"a\ b"', True),
    ],
)  # fmt: skip
def test_releases_parse_few_escapes(text: str, ill_formed: bool) -> None:
    """Compiled by 1.1.0, 1.4.0, 1.6.0, 1.8.1, 1.12.1 and 2.0.1, which agree."""
    assert scan(f"def f(self):\n  return {text}\n").ill_formed is ill_formed


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class M(Module):\n  is : Tensor\n", {"declares"}),
        ("class M(Module):\n  this : Tensor\n", set()),
        ("def f(x):\n  if is : Tensor\n", {"name"}),
    ],
)
def test_a_class_declares_a_word(code: str, found: set[str]) -> None:
    assert uses(code, "is") == found


def test_a_parameter_that_is_declared_as_a_list_shows_it() -> None:
    source = (
        "def f(xs: List[int],\n    d: Dict[str, int],\n    o: Optional[List[int]],\n    x: Tensor):\n  return torch.sum(xs)\n"
    )
    assert [shape.positional for shape in called(source).shapes] == ["l"]
    assert [shape.positional for shape in called(source.replace("sum(xs)", "sum(o)")).shapes] == ["x"]
    assert [shape.positional for shape in called(source.replace("sum(xs)", "sum(d)")).shapes] == ["x"]


HEAD = "class M(Module):\n  names : List[str]\n  sizes : List[int]\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("  def f(self: __torch__.M,\n    xs: List[str]) -> int:\n    y = sorted(xs)\n", True),
        ("  def f(self: __torch__.M,\n    xs: List[int]) -> int:\n    y = sorted(xs)\n", False),
        ("  def f(self: __torch__.M,\n    xs: List[str]) -> int:\n    torch.sort(xs, True)\n", True),
        ("  def f(self: __torch__.M,\n    xs: List[str],\n    ys: List[int]) -> int:\n    torch.sort(ys, True)\n", False),
        ("  def f(self: __torch__.M,\n    xs: List[str]) -> int:\n    y = torch.len(xs)\n  def g(self, xs: Tensor):\n    y = torch.sort(xs, 0)\n", False),
        ("  def f(self: __torch__.M) -> int:\n    y = sorted(self.names)\n", True),
        ("  def f(self: __torch__.M) -> int:\n    y = sorted((self).names)\n", True),
        ("  def f(self: __torch__.M) -> int:\n    y = sorted(self.sizes)\n", False),
        ("class N(Module):\n  names : List[int]\n  def f(self: __torch__.N) -> int:\n    y = sorted(self.names)\n", False),
        ("  def f(self: __torch__.M) -> int:\n    y = annotate(List[str], [])\n    torch.sort(y, False)\n", True),
        ("  def f(self: __torch__.M,\n    x: str) -> List[str]:\n    return sorted(torch.split(x, None, -1))\n", True),
        ("  def f(self: __torch__.M,\n    xs: List[str]) -> int:\n    y = unsorted(xs)\n", False),
        ('  def f(self: __torch__.M,\n    xs: List[str]) -> str:\n    return "sorted(xs)"\n', False),
    ],
)  # fmt: skip
def test_lists_of_texts_are_sorted_where_their_type_is_stated(body: str, found: bool) -> None:
    assert scan(HEAD + body).sorts_texts is found
