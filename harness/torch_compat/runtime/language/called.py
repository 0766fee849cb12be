"""Functions that compiled programs call besides operators: checks at borders, and statements that have no Python expression."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Raised, Unsupported
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.language.types import Type, instance_of
from torch_compat.runtime.string_conversion import shown
from torch_compat.runtime.tensor import Tensor
from torch_compat.runtime.values import Device, Future, bounded

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CHECKS",
    "INT64",
    "fork",
    "is_instance",
    "is_itself",
    "is_same",
    "missing",
    "of_itself",
    "raised",
    "sliceable",
    "to_list",
    "truth",
    "wrapped",
]

INT64 = 1 << 63


def missing(*_: Any) -> Any:
    """A function that has no code yet."""
    raise Raised("has no code", code="RuntimeError")


def truth(value: Any) -> Any:
    """The condition of a branch.

    Raises:
        Raised: it is an integer, as releases up to 2.6 get it from a test of a float.
    """
    if value.__class__ is int:
        raise Raised("isBool() INTERNAL ASSERT FAILED: expected Bool but got Int", code="RuntimeError")
    return value


def wrapped(value: int) -> int:
    """An integer wrapped to 64 bits."""
    return ((value + INT64) & ((1 << 64) - 1)) - INT64


def _checked_int(value: Any) -> int:
    if value.__class__ is bool or value.__class__ is int:
        return int(value)
    raise Raised(f"expected an int, found a value of type {type(value).__name__}", code="RuntimeError")


def _checked_float(value: Any) -> float:
    if value.__class__ in {bool, int, float}:
        return float(value)
    raise Raised(f"expected a float, found a value of type {type(value).__name__}", code="RuntimeError")


CHECKS = {"int": _checked_int, "float": _checked_float}


def is_instance(value: Any, types: tuple[Type, ...]) -> bool:
    """``isinstance(x, T)`` of the source; several types are alternatives."""
    return any(instance_of(value, type_) for type_ in types)


NUMBERS = frozenset({int, float, bool, Dtype, Device})
"""Types without an identity, whose values ``is`` compares."""
UNKNOWN = {str: "text", tuple: "tuple", complex: "complex number"}
"""Types whose values have an identity in TorchScript that differs from Python's, or that an executor may merge."""


def is_itself(a: Any, b: Any) -> bool:
    """``x is x``, of one variable."""
    return bool(a == b) if a.__class__ is float else True


def is_same(a: Any, b: Any) -> bool:
    """``x is y``: numbers are compared by value, everything else by identity.

    Raises:
        Unsupported: the result depends on whether Python or an executor merges equal values.
    """
    if a.__class__ in NUMBERS and b.__class__ in NUMBERS:
        return a.__class__ is b.__class__ and bool(a == b)
    kind = UNKNOWN.get(a.__class__)
    if kind is not None and a.__class__ is b.__class__ and (kind != "text" or a is b):
        raise Unsupported(f"the reference reader does not know whether two equal values are the same {kind}", code="value")
    return a is b


def fork(call: Callable[..., Any], *args: Any) -> Future:
    """``fork(f, x)``: what ``wait`` runs."""
    return Future(call, args)


def sliceable(value: Any) -> Any:
    """The list, tuple or string ``x[a:b]``; pays for the copy."""
    if value.__class__ in {list, str, tuple}:
        bounded(len(value))
    return value


def raised(message: Any = "", *_: Any) -> None:
    """A failed ``assert``, or a ``raise``."""
    raise Raised(message if message.__class__ is str else shown(message), code="torch.jit.Error")


def to_list(value: Any, type_: Type) -> Any:
    """``annotate(List[int], x.tolist())``: the annotation states the required dimensions and type."""
    if value.__class__ is not Tensor:
        raise Raised("tolist() requires a tensor", code="RuntimeError")
    dims, inner = 0, type_
    while inner.kind == "List":
        dims, inner = dims + 1, inner.args[0]
    if value.array.ndim != dims:
        raise Raised(f"Output annotation list dimension and runtime tensor dimension must match for tolist(), expected {dims}, got {value.array.ndim}", code="RuntimeError")  # fmt: skip
    message = {0: "bool", 1: "int", 2: "float", 3: "complex"}[value.dtype.category]
    if inner.kind != message:
        raise Raised(
            "Output annotation element type and runtime tensor element type must match for tolist()", code="RuntimeError"
        )
    bounded(math.prod(size or 1 for size in value.array.shape))
    return value.array.tolist()


ELEMENTS = {"int": 0, "bool": False, "float": 0.0}


def of_elements(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """``torch.tensor`` of a list of a declared number type: has the dtype of that type, even if the list is empty."""

    def made(data: Any, *, dtype: Any = None, **keywords: Any) -> Any:
        if dtype is None and data.__class__ is list and not _holds(data):
            dtype = function([ELEMENTS[kind]]).dtype.code
        return function(data, dtype=dtype, **keywords)

    return made


def _holds(data: list[Any]) -> bool:
    return any(byte.__class__ is not list or _holds(byte) for byte in data)


def of_any_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator on numbers, one of which is read from a tensor: it treats that number as an integer unless it is a float or complex.

    Raises:
        Raised: it is a bool. Up to 1.8 no bool is read from a tensor.
    """

    def call(*args: Any, **keywords: Any) -> Any:
        classes = {arg.__class__ for arg in args}
        if bool in classes and Tensor not in classes:
            raise Raised("isInt() INTERNAL ASSERT FAILED: a bool from a tensor is treated as an integer", code="RuntimeError")
        return function(*args, **keywords)

    return call


def of_itself(function: Callable[..., Any], kinds: frozenset[type], *, equal: bool) -> Callable[..., Any]:
    """A comparison of a value with itself, decided without inspecting it if it is a float or a list without tensors.

    Parameters:
        function: ``eq`` or ``ne``, for all other values.
        kinds: those of these two kinds to which this applies.
        equal: the result for them.
    """

    def compare(self: Any, other: Any) -> Any:
        kind = self.__class__
        if kind is other.__class__ and kind in kinds and not (kind is list and self and self[0].__class__ is Tensor):
            return equal
        return function(self, other)

    return compare
