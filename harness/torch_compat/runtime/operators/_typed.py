"""Operators whose arguments are quantized tensors and packed parameters: they are registered with a check of each argument."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from typing import TYPE_CHECKING, Any

from torch_compat.errors import Raised, Unsupported
from torch_compat.runtime.registration import operator
from torch_compat.runtime.values import CustomObject

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["typed"]

Function = typing.TypeVar("Function", bound="Callable[..., Any]")
WIDER: dict[type, frozenset[type]] = {float: frozenset({float, int})}


def typed(*names: str, since: str = "1.0.0") -> Callable[[Function], Function]:
    """Register a function as an operator that takes exactly the classes in its annotations; ``Any`` takes any value.

    Parameters:
        names, since: as for :func:`torch_compat.runtime.registration.operator`.
    """

    def register(function: Function) -> Function:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function)
        places = {name: _classes(hints[name]) for name in signature.parameters}
        name = names[0].rpartition("::")[2]

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise Raised(f"{name}(): {error}", code="RuntimeError") from error
            for word, value in bound.arguments.items():
                classes = places[word]  # a variadic parameter takes anything
                if classes is not None and value.__class__ not in classes:
                    if value.__class__ is CustomObject:
                        message = f"the reference reader has no support for this object of class {value.name}"
                        raise Unsupported(message, where=value.where, code="custom-class")
                    message = f"{name}() does not accept a value of type {type(value).__name__} as argument {word}"
                    raise Raised(message, code="RuntimeError")
            return function(*bound.args, **bound.kwargs)

        return typing.cast("Function", operator(*names, since=since, of="any", gradient=False)(call))

    return register


def _classes(hint: Any) -> frozenset[type] | None:
    """The classes that an annotation names; None for any class."""
    results: set[type] = set()
    left: list[Any] = [hint]
    while left:
        item = left.pop()
        origin = typing.get_origin(item)
        if item is Any:
            return None
        if origin in {typing.Union, types.UnionType}:
            left += typing.get_args(item)
        elif item is None or item is type(None):
            results.add(type(None))
        else:
            results |= WIDER.get(item, frozenset({origin or item}))
    return frozenset(results)
