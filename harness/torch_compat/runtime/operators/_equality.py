"""Whether values of programs are equal, and whether they are small enough to be compared: a value may hold the same values again and again."""

from __future__ import annotations

from typing import Any

from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Budget, raised

__all__ = ["equal", "measured"]


def equal(a: Any, b: Any, budget: Budget | None = None) -> bool:
    """``a == b``.

    Parameters:
        budget: how many items may still be looked at; that of one comparison unless given.

    Raises:
        Raised: the values are too large.
    """
    if a.__class__ is Tensor or b.__class__ is Tensor:
        if a.__class__ is not b.__class__:
            return bool(OpaqueTensor in {a.__class__, b.__class__} and a == b)
        same = resolve("aten::eq")(a, b).array
        if same.size > 1:
            raise raised("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous")
        if not same.size:
            raise raised("RuntimeError", "Boolean value of Tensor with no values is ambiguous")
        return bool(same.reshape(()))
    listed = a.__class__ is list and b.__class__ is list
    if listed or (isinstance(a, tuple) and isinstance(b, tuple)):
        if len(a) != len(b):
            return False
        budget = budget or Budget()
        budget.take(len(a))
        return all(equal(one, other, budget) for one, other in zip(a, b, strict=True))
    if a.__class__ is dict and b.__class__ is dict:
        budget = budget or Budget()
        budget.take(len(a))
        return a.keys() == b.keys() and all(equal(a[key], b[key], budget) for key in a)
    return bool(a == b)


def measured(value: Any, budget: Budget | None = None) -> Any:
    """The value, which is not too large for Python itself to compare.

    Raises:
        Raised: the value is too large.
    """
    if value.__class__ in {list, dict} or isinstance(value, tuple):
        budget = budget or Budget()
        budget.take(len(value))
        for item in value.values() if value.__class__ is dict else value:
            if item.__class__ in {list, dict} or isinstance(item, tuple):
                measured(item, budget)
    return value
