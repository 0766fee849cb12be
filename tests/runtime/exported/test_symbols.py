"""Expressions of symbolic sizes are computed exactly, and nothing of them is executed."""

from __future__ import annotations

import contextlib
import time

import pytest

from tools.faults.exported import EXPRESSIONS
from torch_compat.errors import Corrupt, HarnessError, Raised, Unsupported
from torch_compat.runtime.exported.symbols import parse

SECONDS = 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0", 5),
        ("2*s0 + 1", 11),
        ("(s0//2)", 2),
        ("-s0 % 3", 1),
        ("Mod(s0, 3)", 2),
        ("Max(1, s0, 3)", 5),
        ("s0**2", 25),
        ("FloorDiv(s0 + 1, 4)", 1),
        ("Symbol('s0', positive=True, integer=True)", 5),
        ("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))", 9),
        ("Pow(Symbol('s0'), Integer(3))", 125),
        ("Where(s0 > 4, 1, 2)", 1),
        ("Eq(s0, 5)", True),
        ("IntTrueDiv(s0, 2)", 2.5),
        ("9007199254740993*s0", 45035996273704965),
        ("RoundDecimal(s0 + 10, -1)", 20),
        ("RoundDecimal(s0, -1000000000)", 0),
        ("RoundDecimal(s0 / 8, 1)", 0.6),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert parse(text, "here").value({"s0": 5}) == expected


def test_a_symbol_is_known_as_one_in_both_forms() -> None:
    plain, called = parse("s0", "here"), parse("Symbol('s0', positive=True, integer=True)", "here")
    assert (plain.symbol, called.symbol) == ("s0", "s0")
    assert plain.key == called.key == "s0"
    assert parse("Mul(Integer(2), Symbol('s0'))", "here").symbol is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s0 +",
        "(" * 5000 + "1" + ")" * 5000,
        "1" * 20_000,
        "+".join(["s0"] * 5000),
        "-" * 9000 + "1",
        "9" * 4000,
        "import os",
        "Float('x')",
    ],
)
def test_what_is_no_expression_or_too_large_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(Corrupt):
        parse(text, "here")


@pytest.mark.parametrize(
    "text",
    [
        "().__class__",
        "__import__('os')",
        "s0.real",
        "L.x",
        "[s0 for s0 in s1]",
        "lambda: 1",
        "(s0 := 1)",
        "f'{s0}'",
        "s9",
        "open('x')",
        "'a' * s0",
    ],
)
def test_what_reaches_beyond_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text, "here").value({"s0": 5})


@pytest.mark.parametrize("text", ["s0**s0**s0**s0", "1 << 99999999", "PowByNatural(10, 99999999)", "s0 // 0", "LShift(1, 5000)"])
def test_numbers_are_bounded_before_they_are_computed(text: str) -> None:
    with pytest.raises(Raised):
        parse(text, "here").value({"s0": 9})


@pytest.mark.parametrize("text", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_hostile_expressions_end_at_once(text: str) -> None:
    began = time.process_time()
    with contextlib.suppress(HarnessError):
        parse(text, "here").value({"s0": 7, "L": {"x": [1]}})
    assert time.process_time() - began < SECONDS
