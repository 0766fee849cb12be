"""Upgraders: replacements for operator calls in archives that are older than the change of the operator.

An archive states a file format version. If an operator changed with a version, calls in archives with lower versions are replaced by
calls of a small TorchScript program that computes the old semantics with the operators of the reading release
(``torch/csrc/jit/operator_upgraders/upgraders_entry.cpp``). Releases before a change do not have its upgrader.

Bodies, version ranges and old schemas come from each release (``fixtures/operators``), so a horizon runs the upgraders of its own
release. The overload is chosen by the old schema, as in the importer. For 1.6 to 1.10, which do not expose a table, the signature of the
body determines the overload, and its name the range. A program can be given an :class:`UpgraderTable` with other upgraders: a proof runs
an upgrader that no release has.
"""

from __future__ import annotations

import ast
import re
from functools import cache, lru_cache
from json import loads
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import Refused, UsageError
from torch_compat.operators.call_signature import SignatureParameter, signature_of
from torch_compat.operators.history import FactHistory
from torch_compat.releases.data import packaged
from torch_compat.runtime import registry
from torch_compat.runtime.language.unit import Unit
from torch_compat.runtime.language.unused import Callees
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Steps, raised
from torch_compat.torchscript.parser import NO_SOURCE, dotted, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from torch_compat.errors import Raised
    from torch_compat.releases.release import Release
    from torch_compat.runtime.language.names import Names

__all__ = ["OperatorUpgraders", "UpgraderBody", "UpgraderTable", "recorded", "saved"]

NUMBERS: Final = frozenset({int, float, bool, complex})
BINARY: Final[dict[type[ast.operator], str]] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide"}  # fmt: skip
CLASSES: Final[dict[str, frozenset[type]]] = {
    "Tensor": frozenset({Tensor}), "Scalar": NUMBERS, "number": NUMBERS, "int": frozenset({int}), "SymInt": frozenset({int}),
    "float": frozenset({float, int}), "bool": frozenset({bool}), "str": frozenset({str}), "ScalarType": frozenset({int}),
    "Layout": frozenset({int}), "MemoryFormat": frozenset({int}),
}  # fmt: skip
RANGE: Final = re.compile(r"(.+)_(\d+)_(\d+)")


class UpgraderBody(NamedTuple):
    """An upgrader: the calls that it replaces, and the replacement."""

    name: str
    """``div_Tensor_0_3``."""
    operator: str
    """``aten::div``."""
    overload: str
    """``Tensor``; empty if the operator's overload has no name, or if a release distinguishes overloads only by their bodies."""
    first: int
    """The first file format version whose calls it replaces."""
    bump: int
    """The first file format version whose calls it does not replace."""
    schema: str
    """The old schema; empty if the release does not declare one."""
    text: str
    """TorchScript, one function."""

    @property
    def arguments(self) -> tuple[SignatureParameter, ...]:
        """The parameters that a call is matched against, from the old schema or from the function itself."""
        return signature_of(self.schema).arguments if self.schema else _signature(self.text)


# ------------------------------------------------------------------------------------------------------------- the source


def _function(text: str) -> ast.FunctionDef:
    try:
        tree = parse(text)
    except NO_SOURCE as error:
        raise Refused(f"the upgrader is not TorchScript: {error}", code="source") from None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise Refused("expected an upgrader with one function", code="source")
    return tree.body[0]


def _parameters(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None, bool]]:
    """``(parameter, default, keyword-only)`` in order."""
    plain, given = node.args.args, node.args.defaults
    padded = [None] * (len(plain) - len(given)) + list(given)
    results = [(arg, default, False) for arg, default in zip(plain, padded, strict=True)]
    return [*results, *((arg, default, True) for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))]


@lru_cache(maxsize=1024)
def _signature(text: str) -> tuple[SignatureParameter, ...]:
    results = []
    for arg, default, keyword in _parameters(_function(text)):
        kind = "Tensor" if arg.annotation is None else _schema_type(arg.annotation)
        results.append(
            SignatureParameter(arg.arg, kind, None if default is None else ast.unparse(default), keyword, mutated=False)
        )
    return tuple(results)


def _schema_type(node: ast.expr) -> str:
    """The type of an annotation in schema notation: ``Optional[int]`` is ``int?``."""
    optional = isinstance(node, ast.Subscript) and dotted(node.value) == "Optional"
    return f"{ast.unparse(node.slice)}?" if isinstance(node, ast.Subscript) and optional else ast.unparse(node)


class _Saved(ast.NodeTransformer):
    """Replaces tensor methods and arithmetic by the operators that a saved program names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in self.names:
            node.args.insert(0, func.value)
            node.func = ast.Attribute(ast.Name("torch", ast.Load()), func.attr, ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = BINARY.get(type(node.op))
        if name is None:
            raise Refused(f"an upgrader uses {type(node.op).__name__}, which is not supported here", code="source")
        return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load()), [node.left, node.right], [])


def saved(text: str) -> str:
    """The source of an upgrader in the form of a saved program: named operators, and positional parameters only.

    Raises:
        Refused: the source is not a single TorchScript function.
    """
    node = _function(text)
    parameters = _parameters(node)
    node.args.args, node.args.defaults = [arg for arg, _, _ in parameters], []
    node.args.kwonlyargs, node.args.kw_defaults = [], []
    result = _Saved(frozenset(arg.arg for arg, _, _ in parameters)).visit(node)
    return ast.unparse(ast.fix_missing_locations(result))


class _Asked(NamedTuple):
    """The horizon whose operators upgraders call."""

    release: Release


class _Host:
    """The host for the source of upgraders: provides operators without changes."""

    def __init__(self, horizon: Release) -> None:
        self.horizon = _Asked(horizon)
        self.steps = Steps(1 << 62)  # upgraders have no loops
        self.once = self.neutral = False
        self.itself: frozenset[type] = frozenset()
        self.listed = False
        self.callees = Callees(lambda _: None)
        self.source = 0

    def operator(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        del unit, line
        return registry.resolve(name, self.horizon.release)

    def quick(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """Never called: upgraders have no loops."""
        del name, arguments
        return None

    def reference(self, name: str) -> Any:
        raise Refused(f"an upgrader refers to {name}, which is not supported here", code="source")

    def constant(self, index: int) -> Any:
        raise Refused(f"an upgrader refers to the constant {index}, which is not supported here", code="source")

    def number(self, index: int, operator: str) -> float | None:
        """Never called: upgraders have no constants."""
        del index, operator
        return None

    def equal_calls(self) -> None:
        """Never called: ``once`` is false here."""

    def of_itself(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """Never called: ``itself`` is empty here."""
        return self.operator(name, unit, line)

    def unchanged(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """Never called: ``neutral`` is false here."""
        return self.operator(name, unit, line)

    def written(self, unit: Names, line: int) -> Callable[..., Any]:
        """Never called: ``listed`` is false here."""
        return self.operator("aten::index_put", unit, line)


@lru_cache(maxsize=1024)
def _compiled(text: str, horizon: Release) -> Callable[..., Any]:
    unit = Unit(_Host(horizon), "upgraders", saved(text).encode(), "upgraders")
    (result,) = unit.functions.values()
    call: Callable[..., Any] = result.call
    return call


# ---------------------------------------------------------------------------------------------------------------- calling


class _Fit:
    """A body with its matching rule: the number, names and kinds of arguments."""

    __slots__ = ("arguments", "call", "defaults", "places", "required", "words")

    def __init__(self, body: UpgraderBody, horizon: Release) -> None:
        self.arguments = body.arguments
        self.places = [argument for argument in self.arguments if not argument.kwarg_only]
        self.words = {argument.name: argument for argument in self.arguments}
        self.required = {argument.name for argument in self.arguments if argument.default is None}
        self.defaults = {argument.name: _default(argument.default) for argument in self.arguments if argument.default is not None}
        function = _compiled(body.text, horizon)
        names = [item.name for item in _signature(body.text)]
        if set(names) - set(self.words):
            raise Refused(f"{body.name} takes {', '.join(names)}; its old schema has {', '.join(self.words)}", code="source")
        self.call: Callable[[dict[str, Any]], Any] = lambda given: function(*[given[name] for name in names])

    def bound(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name, or None if the call belongs to another overload."""
        if len(args) > len(self.places):
            return None
        given = dict(self.defaults)
        for argument, value in zip(self.places, args, strict=False):
            if not _is(argument.type, value):
                return None
            given[argument.name] = value
        for name, value in keywords.items():
            known = self.words.get(name)
            if known is None or not _is(known.type, value) or (not known.kwarg_only and self.places.index(known) < len(args)):
                return None
            given[name] = value
        return given if self.required <= given.keys() else None


def _is(kind: str, value: Any) -> bool:
    if kind.endswith("?"):
        return value is None or _is(kind[:-1], value)
    classes = CLASSES.get(kind)
    if classes is not None:
        return value.__class__ in classes
    return value is not None and value.__class__ is not Tensor  # lists and devices, which do not distinguish overloads


def _default(text: str | None) -> Any:
    try:
        return ast.literal_eval(text or "None")
    except (ValueError, SyntaxError):
        raise Refused(f"an upgrader has the default {text}, which is not supported here", code="source") from None


class OperatorUpgraders:
    """The upgraders of one operator for one file format version.

    Attributes:
        operator: the operator.
        bodies: the upgraders of the overloads.
        name: the common part of their names, such as ``div_0_3``.
    """

    __slots__ = ("bodies", "name", "operator")

    def __init__(self, operator: str, bodies: tuple[UpgraderBody, ...]) -> None:
        self.operator = operator
        self.bodies = bodies
        self.name = f"{operator.rpartition('::')[2]}_{bodies[0].first}_{bodies[0].bump - 1}"

    def call(self, horizon: Release, *, short: Callable[[Raised], Raised] | None = None) -> Callable[..., Any]:
        """The replacement for the operator: chooses the overload by the arguments; calls that match no old schema are unchanged.

        Parameters:
            short: for bytecode that omits arguments equal to their defaults: takes the error of a call with too few arguments and
                returns the error to raise. The lite interpreter passes an upgrader only the arguments that the archive states.
        """
        fits = [_Fit(body, horizon) for body in self.bodies]

        def upgraded(*args: Any, **keywords: Any) -> Any:
            for fit in fits:
                given = fit.bound(args, keywords)
                if given is not None:
                    if short is not None and len(args) + len(keywords) < len(fit.arguments):
                        raise short(raised("RuntimeError", "pop() called on empty stack"))
                    return fit.call(given)
            return registry.resolve(self.operator, horizon)(*args, **keywords)

        return upgraded


class UpgraderTable:
    """The upgraders that are applied to a program.

    Attributes:
        bodies: all upgraders.
    """

    def __init__(self, bodies: Iterable[UpgraderBody]) -> None:
        self.bodies = tuple(bodies)
        self._found: dict[tuple[str, int], OperatorUpgraders | None] = {}

    def find(self, name: str, version: int) -> OperatorUpgraders | None:
        """The upgraders of an operator for archives with a file format version, or None."""
        key = name, version
        if key not in self._found:
            bodies = tuple(body for body in self.bodies if body.operator == name and body.first <= version < body.bump)
            self._found[key] = OperatorUpgraders(name, bodies) if bodies else None
        return self._found[key]


# --------------------------------------------------------------------------------------------------------- what is recorded


@cache
def recorded(horizon: Release) -> UpgraderTable:
    """The upgraders of the newest recorded release up to a horizon; an empty table if there is no such release."""
    return UpgraderTable(bodies_of(packaged("fixtures", "operators"), horizon))


def bodies_of(folder: Path, horizon: Release) -> list[UpgraderBody]:
    """The upgraders for a horizon in a folder of recorded facts (``upgraders.txt``, ``operator_versions.txt``)."""
    bodies, versions = FactHistory(folder / "upgraders.txt"), FactHistory(folder / "operator_versions.txt")
    before = [release for release, parsed in zip(bodies.releases, bodies.known.parsed, strict=True) if parsed <= horizon]
    if not before or before[-1] not in versions.releases:
        return []
    release = before[-1]
    bit, other = bodies.bit(release), versions.bit(release)
    texts: dict[str, list[str]] = {}
    ranges: dict[str, list[list[int]]] = {}
    for key, value, bits in bodies.facts():
        kind, _, name = key.partition(" > ")
        if bits & bit and name:
            if kind == "bodies":
                texts.setdefault(name.removesuffix("[]"), []).append(loads(value))
            else:
                ranges[name] = loads(value)
    entries = {key: loads(value) for key, value, bits in versions.facts() if bits & other}
    if not ranges:
        return [body for name, result in sorted(texts.items()) for body in _by_name(name, result)]
    results = []
    for key, stated in entries.items():
        operator, _, overload = key.partition(".")
        for bump, name, schema in stated:
            span = [range_ for range_ in ranges.get(key, []) if range_[1] == bump - 1]
            if len(span) != 1 or len(texts.get(name, ())) != 1:
                raise UsageError(
                    f"in {release}, the upgrader {name} of {key} does not have exactly one body and one range that ends at {bump - 1}",
                    code="upgrader",
                )
            results.append(UpgraderBody(name, operator, overload, span[0][0], bump, schema, texts[name][0]))
    return results


def _by_name(name: str, texts: list[str]) -> list[UpgraderBody]:
    """The upgraders of a release that does not expose a table (1.6 to 1.10); their names state operator, first and last version."""
    match = RANGE.fullmatch(name)
    if match is None:
        raise UsageError(f"the name of the upgrader {name} contains no versions", code="upgrader")
    return [UpgraderBody(name, f"aten::{match[1]}", "", int(match[2]), int(match[3]) + 1, "", text) for text in texts]
