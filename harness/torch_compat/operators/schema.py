r"""Schemas of operators: the whole grammar, parsed and printed.

::

    schema   name '(' [item (',' item)*] ')' '->' returns
    name     ident ['::' ident] ['.' overload]           no overload is called default, or begins with two underscores
    item     argument | '*' | '...'                      arguments after '*' are keyword-only; '...' ends the list
    argument type ident ['=' default]
    type     base alias? ('[]' alias? | '?')*  [ '[' N ']' alias? '?'? ]       a size is allowed in no other type
    base     '(' types ')' | Future(type) | Await(type) | RRef(type) | Dict(type, type) | Union(type, ...) | Tensor
             | __torch__.torch.classes.NAMESPACE.NAME
             | a name of types.BASE
             | ident ('.' ident)*, beginning in lower case and none of these: a type variable
    alias    '(' sets ['!'] ['->' sets] ')' | '!'         sets: ident or '*', joined by '|'
    returns  '...' | type [ident] | '(' [type [ident], ...] [, '...'] ')'
    default  None, True, False, a number (with '.' or 'e' a float, with 'j' a complex), a text, a list, or one of a few names

This is the grammar of 2.13.0, with two exceptions: 2.13.0 knows only the custom classes of its own build, while any class is allowed here;
and a text must be ASCII here. Tests compare both, text by text. Apparent mistakes of 2.13.0 are kept: an unknown lower-case name is a type
variable, ``complex x=12`` is ``1j``, ``int[2.5]`` is ``int[2]``.

Recorded releases before 2.13.0 print some things differently. :func:`parse` accepts them with ``recorded=True``: ``=<default>``
(1.2), ``Dict[k, v]``, nothing at all for no returns, dots in the names of methods, types that were removed.

``str`` of a schema is the text that it was parsed from, apart from white space; :func:`canonical` is what 2.13.0 prints. Nodes keep their
original spelling only if it differs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from torch_compat.operators.schema_model import Alias, Argument, Default, Schema, SchemaError, canonical
from torch_compat.operators.schema_parser import Parser, read_quickly

__all__ = ["Alias", "Argument", "Default", "Schema", "SchemaError", "canonical", "parse"]

_MOST: Final = 65_536
"""Size of the cache of schemas."""


@lru_cache(maxsize=_MOST)
def parse(text: str, *, recorded: bool = False) -> Schema:
    """Parse a schema; raises SchemaError with the column and what was expected there.

    ``recorded`` accepts the different output of releases before 2.13.0; see above.
    """
    return read_quickly(text, recorded=recorded) or Parser(text, recorded=recorded).schema()
