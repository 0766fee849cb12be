"""The names of compiled source: the references of one TorchScript file, and the known facts about its functions and classes.

Compiled code uses only the names of the table that is filled here; see :mod:`torch_compat.runtime.language.unit`.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any, Protocol

from torch_compat.errors import Refused
from torch_compat.runtime.language.called import missing
from torch_compat.runtime.language.inference import LITERALS, NEUTRAL
from torch_compat.runtime.language.types import ANY, Type, checked_key, read_type
from torch_compat.runtime.values import EnumMember
from torch_compat.torchscript.parser import dotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.releases.release import Release
    from torch_compat.runtime.language.unused import Callees
    from torch_compat.runtime.values import Steps

__all__ = [
    "DEPTH",
    "FILE_PREFIX",
    "NUMBERS",
    "REPLACED",
    "ClassInfo",
    "FunctionInfo",
    "Host",
    "Names",
    "SourceError",
    "constant_number",
]

FILE_PREFIX = "<torchscript "
DEPTH = 100  # of expressions within expressions, and of blocks within blocks
NUMBERS: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


class SourceError(Refused):
    """The source is not TorchScript, or not TorchScript that this reader understands."""

    default_code = "source"


class Pretended(Protocol):
    """The release that a reader emulates, as far as the language needs it."""

    @property
    def release(self) -> Release:
        """The release."""


class Host(Protocol):
    """What a unit needs from its program.

    Attributes:
        steps: what loops and calls pay with.
        once: whether equal calls in a tuple are merged, so that their results share memory (1.0).
        neutral: whether arithmetic with a neutral operand returns the tensor itself (1.0 to 1.4).
        listed: whether ``index_put`` writes in place if its indices are a list of tensors (1.6 to 1.12).
        callees: its functions, before they are compiled.
        source: memory for parsing the source compiled so far, as :func:`torch_compat.torchscript.parser.memory_needed` estimates it.
    """

    steps: Steps
    once: bool
    neutral: bool
    listed: bool
    callees: Callees
    source: int

    @property
    def horizon(self) -> Pretended:
        """The release that the reader emulates."""

    @property
    def itself(self) -> frozenset[type]:
        """The kinds of values that equal themselves even if they contain NaN: lists (1.6 and newer), floats (1.10 and newer)."""

    def operator(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """The operator of a qualified name."""

    def quick(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """The replacement of an operator in a loop (:mod:`torch_compat.runtime.language.quick`); None if it has none."""

    def of_itself(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """``eq`` or ``ne`` of a value with itself, if ``itself`` is set."""

    def unchanged(self, name: str, unit: Names, line: int) -> Callable[..., Any]:
        """Arithmetic with a neutral operand, if ``neutral`` is set."""

    def written(self, unit: Names, line: int) -> Callable[..., Any]:
        """``index_put`` with a list of tensors, if ``listed`` is set."""

    def reference(self, name: str) -> Any:
        """The class, function or enum member of a qualified name."""

    def constant(self, index: int) -> Any:
        """A tensor of ``CONSTANTS``."""

    def number(self, index: int, operator: str) -> float | None:
        """The number that replaces such a tensor as the second operand of arithmetic; None if it stays a tensor."""

    def equal_calls(self) -> None:
        """A tuple contains equal calls, which ``once`` merges."""


CANONICAL = frozenset({"torch.add", "torch.div", "torch.mul", "torch.sub"})
"""Arithmetic whose second operand becomes a number if it is a constant zero-dimensional tensor: executors inspect it before they run a graph."""
REPLACED = CANONICAL | frozenset(NEUTRAL) | {"torch.eq", "torch.ne", "torch.index_put"}
"""Operators whose calls a release may replace because of the form of their arguments in the source."""


def constant_number(node: ast.Call, name: str, host: Host) -> None:
    """Replace a constant tensor by the number that executors use for it."""
    if name not in CANONICAL or len(node.args) < 2 or node.args[1].__class__ is not ast.Attribute:
        return
    head, _, index = dotted(node.args[1]).rpartition(".c")
    if head == "CONSTANTS" and index.isdigit():
        number = host.number(int(index), f"aten::{name[6:]}")
        if number is not None:
            node.args[1] = ast.copy_location(ast.Constant(number), node.args[1])


class FunctionInfo:
    """A function or method: its code, and the conversions at its border.

    Attributes:
        name: its name in the source.
        call: the code.
        parameters: ``(name, annotation or None)``, ``self`` included.
        required: how many of them have no default.
        returns: annotation, or None.
        read_as_any: positions of the parameters that are declared as ``Any`` and read; determined up to 1.6.
        resizes_shared: whether it resizes an input, an attribute or an element of its result; determined in 1.6.
    """

    __slots__ = ("_types", "call", "name", "parameters", "read_as_any", "required", "resizes_shared", "returns")

    def __init__(self, name: str, parameters: list[tuple[str, ast.expr | None]], required: int, returns: ast.expr | None) -> None:
        self.name = name
        self.call: Callable[..., Any] = missing
        self.parameters = parameters
        self.required = required
        self.returns = returns
        self.read_as_any: frozenset[int] = frozenset()
        self.resizes_shared = False
        self._types: list[Type] | None = None

    def types(self) -> list[Type]:
        """Types of the parameters; a parameter without annotation is a tensor, except ``self``."""
        if self._types is None:
            self._types = [
                ANY if name == "self" and n == 0 else Type("Tensor") if node is None else read_type(node)
                for n, (name, node) in enumerate(self.parameters)
            ]
        return self._types


class ClassInfo:
    """The declaration of a class in the source.

    Attributes:
        qualified_name: as ``__torch__.submodules.Leaf``.
        kind: ``module``, ``class``, ``namedtuple``, ``enum`` or ``interface``.
        parameters: names of the attributes that are parameters.
        buffers: those that are buffers, as far as the source states it.
        says_buffers: whether the source says which attributes are buffers, as 1.6 and newer write it.
        attributes: annotations by name, in order.
        constants: values of ``Final`` attributes and defaults.
        methods: by name.
        members: of an enumeration.
        hooks: names of forward hooks and forward pre-hooks.
    """

    __slots__ = ("_types", "attributes", "buffers", "constants", "hooks", "kind", "members", "methods", "parameters", "pre_hooks", "python", "qualified_name", "says_buffers")  # fmt: skip

    def __init__(self, qualified_name: str, kind: str) -> None:
        self.qualified_name = qualified_name
        self.kind = kind
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.says_buffers = False
        self.attributes: dict[str, ast.expr] = {}
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, FunctionInfo] = {}
        self.members: dict[str, EnumMember] = {}
        self.hooks: list[str] = []
        self.pre_hooks: list[str] = []
        self.python: Any = None
        self._types: list[Type] | None = None

    def types(self) -> list[Type]:
        """Types of the attributes, in order."""
        if self._types is None:
            self._types = [read_type(node) for node in self.attributes.values()]
        return self._types


class Names:
    """The name table of one source file.

    Attributes:
        host: the program.
        name: the qualified name of what the file holds: ``__torch__.submodules``.
        where: archive and record, for messages.
        lines: of the source, while it is compiled.
        tests_floats: whether it calls ``isnan`` or ``isinf`` of the math module, and these return integers (up to 2.6), which no branch
            accepts.
    """

    def __init__(self, host: Host, name: str, where: str) -> None:
        self.tests_floats = False
        self.host = host
        self.name = name
        self.where = where
        self.lines: list[str] = []
        self._table: dict[str, Any] = {"__builtins__": {}}
        self._names: dict[Any, str] = {}  # what a name of the table stands for -> the name
        self._references: list[tuple[str, str, str]] = []  # name in the table, qualified name, what it is used for

    @property
    def file(self) -> str:
        """The file name in frames of the compiled source."""
        return f"{FILE_PREFIX}{self.where}>"

    def fail(self, node: ast.AST, text: str, code: str = "source") -> SourceError:
        """An error at this place."""
        return SourceError(text, where=f"{self.where}, line {getattr(node, 'lineno', 0)}", code=code)

    def literal(self, node: ast.expr, depth: int = 0) -> Any:
        """A constant: of an enumeration, a ``Final`` attribute, a default."""
        if depth > DEPTH:
            raise self.fail(node, "is nested too deeply")
        if isinstance(node, ast.Constant) and node.value.__class__ in LITERALS:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.literal(node.operand, depth + 1)
            if inner.__class__ in {int, float, complex}:
                return -inner
        if isinstance(node, ast.List):
            return [self.literal(item, depth + 1) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.literal(item, depth + 1) for item in node.elts)
        if isinstance(node, ast.Dict):
            return {
                checked_key(self.literal(k, depth + 1)): self.literal(v, depth + 1)
                for k, v in zip(node.keys, node.values, strict=True)
                if k is not None
            }
        if isinstance(node, ast.Name) and node.id in NUMBERS:
            return NUMBERS[node.id]
        if isinstance(node, ast.Call):
            head = dotted(node.func)
            if head in {"annotate", "unchecked_cast"} and len(node.args) == 2:
                return self.literal(node.args[1], depth + 1)
            if head == "torch.device" and len(node.args) == 1:
                return self.host.operator("aten::device", self, node.lineno)(self.literal(node.args[0], depth + 1))
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if name.startswith("__torch__."):
                result = self.host.reference(name)
                if result.__class__ is EnumMember:
                    return result.mentioned()
            if name.startswith("CONSTANTS.c") and name[11:].isdigit():
                return self.host.constant(int(name[11:]))
        raise self.fail(node, "is not a constant")

    def entry(self, key: tuple[str, Any], value: Any) -> str:
        """The name in the table for an entry; equal entries get the same name."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"k{len(self._names)}"
            self._table[name] = value
        return name

    def fresh(self) -> int:
        """A number that no other entry has."""
        return len(self._names)

    def operator(self, name: str, node: ast.AST) -> str:
        """The name in the table of an operator."""
        known = self._names.get(("operator", name))
        if known is not None:
            return known
        return self.entry(("operator", name), self.host.operator(name, self, getattr(node, "lineno", 0)))

    def reference(self, name: str, use: str) -> str:
        """The name in the table of what another file, or this one, defines.

        Parameters:
            use: ``call``, ``new`` (an object without values), ``value`` or ``alias`` (either of a function or a value).
        """
        known = self._names.get((use, name))
        if known is not None and use not in {
            "value",
            "alias",
        }:  # each mention of an enum member is a separate object
            return known
        result = self.entry((use, name) if known is None else (use, (name, self.fresh())), None)
        self._references.append((result, name, use))
        return result
