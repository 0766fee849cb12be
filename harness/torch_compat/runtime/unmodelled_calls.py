"""What an entry about calls that are not modelled is, and what the conditions of such entries ask of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.releases.sets import ReleaseSet
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Calls", "UnmodelledCalls", "argument", "empty", "entry", "first"]

Calls = tuple[Any, ...]


class UnmodelledCalls(NamedTuple):
    """Calls that are not modelled.

    Attributes:
        operators: a pattern of their names without ``aten::``, which matches the whole name.
        releases: those of which the calls are not modelled.
        applies: whether a call, its arguments by position and by name, is one of them.
        reason: why it is not modelled.
    """

    operators: str
    releases: ReleaseSet
    applies: Callable[[Calls, dict[str, Any]], bool]
    reason: str


def first(args: Calls) -> Any:
    """The array of the first argument, if it is a tensor."""
    return args[0].array if args and args[0].__class__ is Tensor else None


def empty(args: Calls, _keywords: dict[str, Any]) -> bool:
    """Whether the first argument is a tensor without elements."""
    array = first(args)
    return array is not None and not array.size


def argument(args: Calls, keywords: dict[str, Any], name: str, at: int, otherwise: Any) -> Any:
    """An argument, by its name or its position."""
    return keywords.get(name, args[at] if len(args) > at else otherwise)


def entry(operators: str, releases: str, applies: Any, reason: str) -> UnmodelledCalls:
    """An entry, with its releases as text."""
    return UnmodelledCalls(operators, ReleaseSet.parse(releases), applies, reason)
