"""Fast paths for the operators that loops call most, for the usual classes of arguments.

An operator selects its overload by the class of its first argument and matches arguments by name; for a list of numbers this costs several
times as much as the operation. Here the usual case takes one comparison of classes; every other case, and every error, is left to the
operator itself. All releases agree about the usual cases, so they do not depend on a horizon.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.runtime.language.called import INT64, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["QUICK", "Quick"]

SHORT: Final = 64  # length of a string that is compared without paying steps
KEYS: Final = frozenset({int, str})
NUMBERS: Final = frozenset({int, float})


class Quick(NamedTuple):
    """The replacement of an operator in a loop.

    Attributes:
        arguments: the required number of arguments, all positional.
        made: makes the function from the operator, which is its fallback.
    """

    arguments: int
    made: Callable[[Callable[..., Any]], Callable[..., Any]]


def _append(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def append(a: Any, item: Any) -> Any:
        if a.__class__ is list:
            a.append(item)
            return a
        return otherwise(a, item)

    return append


def _pop(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def pop(a: Any) -> Any:
        return a.pop() if a.__class__ is list and a else otherwise(a)

    return pop


def _set_item(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def set_item(a: Any, key: Any, value: Any) -> Any:
        if key.__class__ is int and a.__class__ is list and 0 <= key < len(a):
            a[key] = value
            return a
        if a.__class__ is dict and key.__class__ in KEYS:
            a[key] = value
            return None
        return otherwise(a, key, value)

    return set_item


def _contains(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def contains(a: Any, item: Any) -> Any:
        return item in a if a.__class__ is dict and item.__class__ in KEYS else otherwise(a, item)

    return contains


def _arithmetic(calculate: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def made(otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def arithmetic(a: Any, b: Any) -> Any:
            kind = a.__class__
            if kind is not b.__class__ or kind not in NUMBERS:
                return otherwise(a, b)
            value = calculate(a, b)
            return value if kind is float or -INT64 <= value < INT64 else wrapped(value)

        return arithmetic

    return made


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def made(otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def comparison(a: Any, b: Any) -> Any:
            kind = a.__class__
            return compare(a, b) if kind is b.__class__ and kind in NUMBERS else otherwise(a, b)

        return comparison

    return made


def _equality(compare: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def made(otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def equality(a: Any, b: Any) -> Any:
            kind = a.__class__
            if kind is b.__class__ and (kind in NUMBERS or (kind is str and len(a) <= SHORT)):
                return compare(a, b)
            return otherwise(a, b)

        return equality

    return made


QUICK: Final[dict[str, Quick]] = {
    "aten::append": Quick(2, _append),
    "aten::pop": Quick(1, _pop),
    "aten::_set_item": Quick(3, _set_item),
    "aten::__contains__": Quick(2, _contains),
    "aten::add": Quick(2, _arithmetic(operator.add)),
    "aten::sub": Quick(2, _arithmetic(operator.sub)),
    "aten::mul": Quick(2, _arithmetic(operator.mul)),
    "aten::lt": Quick(2, _comparison(operator.lt)),
    "aten::le": Quick(2, _comparison(operator.le)),
    "aten::gt": Quick(2, _comparison(operator.gt)),
    "aten::ge": Quick(2, _comparison(operator.ge)),
    "aten::eq": Quick(2, _equality(operator.eq)),
    "aten::ne": Quick(2, _equality(operator.ne)),
}
