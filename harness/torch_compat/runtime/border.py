"""The border between programs and operators: checks the classes of the arguments of each operator call.

Operators are Python functions on top of NumPy, which accepts too much: a dict as a dtype describes records of Python references, a
string as a number is parsed, a nested list becomes an array. A program can pass any of its values to any operator, by position or by
keyword. So each operator has a border, derived from the annotations of its function:

* Parameters with a default whose names begin with ``_`` or are in :data:`INTERNAL` are internal. No program reaches them.
* A parameter for tensors or numbers takes tensors and numbers; for strings, also strings; for lists, also lists of such items.
* A parameter without an annotation takes tensors, numbers, devices and flat lists of them, but no strings, dicts or objects.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import types
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import Raised
from torch_compat.runtime.dtypes import Dtype
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Device

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INTERNAL", "Border", "Place"]

INTERNAL = frozenset({
    "era", "since", "array_type", "both", "spatial", "inside", "promote", "promoted", "ints", "empty", "single", "form", "order", "whole", "kind",
})  # fmt: skip
"""Parameters that only internal code passes; ``tests/runtime/test_border.py`` checks all others against the schemas of the releases."""
MOST = 64  # maximum number of arguments of a variadic operator

PLAIN = frozenset({type(None), bool, int, float, complex, Tensor, OpaqueTensor, Dtype, Device})
LISTS: frozenset[type] = frozenset({list, tuple})


class Place(NamedTuple):
    """The classes that a parameter takes.

    Attributes:
        classes: the classes of the value.
        items: the classes of the items if the value is a list or tuple; None for any class, which the function checks itself.
    """

    classes: frozenset[type]
    items: frozenset[type] | None


ANYTHING = Place(PLAIN | LISTS, PLAIN)
ANY_SCALAR = Place(PLAIN | {list}, None)  # for operators on numbers: an integer times a list repeats the list
ANY_OPTION = Place(PLAIN | LISTS | {str}, PLAIN)
SAID = frozenset({"device", "layout", "ord", "p"})  # parameters without annotations that also take strings


class Border:
    """The parameters of an operator's function.

    Attributes:
        name: the name of the operator, for messages.
        places: the positional parameters.
        words: the parameters by name.
        others: the classes of additional keyword arguments; None if the function takes none.
    """

    __slots__ = ("name", "others", "places", "words")

    def __init__(self, function: Callable[..., Any], kind: str = "tensor", name: str = "operator") -> None:
        self.name = name
        hints = _hints(function)
        places: list[Place] = []
        self.words: dict[str, Place] = {}
        self.others: Place | None = None
        by_place = True
        for parameter in inspect.signature(function).parameters.values():
            given = parameter.default is not parameter.empty
            own = given and (parameter.name in INTERNAL or parameter.name.startswith("_"))
            place = _place(
                hints.get(parameter.name, Any),
                ANY_OPTION if parameter.name in SAID else ANY_SCALAR if kind == "scalar" else ANYTHING,
            )
            if parameter.kind is parameter.VAR_KEYWORD:
                self.others = ANY_OPTION
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                places += [place] * (MOST - len(places))
                continue
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                by_place = by_place and not own
                if by_place:
                    places.append(place)
            if not own:
                self.words[parameter.name] = place
        self.places = tuple(places)

    def refuse(self, args: tuple[Any, ...]) -> Raised:
        """The error for positional arguments that do not match."""
        if len(args) > len(self.places):
            return Raised(f"{self.name}() takes at most {len(self.places)} arguments, found {len(args)}", code="RuntimeError")
        for number, (value, place) in enumerate(zip(args, self.places, strict=False), 1):
            if value.__class__ not in place.classes or not fits(value, place):
                return self._wrong(f"argument {number}", value)
        return Raised(f"{self.name}() does not take these arguments", code="RuntimeError")

    def check_words(self, keywords: dict[str, Any], more: frozenset[str]) -> None:
        """Check keyword arguments.

        Parameters:
            more: names of out tensors, which the function itself does not take.

        Raises:
            Raised: a keyword argument does not match.
        """
        for word, value in keywords.items():
            place = self.words.get(word)
            if place is None:
                if word in more and value.__class__ is Tensor:
                    continue
                place = None if word in INTERNAL or word.startswith("_") else self.others
            if place is None:
                raise Raised(f"{self.name}() has no argument {word}", code="RuntimeError")
            if value.__class__ not in place.classes or not fits(value, place):
                raise self._wrong(word, value)

    def _wrong(self, which: str, value: Any) -> Raised:
        message = f"{self.name}(): {which} has type {type(value).__name__}"
        of = " of values" if value.__class__ in LISTS else ""
        return Raised(f"{message}{of} that it does not accept", code="RuntimeError")


def fits(value: Any, place: Place) -> bool:
    """Whether the items of a list match a parameter; True for any other value."""
    if place.items is None or not isinstance(value, list | tuple):
        return True
    return place.items.issuperset({item.__class__ for item in value})


class _Names(dict[str, Any]):
    """The namespace for annotations: the names of the function's module, and Any for names imported only for type checkers."""

    def __init__(self, known: dict[str, Any]) -> None:
        super().__init__()
        self.known = known

    def __missing__(self, name: str) -> Any:
        return self.known.get(name, getattr(builtins, name, getattr(collections.abc, name, Any)))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    bare = inspect.unwrap(function)
    return typing.get_type_hints(bare, localns=_Names(getattr(bare, "__globals__", {})))


def _place(hint: Any, otherwise: Place) -> Place:
    classes: set[type] = set(PLAIN)
    items: set[type] = set(PLAIN)
    nested = False
    left: list[Any] = [hint]
    while left:
        item = left.pop()
        origin = typing.get_origin(item)
        if item is Any:
            return otherwise
        if origin in {typing.Union, types.UnionType}:
            left += typing.get_args(item)
        elif item is str:
            classes.add(str)
        elif item in LISTS or origin in {list, tuple, Sequence}:
            classes |= LISTS
            inside = typing.get_args(item)
            nested = (
                nested or not inside or any(part is Any or typing.get_origin(part) in {list, tuple, Sequence} for part in inside)
            )
            if str in inside:
                items.add(str)
    return Place(frozenset(classes), None if nested else frozenset(items))
