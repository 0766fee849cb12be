"""Infers which variables and expressions of a function are certainly integers, floats or booleans, so that loops need no operators.

Nothing here trusts the source. Its declarations (of a parameter, an attribute, the items of a list) are checked once, where the value
enters; conclusions from them are certain. A variable has a type only if every value assigned to it has that type.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_compat.runtime.language.types import ANY, Type, read_type
from torch_compat.torchscript.parser import dotted, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "LITERALS",
    "Inference",
    "annotated_type",
    "changes_nothing",
    "has_loop",
    "literal_type",
    "may_be",
    "same",
    "variables_of",
]

ARITHMETIC: dict[str, type[ast.operator]] = {"torch.add": ast.Add, "torch.sub": ast.Sub, "torch.mul": ast.Mult}
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "torch.eq": ast.Eq, "torch.ne": ast.NotEq, "torch.lt": ast.Lt, "torch.le": ast.LtE, "torch.gt": ast.Gt, "torch.ge": ast.GtE,
}  # fmt: skip
INTEGER_RESULTS = frozenset({"torch.len", "torch.dim", "torch.numel", "int", "ord"})
DIVISIONS = frozenset({"torch.floordiv", "torch.remainder"})
NUMBERS = frozenset({"int", "float"})
OPEN = "?"  # not known yet: compatible with any type
CONSTANTS = {int: "int", float: "float", bool: "bool"}
LITERALS = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "None"}
DECLARED = {"int": "int", "float": "float", "bool": "bool"}


def has_loop(body: list[ast.stmt]) -> bool:
    """Whether a function has loops: others are not worth the analysis."""
    return any(
        isinstance(node, ast.While | ast.For) or (isinstance(node, ast.If) and (has_loop(node.body) or has_loop(node.orelse)))
        or (isinstance(node, ast.With) and has_loop(node.body))
        for node in body
    )  # fmt: skip


def declared(node: ast.expr | None) -> str | None:
    """What a plain annotation says: ``int``, ``float``, ``bool`` or ``List[int]``."""
    if isinstance(node, ast.Name):
        return DECLARED.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "List":
        inner = declared(node.slice)
        return f"List[{inner}]" if inner in NUMBERS else None
    return None


class Inference:
    """The types of one function.

    Attributes:
        variables: type by name; None if it is not certain.
        checked: parameters to check at the start of the function.
    """

    def __init__(self, node: ast.FunctionDef, attributes: Mapping[str, ast.expr]) -> None:
        self.variables: dict[str, str | None] = {}
        self.checked: dict[str, str] = {}
        self._attributes = attributes
        self._assigned: list[tuple[str, ast.expr | str | None]] = []
        for arg in node.args.args:
            message = declared(arg.annotation)
            if message in NUMBERS:
                self.checked[arg.arg] = message
            self._assigned.append((arg.arg, message if message != "bool" else None))
        self._collect(node.body)
        self._self = (
            all(name != "self" for name, _ in self._assigned[1:]) and bool(node.args.args) and node.args.args[0].arg == "self"
        )
        for name, _ in self._assigned:
            self.variables[name] = OPEN
        self._settle()

    def _settle(self) -> None:
        """Visit the assignments until nothing changes.

        Types only become less certain, so this ends. An assignment is visited again only if
        a variable in it has changed, which happens at most twice per variable.
        """
        used_by: dict[str, list[int]] = {}
        for place, (_, value) in enumerate(self._assigned):
            if isinstance(value, ast.expr):
                for name in {node.id for node in nodes_of(value) if isinstance(node, ast.Name)}:
                    used_by.setdefault(name, []).append(place)
        left = list(range(len(self._assigned) - 1, -1, -1))
        waiting = set(left)
        while left:
            place = left.pop()
            waiting.discard(place)
            name, value = self._assigned[place]
            known = self.variables[name]
            if known is None:
                continue
            result = value if value is None or isinstance(value, str) else self._type(value)
            joined = known if result == OPEN else result if known in {OPEN, result} else None
            if joined != known:
                self.variables[name] = joined
                again = [item for item in used_by.get(name, ()) if item not in waiting]
                left += again
                waiting.update(again)

    def type_of(self, node: ast.expr) -> str | None:
        """The type of an expression of the source; None if it is not certain."""
        result = self._type(node)
        return None if result == OPEN else result

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Assign):
                self._assign(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign):
                if node.value is not None:
                    self._assign(node.target, node.value)
            elif isinstance(node, ast.For):
                self._assign(node.target, "int")
                self._collect(node.body)
            elif isinstance(node, ast.If | ast.While):
                self._collect(node.body)
                self._collect(node.orelse)
            elif isinstance(node, ast.With):
                for item in node.items:
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, None)
                self._collect(node.body)
            elif isinstance(node, ast.FunctionDef):
                self._assigned.append((node.name, None))

    def _assign(self, target: ast.expr, value: ast.expr | str | None) -> None:
        if isinstance(target, ast.Name):
            self._assigned.append((target.id, value))
        elif isinstance(target, ast.Tuple):
            items: list[ast.expr | str | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                items = list(value.elts)
            for node, item in zip(target.elts, items, strict=True):
                self._assign(node, item)

    def _type(self, node: ast.expr) -> str | None:
        kind = node.__class__
        if kind is ast.Constant:
            return CONSTANTS.get(node.value.__class__)  # type: ignore[attr-defined]
        if kind is ast.Name:
            return self.variables.get(node.id)  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.UnaryOp):
            return self._type(node.operand) if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) else None
        if isinstance(node, ast.Subscript):
            listed = (
                None
                if isinstance(node.slice, ast.Slice)
                else self._type(node.value)
                if isinstance(node.value, ast.Name)
                else None
            )
            return listed[5:-1] if listed is not None and listed.startswith("List[") else OPEN if listed == OPEN else None
        if isinstance(node, ast.Attribute):
            if self._self and isinstance(node.value, ast.Name) and node.value.id == "self":
                result = declared(self._attributes.get(node.attr))
                return result if result in NUMBERS else None
            return None
        if isinstance(node, ast.List):
            inner = {self._type(item) for item in node.elts}
            result = next(iter(inner)) if len(inner) == 1 else None
            return f"List[{result}]" if result in NUMBERS else OPEN if result == OPEN else None
        if isinstance(node, ast.IfExp):
            return self._join(self._type(node.body), self._type(node.orelse))
        return None

    @staticmethod
    def _join(text: str | None, other: str | None) -> str | None:
        if text == OPEN:
            return other
        return text if other in {OPEN, text} else None

    def _call(self, node: ast.Call) -> str | None:
        name = dotted(node.func)
        if node.keywords or name.partition(".")[0] in self.variables:  # a variable of that name shadows it
            return None
        if name in ARITHMETIC or name in DIVISIONS:
            if len(node.args) != 2:
                return None
            item, other = self._type(node.args[0]), self._type(node.args[1])
            if OPEN in {item, other}:
                return OPEN if item in {OPEN, *NUMBERS} and other in {OPEN, *NUMBERS} else None
            if item == "int" and other == "int":
                return "int"
            return "float" if item in NUMBERS and other in NUMBERS and name in ARITHMETIC else None
        if name in COMPARISONS:
            if len(node.args) != 2:
                return None
            item, other = self._type(node.args[0]), self._type(node.args[1])
            if item in {OPEN, *NUMBERS} and other in {OPEN, *NUMBERS}:
                return OPEN if OPEN in {item, other} else "bool"
            return None
        if name in INTEGER_RESULTS and len(node.args) == 1:
            return "int"
        if name == "float" and len(node.args) == 1:
            result = self._type(node.args[0])
            return "float" if result in NUMBERS else OPEN if result == OPEN else None
        if name == "torch.size" and len(node.args) == 2:
            return "int"
        if name == "annotate" and len(node.args) == 2:
            message = declared(node.args[0])
            return message if message is not None and message.startswith("List[") else self._type(node.args[1])
        return None


def variables_of(body: list[ast.stmt], names: set[str], functions: set[str]) -> None:
    """The variables that statements set: those of a function, wherever in it they are set; and the functions in it, which are both."""
    for node in body:
        kind = node.__class__
        if kind is ast.Assign:
            for target in node.targets:  # type: ignore[attr-defined]
                _set_by(target, names)
        elif kind is ast.AnnAssign:
            _set_by(node.target, names)  # type: ignore[attr-defined]
        elif kind is ast.For:
            _set_by(node.target, names)  # type: ignore[attr-defined]
            variables_of(node.body, names, functions)  # type: ignore[attr-defined]
        elif kind is ast.If or kind is ast.While:
            variables_of(node.body, names, functions)  # type: ignore[attr-defined]
            variables_of(node.orelse, names, functions)  # type: ignore[attr-defined]
        elif kind is ast.With:
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    _set_by(item.optional_vars, names)
            variables_of(node.body, names, functions)  # type: ignore[attr-defined]
        elif kind is ast.FunctionDef:
            names.add(node.name)  # type: ignore[attr-defined]
            functions.add(node.name)  # type: ignore[attr-defined]


def _set_by(node: ast.expr, names: set[str]) -> None:
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            _set_by(item, names)


def literal_type(node: ast.expr) -> Type | None:
    """The type of a literal; None if the expression is not a literal."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return literal_type(node.operand)
    if isinstance(node, ast.Constant):
        kind = LITERALS.get(node.value.__class__)
        return None if kind is None else Type(kind)
    if isinstance(node, ast.Tuple):
        parts = [literal_type(item) or ANY for item in node.elts]
        return Type("Tuple", tuple(parts))
    return None


def may_be(value: Type, declared: Type) -> bool:
    """Whether a value of one type can have the declared type."""
    if value.kind == "Any" or declared.kind in {"Any", "class"}:
        return True
    if declared.kind == "Optional":
        return value.kind == "None" or may_be(value, declared.args[0])
    if declared.kind == "Union":
        return any(may_be(value, arg) for arg in declared.args)
    if declared.kind == "number":
        return value.kind in {"int", "float", "complex"}
    if value.kind == "Tuple" and declared.kind == "Tuple":
        return len(value.args) == len(declared.args) and all(map(may_be, value.args, declared.args))
    return value.kind == declared.kind


def annotated_type(node: ast.expr) -> Type | None:
    """The type of ``annotate(List[T], x)``; None for other expressions."""
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "annotate" and len(node.args) == 2
    ):
        return None
    arg = node.args[0]
    return read_type(arg) if isinstance(arg, ast.Subscript) and dotted(arg.value) == "List" else None


NEUTRAL = {"torch.add": 0, "torch.sub": 0, "torch.mul": 1, "torch.div": 1}
"""The neutral operand of each operator."""


def same(first: ast.expr, second: ast.expr) -> bool:
    """Whether two expressions are written alike."""
    return first.__class__ is second.__class__ and ast.dump(first) == ast.dump(second)


def changes_nothing(node: ast.Call, name: str) -> bool:
    """Whether a call is arithmetic whose second operand, a number in the source, changes nothing."""
    if name not in NEUTRAL or len(node.args) != 2 or any(keyword.arg != "alpha" for keyword in node.keywords):
        return False
    return _is_number(node.args[1], NEUTRAL[name]) and all(_is_number(keyword.value, 1) for keyword in node.keywords)


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value.__class__ in {int, float} and node.value == number
