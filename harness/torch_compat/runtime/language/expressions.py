"""Translates TorchScript expressions to Python that uses only our own names; :mod:`torch_compat.runtime.language.body` does statements.

See :mod:`torch_compat.runtime.language.unit` for the form of the source and the separation of names.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.language import called
from torch_compat.runtime.language.inference import (
    ARITHMETIC,
    COMPARISONS,
    LITERALS,
    Inference,
    annotated_type,
    changes_nothing,
    literal_type,
    same,
)
from torch_compat.runtime.language.names import DEPTH, NUMBERS, REPLACED, constant_number
from torch_compat.runtime.language.signs import BINARY, CALLS, COMPARE, IMPLICIT, NO_VALUE, OF_ELEMENTS, OF_NUMBERS, READING
from torch_compat.runtime.language.types import Type, checked_key, read_type
from torch_compat.torchscript.parser import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from torch_compat.runtime.language.listed import ListTypes
    from torch_compat.runtime.language.names import ClassInfo, FunctionInfo, Names

__all__ = ["EXPRESSIONS", "SPECIAL", "ExpressionCompiler"]

ITEMS = 16  # of a list literal, which count as a call
NATIVE = frozenset(ARITHMETIC) | frozenset(COMPARISONS) | {"torch.remainder", "torch.floordiv", "torch.len"}


class ExpressionCompiler:
    """Translates the expressions of one function."""

    def __init__(
        self, unit: Names, outer: ExpressionCompiler | None, info: FunctionInfo | None, cls: ClassInfo | None = None
    ) -> None:
        self.unit = unit
        self.outer = outer
        self.info = info
        self.cls = cls
        self.types: Inference | None = None  # only if there is a loop
        self.temporaries = 0
        self.literals: dict[str, Type | None] = {}  # of variables that are set once
        self.listed: dict[str, bool] = {}  # whether a variable was last set to a list of tensors
        self.displays: dict[str, ast.List] = {}  # variables that are an unmodified list literal
        self.lists: ListTypes | None = None  # only if tensors are made from lists
        self.declared: dict[str, Type] = {}  # variables that were first set to a list of a stated type
        self.numbers: set[str] = set()  # variables that are set to a number read from a tensor
        self.aliases: dict[str, str] = {}  # variables that stand for a function of the program, and its qualified name
        self.locals: set[str] = set()
        self.forks: set[str] = set()  # functions in this one: bodies of forks
        self.depth = 0
        self.calls = 0  # in the source so far
        self.paid = 0  # of them

    def _temporary(self, node: ast.AST) -> tuple[ast.Name, ast.Name]:
        self.temporaries += 1
        name, at = f"t{self.temporaries}", {"lineno": node.lineno, "col_offset": 0}  # type: ignore[attr-defined]
        return ast.Name(name, ast.Store(), **at), ast.Name(name, ast.Load(), **at)

    def _guarded(self, value: ast.expr, type_: str, node: ast.AST) -> ast.expr:
        """``t if (t := value).__class__ is int else checked(t)``; our own code reads the class, which every value has."""
        at = {"lineno": node.lineno, "col_offset": 0}  # type: ignore[attr-defined]
        store, load = self._temporary(node)
        result = ast.Attribute(ast.NamedExpr(store, value, **at), "__class__", ast.Load(), **at)
        kind = self._table_name(type_, int if type_ == "int" else float, node)
        checked = ast.Call(self._table_name(f"checked {type_}", called.CHECKS[type_], node), [load], [], **at)
        return ast.IfExp(ast.Compare(result, [ast.Is()], [kind], **at), load, checked, **at)

    def _native(self, node: ast.Call) -> ast.expr | None:
        """Arithmetic and comparisons of values known to be numbers, without operators; integers wrap at the end of the expression."""
        types = self.types
        name = dotted(node.func)
        if name == "torch.len":
            listed = types is not None and len(node.args) == 1 and (types.type_of(node.args[0]) or "").startswith("List[")
            return self._length(node) if listed and not node.keywords else None
        if types is None or len(node.args) != 2 or node.keywords:
            return None
        if name in COMPARISONS:
            if types.type_of(node) != "bool":
                return None
            left, right = (self.expr(arg) for arg in node.args)
            return ast.Compare(left, [COMPARISONS[name]()], [right], lineno=node.lineno, col_offset=0)
        result = types.type_of(node)
        if name in ARITHMETIC and result == "float":
            return self._arithmetic(node, 0)
        if result != "int":
            return None
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        if name in ARITHMETIC:
            store, load = self._temporary(node)
            low, high = ast.Constant(-called.INT64, **at), ast.Constant(called.INT64 - 1, **at)
            inside = ast.Compare(low, [ast.LtE(), ast.LtE()], [ast.NamedExpr(store, self._arithmetic(node, 0), **at), high], **at)
            wrapped = ast.Call(self._table_name("wrapped", called.wrapped, node), [load], [], **at)
            return ast.IfExp(inside, load, wrapped, **at)
        divisor = node.args[1]
        if isinstance(divisor, ast.Constant) and divisor.value.__class__ is int and divisor.value > 0:
            operation = ast.Mod() if name == "torch.remainder" else ast.FloorDiv()
            return ast.BinOp(self.expr(node.args[0]), operation, divisor, **at)
        return None

    def _length(self, node: ast.Call) -> ast.expr:
        """The length of a declared list; any other value in its place has an integer length or no length."""
        node.func = self._table_name("len", len, node)
        return self._arguments(node)

    def _arithmetic(self, node: ast.expr, depth: int) -> ast.expr:
        if depth < DEPTH and isinstance(node, ast.Call) and self.types is not None and not node.keywords and len(node.args) == 2:
            operation = ARITHMETIC.get(dotted(node.func))
            if operation is not None and self.types.type_of(node) in {"int", "float"}:
                integers = self.types.type_of(node) == "int"
                parts = []
                for arg in node.args:
                    # an integer part of a float expression wraps separately
                    native = integers or self.types.type_of(arg) == "float"
                    parts.append(self._arithmetic(arg, depth + 1) if native else self.expr(arg))
                return ast.BinOp(parts[0], operation(), parts[1], lineno=node.lineno, col_offset=0)
        return self.expr(node)

    def _once(self, items: list[ast.expr]) -> list[ast.expr]:
        """Eliminate common subexpressions as 1.0 does, even if two results become one tensor."""
        results: list[ast.expr] = []
        seen: dict[str, ast.Name] = {}
        for item in items:
            pure = isinstance(item, ast.Call) and dotted(item.func).startswith("torch.") and not dotted(item.func).endswith("_")
            key = ast.dump(item) if pure else ""
            if key in seen:
                self.unit.host.equal_calls()
                results.append(seen[key])
            elif pure:
                store, seen[key] = self._temporary(item)
                results.append(ast.NamedExpr(store, self.expr(item), lineno=item.lineno, col_offset=0))
            else:
                results.append(self.expr(item))
        return results

    def is_fork(self, name: str) -> bool:
        """Whether a name is that of a function nested in this one or in the enclosing one."""
        return name in self.forks or (name not in self.locals and self.outer is not None and self.outer.is_fork(name))

    def alias(self, name: str) -> str:
        """The qualified name of the function that a variable stands for; empty if there is none."""
        if name in self.locals:
            return self.aliases.get(name, "")
        return self.outer.alias(name) if self.outer is not None else ""

    def known(self, name: str) -> bool:
        """Whether a name is a variable of this function or the enclosing one."""
        return name in self.locals or (self.outer is not None and self.outer.known(name))

    def _name(self, name: str, node: ast.AST) -> ast.Name:
        return ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)  # type: ignore[attr-defined]

    def _table_name(self, key: str, value: Any, node: ast.AST) -> ast.Name:
        return self._name(self.unit.entry(("own", key), value), node)

    def expr(self, node: ast.expr) -> ast.expr:
        """Any expression."""
        handler = EXPRESSIONS.get(node.__class__)
        if handler is None:
            raise self.unit.fail(node, f"has {node.__class__.__name__}, which TorchScript does not support")
        self.depth += 1
        if self.depth > DEPTH:
            raise self.unit.fail(node, f"is nested deeper than {DEPTH}")
        result: ast.expr = handler(self, node)
        self.depth -= 1
        return result

    def constant(self, node: ast.Constant) -> ast.expr:
        """A literal."""
        value = node.value
        kind = value.__class__
        if kind not in LITERALS:
            raise self.unit.fail(node, f"has a constant of type {kind.__name__}")
        if kind is int and not -called.INT64 <= value < called.INT64:  # type: ignore[operator]
            raise self.unit.fail(node, "has an integer of more than 64 bits")
        node.kind = None
        return node

    def name(self, node: ast.Name) -> ast.expr:
        """A variable, or a number that has no literal."""
        name = node.id
        if self.is_fork(name):
            raise self.unit.fail(node, f"uses the function {name} as a value")
        if self.known(name):
            alias = self.alias(name)
            if alias:
                self.unit.reference(alias, "value")  # a function is not a value: linking reports it
            node.id = "v" + name
            return node
        if name in NUMBERS:
            return self._name(self.unit.entry(("number", name), NUMBERS[name]), node)
        raise self.unit.fail(node, f"undefined value {name}")

    def attribute(self, node: ast.Attribute) -> ast.expr:
        """``x.a``, ``CONSTANTS.c0``, ``__torch__.m.C``."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and not self.known(root.id):
            return self._global(node, dotted(node))
        type_ = self.types.type_of(node) if self.types is not None else None
        node.value = self.expr(node.value)
        node.attr = "a_" + node.attr
        return node if type_ is None else self._guarded(node, type_, node)

    def _global(self, node: ast.expr, name: str) -> ast.expr:
        head, _, rest = name.partition(".")
        if head == "CONSTANTS" and rest[:1] == "c" and rest[1:].isdigit():
            index = int(rest[1:])
            return self._name(self.unit.entry(("constant", index), self.unit.host.constant(index)), node)
        if head == "__torch__":
            return self._name(self.unit.reference(name, "value"), node)
        raise self.unit.fail(node, f"undefined value {name}")

    def call(self, node: ast.Call) -> ast.expr:
        """A call: of a form of the language, a builtin, an operator, a function or a method."""
        self.calls += 1
        func = node.func
        if self.displays and dotted(func) not in READING:
            self._forget_names({arg.id for arg in node.args if isinstance(arg, ast.Name)}.intersection(self.displays))
        if isinstance(func, ast.Name):
            if self.known(func.id):
                node.func = self._callee(func)
                return self._arguments(node, prefixed=True)
            special = SPECIAL.get(func.id)
            if special is not None:
                return special(self, node)
            if (operator := CALLS.get(func.id)) is None:
                raise self.unit.fail(node, f"calls {func.id}, which is not defined")
            if func.id == "float" and self.types is not None and self.types.type_of(node) == "float":
                node.func = self._table_name("float", float, node)  # of a value known to be a number
                return self._arguments(node)
            node.func = self._operator(operator, node)
            return self._arguments(node)
        if isinstance(func, ast.Attribute):
            name = dotted(func)
            root = name.partition(".")[0]
            if name and not self.known(root):
                return self._call_global(node, name)
            func.value = self.expr(func.value)
            func.attr = "m_" + func.attr
            return self._arguments(node, prefixed=True)
        raise self.unit.fail(node, "calls something that is not a name")

    def _callee(self, func: ast.Name) -> ast.expr:
        """A call of a variable. The source itself must define it as a function: no value of a program is callable."""
        if self.is_fork(func.id):
            return self._name("v" + func.id, func)
        if not (name := self.alias(func.id)):
            raise self.unit.fail(func, f"calls {func.id}, which is not a function")
        return self._name(self.unit.reference(name, "call"), func)

    def _call_global(self, node: ast.Call, name: str) -> ast.expr:
        if name.startswith("torch."):
            slip = self._slip(node, name)
            if slip is not None:
                return slip
            if self.types is not None and name in NATIVE:
                native = self._native(node)
                if native is not None:
                    return native
            plain = _PLAIN_CALLS.get(name)
            if plain is not None and len(node.args) == plain[0] and not node.keywords:
                return plain[1](self, node)
            operator = "aten::" + name[6:].rpartition(".")[2]
            quick = None if self.types is None or node.keywords else self.unit.host.quick(operator, len(node.args))
            if quick is not None:
                node.func = self._table_name(f"quick {operator}", quick, node)
                return self._arguments(node)
            if name in OF_ELEMENTS and node.args and (kind := self._elements(node.args[0])) in called.ELEMENTS:
                of = called.of_elements(self.unit.host.operator(operator, self.unit, node.lineno), kind)
                node.func = self._table_name(f"{operator} of {kind}", of, node)
                return self._arguments(node)
            node.func = self._operator(operator, node)
            return self._arguments(node)
        if name.startswith("ops."):
            space, _, rest = name[4:].partition(".")
            if space == "prim" and len(node.args) == 1 and rest in {"unchecked_unwrap_optional", "unchecked_cast"}:
                return self.expr(node.args[0])
            if space == "prim" and rest == "RaiseException":
                node.func = self._table_name("raise", called.raised, node)
                return self._arguments(node)
            node.func = self._operator(f"{space}::{rest}", node)
            return self._arguments(node)
        if name.startswith("__torch__."):
            if name.endswith(".__new__"):
                result = self._name(self.unit.reference(name[: -len(".__new__")], "new"), node)
                return ast.Call(result, [], [], lineno=node.lineno, col_offset=0)
            node.func = self._name(self.unit.reference(name, "call"), node)
            return self._arguments(node, prefixed=True)
        raise self.unit.fail(node, f"calls {name}, which is not defined")

    def _operator(self, operator: str, node: ast.Call) -> ast.Name:
        name = self.unit.operator(operator, node)
        if operator in OF_NUMBERS and any(map(self.any_number, node.args)):
            function = called.of_any_number(self.unit.host.operator(operator, self.unit, node.lineno))
            return self._table_name(f"{operator} of any number", function, node)
        return self._name(name, node)

    def any_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number read from a tensor, which can be of any kind."""
        if isinstance(node, ast.Name):
            return node.id in self.numbers
        return isinstance(node, ast.Call) and dotted(node.func) in NO_VALUE

    def _slip(self, node: ast.Call, name: str) -> ast.expr | None:
        """The replacement that a release makes for a call because of the form of its arguments in the source; None if there is none."""
        if name not in REPLACED:
            return None
        host, line = self.unit.host, node.lineno
        constant_number(node, name, host)
        if name in {"torch.eq", "torch.ne"} and host.itself and (self._of_itself(node) or self._one_list(node)):
            result = "aten::" + name[6:]
            node.func = self._table_name(f"{result} of itself", host.of_itself(result, self.unit, line), node)
            return self._arguments(node)
        if host.neutral and changes_nothing(node, name):
            result = "aten::" + name[6:]
            node.func = self._table_name(f"{result} of nothing", host.unchanged(result, self.unit, line), node)
            return self._arguments(node)
        if name == "torch.index_put" and host.listed and len(node.args) > 1 and self._lists_tensors(node.args[1]):
            node.func = self._table_name("aten::index_put of tensors", host.written(self.unit, line), node)
            return self._arguments(node)
        return None

    def _of_itself(self, node: ast.Call) -> bool:
        """Whether both sides are one value: the same expression of variables, with no change between the two."""
        if len(node.args) != 2 or node.keywords or not same(*node.args):
            return False
        parts = list(ast.walk(node.args[0]))
        variables = [part for part in parts if isinstance(part, ast.Name) and self.known(part.id)]
        called_ = [dotted(part.func) for part in parts if isinstance(part, ast.Call)]
        attributes = [part for part in parts if isinstance(part, ast.Attribute) and not dotted(part).startswith("torch.")]
        pure = all(
            item in {"float", "int"} or (item.startswith("torch.") and item not in NO_VALUE and not item.endswith("_"))
            for item in called_
        )
        return bool(variables) and not attributes and pure and self.numbers.isdisjoint(variable.id for variable in variables)

    def _elements(self, node: ast.expr) -> str:
        """The declared element type of a list or of the lists in it; empty if the source does not state it."""
        type_ = annotated_type(node)
        if isinstance(node, ast.Name):
            type_ = self.declared.get(node.id) or (self.lists.of(node.id) if self.lists is not None else None)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and self.cls is not None
        ):
            message = self.cls.attributes.get(node.attr)
            type_ = read_type(message) if message is not None else None
        if type_ is None or type_.kind != "List":
            return ""
        while type_.kind == "List":
            type_ = type_.args[0]
        return str(type_)

    def _one_list(self, node: ast.Call) -> bool:
        """Whether one side is a list literal and the other a variable that is the same list, unmodified."""
        if len(node.args) != 2 or node.keywords or not any(isinstance(arg, ast.List) for arg in node.args):
            return False
        both = [self.displays.get(arg.id, arg) if isinstance(arg, ast.Name) else arg for arg in node.args]
        return self._of_itself(ast.Call(node.func, both, []))

    def _forget_names(self, names: Collection[str]) -> None:
        """Forget what was known of these variables, and of list literals that contain them."""
        if self.displays and names:
            self.displays = {
                name: result
                for name, result in self.displays.items()
                if name not in names and not any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(result))
            }

    def _lists_tensors(self, node: ast.expr) -> bool:
        """Whether an expression is a list of tensors rather than of optional tensors."""
        if isinstance(node, ast.List):
            return not any(isinstance(item, ast.Constant) for item in node.elts)
        if isinstance(node, ast.Name) and node.id in self.listed:
            return self.listed[node.id]
        if isinstance(node, ast.Name) and self.info is not None:
            declared = next((type_ for name, type_ in self.info.parameters if name == node.id), None)
            return declared is not None and str(read_type(declared)) == "List[Tensor]"
        return False

    def _arguments(self, node: ast.Call, *, prefixed: bool = False) -> ast.Call:
        node.args = [self.expr(arg) for arg in node.args]
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unit.fail(node, "has ** in a call")
            if prefixed:
                keyword.arg = "v" + keyword.arg
            keyword.value = self.expr(keyword.value)
        return node

    def _type(self, node: ast.expr) -> ast.expr:
        types = [read_type(item) for item in (node.elts if isinstance(node, ast.Tuple | ast.List) else [node])]
        return self._name(self.unit.entry(("types", tuple(map(str, types))), tuple(types)), node)

    def _two(self, node: ast.Call) -> None:
        if len(node.args) != 2 or node.keywords:
            raise self.unit.fail(node, f"expected two arguments for {dotted(node.func)}")

    def annotate(self, node: ast.Call) -> ast.expr:
        """``annotate(T, x)``: converts a tensor that stands for a number, and the result of ``tolist()``."""
        self._two(node)
        value = node.args[1]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "tolist":
            type_ = read_type(node.args[0])
            kept = self._name(self.unit.entry(("type", str(type_)), type_), node)
            args = [self.expr(value.func.value), kept]
            return ast.Call(self._table_name("tolist", called.to_list, node), args, [], lineno=node.lineno, col_offset=0)
        implicit = IMPLICIT.get(dotted(node.args[0]))
        certain = literal_type(value) is not None or (self.types is not None and self.types.type_of(value) in {"int", "float"})
        if implicit is None or certain:
            return self.expr(value)
        func = self._name(self.unit.operator(implicit, node), node)  # a tensor in place of a number
        return ast.Call(func, [self.expr(value)], [], lineno=node.lineno, col_offset=0)

    def unchecked(self, node: ast.Call) -> ast.expr:
        """``unchecked_cast(T, x)`` is x."""
        self._two(node)
        return self.expr(node.args[1])

    def uninitialized(self, node: ast.Call) -> ast.expr:
        """``uninitialized(T)``: a value that is never read."""
        return ast.Constant(None, lineno=node.lineno, col_offset=0)

    def isinstance_(self, node: ast.Call) -> ast.expr:
        """``isinstance(x, T)`` and ``isinstance(x, [T, U])``."""
        self._two(node)
        node.args = [self.expr(node.args[0]), self._type(node.args[1])]
        node.func = self._table_name("isinstance", called.is_instance, node)
        return node

    def getattr_(self, node: ast.Call) -> ast.expr:
        """``getattr(x, "0")``."""
        self._two(node)
        name = node.args[1]
        if not (isinstance(name, ast.Constant) and name.value.__class__ is str):
            raise self.unit.fail(node, "getattr() expects a string")
        return ast.Attribute(self.expr(node.args[0]), "a_" + name.value, ast.Load(), lineno=node.lineno, col_offset=0)

    def fork_(self, node: ast.Call) -> ast.expr:
        """``fork(f, x)``: ``f`` is nested in this function or is a function of the program."""
        if not node.args:
            raise self.unit.fail(node, "forks nothing")
        func, name = node.args[0], dotted(node.args[0])
        if isinstance(func, ast.Name) and self.known(func.id):
            forked = self._callee(func)
        elif name.startswith("__torch__."):
            forked = self._name(self.unit.reference(name, "call"), node)
        else:
            raise self.unit.fail(node, "forks something that is not a function")
        node.args = node.args[1:]
        node = self._arguments(node)
        node.func = self._table_name("fork", called.fork, node)
        node.args = [forked, *node.args]
        return node

    def _identity(self, node: ast.expr, left: ast.expr, right: ast.expr) -> ast.expr:
        """``x is y``. A comparison with None needs no function."""
        at: Any = {"lineno": node.lineno, "col_offset": 0}
        item = isinstance(left, ast.Name) and isinstance(right, ast.Name) and left.id == right.id
        nothing = any(isinstance(side, ast.Constant) and side.value is None for side in (left, right))
        left, right = self.expr(left), self.expr(right)
        if nothing:
            return ast.Compare(left, [ast.Is()], [right], **at)
        name, check = ("one variable", called.is_itself) if item else ("is", called.is_same)
        return ast.Call(self._table_name(name, check, node), [left, right], [], **at)

    def is_(self, node: ast.Call) -> ast.expr:
        """``torch.__is__(x, y)`` and ``torch.__isnot__(x, y)``."""
        result = self._identity(node, *node.args)
        return result if dotted(node.func) == "torch.__is__" else ast.UnaryOp(ast.Not(), result, lineno=node.lineno, col_offset=0)

    def subscript(self, node: ast.Subscript) -> ast.expr:
        """``x[y]`` and slices of lists and texts."""
        type_ = self.types.type_of(node) if self.types is not None else None
        node.value = self.expr(node.value)
        where = node.slice
        if isinstance(where, ast.Slice):
            where.lower = self.expr(where.lower) if where.lower is not None else None
            where.upper = self.expr(where.upper) if where.upper is not None else None
            where.step = self.expr(where.step) if where.step is not None else None
            node.value = ast.Call(
                self._table_name("sliceable", called.sliceable, node), [node.value], [], lineno=node.lineno, col_offset=0
            )
        else:
            node.slice = self._keyed(where)
        return node if type_ is None else self._guarded(node, type_, node)

    def _keyed(self, node: ast.expr) -> ast.expr:
        """``t if (t := key).__class__ is int else checked_key(t)``, unless the key is a constant or known to be a number."""
        if literal_type(node) is not None and not isinstance(node, ast.Tuple):
            return self.expr(node)
        certain = self.types is not None and self.types.type_of(node) in {"int", "float", "bool"}
        result = self.expr(node)
        if certain:
            return result
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        store, load = self._temporary(node)
        kind = ast.Attribute(ast.NamedExpr(store, result, **at), "__class__", ast.Load(), **at)
        test = ast.Compare(kind, [ast.Is()], [self._table_name("int", int, node)], **at)
        return ast.IfExp(test, load, ast.Call(self._table_name("key", checked_key, node), [load], [], **at), **at)

    def items(self, node: ast.Tuple | ast.List) -> ast.expr:
        """A tuple or list."""
        if self.unit.host.once and isinstance(node, ast.Tuple):
            node.elts = self._once(node.elts)
        else:
            node.elts = [self.expr(item) for item in node.elts]
        self.calls += len(node.elts) // ITEMS
        return node

    def dict_(self, node: ast.Dict) -> ast.expr:
        """A dictionary."""
        if any(key is None for key in node.keys):
            raise self.unit.fail(node, "has ** in a dictionary")
        node.keys = [self._keyed(key) for key in node.keys if key is not None]
        node.values = [self.expr(value) for value in node.values]
        return node

    def unary(self, node: ast.UnaryOp) -> ast.expr:
        """``not x``, ``-x``, ``~x``."""
        kind = node.op.__class__
        if kind is ast.Not:
            node.operand = self.truth(node.operand)
            return node
        if kind is ast.USub and isinstance(node.operand, ast.Constant) and node.operand.value.__class__ in {int, float, complex}:
            value: Any = node.operand.value
            if value.__class__ is int and value > called.INT64:
                raise self.unit.fail(node, "has an integer of more than 64 bits")
            return ast.Constant(-value, lineno=node.lineno, col_offset=0)
        if kind is ast.UAdd:
            return self.expr(node.operand)
        operator = "aten::neg" if kind is ast.USub else "aten::bitwise_not"
        func = self._name(self.unit.operator(operator, node), node)
        return ast.Call(func, [self.expr(node.operand)], [], lineno=node.lineno, col_offset=0)

    def binary(self, node: ast.BinOp) -> ast.expr:
        """Arithmetic: the operator for the sign."""
        func = self._name(self.unit.operator(BINARY[node.op.__class__], node), node)
        return ast.Call(func, [self.expr(node.left), self.expr(node.right)], [], lineno=node.lineno, col_offset=0)

    def compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of two, ``is``, ``in``."""
        if len(node.ops) != 1:
            raise self.unit.fail(node, "chains comparisons")
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        if isinstance(op := node.ops[0], ast.Is | ast.IsNot):
            result: ast.expr = self._identity(node, node.left, node.comparators[0])
            return result if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), result, **at)
        left, right = self.expr(node.left), self.expr(node.comparators[0])
        if isinstance(op, ast.In | ast.NotIn):
            result = ast.Call(self._name(self.unit.operator("aten::__contains__", node), node), [right, left], [], **at)
            return result if isinstance(op, ast.In) else ast.UnaryOp(ast.Not(), result, **at)
        func = self._name(self.unit.operator(COMPARE[op.__class__], node), node)
        return ast.Call(func, [left, right], [], **at)

    def boolean(self, node: ast.BoolOp) -> ast.expr:
        """``and``, ``or``."""
        node.values = [self.expr(value) for value in node.values]
        return node

    def choice(self, node: ast.IfExp) -> ast.expr:
        """``x if c else y``."""
        node.test, node.body, node.orelse = self.truth(node.test), self.expr(node.body), self.expr(node.orelse)
        return node

    def truth(self, node: ast.expr) -> ast.expr:
        """The condition of a branch."""
        check, result = self._table_name("truth", called.truth, node), self.expr(node)
        return ast.Call(check, [result], [], lineno=node.lineno, col_offset=0) if self.unit.tests_floats else result


def _not(body: ExpressionCompiler, node: ast.Call) -> ast.expr:
    return ast.UnaryOp(ast.Not(), body.truth(node.args[0]), lineno=node.lineno, col_offset=0)


EXPRESSIONS: dict[type, Callable[[ExpressionCompiler, Any], ast.expr]] = {
    ast.Constant: ExpressionCompiler.constant, ast.Name: ExpressionCompiler.name, ast.Attribute: ExpressionCompiler.attribute, ast.Call: ExpressionCompiler.call,
    ast.Subscript: ExpressionCompiler.subscript, ast.Tuple: ExpressionCompiler.items, ast.List: ExpressionCompiler.items, ast.Dict: ExpressionCompiler.dict_, ast.UnaryOp: ExpressionCompiler.unary,
    ast.BinOp: ExpressionCompiler.binary, ast.Compare: ExpressionCompiler.compare, ast.BoolOp: ExpressionCompiler.boolean, ast.IfExp: ExpressionCompiler.choice,
}  # fmt: skip
SPECIAL: dict[str, Callable[[ExpressionCompiler, ast.Call], ast.expr]] = {
    "annotate": ExpressionCompiler.annotate, "unchecked_cast": ExpressionCompiler.unchecked, "uninitialized": ExpressionCompiler.uninitialized,
    "isinstance": ExpressionCompiler.isinstance_, "getattr": ExpressionCompiler.getattr_, "fork": ExpressionCompiler.fork_,
}  # fmt: skip
_PLAIN_CALLS: dict[str, tuple[int, Callable[[ExpressionCompiler, ast.Call], ast.expr]]] = {
    "torch.__is__": (2, ExpressionCompiler.is_), "torch.__isnot__": (2, ExpressionCompiler.is_), "torch.__not__": (1, _not),
}  # fmt: skip
