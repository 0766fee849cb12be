"""The differences between two schemas of one operator, in a closed vocabulary, to identify the change that breaks programs.

:mod:`torch_compat.operators.compatibility` answers as PyTorch does: whether the schemas are compatible, and the first reason if not.
A first reason can hide others: if the first argument has another name, a second argument added without a default is not mentioned.
An exception for an operator covers one change and no other, so :func:`differences` lists all differences. It is empty exactly if
the two schemas are the same schema to PyTorch (:func:`torch_compat.operators.breaks.same_schema`).

Arguments are paired by name. Of the remaining arguments, two in the same place between paired ones count as one renamed
argument if they are passed in the same way and the type of one accepts that of the other; otherwise one was removed, and one was added.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from torch_compat.operators.types import same, subtype

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from torch_compat.operators.schema import Argument, Schema
    from torch_compat.operators.types import SchemaType

__all__ = ["DIFFERENCES", "Difference", "differences", "in_words"]

Difference: TypeAlias = Literal[
    "removed",
    "overload-moved",
    "never-there",
    "upgrader-dropped",
    "unreadable",
    "varargs-changed",
    "argument-removed",
    "argument-added",
    "required-argument-added",
    "argument-renamed",
    "argument-moved",
    "keyword-only-changed",
    "type-widened",
    "type-changed",
    "list-size-changed",
    "default-added",
    "default-removed",
    "default-changed",
    "alias-annotation",
    "return-count-changed",
    "return-type-changed",
    "return-renamed",
]
"""A single difference. The first five concern the operator as a whole."""
DIFFERENCES: Final[dict[Difference, str]] = {
    "removed": "the overload was removed, and PyTorch's check accepts no other overload instead",
    "overload-moved": "the overload was removed, but PyTorch's check accepts another overload instead",
    "never-there": "an upgrader lists an operator that the previous release did not have",
    "upgrader-dropped": "its upgrader was removed",
    "unreadable": "one of the two texts is not a schema",
    "varargs-changed": "variadic arguments or returns were added or removed",
    "argument-removed": "an argument was removed",
    "argument-added": "an argument with a default was added",
    "required-argument-added": "an argument without a default was added",
    "argument-renamed": "an argument was renamed",
    "argument-moved": "an argument moved to another position",
    "keyword-only-changed": "a positional argument became keyword-only, or the reverse",
    "type-widened": "an argument accepts more types",
    "type-changed": "an argument accepts fewer types, or different types",
    "list-size-changed": "the size of a list changed",
    "default-added": "an argument now has a default",
    "default-removed": "an argument no longer has a default",
    "default-changed": "the default of an argument changed",
    "alias-annotation": "the alias annotations changed",
    "return-count-changed": "it returns more or fewer values",
    "return-type-changed": "the type of a return changed",
    "return-renamed": "the name of a return changed",
}
"""All differences, with their descriptions."""
assert DIFFERENCES.keys() == set(get_args(Difference))  # noqa: S101 - two lists of the same names


def in_words(change: Collection[Difference]) -> str:
    """Describe a change, with the names of its differences."""
    return f"{'; '.join(DIFFERENCES[difference] for difference in change)} ({', '.join(change)})"


def differences(old: Schema, new: Schema) -> tuple[Difference, ...]:
    """All differences between two schemas with the same name and overload, in the order of :data:`DIFFERENCES`."""
    results = {*_of_wholes(old, new), *_of_arguments(old.arguments, new.arguments)}
    return tuple(difference for difference in DIFFERENCES if difference in results)


def _of_wholes(old: Schema, new: Schema) -> Iterator[Difference]:
    if (old.is_vararg, old.is_varret) != (new.is_vararg, new.is_varret):
        yield "varargs-changed"
    if len(old.returns) != len(new.returns):
        yield "return-count-changed"
        return  # the returns cannot be paired
    for item, other in zip(old.returns, new.returns, strict=True):
        if item.name != other.name:
            yield "return-renamed"
        for difference in _of_pair(item, other):
            yield "return-type-changed" if difference in {"type-widened", "type-changed"} else difference


def _of_arguments(olds: Sequence[Argument], news: Sequence[Argument]) -> Iterator[Difference]:
    names = [new.name for new in news]
    left: list[tuple[list[Argument], list[Argument]]] = []  # unpaired arguments, place by place
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(
        None, [item.name for item in olds], names, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            for old, other in zip(olds[old_from:old_to], news[new_from:new_to], strict=True):
                yield from _of_pair(old, other)
        else:
            left.append((list(olds[old_from:old_to]), list(news[new_from:new_to])))
    elsewhere = {other.name: (others, other) for _, others in left for other in others}
    for ones, _ in left:
        for old in tuple(ones):
            if old.name in elsewhere:
                others, other = elsewhere.pop(old.name)
                ones.remove(old)
                others.remove(other)
                yield "argument-moved"
                yield from _of_pair(old, other)
    for ones, others in left:
        for old in ones:
            at = next((at for at, other in enumerate(others) if _alike(old, other)), None)
            if at is None:
                yield "argument-removed"
                continue
            yield "argument-renamed"
            yield from _of_pair(old, others[at])
            yield from map(_added, others[:at])
            del others[: at + 1]
        yield from map(_added, others)


def _added(argument: Argument) -> Difference:
    return "required-argument-added" if argument.default is None else "argument-added"


def _alike(argument: Argument, other: Argument) -> bool:
    """Whether two arguments with different names may be the same argument, renamed."""
    return (argument.kwarg_only, argument.is_out) == (other.kwarg_only, other.is_out) and (
        _takes(argument.type, other.type) or _takes(other.type, argument.type)
    )


def _takes(item: SchemaType, other: SchemaType) -> bool:
    return subtype(item.fake, other.fake)


def _of_pair(argument: Argument, other: Argument) -> Iterator[Difference]:
    """The differences between two paired arguments or returns, apart from the name."""
    if argument is other:
        return
    if argument.kwarg_only != other.kwarg_only:
        yield "keyword-only-changed"
    if argument.size != other.size:
        yield "list-size-changed"
    if not same(argument.type.fake, other.type.fake):
        yield "type-widened" if _takes(argument.type, other.type) else "type-changed"
    if argument.default is None or other.default is None:
        if argument.default is not other.default:
            yield "default-removed" if other.default is None else "default-added"
    elif not argument.default.same(other.default):
        yield "default-changed"
    if argument.alias is None or other.alias is None:
        if argument.alias is not other.alias:
            yield "alias-annotation"
    elif not argument.alias.same(other.alias):
        yield "alias-annotation"
