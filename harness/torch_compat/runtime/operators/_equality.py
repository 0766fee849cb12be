"""Compare values of programs within a budget, since a value can contain the same values repeatedly."""

from __future__ import annotations

from typing import Any

from torch_compat.runtime.registry import resolve
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Budget, raised

__all__ = ["equal", "measured"]


def equal(a: Any, b: Any, budget: Budget | None = None) -> bool:
    """``a == b``.

    Parameters:
        budget: the number of items that may still be visited; by default the budget of one comparison.

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
        return all(equal(item, other, budget) for item, other in zip(a, b, strict=True))
    if a.__class__ is dict and b.__class__ is dict:
        budget = budget or Budget()
        budget.take(len(a))
        return a.keys() == b.keys() and all(equal(a[key], b[key], budget) for key in a)
    return bool(a == b)


def measured(value: Any, budget: Budget | None = None) -> Any:
    """Return a value after checking that Python can compare it within the budget.

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
