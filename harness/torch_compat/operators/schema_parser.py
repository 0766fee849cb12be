"""The parser of schemas, reading from left to right; :mod:`torch_compat.operators.schema` has the grammar and the entry point.

:mod:`torch_compat.operators.call_signature` contains a second parser for ``inspect``, and explains why.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from torch_compat.operators.schema_model import (
    UNESCAPES,
    Alias,
    Argument,
    Default,
    Schema,
    SchemaError,
    printed_argument,
    printed_returns,
)
from torch_compat.operators.schema_tokens import WORDS, Token, token_pattern
from torch_compat.operators.types import (
    BASE,
    CLASS_PREFIX,
    RECORDED,
    SchemaType,
    custom_class,
    dict_of,
    list_of,
    optional_of,
    single_of,
    tuple_of,
    union_of,
    variable,
)
from torch_compat.values.dtypes import ALIASES, DTYPES
from torch_compat.words import did_you_mean, similar_names

__all__ = ["Parser", "read_quickly"]


_ARGUMENTS: Final[tuple[dict[str, Argument], ...]] = ({}, {}, {}, {})
"""Cache of all parsed arguments, by text: positional and keyword-only, each with and without the spellings of old releases.
"""
_RETURNS: Final[tuple[dict[str, tuple[tuple[Argument, ...], bool, str | None]], ...]] = ({}, {})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)?")
_MOST: Final = 65_536
"""Sizes of the caches of arguments and of returns."""
_INTEGER: Final = re.compile(r"-?[0-9]+")
_DEVICE: Final = (
    r"(?:cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta|hpu|mtia|privateuseone)"
    r"(?::(?:0|[1-9][0-9]*))?"
)
_NAMED_ANYWHERE: Final = {"float": 6, "complex": 9, "long": 4, "strided": 0, "Mean": 1, "contiguous_format": 0}
_SCALAR_TYPES: Final = {
    **{row.name: row.number for row in DTYPES.values() if row.number is not None},
    **{alias: DTYPES[name].number for alias, name in ALIASES.items()},
}
"""The dtype names that can be the default of a ScalarType, with their numbers."""
_LISTS: Final = {"int": int, "float": float, "complex": complex, "bool": bool}
_SINGLE: Final = frozenset({"str", "optional", "number", "int", "bool", "float", "complex"})


class Parser:
    """One text, read from left to right."""

    def __init__(self, text: str, *, recorded: bool) -> None:
        self.text = text
        self.recorded = recorded
        self.nesting = 0
        self.fresh = 0
        self.at = -1
        self.tokens: list[Token] = []
        self.token = self.next()

    def next(self) -> Token:
        """Advance to the next token."""
        self.at += 1
        if self.at == len(self.tokens):
            self.tokens.append(self._read())
        self.token = self.tokens[self.at]
        return self.token

    def ahead(self) -> Token:
        """The token after this one."""
        if self.at + 1 == len(self.tokens):
            self.tokens.append(self._read())
        return self.tokens[self.at + 1]

    def _read(self) -> Token:
        at = self.tokens[-1].end if self.tokens else 0
        while at < len(self.text):
            match = token_pattern().match(self.text, at)
            if match is None:
                self.refuse("a name, a number, a string or a symbol", at=at, actual=repr(self.text[at]))
            kind, word = str(match.lastgroup), match.group()
            if kind == "line" and self.text[at:].isspace():
                word = self.text[at:]
            if kind == "space" or (kind == "line" and (self.nesting or not self.tokens)):
                at = match.end()
                continue
            if kind == "unstated" and not self.recorded:
                kind, word = "sign", "<"
            if word in WORDS or kind in {"sign", "dots", "arrow", "unstated"}:
                kind = word
            if word in {"(", "["}:
                self.nesting += 1
            elif word in {")", "]"}:
                self.nesting = max(0, self.nesting - 1)
            return Token(kind, word, at, at + len(word))
        return Token("end", "", at, at)

    def refuse(self, expected: str, *, at: int | None = None, actual: str | None = None) -> NoReturn:
        """Raise a SchemaError at the current token, or at ``at``."""
        if actual is None:
            actual = "the end" if self.token.kind == "end" else repr(self.token.text)
        raise SchemaError(self.text, (self.token.start if at is None else at) + 1, expected, actual)

    def take(self, kind: str) -> bool:
        """Consume a token of this kind, if it is the current one."""
        if self.token.kind != kind:
            return False
        self.next()
        return True

    def expect(self, kind: str, expected: str | None = None) -> str:
        """Consume a token of this kind, or refuse the text."""
        token = self.token
        if token.kind != kind:
            self.refuse(expected or repr(kind))
        self.next()
        return token.text

    # ---- the parts of a schema

    def schema(self) -> Schema:
        """Parse the whole text."""
        name, overload = self._name()
        if self.token.kind != "(":
            self.refuse("'(' and the arguments" if overload else "'(' and the arguments, or '.' and an overload")
        self.next()
        arguments: list[Argument] = []
        kwarg_only = is_vararg = False
        if self.token.kind != ")":
            while True:
                if is_vararg:
                    self.refuse("nothing after '...'")
                if self.take("*"):
                    kwarg_only = True
                elif self.take("..."):
                    is_vararg = True
                else:
                    start = self.token.start
                    item = self.argument(kwarg_only=kwarg_only)
                    _follows(self, arguments, item, start)
                    arguments.append(item)
                if not self.take(","):
                    break
        if self.token.kind == ")" and is_vararg and any(entry.default is not None for entry in arguments):
            self.refuse("no defaults together with '...'")
        self.expect(")", "',' or ')'")
        self.expect("->")
        returns, is_varret, spelling = self.returned()
        return Schema(name, overload, tuple(arguments), returns, is_vararg, is_varret, spelling)

    def _name(self) -> tuple[str, str]:
        if self.recorded and self.text.startswith(CLASS_PREFIX):
            # A method of a class, as 1.6 to 1.12 name it: its dots do not separate an overload.
            parts = [self.expect("ident", "a name")]
            while self.take("."):
                parts.append(self.expect("ident", "a name"))
            return ".".join(parts), ""
        name = self.expect("ident", "the name of an operator")
        if self.take(":"):
            self.expect(":")
            name += "::" + self.expect("ident", "the name of an operator")
        if not self.take("."):
            return name, ""
        token = self.token
        overload = self.expect("ident", "the name of an overload")
        if overload == "default" or overload.startswith("__"):
            self.refuse(
                "an overload name other than 'default' that does not begin with two underscores",
                at=token.start,
                actual=repr(overload),
            )
        return name, overload

    def returned(self) -> tuple[tuple[Argument, ...], bool, str | None]:
        """Parse everything after the arrow, up to the end of the text."""
        start = self.at
        returns: list[Argument] = []
        is_varret = False
        if self.take("..."):
            is_varret = True
        elif self.token.kind == "(":
            self.next()
            if self.token.kind != ")":
                while True:
                    if is_varret:
                        self.refuse("nothing after '...'")
                    if self.take("..."):
                        is_varret = True
                    else:
                        returns.append(self.argument(kwarg_only=False, is_return=True))
                    if not self.take(","):
                        break
            self.expect(")", "',' or ')'")
        elif not (self.recorded and self.token.kind == "end"):
            returns.append(self.argument(kwarg_only=False, is_return=True))
        end = self.at
        self.take("line")
        if self.token.kind != "end":
            self.refuse("nothing more")
        written = self._written(start, end)
        result = Schema("", "", (), tuple(returns), is_vararg=False, is_varret=is_varret)
        return result.returns, is_varret, None if written == printed_returns(result) else written

    def argument(self, *, kwarg_only: bool, is_return: bool = False) -> Argument:
        """Parse one argument, or one return."""
        start = self.at
        real, alias = self._type()
        size = None
        if self.token.kind == "[":
            self.next()
            token = self.token
            digits = _INTEGER.match(self.expect("number", "']', or the size of the list"))
            if digits is None:
                self.refuse("the size of the list", at=token.start, actual=repr(token.text))
            self.expect("]")
            size = _stored(int(digits.group()), 32)
            real, alias = list_of(real), self._container(alias)
            if self.token.kind == "?":
                real = self._made(optional_of, real)
                self.next()
        name, default = "", None
        if not is_return:
            name = self.expect("ident", "the name of the argument")
            if self.take("="):
                default = self._default(real, size)
        elif self.token.kind == "ident":
            name = self.token.text
            self.next()
        written = self._written(start, self.at)
        result = Argument(name, real, size, default, kwarg_only, alias, kwarg_only and alias is not None and alias.write)
        return result if printed_argument(result) == written else result._replace(spelling=written)

    def _written(self, start: int, end: int) -> str:
        """The text of a range of tokens."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end] if end > start else ""

    def _made(self, make: Any, *types: Any) -> SchemaType:
        """Create a type from types; refuse the text if PyTorch cannot create it."""
        try:
            result: SchemaType = make(*types)
        except ValueError as error:
            self.refuse(str(error), actual=repr(self.token.text))
        return result

    def _type(self) -> tuple[SchemaType, Alias | None]:
        real, alias = self._base()
        while True:
            if self.token.kind == "[" and self.ahead().kind == "]":
                self.next()
                self.next()
                real, alias = list_of(real), self._container(alias)
            elif self.token.kind == "?":
                real = self._made(optional_of, real)
                self.next()
            else:
                return real, alias

    def _container(self, alias: Alias | None) -> Alias | None:
        """Parse the annotation after a list, and combine it with that of the elements."""
        container = self._alias()
        if alias is None:
            return container
        if container is None:
            container = Alias((), (), alias.write)
        return container._replace(contained=(*container.contained, alias))

    def _fake(self) -> SchemaType:
        return self._type()[0].fake

    def _base(self) -> tuple[SchemaType, Alias | None]:
        token = self.token
        word = token.text
        if token.kind == "(":
            self.next()
            return tuple_of(self._types(")")), None
        if token.kind != "ident" and word not in {"None", "NoneType"}:
            self.refuse("a type")
        self.next()
        if word in {"Future", "Await", "RRef"}:
            self.expect("(")
            product = single_of(word, self._fake())
            self.expect(")")
            return product, None
        if word == "Dict":
            closing = "]" if self.recorded and self.take("[") else ")"
            if closing == ")":
                self.expect("(")
            key = self._fake()
            self.expect(",")
            value = self._fake()
            real = self._made(dict_of, key, value)
            self.expect(closing)
            return real, self._alias()
        if word == "Union":
            self.expect("(")
            types = [self._fake()]
            while self.token.kind != ")":
                self.expect(",", "',' or ')'")
                types.append(self._fake())
            real = self._made(union_of, tuple(types))
            self.next()
            return real, self._alias()
        if word == "__torch__":
            return self._class(), None
        while self.token.kind == "." and self.ahead().kind == "ident":
            word += f".{self.next().text}"
            self.next()
        result = BASE.get(word) or (RECORDED.get(word) if self.recorded else None)
        if result is None:
            if not word[0].islower():
                self.refuse(f"a type{_nearest(word)}", at=token.start, actual=repr(word))
            result = variable(word)
        return result, self._alias()

    def _types(self, closing: str) -> tuple[SchemaType, ...]:
        types: list[SchemaType] = []
        if self.token.kind != closing:
            types.append(self._fake())
            while self.take(","):
                types.append(self._fake())
        self.expect(closing, f"',' or {closing!r}")
        return tuple(types)

    def _class(self) -> SchemaType:
        parts = []
        for expected in ("torch", "classes", None, None):
            self.expect(".")
            if expected is not None and self.token.text != expected:
                self.refuse(repr(expected))
            parts.append(self.expect("ident", "the name of a custom class"))
        return custom_class(".".join(["__torch__", *parts]))

    def _alias(self) -> Alias | None:
        if self.take("!"):
            self.fresh += 1
            return Alias((f"${self.fresh - 1}",), (), write=True)
        if not self.take("("):
            return None
        before = self._sets()
        write = self.take("!")
        after = self._sets() if self.take("->") else before
        self.expect(")", "')' after the alias sets")
        return Alias(before, after, write)

    def _sets(self) -> tuple[str, ...]:
        """Parse names of sets. 2.13.0 prints them in the order of a hash table, which is reversed as long as there are few."""
        sets: list[str] = []
        while True:
            if self.take("*"):
                sets.append("*")
            elif "*" not in sets:
                sets.append(self.expect("ident", "the name of an alias set, or '*'"))
            if not self.take("|"):
                return tuple(reversed(dict.fromkeys(sets)))

    # ---- defaults

    def _default(self, real: SchemaType, size: int | None) -> Default:
        if self.take("<default>"):
            return Default("unstated", None)
        fake = real.fake
        if fake.kind in _SINGLE:
            return self._constant(fake.kind, real)
        if fake.kind in {"tensor", "generator", "quantizer"}:
            self.expect("None")
            return Default("none", None)
        if fake.kind == "device":
            token = self.token
            text = _unquoted(self, token) if token.kind == "string" else ""
            if not re.fullmatch(_DEVICE, text):
                self.refuse("a string that names a device")
            self.next()
            device, colon, index = text.partition(":")
            return Default("device", f"{device}:{_stored(int(index), 8)}" if colon else device)
        if fake.kind != "list":
            self.refuse(f"no default: the type {real.text} has none")
        return self._list(real, size)

    def _list(self, real: SchemaType, size: int | None) -> Default:
        inner, start = real.contained[0], self.token.start
        kind = inner.fake.kind
        if size is not None and self.token.kind not in {"[", "ident"}:
            results = [self._constant(kind, inner)] * size
        else:
            self.expect("[")
            results = []
            if self.token.kind != "]":
                results.append(self._constant(kind, inner))
                while self.take(","):
                    results.append(self._constant(kind, inner))
            self.expect("]", "',' or ']'")
        if kind not in _LISTS:
            self.refuse(f"no default: a list of {inner.text} has none", at=start, actual=repr(self.text[start]))
        if any(item.kind != kind for item in results):
            self.refuse(f"values that are {kind}", at=start, actual=repr(self.text[start : self.token.start].strip()))
        return Default(f"list[{kind}]", tuple(item.value for item in results))

    def _constant(self, kind: str, real: SchemaType) -> Default:
        token = self.token
        if token.kind in {"True", "False"}:
            self.next()
            return Default("bool", token.kind == "True")
        if self.take("None"):
            return Default("none", None)
        if token.kind == "string":
            text = _unquoted(self, token)
            self.next()
            return Default("str", text)
        if token.kind == "ident":
            scalar_type = real.kind == "scalar-type" or (real.kind == "optional" and real.contained[0].kind == "scalar-type")
            value = _NAMED_ANYWHERE.get(token.text, _SCALAR_TYPES.get(token.text) if scalar_type else None)
            if value is None:
                self.refuse("a default" + (" that names a dtype" if scalar_type else ""))
            self.next()
            return Default("int", value)
        sign = "-" if self.take("-") else ""
        at = self.token.start
        number = sign + self.expect("number", "a default" if not sign else "a number")
        try:
            if kind == "complex" or "j" in number:
                return Default("complex", complex(0.0, _real(number[:-1])))
            if kind == "float" or "." in number or "e" in number:
                return Default("float", _real(number))
            digits = _INTEGER.match(number)
            return Default("int", _fitting(int(digits.group())) if digits else _real(""))
        except (ValueError, OverflowError):
            self.refuse("a number that fits its type", at=at, actual=repr(number))


def _stored(value: int, bits: int) -> int:
    """A number after storing it in this many bits."""
    half = 1 << bits - 1
    return (value + half) % (2 * half) - half


def _fitting(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise OverflowError
    return value


def _real(text: str) -> float:
    """Parse the longest valid prefix like the C library: refuse overflow and numbers below the smallest normal one."""
    match = token_pattern().match(text.removeprefix("-"))
    if match is None or match.lastgroup != "number":
        raise ValueError
    word = match.group().removesuffix("j")
    value = float.fromhex(word) if word[:2] in {"0x", "0X"} else float(word)
    if (
        value == float("inf")
        or 0 < value < 2.0**-1022
        or (value == 0 and not word.startswith(("0x", "0X")) and re.search("[1-9]", word.lower().split("e")[0]))
    ):
        raise OverflowError
    return -value if text.startswith("-") else value


def _unquoted(parser: Parser, token: Token) -> str:
    """The text inside quotes, with escapes resolved."""
    quotes = 3 if token.text[:3] in {"'''", '"""'} else 1
    inner = token.text[quotes:-quotes]
    out, at = "", 0
    while at < len(inner):
        item = inner[at]
        if item == "\\":
            plain = UNESCAPES.get(inner[at + 1])
            if plain is not None:
                item, at = plain, at + 1
            else:
                octal = re.match("[0-3][0-7]{2}", inner[at + 1 :])
                if octal is None:
                    parser.refuse(
                        "an escape sequence that PyTorch supports", at=token.start + quotes + at, actual=repr(inner[at : at + 2])
                    )
                item, at = chr(int(octal.group(), 8)), at + 3
        elif not item.isascii():
            parser.refuse("ASCII", at=token.start + quotes + at, actual=repr(item))
        out += item
        at += 1
    return out


def _nearest(word: str) -> str:
    """A hint with known names similar to an unknown one."""
    near = similar_names(word, [*BASE, "Dict", "Future", "Union"], most=2)
    return f" ({did_you_mean(near)})" if near else ""


def _follows(parser: Parser, before: list[Argument], argument: Argument, start: int) -> None:
    """Refuse an argument without a default after one that has one. As in PyTorch, lists and keyword-only arguments are exempt."""
    if (
        argument.default is None
        and not argument.kwarg_only
        and argument.type.kind != "list"
        and any(other.default is not None for other in before)
    ):
        parser.refuse("a default, since an earlier argument has one", at=start, actual=repr(argument.name))


def read_quickly(text: str, *, recorded: bool) -> Schema | None:
    """Assemble the schema from cached arguments; None if this does not work, for whatever reason.

    A text between commas that parses as an argument is treated as one. This is safe: if a comma is part of an argument, the text before it
    has an open bracket or quotation mark, and so is not an argument.
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
            item = kept.get(piece)
            if item is None:
                if piece == "*":
                    kwarg_only = True
                    kept = _ARGUMENTS[behind + 2]
                    continue
                item = _alone(piece, kwarg_only=kwarg_only, recorded=recorded)
                if item is None:
                    return None
                if len(kept) < _MOST:
                    kept[piece] = item
            if item.default is not None:
                seen_default = True
            elif seen_default and not kwarg_only and item.type.kind != "list":
                return None
            arguments.append(item)
    message = rest[middle + 5 :]
    returns = _RETURNS[behind].get(message)
    if returns is None:
        try:
            parser = Parser(message, recorded=recorded)
            returns = parser.returned()
        except SchemaError:
            return None
        if parser.fresh:  # Tensor! creates a new set, numbered across the whole schema
            return None
        if len(_RETURNS[behind]) < _MOST:
            _RETURNS[behind][message] = returns
    return Schema(
        name, overload, tuple(arguments), returns[0], is_vararg=False, is_varret=returns[1], returns_spelling=returns[2]
    )


def _alone(piece: str, *, kwarg_only: bool, recorded: bool) -> Argument | None:
    try:
        parser = Parser(piece, recorded=recorded)
        item = parser.argument(kwarg_only=kwarg_only)
    except SchemaError:
        return None
    return item if parser.token.kind == "end" and not parser.fresh else None
