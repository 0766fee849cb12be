"""Strings passed as ``Any``, which compilers up to 1.6 convert to devices.

If a parameter is declared as a device, the compiler of every release converts a string argument to a device. Up to 1.6 it checks only
whether a device could be passed, which is also true of ``Any``. It uses the type of the expression: a value declared as ``Any`` stays
unchanged. Source of 1.6 and older contains ``torch.device(s)``; source of newer releases contains ``s``, and 1.6 makes the device when it
loads the program. An argument that the function does not read is dropped before it runs, even if it is not a device name.

The type of an expression follows from the source: string literals, declared parameters, attributes and list items, and results of operators
that return strings. Anything else is unknown here, and a string in it stays a string.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from torch_compat.releases.release import Release
from torch_compat.torchscript.parser import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["DEVICES_UNTIL", "TextExpressions", "assignments", "passing", "read_as_any"]

DEVICES_UNTIL: Final = Release("1.7.0")
"""As of this release, a string passed as ``Any`` remains a string."""
GIVING: Final = frozenset({
    "bin", "chr", "hex", "oct", "str", "torch.capitalize", "torch.center", "torch.expandtabs", "torch.format", "torch.join", "torch.ljust",
    "torch.lower", "torch.lstrip", "torch.replace", "torch.rjust", "torch.rstrip", "torch.strip", "torch.swapcase", "torch.title",
    "torch.upper", "torch.zfill",
})  # fmt: skip
"""Functions that always return a string."""
TEXT, TEXTS = "str", "List[str]"


class TextExpressions:
    """The expressions of one function that are certainly strings.

    Parameters:
        node: the function, as it was parsed.
        attributes: the declared attributes of its class.
    """

    def __init__(self, node: ast.FunctionDef, attributes: Mapping[str, ast.expr]) -> None:
        self._attributes = attributes
        self._variables = {arg.arg: _said(arg.annotation) for arg in node.args.args if arg.annotation is not None}
        self._self = node.args.args[0].arg if node.args.args else ""
        for name, value in assignments(node.body):
            self._variables.setdefault(name, self._type(value))  # a variable keeps its type

    def places(self, args: list[ast.expr]) -> tuple[int, ...]:
        """The positions of a call's arguments that are strings."""
        return tuple(place for place, arg in enumerate(args) if self._type(arg) == TEXT)

    def _type(self, node: ast.expr) -> str:
        """The declared type of an expression if it is a string or a list of strings; "" otherwise."""
        if isinstance(node, ast.Constant):
            return TEXT if node.value.__class__ is str else ""
        if isinstance(node, ast.Name):
            return self._variables.get(node.id, "")
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id == self._self and node.attr in self._attributes
            return _said(self._attributes[node.attr]) if own else ""
        if isinstance(node, ast.Subscript):
            held = self._type(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
            return TEXT if held == TEXTS and not isinstance(node.slice, ast.Slice) else ""
        return self._result(node) if isinstance(node, ast.Call) else ""

    def _result(self, node: ast.Call) -> str:
        name = dotted(node.func)
        if name in {"annotate", "unchecked_cast"} and len(node.args) == 2:
            return _said(node.args[0])
        if name == "torch.add" and node.args:
            return TEXT if self._type(node.args[0]) == TEXT else ""
        return TEXT if name in GIVING else ""


def _said(annotation: ast.expr) -> str:
    """A type annotation of a string or of a list of strings."""
    if isinstance(annotation, ast.Subscript):
        return TEXTS if dotted(annotation.value) == "List" and dotted(annotation.slice) == TEXT else ""
    return TEXT if dotted(annotation) == TEXT else ""


def assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names and the values assigned to them, in source order."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        for inner in ("body", "orelse"):
            yield from assignments(getattr(node, inner, []))


def read_as_any(node: ast.FunctionDef) -> frozenset[int]:
    """The parameters of a function that are declared as ``Any`` and read, by position."""
    declared = [
        place for place, arg in enumerate(node.args.args) if arg.annotation is not None and dotted(arg.annotation) == "Any"
    ]
    if not declared:
        return frozenset()
    read = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    return frozenset(place for place in declared if node.args.args[place].arg in read)


def passing(device: Callable[..., Any]) -> Callable[..., Any]:
    """A call with strings among its arguments.

    Parameters:
        device: the operator that converts a string to a device.
    """

    def call(callee: Any, places: tuple[int, ...], *args: Any, **keywords: Any) -> Any:
        function = getattr(callee, "__func__", callee)
        read: frozenset[int] = getattr(function, "read_as_any", frozenset())
        if not read:
            return callee(*args, **keywords)
        before = 0 if function is callee else 1  # the object that a method is called on
        given = [
            device(arg) if place in places and place + before in read and arg.__class__ is str else arg
            for place, arg in enumerate(args)
        ]
        return callee(*given, **keywords)

    return call
