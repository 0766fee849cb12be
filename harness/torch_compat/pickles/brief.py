"""Text of any value of a pickle or of a JSON document, bounded before it is built.

``repr`` builds the whole text before it can be cut: sixty tuples that share each other have a text of 2**60 characters, a list nested 2,000
deep exhausts the stack, and Python refuses to write integers of more than 4,300 digits.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

__all__ = ["brief", "cut"]

PLAIN = frozenset({bool, float, complex, type(None)})
MOST_BITS = 256  # of an integer that is written in digits
BRACKETS: dict[str, tuple[str, str]] = {
    "list": ("[", "]"), "Deque": ("[", "]"), "deque": ("[", "]"), "tuple": ("(", ")"), "Size": ("(", ")"), "set": ("{", "}"),
    "frozenset": ("frozenset({", "})"), "dict": ("{", "}"), "Dict": ("{", "}"),
}  # fmt: skip


def cut(text: str, longest: int = 80) -> str:
    """A text, truncated if it is longer."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def brief(value: Any, longest: int = 80) -> str:
    """The ``repr`` of a value, truncated after ``longest`` characters; work and memory are proportional to this length.

    Never recurses and never raises: shared, cyclic and deeply nested values and integers of any size have a text. It contains no control
    characters.
    """
    out: list[str] = []
    length = 0
    left: list[tuple[str | None, Any]] = [(None, value)]
    while left and length <= longest:
        text, item = left.pop()
        if text is None:
            text, inner = _begun(item, longest - length + 1)
            left.extend(reversed(inner))
        out.append(text)
        length += len(text)
    return cut("".join(out), longest)


def _begun(value: Any, room: int) -> tuple[str, list[tuple[str | None, Any]]]:
    """The start of a value's text, and the rest: texts, and values still to be converted to text."""
    kind = value.__class__
    if kind is str or kind is bytes or kind is bytearray:
        return repr(value[:room]), []
    if kind in PLAIN:
        return repr(value), []
    if kind is int:
        bits = value.bit_length()
        return (str(value) if bits <= MOST_BITS else f"int of {bits} bits"), []
    if kind is slice or kind is range:
        return f"{kind.__name__}(", _listed([value.start, value.stop, value.step], ")")
    brackets = BRACKETS.get(kind.__name__) if isinstance(value, list | tuple | set | frozenset | dict) else None
    if brackets is not None:
        first, last = brackets
        if isinstance(value, dict):
            return first, _paired(islice(value.items(), room), last)
        items = list(islice(value, room))
        return first, _listed(items, ",)" if kind is tuple and len(items) == 1 else last)
    slots = getattr(kind, "__slots__", ()) if kind.__module__.startswith("harness.") else ()
    if slots:
        parts: list[tuple[str | None, Any]] = []
        for name in slots:
            parts += [(f"{', ' if parts else ''}{name}=", None), (None, getattr(value, name, None))]
        return f"{kind.__name__}(", [*parts, (")", None)]
    return f"<{kind.__name__}>", []


def _listed(items: list[Any], last: str) -> list[tuple[str | None, Any]]:
    parts: list[tuple[str | None, Any]] = []
    for item in items:
        if parts:
            parts.append((", ", None))
        parts.append((None, item))
    return [*parts, (last, None)]


def _paired(items: Any, last: str) -> list[tuple[str | None, Any]]:
    parts: list[tuple[str | None, Any]] = []
    for key, item in items:
        if parts:
            parts.append((", ", None))
        parts += [(None, key), (": ", None), (None, item)]
    return [*parts, (last, None)]
