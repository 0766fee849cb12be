"""Which operators TorchScript source calls, and with which arguments, without parsing it.

The source is what ``python_print.cpp`` writes, not what a person wrote, so a scanner of tokens is enough:

* ``torch.add(a, b, alpha=1)``          an operator of the namespace aten; the overload is not printed
* ``ops.prim.NumToTensor(x)``           one of another namespace
* ``int(x)``, ``float(x)``, ``bool(x)``, ``str(x)``, ``complex(x)``, ``ord(x)``    aten::Int and so on, which have no other spelling
* ``print(x)``, ``isinstance(x, T)``    prim::Print, prim::isinstance
* ``xs[i]``                             aten::__getitem__; but ``(pair)[0]``, in parentheses, is an index of a tuple, which is
                                        no operator, and ``List[int]`` a type
* ``(self).pick(x, )``, ``__torch__.m.f(x, )``, ``_0(x, )``    methods, functions and classes of the program itself
* ``annotate(T, x)``, ``unchecked_cast(T, x)``, ``uninitialized(T)``, ``range(n)`` of a loop, ``fork(f, x)``    syntax

Texts and comments are passed over. Results are kept by source text, unless that is long: many archives
hold the same code.
"""

from __future__ import annotations

import re
from functools import lru_cache

from harness.formats.model import Call

__all__ = ["calls"]

# What stands before a mark, and the mark; a text or a comment is one mark, and the end is one. Nothing is ever looked at twice.
TOKEN = re.compile(
    r"""([^"'#()\[\]{},=]*+)("(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|\#[^\n]*+|[()\[\]{},=]|\Z)""",
    re.DOTALL,
)
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
DEEPEST = 10_000  # brackets within brackets; whoever parses such a text gives up long before
LONGEST_KEPT = 1 << 16  # so that a thousand of them are no burden
DEFINES = frozenset({"class", "def"})
SYNTAX = frozenset({"->", ":", "else", "if", "in", "return"})
TYPES = frozenset({"Await", "Dict", "Final", "Future", "InferredType", "List", "Optional", "RRef", "Set", "Tuple", "Union"})
GETITEM = Call("aten::__getitem__", None, 2, ())


def calls(source: str) -> frozenset[Call]:
    """The distinct shapes in which one file of TorchScript source calls operators."""
    return _kept(source) if len(source) < LONGEST_KEPT else _calls(source)


@lru_cache(maxsize=1024)
def _kept(source: str) -> frozenset[Call]:
    return _calls(source)


def _calls(source: str) -> frozenset[Call]:
    found: set[Call] = set()
    # Of what is open: the operator, if it is a call of one; how many arguments ended; the names of those given by name.
    name, count, keywords = "", 0, ""
    outer: list[tuple[str, int, str]] = []
    last = ""  # the mark before this one; "call" behind the end of a call of an operator
    for before, mark in map(re.Match.groups, TOKEN.finditer(source)):
        if len(outer) > DEEPEST:
            break
        if mark == ",":
            count += 1
        elif mark == "(":
            outer.append((name, count, keywords))
            name, count, keywords = _operator(before) if before else "", 0, ""
        elif mark == ")":
            ended = name
            if name:
                if last not in "(," or before.strip():  # there is an argument behind the last comma
                    count += 1
                given = keywords.split()
                found.add(Call(name, None, count - len(given), tuple(given)))
            if outer:
                name, count, keywords = outer.pop()
            last = "call" if ended else mark
            continue
        elif mark == "[":
            word = before.rsplit(None, 1)[-1] if before and not before.isspace() else ""
            if (word and word[0] != "." and word not in TYPES and word not in SYNTAX) or (last == "call" and not before):
                found.add(GETITEM)
            outer.append((name, count, keywords))
            name = ""
        elif mark == "{":
            outer.append((name, count, keywords))
            name = ""
        elif mark in "]}":
            if outer:
                name, count, keywords = outer.pop()
        elif mark == "=" and name and last in "(," and before.strip().isidentifier():
            keywords += before + " "
        last = mark
    return frozenset(found)


def _operator(before: str) -> str:
    """The qualified name of the operator that is called behind this text; empty if none is."""
    words = before.split()
    if not words or (len(words) > 1 and words[-2] in DEFINES):
        return ""
    spelled = words[-1]
    if spelled.startswith("torch."):
        return f"aten::{spelled[6:]}"
    if spelled.startswith("ops."):
        namespace, _, name = spelled[4:].rpartition(".")
        return f"{namespace}::{name}"
    return WORDS.get(spelled, "")
