"""Whether a call of an operator, as TorchScript source writes it, fits a schema of a release.

What an argument of a known kind can never become is refused (see :mod:`torch_compat.torchscript.scanner`). So a call that fits may still be
refused by the release, because of the types of what it is given, and one that does not fit never loads.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from torch_compat.operators.call_signature import CallSignature
    from torch_compat.torchscript.calls import CallShape

__all__ = ["fits", "takes"]

NOTHING: Mapping[str, Collection[str]] = MappingProxyType({})
VARIABLE = re.compile(r"t\d*\Z|Any\Z|AnyType\Z|.*\bUnion\b")
NONES = frozenset({"None", "NoneType", "Generator"})  # a generator was never anything else, before it was optional
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
    """Whether an argument of this kind may be given where this type is asked for.

    Parameters:
        conversions: further types that a kind becomes, in the release in question.
    """
    return kind == "x" or _always(type_, kind) or type_.rstrip("?") in conversions.get(kind, ())


@lru_cache(maxsize=4096)
def _always(type_: str, kind: str) -> bool:
    """Whether every release takes it."""
    if VARIABLE.match(type_.rstrip("?")):
        return True
    if kind == "N":
        return type_.endswith("?") or type_ in NONES or type_.startswith("Optional")
    if kind == "l":
        return "[" in type_
    return BECOMES[kind].match(type_.rstrip("?")) is not None


def fits(call: CallShape, schema: CallSignature, conversions: Mapping[str, Collection[str]] = NOTHING) -> bool:
    """Whether a call may be a call of this schema."""
    if schema.vararg:
        return True
    places = [argument for argument in schema.arguments if not argument.kwarg_only]
    kinds = call.positional
    for at, kind in enumerate(kinds):
        if at >= len(places):
            return False
        if not takes(places[at].type, kind, conversions):
            # the elements of a list that comes last may be given one by one
            last = at == len(places) - 1 and places[at].type.endswith("[]")
            if not last or not all(takes(places[at].type[:-2], one, conversions) for one in kinds[at:]):
                return False
            break
    # By place, not by name: static_runtime::clamp_nan_to_num names two arguments alike.
    left = [*places[len(kinds) :], *(argument for argument in schema.arguments if argument.kwarg_only)]
    for name, kind in call.keywords:
        wanted = next((argument for argument in left if argument.name == name), None)
        if wanted is None or not takes(wanted.type, kind, conversions):
            return False
        left.remove(wanted)
    return all(argument.default is not None for argument in left)
