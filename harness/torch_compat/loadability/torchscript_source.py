"""What TorchScript source asks of the release that compiles it: calls of operators, words of the language, types of numbers.

A release compiles the source when it loads the archive, and refuses the archive where it does not know an operator, an overload
or a word. Calls of operators are read by :mod:`torch_compat.formats.source`; here is what else a release may not know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.formats.source import KINDS, TYPES, CallShape, called
from torch_compat.loadability.integer_constants import has_whole_constant

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KINDS", "USES", "CallShape", "SourceRequirements", "bases", "calls_below", "scan", "uses"]


class SourceRequirements(NamedTuple):
    """What one file of source asks for.

    Attributes:
        shapes: the distinct shapes in which operators are called.
        code: the text without the content of its string constants and comments, for :func:`uses` and :func:`bases`.
        whole_constant: there is an int constant that may have been a float: :mod:`torch_compat.loadability.integer_constants` says what comes of it.
        none_listed: a list of tensors holds None without calling it optional.
        ill_formed: a text has a backslash and a digit, but not the three octal digits that the language asks for there.
    """

    shapes: frozenset[CallShape]
    code: str
    whole_constant: bool
    none_listed: bool
    ill_formed: bool


TEXT = re.compile(r""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?|\#[^\n]*+""", re.DOTALL)
BASE = re.compile(r"^class [^\s(]+\(([^)\s]+)\)", re.MULTILINE)
ANNOTATED = re.compile(r"(?:->\s*|(?:^|[(,])\s*\w+ ?: ?)\Z")
HEAD = re.compile(r"\w+\Z")
TYPE, FUNCTION, CLASS_SETS, DECLARES, ATTRIBUTE, NAME = "type", "function", "class-sets", "declares", "attribute", "name"
USES = frozenset({TYPE, FUNCTION, CLASS_SETS, DECLARES, ATTRIBUTE, NAME})
"""What a word can be: a type, a function that is called, what the body of a class sets to a list, an attribute that it declares, an attribute
of something, any other name."""
TYPED = frozenset({"annotate", "unchecked_cast", "uninitialized"})
"""The functions whose first argument is a type."""
FARTHEST = 1000  # characters of a line that are looked at before a word
OCTAL = re.compile(r"""\A["'][^\\]*+(?:\\(?:[^0-7]|[0-7]{3})[^\\]*+)*+\\[0-7]""")
LISTED = re.compile(r"\[([^\[\]]*+)\]")
NONE = "annotate(Tensor, None)"


def scan(source: str) -> SourceRequirements:
    """Read one file of source."""
    code = TEXT.sub(_blank, source) if '"' in source or "'" in source or "#" in source else source
    none_listed = NONE in code and any(NONE in match[1] for match in LISTED.finditer(code))
    ill_formed = "\\" in source and any(OCTAL.search(text) for text in TEXT.findall(source))
    return SourceRequirements(called(source).shapes, code, has_whole_constant(code), none_listed, ill_formed)


def _blank(text: re.Match[str]) -> str:
    return "" if text[0][0] == "#" else '""'


def uses(code: str, word: str) -> set[str]:
    """What a word is in code without texts, of :data:`USES`.

    Names of variables, parameters, attributes and methods may be any word that the release which wrote the code does not reserve. So
    a word of the language is one by its place: a type is in an annotation, a function is called, and a class sets
    what stands between its head and its methods.
    """
    found: set[str] = set()
    at = code.find(word)
    while at >= 0 and len(found) < len(USES):
        end = at + len(word)
        before = code[at - 1] if at else " "
        behind = code[end] if end < len(code) else " "
        if not (before.isalnum() or before == "_" or behind.isalnum() or behind == "_"):
            found.add(_use(code, at, end, before, behind))
        at = code.find(word, end)
    return found


def _use(code: str, at: int, end: int, before: str, behind: str) -> str:
    if before == ".":
        return ATTRIBUTE
    line = max(code.rfind("\n", max(at - FARTHEST, 0), at) + 1, at - FARTHEST, 0)
    left = code[line:at]
    if left == "  " and code.startswith(" = [", end) and _in_class(code, line):
        return CLASS_SETS
    if left == "  " and code.startswith(" : ", end) and _in_class(code, line):
        return DECLARES
    if ANNOTATED.search(left) or _bracketed(left):
        return TYPE
    return FUNCTION if behind == "(" and not left.endswith("def ") else NAME


def _in_class(code: str, line: int) -> bool:
    """Whether a line that is indented once belongs to a class, and not to a function."""
    return code.rfind("\nclass ", 0, line) > code.rfind("\ndef ", 0, line) or (
        code.startswith("class ") and code.rfind("\ndef ", 0, line) < 0
    )


def _bracketed(left: str) -> bool:
    """Whether text ends inside brackets that hold types: ``Tuple[int, ``, ``annotate(``, ``isinstance(x, ``."""
    depth = 0
    for place in range(len(left) - 1, -1, -1):
        mark = left[place]
        if mark in ")]":
            depth += 1
        elif mark in "([":
            if depth:
                depth -= 1
                continue
            head = HEAD.search(left, 0, place)
            word = head[0] if head else ""
            if mark == "[" or word:
                return word in TYPES if mark == "[" else word == "isinstance" or (word in TYPED and "," not in left[place:])
    return False


def calls_below(source: str, prefix: str) -> bool:
    """Whether source calls something, or makes an object of something, whose name begins so. A type that is only named is none."""
    if prefix not in source:
        return False
    return re.search(rf"(?<![\w.]){re.escape(prefix)}[\w.]+\(", TEXT.sub(_blank, source)) is not None


def bases(code: str) -> Iterable[str]:
    """What the classes that code defines are derived from: ``Module``, ``NamedTuple``, ``Enum``, ``Interface``."""
    return BASE.findall(code) if "class " in code else ()
