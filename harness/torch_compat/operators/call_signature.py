"""What a call needs to know of a schema: its arguments by name, which of them are keyword-only, and which may be left out.

Not the whole grammar: types, defaults and returns stay text. Everything that any release prints is split without loss of what a
call can be checked against; what is not a schema is refused.

The whole grammar is :mod:`torch_compat.operators.schema`; a test holds the two equal on every schema of every release. This one stays because
``inspect`` reads a few dozen schemas once: it takes some 20 microseconds for the first of them and 2 milliseconds to import, the grammar
several times as much of both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from torch_compat.errors import UsageError

__all__ = ["CallSignature", "SignatureParameter", "bare", "shape"]

_OPEN: Final = "([<"
_CLOSE: Final = ")]>"


def bare(name: str) -> str:
    """The name of an operator without the ``_`` of its form in place: ``aten::add_`` is ``aten::add``, ``aten::__and__`` stays."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


class SignatureParameter(NamedTuple):
    """One argument of a schema."""

    name: str
    """Its name; empty where the schema gives none."""
    type: str
    """Its type without alias annotations: ``Tensor?``, ``SymInt[2]``, ``Dict(str, Tensor)``."""
    default: str | None
    """The text of its default; None where it has none."""
    kwarg_only: bool
    """Whether it can be given by name only."""
    mutated: bool
    """Whether the operator writes to it."""

    @property
    def optional(self) -> bool:
        """Whether None is one of its values."""
        return self.type.endswith("?")


class CallSignature(NamedTuple):
    """A schema as calls see it."""

    name: str
    """``aten::add``."""
    overload: str
    """``Tensor``; empty where it has none."""
    arguments: tuple[SignatureParameter, ...]
    """In their order."""
    vararg: bool
    """Whether any number of further arguments is taken."""
    returns: str
    """The text behind the arrow."""

    def refuses(self, positional: int, keywords: frozenset[str] | set[str] | tuple[str, ...] = ()) -> str | None:
        """Why a call with so many positional arguments and these keywords does not fit; None if it does.

        Types are not looked at.
        """
        free = [argument for argument in self.arguments if not argument.kwarg_only]
        if positional > len(free) and not self.vararg:
            return f"takes {len(free)} positional arguments, the call has {positional}"
        given = {argument.name for argument in free[:positional]}
        known = {argument.name for argument in self.arguments}
        for keyword in sorted(keywords):
            if keyword not in known:
                return f"has no argument {keyword!r}"
            if keyword in given:
                return f"is given {keyword!r} twice"
        given.update(keywords)
        missing = [argument.name for argument in self.arguments if argument.default is None and argument.name not in given]
        return f"needs {', '.join(missing)}" if missing else None


@lru_cache(maxsize=4096)
def shape(schema: str) -> CallSignature:
    """The shape of a schema as a release prints it; raises UsageError for what is none."""
    head, parenthesis, rest = schema.partition("(")
    end = _closing(rest) if parenthesis else -1
    returns = rest[end + 1 :].lstrip()
    if end < 0 or not returns.startswith("->") or not head or " " in head:
        raise UsageError(f"is not the schema of an operator: {schema!r}", hint="expected name.overload(arguments) -> returns")
    if head.startswith("__torch__."):
        name, overload = head, ""  # a method of a class: its dots are no overload
    else:
        name, _, overload = head.partition(".")
    arguments: list[SignatureParameter] = []
    kwarg_only = vararg = False
    for part in _split(rest[:end]):
        if part == "*":
            kwarg_only = True
        elif part == "...":
            vararg = True
        else:
            arguments.append(_argument(part, kwarg_only))
    return CallSignature(name, overload, tuple(arguments), vararg, returns[2:].strip())


def _closing(text: str) -> int:
    """Where the parenthesis that is open at the beginning is closed; -1 if it never is."""
    depth, quote, at = 0, "", 0
    while at < len(text):
        character = text[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            if not depth:
                return at
            depth -= 1
        at += 1
    return -1


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket and no text."""
    if not text.strip():
        return []
    if not any(character in text for character in "([<\"'"):
        return [part.strip() for part in text.split(",")]
    parts, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(text):
        character = text[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE and text[at - 1 : at + 1] != "->":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    parts.append(text[start:].strip())
    return parts


def _argument(text: str, kwarg_only: bool) -> SignatureParameter:
    written, equals, default = _at_equals(text)
    kind, _, name = written.rpartition(" ")
    if not kind or not name.isidentifier():
        kind, name = written, ""
    mutated = "!" in kind
    return SignatureParameter(
        name, _without_aliases(kind) if "(" in kind else kind, default if equals else None, kwarg_only, mutated
    )


def _at_equals(text: str) -> tuple[str, str, str]:
    """The text before the first equals sign, the sign, and what is behind it: types have none."""
    written, equals, default = text.partition("=")
    return written.strip(), equals, default.strip()


def _without_aliases(kind: str) -> str:
    """A type without ``(a!)``, ``(a -> *)``, ``(a|b)``: parentheses behind a type that hold no type."""
    out, at = [], 0
    while at < len(kind):
        if kind[at] == "(" and at:
            end = at + 1 + _closing(kind[at + 1 :])
            inner = kind[at + 1 : end]
            word = kind[:at].rpartition(" ")[2]
            if _is_alias(inner) and not word.endswith(("Future", "RRef", "Await", "Dict", "Optional", "List", "Union", "Tuple")):
                at = end + 1
                continue
        out.append(kind[at])
        at += 1
    return "".join(out)


def _is_alias(inner: str) -> bool:
    """Whether it is sets of alias names: lower-case letters and ``*``, with ``!``, ``|`` and an arrow."""
    sets = [part.strip() for part in inner.replace("!", "").replace("->", "|").split("|")]
    return all(part == "*" or (part.isalnum() and part.islower() and len(part) <= 2) or not part for part in sets) and bool(inner)
