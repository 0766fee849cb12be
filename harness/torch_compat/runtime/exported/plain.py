"""Plain values of the JSON of an exported program, each of one class and bounded."""

from __future__ import annotations

import math
from typing import Any

from torch_compat.pickles import brief

__all__ = ["integer", "number", "only"]

INT64 = 1 << 63
FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def integer(value: Any) -> int:
    """An integer of 64 bits.

    Raises:
        ValueError: it is none.
    """
    if value.__class__ is not int or not -INT64 <= value < INT64:
        raise ValueError(f"expected a 64-bit integer, found {brief(value, 40)}")
    return int(value)


def only(value: Any, kind: type) -> Any:
    """A value of one class.

    Raises:
        ValueError: it has another class.
    """
    if value.__class__ is not kind:
        raise ValueError(f"expected a value of type {kind.__name__}, found {brief(value, 40)}")
    return integer(value) if kind is int else value


def number(value: Any) -> float:
    """A float: a number, or the string for one that JSON lacks.

    Raises:
        ValueError: it is none.
        KeyError: it is another text.
    """
    if value.__class__ is str:
        return FLOATS[value]
    if value.__class__ is int:
        return float(integer(value))
    result: float = only(value, float)
    return result
