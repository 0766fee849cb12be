"""The syntax tree of TorchScript text, and what is rejected before Python's parser starts."""

from __future__ import annotations

import ast
import warnings

import pytest

from torch_compat.torchscript.parser import MOST_PARSED, NO_SOURCE, REQUIRED, dotted, memory_needed, parse, parse_expression


def test_defaults_may_stand_before_parameters_without_one() -> None:
    tree = parse("def forward(self,\n    x: int=1,\n    y: Tensor) -> Tensor:\n  return y\n")
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert [ast.unparse(default) for default in function.args.defaults] == ["1", REQUIRED]
    assert function.body[0].lineno == 4


@pytest.mark.parametrize("text", ["List[", "a\0b", "(" * 300 + ")" * 300, "-" * 100_000 + "1", "x = 1", ""])
def test_what_is_no_expression_raises_one_of_four(text: str) -> None:
    with pytest.raises(NO_SOURCE):
        parse_expression(text)


def test_an_expression_that_takes_too_much_memory_is_refused_before_it_is_parsed() -> None:
    text = f"[{'a,' * (MOST_PARSED // memory_needed(b'a,'))}]"
    with pytest.raises(MemoryError, match="too long to be parsed"):
        parse_expression(text)
    assert isinstance(parse_expression(f"[{'a,' * 10_000}]"), ast.List)


@pytest.mark.parametrize("read", [parse, parse_expression])
def test_python_warns_nobody_of_the_source_of_an_archive(read: type) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(r"f('\d', 1or 2)")


def test_a_chain_of_attributes_is_a_name() -> None:
    assert dotted(parse_expression("torch.ops.aten.add")) == "torch.ops.aten.add"
    assert not dotted(parse_expression("f().add"))
    assert not dotted(parse_expression("1"))
