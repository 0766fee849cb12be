"""The types of list variables, as far as the source of a function states them, which gives the element types of empty lists."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_compat.runtime.language.inference import annotated_type, literal_type
from torch_compat.runtime.language.types import Type, read_type
from torch_compat.torchscript.parser import dotted, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ListTypes"]

ROUNDS = 4  # variables whose type follows from later variables
SAME = frozenset({"torch.slice", "torch.copy", "torch.list", "torch.add", "torch.mul"})
"""Operators on lists that give a list of the same type as the first."""
SIMPLE = {
    "int": Type("int"), "float": Type("float"), "bool": Type("bool"), "torch.len": Type("int"), "ord": Type("int"),
    "torch.size": Type("List", (Type("int"),)),
}  # fmt: skip


class ListTypes:
    """The types of the variables of one function, before it is compiled.

    Parameters:
        attributes: annotations of the attributes of ``self``.
    """

    def __init__(self, function: ast.FunctionDef, attributes: Mapping[str, ast.expr]) -> None:
        self._attributes = attributes
        self._found: dict[str, Type] = {}
        for arg in function.args.args:
            if arg.annotation is not None and arg.arg != "self":
                self._found[arg.arg] = read_type(arg.annotation)
        assigned = [
            (node.targets[0].id, node.value)
            for node in nodes_of(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ]
        for _ in range(ROUNDS):
            for name, value in assigned:
                if name not in self._found and (type_ := self._of(value)) is not None:
                    self._found[name] = type_

    def of(self, name: str) -> Type | None:
        """The type of a variable; None if the source does not determine it."""
        return self._found.get(name)

    def _of(self, node: ast.expr) -> Type | None:
        if isinstance(node, ast.Name):
            return self._found.get(node.id)
        if isinstance(node, ast.Attribute):
            message = self._attributes.get(node.attr) if isinstance(node.value, ast.Name) and node.value.id == "self" else None
            return None if message is None else read_type(message)
        if isinstance(node, ast.List):
            inner = self._of(node.elts[0]) if node.elts else None
            return None if inner is None else Type("List", (inner,))
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in SAME and node.args:
                return self._of(node.args[0])
            return annotated_type(node) or SIMPLE.get(name)
        return literal_type(node)

    def _item(self, node: ast.Subscript) -> Type | None:
        holds = self._of(node.value)
        if holds is None:
            return None
        if isinstance(node.slice, ast.Slice):
            return holds if holds.kind == "List" else None
        return holds.args[0] if holds.kind == "List" else holds.args[1] if holds.kind == "Dict" else None
