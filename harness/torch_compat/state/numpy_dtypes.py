"""Build the numpy dtypes that a pickle describes through :mod:`torch_compat.arrays`, with limits on all their parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torch_compat.arrays import nested_dtype, record_dtype, sized_dtype
from torch_compat.pickles import NumpyDtype

if TYPE_CHECKING:
    import numpy as np

__all__ = ["numpy_dtype"]

# What may be passed to np.dtype; a file may contain anything. Sizes of strings are limited by the data that must be present.
PLAIN_CODE = re.compile(r"[biufc]\d{1,2}|[SUV][1-9]\d{0,8}")
TIME_CODE = re.compile(r"[mM]8")
UNITS = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"})
LARGEST_UNIT = 1 << 31  # of the multiple of a time unit, as 25 in 25 s
DEEPEST = 20
MOST_PARTS = 10_000  # nested fields, each occurrence counted: numpy visits all of them to compare two dtypes


def numpy_dtype(value: NumpyDtype | None) -> np.dtype[Any] | None:
    """The dtype that a description names; None for objects, and for unknown or impossible dtypes."""
    if value is None or value.__class__ is not NumpyDtype:
        return None
    try:
        return _Builder().dtype(value, 0)
    except (TypeError, ValueError, LookupError, OverflowError):
        return None


class _Builder:
    """Converts each description into a dtype once, even if it is shared."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[np.dtype[Any] | None, int]] = {}  # keyed by identity: the dtype and its number of parts

    def dtype(self, value: Any, depth: int) -> np.dtype[Any] | None:
        return self._counted(value, depth)[0]

    def _counted(self, value: Any, depth: int) -> tuple[np.dtype[Any] | None, int]:
        if value.__class__ is not NumpyDtype or depth > DEEPEST or value.order not in "<>|=":
            return None, 0
        result = self._made.get(id(value)) if depth else None
        if result is None:
            result = self._make(value, depth)
            if result[1] > MOST_PARTS:
                raise ValueError(f"has more than {MOST_PARTS} fields")
            if depth:  # the outermost is handled differently: its sub-dtype does not count
                self._made[id(value)] = result
        return result

    def _make(self, value: NumpyDtype, depth: int) -> tuple[np.dtype[Any] | None, int]:
        state: tuple[Any, ...] = value.state or ()
        if TIME_CODE.fullmatch(value.code):
            return _time_dtype(value, state), 1
        if not PLAIN_CODE.fullmatch(value.code):
            return None, 0
        if len(state) > 2 and state[2] is not None:
            return self._fields(state, depth)
        if depth and state and state[0] is not None:  # fields that are arrays themselves
            inner, shape = state[0]
            base, parts = self._counted(inner, depth + 1)
            shape = (shape,) if shape.__class__ is int else shape
            if base is None or shape.__class__ is not tuple:
                return None, 0
            return nested_dtype(base, shape), parts + 1
        return sized_dtype(value.order, value.code), 1

    def _fields(self, state: tuple[Any, ...], depth: int) -> tuple[np.dtype[Any] | None, int]:
        """A record dtype, from sub-dtype, names, fields and size."""
        names, fields, size = state[1:4]
        if names.__class__ is not tuple or not isinstance(fields, dict) or size.__class__ is not int:
            return None, 0
        findings, total = [], 1
        for name in names:
            stated = fields[name]
            if stated.__class__ is not tuple or len(stated) < 2:
                return None, 0
            item, parts = self._counted(stated[0], depth + 1)
            if item is None:
                return None, 0
            total += parts
            findings.append((name, item, stated[1]))
        return record_dtype(findings, size), total


def _time_dtype(value: NumpyDtype, state: tuple[Any, ...]) -> np.dtype[Any] | None:
    """``datetime64`` and ``timedelta64``: the unit is at the end of the state, as ``({}, (unit, number, 1, 1))``."""
    last = state[-1] if state else None
    unit = last[1] if last.__class__ is tuple and len(last) == 2 else None
    if unit.__class__ is not tuple or len(unit) != 4:
        return sized_dtype(value.order, value.code)
    name = unit[0].decode("ascii") if unit[0].__class__ is bytes else unit[0]
    if name not in UNITS or unit[1].__class__ is not int or not 0 < unit[1] < LARGEST_UNIT:
        return None
    return sized_dtype(value.order, value.code if name == "generic" else f"{value.code}[{unit[1]}{name}]")
