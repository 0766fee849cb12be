"""Whether one schema can replace another: PyTorch's own rules, argument by argument, with the reason.

:func:`backward` and :func:`forward` answer as 2.13.0 does (``new.is_backward_compatible_with(old)``,
``new.check_forward_compatible_with(old)``), and tests verify this. *Backward*: a program written for the old schema works with the
new one. *Forward*: a program written for the new schema works with the old one.

Both compare by position, up to the first out argument (keyword-only and written to), and then out argument by out
argument. In each pair, name, list size and alias annotation must be equal, a positional argument must not become keyword-only (the
reverse passes), and a default must not change.

============================================  ============================================================
backward                                      forward
============================================  ============================================================
an argument may accept more than before       an argument may accept less than before
a return may become more specific             returns are only counted
a default may be added                        a default may not be added
a new argument stands before the out          the same, and its default is not a list
arguments and has a default
no argument may be removed                    a removed argument is not noticed
============================================  ============================================================

Differences that neither check sees are listed as ``blind``: ``SymInt``, ``ScalarType``, ``Layout`` and ``MemoryFormat`` count as ``int``,
and everything that the right column leaves out.

Where the real check fails instead of answering (IndexError: the new schema has fewer out arguments, but enough others in their place; or
an out argument differs where another argument was removed), the result is that the schemas are not compatible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.types import BASE, NONE, STR, SchemaType, subtype
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch_compat.operators.schema import Alias, Argument, Default, Schema

__all__ = [
    "VARIABLE",
    "CompatibilityResult",
    "ProgramCall",
    "Serialized",
    "backward",
    "forward",
    "forward_call",
    "is_backward",
    "serialized",
]


class CompatibilityResult(NamedTuple):
    """The result of a check of a pair of schemas."""

    compatible: bool
    """Whether they are compatible."""
    reason: str | None = None
    """Why not; None if they are compatible."""
    blind: tuple[str, ...] = ()
    """Differences that the check ignores."""
    cause: str | None = None
    """A stable name for the cause: ``operator``, ``vararg``, ``returns-count``, ``arguments-removed``, ``return``,
    ``renamed``, ``size``, ``alias``, ``keyword-only``, ``type``, ``default-changed``, ``default-added``, ``no-default``,
    ``container-default``, ``out-count`` or ``out-missing``; for calls also ``too-many``, ``unknown-keyword``, ``moved`` and
    ``missing``."""
    argument: str | None = None
    """The argument at fault, if there is one."""


_YES: Final = CompatibilityResult(compatible=True)


class _No(Exception):  # noqa: N818 - ends a comparison, never visible outside
    def __init__(self, cause: str, reason: str, argument: str | None = None) -> None:
        self.verdict = (cause, reason, argument)


def backward(new: Schema, old: Schema) -> CompatibilityResult:
    """Check whether a program written for ``old`` works with ``new``, as 2.13.0 does."""
    if new is old:
        return _YES
    blind = _blind(new, old, is_forward=False)
    try:
        _backward(new, old)
    except _No as no:
        cause, reason, argument = no.verdict
        return CompatibilityResult(compatible=False, reason=reason, blind=blind, cause=cause, argument=argument)
    return CompatibilityResult(compatible=True, blind=blind) if blind else _YES


def is_backward(new: Schema, old: Schema) -> bool:
    """Like :func:`backward`, but without reasons."""
    if new.name != old.name or new.overload != old.overload or len(new.arguments) < len(old.arguments):
        return False
    try:
        _backward(new, old)
    except _No:
        return False
    return True


def forward(new: Schema, old: Schema) -> CompatibilityResult:
    """Check whether a program written for ``new`` works with ``old``, as 2.13.0 does."""
    if new is old:
        return _YES
    blind = _blind(new, old, is_forward=True)
    try:
        _forward(new, old)
    except _No as no:
        cause, reason, argument = no.verdict
        return CompatibilityResult(compatible=False, reason=reason, blind=blind, cause=cause, argument=argument)
    return CompatibilityResult(compatible=True, blind=blind) if blind else _YES


def _whole(new: Schema, old: Schema) -> None:
    """The first part of both checks."""
    if new.name != old.name or new.overload != old.overload:
        raise _No("operator", f"the operator is different: {new.operator} instead of {old.operator}")
    if new.is_vararg != old.is_vararg:
        raise _No("vararg", "it accepts any number of additional arguments" + ("" if new.is_vararg else " no longer"))
    if new.is_varret != old.is_varret:
        raise _No("vararg", "it returns any number of additional values" + ("" if new.is_varret else " no longer"))
    if len(new.returns) != len(old.returns):
        raise _No("returns-count", f"it returns {_values(len(new.returns))} instead of {_values(len(old.returns))}")


def _backward(new: Schema, old: Schema) -> None:
    _whole(new, old)
    new_arguments, old_arguments = new.arguments, old.arguments
    if len(new_arguments) < len(old_arguments):
        kept = {item.name for item in new_arguments}
        gone = ", ".join(repr(item.name) for item in old_arguments if item.name not in kept)
        what = (
            f"it no longer has {gone}"
            if gone
            else f"it has {count_of(len(new_arguments), 'argument')} instead of {len(old_arguments)}"
        )
        raise _No("arguments-removed", what)
    if new.returns != old.returns:
        for at, (new_return, old_return) in enumerate(zip(new.returns, old.returns, strict=True)):
            # The opposite direction: a return may become more specific, as an argument may become more general.
            _returned(new_return, old_return, f"return {at + 1}")
    old_out, new_out = _first_out(old_arguments), _first_out(new_arguments)
    for new_one, old_one in zip(new_arguments, old_arguments[:old_out], strict=False):
        if new_one is not old_one:
            _pair(new_one, old_one)
            _takes(new_one.type, old_one.type, old_one.name)
    for argument in new_arguments[old_out:new_out]:
        if argument.default is None:
            raise _No("no-default", f"the new argument {argument.name!r} of type {argument.type} has no default", argument.name)
    for at, old_one in enumerate(old_arguments[old_out:]):
        if new_out + at >= len(new_arguments):
            raise _No("out-missing", f"nothing replaces the out argument {old_one.name!r}", old_one.name)
        new_one = new_arguments[new_out + at]
        if new_one is not old_one:
            _pair(new_one, old_one)
            _takes(new_one.type, old_one.type, old_one.name)


def _forward(new: Schema, old: Schema) -> None:
    _whole(new, old)
    new_arguments, old_arguments = new.arguments, old.arguments
    old_out, new_out = _first_out(old_arguments), _first_out(new_arguments)
    news, olds = len(new_arguments) - new_out, len(old_arguments) - old_out
    if news != olds:
        raise _No("out-count", f"starting with the first out argument, it has {_arguments(news)} instead of {_arguments(olds)}")
    pairs = [*zip(new_arguments[:new_out], old_arguments[:old_out], strict=False)]
    for new_one, old_one in pairs:
        _forward_pair(new_one, old_one)
    for argument in new_arguments[old_out:new_out]:
        if argument.default is None:
            raise _No("no-default", f"the new argument {argument.name!r} of type {argument.type} has no default", argument.name)
        if argument.default.kind.startswith("list"):
            raise _No(
                "container-default",
                f"the default of the new argument {argument.name!r} is a list, and programs always store a list argument, even if it is the default",
                argument.name,
            )
    for new_one, old_one in zip(new_arguments[new_out:], old_arguments[old_out:], strict=True):
        _forward_pair(new_one, old_one)


def _forward_pair(new: Argument, old: Argument) -> None:
    if new is old:
        return
    _pair(new, old)
    if not subtype(new.type.fake, old.type.fake):
        raise _No("type", f"{old.name!r} takes {new.type} instead of {old.type}, a wider type", old.name)
    if new.default is not None and old.default is None:
        raise _No("default-added", f"{old.name!r} now has a default", old.name)


def _pair(new: Argument, old: Argument) -> None:
    """The check of two arguments in the same place in both directions, except for types and new defaults."""
    if new.name != old.name:
        raise _No("renamed", f"{new.name!r} replaces {old.name!r} at the same position", old.name)
    _shape(new, old, repr(old.name), old.name)
    if new.kwarg_only and not old.kwarg_only:
        raise _No("keyword-only", f"{old.name!r} can no longer be passed by position", old.name)
    if old.default is not None and (new.default is None or not new.default.same(old.default)):
        if new.default is None:
            raise _No("default-changed", f"{old.name!r} no longer has a default", old.name)
        values = f"{_stated(new.default)} instead of {_stated(old.default)}"
        raise _No("default-changed", f"the default of {old.name!r} is {values}", old.name)


def _shape(new: Argument, old: Argument, what: str, name: str) -> None:
    if new.size != old.size:
        raise _No("size", f"the list size of {what} is {_size(new)} instead of {_size(old)}", name)
    if new.alias is None or old.alias is None:
        if new.alias is not old.alias:
            raise _No("alias", f"{what} is annotated {_annotated(new.alias)} instead of {_annotated(old.alias)}", name)
    elif not new.alias.same(old.alias):
        raise _No("alias", f"{what} is annotated {_annotated(new.alias)} instead of {_annotated(old.alias)}", name)


def _returned(new: Argument, old: Argument, what: str) -> None:
    if new.name != old.name:
        raise _No("return", f"{what} has the name {new.name!r} instead of {old.name!r}")
    try:
        _shape(new, old, what, "")
    except _No as no:
        raise _No("return", no.verdict[1]) from None
    if not subtype(new.type.fake, old.type.fake):
        raise _No("return", f"{what} is {new.type} instead of {old.type}, which is not a subtype")


def _takes(new: SchemaType, old: SchemaType, name: str) -> None:
    if not subtype(old.fake, new.fake):
        raise _No("type", f"{name!r} takes {new} instead of {old}, a narrower or incompatible type", name)


def _first_out(arguments: Sequence[Argument]) -> int:
    for at, argument in enumerate(arguments):
        if argument.is_out:
            return at
    return len(arguments)


# ------------------------------------------------------------------------------------------------------------- what is not looked at


def _blind(new: Schema, old: Schema, *, is_forward: bool) -> tuple[str, ...]:
    """Differences between two schemas of one operator that PyTorch's check ignores."""
    notes: list[str] = []
    before: dict[str, Argument] = {}
    olds = old.arguments
    for at, argument in enumerate(new.arguments):
        other = olds[at] if at < len(olds) else None
        if argument is other:
            continue
        if other is None or argument.name != other.name:
            before = before or {other.name: other for other in olds}
            other = before.get(argument.name)
        if other is not None and argument is not other:
            notes.extend(_unseen(argument, other, f"argument {argument.name!r}"))
    if not is_forward:
        if new.arguments and new.arguments[-1].kwarg_only:
            notes.extend(_behind_out(new, old))
    elif len(new.arguments) < len(olds):
        now = {item.name for item in new.arguments}
        gone = [item.name for item in olds if item.name not in now]
        if gone:
            notes.append(f"{', '.join(map(repr, gone))} removed, which this check does not detect")
    for at, (argument, other) in enumerate(zip(new.returns, old.returns, strict=False)):
        if argument is not other:
            unseen = _unseen(argument, other, f"return {at + 1}")
            if (
                is_forward
                and not unseen
                and (argument.type is not other.type or argument.name != other.name or argument.alias != other.alias)
            ):
                unseen = [f"return {at + 1} is {argument} instead of {other}, and this check only counts returns"]
            notes.extend(unseen)
    return tuple(notes)


def _unseen(argument: Argument, other: Argument, what: str) -> list[str]:
    notes = []
    if argument.type is not other.type and argument.type.fake is other.type.fake:
        notes.append(f"{what} is {argument.type} instead of {other.type}, which this check treats as equal")
    if argument.default is not None and other.default is not None and "unstated" in {argument.default.kind, other.default.kind}:
        notes.append(f"one of the two releases does not record the default of {what}")
    return notes


def _behind_out(new: Schema, old: Schema) -> list[str]:
    """New arguments after the last one that is compared."""
    added = new.arguments[_first_out(new.arguments) + len(old.arguments) - _first_out(old.arguments) :]
    names = ", ".join(repr(item.name) for item in added if item.default is None)
    return [f"{names} added after the out arguments, which this check ignores"] if names else []


# ---------------------------------------------------------------------------------------------------------------- one call as written


class _Variable:
    """A value that a program computes."""

    def __repr__(self) -> str:
        return "VARIABLE"


VARIABLE: Final = _Variable()
"""In a call: a value that is not a constant. Lists and dictionaries are never constants, even if all their items are."""


class ProgramCall(NamedTuple):
    """A call as written in a program.

    None, bool, int, float, complex and str are constants; everything else is represented by :data:`VARIABLE`.
    """

    positional: tuple[object, ...] = ()
    keywords: Mapping[str, object] = {}


class Serialized(NamedTuple):
    """The arguments in the saved code of a call."""

    positional: tuple[str, ...]
    """The arguments passed by position. Additional arguments of a vararg operator have no name and appear as ``...``."""
    keywords: tuple[str, ...]
    """The arguments passed by name."""
    dropped: tuple[str, ...]
    """The arguments left out because they have their default value."""


def serialized(new: Schema, call: ProgramCall) -> Serialized:
    """The arguments of a call that are stated in the code saved by a release with this schema.

    The code omits trailing arguments (apart from out arguments) that have their default: because the program omits them, or because it
    passes an equal constant. A written list is not a constant, so it is stated even if the default is the same list; so is
    a number that stands for a list.
    """
    given = _bound(new, call)
    arguments = new.arguments
    if len(call.positional) > len(arguments):
        return Serialized(
            (*(argument.name for argument in arguments), *["..."] * (len(call.positional) - len(arguments))), (), ()
        )
    end = len(arguments)
    while end and arguments[end - 1].is_out:
        end -= 1
    outs = arguments[end:]
    while end and _is_default(arguments[end - 1], given):
        end -= 1
    stated = (*arguments[:end], *outs)
    return Serialized(
        tuple(argument.name for argument in stated if not argument.kwarg_only),
        tuple(argument.name for argument in stated if argument.kwarg_only),
        tuple(argument.name for argument in arguments[end : len(arguments) - len(outs)]),
    )


def forward_call(new: Schema, old: Schema, call: ProgramCall) -> CompatibilityResult:
    """Whether this particular call, saved by a release with ``new``, works and has the same meaning in a release with ``old``.

    Code does not name overloads, nor arguments passed by position. So a renamed or added argument does not matter as
    long as the call does not name it, and overloads are not compared.
    """
    blind = _blind(new, old, is_forward=True)
    try:
        _call(new, old, call)
    except _No as no:
        cause, reason, argument = no.verdict
        return CompatibilityResult(compatible=False, reason=reason, blind=blind, cause=cause, argument=argument)
    return CompatibilityResult(compatible=True, blind=blind)


def _call(new: Schema, old: Schema, call: ProgramCall) -> None:
    if new.name != old.name:
        raise _No("operator", f"the operator is different: {new.name} instead of {old.name}")
    given = _bound(new, call)
    message = serialized(new, call)
    mine = {argument.name: argument for argument in new.arguments}
    theirs = {argument.name: argument for argument in old.arguments}
    free = [argument for argument in old.arguments if not argument.kwarg_only]
    if len(message.positional) > len(free) and not old.is_vararg:
        raise _No(
            "too-many",
            f"it passes {count_of(len(message.positional), 'argument')} by position, but the older schema accepts {len(free)}",
            message.positional[-1],
        )
    reached = set()
    for name, other in zip(message.positional, free, strict=False):
        if name != other.name and name in theirs:
            raise _No("moved", f"{name!r} is at the position where the older schema has {other.name!r}", name)
        _fits(mine.get(name), other, given.get(name, VARIABLE))
        reached.add(other.name)
    for name in message.keywords:
        if name not in theirs:
            raise _No("unknown-keyword", f"it passes {name!r} by name, but the older schema has no such argument", name)
        if name in reached:
            raise _No("moved", f"it passes {name!r} by name, but the older schema already takes it by position", name)
        _fits(mine.get(name), theirs[name], given.get(name, VARIABLE))
        reached.add(name)
    for other in old.arguments:
        if other.name in reached:
            continue
        if other.default is None:
            raise _No("missing", f"it does not pass {other.name!r}, which the older schema requires", other.name)
        item = mine.get(other.name)
        if item is not None and item.default is not None and not item.default.same(other.default):
            values = f"{_stated(item.default)}, and {_stated(other.default)} in the older schema"
            raise _No("default-changed", f"it omits {other.name!r}, because the value is the default: {values}", other.name)


def _bound(schema: Schema, call: ProgramCall) -> dict[str, object]:
    """The values of a call by argument name; raises ValueError for an argument that the schema does not accept."""
    names = [argument.name for argument in schema.arguments]
    free = sum(not argument.kwarg_only for argument in schema.arguments)
    if len(call.positional) > free and not schema.is_vararg:
        raise ValueError(f"{schema.operator} takes {free} positional arguments, but the call passes {len(call.positional)}")
    given = dict(zip(names, call.positional, strict=False))
    for name, value in call.keywords.items():
        if name not in names:
            raise ValueError(f"{schema.operator} has no argument {name!r}")
        if name in given:
            raise ValueError(f"{schema.operator} got multiple values for {name!r}")
        given[name] = value
    missing = [argument.name for argument in schema.arguments if argument.default is None and argument.name not in given]
    if missing:
        raise ValueError(f"{schema.operator} is missing {', '.join(missing)}")
    return given


def _is_default(argument: Argument, given: Mapping[str, object]) -> bool:
    default = argument.default
    if default is None:
        return False
    if argument.name not in given:
        return True
    value = given[argument.name]
    kinds: dict[type, str] = {type(None): "none", bool: "bool", int: "int", float: "float", complex: "complex", str: "str"}
    fake = argument.type.fake
    inner = fake.contained[0] if fake.kind == "optional" else fake
    if inner.kind == "list" and value is not None:
        return False
    if default.kind == "device" and isinstance(value, str):
        return bool(value == default.value)
    return kinds.get(type(value)) == default.kind and bool(value == default.value)


_CONSTANT: Final = {
    bool: BASE["bool"],
    int: BASE["int"],
    float: BASE["float"],
    complex: BASE["complex"],
    str: STR,
    type(None): NONE,
}


def _fits(mine: Argument | None, other: Argument, value: object) -> None:
    """Refuse a value that the older argument does not accept: a constant by its own type, others by the type of the newer argument."""
    wanted = other.type.fake
    constant = _CONSTANT.get(type(value))
    if constant is not None and subtype(constant, wanted):
        return
    if mine is None or subtype(mine.type.fake, wanted):
        return
    raise _No(
        "type",
        f"{other.name!r} gets a value of type {constant or mine.type}, but the older schema accepts {other.type}",
        other.name,
    )


# --------------------------------------------------------------------------------------------------------------------------- wording


def _values(count: int) -> str:
    return count_of(count, "value")


def _arguments(count: int) -> str:
    return count_of(count, "argument")


def _size(argument: Argument) -> str:
    return "not given" if argument.size is None else str(argument.size)


def _annotated(alias: Alias | None) -> str:
    if alias is None:
        return "nothing"
    contained = "".join(f"{item}[]" for item in alias.contained)
    return f"{contained}{alias if alias.before else ''}"


def _stated(default: Default) -> str:
    return f"[{', '.join(map(repr, default.value))}]" if isinstance(default.value, tuple) else repr(default.value)
