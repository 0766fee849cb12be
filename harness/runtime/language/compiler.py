"""One file of TorchScript source to functions and classes.

Python's parser is only a parser here. Every node that it gives is looked at; those that TorchScript does not have are refused;
what is left is written anew into code whose only names are our own: ``v`` and the name for variables of the function, ``f3``,
``k7`` for functions and constants of a table that this module fills. Attributes become ``a_`` or ``m_`` and the name. So no
name of an archive is ever looked up in Python, and what is compiled can reach nothing but values of programs and operators.

TorchScript's source differs from Python where it prints what Python lacks:

* ``torch.add(a, b)``                       the operator aten::add; ``ops.prim.dtype(x)`` that of another namespace
* ``int(x)``, ``float(x)``, ``bool(x)``...  operators, too (aten::Int...)
* ``annotate(T, x)``, ``unchecked_cast(T, x)``, ``uninitialized(T)``, ``isinstance(x, T)``      types stand where Python has values
* ``CONSTANTS.c0``                          a tensor of the archive
* ``fork(f, x)``                            with ``def f():`` inside a function; it closes over variables
* ``inf``, ``nan``, ``infj``, ``nanj``      numbers that have no literal
* ``__torch__.m.C.__new__(__torch__.m.C)``  an object without values; ``__torch__.m.f(x)`` a function, a NamedTuple, or a class' method
* ``getattr(x, "0")``, ``__annotations__["0"] = T``    attributes whose names are no identifiers
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import re
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import Raised, Refused
from harness.runtime.language.inference import ARITHMETIC, COMPARISONS, Inference, has_loop
from harness.runtime.language.types import ANY, Type, checked_key, dotted, instance_of, read_type
from harness.runtime.tensor import Tensor
from harness.runtime.values import EnumMember, Future, NamedTupleValue, ScriptObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.runtime.values import Steps

__all__ = ["FILE_PREFIX", "ClassInfo", "FunctionInfo", "Host", "SourceError", "Unit"]

FILE_PREFIX = "<torchscript "
DEPTH = 100  # of expressions within expressions, and of blocks within blocks
LONGEST = 1 << 26
INT64 = 1 << 63
CALLS = {
    "int": "aten::Int", "float": "aten::Float", "bool": "aten::Bool", "complex": "aten::Complex", "str": "aten::str", "ord": "aten::ord",
    "print": "prim::Print", "len": "aten::len", "abs": "prim::abs", "min": "prim::min", "max": "prim::max", "round": "aten::round",
    "chr": "aten::chr", "hex": "aten::hex", "oct": "aten::oct", "bin": "aten::bin", "divmod": "aten::divmod", "pow": "aten::pow",
    "list": "aten::list", "dict": "aten::dict", "sorted": "aten::sorted", "hash": "aten::hash", "all": "aten::all", "any": "aten::any",
}  # fmt: skip
IMPLICIT = {
    "number": "aten::ScalarImplicit", "int": "aten::IntImplicit", "float": "aten::FloatImplicit", "complex": "aten::ComplexImplicit",
}  # fmt: skip
NUMBERS: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}
BINARY: dict[type, str] = {
    ast.Add: "aten::add", ast.Sub: "aten::sub", ast.Mult: "aten::mul", ast.Div: "aten::div", ast.FloorDiv: "aten::floordiv",
    ast.Mod: "aten::remainder", ast.Pow: "aten::pow", ast.MatMult: "aten::matmul", ast.BitAnd: "aten::__and__",
    ast.BitOr: "aten::__or__", ast.BitXor: "aten::__xor__", ast.LShift: "aten::__lshift__", ast.RShift: "aten::__rshift__",
}  # fmt: skip
COMPARE: dict[type, str] = {
    ast.Eq: "aten::eq", ast.NotEq: "aten::ne", ast.Lt: "aten::lt", ast.LtE: "aten::le", ast.Gt: "aten::gt", ast.GtE: "aten::ge",
}  # fmt: skip
REQUIRED = "__required__"
_PARAMETER = re.compile(r"^(    +[A-Za-z_]\w*: [^=\n]+?)(,|\) ->.*:)$", re.MULTILINE)
NATIVE = frozenset(ARITHMETIC) | frozenset(COMPARISONS) | {"torch.remainder", "torch.floordiv", "torch.len"}
LITERALS = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "None"}


class SourceError(Refused):
    """The source is not TorchScript, or not such as this reader understands."""

    default_code = "source"


class Host(Protocol):
    """What a unit needs of the program that it belongs to.

    Attributes:
        steps: what loops and calls pay with.
        once: whether equal calls in a tuple are one, so that their results share memory (1.0).
    """

    steps: Steps
    once: bool

    def operator(self, name: str, unit: Unit, line: int) -> Callable[..., Any]:
        """The operator of a qualified name."""

    def reference(self, name: str) -> Any:
        """The class, function or enum member of a qualified name."""

    def constant(self, index: int) -> Any:
        """A tensor of ``CONSTANTS``."""


class FunctionInfo:
    """A function or method: its code, and how its border converts.

    Attributes:
        name: its name in the source.
        call: the code.
        parameters: ``(name, annotation or None)``, ``self`` included.
        required: how many of them have no default.
        returns: annotation, or None.
    """

    __slots__ = ("_types", "call", "name", "parameters", "required", "returns")

    def __init__(self, name: str, parameters: list[tuple[str, ast.expr | None]], required: int, returns: ast.expr | None) -> None:
        self.name = name
        self.call: Callable[..., Any] = _missing
        self.parameters = parameters
        self.required = required
        self.returns = returns
        self._types: list[Type] | None = None

    def types(self) -> list[Type]:
        """Types of the parameters; what has no annotation is a tensor, but for ``self``."""
        if self._types is None:
            self._types = [
                ANY if name == "self" and n == 0 else Type("Tensor") if node is None else read_type(node)
                for n, (name, node) in enumerate(self.parameters)
            ]
        return self._types


class ClassInfo:
    """What the source says of a class.

    Attributes:
        qualified_name: as ``__torch__.submodules.Leaf``.
        kind: ``module``, ``class``, ``namedtuple``, ``enum`` or ``interface``.
        parameters: names of the attributes that are parameters.
        buffers: those that are buffers, as far as the source says so.
        said_buffers: whether it says so (1.6 and newer).
        attributes: annotations by name, in order.
        constants: values of ``Final`` attributes and defaults.
        methods: by name.
        members: of an enumeration.
        hooks: names of forward hooks and forward pre-hooks.
    """

    __slots__ = ("_types", "attributes", "buffers", "constants", "hooks", "kind", "members", "methods", "parameters", "pre_hooks", "python", "qualified_name", "said_buffers")  # fmt: skip

    def __init__(self, qualified_name: str, kind: str) -> None:
        self.qualified_name = qualified_name
        self.kind = kind
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.said_buffers = False
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


def _missing(*_: Any) -> Any:
    raise Raised("has no code", code="RuntimeError")


def _wrapped(value: int) -> int:
    """An integer as 64 bits hold it."""
    return ((value + INT64) & ((1 << 64) - 1)) - INT64


def _checked_int(value: Any) -> int:
    if value.__class__ is bool or value.__class__ is int:
        return int(value)
    raise Raised(f"expected an int, found a {type(value).__name__}", code="RuntimeError")


def _checked_float(value: Any) -> float:
    if value.__class__ in {bool, int, float}:
        return float(value)
    raise Raised(f"expected a float, found a {type(value).__name__}", code="RuntimeError")


CHECKS = {"int": _checked_int, "float": _checked_float}


def _is_instance(value: Any, types: tuple[Type, ...]) -> bool:
    return any(instance_of(value, one) for one in types)


def _fork(call: Callable[..., Any], *args: Any) -> Future:
    return Future(call, args)


def _raise(message: Any = "", *_: Any) -> None:
    raise Raised(message if message.__class__ is str else repr(message), code="torch.jit.Error")


def _to_list(value: Any, type_: Type) -> Any:
    if value.__class__ is not Tensor:
        raise Raised("tolist() is of tensors", code="RuntimeError")
    dims, inner = 0, type_
    while inner.kind == "List":
        dims, inner = dims + 1, inner.args[0]
    if value.array.ndim != dims:
        raise Raised(f"Output annotation list dimension and runtime tensor dimension must match for tolist(), expected {dims}, got {value.array.ndim}", code="RuntimeError")  # fmt: skip
    said = {0: "bool", 1: "int", 2: "float", 3: "complex"}[value.dtype.category]
    if inner.kind != said:
        raise Raised(
            "Output annotation element type and runtime tensor element type must match for tolist()", code="RuntimeError"
        )
    return value.array.tolist()


class Unit:
    """A file of source, compiled.

    Attributes:
        name: the qualified name of what it holds: ``__torch__.submodules``.
        where: archive and record, for messages.
        version: what ``op_version_set`` says (up to 1.4); None where it says nothing.
        functions: functions at the top, by name.
        classes: classes, by name.
    """

    def __init__(self, host: Host, name: str, source: bytes | memoryview, where: str) -> None:
        self.host = host
        self.name = name
        self.where = where
        self.version: int | None = None
        self.functions: dict[str, FunctionInfo] = {}
        self.classes: dict[str, ClassInfo] = {}
        self._table: dict[str, Any] = {"__builtins__": {}}
        self._names: dict[Any, str] = {}  # what a name of the table stands for -> the name
        self._references: list[tuple[str, str]] = []
        self._bodies: list[ast.stmt] = []
        self._infos: list[tuple[str, FunctionInfo]] = []
        try:
            self._compile(self._parse(source))
        except RecursionError as error:
            raise SourceError("is nested too deep", where=where) from error

    # ------------------------------------------------------------------------------------------------ the file

    def fail(self, node: ast.AST, said: str, code: str = "source") -> SourceError:
        """An error of this place."""
        return SourceError(said, where=f"{self.where}, line {getattr(node, 'lineno', 0)}", code=code)

    def _parse(self, source: bytes | memoryview) -> ast.Module:
        if len(source) > LONGEST:
            raise SourceError(f"holds {len(source)} bytes of source, more than {LONGEST}", where=self.where)
        # Each byte one character: texts are bytes to TorchScript (see harness.runtime.values)
        text = str(source, "latin-1")
        try:
            try:
                return ast.parse(text)
            except SyntaxError as error:
                if "default argument" not in str(error.msg):
                    raise
                # 1.4 writes defaults in front of parameters without one; each parameter stands on a line of its own
                return ast.parse(_PARAMETER.sub(rf"\1={REQUIRED}\2", text))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            said = f"is no TorchScript: {getattr(error, 'msg', None) or error}"
            raise SourceError(said, where=f"{self.where}, line {line}" if line else self.where) from error

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
                raise self.fail(node, f"has {kind.__name__} where only classes and functions may stand")
        module = ast.Module(self._bodies, [])
        try:
            code = compile(module, f"{FILE_PREFIX}{self.where}>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
            raise SourceError(f"cannot be compiled: {error}", where=self.where, code="language") from error
        builtins.exec(code, self._table)  # noqa: S102 - our own code; see the module
        for name, info in self._infos:
            info.call = self._table[name]
        for cls in self.classes.values():
            self._make(cls)

    def link(self) -> None:
        """Look up what the file refers to, in other files, too. Apart from compiling, since files refer to each other."""
        for name, target in self._references:
            self._table[name] = self.host.reference(target)
        self._references = []

    def _integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and node.value.__class__ is int:
            return node.value
        raise self.fail(node, "expected an integer")

    # ------------------------------------------------------------------------------------------------ classes

    def _class(self, node: ast.ClassDef) -> None:
        bases = [dotted(base) for base in node.bases]
        if len(bases) > 1 or node.keywords or node.decorator_list or (bases and bases[0] not in _KINDS):
            raise self.fail(node, f"class {node.name} has bases that TorchScript does not have")
        if node.name in self.classes:
            return  # 1.2 writes a class once for each use of it
        info = ClassInfo(f"{self.name}.{node.name}", _KINDS[bases[0]] if bases else "class")
        self.classes[node.name] = info
        if info.kind == "interface":
            return
        for one in node.body:
            if isinstance(one, ast.FunctionDef):
                method = self._function(one, info)
                info.methods[method.name] = method
            elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                self._attribute(info, one.target.id, one.annotation, one.value)
            elif isinstance(one, ast.Assign) and len(one.targets) == 1:
                self._class_assignment(info, one.targets[0], one.value)
            elif not isinstance(one, ast.Pass):
                raise self.fail(one, f"has {one.__class__.__name__} in a class")

    def _attribute(self, info: ClassInfo, name: str, annotation: ast.expr, value: ast.expr | None) -> None:
        info.attributes[name] = annotation
        if value is not None:
            info.constants[name] = self._literal(value)

    def _class_assignment(self, info: ClassInfo, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            name = target.id
            if name in {"__parameters__", "__buffers__", "__forward_hooks__", "__forward_pre_hooks__"}:
                names = self._literal(value)
                if names.__class__ is not list or any(one.__class__ is not str for one in names):
                    raise self.fail(value, f"{name} must be a list of names")
                if name == "__parameters__":
                    info.parameters = names
                elif name == "__buffers__":
                    info.buffers = names
                    info.said_buffers = True
                elif name == "__forward_hooks__":
                    info.hooks = names
                else:
                    info.pre_hooks = names
                return
            if name == "__annotations__":
                return
            if info.kind == "enum":
                info.members[name] = EnumMember(info.qualified_name, name, self._literal(value))
                return
            info.constants[name] = self._literal(value)
            return
        if (
            isinstance(target, ast.Subscript)
            and dotted(target.value) == "__annotations__"
            and isinstance(target.slice, ast.Constant)
        ):
            info.attributes[str(target.slice.value)] = value
            return
        raise self.fail(target, "sets something in a class that TorchScript cannot")

    def _literal(self, node: ast.expr, depth: int = 0) -> Any:
        """A constant: of an enumeration, a ``Final`` attribute, a default."""
        if depth > DEPTH:
            raise self.fail(node, "is nested too deep")
        if isinstance(node, ast.Constant) and node.value.__class__ in LITERALS:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._literal(node.operand, depth + 1)
            if inner.__class__ in {int, float, complex}:
                return -inner
        if isinstance(node, ast.List):
            return [self._literal(item, depth + 1) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self._literal(item, depth + 1) for item in node.elts)
        if isinstance(node, ast.Dict):
            return {
                checked_key(self._literal(k, depth + 1)): self._literal(v, depth + 1)
                for k, v in zip(node.keys, node.values, strict=True)
                if k is not None
            }
        if isinstance(node, ast.Name) and node.id in NUMBERS:
            return NUMBERS[node.id]
        if isinstance(node, ast.Call):
            head = dotted(node.func)
            if head in {"annotate", "unchecked_cast"} and len(node.args) == 2:
                return self._literal(node.args[1], depth + 1)
            if head == "torch.device" and len(node.args) == 1:
                return self.host.operator("aten::device", self, node.lineno)(self._literal(node.args[0], depth + 1))
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if name.startswith("__torch__."):
                return self.host.reference(name)
            if name.startswith("CONSTANTS.c") and name[11:].isdigit():
                return self.host.constant(int(name[11:]))
        raise self.fail(node, "is no constant")

    def _make(self, info: ClassInfo) -> None:
        """The class of Python whose objects are those of the program's class."""
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
            raise self.fail(node, f"function {node.name} has parameters that TorchScript does not have")
        parameters = [(arg.arg, arg.annotation) for arg in args.args]
        required = len(parameters) - len(args.defaults)
        for place, default in enumerate(args.defaults, required):
            if isinstance(default, ast.Name) and default.id == REQUIRED:
                required = place + 1
                args.defaults[place - len(parameters)] = ast.Constant(None, lineno=node.lineno, col_offset=0)
        info = FunctionInfo(node.name, parameters, required, node.returns)
        name = f"f{len(self._infos)}"
        self._infos.append((name, info))
        self._bodies.append(_Body(self, None, info, cls).function(node, name))
        return info

    # ------------------------------------------------------------------------------------------------ the table

    def entry(self, key: tuple[str, Any], value: Any) -> str:
        """The name in the table for something; the same for the same."""
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

    def reference(self, name: str) -> str:
        """The name in the table of what another file, or this one, defines."""
        known = self._names.get(("reference", name))
        if known is not None:
            return known
        found = self.entry(("reference", name), None)
        self._references.append((found, name))
        return found


_KINDS = {
    "Module": "module",
    "NamedTuple": "namedtuple",
    "Enum": "enum",
    "Interface": "interface",
    "ModuleInterface": "interface",
}


class _Body:
    """Writes the body of one function."""

    def __init__(self, unit: Unit, outer: _Body | None, info: FunctionInfo | None, cls: ClassInfo | None = None) -> None:
        self.unit = unit
        self.outer = outer
        self.info = info
        self.cls = cls
        self.types: Inference | None = None  # only where there is a loop
        self.temporaries = 0
        self.literals: dict[str, Type | None] = {}  # of variables that are set once
        self.locals: set[str] = set()
        self.depth = 0

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        args = node.args
        if self.outer is None and has_loop(node.body):
            self.types = Inference(node, self.cls.attributes if self.cls is not None else {})
        for arg in args.args:
            if arg.arg in self.locals:
                raise self.unit.fail(node, "has a parameter twice")
            self.locals.add(arg.arg)
            arg.arg = "v" + arg.arg
            arg.annotation = None
            arg.type_comment = None
        if args.defaults:
            args.defaults = [self._default(one) for one in args.defaults]
        _collect(node.body, self.locals)
        node.name = name
        node.returns = None
        node.type_comment = None
        tick = self._table_name("tick", self.unit.host.steps.tick, node)
        first = ast.Expr(ast.Call(tick, [], [], lineno=node.lineno, col_offset=0), lineno=node.lineno, col_offset=0)
        checks = [self._check(name, type_, node) for name, type_ in self.types.checked.items()] if self.types is not None else []
        node.body = [first, *checks, *self.block(node.body)]
        return node

    def _check(self, name: str, type_: str, node: ast.AST) -> ast.stmt:
        """A parameter is what it is declared to be from here on."""
        value = ast.Name("v" + name, ast.Load(), lineno=node.lineno, col_offset=0)  # type: ignore[attr-defined]
        return ast.Assign(
            [ast.Name("v" + name, ast.Store(), lineno=node.lineno, col_offset=0)],  # type: ignore[attr-defined]
            self._guarded(value, type_, node),
            lineno=node.lineno,  # type: ignore[attr-defined]
            col_offset=0,
        )

    def _temporary(self, node: ast.AST) -> tuple[ast.Name, ast.Name]:
        self.temporaries += 1
        name, at = f"t{self.temporaries}", {"lineno": node.lineno, "col_offset": 0}  # type: ignore[attr-defined]
        return ast.Name(name, ast.Store(), **at), ast.Name(name, ast.Load(), **at)

    def _guarded(self, value: ast.expr, type_: str, node: ast.AST) -> ast.expr:
        """``t if (t := value).__class__ is int else checked(t)``; the class is asked for by our own code, of any value."""
        at = {"lineno": node.lineno, "col_offset": 0}  # type: ignore[attr-defined]
        store, load = self._temporary(node)
        found = ast.Attribute(ast.NamedExpr(store, value, **at), "__class__", ast.Load(), **at)
        kind = self._table_name(type_, int if type_ == "int" else float, node)
        checked = ast.Call(self._table_name(f"checked {type_}", CHECKS[type_], node), [load], [], **at)
        return ast.IfExp(ast.Compare(found, [ast.Is()], [kind], **at), load, checked, **at)

    def _native(self, node: ast.Call) -> ast.expr | None:
        """Arithmetic and comparisons of what are certainly numbers, without operators; integers wrap at the end of the expression."""
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
        found = types.type_of(node)
        if name in ARITHMETIC and found == "float":
            return self._arithmetic(node, 0)
        if found != "int":
            return None
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        if name in ARITHMETIC:
            store, load = self._temporary(node)
            low, high = ast.Constant(-INT64, **at), ast.Constant(INT64 - 1, **at)
            inside = ast.Compare(low, [ast.LtE(), ast.LtE()], [ast.NamedExpr(store, self._arithmetic(node, 0), **at), high], **at)
            wrapped = ast.Call(self._table_name("wrapped", _wrapped, node), [load], [], **at)
            return ast.IfExp(inside, load, wrapped, **at)
        divisor = node.args[1]
        if isinstance(divisor, ast.Constant) and divisor.value.__class__ is int and divisor.value > 0:
            operation = ast.Mod() if name == "torch.remainder" else ast.FloorDiv()
            return ast.BinOp(self.expr(node.args[0]), operation, divisor, **at)
        return None

    def _length(self, node: ast.Call) -> ast.expr:
        """Of what is said to be a list; anything else in its place has a length that is an integer, or none."""
        node.func = self._table_name("len", len, node)
        return self._arguments(node)

    def _arithmetic(self, node: ast.expr, depth: int) -> ast.expr:
        if depth < DEPTH and isinstance(node, ast.Call) and self.types is not None and not node.keywords and len(node.args) == 2:
            operation = ARITHMETIC.get(dotted(node.func))
            if operation is not None and self.types.type_of(node) in {"int", "float"}:
                integers = self.types.type_of(node) == "int"
                parts = []
                for arg in node.args:
                    # what is an integer within floats wraps by itself
                    native = integers or self.types.type_of(arg) == "float"
                    parts.append(self._arithmetic(arg, depth + 1) if native else self.expr(arg))
                return ast.BinOp(parts[0], operation(), parts[1], lineno=node.lineno, col_offset=0)
        return self.expr(node)

    def _default(self, node: ast.expr) -> ast.expr:
        value = self.unit._literal(node)  # noqa: SLF001 - the two halves of one compiler
        return self._name(self.unit.entry(("default", self.unit.fresh()), value), node)

    # ------------------------------------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.unit.fail(body[0], f"is nested deeper than {DEPTH}")
        made: list[ast.stmt] = []
        for node in body:
            handler = _STATEMENTS.get(node.__class__)
            if handler is None:
                raise self.unit.fail(node, f"has {node.__class__.__name__}, which TorchScript does not have")
            found = handler(self, node)
            if found is not None:
                made.append(found)
        self.depth -= 1
        return made or [ast.Pass(lineno=body[0].lineno, col_offset=0)]

    def assign(self, node: ast.Assign) -> ast.stmt:
        if len(node.targets) != 1:
            raise self.unit.fail(node, "assigns to several targets")
        target = node.targets[0]
        if isinstance(target, ast.Name):
            self.literals[target.id] = None if target.id in self.literals else _literal_type(node.value)
        node.value = self.expr(node.value)
        node.targets = [self.target(target)]
        node.type_comment = None
        return node

    def annotated(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            return None
        value = self.expr(node.value)
        return ast.Assign([self.target(node.target)], value, lineno=node.lineno, col_offset=node.col_offset)

    def target(self, node: ast.expr) -> ast.expr:
        kind = node.__class__
        if kind is ast.Name:
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
        node.value = self.expr(node.value)
        return node

    def if_(self, node: ast.If) -> ast.stmt:
        node.test = self.expr(node.test)
        node.body = self.block(node.body)
        if node.orelse:
            node.orelse = self.block(node.orelse)
        return node

    def while_(self, node: ast.While) -> ast.stmt:
        if node.orelse:
            raise self.unit.fail(node, "has a loop with else")
        node.test = self.expr(node.test)
        tick = self._table_name("tick", self.unit.host.steps.tick, node)
        first = ast.Expr(ast.Call(tick, [], [], lineno=node.lineno, col_offset=0), lineno=node.lineno, col_offset=0)
        node.body = [first, *self.block(node.body)]
        return node

    def for_(self, node: ast.For) -> ast.stmt:
        if node.orelse:
            raise self.unit.fail(node, "has a loop with else")
        loop = node.iter
        if not (isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "range" and not loop.keywords and 0 < len(loop.args) < 4):  # fmt: skip
            raise self.unit.fail(node, "loops over what is no range")
        loop.args = [self.expr(arg) for arg in loop.args]
        loop.func = self._table_name("range", self.unit.host.steps.range, node)
        node.target = self.target(node.target)
        node.body = self.block(node.body)
        node.type_comment = None
        return node

    def return_(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            self._check_return(node.value)
            node.value = self.expr(node.value)
        return node

    def _once(self, items: list[ast.expr]) -> list[ast.expr]:
        """1.0 eliminates common subexpressions, also where that makes two results one tensor."""
        made: list[ast.expr] = []
        seen: dict[str, ast.Name] = {}
        for item in items:
            pure = isinstance(item, ast.Call) and dotted(item.func).startswith("torch.") and not dotted(item.func).endswith("_")
            key = ast.dump(item) if pure else ""
            if key in seen:
                made.append(seen[key])
            elif pure:
                store, seen[key] = self._temporary(item)
                made.append(ast.NamedExpr(store, self.expr(item), lineno=item.lineno, col_offset=0))
            else:
                made.append(self.expr(item))
        return made

    def _check_return(self, value: ast.expr) -> None:
        """Refuse what is wrong on its face: a literal of another type than the function says it returns."""
        returns = self.info.returns if self.info is not None else None
        if returns is None:
            return
        found = self.literals.get(value.id) if isinstance(value, ast.Name) else _literal_type(value)
        if found is not None and not _may_be(found, read_type(returns)):
            said = f"Return value was annotated as having type {read_type(returns)} but is actually of type {found}"
            raise self.unit.fail(value, said, "types")

    def assert_(self, node: ast.Assert) -> ast.stmt:
        message = self.expr(node.msg) if node.msg is not None else ast.Constant("", lineno=node.lineno, col_offset=0)
        call = ast.Call(self._table_name("raise", _raise, node), [message], [], lineno=node.lineno, col_offset=0)
        test = ast.UnaryOp(ast.Not(), self.expr(node.test), lineno=node.lineno, col_offset=0)
        return ast.If(test, [ast.Expr(call, lineno=node.lineno, col_offset=0)], [], lineno=node.lineno, col_offset=0)

    def raise_(self, node: ast.Raise) -> ast.stmt:
        args: list[ast.expr] = []
        if isinstance(node.exc, ast.Call):
            args = [self.expr(arg) for arg in node.exc.args]
        call = ast.Call(self._table_name("raise", _raise, node), args, [], lineno=node.lineno, col_offset=0)
        return ast.Expr(call, lineno=node.lineno, col_offset=0)

    def plain(self, node: ast.stmt) -> ast.stmt:
        return node

    def with_(self, node: ast.With) -> ast.stmt:
        """``with x as y:`` calls the object's own ``__enter__`` and ``__exit__``, also when the body raises."""
        if len(node.items) != 1:
            raise self.unit.fail(node, "has several contexts in one with")
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
            raise self.unit.fail(node, "has a function in a function that is no body of a fork")
        return _Body(self.unit, self, None).function(node, "v" + node.name)

    # ------------------------------------------------------------------------------------------------ expressions

    def known(self, name: str) -> bool:
        return name in self.locals or (self.outer is not None and self.outer.known(name))

    def _name(self, name: str, node: ast.AST) -> ast.Name:
        return ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)  # type: ignore[attr-defined]

    def _table_name(self, key: str, value: Any, node: ast.AST) -> ast.Name:
        return self._name(self.unit.entry(("own", key), value), node)

    def expr(self, node: ast.expr) -> ast.expr:
        handler = _EXPRESSIONS.get(node.__class__)
        if handler is None:
            raise self.unit.fail(node, f"has {node.__class__.__name__}, which TorchScript does not have")
        self.depth += 1
        if self.depth > DEPTH:
            raise self.unit.fail(node, f"is nested deeper than {DEPTH}")
        found: ast.expr = handler(self, node)
        self.depth -= 1
        return found

    def constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        kind = value.__class__
        if kind not in LITERALS:
            raise self.unit.fail(node, f"has a constant of {kind.__name__}")
        if kind is int and not -INT64 <= value < INT64:  # type: ignore[operator]
            raise self.unit.fail(node, "has an integer of more than 64 bits")
        node.kind = None
        return node

    def name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if self.known(name):
            node.id = "v" + name
            return node
        if name in NUMBERS:
            return self._name(self.unit.entry(("number", name), NUMBERS[name]), node)
        raise self.unit.fail(node, f"undefined value {name}")

    def attribute(self, node: ast.Attribute) -> ast.expr:
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
            return self._name(self.unit.reference(name), node)
        raise self.unit.fail(node, f"undefined value {name}")

    def call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Name):
            if self.known(func.id):
                func.id = "v" + func.id
                return self._arguments(node, prefixed=True)
            special = _SPECIAL.get(func.id)
            if special is not None:
                return special(self, node)
            operator = CALLS.get(func.id)
            if operator is None:
                raise self.unit.fail(node, f"calls {func.id}, which is not defined")
            if func.id == "float" and self.types is not None and self.types.type_of(node) == "float":
                node.func = self._table_name("float", float, node)  # of what is certainly a number
                return self._arguments(node)
            node.func = self._name(self.unit.operator(operator, node), node)
            return self._arguments(node)
        if isinstance(func, ast.Attribute):
            name = dotted(func)
            root = name.partition(".")[0]
            if name and not self.known(root):
                return self._call_global(node, name)
            func.value = self.expr(func.value)
            func.attr = "m_" + func.attr
            return self._arguments(node, prefixed=True)
        raise self.unit.fail(node, "calls what is no name")

    def _call_global(self, node: ast.Call, name: str) -> ast.expr:
        if name.startswith("torch."):
            if self.types is not None and name in NATIVE:
                native = self._native(node)
                if native is not None:
                    return native
            plain = _PLAIN_CALLS.get(name)
            if plain is not None and len(node.args) == plain[0] and not node.keywords:
                return plain[1](self, node)
            node.func = self._name(self.unit.operator("aten::" + name[6:].rpartition(".")[2], node), node)
            return self._arguments(node)
        if name.startswith("ops."):
            space, _, rest = name[4:].partition(".")
            if space == "prim" and len(node.args) == 1 and rest in {"unchecked_unwrap_optional", "unchecked_cast"}:
                return self.expr(node.args[0])
            if space == "prim" and rest == "RaiseException":
                node.func = self._table_name("raise", _raise, node)
                return self._arguments(node)
            node.func = self._name(self.unit.operator(f"{space}::{rest}", node), node)
            return self._arguments(node)
        if name.startswith("__torch__."):
            if name.endswith(".__new__"):
                made = self._name(self.unit.reference(name[: -len(".__new__")]), node)
                return ast.Call(made, [], [], lineno=node.lineno, col_offset=0)
            node.func = self._name(self.unit.reference(name), node)
            return self._arguments(node, prefixed=True)
        raise self.unit.fail(node, f"calls {name}, which is not defined")

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
        types = [read_type(one) for one in (node.elts if isinstance(node, ast.Tuple | ast.List) else [node])]
        return self._name(self.unit.entry(("types", tuple(map(str, types))), tuple(types)), node)

    def _two(self, node: ast.Call) -> None:
        if len(node.args) != 2 or node.keywords:
            raise self.unit.fail(node, f"expected two arguments of {dotted(node.func)}")

    def annotate(self, node: ast.Call) -> ast.expr:
        self._two(node)
        value = node.args[1]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "tolist":
            type_ = read_type(node.args[0])
            kept = self._name(self.unit.entry(("type", str(type_)), type_), node)
            args = [self.expr(value.func.value), kept]
            return ast.Call(self._table_name("tolist", _to_list, node), args, [], lineno=node.lineno, col_offset=0)
        implicit = IMPLICIT.get(dotted(node.args[0]))
        certain = _literal_type(value) is not None or (self.types is not None and self.types.type_of(value) in {"int", "float"})
        if implicit is None or certain:
            return self.expr(value)
        func = self._name(self.unit.operator(implicit, node), node)  # a tensor where a number is asked for
        return ast.Call(func, [self.expr(value)], [], lineno=node.lineno, col_offset=0)

    def unchecked(self, node: ast.Call) -> ast.expr:
        self._two(node)
        return self.expr(node.args[1])

    def uninitialized(self, node: ast.Call) -> ast.expr:
        return ast.Constant(None, lineno=node.lineno, col_offset=0)

    def isinstance_(self, node: ast.Call) -> ast.expr:
        self._two(node)
        node.args = [self.expr(node.args[0]), self._type(node.args[1])]
        node.func = self._table_name("isinstance", _is_instance, node)
        return node

    def getattr_(self, node: ast.Call) -> ast.expr:
        self._two(node)
        name = node.args[1]
        if not (isinstance(name, ast.Constant) and name.value.__class__ is str):
            raise self.unit.fail(node, "getattr() expects a text")
        return ast.Attribute(self.expr(node.args[0]), "a_" + name.value, ast.Load(), lineno=node.lineno, col_offset=0)

    def fork_(self, node: ast.Call) -> ast.expr:
        node.func = self._table_name("fork", _fork, node)
        return self._arguments(node)

    def is_(self, node: ast.Call) -> ast.expr:
        left, right = (self.expr(arg) for arg in node.args)
        return ast.Compare(left, [ast.Is()], [right], lineno=node.lineno, col_offset=0)

    def is_not(self, node: ast.Call) -> ast.expr:
        left, right = (self.expr(arg) for arg in node.args)
        return ast.Compare(left, [ast.IsNot()], [right], lineno=node.lineno, col_offset=0)

    def subscript(self, node: ast.Subscript) -> ast.expr:
        type_ = self.types.type_of(node) if self.types is not None else None
        node.value = self.expr(node.value)
        where = node.slice
        if isinstance(where, ast.Slice):
            where.lower = self.expr(where.lower) if where.lower is not None else None
            where.upper = self.expr(where.upper) if where.upper is not None else None
            where.step = self.expr(where.step) if where.step is not None else None
        else:
            node.slice = self._keyed(where)
        return node if type_ is None else self._guarded(node, type_, node)

    def _keyed(self, node: ast.expr) -> ast.expr:
        """``t if (t := key).__class__ is int else checked_key(t)``, of what is not a constant, nor certainly a number."""
        if _literal_type(node) is not None and not isinstance(node, ast.Tuple):
            return self.expr(node)
        certain = self.types is not None and self.types.type_of(node) in {"int", "float", "bool"}
        found = self.expr(node)
        if certain:
            return found
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        store, load = self._temporary(node)
        kind = ast.Attribute(ast.NamedExpr(store, found, **at), "__class__", ast.Load(), **at)
        test = ast.Compare(kind, [ast.Is()], [self._table_name("int", int, node)], **at)
        return ast.IfExp(test, load, ast.Call(self._table_name("key", checked_key, node), [load], [], **at), **at)

    def items(self, node: ast.Tuple | ast.List) -> ast.expr:
        if self.unit.host.once and isinstance(node, ast.Tuple):
            node.elts = self._once(node.elts)
        else:
            node.elts = [self.expr(item) for item in node.elts]
        return node

    def dict_(self, node: ast.Dict) -> ast.expr:
        if any(key is None for key in node.keys):
            raise self.unit.fail(node, "has ** in a dictionary")
        node.keys = [self._keyed(key) for key in node.keys if key is not None]
        node.values = [self.expr(value) for value in node.values]
        return node

    def unary(self, node: ast.UnaryOp) -> ast.expr:
        kind = node.op.__class__
        if kind is ast.Not:
            node.operand = self.expr(node.operand)
            return node
        if kind is ast.USub and isinstance(node.operand, ast.Constant) and node.operand.value.__class__ in {int, float, complex}:
            value: Any = node.operand.value
            if value.__class__ is int and value > INT64:
                raise self.unit.fail(node, "has an integer of more than 64 bits")
            return ast.Constant(-value, lineno=node.lineno, col_offset=0)
        if kind is ast.UAdd:
            return self.expr(node.operand)
        operator = "aten::neg" if kind is ast.USub else "aten::bitwise_not"
        func = self._name(self.unit.operator(operator, node), node)
        return ast.Call(func, [self.expr(node.operand)], [], lineno=node.lineno, col_offset=0)

    def binary(self, node: ast.BinOp) -> ast.expr:
        func = self._name(self.unit.operator(BINARY[node.op.__class__], node), node)
        return ast.Call(func, [self.expr(node.left), self.expr(node.right)], [], lineno=node.lineno, col_offset=0)

    def compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1:
            raise self.unit.fail(node, "chains comparisons")
        op, left, right = node.ops[0], self.expr(node.left), self.expr(node.comparators[0])
        if isinstance(op, ast.Is | ast.IsNot):
            node.left, node.comparators = left, [right]
            return node
        at: dict[str, Any] = {"lineno": node.lineno, "col_offset": 0}
        if isinstance(op, ast.In | ast.NotIn):
            func = self._name(self.unit.operator("aten::__contains__", node), node)
            found: ast.expr = ast.Call(func, [right, left], [], **at)
            return found if isinstance(op, ast.In) else ast.UnaryOp(ast.Not(), found, **at)
        func = self._name(self.unit.operator(COMPARE[op.__class__], node), node)
        return ast.Call(func, [left, right], [], **at)

    def boolean(self, node: ast.BoolOp) -> ast.expr:
        node.values = [self.expr(value) for value in node.values]
        return node

    def choice(self, node: ast.IfExp) -> ast.expr:
        node.test, node.body, node.orelse = self.expr(node.test), self.expr(node.body), self.expr(node.orelse)
        return node


def _not(body: _Body, node: ast.Call) -> ast.expr:
    return ast.UnaryOp(ast.Not(), body.expr(node.args[0]), lineno=node.lineno, col_offset=0)


_STATEMENTS: dict[type, Callable[[_Body, Any], ast.stmt | None]] = {
    ast.Assign: _Body.assign, ast.AnnAssign: _Body.annotated, ast.Expr: _Body.statement, ast.If: _Body.if_, ast.While: _Body.while_,
    ast.For: _Body.for_, ast.Return: _Body.return_, ast.Assert: _Body.assert_, ast.Raise: _Body.raise_, ast.Pass: _Body.plain,
    ast.Break: _Body.plain, ast.Continue: _Body.plain, ast.With: _Body.with_, ast.FunctionDef: _Body.nested,
}  # fmt: skip
_EXPRESSIONS: dict[type, Callable[[_Body, Any], ast.expr]] = {
    ast.Constant: _Body.constant, ast.Name: _Body.name, ast.Attribute: _Body.attribute, ast.Call: _Body.call,
    ast.Subscript: _Body.subscript, ast.Tuple: _Body.items, ast.List: _Body.items, ast.Dict: _Body.dict_, ast.UnaryOp: _Body.unary,
    ast.BinOp: _Body.binary, ast.Compare: _Body.compare, ast.BoolOp: _Body.boolean, ast.IfExp: _Body.choice,
}  # fmt: skip
_SPECIAL: dict[str, Callable[[_Body, ast.Call], ast.expr]] = {
    "annotate": _Body.annotate, "unchecked_cast": _Body.unchecked, "uninitialized": _Body.uninitialized,
    "isinstance": _Body.isinstance_, "getattr": _Body.getattr_, "fork": _Body.fork_,
}  # fmt: skip
_PLAIN_CALLS: dict[str, tuple[int, Callable[[_Body, ast.Call], ast.expr]]] = {
    "torch.__is__": (2, _Body.is_), "torch.__isnot__": (2, _Body.is_not), "torch.__not__": (1, _not),
}  # fmt: skip


def _collect(body: list[ast.stmt], names: set[str]) -> None:
    """The variables that statements set: those of a function, wherever in it they are set."""
    for node in body:
        kind = node.__class__
        if kind is ast.Assign:
            for target in node.targets:  # type: ignore[attr-defined]
                _collect_target(target, names)
        elif kind is ast.AnnAssign:
            _collect_target(node.target, names)  # type: ignore[attr-defined]
        elif kind is ast.For:
            _collect_target(node.target, names)  # type: ignore[attr-defined]
            _collect(node.body, names)  # type: ignore[attr-defined]
        elif kind is ast.If or kind is ast.While:
            _collect(node.body, names)  # type: ignore[attr-defined]
            _collect(node.orelse, names)  # type: ignore[attr-defined]
        elif kind is ast.With:
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    _collect_target(item.optional_vars, names)
            _collect(node.body, names)  # type: ignore[attr-defined]
        elif kind is ast.FunctionDef:
            names.add(node.name)  # type: ignore[attr-defined]


def _collect_target(node: ast.expr, names: set[str]) -> None:
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            _collect_target(item, names)


def _literal_type(node: ast.expr) -> Type | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _literal_type(node.operand)
    if isinstance(node, ast.Constant):
        kind = LITERALS.get(node.value.__class__)
        return None if kind is None else Type(kind)
    if isinstance(node, ast.Tuple):
        parts = [_literal_type(item) or ANY for item in node.elts]
        return Type("Tuple", tuple(parts))
    return None


def _may_be(found: Type, declared: Type) -> bool:
    if found.kind == "Any" or declared.kind in {"Any", "class"}:
        return True
    if declared.kind == "Optional":
        return found.kind == "None" or _may_be(found, declared.args[0])
    if declared.kind == "Union":
        return any(_may_be(found, arg) for arg in declared.args)
    if declared.kind == "number":
        return found.kind in {"int", "float", "complex"}
    if found.kind == "Tuple" and declared.kind == "Tuple":
        return len(found.args) == len(declared.args) and all(map(_may_be, found.args, declared.args))
    return found.kind == declared.kind
