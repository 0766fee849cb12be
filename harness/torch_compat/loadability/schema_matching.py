"""Determines whether an operator call in TorchScript source matches a schema of a release.

A call is refused only if an argument of a known kind can never be converted to the type (see :mod:`torch_compat.torchscript.scanner`). A
call that matches may therefore still be refused by the release, because of the types of its arguments; a call that does not match never
loads.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from torch_compat.torchscript.calls import OPTIONAL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from torch_compat.operators.call_signature import CallSignature
    from torch_compat.torchscript.calls import CallShape

__all__ = ["fits", "takes"]

NOTHING: Mapping[str, Collection[str]] = MappingProxyType({})
VARIABLE = re.compile(r"t\d*\Z|Any\Z|AnyType\Z|.*\bUnion\b")
NONES = frozenset({"None", "NoneType", "Generator"})  # before it was optional, a generator argument was always None
BECOMES = {
    "i": re.compile(
        r"(?:int|SymInt)(?:\[\d+\])?\Z|number\Z|Scalar\Z|ScalarType\Z|Layout\Z|MemoryFormat\Z|QScheme\Z|DeviceIndex\Z|Stream\Z"
    ),
    "f": re.compile(r"float(?:\[\d+\])?\Z|number\Z|Scalar\Z"),
    "b": re.compile(r"(?:bool|SymBool)(?:\[\d+\])?\Z"),
    "c": re.compile(r"complex\Z|number\Z|Scalar\Z"),
    "s": re.compile(r"str\Z|string\Z|Device\Z|Dimname\Z|Layout\Z|MemoryFormat\Z|ScalarType\Z"),
}
"""The types that every release converts an argument of a kind to. A list of fixed length accepts one value for all
elements."""


def takes(type_: str, kind: str, conversions: Mapping[str, Collection[str]] = NOTHING) -> bool:
    """Whether an argument of this kind may be passed for a parameter of this type.

    Parameters:
        conversions: further types to which the release converts a kind.
    """
    if kind in OPTIONAL.values():  # in some places, the compiler knows whether it is None
        return takes(type_, kind.lower(), conversions) or takes(type_, "N", conversions)
    return kind == "x" or _always(type_, kind) or type_.rstrip("?") in conversions.get(kind, ())


@lru_cache(maxsize=4096)
def _always(type_: str, kind: str) -> bool:
    """Whether every release accepts it."""
    if VARIABLE.match(type_.rstrip("?")):
        return True
    if kind == "N":
        return type_.endswith("?") or type_ in NONES or type_.startswith("Optional")
    if kind == "l":
        return "[" in type_
    return BECOMES[kind].match(type_.rstrip("?")) is not None


def fits(call: CallShape, schema: CallSignature, conversions: Mapping[str, Collection[str]] = NOTHING) -> bool:
    """Whether a call may match this schema."""
    if schema.vararg:
        return True
    places = [argument for argument in schema.arguments if not argument.kwarg_only]
    kinds = call.positional
    for at, kind in enumerate(kinds):
        if at >= len(places):
            return False
        if not takes(places[at].type, kind, conversions):
            # the elements of a list in last position may be passed as separate arguments
            last = at == len(places) - 1 and places[at].type.endswith("[]")
            if not last or not all(takes(places[at].type[:-2], item, conversions) for item in kinds[at:]):
                return False
            break
    # By position, not by name: two arguments of static_runtime::clamp_nan_to_num have the same name.
    left = [*places[len(kinds) :], *(argument for argument in schema.arguments if argument.kwarg_only)]
    for name, kind in call.keywords:
        wanted = next((argument for argument in left if argument.name == name), None)
        if wanted is None or not takes(wanted.type, kind, conversions):
            return False
        left.remove(wanted)
    return all(argument.default is not None for argument in left)
