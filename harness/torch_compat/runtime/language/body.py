"""Translates the statements of a TorchScript function to Python that uses only our own names.

Expressions are in :mod:`torch_compat.runtime.language.expressions`. See :mod:`torch_compat.runtime.language.unit` for the form of the
source and the separation of names.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.language import called
from torch_compat.runtime.language.expressions import ITEMS, ExpressionCompiler
from torch_compat.runtime.language.folded import FOLDED_SINCE, FOLDED_UNTIL, INDEXED, Folded, folded_list, indexes
from torch_compat.runtime.language.inference import (
    Inference,
    annotated_type,
    has_loop,
    literal_type,
    may_be,
    variables_of,
)
from torch_compat.runtime.language.listed import ListTypes
from torch_compat.runtime.language.names import DEPTH
from torch_compat.runtime.language.signs import IN_OF_ELEMENTS
from torch_compat.runtime.language.texts import DEVICES_UNTIL, TextExpressions, passing
from torch_compat.runtime.language.types import read_type
from torch_compat.runtime.language.unused import unused
from torch_compat.torchscript.parser import dotted

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["STATEMENTS", "BodyCompiler"]

CALLS_PAID = 64  # calls between two payments of steps
MOST_CALLS = 20_000  # in one statement


class BodyCompiler(ExpressionCompiler):
    """Translates the body of one function.

    Attributes:
        texts: which expressions are strings, if the compiler converts them to devices (up to 1.6).
        folded: which expressions are constant, if indexing operators do not take a list of them (1.8 to 1.11).
        unused: statements that are compiled, so that their errors are refused, but not run.
    """

    texts: TextExpressions | None = None
    folded: Folded | None = None
    unused: frozenset[int] = frozenset()

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The function itself; it pays a step on entry and checks the parameters on whose types loops rely."""
        args = node.args
        if self.outer is None:
            lines = self.unit.lines
            self.unused = unused(node, lines, self.unit.host.callees, self.cls.qualified_name if self.cls is not None else "")
            if any(IN_OF_ELEMENTS in line for line in lines[node.lineno - 1 : node.end_lineno]):
                self.lists = ListTypes(node, self.cls.attributes if self.cls is not None else {})
        if self.outer is None and has_loop(node.body):
            self.types = Inference(node, self.cls.attributes if self.cls is not None else {})
        if self.unit.host.horizon.release < DEVICES_UNTIL:
            self.texts = TextExpressions(node, self.cls.attributes if self.cls is not None else {})
        if FOLDED_SINCE <= self.unit.host.horizon.release < FOLDED_UNTIL and indexes(node):
            self.folded = Folded(node)
        for arg in args.args:
            if arg.arg in self.locals:
                raise self.unit.fail(node, "has a duplicate parameter")
            self.locals.add(arg.arg)
            arg.arg = "v" + arg.arg
            arg.annotation = None
            arg.type_comment = None
        if args.defaults:
            args.defaults = [self._default(default) for default in args.defaults]
        variables_of(node.body, self.locals, self.forks)
        if self.forks and self.forks.intersection(arg.arg[1:] for arg in args.args):
            raise self.unit.fail(node, "has a parameter and a function with the same name")
        node.name = name
        node.returns = None
        node.type_comment = None
        tick = self._table_name("tick", self.unit.host.steps.tick, node)
        first = ast.Expr(ast.Call(tick, [], [], lineno=node.lineno, col_offset=0), lineno=node.lineno, col_offset=0)
        checks = [self._check(name, type_, node) for name, type_ in self.types.checked.items()] if self.types is not None else []
        node.body = [first, *checks, *self.block(node.body)]
        return node

    def _arguments(self, node: ast.Call, *, prefixed: bool = False) -> ast.Call:
        """The arguments of a call; for the program's own functions up to 1.6, with devices in place of strings."""
        places = self.texts.places(node.args) if prefixed and self.texts is not None else ()
        result = super()._arguments(node, prefixed=prefixed)
        if places:
            given = self._name(self.unit.entry(("texts", places), places), node)
            device = self.unit.host.operator("aten::device", self.unit, node.lineno)
            result.args = [result.func, given, *result.args]
            result.func = self._table_name("passing", passing(device), node)
        return result

    def _slip(self, node: ast.Call, name: str) -> ast.expr | None:
        """The arguments of a call; marks a list of constant tensors, whose type in 1.8 to 1.11 differs from the one operators require."""
        listed = name in INDEXED and self.folded is not None and len(node.args) > 1 and self.folded.is_list(node.args[1])
        result = super()._slip(node, name)
        if not listed:
            return result
        if result is None:
            node.func = self._name(self.unit.operator("aten::" + name[6:], node), node)
            result = self._arguments(node)
        if isinstance(result, ast.Call):
            mark = self._table_name("folded", folded_list, node)
            result.args[1] = ast.Call(mark, [result.args[1]], [], lineno=node.lineno, col_offset=0)
        return result

    def _check(self, name: str, type_: str, node: ast.AST) -> ast.stmt:
        """Check that a parameter has its declared type."""
        value = ast.Name("v" + name, ast.Load(), lineno=node.lineno, col_offset=0)  # type: ignore[attr-defined]
        return ast.Assign(
            [ast.Name("v" + name, ast.Store(), lineno=node.lineno, col_offset=0)],  # type: ignore[attr-defined]
            self._guarded(value, type_, node),
            lineno=node.lineno,  # type: ignore[attr-defined]
            col_offset=0,
        )

    def _default(self, node: ast.expr) -> ast.expr:
        value = self.unit.literal(node)
        return self._name(self.unit.entry(("default", self.unit.fresh()), value), node)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of a block; never empty."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.unit.fail(body[0], f"is nested deeper than {DEPTH}")
        results: list[ast.stmt] = []
        for node in body:
            handler = STATEMENTS.get(node.__class__)
            if handler is None:
                raise self.unit.fail(node, f"has {node.__class__.__name__}, which TorchScript does not support")
            before, reads = self.calls, id(node) not in self.unused
            result = handler(self, node)
            if self.calls - before > MOST_CALLS and node.__class__ not in _BLOCKS:
                raise self.unit.fail(body[0], f"has {self.calls - before} calls in one statement; the limit is {MOST_CALLS}")
            if self.calls - self.paid > CALLS_PAID:
                results.append(self._pay(self.calls - self.paid, body[0]))
                self.paid = self.calls
            if result is not None and reads:
                results.append(result)
        self.depth -= 1
        return results or [ast.Pass(lineno=body[0].lineno, col_offset=0)]

    def _pay(self, count: int, node: ast.AST) -> ast.stmt:
        """Pay for calls in front of the statement that contains the last of them, since a function may consist of a million calls."""
        at = {"lineno": node.lineno, "col_offset": 0}  # type: ignore[attr-defined]
        pay = self._table_name("pay", self.unit.host.steps.pay, node)
        return ast.Expr(ast.Call(pay, [ast.Constant(count, **at)], [], **at), **at)

    def assign(self, node: ast.Assign) -> ast.stmt:
        """``x = y``, ``x, y = z``, ``x.a = y``."""
        if len(node.targets) != 1:
            raise self.unit.fail(node, "assigns to several targets")
        target = node.targets[0]
        self._forget([node])
        if isinstance(target, ast.Name):
            if target.id not in self.declared and (type_ := annotated_type(node.value)) is not None:
                self.declared[target.id] = type_
            if isinstance(node.value, ast.List) and len(node.value.elts) <= ITEMS and self.unit.host.itself:
                self.displays[target.id] = copy.deepcopy(node.value)
            if self.any_number(node.value):
                self.numbers.add(target.id)
            alone = target.id not in self.literals or target.id in self.aliases
            self.literals[target.id] = None if target.id in self.literals else literal_type(node.value)
            self.aliases.pop(target.id, None)
            self.listed[target.id] = self._lists_tensors(node.value)
            name = dotted(node.value) if node.value.__class__ is ast.Attribute else ""
            if name.startswith("__torch__.") and alone and not self.known("__torch__"):
                # a function of the program, or a member of an enumeration: known when all files are linked
                self.aliases[target.id] = name
                node.targets = [self.target(target)]
                node.value = self._name(self.unit.reference(name, "alias"), node)
                return node
        node.value = self.expr(node.value)
        node.targets = [self.target(target)]
        node.type_comment = None
        return node

    def annotated(self, node: ast.AnnAssign) -> ast.stmt | None:
        """``x: T = y``; a declaration without a value is nothing."""
        if node.value is None:
            return None
        value = self.expr(node.value)
        return ast.Assign([self.target(node.target)], value, lineno=node.lineno, col_offset=node.col_offset)

    def target(self, node: ast.expr) -> ast.expr:
        """The target of an assignment, in the names of the new code."""
        kind = node.__class__
        if kind is ast.Name:
            if node.id in self.forks:  # type: ignore[attr-defined]
                raise self.unit.fail(node, f"assigns to {node.id}, which is a function")  # type: ignore[attr-defined]
            node.id = "v" + node.id  # type: ignore[attr-defined]
        elif kind is ast.Tuple:
            node.elts = [self.target(item) for item in node.elts]  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            node.value = self.expr(node.value)  # type: ignore[attr-defined]
            node.attr = "a_" + node.attr  # type: ignore[attr-defined]
        else:
            raise self.unit.fail(node, f"assigns to {kind.__name__}")
        return node

    def statement(self, node: ast.Expr) -> ast.stmt:
        """An expression by itself."""
        node.value = self.expr(node.value)
        return node

    def if_(self, node: ast.If) -> ast.stmt:
        """``if``, with or without ``else``."""
        node.test = self.truth(node.test)
        branches = [*node.body, *node.orelse]
        names = self._set_in(branches)
        node.body = self.block(node.body)
        self._forget_names(names)
        if node.orelse:
            node.orelse = self.block(node.orelse)
            self._forget_names(names)
        return node

    def while_(self, node: ast.While) -> ast.stmt:
        """``while``; each round pays a step."""
        if node.orelse:
            raise self.unit.fail(node, "has a loop with an else clause")
        names = self._set_in(node.body)
        self._forget_names(names)
        node.test = self.truth(node.test)
        tick = self._table_name("tick", self.unit.host.steps.tick, node)
        first = ast.Expr(ast.Call(tick, [], [], lineno=node.lineno, col_offset=0), lineno=node.lineno, col_offset=0)
        node.body = [first, *self.block(node.body)]
        self._forget_names(names)
        return node

    def for_(self, node: ast.For) -> ast.stmt:
        """``for x in range(...)``, the only ``for`` loop of the language; ``range`` pays the steps."""
        if node.orelse:
            raise self.unit.fail(node, "has a loop with an else clause")
        loop = node.iter
        if not (isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "range" and not loop.keywords and 0 < len(loop.args) < 4):  # fmt: skip
            raise self.unit.fail(node, "loops over something that is not a range")
        loop.args = [self.expr(arg) for arg in loop.args]
        loop.func = self._table_name("range", self.unit.host.steps.rounds, node)
        names = self._set_in([node])
        self._forget_names(names)
        node.target = self.target(node.target)
        node.body = self.block(node.body)
        self._forget_names(names)
        node.type_comment = None
        return node

    def return_(self, node: ast.Return) -> ast.stmt:
        """``return``."""
        if node.value is not None:
            self._check_return(node.value)
            node.value = self.expr(node.value)
        return node

    def _check_return(self, value: ast.expr) -> None:
        """Refuse a literal whose type differs from the declared return type."""
        returns = self.info.returns if self.info is not None else None
        if returns is None:
            return
        result = self.literals.get(value.id) if isinstance(value, ast.Name) else literal_type(value)
        if result is not None and not may_be(result, read_type(returns)):
            message = f"Return value was annotated as having type {read_type(returns)} but is actually of type {result}"
            raise self.unit.fail(value, message, "types")

    def assert_(self, node: ast.Assert) -> ast.stmt:
        """``assert``: raises what TorchScript raises."""
        message = self.expr(node.msg) if node.msg is not None else ast.Constant("", lineno=node.lineno, col_offset=0)
        call = ast.Call(self._table_name("raise", called.raised, node), [message], [], lineno=node.lineno, col_offset=0)
        test = ast.UnaryOp(ast.Not(), self.truth(node.test), lineno=node.lineno, col_offset=0)
        return ast.If(test, [ast.Expr(call, lineno=node.lineno, col_offset=0)], [], lineno=node.lineno, col_offset=0)

    def raise_(self, node: ast.Raise) -> ast.stmt:
        """``raise``; TorchScript keeps only the message of the exception."""
        args: list[ast.expr] = []
        if isinstance(node.exc, ast.Call):
            args = [self.expr(arg) for arg in node.exc.args]
        call = ast.Call(self._table_name("raise", called.raised, node), args, [], lineno=node.lineno, col_offset=0)
        return ast.Expr(call, lineno=node.lineno, col_offset=0)

    def plain(self, node: ast.stmt) -> ast.stmt:
        """``pass``, ``break``, ``continue``."""
        return node

    def with_(self, node: ast.With) -> ast.stmt:
        """``with x as y:`` calls the object's own ``__enter__`` and ``__exit__``, also when the body raises."""
        if len(node.items) != 1:
            raise self.unit.fail(node, "has several context managers in one with statement")
        item = node.items[0]
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        holder = f"w{len(self.locals)}_{node.lineno}"
        store, load = ast.Name(holder, ast.Store(), **at), ast.Name(holder, ast.Load(), **at)
        enter = ast.Call(ast.Attribute(load, "m___enter__", ast.Load(), **at), [], [], **at)
        none = ast.Constant(None, **at)
        leave = ast.Call(ast.Attribute(load, "m___exit__", ast.Load(), **at), [none, none, none], [], **at)
        first: list[ast.stmt] = [ast.Assign([store], self.expr(item.context_expr), **at)]
        if item.optional_vars is None:
            first.append(ast.Expr(enter, **at))
        else:
            first.append(ast.Assign([self.target(item.optional_vars)], enter, **at))
        body = ast.Try(self.block(node.body), [], [], [ast.Expr(leave, **at)], **at)
        return ast.If(ast.Constant(value=True, **at), [*first, body], [], **at)

    def nested(self, node: ast.FunctionDef) -> ast.stmt:
        """The body of a fork: a function without parameters that closes over variables."""
        if node.args.args or self.outer is not None:
            raise self.unit.fail(node, "has a nested function that is not the body of a fork")
        return BodyCompiler(self.unit, self, None).function(node, "v" + node.name)

    def _set_in(self, body: list[ast.stmt]) -> set[str]:
        """The variables that statements set; empty if no variable is known to be a list literal."""
        names: set[str] = set()
        if self.unit.host.itself:
            variables_of(body, names, set())
        return names

    def _forget(self, body: list[ast.stmt]) -> None:
        if self.displays:
            self._forget_names(self._set_in(body))


STATEMENTS: dict[type, Callable[[BodyCompiler, Any], ast.stmt | None]] = {
    ast.Assign: BodyCompiler.assign, ast.AnnAssign: BodyCompiler.annotated, ast.Expr: BodyCompiler.statement, ast.If: BodyCompiler.if_, ast.While: BodyCompiler.while_,
    ast.For: BodyCompiler.for_, ast.Return: BodyCompiler.return_, ast.Assert: BodyCompiler.assert_, ast.Raise: BodyCompiler.raise_, ast.Pass: BodyCompiler.plain,
    ast.Break: BodyCompiler.plain, ast.Continue: BodyCompiler.plain, ast.With: BodyCompiler.with_, ast.FunctionDef: BodyCompiler.nested,
}  # fmt: skip
_BLOCKS = frozenset({ast.If, ast.While, ast.For, ast.With, ast.FunctionDef})  # compound statements
