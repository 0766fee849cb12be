"""What TorchScript source asks of the release that compiles it: calls of operators, words of the language, types of returns.

A release compiles the source when it loads the archive, and refuses the archive where it does not know an operator, an overload
or a word. Calls of operators are read by :mod:`torch_compat.formats.source`; here is what else a release may not know.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.formats.source import KINDS, CallShape, called

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KINDS", "CallShape", "Source", "bases", "has_word", "scan"]


class Source(NamedTuple):
    """What one file of source asks for.

    Attributes:
        shapes: the distinct shapes in which operators are called.
        code: the text without the content of its string constants and comments, for :func:`has_word` and :func:`bases`.
        whole_floats: a function that is declared to return a float returns an int constant: a float that was written without a point.
        none_listed: a list of tensors holds None without calling it optional.
    """

    shapes: frozenset[CallShape]
    code: str
    whole_floats: bool
    none_listed: bool


TEXT = re.compile(r""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?|\#[^\n]*+""", re.DOTALL)
BASE = re.compile(r"^class [^\s(]+\(([^)\s]+)\)", re.MULTILINE)
FUNCTION = re.compile(r"^( *)def ", re.MULTILINE)
RETURN = re.compile(r"^ *return (.+)$", re.MULTILINE)
NAMED = re.compile(r"^ *(_\d+) = (.+)$", re.MULTILINE)
LISTED = re.compile(r"\[([^\[\]]*+)\]")
NONE = "annotate(Tensor, None)"
INT = re.compile(r"-?\d+\Z")


def scan(source: str) -> Source:
    """Read one file of source."""
    code = TEXT.sub(_blank, source) if '"' in source or "'" in source or "#" in source else source
    none_listed = NONE in code and any(NONE in match[1] for match in LISTED.finditer(code))
    return Source(called(source).shapes, code, "float" in code and _whole_floats(code), none_listed)


def _blank(text: re.Match[str]) -> str:
    return "" if text[0][0] == "#" else '""'


def has_word(code: str, word: str) -> bool:
    """Whether code without texts has a word that is no attribute: a type, a function of the language, a name in a class body."""
    at = code.find(word)
    while at >= 0:
        end = at + len(word)
        before = code[at - 1] if at else " "
        behind = code[end] if end < len(code) else " "
        if not (before.isalnum() or before in "_." or behind.isalnum() or behind == "_"):
            return True
        at = code.find(word, end)
    return False


def bases(code: str) -> Iterable[str]:
    """What the classes that code defines are derived from: ``Module``, ``NamedTuple``, ``Enum``, ``Interface``."""
    return BASE.findall(code) if "class " in code else ()


def _whole_floats(code: str) -> bool:
    """Whether some function returns an int constant where it is declared to return a float."""
    starts = [match.start() for match in FUNCTION.finditer(code)]
    for start, end in pairwise([*starts, len(code)]):
        arrow = code.find("->", start, end)
        behind = code.find("\n", arrow, end)
        declared = code[arrow + 2 : behind].strip() if 0 <= arrow < behind else ""
        if "float" not in declared or not declared.endswith(":"):
            continue
        types = _elements(declared[:-1].removeprefix("Tuple[").removesuffix("]"))
        values = None
        for value in dict.fromkeys(RETURN.findall(code, behind, end)):  # each once: a name may stand for a long text
            if value.startswith("_"):
                if values is None:
                    values = dict(NAMED.findall(code, behind, end))
                value = values.get(value, value)  # noqa: PLW2901 (the constant that the name stands for)
            inner = value[1:-1].removesuffix(",") if value.startswith("(") and value.endswith(")") else value
            for type_, element in zip(types, _elements(inner), strict=False):
                if type_ == "float" and INT.match(element):
                    return True
    return False


def _elements(text: str) -> list[str]:
    """What commas outside of brackets separate."""
    if "(" not in text and "[" not in text:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
