"""What TorchScript source asks of the release that compiles it: calls of operators, words of the language, types of returns.

A release compiles the source when it loads the archive, and refuses the archive where it does not know an operator, an overload
or a word. The source is what ``python_print.cpp`` writes, not what a person wrote, so a scanner is enough:

* ``torch.add(a, b, alpha=1)``      an operator of the namespace aten; ``ops.prim.data(x)`` one of another namespace
* ``(self).pick(x, )``, ``_0(x, )``   methods and functions of the program itself, which are no operators

Which overload a call means is not written down. What tells overloads apart is the *shape* of the call: how many arguments, which
keywords, and of what kind those arguments are that show it. A kind is one letter:

    N  None           i  an int        f  a float      b  a bool      s  a text      c  a complex number
    l  a list that is written out        x  anything else: the kind does not show

An argument shows its kind if it is a constant, or a parameter of the function that is declared with such a type.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KINDS", "CallShape", "Source", "bases", "has_word", "scan"]


KINDS = {"None": "N", "int": "i", "float": "f", "bool": "b", "str": "s", "complex": "c", "list": "l"}
"""The letters of the kinds that show."""


class CallShape(NamedTuple):
    """One shape in which an operator is called.

    Attributes:
        name: ``aten::add``.
        positional: the kinds of the arguments that are given by position, one letter each.
        keywords: name and kind of those that are given by name.
    """

    name: str
    positional: str
    keywords: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        words = {"x": "_", **{letter: word for word, letter in KINDS.items()}}
        given = [words[kind] for kind in self.positional] + [f"{name}={words[kind]}" for name, kind in self.keywords]
        return f"{self.name}({', '.join(given)})"


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


# What stands before a mark, and the mark. A comment is passed over as a mark, too; the end is one. A text that does not end is one up
# to there: nothing is ever looked at twice.
TOKEN = re.compile(
    r"""([^"'#()\[\]{},=]*+)("(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|\#[^\n]*+|[()\[\]{},=]|\Z)""",
    re.DOTALL,
)
TEXT = re.compile(r""""(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|\#[^\n]*+""", re.DOTALL)
NUMBER = re.compile(r"-?(?:\d+(\.\d*)?|(\.\d+))((?:e[-+]?\d+)?)(j?)\Z")
PARAMETER = re.compile(r"(\w+)\s*:\s*(\w+)\s*\Z")
BASE = re.compile(r"^class [^\s(]+\(([^)\s]+)\)", re.MULTILINE)
FUNCTION = re.compile(r"^( *)def ", re.MULTILINE)
RETURN = re.compile(r"^ *return (.+)$", re.MULTILINE)
NAMED = re.compile(r"^ *(_\d+) = (.+)$", re.MULTILINE)
CONSTANTS = {"None": "N", "True": "b", "False": "b"}
DECLARED = {word: letter for word, letter in KINDS.items() if word not in {"None", "list"}}
NONE_LISTED = re.compile(r"\[[^\[\]]*annotate\(Tensor, None\)[^\[\]]*\]")
INT = re.compile(r"-?\d+\Z")
DEEPEST = 10_000  # brackets within brackets; whoever parses such a text gives up long before


def scan(source: str) -> Source:
    """Read one file of source."""
    code = TEXT.sub(_blank, source) if '"' in source or "'" in source or "#" in source else source
    none_listed = "annotate(Tensor, None)" in code and NONE_LISTED.search(code) is not None
    return Source(_shapes(source), code, "float" in code and _whole_floats(code), none_listed)


def _blank(text: re.Match[str]) -> str:
    return "" if text[0][0] == "#" else '""'


@lru_cache(maxsize=256)
def _word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)")


def has_word(code: str, word: str) -> bool:
    """Whether code without texts has a word that is no attribute: a type, a function of the language, a name in a class body."""
    return word in code and _word(word).search(code) is not None


def bases(code: str) -> Iterable[str]:
    """What the classes that code defines are derived from: ``Module``, ``NamedTuple``, ``Enum``, ``Interface``."""
    return BASE.findall(code)


def _shapes(source: str) -> frozenset[CallShape]:
    found: set[CallShape] = set()
    # Of what is open: the operator ("" if it is none, "def" for a list of parameters), the kinds of its arguments so far, the
    # names of those given by name, and the kind of the argument that has begun ("" while nothing of it but plain text was seen).
    name, kinds, begun = "", "", ""
    keywords: tuple[str, ...] = ()
    outer: list[tuple[str, str, tuple[str, ...], str]] = []
    declared: dict[str, str] = {}
    for before, mark in map(re.Match.groups, TOKEN.finditer(source)):
        if not mark or len(outer) > DEEPEST:
            break
        if mark == ",":
            if name:
                if name == "def":
                    if not begun:
                        _declare(before, declared)
                else:
                    kinds += begun or _kind(before.strip(), declared)
                begun = ""
        elif mark == "(":
            outer.append((name, kinds, keywords, "x"))
            name, kinds, keywords, begun = _called(before), "", (), ""
            if name == "def":
                declared = {}
        elif mark == ")":
            if name == "def":
                if not begun:
                    _declare(before, declared)
            elif name:
                last = begun or _kind(before.strip(), declared) if begun or before.strip() else ""
                kinds += last
                count = len(kinds) - len(keywords)
                found.add(CallShape(name, kinds[:count], tuple(zip(keywords, kinds[count:], strict=True))))
            if outer:
                name, kinds, keywords, begun = outer.pop()
        elif mark in "[{":
            outer.append((name, kinds, keywords, "l" if mark == "[" and not begun and not before.strip() else "x"))
            name = ""
        elif mark in "]}":
            if outer:
                name, kinds, keywords, begun = outer.pop()
        elif mark == "=":
            if name == "def":
                if not begun:
                    _declare(before, declared)
                begun = "x"
            elif name and not begun:
                keywords = (*keywords, before.strip())
        elif mark[0] != "#":
            begun = "x" if begun or before.strip() else "s"
    return frozenset(found)


def _called(before: str) -> str:
    """What is called behind this text: the qualified name of an operator, "def" where a function begins, else ""."""
    words = before.split()
    if not words:
        return ""
    if len(words) > 1 and words[-2] == "def":
        return "def"
    spelled = words[-1]
    if spelled.startswith("torch."):
        return f"aten::{spelled[6:]}"
    if spelled.startswith("ops."):
        return "::".join(spelled[4:].rsplit(".", 1))
    return ""


def _declare(parameter: str, declared: dict[str, str]) -> None:
    match = PARAMETER.search(parameter)
    if match and match[2] in DECLARED:
        declared[match[1]] = DECLARED[match[2]]


def _kind(text: str, declared: dict[str, str]) -> str:
    known = CONSTANTS.get(text) or declared.get(text)
    if known:
        return known
    number = NUMBER.match(text)
    if number is None:
        return "x"
    whole, fraction, exponent, imaginary = number.groups()
    return "c" if imaginary else "i" if whole is None and fraction is None and not exponent else "f"


def _whole_floats(code: str) -> bool:
    """Whether some function returns an int constant where it is declared to return a float."""
    starts = [match.start() for match in FUNCTION.finditer(code)]
    for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
        arrow = code.find("->", start, end)
        behind = code.find("\n", arrow, end)
        declared = code[arrow + 2 : behind].strip() if 0 <= arrow < behind else ""
        if "float" not in declared or not declared.endswith(":"):
            continue
        types = _elements(declared[:-1].removeprefix("Tuple[").removesuffix("]"))
        values = None
        for value in RETURN.findall(code, behind, end):
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
