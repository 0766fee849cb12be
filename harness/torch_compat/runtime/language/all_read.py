"""Functions whose statements all stay, found by counting the words of their source.

This is true of most functions; analyzing their statements (:mod:`torch_compat.runtime.language.unused`) would cost as much as compiling
them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING

from torch_compat.runtime.language.writes import (
    ASSIGNMENTS,
    FRESH,
    JUMPS,
    MOST_NAMES,
    carried,
    names_in,
    operator_of,
    targets_of,
    written,
)
from torch_compat.torchscript.parser import dotted, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["all_read"]

STAYING = frozenset({"print", "ops.prim.RaiseException", "ops.aten.warn", "torch.warn"})
"""Calls that stay regardless of their arguments."""
WITHOUT_VARIABLES = (*JUMPS, ast.Pass)

_TEXT = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""")
_UNCOUNTED = re.compile(r"\"\"\"|'''|#|\\\n")
"""Source in which words cannot be counted line by line: strings of several lines, comments and continued lines."""
_GAPS = str.maketrans({sign: " " for sign in map(chr, range(128)) if not (sign.isalnum() or sign in "_.=")})


def all_read(function: ast.FunctionDef, lines: list[str]) -> bool:
    """Whether counting the words of its source shows that every statement of a function stays."""
    if function.body[0].__class__ is ast.Return:
        return True
    if function.body[0].lineno == function.lineno:
        return False
    return _Words(function, lines).all_read()


def _words(text: str) -> list[str]:
    """The words of a source, and other signs. Attributes begin with a point, and keywords of calls end in an equals sign."""
    if '"' in text or "'" in text:
        text = _TEXT.sub(" ", text)
    return text.translate(_GAPS).replace(".", " .").replace("=", "= ").split()


class _Words:
    """The words in the source of a function.

    An unused result ends in a variable that is never read, in a variable that is set again, or in a statement that sets no variable. So
    everything is used if no parameter is set, each variable is set once on each path, and each variable occurs more often than it is set.
    A loop may set a variable again if a statement after it reads the variable, or if it stays and reads the variable before it sets it.
    """

    def __init__(self, function: ast.FunctionDef, lines: list[str]) -> None:
        self._function = function
        self._first = function.body[0].lineno
        self._lines = lines[self._first - 1 : function.end_lineno]
        self._parameters = {arg.arg for arg in function.args.args}
        self._stores: list[str] = []
        # the value of each variable, and the variables that its statement sets; None if it is set in several statements
        self._values: dict[str, tuple[ast.expr | None, set[str]] | None] = {}
        self._last: dict[str, int] = {}  # the last line that has a word, from 1

    def all_read(self) -> bool:
        """Whether every statement stays."""
        variables = self._set_once(self._function.body)
        if variables is None or not self._parameters.isdisjoint(variables):
            return False
        if not self._stores:
            return True
        text = "\n".join(self._lines)
        if _UNCOUNTED.search(text):
            return False
        words = Counter(_words(text))
        unread = {name for name, count in Counter(self._stores).items() if words[name] <= count}
        statements = {id(item): item for item in map(self._values.get, unread)}
        return all(item is not None and self._stays(*item, unread) for item in statements.values())

    def _after(self, node: ast.AST, names: Iterable[str]) -> set[str]:
        """Those of the names that occur on a line after a statement or an expression."""
        if not self._last:
            self._last = {word: number for number, line in enumerate(self._lines, self._first) for word in _words(line)}
        end: int = node.end_lineno  # type: ignore[attr-defined]
        return {name for name in names if self._last.get(name, 0) > end}

    def _stays(self, node: ast.expr | None, names: set[str], unread: set[str]) -> bool:
        """Whether a statement that sets an unread variable stays: another result of it is read, or it writes to a value that is read.

        The written value is read if it may alias a parameter or a variable that a later statement reads. The later statement stays as
        well: its own result is read later, or it writes in place, too. Since no variable is set twice, this ends in a statement with an
        effect.

        Parameters:
            node: the value that the statement computes.
            names: the variables that it sets.
            unread: all unread variables.
        """
        if not names <= unread:
            return True
        if not isinstance(node, ast.Call) or not node.args or not written(operator_of(node)):
            return False
        target: ast.expr | None = node.args[0]
        for _ in range(MOST_NAMES):
            if isinstance(target, ast.Name):
                if target.id in self._parameters or self._after(node, [target.id]):
                    return True
                target = (self._values.get(target.id) or (None,))[0]
            elif isinstance(target, ast.Attribute):
                target = target.value
            elif isinstance(target, ast.Call) and target.args and operator_of(target) not in {None, *FRESH}:
                target = target.args[0]
            else:
                return False
        return False

    def _set_once(self, body: list[ast.stmt]) -> set[str] | None:
        """The variables that a block sets.

        None if a path sets a variable twice, or if a statement may have no effect and sets no variable.
        """
        results: set[str] = set()
        for node in body:
            more: set[str] | None = set()
            if isinstance(node, ASSIGNMENTS):
                more = self._set(targets_of(node), node.value)
            elif isinstance(node, ast.If):
                first, second = self._set_once(node.body), self._set_once(node.orelse)
                more = None if first is None or second is None or _idle((*node.body, *node.orelse)) else first | second
            elif isinstance(node, ast.With):
                more = self._set_once(node.body)
            elif isinstance(node, ast.For | ast.While):
                more = self._set_in_loop(node, results)
            elif isinstance(node, ast.Expr):
                more = set() if isinstance(node.value, ast.Call) and dotted(node.value.func) in STAYING else None
            elif not isinstance(node, WITHOUT_VARIABLES):
                more = None
            if more is None or not results.isdisjoint(more):
                return None
            results |= more
        return results

    def _set(self, targets: list[ast.expr], value: ast.expr | None) -> set[str]:
        names = [name for target in targets for name in _stored(target)]
        results = set(names)
        statement = value, results
        for name in results:
            self._values[name] = None if name in self._values else statement
        self._stores += names
        return results

    def _set_in_loop(self, node: ast.For | ast.While, before: set[str]) -> set[str] | None:
        """The variables that a loop sets and nothing before it does.

        Parameters:
            before: the variables that the same block sets before the loop.
        """
        results = self._set_once(node.body)
        if results is None or node.orelse or _idle(node.body):
            return None
        if isinstance(node, ast.For):
            if not isinstance(node.target, ast.Name) or node.target.id in results:
                return None
            results.add(node.target.id)
        again = results & before
        again -= self._after(node, again)
        if again and isinstance(node, ast.While):
            again -= names_in(node.test)
        if again and (isinstance(node, ast.While) or self._after(node, results)):
            again -= carried(node.body, names_in)
        return None if again else results - before


def _stored(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    return [node.id for node in nodes_of(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _idle(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in body)
