"""Types as annotations spell them, and the values that have them.

The same spelling serves source (``x: List[int]``), ``model.json`` and the tags of pickled containers
(``Dict[str, __torch__.m.Point]``). Old releases spell some differently (``NoneType`` for ``None``, ``number`` for ``Scalar``).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Raised, Refused, Unsupported
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Budget, Device, EnumMember, Future, NamedTupleValue, ScriptObject, text_in, text_out
from torch_compat.torchscript.parser import NO_SOURCE, dotted, parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ANY", "BOOL", "FLOAT", "INT", "NONE", "STR", "TENSOR", "Type", "checked_key", "convert", "instance_of", "parse_type", "read_type", "release_value"]  # fmt: skip


class Type:
    """A type: ``kind`` is its head (``int``, ``Tensor``, ``List``...) or ``class``, with the qualified name in ``name``."""

    __slots__ = ("args", "kind", "name")

    def __init__(self, kind: str, args: tuple[Type, ...] = (), name: str = "") -> None:
        self.kind = kind
        self.args = args
        self.name = name

    def __str__(self) -> str:
        if self.kind == "class":
            return self.name
        return f"{self.kind}[{', '.join(map(str, self.args))}]" if self.args else self.kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


ANY, TENSOR, INT, FLOAT, BOOL, STR, COMPLEX, NONE = (Type(n) for n in ("Any", "Tensor", "int", "float", "bool", "str", "complex", "None"))  # fmt: skip
_SIMPLE: dict[str, Type] = {
    "Any": ANY, "Tensor": TENSOR, "int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "complex": COMPLEX, "NoneType": NONE,
    "None": NONE, "number": Type("number"), "Scalar": Type("number"), "Device": Type("Device"), "device": Type("Device"),
    "Generator": Type("Generator"), "Stream": Type("Stream"), "Storage": Type("Storage"), "Layout": INT, "ScalarType": INT,
    "AnyListType": Type("AnyList"), "AnyTupleType": Type("AnyTuple"), "AnyClassType": ANY, "AnyEnumType": ANY, "Capsule": Type("Capsule"),
    "list": Type("AnyList"), "List": Type("AnyList"), "tuple": Type("AnyTuple"), "Tuple": Type("AnyTuple"), "t": ANY,
    "QScheme": Type("QScheme"), "Quantizer": Type("Quantizer"), "SymInt": INT, "SymFloat": FLOAT, "MemoryFormat": INT,
}  # fmt: skip
_ARITY: dict[str, tuple[int, int | None]] = {
    "List": (1, 1), "Dict": (2, 2), "Tuple": (0, None), "Optional": (1, 1), "Future": (1, 1), "RRef": (1, 1), "Final": (1, 1), "Await": (1, 1), "Set": (1, 1),
    "InferredType": (1, 1),
}  # fmt: skip
_HEADS = {"List", "Dict", "Tuple", "Optional", "Union", "Future", "RRef", "Final", "Await", "Set", "InferredType"}


DEEPEST = 100  # container nesting in a value that a program returns
KEY_TYPES = {"str", "int", "float", "complex", "bool", "Tensor", "Device", "Any"}
KEYS = frozenset({str, int, float, complex, bool, Tensor, Device})


def checked_key(value: Any) -> Any:
    """A key of a dictionary. Tuples are not allowed: hashing a tuple that repeats the same tuples can take forever.

    Raises:
        Raised: a value of this type is no key.
    """
    if value.__class__ not in KEYS:
        raise Raised(f"a value of type {type(value).__name__} cannot be used as a dictionary key", code="RuntimeError")
    return value


def _bad(node: ast.AST, text: str) -> Refused:
    return Refused(text, where=f"line {getattr(node, 'lineno', 0)}", code="source")


def read_type(node: ast.AST, depth: int = 0) -> Type:
    """The type that an annotation spells.

    Raises:
        Refused: it is none.
    """
    if depth > 60:
        raise _bad(node, "is a type nested deeper than 60")
    if isinstance(node, ast.Name):
        result = _SIMPLE.get(node.id)
        return result if result is not None else Type("class", (), node.id)
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        if node.value.__class__ is str:
            return parse_type(node.value)
    if isinstance(node, ast.Attribute):
        name = dotted(node)
        if name:
            last = name.removeprefix("torch.")
            return _SIMPLE[last] if name.startswith("torch.") and last in _SIMPLE else Type("class", (), name)
    if isinstance(node, ast.Subscript):
        head = dotted(node.value)
        if head in _HEADS:
            inner = node.slice
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if head == "Tuple" and len(items) == 1 and isinstance(items[0], ast.Tuple):
                items = items[0].elts
            args = tuple(read_type(item, depth + 1) for item in items)
            least, most = _ARITY.get(head, (1, None))
            if len(args) < least or (most is not None and len(args) > most):
                raise _bad(node, f"{head} with {len(args)} types")
            if head == "Final":
                return args[0]
            if head == "Dict" and args and args[0].kind not in KEY_TYPES:
                raise _bad(
                    node,
                    f"Cannot create dict for key type '{args[0]}', only int, float, complex, Tensor, device and string keys are supported",
                )
            return Type(head, args)
    if isinstance(node, ast.Call) and dotted(node.func) == "Tensor":
        return TENSOR
    raise _bad(node, f"unknown type {ast.unparse(node)[:80]!r}" if depth < 3 else "unknown type")


def parse_type(text: str) -> Type:
    """The type that a text spells.

    Raises:
        Refused: it is none.
    """
    result = _SIMPLE.get(text)
    if result is not None:
        return result
    try:
        return read_type(parse_expression(text))
    except NO_SOURCE as error:
        raise Refused(f"unknown type {text[:80]!r}", code="source") from error


_PLAIN: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor, OpaqueTensor), "int": (int, Dtype), "float": (float,), "bool": (bool,), "str": (str,), "complex": (complex,),
    "None": (type(None),), "number": (int, float, complex), "Device": (Device,), "AnyList": (list,), "AnyTuple": (tuple, NamedTupleValue),
    "Future": (Future,),
}  # fmt: skip


def instance_of(value: Any, type_: Type, budget: Budget | None = None) -> bool:
    """Whether a value of a program has a type. The element type of an empty container is unknown: any type fits.

    Raises:
        Raised: it is too large.
    """
    kind = type_.kind
    if kind == "Any":
        return True
    if kind == "class":
        cls = value.__class__
        if cls is EnumMember:
            return bool(value.qualified_name == type_.name)
        return issubclass(cls, ScriptObject | NamedTupleValue) and cls.qualified_name == type_.name
    if kind in {"Optional", "Union"}:
        return (kind == "Optional" and value is None) or any(instance_of(value, arg, budget) for arg in type_.args)
    if kind in {"List", "Dict", "Tuple"} and (value.__class__ in {list, dict} or isinstance(value, tuple)):
        budget = budget or Budget()
        budget.take(len(value))
    if kind == "List":
        return value.__class__ is list and all(instance_of(item, type_.args[0], budget) for item in value)
    if kind == "Dict":
        key, item = type_.args
        return value.__class__ is dict and all(
            instance_of(k, key, budget) and instance_of(v, item, budget) for k, v in value.items()
        )
    if kind == "Tuple":
        return (
            isinstance(value, tuple)
            and len(value) == len(type_.args)
            and all(instance_of(item, arg, budget) for item, arg in zip(value, type_.args, strict=True))
        )
    return value.__class__ in _PLAIN.get(kind, ())


def convert(value: Any, type_: Type, classes: Callable[[str], Any]) -> Any:
    """A Python value as an argument of a declared type, as torch converts it: numbers widen, containers are copied.

    Parameters:
        classes: gives the class of a qualified name.

    Raises:
        Raised: the value is not of that type.
    """
    kind = type_.kind
    cls = value.__class__
    if kind == "Any":
        return _inferred(value)
    if kind == "float":
        if cls is float or cls is int or cls is bool:
            return float(value)
    elif kind == "int":
        if cls is int or cls is bool:
            if not -(1 << 63) <= value < 1 << 63:
                raise Raised("Overflow when unpacking long", code="RuntimeError")
            return int(value)
        if cls is Dtype:
            return value.code
        if cls is Tensor and value.array.ndim == 0:
            return int(value.array)
    elif kind == "complex":
        if cls in {complex, float, int, bool}:
            return complex(value)
    elif kind == "str":
        if cls is str:
            return text_in(value)
    elif kind == "Device":
        if cls is str:
            return Device(value)
        if cls is Device:
            return value
    elif kind == "Optional":
        return None if value is None else convert(value, type_.args[0], classes)
    elif kind == "Union":
        result = _inferred(value)
        if instance_of(result, type_):  # numbers do not widen to an alternative
            return result
        for arg in type_.args:
            if arg.kind == "class":
                try:
                    return convert(value, arg, classes)
                except Raised:
                    continue
    elif kind == "List":
        if cls is list or isinstance(value, tuple):
            return [convert(item, type_.args[0], classes) for item in value]
    elif kind == "Dict":
        if isinstance(value, dict):
            key, item = type_.args
            return {convert(k, key, classes): convert(v, item, classes) for k, v in value.items()}
    elif kind == "Tuple":
        if isinstance(value, tuple):
            if len(value) != len(type_.args):
                raise Raised(f"Object {value!r:.80} had a different number of elements than type {type_}", code="RuntimeError")
            return tuple(convert(item, arg, classes) for item, arg in zip(value, type_.args, strict=True))
    elif kind == "class":
        target = classes(type_.name)
        if isinstance(target, type) and issubclass(target, NamedTupleValue) and isinstance(value, tuple):
            fields = target.info.types()
            if len(fields) == len(value):
                return target(*(convert(item, arg, classes) for item, arg in zip(value, fields, strict=True)))
        elif instance_of(value, type_):
            return value
    elif cls in _PLAIN.get(kind, ()):
        return value
    elif kind == "Tensor" and value is None:
        return None
    elif kind == "number" and cls is bool:
        return value
    raise Raised(f"Expected a value of type '{type_}' but instead found type '{cls.__name__}'.", code="RuntimeError")


def _inferred(value: Any) -> Any:
    cls = value.__class__
    if cls is str:
        return text_in(value)
    if cls in {list, dict} and not value:
        message = "List trace inputs must have elements" if cls is list else "Dictionary inputs must have entries"
        raise Raised(f"Tracer cannot infer type of {value}\n:{message}", code="RuntimeError")
    if cls is list:
        return [_inferred(item) for item in value]
    if cls is tuple:
        return tuple(_inferred(item) for item in value)
    if cls is dict:
        return {_inferred(k): _inferred(v) for k, v in value.items()}
    return value


def release_value(value: Any, budget: Budget | None = None, depth: int = 0) -> Any:
    """Convert a value of a program to Python: containers are copied, strings become ``str`` again, objects of the program stay.

    Raises:
        Raised: it is too large or nested too deeply, or a string in it is not valid text.
        Unsupported: it contains random numbers.
    """
    cls = value.__class__
    if cls is str:
        return text_out(value)
    if cls is not list and cls is not dict and not issubclass(cls, tuple):
        if cls is OpaqueTensor and "drawn" in value.parts:
            raise Unsupported(f"the reference reader does not support random numbers: {value.parts['drawn']}", code="operator")
        return value
    budget = budget or Budget()
    budget.take(len(value))
    below = depth + 1
    if below > DEEPEST:
        raise Raised(f"the program returns values that are nested too deeply: more than {DEEPEST} levels", code="too-deep")
    if cls is list:
        return [release_value(item, budget, below) for item in value]
    if cls is dict:
        return {release_value(k, budget, below): release_value(v, budget, below) for k, v in value.items()}
    items = (release_value(item, budget, below) for item in value)
    return tuple(items) if cls is tuple else cls(*items)
