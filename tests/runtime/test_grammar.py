"""The constructs of TorchScript source: the accepted ones, and those in a text."""

from __future__ import annotations

import ast

from torch_compat.runtime.language.grammar import GRAMMAR, constructs

SOURCE = """
def forward(self, x: Tensor) -> Tensor:
  with scope as inside:
    for i in range(2):
      x = torch.mul(x, 1.+2.j)
  return sorted(getattr(self, "0"))[0:1]
"""


def test_what_a_text_holds() -> None:
    assert set(constructs(ast.parse(SOURCE))) == {
        "statement FunctionDef", "statement With", "statement For", "statement Assign", "statement Return",
        "expression Name", "expression Attribute", "expression Call", "expression Subscript", "expression Slice",
        "sign Add", "literal int", "literal float", "literal complex", "literal str", "call of getattr", "call of sorted",
    }  # fmt: skip


def test_what_is_no_construct_of_torchscript_is_none() -> None:
    assert set(constructs(ast.parse("x = lambda y: {y}"))) == {"statement Assign", "expression Name"}


def test_the_grammar_is_that_of_the_reader() -> None:
    assert {"statement While", "expression Tuple", "sign Lt", "literal None", "call of annotate", "call of print"} <= GRAMMAR
    assert not any("Lambda" in name or "Starred" in name for name in GRAMMAR)
