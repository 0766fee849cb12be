"""Finds variables in TorchScript source to which the two branches of an ``if`` assign values of types that have no common type.

Functions that return values of different types (``Union``) at two places or more before their end are written this way by every release,
without types for the variables. The compiler refuses the source where it reads such a variable, and no release loads its own archive::

    if torch.eq(n, 0):
      _1, _2 = True, 5
    else:
      _1, _2 = False, "text"
    _3 : Union[int, str] = _2   # Type mismatch: _2 is set to type int in the true branch and type str in the false branch

Only values whose types are evident count: constants, variables of these types, declared values, and the results of operators in
:mod:`torch_compat.torchscript.operator_results`. The results of other calls and attributes are not followed, so some refused functions are
not found; a function that loads is never taken for a refused one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_compat.torchscript.operator_results import CONVERSIONS, result_of
from torch_compat.torchscript.parser import MOST_PARSED, NO_SOURCE, dotted, memory_needed, parse

if TYPE_CHECKING:
    from torch_compat.torchscript.operator_results import Type

__all__ = ["UNLIKE", "may_differ", "with_unlike_branches"]

UNLIKE = "unlike-branches"
"""A variable is read that has another type after each branch of an ``if``."""
UNKNOWN, MISMATCH = "", "mismatch"
SIMPLE = frozenset({"Tensor", "bool", "float", "int", "str"})
"""Types of which no two have a common type."""
DECLARING = frozenset({"annotate", "unchecked_cast"})

Types = dict[str, str]


def may_differ(code: str) -> bool:
    """Whether code without string literals may have such a variable; most source needs no further check."""
    return "uninitialized(" in code and "Union[" in code


def with_unlike_branches(text: str) -> bool:
    """Whether a function of a source file reads such a variable."""
    if memory_needed(text.encode("utf-8", "surrogatepass")) > MOST_PARSED:
        return False
    try:
        return any(isinstance(node, ast.FunctionDef) and _Branches().refuses(node) for node in ast.walk(parse(text)))
    except (*NO_SOURCE, RecursionError):
        return False  # the reader reports this


def _declared(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) and node.id in SIMPLE else UNKNOWN


def _common(text: str, other: str) -> str:
    if MISMATCH in {text, other}:
        return MISMATCH
    if text == other or UNKNOWN in {text, other}:
        return text if text == other else UNKNOWN
    return MISMATCH


class _Branches:
    """Follows the types of the variables of one function."""

    def __init__(self) -> None:
        self._read = False

    def refuses(self, node: ast.FunctionDef) -> bool:
        """Whether the function reads a variable without a common type."""
        given = [*node.args.args, *node.args.kwonlyargs]
        self._block(node.body, {arg.arg: _declared(arg.annotation) for arg in given})
        return self._read

    def _block(self, body: list[ast.stmt], types: Types) -> set[str]:
        """Follow a block, and return the variables that it assigns."""
        assigned: set[str] = set()
        for node in body:
            if isinstance(node, ast.FunctionDef):
                continue
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.stmt):
                    self._look(child, types)
            if isinstance(node, ast.If):
                assigned |= self._if(node, types)
            elif isinstance(node, (ast.For, ast.While, ast.With)):
                assigned |= self._block(node.body, types)  # variables keep their types in a loop
            else:
                assigned |= self._assign(node, types)
        return assigned

    def _if(self, node: ast.If, types: Types) -> set[str]:
        sides = (dict(types), dict(types))
        names = [self._block(part, side) for part, side in zip((node.body, node.orelse), sides, strict=True)]
        for name in names[0] & names[1]:
            kinds = [side.get(name, UNKNOWN) for side in sides]
            unset = [kind for kind in kinds if kind.startswith("unset ")]
            if unset and len(unset) < len(kinds):
                other = next(kind for kind in kinds if not kind.startswith("unset "))
                kinds = [other or unset[0].removeprefix("unset ")] * 2  # what is not set has the type of the other side
            types[name] = kinds[0] if kinds[0] == kinds[1] else _common(*kinds)
        for name in names[0] ^ names[1]:
            types[name] = types.get(name, UNKNOWN)
        return names[0] | names[1]

    def _look(self, node: ast.AST, types: Types) -> None:
        for item in ast.walk(node):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load) and types.get(item.id) == MISMATCH:
                self._read = True

    def _assign(self, node: ast.stmt, types: Types) -> set[str]:
        pairs: list[tuple[ast.expr, str]] = []
        if isinstance(node, ast.AnnAssign):
            pairs = [(node.target, _declared(node.annotation))]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = [(item, self._type(given, types)) for item, given in zip(target.elts, value.elts, strict=True)]
            elif isinstance(target, ast.Tuple):
                pairs = [(item, UNKNOWN) for item in target.elts]
            else:
                pairs = [(target, self._type(value, types))]
        names = {item.id: kind for item, kind in pairs if isinstance(item, ast.Name)}
        types.update(names)
        return set(names)

    def _type(self, node: ast.expr, types: Types) -> str:
        if isinstance(node, ast.Constant):
            kind = type(node.value).__name__
            return kind if kind in SIMPLE else UNKNOWN
        if isinstance(node, ast.Name):
            return types.get(node.id, UNKNOWN)
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name == "uninitialized" and node.args:
                kind = _declared(node.args[0])
                return f"unset {kind}"
            if name in DECLARING and node.args:
                return _declared(node.args[0])
            if name in CONVERSIONS:
                return CONVERSIONS[name][0]
            if name.startswith("torch."):
                result = result_of(name.removeprefix("torch."), [self._argument(item, types) for item in node.args])
                return str(result[0]) if result is not None else UNKNOWN
        return UNKNOWN

    def _argument(self, node: ast.expr, types: Types) -> Type | None:
        kind = self._type(node, types)
        return (kind,) if kind in SIMPLE else None
