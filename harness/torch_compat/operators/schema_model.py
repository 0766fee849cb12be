"""Schemas of operators as objects, and printing them; :mod:`torch_compat.operators.schema` describes the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from torch_compat.operators.types import (
        SchemaType,
    )

__all__ = [
    "UNESCAPES",
    "Alias",
    "Argument",
    "Default",
    "Schema",
    "SchemaError",
    "canonical",
    "printed_argument",
    "printed_returns",
]


class SchemaError(UsageError):
    """A text is not a schema.

    Attributes:
        text: the text.
        column: the column of the error, counted from 1; one after the last character if the text ends too early.
        expected: what was expected there.
        found: what was found there.
    """

    default_code = "schema"

    def __init__(self, text: str, column: int, expected: str, value: str) -> None:
        super().__init__(f"is not an operator schema: {text!r}: expected {expected}, found {value}", where=f"column {column}")
        self.text = text
        self.column = column
        self.expected = expected
        self.found = value


class Alias(NamedTuple):
    """The alias sets of an argument, and whether the operator writes to it."""

    before: tuple[str, ...]
    """The sets that it belongs to, in the order in which 2.13.0 prints them."""
    after: tuple[str, ...]
    """The sets that it belongs to after the operator has run."""
    write: bool
    """Whether the operator writes to it."""
    contained: tuple[Alias, ...] = ()
    """The same for the elements of a list."""

    def __str__(self) -> str:
        after = f" -> {'|'.join(self.after)}" if set(self.before) != set(self.after) else ""
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{after})"

    def same(self, other: Alias) -> bool:
        """PyTorch's equality, which ignores the order of sets."""
        return (
            self.write == other.write
            and set(self.before) == set(other.before)
            and set(self.after) == set(other.after)
            and len(self.contained) == len(other.contained)
            and all(a.same(b) for a, b in zip(self.contained, other.contained, strict=True))
        )


class Default(NamedTuple):
    """A default value."""

    kind: str
    """``none``, ``bool``, ``int``, ``float``, ``complex``, ``str``, ``device``, ``list[int]`` and so on; ``unstated`` for
    ``<default>``."""
    value: Any
    """Its value; lists are stored as tuples."""

    def same(self, other: Default) -> bool:
        """PyTorch's equality: ``1`` is neither ``1.`` nor ``True``. A default that no release stated equals any other."""
        return "unstated" in {self.kind, other.kind} or (self.kind == other.kind and bool(self.value == other.value))


class Argument(NamedTuple):
    """One argument of a schema, or one of its returns."""

    name: str
    """Its name; empty for a return without a name."""
    type: SchemaType
    """Its type; ``type.fake`` is the type that PyTorch's checks see."""
    size: int | None
    """The N of ``T[N]``."""
    default: Default | None
    """Its default; None if it has none."""
    kwarg_only: bool
    """Whether it is keyword-only."""
    alias: Alias | None
    """Its alias annotation."""
    is_out: bool
    """Whether PyTorch treats it as an out argument: keyword-only, and written to."""
    spelling: str | None = None
    """How it was written, if 2.13.0 prints it differently."""

    def __str__(self) -> str:
        return self.spelling or printed_argument(self)


class Schema(NamedTuple):
    """The schema of an operator, or of a method of a custom class."""

    name: str
    """``aten::add``."""
    overload: str
    """``Tensor``; empty if it has no overload name."""
    arguments: tuple[Argument, ...]
    """The arguments, in order."""
    returns: tuple[Argument, ...]
    """The returns, in order."""
    is_vararg: bool
    """Whether any number of additional arguments is accepted."""
    is_varret: bool
    """Whether any number of additional values is returned."""
    returns_spelling: str | None = None
    """How the returns were written, if 2.13.0 prints them differently."""

    @property
    def operator(self) -> str:
        """``aten::add.Tensor``."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def __str__(self) -> str:
        returns = self.returns_spelling
        return f"{_head(self, [str(argument) for argument in self.arguments])}{printed_returns(self) if returns is None else returns}"


# ------------------------------------------------------------------------------------------------------------------------ printing


def canonical(schema: Schema) -> str:
    """The text that 2.13.0 prints for a schema."""
    return _head(schema, [printed_argument(argument) for argument in schema.arguments]) + printed_returns(schema)


def _head(schema: Schema, arguments: list[str]) -> str:
    for at, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            arguments.insert(at, "*")
            break
    if schema.is_vararg:
        arguments.append("...")
    return f"{schema.operator}({', '.join(arguments)}) -> "


def printed_returns(schema: Schema) -> str:
    """The returns as 2.13.0 prints them."""
    parts = [printed_argument(item) for item in schema.returns]
    if schema.is_varret:
        parts.append("...")
    # A single value that begins with a parenthesis gets another pair: otherwise it would be parsed as several values.
    bare = len(parts) == 1 and not parts[0].startswith("(")
    return parts[0] if bare else f"({', '.join(parts)})"


def printed_argument(argument: Argument) -> str:
    """An argument as 2.13.0 prints it."""
    real, alias = argument.type, argument.alias
    inner = real.contained[0] if real.kind == "optional" else real
    if inner.kind == "list":
        contained = str(alias.contained[0]) if alias is not None and alias.contained else ""
        out = f"{inner.contained[0].text}{contained}[{'' if argument.size is None else argument.size}]"
    else:
        out = inner.text
    if alias is not None and alias.before:
        out += str(alias)
    if inner is not real:
        out += "?"
    if argument.name:
        out += f" {argument.name}"
    if argument.default is not None:
        out += f"={_printed_default(real, inner, argument.default)}"
    return out


def _printed_default(real: SchemaType, inner: SchemaType, default: Default) -> str:
    if default.kind == "str":
        return _quoted(default.value) if inner.kind == "str" else str(default.value)
    if default.kind.startswith("list"):
        values = default.value
        if real.kind == "list" and real.contained[0].kind == "int" and len(values) > 1 and len(set(values)) == 1:
            return str(values[0])
        return f"[{', '.join(_printed_value(value) for value in values)}]"
    return "<default>" if default.kind == "unstated" else _printed_value(default.value)


def _printed_value(value: object) -> str:
    if isinstance(value, float):
        whole = abs(value) < 2.0**63 and value == int(value)
        return f"{int(value)}." if whole else f"{value:.17g}"
    if isinstance(value, complex):
        sign = "-" if value.imag < 0 else "+"
        return f"{_printed_value(value.real)}{sign}{_printed_value(abs(value.imag))}j"
    return str(value)


_ESCAPES: Final = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\v": "\\v",
    "\t": "\\t",
}
UNESCAPES: Final = {written[1]: plain for plain, written in _ESCAPES.items()} | {"\n": "\n"}


def _quoted(text: str) -> str:
    return (
        '"'
        + "".join(
            _ESCAPES.get(character) or (character if " " <= character <= "~" else f"\\{ord(character):03o}") for character in text
        )
        + '"'
    )
