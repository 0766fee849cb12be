"""Generated calls with one argument moved to a limit of its range, or just beyond it.

Integers, lists of integers, optional integers, layouts, memory formats, numbers and names of modes: zero, negative numbers, each size of the
tensors and one more, numbers too large for memory; lists that are too short or too long, have repeated or negative members, or do not add up.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch_compat.proving.values import Maker

__all__ = ["out_of_range"]

SETTINGS: Final = frozenset(
    {"type1", "type2", "from_", "to", "compute_mode", "mask_type", "a", "b", "sorted", "dtype", "device", "generator"}
)
"""Arguments that are not changed: codes whose wrong values fail an assertion in torch, and arithmetic operands."""
LIMITLESS: Final = re.compile(
    "^(__.*__|add|sub|mul|div|eq|ne|[lg][te]|pow|floordiv|remainder|mathremainder|floor_divide|true_divide|neg|abs|bitwise_.*|logical_.*|gcd|lcm|factorial|.*shift.*)_?$"
)
"""Operators whose integers are operands, so that every value is equally valid."""
LARGE: Final = (100, 1000, 2**62)
REALS: Final = ("0.0", "-0.5", "1.0", "2.0", "nan", "inf", "-inf")
NAMES: Final = ("", "bad", "mean", "none", "floor", "Linear", "constant", "reflect", "circular", "same", "xy", "U")
WHOLE: Final = frozenset({"int", "SymInt"})


def out_of_range(make: Maker, request: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the call with one argument at or beyond a limit; the call itself if no argument can be moved.

    Parameters:
        request: a call from :func:`torch_compat.proving.arguments.make_call`.
        schema: its schema, from :func:`torch_compat.proving.arguments.prepared`.
    """
    if LIMITLESS.match(schema["name"].split("::")[1]):
        return request
    places = [(where, at, kind) for where, at, kind in _places(request, schema) if kind is not None]
    if not places:
        return request
    request = copy.deepcopy(request)
    sizes = _sizes(request)
    at, name, kind = make.pick(places)
    where: Any = request["keywords"] if at < 0 else request["args"]
    key: Any = name if at < 0 else at
    where[key] = _moved(make, where[key], kind, sizes)
    request["malformed"] = name
    return request


def _places(request: dict[str, Any], schema: dict[str, Any]) -> list[tuple[int, str, str | None]]:
    """Return the movable arguments by position (-1 for a keyword) and name, with the kind of values to use."""
    graph = bool(request.get("graph"))
    results: list[tuple[int, str, str | None]] = []
    at = 0
    for argument in schema["arguments"]:
        name = argument["name"]
        if argument["out"] and not graph:
            continue
        if argument["keyword"] and not graph:
            if name in request["keywords"]:
                results.append((-1, name, _kind(argument, request["keywords"][name])))
            continue
        if at < len(request["args"]):
            results.append((at, name, _kind(argument, request["args"][at])))
        at += 1
    return results


def _kind(argument: dict[str, Any], value: Any) -> str | None:
    """``int``, ``list``, ``number``, ``str``, or the name of an enumeration; None if the argument is not moved."""
    real = (
        argument["real"].removeprefix("Optional[").rstrip("]") if argument["real"].startswith("Optional[") else argument["real"]
    )
    if argument["name"] in SETTINGS or argument["out"]:
        return None
    if argument["name"] in {"layout", "memory_format"}:
        return str(argument["name"])
    if real in WHOLE and (value is None or (isinstance(value, int) and not isinstance(value, bool))):
        return "int"
    if real.startswith(("List[int", "List[SymInt")):
        return "list"
    if real in {"float", "number"} and not isinstance(value, bool):
        return str(real)
    return "str" if real == "str" and isinstance(value, str) else None


def _sizes(request: dict[str, Any]) -> list[int]:
    """Return the sizes and numbers of dimensions of a call's tensors, and the lengths of its lists and strings."""
    results: set[int] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict) and "tensor" in value:
            results.update(value["tensor"]["shape"])
            results.add(len(value["tensor"]["shape"]))
        elif isinstance(value, list | str):
            results.add(len(value))
            for item in value if isinstance(value, list) else ():
                walk(item)

    walk(request["args"])
    return sorted(results) or [0]


def _integer(make: Maker, value: int | None, sizes: list[int]) -> int:
    """Return an integer at or beyond a limit."""
    near = (0, -1) if value is None else (value + 1, value - 1, -value - 1, 2 * value)
    size = make.pick(sizes)
    limits = (0, -1, -2, size, size + 1, size - 1, -size, -size - 1)
    result = int(make.pick(make.pick((near, limits, limits, limits, LARGE))))
    return max(-(2**63), min(result, 2**63 - 1))


def _moved(make: Maker, value: Any, kind: str, sizes: list[int]) -> Any:
    if kind == "int":
        return _integer(make, value, sizes)
    if kind == "layout":
        return make.pick((0, 0, 1, 2))
    if kind == "memory_format":
        return make.pick((0, 1, 2, 3))
    if kind in {"number", "float"}:
        return make.pick((*((0, -1) if kind == "number" else ()), *({"float": real} for real in REALS)))
    if kind == "str":
        return make.pick((*NAMES, value.upper(), value.lower()))
    return _list(make, value, sizes)


def _list(make: Maker, value: Any, sizes: list[int]) -> list[int]:
    """Return a list with another length, or with one item at or beyond a limit or repeated."""
    given = [item for item in value if isinstance(item, int)] if isinstance(value, list) else []
    if not given:
        return [_integer(make, None, sizes) for _ in range(make.integer(1, 3))]
    way = make.pick(("member", "member", "member", "shorter", "longer", "repeated", "negative", "empty", "unknown", "one"))
    at = make.integer(0, len(given) - 1)
    if way == "member":
        given[at] = _integer(make, given[at], sizes)
    elif way == "shorter":
        del given[at]
    elif way == "longer":
        given.insert(at, make.pick((0, 1, -1, given[at])))
    elif way == "repeated":
        given[(at + 1) % len(given)] = given[at]
        given = given if len(given) > 1 else given * 2
    elif way == "negative":
        given = [-1 - item for item in given]
    elif way == "unknown":
        given[at] = -1
        given = [*given, -1] if make.flag() else given
    elif way == "one":
        given = [given[at]] * make.integer(1, len(given) + 1)
    else:
        given = []
    return given
