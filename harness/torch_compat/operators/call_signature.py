"""The parts of a schema that matter to a call: its arguments by name, which are keyword-only, and which may be omitted.

This is not the whole grammar: types, defaults and returns stay text. The schemas of every release can be split without losing anything that
matters for checking a call; text that is not a schema is refused.

This is a second reader of schemas besides the one for the whole grammar (:mod:`torch_compat.operators.schema`); a test compares them on
every schema of every release. It exists because ``inspect`` reads the schemas of each operator that an archive calls once: this reader
takes a quarter of the time, and ten milliseconds less to import.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from torch_compat.errors import UsageError
from torch_compat.words import count_of

__all__ = ["CallSignature", "SignatureParameter", "bare", "signature_of"]

MARK: Final = re.compile(r"""[(),\[\]]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?""", re.DOTALL)
"""Brackets, commas and strings."""
_SETS = r" *(?:\*|[a-z][a-z0-9]?)?[ !]*"
ALIASES: Final = re.compile(
    r"(?<=[^ (,])(?<!Future)(?<!RRef)(?<!Await)(?<!Dict)(?<!Optional)(?<!List)(?<!Union)(?<!Tuple)"
    rf"\((?!\)){_SETS}(?:(?:\||->){_SETS})*\)"
)
"""``(a!)``, ``(a -> *)`` or ``(a|b)`` after a type that does not contain other types in parentheses."""


def bare(name: str) -> str:
    """The name of an operator without the ``_`` of its in-place form: ``aten::add_`` becomes ``aten::add``, ``aten::__and__`` stays."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


class SignatureParameter(NamedTuple):
    """One argument of a schema."""

    name: str
    """Its name; empty if the schema has none."""
    type: str
    """Its type without alias annotations: ``Tensor?``, ``SymInt[2]``, ``Dict(str, Tensor)``."""
    default: str | None
    """The text of its default; None if it has none."""
    kwarg_only: bool
    """Whether it is keyword-only."""
    mutated: bool
    """Whether the operator writes to it."""

    @property
    def optional(self) -> bool:
        """Whether the argument accepts None."""
        return self.type.endswith("?")


class CallSignature(NamedTuple):
    """The parts of a schema that matter to a call."""

    name: str
    """``aten::add``."""
    overload: str
    """``Tensor``; empty if it has no overload name."""
    arguments: tuple[SignatureParameter, ...]
    """The arguments, in order."""
    vararg: bool
    """Whether any number of additional arguments is accepted."""
    returns: str
    """The text after the arrow."""

    def refuses(self, positional: int, keywords: frozenset[str] | set[str] | tuple[str, ...] = ()) -> str | None:
        """Why a call with this number of positional arguments and these keywords does not fit; None if it does.

        Does not check types.
        """
        free = [argument for argument in self.arguments if not argument.kwarg_only]
        if positional > len(free) and not self.vararg:
            return f"takes {count_of(len(free), 'positional argument')}, but the call passes {positional}"
        given = {argument.name for argument in free[:positional]}
        known = {argument.name for argument in self.arguments}
        for keyword in sorted(keywords):
            if keyword not in known:
                return f"has no argument {keyword!r}"
            if keyword in given:
                return f"got multiple values for {keyword!r}"
        given.update(keywords)
        missing = [argument.name for argument in self.arguments if argument.default is None and argument.name not in given]
        return f"is missing {', '.join(missing)}" if missing else None


@lru_cache(maxsize=4096)
def signature_of(schema: str) -> CallSignature:
    """Parse a schema as printed by a release; raises UsageError if it is not a schema."""
    head, _, rest = schema.partition("(")
    parts: list[str] = []
    depth = start = 0
    end = -1
    for match in MARK.finditer(rest):
        mark = match[0]
        if mark == ",":
            if not depth:
                parts.append(rest[start : match.start()])
                start = match.end()
        elif mark in "([":
            depth += 1
        elif mark in ")]":
            if not depth:
                end = match.start() if mark == ")" else -1
                break
            depth -= 1
    returns = rest[end + 1 :].lstrip()
    if end < 0 or not returns.startswith("->") or not head or " " in head:
        raise UsageError(f"is not an operator schema: {schema!r}", hint="expected name.overload(arguments) -> returns")
    if parts or rest[:end].strip():
        parts.append(rest[start:end])
    if head.startswith("__torch__."):
        name, overload = head, ""  # a method of a class: its dots do not separate an overload
    else:
        name, _, overload = head.partition(".")
    arguments: list[SignatureParameter] = []
    kwarg_only = vararg = False
    for part in parts:
        written, equals, default = part.partition("=")  # types contain no equals sign
        written = written.strip()
        kind, _, word = written.rpartition(" ")
        if not kind or not word.isidentifier():
            if written == "*":
                kwarg_only = True
                continue
            if written == "...":
                vararg = True
                continue
            kind, word = written, ""
        mutated = "!" in kind
        if "(" in kind:
            kind = ALIASES.sub("", kind)
        arguments.append(SignatureParameter(word, kind, default.strip() if equals else None, kwarg_only, mutated))
    return CallSignature(name, overload, tuple(arguments), vararg, returns[2:].strip())
