"""Methods that 1.6 to 1.9 refuse to run because they narrow a value passed as ``Any`` to a type that it cannot have.

These releases inline function calls. A parameter declared as ``Any`` then has the type of its argument. If the function narrows the
parameter with ``isinstance``, alias analysis treats it as having both types, and asserts that either both types are mutable (tensors,
lists, dicts, objects) or neither is (numbers, strings, None). Tuples and optional values are exempt, except in 1.6 an optional tensor
that is an argument of the method. The method raises on every call, even if it never reaches the branch.

The types come from the source: of parameters, attributes, literals and results of functions. The result types of PyTorch operators are
unknown here, so nothing is predicted for them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from torch_compat.releases.release import Release
from torch_compat.runtime.language.inference import LITERALS
from torch_compat.runtime.language.types import ANY, TENSOR, Type, read_type
from torch_compat.runtime.tensor import Tensor
from torch_compat.torchscript.parser import dotted, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Narrowing", "present_tensors", "refuses_narrowing"]

SINCE, UNTIL = Release("1.6.0"), Release("1.10.0")
SPECIALIZED: Final = Release("1.7.0")
"""Before this release, an optional tensor argument of a method that is not None has the type Tensor."""
OPTIONAL: Final = Type("Optional", (TENSOR,))
WRITABLE: Final = frozenset({"Tensor", "List", "Dict", "AnyList", "class"})
FIXED: Final = frozenset({"int", "float", "bool", "str", "complex", "None", "number", "Device"})
VALUES: Final = frozenset({"NamedTuple", "Enum", "Interface"})
"""Base classes that are not modeled here."""


def refuses_narrowing(release: Release) -> bool:
    """Whether a release has the assertion."""
    return SINCE <= release < UNTIL


def present_tensors(release: Release, args: Iterable[Any]) -> tuple[bool, ...]:
    """Which arguments a release knows to be tensors, regardless of their declared types."""
    return tuple(arg.__class__ is Tensor for arg in args) if release < SPECIALIZED else ()


class Narrowing:
    """The functions and classes in the source of a program.

    Parameters:
        sources: source text by the qualified name of its contents.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._functions: dict[str, ast.FunctionDef] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._answers: dict[tuple[str, str, tuple[bool, ...]], str | None] = {}
        if not any(b"Any" in source and b"unchecked_cast" in source for source in sources.values()):
            return
        for name, source in sources.items():
            for node in parse(str(source, "latin-1")).body:
                if isinstance(node, ast.FunctionDef):
                    self._functions[f"{name}.{node.name}"] = node
                elif isinstance(node, ast.ClassDef):
                    self._classes[f"{name}.{node.name}"] = node

    def refused(self, class_name: str, method: str, present: tuple[bool, ...] = ()) -> str | None:
        """The two types in the message of the failed assertion when a method is called; None if the assertion holds.

        Parameters:
            present: which arguments the release knows to be tensors although they are declared as optional.
        """
        key = class_name, method, present
        if key not in self._answers:
            node = self._method(class_name, method)
            walk = _Walk(self)
            if node is not None:
                declared = [read_type(arg.annotation) if arg.annotation is not None else TENSOR for arg in node.args.args[1:]]
                known = zip(declared, present, strict=False)
                walk.function(
                    node, class_name, [None, *(TENSOR if there and type_ == OPTIONAL else None for type_, there in known)]
                )
            self._answers[key] = walk.found
        return self._answers[key]

    def _method(self, class_name: str, method: str) -> ast.FunctionDef | None:
        cls = self._classes.get(class_name)
        body = () if cls is None else cls.body
        return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == method), None)

    def callee(self, call: ast.Call, receiver: Type | None) -> tuple[ast.FunctionDef | None, str, bool]:
        """The callee of a call: its source, the class of a method, and whether its first argument is implicit."""
        name = dotted(call.func)
        if name in self._functions:
            return self._functions[name], "", False
        if isinstance(call.func, ast.Attribute) and receiver is not None and receiver.kind == "class":
            return self._method(receiver.name, call.func.attr), receiver.name, True
        return None, "", False

    def attribute(self, owner: Type | None, name: str) -> Type | None:
        """The declared type of an attribute."""
        cls = None if owner is None or owner.kind != "class" else self._classes.get(owner.name)
        for node in () if cls is None else cls.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                return read_type(node.annotation)
        return None

    def known(self, type_: Type) -> Type | None:
        """The type, or None for a class whose values may be mutable or immutable."""
        if type_.kind != "class":
            return type_
        cls = self._classes.get(type_.name)
        bases = () if cls is None else cls.bases
        return None if any(isinstance(base, ast.Name) and base.id in VALUES for base in bases) else type_


class _Walk:
    """Follows the values passed as ``Any`` through the calls that a method may make.

    Attributes:
        found: the types of the first narrowing that fails; None if there is none.
    """

    def __init__(self, program: Narrowing) -> None:
        self.program = program
        self.found: str | None = None
        self._seen: set[tuple[int, str]] = set()

    def function(self, node: ast.FunctionDef, class_name: str, given: list[Type | None]) -> None:
        """Follow the arguments of a function; for the method itself, only its tensor arguments are known."""
        types: dict[str, Type | None] = {}
        for position, arg in enumerate(node.args.args):
            if class_name and not position:
                types[arg.arg] = Type("class", (), class_name)
                continue
            declared = TENSOR if arg.annotation is None else read_type(arg.annotation)
            passed = given[position] if position < len(given) else None
            if declared == OPTIONAL and passed == TENSOR:
                declared = TENSOR
            types[arg.arg] = passed if declared == ANY else self.program.known(declared)
        key = id(node), str([str(type_) for type_ in types.values()])
        if key not in self._seen:
            self._seen.add(key)
            self._block(node.body, types)

    def _block(self, body: Iterable[ast.stmt], types: dict[str, Type | None]) -> None:
        for node in body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = node.targets[0], node.value
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                    pairs = list(zip(target.elts, value.elts, strict=True))
                else:
                    pairs = [(target, value)]
                for place, item in pairs:
                    result = self._type(item, types)
                    for name in ast.walk(place):
                        if isinstance(name, ast.Name):
                            types[name.id] = result if name is place else None
                continue
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._type(child, types)
            for inner in ("body", "orelse"):
                self._block(getattr(node, inner, ()), types)

    def _type(self, node: ast.expr, types: dict[str, Type | None]) -> Type | None:
        """The type of an expression if the source states it; follows the calls in it."""
        if isinstance(node, ast.Call):
            return self._call(node, types)
        if isinstance(node, ast.Name):
            return types.get(node.id)
        if isinstance(node, ast.Constant):
            name = LITERALS.get(type(node.value))
            return None if name is None else Type(name)
        inside = [self._type(child, types) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, ast.Attribute):
            return self.program.attribute(inside[0], node.attr)
        if isinstance(node, ast.Subscript):
            held = inside[0]
            return held.args[0] if held is not None and held.kind == "List" and not isinstance(node.slice, ast.Slice) else None
        if isinstance(node, ast.List):
            return Type("List")
        if isinstance(node, ast.Dict):
            return Type("Dict")
        return Type("Tuple") if isinstance(node, ast.Tuple) else None

    def _call(self, node: ast.Call, types: dict[str, Type | None]) -> Type | None:
        name = dotted(node.func)
        if name in {"annotate", "unchecked_cast"} and len(node.args) == 2:
            passed = self._type(node.args[1], types)
            wanted = read_type(node.args[0])
            if name == "unchecked_cast":
                self._narrow(passed, self.program.known(wanted))
            return passed if wanted == ANY else self.program.known(wanted)
        if name == "uninitialized":
            return None
        receiver = self._type(node.func.value, types) if isinstance(node.func, ast.Attribute) else None
        given = [self._type(arg, types) for arg in node.args]
        callee, class_name, bound = self.program.callee(node, receiver)
        if callee is None:
            return None
        self.function(callee, class_name, [None, *given] if bound else given)
        return None if callee.returns is None else self.program.known(read_type(callee.returns))

    def _narrow(self, passed: Type | None, wanted: Type | None) -> None:
        if passed is None or wanted is None or self.found is not None:
            return
        if {passed.kind in WRITABLE, wanted.kind in WRITABLE} == {True, False} == {passed.kind in FIXED, wanted.kind in FIXED}:
            self.found = f"{wanted}{passed}"
