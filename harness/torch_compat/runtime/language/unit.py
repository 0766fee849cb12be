"""One file of TorchScript source to functions and classes.

Python's parser is used only for parsing. Every node is inspected; nodes that TorchScript lacks are refused; the others are translated to
code that uses only our own names: ``v`` and the name for variables of the function, ``f3``, ``k7`` for functions and constants of a table
that this module fills. Attributes become ``a_`` or ``m_`` and the name. So no name of an archive is ever looked up in Python, and compiled
code can reach only values of programs and operators.

TorchScript source has these forms for concepts that Python lacks:

* ``torch.add(a, b)``                       the operator aten::add; ``ops.prim.dtype(x)`` that of another namespace
* ``int(x)``, ``float(x)``, ``bool(x)``...  operators, too (aten::Int...)
* ``annotate(T, x)``, ``unchecked_cast(T, x)``, ``uninitialized(T)``, ``isinstance(x, T)`` types in place of Python values
* ``CONSTANTS.c0``                          a tensor of the archive
* ``fork(f, x)``                            with ``def f():`` inside a function; it closes over variables
* ``inf``, ``nan``, ``infj``, ``nanj``      numbers without a literal
* ``__torch__.m.C.__new__(__torch__.m.C)`` an object without values; ``__torch__.m.f(x)`` is a function, a NamedTuple, or a class' method
* ``getattr(x, "0")``, ``__annotations__["0"] = T``    attributes whose names are not identifiers
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.doubts import SINCE, UNTIL
from torch_compat.runtime.language.body import BodyCompiler
from torch_compat.runtime.language.names import FILE_PREFIX, ClassInfo, FunctionInfo, Names, SourceError
from torch_compat.runtime.language.resizing import resizes_shared
from torch_compat.runtime.language.texts import DEVICES_UNTIL, read_as_any
from torch_compat.runtime.values import EnumMember, NamedTupleValue, ScriptObject
from torch_compat.torchscript.parser import MOST_PARSED, REQUIRED, dotted, memory_needed, parse

if TYPE_CHECKING:
    from torch_compat.runtime.language.names import Host

__all__ = ["Unit"]

_LINE_END = re.compile(r"\r\n?|\n")
"""Where Python's parser ends a line."""
_USES = {"call": "called", "new": "made", "value": "a value", "alias": "a value"}
_KINDS = {
    "Module": "module",
    "NamedTuple": "namedtuple",
    "Enum": "enum",
    "Interface": "interface",
    "ModuleInterface": "interface",
}


class Unit(Names):
    """A file of source, compiled.

    Attributes:
        name: the qualified name of its contents: ``__torch__.submodules``.
        where: archive and record, for messages.
        version: the ``op_version_set`` (up to 1.4); None if it is absent.
        functions: functions at the top, by name.
        classes: classes, by name.
    """

    def __init__(self, host: Host, name: str, source: bytes | memoryview, where: str) -> None:
        super().__init__(host, name, where)
        self.version: int | None = None
        self.functions: dict[str, FunctionInfo] = {}
        self.classes: dict[str, ClassInfo] = {}
        self._bodies: list[ast.stmt] = []
        self._infos: list[tuple[str, FunctionInfo]] = []
        if any(item in bytes(source) for item in (b"torch.isnan(", b"torch.isinf(")):
            self.tests_floats = host.operator("aten::isnan", self, 0)(0.0).__class__ is int
        try:
            with warnings.catch_warnings():
                # Python's warnings quote lines of the archive's source, which are irrelevant to users and unsafe for a terminal
                warnings.simplefilter("ignore")
                self._compile(self._parse(source))
        except RecursionError as error:
            raise SourceError("is nested too deeply", where=where) from error

    # ------------------------------------------------------------------------------------------------ the file

    def _parse(self, source: bytes | memoryview) -> ast.Module:
        self.host.source += memory_needed(bytes(source))
        if self.host.source > MOST_PARSED:
            raise SourceError("exceeds the source size limit for a program", where=self.where, code="too-large")
        # Each byte one character: texts are bytes to TorchScript (see torch_compat.runtime.values)
        text = str(source, "latin-1")
        self.lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
        try:
            return parse(text, f"{FILE_PREFIX}source>")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            message = f"is not TorchScript: {getattr(error, 'msg', None) or error}"
            raise SourceError(message, where=f"{self.where}, line {line}" if line else self.where) from error

    def _compile(self, tree: ast.Module) -> None:
        for node in tree.body:
            kind = node.__class__
            if kind is ast.FunctionDef:
                if node.name in self.functions:  # type: ignore[attr-defined]
                    raise self.fail(node, "defines a function twice")
                info = self._function(node)  # type: ignore[arg-type]
                self.functions[info.name] = info
            elif kind is ast.ClassDef:
                self._class(node)  # type: ignore[arg-type]
            elif kind is ast.Assign and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "op_version_set":  # type: ignore[attr-defined]
                self.version = self._integer(node.value)  # type: ignore[attr-defined]
            elif kind is not ast.Import and kind is not ast.Pass:
                raise self.fail(node, f"has {kind.__name__} where only classes and functions are allowed")
        module = ast.Module(self._bodies, [])
        try:
            code = compile(module, self.file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
            raise SourceError(f"cannot be compiled: {error}", where=self.where, code="language") from error
        builtins.exec(code, self._table)  # noqa: S102 - our own code; see the module
        for name, info in self._infos:
            info.call = self._table[name]
            if info.read_as_any:
                vars(info.call)["read_as_any"] = info.read_as_any
        for cls in self.classes.values():
            self._make(cls)
        self.lines = []

    def link(self) -> None:
        """Resolve the references of the file, also to other files. Separate from compilation, since files refer to each other."""
        for name, target, use in self._references:
            self._table[name] = self._linked(target, use)
        self._references = []

    def _linked(self, target: str, use: str) -> Any:
        """The target of a qualified name. Functions and classes are not values of a program; it can only call them.

        Raises:
            Refused: it refers to nothing, or to something that cannot be used this way.
        """
        result = self.host.reference(target)
        a_class = isinstance(result, type)
        if use == "call":
            right = isinstance(result, FunctionType) or (a_class and issubclass(result, NamedTupleValue))
        elif use == "new":
            right = a_class and issubclass(result, ScriptObject)
        elif use == "alias" and isinstance(result, FunctionType):
            return None  # calls of the variable were compiled as calls of the function
        else:
            right = result.__class__ is EnumMember
        if not right:
            raise SourceError(f"uses {target}, which cannot be {_USES[use]}", where=self.where)
        return result.mentioned() if result.__class__ is EnumMember else result

    def _integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and node.value.__class__ is int:
            return node.value
        raise self.fail(node, "expected an integer")

    # ------------------------------------------------------------------------------------------------ classes

    def _class(self, node: ast.ClassDef) -> None:
        bases = [dotted(base) for base in node.bases]
        if len(bases) > 1 or node.keywords or node.decorator_list or (bases and bases[0] not in _KINDS):
            raise self.fail(node, f"class {node.name} has base classes that TorchScript does not support")
        if node.name in self.classes:
            return  # 1.2 writes a class once per use
        info = ClassInfo(f"{self.name}.{node.name}", _KINDS[bases[0]] if bases else "class")
        self.classes[node.name] = info
        if info.kind == "interface":
            return
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                method = self._function(statement, info)
                info.methods[method.name] = method
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self._attribute(info, statement.target.id, statement.annotation, statement.value)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._class_assignment(info, statement.targets[0], statement.value)
            elif not isinstance(statement, ast.Pass):
                raise self.fail(statement, f"has {statement.__class__.__name__} in a class")

    def _attribute(self, info: ClassInfo, name: str, annotation: ast.expr, value: ast.expr | None) -> None:
        info.attributes[name] = annotation
        if value is not None:
            info.constants[name] = self.literal(value)

    def _class_assignment(self, info: ClassInfo, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            name = target.id
            if name in {"__parameters__", "__buffers__", "__forward_hooks__", "__forward_pre_hooks__"}:
                names = self.literal(value)
                if names.__class__ is not list or any(item.__class__ is not str for item in names):
                    raise self.fail(value, f"{name} must be a list of names")
                if name == "__parameters__":
                    info.parameters = names
                elif name == "__buffers__":
                    info.buffers, info.says_buffers = names, True
                elif name == "__forward_hooks__":
                    info.hooks = names
                else:
                    info.pre_hooks = names
                return
            if name == "__annotations__":
                return
            if info.kind == "enum":
                info.members[name] = EnumMember(info.qualified_name, name, self.literal(value))
                return
            info.constants[name] = self.literal(value)
            return
        if (
            isinstance(target, ast.Subscript)
            and dotted(target.value) == "__annotations__"
            and isinstance(target.slice, ast.Constant)
        ):
            info.attributes[str(target.slice.value)] = value
            return
        raise self.fail(target, "has an assignment in a class body that TorchScript does not support")

    def _make(self, info: ClassInfo) -> None:
        """The Python class that represents the program's class."""
        space: dict[str, Any] = {"qualified_name": info.qualified_name, "info": info, "__slots__": ()}
        if info.kind == "namedtuple":
            space["fields"] = tuple(info.attributes)
            for index, name in enumerate(info.attributes):
                space[f"a_{name}"] = property(operator.itemgetter(index))
            base: type = NamedTupleValue
        elif info.kind in {"enum", "interface"}:
            return
        else:
            del space["__slots__"]
            for name, value in info.constants.items():
                space[f"a_{name}"] = value
            base = ScriptObject
        for name, method in info.methods.items():
            space[f"m_{name}"] = method.call
        info.python = type(info.qualified_name.rpartition(".")[2], (base,), space)

    # ------------------------------------------------------------------------------------------------ functions

    def _function(self, node: ast.FunctionDef, cls: ClassInfo | None = None) -> FunctionInfo:
        args = node.args
        if args.vararg or args.kwarg or args.posonlyargs or node.decorator_list or args.kwonlyargs:
            raise self.fail(node, f"function {node.name} has kinds of parameters that TorchScript does not support")
        parameters = [(arg.arg, arg.annotation) for arg in args.args]
        required = len(parameters) - len(args.defaults)
        for place, default in enumerate(args.defaults, required):
            if isinstance(default, ast.Name) and default.id == REQUIRED:
                required = place + 1
                args.defaults[place - len(parameters)] = ast.Constant(None, lineno=node.lineno, col_offset=0)
        info = FunctionInfo(node.name, parameters, required, node.returns)
        if self.host.horizon.release < DEVICES_UNTIL:
            info.read_as_any = read_as_any(node)
        if SINCE <= self.host.horizon.release < UNTIL:
            info.resizes_shared = resizes_shared(node)
        name = f"f{len(self._infos)}"
        self._infos.append((name, info))
        self._bodies.append(BodyCompiler(self, None, info, cls).function(node, name))
        return info
