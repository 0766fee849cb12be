"""Values of programs as torch writes them into texts."""

from __future__ import annotations

import math
from typing import Any

from torch_compat.errors import Unsupported
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.tensor_text import text_of
from torch_compat.runtime.values import Budget, Device, EnumMember, Future, ScriptObject, bounded, raised

__all__ = ["joined", "shown"]


def shown(value: Any, *, by_magnitude: bool = True, budget: Budget | None = None) -> str:
    """A value as torch writes it into texts (``c10::IValue``'s own form): a whole float as ``1.``, a complex number as ``1.-2.j``,
    a text without quotes wherever it is.

    Parameters:
        by_magnitude: how tensors are written: see :func:`~torch_compat.runtime.tensor_text.text_of`.

    Raises:
        Raised: it is too large.
        Unsupported: no text of it is known.
    """
    kind = value.__class__
    if value is None:
        return "None"
    if kind is bool:
        return "True" if value else "False"
    if kind is float:
        if math.isfinite(value) and value.is_integer() and abs(value) < 2.0**63:
            return f"{int(value)}."
        if math.isnan(value):  # which has a sign, too, in C++
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
            return "{" + joined([f"{one}: {other}" for one, other in zip(items, values, strict=True)], ", ") + "}"
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
    if isinstance(value, ScriptObject):  # torch shows its address, too; an address of this process is nobody's business
        return f"<{value.qualified_name} object>"
    if kind is Future:
        return "Future"
    raise raised("RuntimeError", f"programs cannot contain values of type {kind.__name__}")


def joined(parts: list[str], between: str = "") -> str:
    """The parts as one text, which must not become too long.

    Raises:
        Raised: it would.
    """
    bounded(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)
