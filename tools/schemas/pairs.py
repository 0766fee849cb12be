"""Pairs of schemas to be judged: of consecutive releases, and made from real schemas by changing them, the same for the same number."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.operators.history import History
from torch_compat.operators.schema import Argument, Schema, SchemaError, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FILES = ("schemas.txt", "custom_classes.txt")
SEED = 20_261_121

LEAVES = [
    "Tensor", "int", "float", "bool", "str", "Scalar", "SymInt", "complex", "ScalarType", "Layout", "MemoryFormat", "Device", "Generator",
    "Storage", "Stream", "QScheme", "Quantizer", "Any", "NoneType", "Capsule", "AnyClassType", "AnyEnumType", "SymBool", "t", "u", "t1",
    "ConstQuantizerPtr", "DeviceIndex", "__torch__.torch.classes.quantized.LinearPackedParamsBase",
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
]  # fmt: skip
COMMON = [
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int", "SymInt", "int?", "SymInt?", "int[]", "SymInt[]", "int[]?", "float", "float?", "bool",
    "bool?", "str", "str?", "Scalar", "Scalar?", "Scalar[]", "ScalarType", "ScalarType?", "Layout?", "Device?", "MemoryFormat?", "Generator?", "Any",
    "t", "t[]", "u[]", "complex", "(int, str)", "(Scalar, str?)", "Dict(str, Tensor)", "Dict(str, t)", "Future(t)", "Union(int, str)",
    "Union(int, float, complex)", "Union(int, str, NoneType)",
]  # fmt: skip
ALIASES = ["", "", "(a)", "(a!)", "(b)", "(b!)", "(*)", "(a -> *)", "(a! -> a|b)", "(a|b)", "(b|a)", "!"]
DEFAULTS = [
    "None", "True", "False", "0", "1", "1", "2", "-1", "1.", "0.5", "1e-05", "1e10", "-2.5", "1j", "'a'", '"mean"', "''", "[]", "[0]",
    "[1]", "[1,1]", "[0,1]", "[1.,2.]", "[True]", "[True,False]", "float", "long", "strided", "contiguous_format", "Mean", "complex",
    "bfloat16", "int32", "'cpu'", "'cuda:0'",
]  # fmt: skip
NAMES = ["self", "other", "dim", "out", "x", "input", "alpha", "size"]


class One(NamedTuple):
    """An argument as text."""

    type: str
    """With its alias annotations and size."""
    name: str
    default: str | None
    kwarg_only: bool

    def __str__(self) -> str:
        return f"{self.type}{' ' if self.name else ''}{self.name}{'' if self.default is None else '=' + self.default}"


class Changed(NamedTuple):
    """A schema as text, in parts."""

    operator: str
    arguments: list[One]
    returns: list[One]
    vararg: bool
    varret: bool

    def __str__(self) -> str:
        free = [str(argument) for argument in self.arguments if not argument.kwarg_only]
        named = [str(argument) for argument in self.arguments if argument.kwarg_only]
        inside = ", ".join([*free, *(["*", *named] if named else []), *(["..."] if self.vararg else [])])
        back = ", ".join([*map(str, self.returns), *(["..."] if self.varret else [])])
        return f"{self.operator}({inside}) -> ({back})"


@cache
def recorded() -> tuple[tuple[str, str], ...]:
    """Every text of every release, with the file that it stands in."""
    return tuple((name, text) for name in FILES for text, _, _ in History.load(ROOT / "fixtures/operators" / name).facts())


@cache
def bases() -> tuple[Schema, ...]:
    """The schemas that pairs are made from: those that are read as 2.13.0 reads them."""
    results = []
    for _, text in recorded():
        try:
            results.append(parse(text))
        except SchemaError:
            continue
    return tuple(results)


@cache
def rare() -> tuple[Schema, ...]:
    """Those of them with types that few have."""
    signs = ("__torch__", "Dict(", "Future(", "Await(", "RRef(", "Union(", "Any", "complex", "((")
    return tuple(schema for schema in bases() if any(sign in str(schema) for sign in signs))


def consecutive() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """For each two releases that follow each other, (new, old) of every operator that both have; of all overloads of a name."""
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name in FILES:
        history = History.load(ROOT / "fixtures/operators" / name)
        by_name: dict[str, list[tuple[str, int]]] = {}
        for text, _, bits in history.facts():
            by_name.setdefault(text.partition("(")[0], []).append((text, bits))
        for at, (before, after) in enumerate(zip(history.releases, history.releases[1:], strict=False)):
            result = pairs.setdefault((before, after), [])
            for schemas in by_name.values():
                olds = [text for text, bits in schemas if bits >> at & 1]
                news = [text for text, bits in schemas if bits >> at + 1 & 1]
                result.extend((new, old) for old in olds for new in news)
    return pairs


def changed(schema: Schema) -> Changed:
    """The parts of a schema."""

    def part(argument: Argument) -> One:
        text = str(argument)
        written, equals, default = text.partition("=")
        kind, _, name = written.rpartition(" ") if argument.name else (written, "", "")
        return One(kind, name, default if equals else None, argument.kwarg_only)

    return Changed(
        schema.operator,
        [part(argument) for argument in schema.arguments],
        [part(item) for item in schema.returns],
        schema.is_vararg,
        schema.is_varret,
    )


def generated(number: int, seed: int = SEED) -> tuple[str, str]:
    """The pair of a number, (new, old): one made from a real schema, or both from the same one."""
    chance = random.Random(f"{seed} {number}")
    base = changed(chance.choice(rare() if chance.random() < 0.15 else bases()))
    first = mutated(base, chance, chance.choice((0, 0, 0, 1, 1, 2)))
    second = mutated(first if chance.random() < 0.7 else base, chance, chance.choice((1, 1, 1, 2, 2, 3)))
    pair = str(first), str(second)
    return pair if chance.random() < 0.5 else pair[::-1]


def typo(number: int, seed: int = SEED) -> str:
    """The text of a number: a real schema with one to three characters changed, left out, put in or moved."""
    chance = random.Random(f"typo {seed} {number}")
    text = str(chance.choice(bases()))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(text))
        sign = chance.choice("()[],:=?!*|->.<> _'\"\\0129aetTIN{};%" + text)
        text = chance.choice(
            (
                text[:at] + text[at + 1 :],
                text[:at] + sign + text[at:],
                text[:at] + sign + text[at + 1 :],
                text[:at],
                swapped(text, at),
            )
        )
        if not text:
            return "("
    return text


def swapped(text: str, at: int) -> str:
    """Two neighbours in the other order."""
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


# ------------------------------------------------------------------------------------------------------------------------- changes


def mutated(schema: Changed, chance: random.Random, times: int) -> Changed:
    """A schema with so many things changed."""
    for _ in range(times):
        schema = chance.choice(MUTATIONS)(schema, chance)
    return schema


def some_type(chance: random.Random, depth: int = 0) -> str:
    """Any type that can be written."""
    if depth > 2 or chance.random() < 0.45:
        return chance.choice(LEAVES) if chance.random() < 0.4 else chance.choice(COMMON)
    inner = some_type(chance, depth + 1)
    kind = chance.randrange(9)
    if kind < 3:
        return f"{inner}{chance.choice(('[]', '?', '?'))}"
    if kind == 3:
        return f"({', '.join([inner, *(some_type(chance, depth + 1) for _ in range(chance.randrange(3)))])})"
    if kind == 4:
        return f"Dict({chance.choice(('str', 'int', 'Tensor', 'float', 'Any', 'bool'))}, {inner})"
    if kind == 5:
        return f"Union({', '.join([inner, *(some_type(chance, depth + 1) for _ in range(chance.randint(1, 3)))])})"
    return f"{chance.choice(('Future', 'Await', 'RRef'))}({inner})"


def near(kind: str, chance: random.Random) -> str:
    """A type that has something to do with another one."""
    bare = kind.partition("(")[0] if kind.startswith("Tensor") else kind
    options = [
        f"{kind}?", f"{kind}[]", kind.removesuffix("?"), kind.replace("SymInt", "int"), kind.replace("int", "SymInt"), kind.replace("int", "Scalar"),
        kind.replace("ScalarType", "int"), kind.replace("int", "ScalarType"), kind.replace("float", "Scalar"), kind.replace("Scalar", "float"),
        f"Union({kind}, str)", f"Union({kind}, NoneType)", "Any", "NoneType", "AnyClassType" if "__torch__" in kind else "NoneType", f"({kind}, int)", bare + chance.choice(ALIASES), kind.replace("[]", "[2]"),
        kind.replace("[2]", "[]"), kind.replace("[1]", "[2]"), kind.replace("[]", f"[]{chance.choice(ALIASES)}"), f"{kind}[{chance.randrange(4)}]",
        kind.replace("(a!)", "(a)"), kind.replace("(a)", "(a!)"), kind.replace("(a!)", "(b!)"), kind.replace("(a!)", ""), kind.replace("t", "u"),
    ]  # fmt: skip
    other = [option for option in options if option != kind]
    return chance.choice(other)


def _another(schema: Changed, chance: random.Random, change: Any) -> Changed:
    ones = list(schema.arguments)
    if ones:
        at = chance.randrange(len(ones))
        ones[at] = change(ones[at])
    return schema._replace(arguments=ones)


def retype(schema: Changed, chance: random.Random) -> Changed:
    """Another type."""
    return _another(
        schema, chance, lambda item: item._replace(type=near(item.type, chance) if chance.random() < 0.7 else some_type(chance))
    )


def rename(schema: Changed, chance: random.Random) -> Changed:
    """Another name."""
    return _another(schema, chance, lambda item: item._replace(name=chance.choice(NAMES)))


def redefault(schema: Changed, chance: random.Random) -> Changed:
    """Another default, or none."""
    return _another(schema, chance, lambda item: item._replace(default=chance.choice((None, *DEFAULTS))))


def redefault_some(schema: Changed, chance: random.Random) -> Changed:
    """Another value of a default that there is."""
    ones = list(schema.arguments)
    places = [at for at, argument in enumerate(ones) if argument.default is not None]
    if places:
        at = chance.choice(places)
        ones[at] = ones[at]._replace(default=chance.choice((None, "None", "1", "2", "1.", "True", "[1,1]", "[]", "'a'")))
    return schema._replace(arguments=ones)


def keyword(schema: Changed, chance: random.Random) -> Changed:
    """By name only from another place on."""
    at = chance.randint(0, len(schema.arguments))
    return schema._replace(
        arguments=[argument._replace(kwarg_only=place >= at) for place, argument in enumerate(schema.arguments)]
    )


def keyword_one(schema: Changed, chance: random.Random) -> Changed:
    """One argument by name only, or no longer; it moves behind or before the others."""
    return _another(schema, chance, lambda item: item._replace(kwarg_only=not item.kwarg_only))


def drop(schema: Changed, chance: random.Random) -> Changed:
    """An argument less."""
    ones = list(schema.arguments)
    if ones:
        del ones[chance.randrange(len(ones))]
    return schema._replace(arguments=ones)


def swap(schema: Changed, chance: random.Random) -> Changed:
    """Two arguments in the other order."""
    ones = list(schema.arguments)
    if len(ones) > 1:
        at = chance.randrange(len(ones) - 1)
        ones[at], ones[at + 1] = ones[at + 1], ones[at]
    return schema._replace(arguments=ones)


def add(schema: Changed, chance: random.Random) -> Changed:
    """A new argument, most often with a default and where it may stand."""
    ones = list(schema.arguments)
    out = next((at for at, argument in enumerate(ones) if argument.kwarg_only and "!" in argument.type), len(ones))
    kind = chance.choice(
        (
            "int",
            "bool",
            "float",
            "str?",
            "int?",
            "Scalar",
            "int[2]",
            "int[]",
            "ScalarType?",
            "SymInt",
            "Tensor?",
            "float[]",
            "Device?",
        )
    )
    default = {
        "int": "1",
        "bool": "False",
        "float": "1.",
        "Scalar": "1",
        "SymInt": "0",
        "int[2]": "0",
        "int[]": "[]",
        "float[]": "[]",
    }.get(kind, "None")
    at = out if chance.random() < 0.6 else chance.randint(0, len(ones))
    by_name = at < len(ones) and ones[at].kwarg_only and chance.random() < 0.7
    by_name = by_name or (at > 0 and ones[at - 1].kwarg_only)
    ones.insert(at, One(kind, chance.choice(("new", "more", *NAMES)), default if chance.random() < 0.8 else None, by_name))
    return schema._replace(arguments=ones)


def add_out(schema: Changed, chance: random.Random) -> Changed:
    """An out argument more, somewhere among what is given by name."""
    ones = list(schema.arguments)
    first = next((at for at, argument in enumerate(ones) if argument.kwarg_only), len(ones))
    at = len(ones) if chance.random() < 0.5 else chance.randint(first, len(ones))
    ones.insert(
        at,
        One(
            f"Tensor({chance.choice('abc')}!){chance.choice(('', '', '', '[]', '?'))}",
            chance.choice(("out", "out1", "values")),
            None,
            True,
        ),
    )
    return schema._replace(arguments=ones)


def returned(schema: Changed, chance: random.Random) -> Changed:
    """Other returns."""
    ones = list(schema.returns)
    at = chance.randrange(len(ones)) if ones else 0
    what = chance.randrange(5)
    if what == 0 or not ones:
        ones.insert(at, One(some_type(chance), chance.choice(("", "", *NAMES)), None, False))
    elif what == 1:
        del ones[at]
    elif what == 2:
        ones[at] = ones[at]._replace(name=chance.choice(("", *NAMES)))
    else:
        ones[at] = ones[at]._replace(type=near(ones[at].type, chance) if what == 3 else some_type(chance))
    return schema._replace(returns=ones)


def varied(schema: Changed, chance: random.Random) -> Changed:
    """Any number of arguments or returns, or no longer."""
    if chance.random() < 0.5:
        return schema._replace(varret=not schema.varret)
    return schema._replace(vararg=not schema.vararg, arguments=[argument._replace(default=None) for argument in schema.arguments])


def reoverloaded(schema: Changed, chance: random.Random) -> Changed:
    """Another overload, or another operator."""
    name, _, overload = schema.operator.partition(".")
    return schema._replace(
        operator=chance.choice((name, f"{name}.other", f"{name}_.{overload or 'x'}", f"{name}.{overload or 'x'}"))
    )


def equal(schema: Changed, chance: random.Random) -> Changed:
    """The same, written otherwise or not at all."""
    return schema


MUTATIONS = [
    retype, retype, retype, retype, retype, redefault, redefault, redefault_some, redefault_some, rename, keyword, keyword_one, drop, swap, add, add, add,
    add_out, returned, returned, varied, reoverloaded, equal,
]  # fmt: skip


def batches(count: int, size: int) -> Iterator[range]:
    """Numbers below a count, in pieces."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))
