"""The tokens of schemas, split as by PyTorch's lexer; :mod:`torch_compat.operators.schema_parser` reads them."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

__all__ = ["WORDS", "Token", "token_pattern"]


@cache
def token_pattern() -> re.Pattern[str]:
    """The pattern of a token; its kind is the group name. Compiled for the first schema, as this takes longer than importing the rest."""
    return re.compile(
        r"""(?P<space>(?:[ \t\r\f\v]|\#(?![ ]type:)[^\n]*)+) | (?P<line>\n)
        | (?P<number>(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?
                      |(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)j?)
        | (?P<string>'''(?:[^'\\]|\\[\s\S]|'(?!''))*'''|\"\"\"(?:[^"\\]|\\[\s\S]|"(?!""))*\"\"\"
                     |'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")
        | (?P<unstated><default>)
        | (?P<ident>[A-Za-z_][A-Za-z_0-9]*) | (?P<dots>\.\.\.) | (?P<arrow>->) | (?P<sign>[-+*/%@()\[\]:,={}><.?!&^|~])""",
        re.VERBOSE,
    )


WORDS: Final = frozenset({
    "def", "if", "else", "elif", "while", "return", "is", "True", "False", "None", "and", "or", "not", "global", "for", "in", "raise", "assert",
    "break", "continue", "del", "pass", "class", "import", "with", "as", "Ellipsis", "NoneType",
})  # fmt: skip
"""Words that cannot be identifiers, because TorchScript reserves them."""


class Token(NamedTuple):
    """One token and its position."""

    kind: str
    """``number``, ``string``, ``ident``, ``end``, ``line``; otherwise the characters themselves."""
    text: str
    start: int
    end: int
