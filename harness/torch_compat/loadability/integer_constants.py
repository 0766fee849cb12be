"""Finds ints in TorchScript source where a float is required, because torch wrote a float constant as an int.

1.7 and newer write float constants with 17 significant digits and without a decimal point, so that whole numbers from 10**10 to 10**17 are
read as ints. Most programs are not affected: arithmetic and tensors accept both. The compiler refuses the archive where the type is
determined by something else: the return type of a function, the declared type of a parameter, an attribute, a class constant or an
annotation, the items of a list, or the type of a variable in an outer block or in the other branch.

Types are inferred as in the compiler (``torch/csrc/jit/frontend/ir_emitter.cpp``), as far as numbers are concerned. Unknown types are
never reported: a type that is not inferred is compatible with every other type.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_compat.torchscript.operator_results import BOOL, CONVERSIONS, FLOAT, INT, NUMBERS, STR, result_of
from torch_compat.torchscript.parser import MOST_PARSED, dotted, memory_needed, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch_compat.torchscript.operator_results import Type

__all__ = ["MIXED", "WHOLE", "has_whole_constant", "mistaken", "prefix_of", "too_large"]

WHOLE = "whole-floats"
"""A function, variable, argument or item is an int, but a float is expected."""
MIXED = "mixed-items"
"""A list or dict literal contains ints and floats, and its type is not given."""
DIGITS = re.compile(r"\d{11}")  # a cheap test, at a third of the cost for megabytes of source without any
CONSTANT = re.compile(r"(?<![\w.])\d{11,17}(?![\w.])")
NONE = ("None",)
MISMATCH = ("mismatch",)  # of a variable with different types in two branches: an error if it is used
UNION = ("Union",)
LITERALS = {int: INT, float: FLOAT, bool: BOOL, str: STR, type(None): NONE}
ITEM = {"append": (1, None), "insert": (2, None), "_set_item": (2, 1)}
"""Operators that insert into a list or a dict: the index of the inserted argument, and for a dict also that of the key."""


def has_whole_constant(code: str) -> bool:
    """Whether code without string literals has an int constant that may have been a float."""
    return DIGITS.search(code) is not None and CONSTANT.search(code) is not None


def too_large(texts: Iterable[str]) -> bool:
    """Whether source is too large to be checked by :func:`mistaken`."""
    weight = 0
    for text in texts:
        weight += memory_needed(text.encode("utf-8", "surrogatepass"))
        if weight > MOST_PARSED:
            return True
    return False


def prefix_of(record: str) -> str:
    """Return the prefix of the names that a record defines: ``__torch__.torch.nn.modules.linear``."""
    return record[max(record.find("__torch__"), 0) :].removesuffix(".py").replace("/", ".")


def mistaken(sources: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of a program due to floats that became ints: :data:`WHOLE`, :data:`MIXED`, each with a record.

    Empty if the source is too large (:func:`too_large`).

    Parameters:
        sources: all source of the program, by record.
    """
    program = _Program()
    if too_large(sources.values()):
        return {}
    for record, text in sources.items():
        try:
            program.add(record, parse(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # not TorchScript: the reader reports this
    for record in sources:
        program.look(record)
    return program.found


class _Class:
    """A class: its attributes with their declared types, and its methods."""

    def __init__(self) -> None:
        self.attributes: dict[str, Type | None] = {}
        self.order: list[str] = []
        self.methods: dict[str, ast.FunctionDef] = {}
        self.base = ""


class _Program:
    """All source files, so that calls between files can be resolved."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.classes: dict[str, _Class] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self._trees: dict[str, ast.Module] = {}
        self.record = ""

    def add(self, record: str, tree: ast.Module) -> None:
        self._trees[record] = tree
        prefix = prefix_of(record)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(f"{prefix}.{node.name}", node)
            elif isinstance(node, ast.ClassDef):
                result = self.classes.setdefault(f"{prefix}.{node.name}", _Class())
                result.base = dotted(node.bases[0]) if node.bases else ""
                for statement in node.body:
                    if isinstance(statement, ast.FunctionDef):
                        result.methods[statement.name] = statement
                    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        result.attributes[statement.target.id] = declared(statement.annotation)
                        result.order.append(statement.target.id)

    def look(self, record: str) -> None:
        """Check every function of a file."""
        tree = self._trees.get(record)
        if tree is None:
            return
        self.record = record
        for node in tree.body:
            try:
                if isinstance(node, ast.FunctionDef):
                    _Function(self, node, {})
                elif isinstance(node, ast.ClassDef):
                    for statement in node.body:
                        if isinstance(statement, ast.FunctionDef):
                            _Function(self, statement, {})
                        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                            _Function(self, None, {}).check(statement.value, declared(statement.annotation))
            except RecursionError:
                continue  # nested deeper than any release accepts

    def meet(self, sign: str) -> None:
        self.found.setdefault(sign, self.record)


def declared(node: ast.AST | None) -> Type | None:
    """Return the type in an annotation, as far as it is relevant here."""
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.Name | ast.Attribute):
        name = dotted(node)
        return NONE if name == "NoneType" else (name,) if name else None
    if isinstance(node, ast.Subscript):
        head = dotted(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Final":
            return declared(items[0])
        return (head, *map(declared, items)) if head else None
    return None


def fits(given: Type | None, wanted: Type | None) -> bool:
    """Whether a value of one type may be used where another is required; False only for an int instead of a float or the reverse."""
    if given is None or wanted is None:
        return True
    if given in NUMBERS and wanted in NUMBERS:
        return given == wanted
    if given == UNION and wanted in NUMBERS:
        return False
    if wanted[0] == "Optional":
        return given == NONE or fits(given[1] if given[0] == "Optional" else given, wanted[1])  # type: ignore[arg-type]
    if given[0] == wanted[0] and len(given) == len(wanted):
        return all(map(fits, given[1:], wanted[1:]))  # type: ignore[arg-type]
    return True


class _Function:
    """A function, with its variables by block, the outermost first."""

    def __init__(self, program: _Program, node: ast.FunctionDef | None, closure: dict[str, Type | None]) -> None:
        self._program = program
        self._frames: list[dict[str, Type | None]] = [dict(closure)]
        self._returns: Type | None = None
        if node is None:
            return
        args = node.args
        defaults = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
        for arg, default in zip(args.args, defaults, strict=True):
            type_ = declared(arg.annotation)
            if default is not None:
                self.check(default, type_)
            self._frames[0][arg.arg] = type_
        self._returns = declared(node.returns)
        self._block(node.body)

    # ------------------------------------------------------------------------------------------------ statements

    def _block(self, body: Iterable[ast.stmt]) -> bool:
        """Check statements; return whether control flow continues after the last one."""
        return all(self._statement(node) for node in body)

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            self._assign(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None and isinstance(node.target, ast.Name):
                self.check(node.value, declared(node.annotation))
                self._set(node.target.id, declared(node.annotation))
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.check(node.value, self._returns)
            return False
        elif isinstance(node, ast.Raise):
            return False
        elif isinstance(node, ast.Expr):
            self.type_of(node.value)
        elif isinstance(node, ast.If):
            return self._branches(node)
        elif isinstance(node, ast.While):
            self.type_of(node.test)
            self._inner(node.body)
        elif isinstance(node, ast.For):
            self.type_of(node.iter)
            self._inner(node.body, node.target)
        elif isinstance(node, ast.With):
            return self._block(node.body)
        elif isinstance(node, ast.FunctionDef):
            _Function(self._program, node, {name: type_ for frame in self._frames for name, type_ in frame.items()})
            self._set(node.name, None)
        return True

    def _inner(self, body: list[ast.stmt], target: ast.expr | None = None) -> None:
        """Check the body of a loop: outer variables keep their types, and new variables exist only inside."""
        self._frames.append({})
        if isinstance(target, ast.Name):
            self._frames[-1][target.id] = INT
        self._block(body)
        self._frames.pop()

    def _branches(self, node: ast.If) -> bool:
        self.type_of(node.test)
        ends: list[dict[str, Type | None]] = []
        for body in (node.body, node.orelse):
            self._frames.append({})
            on = self._block(body)
            frame = self._frames.pop()
            if on:
                ends.append(frame)
        if not ends:
            return False
        if len(ends) == 1:
            self._frames[-1].update(ends[0])
            return True
        first, second = ends
        for name in first.keys() | second.keys():
            item, other = (frame[name] if name in frame else self._variable(name) for frame in ends)
            same = item == other or (item is None or other is None) or (fits(item, other) and fits(other, item))
            self._frames[-1][name] = (item if item == other else None) if same else MISMATCH
        return True

    def _variable(self, name: str) -> Type | None:
        return next((frame[name] for frame in reversed(self._frames) if name in frame), None)

    def _set(self, name: str, type_: Type | None) -> None:
        for frame in self._frames[:-1]:
            if name in frame and not fits(type_, frame[name]):
                self._program.meet(WHOLE)
        self._frames[-1][name] = type_

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                types = [self.type_of(item) for item in value.elts]
            else:
                type_ = self.type_of(value)
                types = [None] * len(target.elts)
                if type_ is not None and type_[0] == "Tuple" and len(type_) == len(target.elts) + 1:
                    types = list(type_[1:])  # type: ignore[arg-type]
                elif type_ is not None and type_[0] == "List" and len(type_) == 2:
                    types = [type_[1]] * len(target.elts)  # type: ignore[list-item]
            for node, of in zip(target.elts, types, strict=True):
                if isinstance(node, ast.Name):
                    self._set(node.id, of)
        elif isinstance(target, ast.Name):
            self._set(target.id, self.type_of(value))
        else:
            self.check(value, self.type_of(target))

    # ------------------------------------------------------------------------------------------------ expressions

    def check(self, node: ast.expr, wanted: Type | None) -> None:
        """Check an expression against the type that its context requires."""
        if not fits(self.type_of(node), wanted):
            self._program.meet(WHOLE)

    def type_of(self, node: ast.expr) -> Type | None:
        """Return the type of an expression; None if it is not known."""
        if isinstance(node, ast.Constant):
            return LITERALS.get(node.value.__class__)
        if isinstance(node, ast.UnaryOp):
            result = self.type_of(node.operand)
            return result if isinstance(node.op, ast.USub) else None
        if isinstance(node, ast.Name):
            result = self._variable(node.id)
            if result == MISMATCH:
                self._program.meet(WHOLE)
                return None
            return result
        if isinstance(node, ast.Attribute):
            path = dotted(node)
            if path.startswith("__torch__."):
                return ("function", path)
            of = self._class(node.value)
            return of.attributes.get(node.attr) if of is not None else None
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Tuple):
            return ("Tuple", *map(self.type_of, node.elts))
        if isinstance(node, ast.List):
            return ("List", self._items(node.elts))
        if isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            return ("Dict", self._items(keys), self._items(node.values))
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.IfExp):
            self.type_of(node.test)
            item, other = self.type_of(node.body), self.type_of(node.orelse)
            if not fits(item, other):
                self._program.meet(WHOLE)
            return item if item == other else None
        return None

    def _items(self, nodes: list[ast.expr]) -> Type | None:
        types = {self.type_of(node) for node in nodes}
        if INT in types and FLOAT in types:
            self._program.meet(MIXED)
            return UNION
        return next(iter(types)) if len(types) == 1 else None

    def _item(self, node: ast.Subscript) -> Type | None:
        of = self.type_of(node.value)
        if of is None:
            return None
        if isinstance(node.slice, ast.Slice):
            return of if of[0] == "List" else None
        self.type_of(node.slice)
        if of[0] == "Tuple" and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            place = node.slice.value
            return of[1 + place] if 0 <= place < len(of) - 1 else None  # type: ignore[return-value]
        return of[-1] if of[0] in {"List", "Dict"} and len(of) > 1 else None  # type: ignore[return-value]

    def _class(self, node: ast.expr) -> _Class | None:
        type_ = self.type_of(node)
        return self._program.classes.get(type_[0]) if type_ is not None and isinstance(type_[0], str) else None

    def _call(self, node: ast.Call) -> Type | None:
        name = dotted(node.func)
        if name in {"annotate", "unchecked_cast", "uninitialized"} and node.args:
            wanted = declared(node.args[0])
            if name == "annotate" and len(node.args) == 2:
                self._annotated(node.args[1], wanted)
            return wanted
        if isinstance(node.func, ast.Attribute) and not name.startswith(("torch.", "ops.", "__torch__.")):
            of = self._class(node.func.value)
            method = of.methods.get(node.func.attr) if of is not None else None
            if method is not None:
                return self._given(node, method, skip=1)
            self._arguments(node)
            return None
        if isinstance(node.func, ast.Name):
            stands_for = self._variable(name)
            if stands_for is not None and stands_for[0] == "function":
                name = str(stands_for[1])
        if name.startswith("__torch__."):
            function = self._program.functions.get(name)
            if function is not None:
                return self._given(node, function, skip=0)
            result = self._program.classes.get(name.removesuffix(".__new__"))
            if result is not None:
                if result.base == "NamedTuple" and not name.endswith(".__new__"):
                    for argument, attribute in zip(node.args, result.order, strict=False):
                        self.check(argument, result.attributes[attribute])
                    for keyword in node.keywords:
                        self.check(keyword.value, result.attributes.get(keyword.arg or ""))
                return (name.removesuffix(".__new__"),)
        types = self._arguments(node)
        if name in CONVERSIONS:
            return CONVERSIONS[name]
        return self._operator(name.removeprefix("torch."), types) if name.startswith("torch.") else None

    def _annotated(self, node: ast.expr, wanted: Type | None) -> None:
        """Check the items in ``annotate(List[float], [1, 2.5])`` against the annotation."""
        if wanted is not None and wanted[0] == "List" and isinstance(node, ast.List):
            for item in node.elts:
                self.check(item, wanted[1] if len(wanted) > 1 else None)  # type: ignore[arg-type]
        elif wanted is not None and wanted[0] == "Dict" and isinstance(node, ast.Dict) and len(wanted) == 3:
            for item in node.values:
                self.check(item, wanted[2])  # type: ignore[arg-type]
        else:
            self.check(node, wanted)

    def _arguments(self, node: ast.Call) -> list[Type | None]:
        types = [self.type_of(argument) for argument in node.args]
        for keyword in node.keywords:
            self.type_of(keyword.value)
        return types

    def _given(self, node: ast.Call, function: ast.FunctionDef, skip: int) -> Type | None:
        """Check the arguments of a call of a program's function against the declared parameters; return its type."""
        parameters = function.args.args[skip:]
        for argument, parameter in zip(node.args, parameters, strict=False):
            self.check(argument, declared(parameter.annotation))
        by_name = {parameter.arg: parameter for parameter in parameters}
        for keyword in node.keywords:
            wanted = by_name.get(keyword.arg or "")
            self.check(keyword.value, declared(wanted.annotation) if wanted is not None else None)
        return declared(function.returns)

    def _operator(self, name: str, types: list[Type | None]) -> Type | None:
        if name in ITEM and types:
            place, key = ITEM[name]
            of = types[0]
            if of is not None and len(types) > place:
                if of[0] in {"List", "Dict"} and len(of) > 1 and not fits(types[place], of[-1]):  # type: ignore[arg-type]
                    self._program.meet(WHOLE)
                if of[0] == "Dict" and key is not None and len(of) == 3 and not fits(types[key], of[1]):  # type: ignore[arg-type]
                    self._program.meet(WHOLE)
            return of
        return result_of(name, types)
