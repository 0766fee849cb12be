"""Finds variables in TorchScript source that hide a name that the source calls: a local variable ``int``, then ``int(x)``.

Since 1.6, releases write an attribute as a variable with its name, ``int = self.int``, and reserve neither the builtin names of the
language nor ``torch``. The compiler then calls the variable, and every release refuses such archives, although a release wrote them::

    torch = self.torch            # an int
    len_ = torch.add(x, torch)    # 'int' object has no attribute or method 'add'

A variable is known from its assignment on, in its block and nested blocks; after an ``if``, also if both branches assign it. Calls that
may compile are not reported: operators are methods of a tensor, some names are methods of a string, a list or a dictionary, and a class
may define a method with such a name, or ``__call__``.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_compat.loadability.integer_constants import prefix_of
from torch_compat.torchscript.parser import MOST_PARSED, NO_SOURCE, dotted, memory_needed, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["HIDDEN", "hiding", "may_hide"]

HIDDEN = "hidden-name"
"""A call reaches a variable that is named like a keyword of the language, or like ``torch``, and that cannot be called."""
WORDS = frozenset({"annotate", "bool", "complex", "float", "int", "isinstance", "ord", "print", "range", "str"})
"""Names that source calls without a prefix."""
OPERATORS = "torch"
NAMES = "|".join(sorted(WORDS | {OPERATORS}))
ASSIGNED = re.compile(r"^ ++(\w++(?:, \w++)*+),? = ", re.MULTILINE)
DECLARED = re.compile(rf"[(\s](?:{NAMES}): |^ ++for (?:{NAMES}) in ", re.MULTILINE)
WITHOUT_METHODS = frozenset({"Device", "NoneType", "Optional", "Tuple", "bool", "complex", "float", "int", "number"})
"""The heads of types whose values have no method with the name of an operator."""
OF_PYTHON = {"Dict": dict, "List": list, "str": str}
"""The heads of types whose methods have the same names as in Python."""
CLASSES = "__torch__."
UNKNOWN = ""

Frame = dict[str, str]


def may_hide(code: str) -> bool:
    """Whether code without string literals may have a variable with such a name; most source needs no further check."""
    words = WORDS | {OPERATORS}
    return DECLARED.search(code) is not None or any(
        not words.isdisjoint(match[1].split(", ")) for match in ASSIGNED.finditer(code)
    )


def hiding(sources: Mapping[str, str]) -> str | None:
    """Return the first record in which a function calls a builtin, or a ``torch`` operator, whose name a variable hides.

    Parameters:
        sources: all source of the program, by record.
    """
    if sum(memory_needed(text.encode("utf-8", "surrogatepass")) for text in sources.values()) > MOST_PARSED:
        return None
    trees: dict[str, ast.Module] = {}
    for record, text in sources.items():
        try:
            trees[record] = parse(text)
        except NO_SOURCE:
            continue  # the reader reports this
    methods = {
        f"{prefix_of(record)}.{node.name}": {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
        for record, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for record, tree in trees.items():
        try:
            if any(_hides(node, methods) for node in tree.body):
                return record
        except RecursionError:
            continue  # nested deeper than any release accepts
    return None


def _hides(node: ast.stmt, methods: Mapping[str, set[str]]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return _Hiding({}, methods).in_function(node, [])
    if not isinstance(node, ast.ClassDef):
        return False
    attributes = {
        dotted(statement.target): _head(statement.annotation) for statement in node.body if isinstance(statement, ast.AnnAssign)
    }
    hiding = _Hiding(attributes, methods)
    return any(hiding.in_function(statement, []) for statement in node.body if isinstance(statement, ast.FunctionDef))


def _head(node: ast.AST) -> str:
    """Return the name of a type without its arguments."""
    if isinstance(node, ast.Constant) and node.value is None:
        return "NoneType"
    return dotted(node.value if isinstance(node, ast.Subscript) else node)


class _Hiding:
    """Tracks the variables of the functions of a class, or of one function, with the head of each variable's type."""

    def __init__(self, attributes: Frame, methods: Mapping[str, set[str]]) -> None:
        self._attributes = attributes
        self._methods = methods

    def in_function(self, node: ast.FunctionDef, frames: list[Frame]) -> bool:
        """Whether a function calls a variable that hides a name."""
        given = [*node.args.args, *node.args.kwonlyargs]
        parameters = {arg.arg: UNKNOWN if arg.annotation is None else _head(arg.annotation) for arg in given}
        return self._in_block(node.body, [*frames, parameters]) is None

    def _in_block(self, body: Iterable[ast.stmt], frames: list[Frame]) -> Frame | None:
        """Return the variables that a block adds; None if it calls a variable that hides a name."""
        own: Frame = {}
        frames = [*frames, own]
        for node in body:
            if isinstance(node, ast.FunctionDef):
                if self.in_function(node, frames):
                    return None
                continue
            inner = [getattr(node, part, []) for part in ("body", "orelse")]
            if any(self._calls(item, frames) for item in ast.iter_child_nodes(node) if not isinstance(item, ast.stmt)):
                return None
            added: list[Frame] = []
            for part in inner:
                block = self._in_block(part, [*frames, self._bound(node)])
                if block is None:
                    return None
                added.append(block)
            if isinstance(node, ast.If):
                own.update({name: _common(head, added[1][name]) for name, head in added[0].items() if name in added[1]})
            else:
                own.update(self._bound(node))
        return own

    def _bound(self, node: ast.stmt) -> Frame:
        """Return the variables that a statement assigns, excluding nested statements."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                return {target.id: self._type(node.value)}
            return {item.id: UNKNOWN for item in ast.walk(target) if isinstance(item, ast.Name)}
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            return {node.target.id: UNKNOWN}
        return {}

    def _type(self, node: ast.expr) -> str:
        """Return the head of the type of an assigned value, as far as the class declares it."""
        name = dotted(node)
        return self._attributes.get(name.removeprefix("self."), UNKNOWN) if name.startswith("self.") else UNKNOWN

    def _calls(self, node: ast.AST, frames: list[Frame]) -> bool:
        for item in ast.walk(node):
            if isinstance(item, ast.Call):
                name = dotted(item.func)
                head, _, operator = name.partition(".")
                if head not in WORDS and head != OPERATORS:
                    continue
                known = next((frame[head] for frame in reversed(frames) if head in frame), None)
                if known is not None and self._refuses(known, operator):
                    return True
        return False

    def _refuses(self, known: str, operator: str) -> bool:
        """Whether a variable of this type cannot be called, or lacks the called method."""
        if known.startswith(CLASSES):
            return (operator or "__call__") not in self._methods.get(known, {operator or "__call__"})
        if known in OF_PYTHON:
            return not operator or not hasattr(OF_PYTHON[known], operator)
        return not operator or known in WITHOUT_METHODS


def _common(text: str, other: str) -> str:
    return text if text == other else UNKNOWN
