"""Classes that the types of bytecode name, which a lite interpreter has to know before it can load the bytecode.

Each function has a table of types. A loader parses it in order, and has to find the fields of each named tuple that a type names: in the
same text, complete before the name, or as the whole of an earlier type. ``("__torch__.P[NamedTuple, [[x, int]]]", "List[__torch__.P]")`` loads;
``("List[__torch__.P]", "__torch__.P[NamedTuple, [[x, int]]]")`` does not, and neither does ``("List[__torch__.P[NamedTuple, [[x, int]]]]",
"List[__torch__.P]")``. The types in a function's schema are parsed alone, except for a class by itself, such as that of ``self``.

Source of the rules: archives of 1.8.1, 1.10.2, 1.11.0, 1.12.1, 2.13.0 and 2.15.0, with types edited, loaded by 1.7.1, 1.8.1, 1.10.2, 1.11.0,
1.12.1, 2.0.1 and 2.15.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.allowance import Allowance

__all__ = ["CLASS", "UNDEFINED", "UNDEFINED_IN_SCHEMA", "named_classes"]

CLASS: Final = "class"
UNDEFINED: Final = "undefined"
UNDEFINED_IN_SCHEMA: Final = "undefined-in-schema"
ENTRY: Final = 3  # units of work for a type
CHARACTERS: Final = 8  # characters of a type that are read per unit of work
MARK: Final = re.compile(r"__torch__\.[\w.]+(?:\[NamedTuple)?|[\[\]]")
BY_ITSELF: Final = "__torch__."
OF_TORCH: Final = "__torch__.torch.classes."
FIELDS: Final = "[NamedTuple"
SPACES: Final = re.compile(r"\s+")


def named_classes(types: Any, schema: Any, allowance: Allowance) -> frozenset[str]:
    """How the types of a function name classes of the program.

    Parameters:
        types: the function's table of types, as unpickled.
        schema: its schema, as unpickled: pairs of ``arguments`` or ``returns`` and a tuple of arguments; ``()`` if it has none.

    Returns:
        :data:`CLASS` if the table names a class of the program, :data:`UNDEFINED` if it names a class without its fields, and
        :data:`UNDEFINED_IN_SCHEMA` if a type of the schema does.

    Raises:
        TypeError, ValueError: a part is not what it should be.
    """
    results: set[str] = set()
    defined: set[str] = set()
    for type_ in _texts(_entries(types), allowance):
        first, undefined = _names(type_, defined)
        if first is not None:
            results.add(CLASS)
        if undefined:
            results.add(UNDEFINED)
        if first is not None and type_.startswith(first + FIELDS):
            defined.add(first)
    for type_ in _texts(_argument_types(schema, allowance), allowance):
        if not type_.startswith(BY_ITSELF) and _names(type_, frozenset())[1]:
            results.add(UNDEFINED_IN_SCHEMA)
    return frozenset(results)


def _names(type_: str, defined: set[str] | frozenset[str]) -> tuple[str | None, bool]:
    """The first class of the program that a type names, and whether the fields of any are neither in the type nor in ``defined``."""
    first, undefined = None, False
    complete: set[str] = set()
    opened: list[str] = []  # for each open bracket, the class whose fields are in it
    for match in MARK.finditer(type_):
        mark = match[0]
        if mark == "[":
            opened.append(mark)
        elif mark == "]":
            complete.update(opened[-1:])
            del opened[-1:]
        elif not mark.startswith(OF_TORCH):
            name = mark.removesuffix(FIELDS)
            first = first or name
            if name != mark:
                opened.append(name)
            elif name not in complete and name not in defined:
                undefined = True
    return first, undefined


def _texts(types: Iterable[Any], allowance: Allowance) -> Iterator[str]:
    for type_ in types:
        if not isinstance(type_, str):
            raise TypeError
        allowance.spend(ENTRY + len(type_) // CHARACTERS)  # a pickle can contain the same text many times
        yield SPACES.sub("", type_)


def _argument_types(schema: Any, allowance: Allowance) -> Iterator[Any]:
    for _, arguments in _entries(schema):
        allowance.spend(ENTRY)
        for argument in _entries(arguments):
            allowance.spend(ENTRY * (1 + len(_entries(argument))))
            yield from (value for key, value in argument if isinstance(key, str) and key == "type")


def _entries(value: Any) -> tuple[Any, ...] | list[Any]:
    if not isinstance(value, (tuple, list)):
        raise TypeError
    return value
