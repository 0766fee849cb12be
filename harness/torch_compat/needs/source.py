"""What TorchScript source asks of the release that compiles it: calls of operators, words of the language, types of numbers.

A release compiles the source when it loads the archive, and refuses the archive where it does not know an operator, an overload
or a word. Calls of operators are read by :mod:`torch_compat.formats.source`; here is what else a release may not know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.formats.source import KINDS, CallShape, called
from torch_compat.needs.numbers import has_whole_constant

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KINDS", "CallShape", "Source", "bases", "has_word", "scan"]


class Source(NamedTuple):
    """What one file of source asks for.

    Attributes:
        shapes: the distinct shapes in which operators are called.
        code: the text without the content of its string constants and comments, for :func:`has_word` and :func:`bases`.
        whole_constant: there is an int constant that may have been a float: :mod:`torch_compat.needs.numbers` says what comes of it.
        none_listed: a list of tensors holds None without calling it optional.
    """

    shapes: frozenset[CallShape]
    code: str
    whole_constant: bool
    none_listed: bool


TEXT = re.compile(r""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?|\#[^\n]*+""", re.DOTALL)
BASE = re.compile(r"^class [^\s(]+\(([^)\s]+)\)", re.MULTILINE)
LISTED = re.compile(r"\[([^\[\]]*+)\]")
NONE = "annotate(Tensor, None)"


def scan(source: str) -> Source:
    """Read one file of source."""
    code = TEXT.sub(_blank, source) if '"' in source or "'" in source or "#" in source else source
    none_listed = NONE in code and any(NONE in match[1] for match in LISTED.finditer(code))
    return Source(called(source).shapes, code, has_whole_constant(code), none_listed)


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
