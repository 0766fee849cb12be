"""The constructs of TorchScript source: those that the reference reader accepts, and those that a source text contains.

Both have the same names, in the words of Python's syntax trees: ``statement While``, ``expression Subscript``, ``sign Add``,
``literal float``, ``call of isinstance``. Operators in their own spelling (``torch.add``, ``ops.prim.data``) are no constructs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from torch_compat.runtime.language.body import STATEMENTS
from torch_compat.runtime.language.expressions import EXPRESSIONS, SPECIAL
from torch_compat.runtime.language.inference import LITERALS
from torch_compat.runtime.language.signs import BINARY, CALLS, COMPARE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GRAMMAR", "constructs"]

_SIGNS: Final = (
    *BINARY,
    *COMPARE,
    ast.Is,
    ast.IsNot,
    ast.In,
    ast.NotIn,
    ast.And,
    ast.Or,
    ast.Not,
    ast.USub,
    ast.UAdd,
    ast.Invert,
)
_SIGNED: Final = frozenset({ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant})
"""Expressions identified by their operator or literal."""

GRAMMAR: Final = frozenset({
    *(f"statement {kind.__name__}" for kind in STATEMENTS),
    *(f"expression {kind.__name__}" for kind in EXPRESSIONS if kind not in _SIGNED),
    "expression Slice",
    *(f"sign {kind.__name__}" for kind in _SIGNS),
    *(f"literal {name}" for name in LITERALS.values()),
    *(f"call of {name}" for name in (*CALLS, *SPECIAL)),
})  # fmt: skip
"""Every construct that the reference reader accepts."""


def constructs(tree: ast.AST) -> Iterator[str]:
    """The constructs of :data:`GRAMMAR` in a source text, with their counts."""
    for node in ast.walk(tree):
        for name in _named(node):
            if name in GRAMMAR:
                yield name


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.stmt):
        yield f"statement {node.__class__.__name__}"
    elif isinstance(node, ast.Constant):
        yield f"literal {LITERALS.get(node.value.__class__)}"
    elif isinstance(node, ast.operator | ast.unaryop | ast.cmpop | ast.boolop):
        yield f"sign {node.__class__.__name__}"
    elif isinstance(node, ast.expr):
        yield f"expression {node.__class__.__name__}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield f"call of {node.func.id}"
