"""Integers in ``model.json``, in which protobuf writes 64-bit integers as strings."""

from __future__ import annotations

from typing import Any

__all__ = ["INT64", "json_integer"]

INT64 = 1 << 63
LONGEST_INTEGER = 20  # characters of a 64-bit integer


def json_integer(value: Any) -> int:
    """Parse an integer of ``model.json``: protobuf writes 64-bit integers as strings.

    Raises:
        ValueError: the value is not an integer.
    """
    if value.__class__ is int and abs(value) < INT64:
        return int(value)
    if value.__class__ is str and len(value) <= LONGEST_INTEGER:
        return int(value)
    raise ValueError(f"expected a 64-bit integer, found {value!r:.40}")
