r"""Schemas of operators: the whole grammar, parsed and printed.

::

    schema   name '(' [item (',' item)*] ')' '->' returns
    name     ident ['::' ident] ['.' overload]           no overload is called default, or begins with two underscores
    item     argument | '*' | '...'                      behind '*' arguments are given by name only; '...' ends the list
    argument type ident ['=' default]
    type     base alias? ('[]' alias? | '?')*  [ '[' N ']' alias? '?'? ]       a size stands in no other type
    base     '(' types ')' | Future(type) | Await(type) | RRef(type) | Dict(type, type) | Union(type, ...) | Tensor
             | __torch__.torch.classes.NAMESPACE.NAME
             | a name of types.BASE
             | ident ('.' ident)*, beginning in lower case and none of these: a type variable
    alias    '(' sets ['!'] ['->' sets] ')' | '!'         sets: ident or '*', joined by '|'
    returns  '...' | type [ident] | '(' [type [ident], ...] [, '...'] ')'
    default  None, True, False, a number (with '.' or 'e' a float, with 'j' a complex), a text, a list, or one of a few names

This is what 2.13.0 takes, with two exceptions: it knows only the custom classes of its own build, here any is one; and here a text is
ASCII. Tests hold both to it, text by text. What looks like a mistake there is kept: an unknown name in lower case is a type variable,
``complex x=12`` is ``1j``, ``int[2.5]`` is ``int[2]``.

Releases that were asked before 2.13.0 print some things otherwise. :func:`parse` takes those with ``recorded=True``: ``=<default>``
(1.2), ``Dict[k, v]``, nothing at all for no returns, dots in the names of methods, types that are gone.

``str`` of a schema is the text that it was parsed from, white space apart; :func:`canonical` is what 2.13.0 prints. Nodes keep how they
were written only where that differs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from torch_compat.operators.schema_model import Alias, Argument, Default, Schema, SchemaError, canonical
from torch_compat.operators.schema_parser import WORDS, Parser

__all__ = ["Alias", "Argument", "Default", "Schema", "SchemaError", "canonical", "parse"]

_ARGUMENTS: Final[tuple[dict[str, Argument], ...]] = ({}, {}, {}, {})
"""Every argument that was ever read, by its text: positional and by name only, each without and with the spellings of old releases."""
_RETURNS: Final[tuple[dict[str, tuple[tuple[Argument, ...], bool, str | None]], ...]] = ({}, {})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)?")
_MOST: Final = 65_536
"""So many arguments and schemas are kept."""


@lru_cache(maxsize=_MOST)
def parse(text: str, *, recorded: bool = False) -> Schema:
    """The schema that a text is; raises SchemaError with the column and what was expected there.

    ``recorded`` takes what releases before 2.13.0 print otherwise; see above.
    """
    return _quickly(text, recorded=recorded) or Parser(text, recorded=recorded).schema()


def _quickly(text: str, *, recorded: bool) -> Schema | None:
    """The schema, put together from arguments that stood in others; None where that does not work, whatever the cause.

    A piece between commas that is an argument by itself is one here: what has a comma inside has a bracket or a quotation mark open in
    the first piece, which is then no argument.
    """
    head, _, rest = text.partition("(")
    middle = rest.rfind(") -> ")
    if middle < 0:
        return None
    name, _, overload = head.partition(".")
    if not _NAME.fullmatch(name) or (overload and not overload.isidentifier()) or not head.isascii():
        return None
    if (
        overload == "default"
        or overload.startswith("__")
        or WORDS.intersection((*name.split("::"), overload))
        or head.endswith(".")
    ):
        return None
    arguments: list[Argument] = []
    behind = int(recorded)
    kept = _ARGUMENTS[behind]
    kwarg_only = seen_default = False
    if middle:
        for piece in rest[:middle].split(", "):
            one = kept.get(piece)
            if one is None:
                if piece == "*":
                    kwarg_only = True
                    kept = _ARGUMENTS[behind + 2]
                    continue
                one = _alone(piece, kwarg_only=kwarg_only, recorded=recorded)
                if one is None:
                    return None
                if len(kept) < _MOST:
                    kept[piece] = one
            if one.default is not None:
                seen_default = True
            elif seen_default and not kwarg_only and one.type.kind != "list":
                return None
            arguments.append(one)
    said = rest[middle + 5 :]
    returns = _RETURNS[behind].get(said)
    if returns is None:
        try:
            parser = Parser(said, recorded=recorded)
            returns = parser.returned()
        except SchemaError:
            return None
        if parser.fresh:  # Tensor! is a set of its own, numbered through the whole schema
            return None
        if len(_RETURNS[behind]) < _MOST:
            _RETURNS[behind][said] = returns
    return Schema(
        name, overload, tuple(arguments), returns[0], is_vararg=False, is_varret=returns[1], returns_spelling=returns[2]
    )


def _alone(piece: str, *, kwarg_only: bool, recorded: bool) -> Argument | None:
    try:
        parser = Parser(piece, recorded=recorded)
        one = parser.argument(kwarg_only=kwarg_only)
    except SchemaError:
        return None
    return one if parser.token.kind == "end" and not parser.fresh else None
