"""Metadata of ExecuTorch programs (``.pte``), which are identified but never loaded.

A flatbuffer with the file identifier ``ET12`` (the two digits have been 12 in every published release); its tables, as
``schema/program.fbs`` of ExecuTorch has them, with the places of their fields::

    Program        0 version (uint32), 1 execution_plan ([ExecutionPlan])
    ExecutionPlan  0 name (text), 6 operators ([Operator]), 7 delegates ([BackendDelegate])
    Operator       0 name (text: aten::add), 1 overload (text: out)
    BackendDelegate  0 id (text: XnnpackBackend)

Every offset is checked against the length of the file, and the amount read from one file is bounded.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from torch_compat.escapes import escaped
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.archive.base import Raw

__all__ = ["described"]

MOST = 4096  # entries of all lists together
LONGEST = 200  # bytes of a name
SHOWN = 12  # operators in the description
PLANS, NAME, OVERLOAD, OPERATORS, DELEGATES = 1, 0, 1, 6, 7


def described(raw: Raw) -> str:
    """Describe version, methods, operators and delegates in words, or the damage if the file is damaged."""
    try:
        return _Reader(raw).described()
    except (struct.error, IndexError, ValueError) as error:
        return f"its tables are damaged: {error}"


class _Reader:
    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.left = MOST

    def described(self) -> str:
        """In words."""
        root = self._u32(0)
        plans = list(self._tables(root, PLANS))
        operators = sorted({self._operator(table) for plan in plans for table in self._tables(plan, OPERATORS)})
        delegates = sorted({self._text(table, NAME) for plan in plans for table in self._tables(plan, DELEGATES)})
        at = self._field(root, 0)
        methods = ", ".join(self._text(plan, NAME) for plan in plans[:SHOWN]) or "none"
        shown = ", ".join(operators[:SHOWN]) + (f" and {len(operators) - SHOWN} more" if len(operators) > SHOWN else "")
        message = (
            f"version {self._u32(at) if at else 0}; methods: {methods}; {count_of(len(operators), 'operator')}: {shown or 'none'}"
        )
        return f"{message}; delegates: {', '.join(delegates[:SHOWN])}" if delegates else message

    def _operator(self, table: int) -> str:
        name, overload = self._text(table, NAME), self._text(table, OVERLOAD)
        return f"{name}.{overload}" if overload else name

    def _part(self, at: int, size: int) -> bytes:
        if not 0 <= at <= len(self.raw) - size:
            raise ValueError(f"a table at {at} extends past the end of the file")
        return bytes(self.raw[at : at + size])

    def _u32(self, at: int) -> int:
        result: int = struct.unpack("<I", self._part(at, 4))[0]
        return result

    def _field(self, table: int, number: int) -> int:
        """The offset of a field; 0 if the table lacks it."""
        vtable = table - int(struct.unpack("<i", self._part(table, 4))[0])
        size = int(struct.unpack("<H", self._part(vtable, 2))[0])
        place = 4 + 2 * number
        if place + 2 > size:
            return 0
        offset = int(struct.unpack("<H", self._part(vtable + place, 2))[0])
        return table + offset if offset else 0

    def _tables(self, table: int, number: int) -> Iterator[int]:
        at = self._field(table, number)
        if not at:
            return
        start = at + self._u32(at)
        count = self._u32(start)
        self.left -= count
        if self.left < 0:
            raise ValueError(f"it has more than {MOST} entries")
        for place in range(start + 4, start + 4 + 4 * count, 4):
            yield place + self._u32(place)

    def _text(self, table: int, number: int) -> str:
        at = self._field(table, number)
        if not at:
            return ""
        start = at + self._u32(at)
        return escaped(self._part(start + 4, min(self._u32(start), LONGEST)).decode("utf-8", "replace"))
