"""Lists of constant tensors, which an optimizer computes before a method runs.

The elements of such a list are literals or computed from literals by operators, except operators that draw random numbers or mutate their
arguments. An annotated list (``annotate(List[Optional[Tensor]], [i])``) keeps its stated type; this module is about lists without an
annotation.
"""

from __future__ import annotations

import ast
from typing import Final

from torch_compat.releases.release import Release
from torch_compat.runtime.language.texts import assignments
from torch_compat.torchscript.parser import dotted

__all__ = ["FOLDED_SINCE", "FOLDED_UNTIL", "INDEXED", "Folded", "FoldedList", "folded_list", "indexes"]

FOLDED_SINCE, FOLDED_UNTIL = Release("1.8.0"), Release("1.12.0")
"""Between these releases, such a list is not a valid index; ``policies/torch/behaviors.toml`` explains why."""

INDEXED: Final = frozenset({"torch.index", "torch.index_put", "torch.index_put_"})
"""Operators that take optional tensors, and took only tensors before 1.8."""
RANDOM: Final = frozenset({
    "torch.bernoulli", "torch.dropout", "torch.empty", "torch.multinomial", "torch.normal", "torch.poisson", "torch.rand", "torch.rand_like",
    "torch.randint", "torch.randint_like", "torch.randn", "torch.randn_like", "torch.randperm",
})  # fmt: skip
CHANGING: Final = frozenset(
    {"torch._set_item", "torch.append", "torch.clear", "torch.extend", "torch.insert", "torch.pop", "torch.reverse", "torch.sort"}
)
NUMBERS: Final = frozenset({"inf", "nan"})


class FoldedList(list[object]):
    """A list of tensors, all of which are constant."""


def indexes(node: ast.FunctionDef) -> bool:
    """Whether a function calls one of these operators."""
    return any(isinstance(item, ast.Call) and dotted(item.func) in INDEXED for item in ast.walk(node))


def folded_list(items: list[object]) -> FoldedList:
    """The list, marked."""
    return FoldedList(items)


class Folded:
    """The variables of one function that are constant.

    Parameters:
        node: the function, as it was parsed.
    """

    def __init__(self, node: ast.FunctionDef) -> None:
        changed = {name for call in ast.walk(node) if isinstance(call, ast.Call) for name in _changed(call)}
        counted: dict[str, int] = {}
        for name, _ in assignments(node.body):
            counted[name] = counted.get(name, 0) + 1
        self._constant: set[str] = set(NUMBERS)
        for name, value in assignments(node.body):
            if counted[name] == 1 and name not in changed and self.holds(value):
                self._constant.add(name)
        self._lists = {
            name: isinstance(value, ast.List) and bool(value.elts)
            for name, value in assignments(node.body)
            if name in self._constant
        }

    def is_list(self, node: ast.expr) -> bool:
        """Whether an expression is such a list of tensors, without an annotation."""
        if isinstance(node, ast.Name):
            return self._lists.get(node.id, False)
        return isinstance(node, ast.List) and bool(node.elts) and self.holds(node)

    def holds(self, node: ast.expr) -> bool:
        """Whether an expression is constant."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id in self._constant
        if isinstance(node, ast.UnaryOp):
            return self.holds(node.operand)
        if isinstance(node, ast.List | ast.Tuple):
            return all(map(self.holds, node.elts))
        if isinstance(node, ast.Attribute):
            return dotted(node).startswith("CONSTANTS.")
        if not isinstance(node, ast.Call):
            return False
        name = dotted(node.func)
        if not name.startswith("torch.") or name in RANDOM or name in CHANGING or name.endswith("_"):
            return False
        return all(map(self.holds, node.args)) and all(self.holds(keyword.value) for keyword in node.keywords)


def _changed(call: ast.Call) -> list[str]:
    """The variables that a call may mutate."""
    name = dotted(call.func)
    if not (name in CHANGING or name.endswith("_")) or not call.args:
        return []
    return [arg.id for arg in call.args[:1] if isinstance(arg, ast.Name)]
