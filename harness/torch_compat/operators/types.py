"""Types in schemas: their notation, the type that PyTorch checks, and the subtype relation.

PyTorch parses every type twice. The *real* type is what is written and printed; the *fake* type is what every check
uses. They differ for names that stand for an ``int``: ``SymInt``, ``ScalarType``, ``Layout`` and ``MemoryFormat`` are ``int`` in
the fake type, also inside a list or an optional. Inside a tuple, a Dict, a Union or a Future only the fake type is kept, so
2.13.0 prints ``(SymInt, int)`` as ``(int, int)``.

Peculiarities of 2.13.0, all verified by tests:

* Type variables are equal whatever their names: ``t[]`` can be replaced by ``u[]``.
* Lists and Dicts are invariant (``int[]`` is not a ``Scalar[]``); tuples, Futures and Awaits are covariant; RRefs are invariant.
* ``Scalar`` is both a type of its own and the union of int, float and complex: in a Union it is split, and a Union with all
  three is equal to it. ``Scalar??`` is not a ``Scalar?``.
* A Union is flattened, reduced by removing subtypes, and sorted when it is created; if one type is left, or an Optional of nothing but
  None, PyTorch fails, and so does this module (ValueError).
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BASE", "CLASS_PREFIX", "RECORDED", "SchemaType", "custom_class", "dict_of", "list_of", "optional_of", "same", "single_of", "subtype", "tuple_of",
    "union_of", "variable",
]  # fmt: skip

CLASS_PREFIX: Final = "__torch__.torch.classes."
"""Prefix of the name of a custom class."""

# In the order of PyTorch's own enumeration, which determines the order of types in a Union.
_ORDER: Final = {kind: at for at, kind in enumerate((
    "any", "enum", "any-enum", "tensor", "storage", "tuple", "list", "dict", "number", "float", "complex", "future", "await", "rref", "int", "none",
    "str", "generator", "quantizer", "bool", "optional", "var", "device", "stream", "function", "class", "pyobject", "capsule", "interface",
    "qscheme", "scalar-type", "layout", "memory-format", "any-list", "any-tuple", "any-class", "sym-int", "sym-float", "sym-bool", "union",
))}  # fmt: skip
_KEYS: Final = frozenset({"any", "int", "bool", "float", "complex", "str", "tensor", "device"})
"""The types that can be keys of a Dict."""


class SchemaType:
    """A type. Equally written types are one object, so ``is`` compares them; :func:`same` is PyTorch's equality.

    Attributes:
        kind: ``tensor``, ``int``, ``list``, ``optional``...
        text: as 2.13.0 prints it, without alias annotations.
        contained: the types inside.
        fake: the type that PyTorch's checks see instead.
    """

    __slots__ = ("contained", "fake", "kind", "text")

    def __init__(self, kind: str, text: str, contained: tuple[SchemaType, ...] = (), fake: SchemaType | None = None) -> None:
        self.kind = kind
        self.text = text
        self.contained = contained
        self.fake = fake or self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Type {self.text}>"


_MADE: Final[dict[tuple[str, str, tuple[SchemaType, ...]], SchemaType]] = {}


def _made(kind: str, text: str, contained: tuple[SchemaType, ...] = (), fake: SchemaType | None = None) -> SchemaType:
    key = (kind, text, contained)
    result = _MADE.get(key)
    if result is None:
        result = _MADE[key] = SchemaType(kind, text, contained, fake)
    return result


ANY: Final = _made("any", "Any")
INT: Final = _made("int", "int")
FLOAT: Final = _made("float", "float")
COMPLEX: Final = _made("complex", "complex")
NUMBER: Final = _made("number", "Scalar")
NONE: Final = _made("none", "NoneType")
STR: Final = _made("str", "str")
TENSOR: Final = _made("tensor", "Tensor")
_NUMBERS: Final = (INT, FLOAT, COMPLEX)

BASE: Final[dict[str, SchemaType]] = {
    "Any": ANY,
    "AnyClassType": _made("any-class", "AnyClassType"),
    "AnyEnumType": _made("any-enum", "AnyEnumType"),
    "Capsule": _made("capsule", "Capsule"),
    "ConstQuantizerPtr": INT,
    "Device": _made("device", "Device"),
    "DeviceIndex": INT,
    "Generator": _made("generator", "Generator"),
    "Layout": _made("layout", "Layout", fake=INT),
    "MemoryFormat": _made("memory-format", "MemoryFormat", fake=INT),
    "None": NONE,
    "NoneType": NONE,
    "QScheme": _made("qscheme", "QScheme"),
    "Quantizer": _made("quantizer", "Quantizer"),
    "Scalar": NUMBER,
    "ScalarType": _made("scalar-type", "ScalarType", fake=INT),
    "Storage": _made("storage", "Storage"),
    "Stream": _made("stream", "Stream"),
    "SymBool": _made("sym-bool", "SymBool"),
    "SymInt": _made("sym-int", "SymInt", fake=INT),
    "Tensor": TENSOR,
    "bool": _made("bool", "bool"),
    "complex": COMPLEX,
    "float": FLOAT,
    "int": INT,
    "str": STR,
}
"""The names that 2.13.0 knows."""

RECORDED: Final[dict[str, SchemaType]] = {"Dimname": STR, "PyObject": _made("pyobject", "PyObject")}
"""Names that 2.13.0 cannot parse, although some release prints them."""


def variable(name: str) -> SchemaType:
    """A type variable."""
    return _made("var", name)


def custom_class(name: str) -> SchemaType:
    """A custom class, by its qualified name."""
    return _made("class", name)


def list_of(inner: SchemaType) -> SchemaType:
    """``inner[]``."""
    return _made("list", f"{inner.text}[]", (inner,), None if inner.fake is inner else list_of(inner.fake))


def dict_of(key: SchemaType, value: SchemaType) -> SchemaType:
    """``Dict(key, value)``."""
    if key.kind not in _KEYS:
        raise ValueError(f"a Dict key of type int, float, complex, bool, str, Tensor, Device or Any, not {key.text}")
    return _made("dict", f"Dict({key.text}, {value.text})", (key, value))


def tuple_of(inner: tuple[SchemaType, ...]) -> SchemaType:
    """``(inner, ...)``."""
    return _made("tuple", f"({', '.join(item.text for item in inner)})", inner)


def single_of(kind: str, inner: SchemaType) -> SchemaType:
    """``Future(inner)``, ``Await(inner)`` or ``RRef(inner)``."""
    return _made(kind.lower(), f"{kind}({inner.text})", (inner,))


def optional_of(inner: SchemaType) -> SchemaType:
    """``inner?``."""
    fake = None if inner.fake is inner else optional_of(inner.fake)
    types = _standard((inner, NONE))
    if len(types) == 1:
        raise ValueError(f"a type that allows values other than None, not {inner.text}?")
    if len(types) == 2:
        inner = types[0] if types[0] is not NONE else types[1]
    elif inner is not NUMBER and not (inner.kind == "union" and len(inner.contained) == 3 and _holds(inner, NUMBER)):
        inner = union_of(tuple(type_ for type_ in types if not subtype(type_, NONE)))
    else:
        inner = NUMBER
    return _made("optional", f"{inner.text}?", (inner,), fake)


def union_of(inner: tuple[SchemaType, ...]) -> SchemaType:
    """``Union(inner, ...)``."""
    types = _standard(inner)
    if len(types) == 1:
        raise ValueError(
            f"a Union in which no type includes all the others, not one whose types are all contained in {types[0].text}"
        )
    if NONE in types:
        if len(types) == 4 and all(number in types for number in _NUMBERS):
            return optional_of(NUMBER)
        if len(types) == 2:
            return optional_of(types[0] if types[0] is not NONE else types[1])
    return _made("union", _union_text(types), types)


def _union_text(types: tuple[SchemaType, ...]) -> str:
    # If a number in a Union is printed as Scalar, 2.13.0 leaves its comma at the end.
    numbers = all(number in types for number in _NUMBERS)
    out, printed = "Union(", False
    for at, type_ in enumerate(types):
        if not numbers or type_ not in _NUMBERS:
            if at:
                out += ", "
                printed = True
            out += type_.text
    if numbers:
        out += ", Scalar" if printed else "Scalar"
    return out + ")"


def _flat(item: SchemaType) -> list[SchemaType]:
    if item.kind == "union":
        return [inner for each in item.contained for inner in _flat(each)]
    if item.kind == "optional":
        return [*_flat(item.contained[0]), NONE]
    return list(_NUMBERS) if item is NUMBER else [item]


def _standard(types: tuple[SchemaType, ...]) -> tuple[SchemaType, ...]:
    """The types of a Union: flattened, without subtypes of each other, sorted."""
    left = [inner for type_ in types for inner in _flat(type_)]
    end = len(left) - 1
    for at in range(len(left) - 1, 0, -1):
        for before in range(min(at - 1, end), -1, -1):
            unified = _supertype(left[at], left[before])
            if unified is not None:
                left[before] = unified
                left[at] = left[end]
                end -= 1
                break
    return tuple(sorted(left[: end + 1], key=lambda item: (_ORDER[item.kind], item.text)))


def _supertype(item: SchemaType, other: SchemaType) -> SchemaType | None:
    if subtype(item, NONE) != subtype(other, NONE):
        return None
    return _unified(item, other)


def _unified(item: SchemaType, other: SchemaType) -> SchemaType | None:
    """The type that accepts both, if PyTorch finds one without creating a Union."""
    if subtype(item, other):
        return other
    if subtype(other, item):
        return item
    if subtype(item, NONE):
        return optional_of(other)
    if subtype(other, NONE):
        return optional_of(item)
    if item.kind == "optional" or other.kind == "optional":
        single, rest = (item, other) if item.kind == "optional" else (other, item)
        inner = _unified(single.contained[0], rest)
        if inner is not None:
            return optional_of(inner)
    if item.kind == other.kind == "tuple":
        if len(item.contained) != len(other.contained):
            return None
        inners = [_unified(a, b) for a, b in zip(item.contained, other.contained, strict=True)]
        result = tuple(inner for inner in inners if inner is not None)
        return tuple_of(result) if len(result) == len(inners) else None
    if item.kind == other.kind == "future":
        inner = _unified(item.contained[0], other.contained[0])
        return single_of("Future", inner) if inner is not None else None
    return None


def _holds(union: SchemaType, item: SchemaType) -> bool:
    if item is NUMBER:
        return all(_holds(union, number) for number in _NUMBERS)
    return any(subtype(item, inner) for inner in union.contained)


def same(item: SchemaType, other: SchemaType) -> bool:
    """Whether PyTorch considers two types equal."""
    if item is other:
        return True
    kind = item.kind
    if kind == "number" or (kind == "union" and other.kind == "number"):
        union = other if kind == "number" else item
        return union.kind == "union" and len(union.contained) == 3 and _holds(union, NUMBER)
    if kind != other.kind:
        return False
    if kind == "var":
        return True
    if kind == "class":
        return item.text == other.text
    if len(item.contained) != len(other.contained):
        return False
    if kind == "union":
        return all(any(same(a, b) for b in other.contained) for a in item.contained)
    return all(same(a, b) for a, b in zip(item.contained, other.contained, strict=True))


def _plain_subtype(item: SchemaType, other: SchemaType) -> bool:
    if other is ANY or same(item, other):
        return True
    if other.kind == "optional":
        return subtype(item, other.contained[0])
    return other.kind == "union" and any(subtype(item, inner) for inner in other.contained)


def subtype(item: SchemaType, other: SchemaType) -> bool:
    """Whether PyTorch accepts ``item`` where ``other`` is required; neither is replaced by its fake type."""
    if item is other:
        return True
    kind = item.kind
    if kind == "optional":
        if other.kind == "optional":
            return subtype(item.contained[0], other.contained[0])
        if other.kind == "union":
            return _holds(other, NONE) and _holds(other, item.contained[0])
        return _plain_subtype(item, other)
    if kind == "union":
        if other.kind == "union":
            wanted: tuple[SchemaType, ...] = other.contained
        elif other.kind == "optional":
            wanted = (NONE, *(_NUMBERS if other.contained[0] is NUMBER else other.contained))
        else:
            wanted = _NUMBERS if other is NUMBER else (other,)
        return all(any(subtype(inner, each) for each in wanted) for inner in item.contained)
    if kind == "none" and other.kind == "optional":
        return True
    if kind == "number" and other.kind == "union":
        return _holds(other, NUMBER)
    if item in _NUMBERS and other is NUMBER:
        return True
    if kind == "class" and other.kind == "any-class":
        return True
    if _plain_subtype(item, other):
        return True
    if kind == other.kind and kind in {"tuple", "future", "await"} and len(item.contained) == len(other.contained):
        return all(subtype(a, b) for a, b in zip(item.contained, other.contained, strict=True))
    return False
