"""Statements without effects whose results are unused; executors remove them, so the errors they would raise never occur.

This is ``torch/csrc/jit/passes/dead_code_elimination.cpp`` for the source of one function. Writers already omit unused statements, except
calls to other functions, which only executors look into. A statement stays if it has an effect of its own (a print, a raise, an attribute
that is set, a call of a function that has such a statement), if a statement that stays reads its result, or if it writes in place to a
value that such a statement reads. Rules for loops:

* a ``while`` stays, since its condition is computed in its body;
* a ``for`` stays only if a statement in its body stays or a result of it is read afterwards;
* a variable that the body reads before setting it stays with the loop.

The cost of this analysis is proportional to the source: a function that would cost more, and functions called more than ``DEEPEST`` calls
deep, count as used entirely.

A call stays as a whole. If only one of several returned values is read, releases also remove the computation of the others, and (1.11 and
newer) the attributes of an object that is created but not read. Neither is modeled.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_compat.runtime.language.all_read import all_read
from torch_compat.runtime.language.writes import (
    ASSIGNMENTS,
    CONTAINERS,
    FRESH,
    JUMPS,
    MOST_NAMES,
    VARIABLES,
    carried,
    in_place,
    operator_of,
    targets_of,
    written,
)
from torch_compat.torchscript.parser import NO_SOURCE, dotted, nodes_of, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Callees", "unused"]

PURE = frozenset({
    "annotate", "unchecked_cast", "uninitialized", "isinstance", "getattr", "int", "float", "bool", "str", "complex", "range",
})  # fmt: skip
"""Forms of the language and builtins without effects; ``print`` and ``fork`` are not among them."""
EFFECTS = frozenset({
    "Enter", "Exit", "RaiseException", "fork", "manual_seed", "save", "set_grad_enabled", "wait", "warn", "set_data", "backward",
    "requires_grad_", "retain_grad",
})  # fmt: skip
CONSTANTS = "CONSTANTS"
VISITS = 16
"""Average number of visits per statement after which a whole function counts as used; functions of the corpus need fewer than three."""
DEEPEST = 40
"""Call depth to which the effects of a function are analyzed."""


def unused(function: ast.FunctionDef, lines: list[str], callees: Callees, owner: str = "") -> frozenset[int]:
    """The statements of a function that releases do not run, by :func:`id`; a block that does not run is listed without its statements.

    Parameters:
        lines: those of the file.
        owner: the qualified name of the class whose method it is.
    """
    if all_read(function, lines):
        return frozenset()
    return _Function(function, callees, owner).found()


class Callees:
    """The functions of a program before compilation; tells which of them have no side effects.

    Parameters:
        text: returns the source of a file by the qualified name of its contents; None if there is no such file.
    """

    def __init__(self, text: Callable[[str], bytes | None]) -> None:
        self._text = text
        self._files: dict[str, dict[str, ast.stmt] | None] = {}
        self._idle: dict[str, bool] = {}
        self._depth = 0

    def idle(self, name: str) -> bool:
        """Whether a call to a function can be removed if its result is unused."""
        known = self._idle.get(name)
        if known is None:
            if self._depth == DEEPEST:
                return False
            self._depth += 1
            self._idle[name] = False  # during the analysis: a recursive function may never end
            result = self._find(name)
            if isinstance(result, ast.ClassDef):
                known = any(dotted(base) == "NamedTuple" for base in result.bases)
            elif isinstance(result, ast.FunctionDef):
                known = _Function(result, self, name.rpartition(".")[0], gives=False).idle()
            else:
                known = False
            self._idle[name] = known
            self._depth -= 1
        return known

    def attribute(self, owner: str, name: str) -> str:
        """The class of an attribute that is a module; empty if it is not a module."""
        result = self._find(owner)
        for statement in result.body if isinstance(result, ast.ClassDef) else ():
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.target.id == name:
                return dotted(statement.annotation)
        return ""

    def _find(self, name: str) -> ast.stmt | None:
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            names = self._file(".".join(parts[:cut]))
            if names is not None:
                return names.get(".".join(parts[cut:]))
        return None

    def _file(self, name: str) -> dict[str, ast.stmt] | None:
        if name not in self._files:
            text = self._text(name)
            self._files[name] = None if text is None else _named(text)
        return self._files[name]


def _named(text: bytes) -> dict[str, ast.stmt]:
    """Functions, classes and methods of a file by name; empty for a file that does not parse, which compilation reports."""
    try:
        tree = parse(str(text, "latin-1"))
    except NO_SOURCE:
        return {}
    results: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            results[node.name] = node
        elif isinstance(node, ast.ClassDef):
            results.setdefault(node.name, node)
            results.update(
                {f"{node.name}.{statement.name}": statement for statement in node.body if isinstance(statement, ast.FunctionDef)}
            )
    return results


class _TooMuch(Exception):  # noqa: N818 - no error: the function is taken to be used as a whole
    """Analyzing a function would cost more than is proportional to its source."""


class _Function:
    """
    Parameters:
        owner: the qualified name of the class whose method it is.
        gives: whether its return value is read.
    """

    def __init__(self, function: ast.FunctionDef, callees: Callees, owner: str, *, gives: bool = True) -> None:
        nodes = nodes_of(function)
        self._function = function
        self._callees = callees
        self._owner = owner
        self._gives = gives
        self._set: dict[str, ast.expr | None] = {}  # the value assigned to a name; None if there are several
        self._groups: dict[str, str] = {}  # names that may alias
        self._shared: set[str] = set()  # names read by statements that stay: writes to them are read, too
        self._stays: set[int] = set()
        self._seen: dict[int, tuple[frozenset[str], list[ast.Call]]] = {}
        self._variables = {arg.arg for arg in function.args.args} | {CONSTANTS}
        assignments: list[ast.Assign | ast.AnnAssign] = []
        calls: list[ast.Call] = []
        statements = 0
        for node in nodes:
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    self._variables.add(node.id)
            elif isinstance(node, ast.Call):
                calls.append(node)
            elif isinstance(node, ast.stmt):
                statements += 1
                if isinstance(node, ASSIGNMENTS):
                    assignments.append(node)
        self._visits = VISITS * statements
        self._writes = any(written(operator_of(call)) for call in calls)
        for assignment in assignments:
            self._remember(assignment)
        if self._writes:
            self._share(assignments, calls)
            self._join("", *(name for node in nodes if isinstance(node, ast.With) for name in self._entered(node)))

    def _entered(self, node: ast.With) -> Iterator[str]:
        """The variables that hold results of ``__enter__``, which may be the contexts themselves or anything that these hold."""
        for item in node.items:
            if item.optional_vars is not None:
                yield from self._reads(item.optional_vars)

    def _within(self, node: ast.AST) -> tuple[frozenset[str], list[ast.Call]]:
        """The names and calls in a node, collected in one walk."""
        result = self._seen.get(id(node))
        if result is None:
            names, calls = set(), []
            for item in nodes_of(node):
                if isinstance(item, ast.Name):
                    names.add(item.id)
                elif isinstance(item, ast.Call):
                    calls.append(item)
            result = self._seen[id(node)] = frozenset(names), calls
        return result

    def _reads(self, node: ast.AST) -> frozenset[str]:
        return self._within(node)[0]

    # ------------------------------------------------------------------------------------------------ what shares memory

    def _root(self, name: str) -> str:
        while (above := self._groups.get(name, name)) != name:
            self._groups[name] = self._groups.get(above, above)
            name = above
        return name

    def _mentions(self, node: ast.AST) -> frozenset[str]:
        """The variables in an expression, without modules and types."""
        return self._reads(node) & self._variables

    def _join(self, *names: str) -> None:
        first = self._root(names[0])
        for name in names[1:]:
            self._groups[self._root(name)] = first

    def _remember(self, node: ast.Assign | ast.AnnAssign) -> None:
        for target in targets_of(node):
            for name in self._reads(target):
                self._set[name] = None if name in self._set or not isinstance(target, ast.Name) else node.value

    def _share(self, assignments: list[ast.Assign | ast.AnnAssign], calls: list[ast.Call]) -> None:
        self._join("", CONSTANTS, *(arg.arg for arg in self._function.args.args))
        for assignment in assignments:
            self._alias(assignment)
        for call in calls:
            self._keep(call)

    def _alias(self, node: ast.Assign | ast.AnnAssign) -> None:
        """Record that a variable may alias every variable in its value, unless the value is a new tensor."""
        names = [name for target in targets_of(node) for name in self._reads(target)]
        value = node.value
        if value is None or not names:
            return
        operator = operator_of(value) if isinstance(value, ast.Call) else None
        if operator in FRESH:
            return
        if isinstance(value, ast.Call) and operator is not None and in_place(operator):
            value = value.args[0] if value.args else value
        self._join(*names, *self._mentions(value))

    def _keep(self, node: ast.Call) -> None:
        """Record that values stored in a container may be reached through it."""
        operator = operator_of(node)
        if operator in CONTAINERS and node.args and (names := self._mentions(node)):
            self._join(*names)

    # ------------------------------------------------------------------------------------------------ what stays

    def found(self) -> frozenset[int]:
        """The statements that do not stay."""
        if not self._look():
            return frozenset()
        return frozenset(id(stmt) for stmt in self._outermost(self._function.body))

    def _look(self) -> bool:
        """Find the statements that stay; return whether this kept within the limit."""
        self._shared = {self._root("")}
        before = None
        try:
            while before != (before := (len(self._stays), len(self._shared))):
                self._block(self._function.body, set())
                if not self._writes:
                    break  # no statement that stays makes an earlier write stay
        except _TooMuch:
            return False
        return True

    def idle(self) -> bool:
        """Whether no statement stays."""
        return self._look() and not self._any_stays(self._function.body)

    def _outermost(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if id(node) not in self._stays:
                yield node
            elif not isinstance(node, ast.FunctionDef):
                yield from self._outermost([*getattr(node, "body", ()), *getattr(node, "orelse", ())])

    def _effect(self, node: ast.AST) -> bool:
        return any(map(self._acts, self._within(node)[1]))

    def _acts(self, call: ast.Call) -> bool:
        if any(keyword.arg == "out" for keyword in call.keywords):
            return True
        operator = operator_of(call)
        if operator is None:
            if isinstance(call.func, ast.Name) and call.func.id in PURE:
                return False
            name = self._callee(call.func)
            return not name or not self._callees.idle(name)
        if operator in EFFECTS:
            return True
        if written(operator):
            names = self._mentions(call.args[0]) if call.args else set()
            return not names or any(self._root(name) in self._shared for name in names)
        return False

    def _callee(self, func: ast.expr) -> str:
        """The qualified name of the called function of the program; empty if the source does not determine it."""
        if isinstance(func, ast.Name):
            func = self._set.get(func.id) or func
        name = dotted(func)
        if name.startswith("__torch__."):
            return name
        if isinstance(func, ast.Attribute) and (owner := self._class(func.value)):
            return f"{owner}.{func.attr}"
        return ""

    def _class(self, node: ast.expr | None, names: int = 0) -> str:
        """The class of the module that an expression evaluates to: ``self``, an attribute of it, or a name for either.

        Parameters:
            names: names already followed; they may form a cycle.
        """
        if isinstance(node, ast.Name):
            if node.id == "self":
                return self._owner
            return self._class(self._set.get(node.id), names + 1) if names < MOST_NAMES else ""
        if isinstance(node, ast.Attribute):
            owner = self._class(node.value, names)
            return self._callees.attribute(owner, node.attr) if owner else ""
        return ""

    def _stay(self, node: ast.stmt, *parts: ast.AST | None) -> set[str]:
        """Mark a statement as staying; return the names that it reads itself."""
        self._stays.add(id(node))
        names = {name for part in parts if part is not None for name in self._reads(part)}
        if self._writes:
            self._shared.update(map(self._root, names & self._variables))
        return names

    def _block(self, body: list[ast.stmt], live: set[str]) -> set[str]:
        """Walk a block backwards; return the names that are live at its start.

        Parameters:
            live: names that are live after it.
        """
        for node in reversed(body):
            live = self._statement(node, live)
        return live

    def _statement(self, node: ast.stmt, live: set[str]) -> set[str]:
        self._visits -= 1
        if self._visits < 0:
            raise _TooMuch
        if isinstance(node, ASSIGNMENTS):
            targets = targets_of(node)
            plain = all(isinstance(target, VARIABLES) for target in targets)
            names = {name for target in targets for name in self._reads(target)}
            if node.value is None:
                self._stays.add(id(node))
                return live
            if not plain or names & live or self._effect(node.value):
                read = self._stay(node, node.value, *([] if plain else targets))
                if self._writes:
                    self._shared.update(map(self._root, names))
                return (live - names if plain else live) | read
            return live
        if isinstance(node, ast.Expr):
            return live | self._stay(node, node.value) if self._effect(node.value) else live
        if isinstance(node, ast.If):
            after = self._block(node.body, set(live)) | self._block(node.orelse, set(live))
            if not (self._effect(node.test) or self._any_stays([*node.body, *node.orelse])):
                return live
            return after | self._stay(node, node.test)
        if isinstance(node, ast.For):
            return self._for(node, live)
        if isinstance(node, ast.While):
            self._stay(node, node.test)
            return self._loop(node, live | self._reads(node.test), live)
        if isinstance(node, ast.Return):
            if not self._gives and not (node.value is not None and self._effect(node.value)):
                return set()
            return self._stay(node, node.value)
        if isinstance(node, ast.With):
            self._stay(node, *(item.context_expr for item in node.items))
            return self._block(node.body, set(live)) | {name for item in node.items for name in self._reads(item.context_expr)}
        if isinstance(node, ast.Pass):
            self._stays.add(id(node))
            return live
        return live | self._stay(node, node)

    def _for(self, node: ast.For, live: set[str]) -> set[str]:
        leaves = any(isinstance(item, JUMPS) for item in nodes_of(node))
        inside = self._loop(node, set(live), live)
        if not (leaves or self._any_stays(node.body) or self._effect(node.iter)):
            return live
        self._stay(node, node.iter)
        return live | inside | self._reads(node.iter)

    def _loop(self, node: ast.For | ast.While, live: set[str], after: set[str]) -> set[str]:
        """The names that are live at the start of a loop."""
        live = live | carried(node.body, self._reads)
        while True:
            before = self._block(node.body, set(live))
            if before <= live:
                return live | after
            live |= before

    def _any_stays(self, body: list[ast.stmt]) -> bool:
        return any(id(statement) in self._stays and not isinstance(statement, ast.Pass) for statement in body)
