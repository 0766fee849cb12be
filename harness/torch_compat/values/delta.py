"""Departures: where one JSON value differs from another, and the value that replaces it.

A reader's result that differs from the golden usually differs in a few numbers only, and these are the same for many
writers. Recording departures costs only the size of those numbers and loses nothing: ``depart(a, departures(a, b)) == b``.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Departures", "depart", "departures"]

Departures = tuple[tuple[tuple[str, ...], Any], ...]
"""``((paths, value), ...)``: the value at each of these paths. A path consists of the keys and indices from the root, each
preceded by ``/``; the root itself is ``""``. A path that begins with ``-`` refers to a missing key; its value is None."""


def departures(expected: Any, got: Any) -> Departures:
    """Where ``got`` departs from ``expected``; equal values in several places are given once.

    Raises:
        ValueError: a key contains ``/`` or is empty; no key of a result does.
    """
    results: list[tuple[str, Any]] = []
    _walk(expected, got, "", results)
    grouped: list[tuple[list[str], Any]] = []
    for path, value in results:
        paths = next((paths for paths, known in grouped if _equal(known, value)), None)
        if paths is None:
            grouped.append(([path], value))
        else:
            paths.append(path)
    return tuple((tuple(paths), value) for paths, value in grouped)


def depart(expected: Any, item: Departures) -> Any:
    """``expected`` with the departures applied; the arguments are not modified."""
    result = expected
    for paths, value in item:
        for path in paths:
            result = _put(result, path.split("/")[1:], value, gone=path.startswith("-"))
    return result


def _walk(expected: Any, got: Any, path: str, findings: list[tuple[str, Any]]) -> None:
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() & got.keys():
        for key in sorted(expected.keys() | got.keys()):
            if not key or "/" in key:
                raise ValueError(f"the key {key!r} cannot be part of a path")
            if key not in got:
                findings.append((f"-{path}/{key}", None))
            elif key not in expected:
                findings.append((f"{path}/{key}", got[key]))
            else:
                _walk(expected[key], got[key], f"{path}/{key}", findings)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (item, other) in enumerate(zip(expected, got, strict=True)):
            _walk(item, other, f"{path}/{index}", findings)
    elif not _equal(expected, got):
        findings.append((path, got))


def _equal(item: Any, other: Any) -> bool:
    """Equality of JSON values, in which true is not 1 and -0.0 is not 0.0."""
    if isinstance(item, dict) and isinstance(other, dict):
        return item.keys() == other.keys() and all(_equal(item[key], other[key]) for key in item)
    if isinstance(item, list) and isinstance(other, list):
        return len(item) == len(other) and all(map(_equal, item, other))
    if isinstance(item, float) and isinstance(other, float) and math.copysign(1, item) != math.copysign(1, other):
        return False
    return type(item) is type(other) and bool(item == other)


def _put(whole: Any, steps: list[str], value: Any, *, gone: bool) -> Any:
    if not steps:
        return value
    step, *rest = steps
    if isinstance(whole, dict):
        if gone and not rest:
            return {key: item for key, item in whole.items() if key != step}
        return {**whole, step: _put(whole.get(step), rest, value, gone=gone)}
    index = int(step)
    return [*whole[:index], _put(whole[index], rest, value, gone=gone), *whole[index + 1 :]]
