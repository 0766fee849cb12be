"""Scans TorchScript source for what a loader must support, without parsing: operator calls, language words, classes.

This is the second reader of TorchScript source, besides :mod:`torch_compat.torchscript.parser`. ``inspect`` reads all source of every
archive, including hostile ones. A token scanner takes a small part of the parser's time and memory, and handles text of any size and depth
and names that are invalid in Python. This is enough, since ``python_print.cpp`` writes the source, not a person.

Calls
-----

* ``torch.add(a, b, alpha=1)``          an operator of the namespace aten; the overload is not printed
* ``ops.prim.NumToTensor(x)``           one of another namespace
* ``int(x)``, ``float(x)``, ``bool(x)``, ``str(x)``, ``complex(x)``, ``ord(x)``    aten::Int and so on, which have no other spelling
* ``print(x)``, ``isinstance(x, T)``    prim::Print, prim::isinstance
* ``xs[i]``                             aten::__getitem__; but ``(pair)[0]``, in parentheses, is an index of a tuple, which is
                                        no operator, and ``List[int]`` a type
* ``(self).pick(x, )``, ``__torch__.m.f(x, )``, ``_0(x, )``    methods, functions and classes of the program itself
* ``annotate(T, x)``, ``unchecked_cast(T, x)``, ``uninitialized(T)``, ``range(n)`` of a loop, ``fork(f, x)``    syntax

The source does not state the overload of a call. Overloads are distinguished by the *shape* of the call: the number of arguments, the
keywords, and the visible kinds of arguments. A kind is one letter:

    N  None           i  an int        f  a float      b  a bool      s  a text      c  a complex number
    l  a list                            x  anything else: the kind does not show
    I, F, B, S, C  the same, or None

The kind of an argument is visible if it is a constant, a list literal, a parameter of the function declared with such a type, or the result
of an operator whose arguments determine it (:mod:`torch_compat.torchscript.operator_results`).

Strings and comments are skipped. Results are cached by source text, unless that is long: many archives contain the same code.

Words and classes
-----------------

Names of variables, parameters, attributes and methods may be any word that the release which wrote the code does not reserve. So a word of
the language is recognized by its place (:func:`uses`). Of a class, only the head, declarations and assignments are read (:func:`outline`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.torchscript.calls import KINDS, OPTIONAL, Call, CallShape
from torch_compat.torchscript.operator_results import BOOL, CONVERSIONS, FLOAT, INT, STR, result_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ATTRIBUTE",
    "NAME",
    "USES",
    "Called",
    "Outline",
    "Scanned",
    "bases",
    "called",
    "calls",
    "calls_below",
    "outline",
    "scan",
    "uses",
]


class Called(NamedTuple):
    """The calls in one source file.

    Attributes:
        shapes: the distinct shapes in which it calls operators by their names.
        calls: the distinct calls of all operators, including those with a special spelling.
    """

    shapes: frozenset[CallShape]
    calls: frozenset[Call]


class Scanned(NamedTuple):
    """The requirements of one source file.

    Attributes:
        shapes: the distinct shapes in which operators are called.
        code: the text without the content of its string constants and comments, for :func:`uses` and :func:`bases`.
        none_listed: a list of tensors holds None without calling it optional.
        empty_tuple: a type is a tuple without elements.
        ill_formed: a string has an escape that releases cannot parse.
        sorts_texts: a list that is declared as a list of texts is sorted.
        packed: how packed parameters are used as tensors, as up to 1.5: ``attribute``, or ``item`` of a list.
        optional_literals: which literals get an optional type: ``list``, ``dict`` (an empty one), or ``returned-list``, the result of a
            function.
    """

    shapes: frozenset[CallShape]
    code: str
    none_listed: bool
    ill_formed: bool
    empty_tuple: bool
    sorts_texts: bool
    optional_literals: frozenset[str] = frozenset()
    packed: frozenset[str] = frozenset()


class Outline(NamedTuple):
    """A class without its methods.

    Attributes:
        base: its base class; "" if it has none.
        declared: the declared types of its attributes in order, each as the names in it.
        untyped: names that it sets without a type.
    """

    base: str
    declared: tuple[tuple[str, ...], ...]
    untyped: tuple[str, ...]


_TEXT = r""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?|\#[^\n]*+"""
TEXT = re.compile(_TEXT, re.DOTALL)
"""A string or a comment."""
# The text before a mark, and the mark. Brackets that contain no brackets, strings or comments are a single mark, as most brackets are
# of this kind; so are a string, a comment, and the end. Each character is matched at most twice.
MARK = re.compile(
    rf"""([^"'#()\[\]{{}},]*+)(\([^"'#()\[\]{{}}]*+\)|\[[^"'#()\[\]{{}}]*+\]|[()\[\]{{}},]|{_TEXT}|\Z)""",
    re.DOTALL,
)
NUMBER = re.compile(r"-?(?:\d+(\.\d*)?|(\.\d+))((?:e[-+]?\d+)?)(j?)\Z")
BACKWARDS = re.compile(r"\s*(\w+)")  # a word at the end of a text, matched backward, so that nothing is tried twice
WORDS = {
    "bool": "aten::Bool",
    "complex": "aten::Complex",
    "float": "aten::Float",
    "int": "aten::Int",
    "isinstance": "prim::isinstance",
    "ord": "aten::ord",
    "print": "prim::Print",
    "str": "aten::str",
}
CONSTANTS = {"None": "N", "True": "b", "False": "b"}
DECLARED = {"List": "l", **{word: letter for word, letter in KINDS.items() if word not in {"None", "list"}}, **OPTIONAL}
SCALARS = {"i": INT, "f": FLOAT, "b": BOOL, "s": STR}
DEEPEST = 10_000  # nesting of brackets; parsers fail long before this
LONGEST_CALL = 200  # characters of an operator's name and number of arguments; no operator has so many
LONGEST_KEPT = 1 << 16  # so that a thousand of them use little memory
DEFINES = frozenset({"class", "def"})
SYNTAX = frozenset({"->", ":", "else", "if", "in", "return"})
TYPES = frozenset({"Await", "Dict", "Final", "Future", "InferredType", "List", "Optional", "RRef", "Set", "Tuple", "Union"})
GETITEM = Call("aten::__getitem__", None, 2, ())
Keywords = tuple[tuple[str, str], ...]
CLASS = re.compile(r"^class ([^\s(:]+)(?:\(([^)\s]*)\))?", re.MULTILINE)
ANNOTATED = re.compile(r"(?:->\s*|(?:^|[(,])\s*\w+ ?: ?)\Z")
HEAD = re.compile(r"\w+\Z")
TYPE, FUNCTION, CLASS_SETS, DECLARES, ATTRIBUTE, NAME = "type", "function", "class-sets", "declares", "attribute", "name"
USES = frozenset({TYPE, FUNCTION, CLASS_SETS, DECLARES, ATTRIBUTE, NAME})
"""The roles of a word: a type, a called function, a list set in a class body, a declared attribute, an attribute of
something, or any other name."""
TYPED = frozenset({"annotate", "unchecked_cast", "uninitialized"})
"""The functions whose first argument is a type."""
FARTHEST = 1000  # characters of a line that are inspected before a word
ILL_FORMED = re.compile(r"""\A["'][^\\]*+(?:\\(?:[abfntv\\"']|[0-3][0-7]{2})[^\\]*+)*+\\""")
"""A string with an escape other than those of the lexer of TorchScript, which takes any other backslash for three octal digits up to 377."""
OPTIONAL_TYPE = "Optional["
OPTIONAL_LITERAL = re.compile(r"(?:annotate\(|: )Optional\[(List|Dict)\[[\w., \[\]]*?\]\](?:, | = )(?:\[|\{\})")
"""A list display or comprehension, or an empty dict, whose type is optional."""
BEFORE_FUNCTION = re.compile(r"^(?= *def )", re.MULTILINE)
RETURNS_OPTIONAL = re.compile(r"-> Optional\[(List|Dict)\[[\w., \[\]]*\]\]:$", re.MULTILINE)
RETURNED = {"List": re.compile(r"^ +return \[", re.MULTILINE), "Dict": re.compile(r"^ +return \{\}$", re.MULTILINE)}
PREPACKED = "ops.quantized.linear_prepack("
PACKED_ATTRIBUTE = re.compile(r"^class PackedParameter\(Module\):\n(?:  (?!def )[^\n]*\n)*?  param : Tensor$", re.MULTILINE)
PACKED_ITEM = re.compile(r"(_\d+) = ops\.quantized\.linear_prepack\([^\n]*\)\n +_\d+ = torch\.append\(\w+, \1\)$", re.MULTILINE)
LISTED = re.compile(r"\[([^\[\]]*+)\]")
TEXTS = "List[str]"
OUTERMOST = re.compile(r"^(?=class |def )", re.MULTILINE)
DEFINITION = re.compile(r"^(?= *def )", re.MULTILINE)
TEXTS_HELD = re.compile(r"^  (\w+) : List\[str\]$", re.MULTILINE)
TEXTS_GIVEN = re.compile(r"\b(\w+): List\[str\]")
TEXTS_SET = re.compile(r"\b(\w+) = annotate\(List\[str\],")
SORTED = re.compile(r"(?<![\w.])(sorted|torch\.sort)\((self\.|\(self\)\.)?(\w+)[,)]")
"""What is sorted by name: a list in an attribute, a parameter or a variable."""
NONE = "annotate(Tensor, None)"


def calls(source: str) -> frozenset[Call]:
    """The distinct ways in which one file of TorchScript source calls operators."""
    return called(source).calls


def called(source: str) -> Called:
    """The calls with the visible kinds of their arguments."""
    return _kept(source) if len(source) < LONGEST_KEPT else _kept_long(source)


@lru_cache(maxsize=4)
def _kept_long(source: str) -> Called:
    """Used twice per archive: for its calls, and for its requirements."""
    return _scanned(source)


@lru_cache(maxsize=1024)
def _kept(source: str) -> Called:
    return _scanned(source)


def _scanned(source: str) -> Called:
    results: set[tuple[str, str, Keywords]] = set()
    spelled: set[Call] = set()
    # For each open bracket: the callee ("" if it is not an operator, "def" for a parameter list), the kinds of the complete positional
    # arguments, the keyword arguments, the keyword of the current argument, and its kind ("" while it is plain text).
    name, kinds, word, begun = "", "", "", ""
    keywords: list[tuple[str, str]] = []
    outer: list[tuple[str, str, list[tuple[str, str]], str, str]] = []
    declared: dict[str, str] = {}
    ended = False  # whether the previous mark is the end of an operator call
    for before, mark in map(re.Match.groups, MARK.finditer(source)):
        if not mark or len(outer) > DEEPEST:
            break
        if name and "=" in before and not begun:
            if name == "def":
                _declare(before.partition("=")[0], declared)
                begun = "x"
            elif not word:
                word, before = _word(before)  # noqa: PLW2901
                begun = "" if word else "x"
            else:
                begun = "x"
        first = mark[0]
        if first == ",":
            if not name:
                pass
            elif name == "def":
                if not begun:
                    _declare(before, declared)
            elif word:
                keywords.append((word, begun or _kind(before, declared)))
                word = ""
            else:
                kinds += begun or _kind(before, declared)
            begun = ""
            ended = False
        elif first == "(":
            inner = _name(before) if before else ""
            ended = False
            if mark == first:
                outer.append((name, kinds, keywords, word, begun and "x"))
                name, kinds, keywords, word, begun = inner, "", [], "", ""
                if inner == "def":
                    declared = {}
            else:
                result = "x"
                if inner == "def":
                    declared = _declared(mark)
                elif inner:
                    shape = _given(mark, declared)
                    results.add((inner, *shape))
                    result = _result(inner, shape[0])
                    ended = True
                begun = "x" if begun else result
        elif first == ")":
            ended = False
            if not name:
                pass
            elif name == "def":
                if not begun:
                    _declare(before, declared)
            else:
                if word:
                    keywords.append((word, begun or _kind(before, declared)))
                elif begun or before.strip():  # there is an argument after the last comma
                    kinds += begun or _kind(before, declared)
                results.add((name, kinds, tuple(keywords)))
                ended = True
            result = _result(name, kinds) if ended else "x"
            if outer:
                name, kinds, keywords, word, begun = outer.pop()
                begun = "x" if begun else result
        elif first == "[":
            stripped = before.strip()
            if _is_indexed(stripped) if stripped else ended and not before:
                spelled.add(GETITEM)
            kind = "x" if begun or stripped else "l"
            if name == "def" and not begun:
                _declare(before + mark if stripped.endswith("Optional") and mark != first else before, declared)
            if mark == first:
                outer.append((name, kinds, keywords, word, kind))
                name = ""
            else:
                begun = kind
            ended = False
        elif first == "{":
            outer.append((name, kinds, keywords, word, "x"))
            name = ""
            ended = False
        elif first in "]}":
            if outer:
                name, kinds, keywords, word, begun = outer.pop()
            ended = False
        elif first != "#":
            begun = "x" if begun or before.strip() else "s"
            ended = False
    shapes = set()
    for name, kinds, given in results:
        own = WORDS.get(name)
        spelled.add(Call(own or name, None, len(kinds), tuple([keyword for keyword, _ in given])))
        if own is None:
            shapes.add(CallShape(name, kinds, given))
    return Called(frozenset(shapes), frozenset(spelled))


def _name(before: str) -> str:
    """The callee at the end of this text: an operator by its name or word, "def" if a function begins, else ""."""
    words = before.rsplit(None, 2)
    if not words:
        return ""
    spelled = words[-1]
    if "=" in spelled:
        spelled = spelled.rpartition("=")[2]
    elif len(words) > 1 and words[-2] in DEFINES:
        return "def"
    if spelled.startswith("torch."):
        return f"aten::{spelled[6:].removeprefix('autograd.')}"  # the compiler treats torch.autograd as torch
    if spelled.startswith("ops."):
        namespace, _, name = spelled[4:].rpartition(".")
        return f"{namespace}::{name}"
    return spelled if spelled in WORDS else ""


def _word(before: str) -> tuple[str, str]:
    """The keyword of an argument, and the text after it; no keyword if this is another equals sign."""
    word, _, value = before.partition("=")
    word = word.strip()
    return (word, value) if word.isidentifier() and "=" not in value else ("", before)


def _is_indexed(before: str) -> bool:
    """Whether a bracket after this text indexes a value."""
    word = before.rsplit(maxsplit=1)[-1].rpartition("=")[2]
    return word != "" and word[0] != "." and word not in TYPES and word not in SYNTAX


def _given(mark: str, declared: dict[str, str]) -> tuple[str, Keywords]:
    """Kinds of the arguments inside such brackets."""
    if len(mark) == 2:
        return "", ()
    kinds = ""
    keywords: list[tuple[str, str]] = []
    parts = mark[1:-1].split(",")
    if not parts[-1].strip():
        parts.pop()
    for part in parts:
        if "=" in part:
            word, value = _word(part)
            if word:
                keywords.append((word, _kind(value, declared)))
            else:
                kinds += "x"
        else:
            kinds += _kind(part, declared)
    return kinds, tuple(keywords)


def _declared(mark: str) -> dict[str, str]:
    """Kinds of the parameters inside such brackets."""
    declared: dict[str, str] = {}
    for part in mark[1:-1].split(","):
        _declare(part.partition("=")[0], declared)
    return declared


def _declare(parameter: str, declared: dict[str, str]) -> None:
    name, colon, type_ = parameter.rpartition(":")
    kind = DECLARED.get(type_.strip()) if colon else None
    if kind is not None:
        match = BACKWARDS.match(name[::-1])
        if match:
            declared[match[1][::-1]] = kind


def _kind(text: str, declared: dict[str, str]) -> str:
    """The kind of an argument that is plain text."""
    text = text.strip()
    known = CONSTANTS.get(text) or declared.get(text)
    if known:
        return known
    if text[:1].isidentifier():
        return "x"
    number = NUMBER.match(text)
    if number is None:
        return "x"
    whole, fraction, exponent, imaginary = number.groups()
    return "c" if imaginary else "i" if whole is None and fraction is None and not exponent else "f"


def _result(name: str, kinds: str) -> str:
    """The kind of the result of an operator call; ``x`` for a call with more arguments than an operator takes."""
    return _kept_result(name, kinds) if len(name) + len(kinds) <= LONGEST_CALL else "x"


@lru_cache(maxsize=1024)
def _kept_result(name: str, kinds: str) -> str:
    result = result_of(name.removeprefix("aten::"), [SCALARS.get(kind) for kind in kinds])
    result = CONVERSIONS.get(name, result)
    return next((kind for kind, type_ in SCALARS.items() if type_ == result), "x")


def scan(source: str) -> Scanned:
    """Determine the requirements of one source file; its calls are those of :func:`called`."""
    code = TEXT.sub(_blank, source) if '"' in source or "'" in source or "#" in source else source
    none_listed = NONE in code and any(NONE in match[1] for match in LISTED.finditer(code))
    ill_formed = "\\" in source and any(ILL_FORMED.search(text) for text in TEXT.findall(source))
    optional: frozenset[str] = _optional_literals(code) if OPTIONAL_TYPE in code else frozenset()
    packed: frozenset[str] = _packed(code) if PREPACKED in code else frozenset()
    return Scanned(
        called(source).shapes, code, none_listed, ill_formed, "Tuple[()]" in code, _sorts_texts(code), optional, packed
    )


def _packed(code: str) -> frozenset[str]:
    """How packed parameters are used as tensors."""
    return frozenset(
        use for use, pattern in (("attribute", PACKED_ATTRIBUTE), ("item", PACKED_ITEM)) if pattern.search(code) is not None
    )


def _optional_literals(code: str) -> frozenset[str]:
    """The kinds of literals that get an optional type from an annotation, or from the result of their function."""
    kinds = {kind.lower() for kind in OPTIONAL_LITERAL.findall(code)}
    for function in BEFORE_FUNCTION.split(code):
        result = RETURNS_OPTIONAL.search(function)
        if result is not None and RETURNED[result[1]].search(function, result.end()):
            kinds.add("dict" if result[1] == "Dict" else "returned-list")
    return frozenset(kinds)


def _sorts_texts(code: str) -> bool:
    """Whether code sorts an attribute, parameter or variable declared as ``List[str]``, or returns a sorted list as one."""
    if TEXTS not in code or "sort" not in code:
        return False
    for part in OUTERMOST.split(code):
        attributes = frozenset(TEXTS_HELD.findall(part))
        for function in DEFINITION.split(part):
            own = {*TEXTS_GIVEN.findall(function), *TEXTS_SET.findall(function)}
            for _, owner, name in SORTED.findall(function):
                if name in (attributes if owner else own):
                    return True
            if "-> List[str]:" in function and "return sorted(" in function:
                return True
    return False


def _blank(text: re.Match[str]) -> str:
    return "" if text[0][0] == "#" else '""'


def uses(code: str, word: str) -> set[str]:
    """The roles (see :data:`USES`) of a word in code without strings: types are in annotations, functions are called, and a class sets names
    between its head and its methods.
    """
    results: set[str] = set()
    at = code.find(word)
    while at >= 0 and len(results) < len(USES):
        end = at + len(word)
        before = code[at - 1] if at else " "
        behind = code[end] if end < len(code) else " "
        if not (before.isalnum() or before == "_" or behind.isalnum() or behind == "_"):
            results.add(_use(code, at, end, before, behind))
        at = code.find(word, end)
    return results


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
    """Whether a line that is indented once belongs to a class rather than a function."""
    return code.rfind("\nclass ", 0, line) > code.rfind("\ndef ", 0, line) or (
        code.startswith("class ") and code.rfind("\ndef ", 0, line) < 0
    )


def _bracketed(left: str) -> bool:
    """Whether text ends inside brackets that contain types: ``Tuple[int, ``, ``annotate(``, ``isinstance(x, ``."""
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
    """Whether source calls or instantiates something whose name has this prefix. Types that are only named do not count."""
    if prefix not in source:
        return False
    return re.search(rf"(?<![\w.]){re.escape(prefix)}[\w.]+\(", TEXT.sub(_blank, source)) is not None


def bases(code: str) -> Iterable[str]:
    """The base classes of the classes that code defines: ``Module``, ``NamedTuple``, ``Enum``, ``Interface``."""
    return [base for _, base in CLASS.findall(code) if base] if "class " in code else ()


def outline(source: str, name: str) -> Outline | None:
    """The class of this name; None if source does not define it."""
    base: str | None = None
    declared: list[tuple[str, ...]] = []
    untyped: list[str] = []
    for line in source.split("\n"):
        if line[:1] not in {" ", ""}:
            if base is not None:
                break
            head = CLASS.match(line)
            if head is not None and head[1] == name:
                base = head[2] or ""
        elif base is not None and line[:2] == "  " and line[2:3] != " ":
            # patterns that inspect never needs, compiled on first use
            member = re.match(r"  (\w+) (?:: ([^=]+)\Z|= )", line)
            if member is not None and member[2] is not None:
                declared.append(tuple(re.findall(r"[A-Za-z_][\w.]*", member[2])))
            elif member is not None:
                untyped.append(member[1])
    return None if base is None else Outline(base, tuple(declared), tuple(untyped))
