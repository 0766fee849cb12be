"""Entries for calls that are not modeled, and helpers for the conditions of such entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Calls", "UnmodelledCalls", "argument", "empty", "entry", "first", "reads_its_result"]

Calls = tuple[Any, ...]


class UnmodelledCalls(NamedTuple):
    """Calls that are not modeled.

    Attributes:
        operators: a regular expression that matches whole operator names without ``aten::``.
        releases: the releases for which the calls are not modeled.
        applies: takes the positional and keyword arguments of a call and tells whether the call is not modeled.
        reason: why the call is not modeled.
    """

    operators: str
    releases: ReleaseSet
    applies: Callable[[Calls, dict[str, Any]], bool]
    reason: str


def first(args: Calls) -> Any:
    """The array of the first argument if it is a tensor."""
    return args[0].array if args and args[0].__class__ is Tensor else None


def empty(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether the first argument is an empty tensor."""
    array = first(args)
    return array is not None and not array.size


def argument(args: Calls, keywords: dict[str, Any], name: str, at: int, otherwise: Any) -> Any:
    """The argument with a name or a position."""
    return keywords.get(name, args[at] if len(args) > at else otherwise)


def entry(operators: str, releases: str, applies: Any, reason: str) -> UnmodelledCalls:
    """Create an entry; ``releases`` is text."""
    return UnmodelledCalls(operators, ReleaseSet.parse(releases), applies, reason)


def reads_its_result(args: Calls, keywords: dict[str, Any]) -> bool:
    """Whether the tensor that is written to shares elements with a factor."""
    target = first(args)
    factors = [arg.array for arg in (*args[1:3], *keywords.values()) if arg.__class__ is Tensor]
    return target is not None and any(share_elements(target, factor) for factor in factors)


def share_elements(array: Any, other: Any) -> bool:
    """Whether two arrays have an element in common; yes if that costs too much to decide."""
    work: Any = 1 << 12
    try:
        return np.shares_memory(array, other, max_work=work)
    except np.exceptions.TooHardError:
        return True
