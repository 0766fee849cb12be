"""Convert values of programs to strings like torch."""

from __future__ import annotations

import math
from typing import Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.tensor_text import text_of
from torch_compat.runtime.values import Budget, Device, EnumMember, Future, ScriptObject, bounded, raised

__all__ = ["joined", "shown"]


def shown(value: Any, *, by_magnitude: bool = True, budget: Budget | None = None) -> str:
    """Convert a value to a string in the form of ``c10::IValue``.

    An integral float is ``1.``, a complex number ``1.-2.j``; strings have no quotes, also inside of containers.

    Parameters:
        by_magnitude: the form of tensors; see :func:`~torch_compat.runtime.tensor_text.text_of`.

    Raises:
        Raised: the value is too large.
        Unsupported: the string form of the value is not known.
    """
    kind = value.__class__
    if value is None:
        return "None"
    if kind is bool:
        return "True" if value else "False"
    if kind is float:
        if math.isfinite(value) and value.is_integer() and -(2.0**63) <= value < 2.0**63:
            return f"{int(value)}."
        if math.isnan(value):  # C++ prints the sign of a NaN
            return "-nan" if math.copysign(1, value) < 0 else "nan"
        return f"{value:.17g}"
    if kind is str:
        return str(value)
    if kind is list or kind is dict or isinstance(value, tuple):
        budget = budget or Budget()
        budget.take(len(value))
        items = [shown(item, by_magnitude=by_magnitude, budget=budget) for item in value]
        if kind is list:
            return "[" + joined(items, ", ") + "]"
        if kind is dict:
            values = [shown(item, by_magnitude=by_magnitude, budget=budget) for item in value.values()]
            return "{" + joined([f"{item}: {other}" for item, other in zip(items, values, strict=True)], ", ") + "}"
        return "(" + joined(items, ", ") + ("," if len(value) == 1 else "") + ")"
    if kind is EnumMember:
        return f"Enum<{value.qualified_name}.{value.a_name}>"
    if kind is complex:
        return f"{shown(value.real)}{'+' if value.imag >= 0 else '-'}{shown(abs(value.imag))}j"
    if kind is int or kind is Device:
        return str(value)
    if kind is Tensor:
        return text_of(value, by_magnitude=by_magnitude)
    if kind is OpaqueTensor:
        raise Unsupported("the reference reader cannot convert this tensor to a string", code="operator")
    if isinstance(value, ScriptObject):  # torch also shows the address; an address of this process must not leak
        return f"<{value.qualified_name} object>"
    if kind is Future:
        return "Future"
    raise raised("RuntimeError", f"programs cannot contain values of type {kind.__name__}")


def joined(parts: list[str], between: str = "") -> str:
    """Join strings.

    Raises:
        Raised: the result would be too long.
    """
    bounded(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)
