"""Calls of operators as stored in files."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KINDS", "OPTIONAL", "Call", "CallShape"]

KINDS = {"None": "N", "int": "i", "float": "f", "bool": "b", "str": "s", "complex": "c", "list": "l"}
"""The letters of the kinds that are shown."""
OPTIONAL = {f"Optional[{word}]": KINDS[word].upper() for word in ("int", "float", "bool", "str", "complex")}
"""The letters of the kinds that may also be None."""
MOST_SHOWN = 64  # arguments of a call
LONGEST_NAME = 200  # characters of a name that is shown


class Call(NamedTuple):
    """One shape in which an operator is called.

    Attributes:
        name: qualified, without overload: ``aten::add``.
        overload: ``Tensor``; empty for the overload without a name; None if the file does not store overloads, as in TorchScript source.
        positional: number of positional arguments; None if the file does not state it (bytecode before 6).
        keywords: names of the keyword arguments.
    """

    name: str
    overload: str | None
    positional: int | None
    keywords: tuple[str, ...]


class CallShape(NamedTuple):
    """One shape in which TorchScript source calls an operator, with the visible kinds of arguments.

    Attributes:
        name: ``aten::add``.
        positional: the kinds of the positional arguments, one letter each; ``x`` if the kind is not visible.
        keywords: name and kind of the keyword arguments.
    """

    name: str
    positional: str
    keywords: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        words = {"x": "_", **{letter: word for word, letter in KINDS.items()}}
        words |= {letter: f"{words[letter.lower()]}?" for letter in OPTIONAL.values()}
        given = [words[kind] for kind in self.positional[:MOST_SHOWN]]
        given += [f"{name[:LONGEST_NAME]}={words[kind]}" for name, kind in self.keywords[:MOST_SHOWN]]
        if max(len(self.positional), len(self.keywords)) > MOST_SHOWN:
            given.append("...")
        return f"{self.name[:LONGEST_NAME]}({', '.join(given)})"
