"""Numbers formatted into strings, characters of numbers, and shifts of integers: results of 1.8.1, 1.12.1 and 2.15.0."""

from __future__ import annotations

from typing import Any

import pytest

from torch_compat.errors import Raised
from torch_compat.releases.release import Release
from torch_compat.runtime.registry import NEWEST, resolve

inf, nan = float("inf"), float("nan")


def answer(name: str, *args: Any) -> Any:
    try:
        return resolve(f"aten::{name}", NEWEST)(*args)
    except Raised:
        return "raises"


@pytest.mark.parametrize(
    ("text", "value", "made"),
    [
        ("%d", 2.5, "2"),
        ("%d", -(2**62), str(-(2**62))),
        ("%d", 1e19, "-2147483648"),
        ("%d", nan, "-2147483648"),
        ("%d", True, "raises"),
        ("%i", -65, "-65"),
        ("%i", "x", "raises"),
        ("%f", 65, "65.000000"),
        ("%F", 0.1, "0.100000"),
        ("%f", True, "raises"),
        ("%e", 1e300, "inf"),
        ("%E", 2.5, "2.500000E+00"),
        ("%g", 2.5, "raises"),
        ("%G", 2.5, "raises"),
        ("%x", 255, "raises"),
        ("%o", 8, "raises"),
        ("%u", 8, "raises"),
        ("%r", "x", "raises"),
        ("%c", 65, "A"),
        ("%c", 300, ","),
        ("%c", "x", "x"),
        ("%c", "xy", "raises"),
        ("%c", "", "raises"),
        ("%c", True, "raises"),
        ("%s", True, "True"),
        ("%%", 1, "raises"),
    ],
)
def test_specifiers_of_percent_formats(text: str, value: Any, made: str) -> None:
    assert answer("percentFormat", text, value) == made


@pytest.mark.parametrize(
    ("code", "made"), [(0, "\0"), (127, "\x7f"), (256, "\0"), (300, ","), (1114111, "raises"), (-1, "raises")]
)
def test_a_character_is_the_lowest_byte_of_a_code_point(code: int, made: str) -> None:
    assert answer("chr", code) == made


@pytest.mark.parametrize(
    ("a", "count", "left", "right"),
    [
        (5, 64, 5, 5),
        (5, 65, 10, 2),
        (5, -1, -(2**63), 0),
        (5, -70, 1441151880758558720, 0),
        (-5, -1, -(2**63), -1),
        (-5, 65, -10, -3),
    ],
)
def test_integers_are_shifted_by_a_count_modulo_64(a: int, count: int, left: int, right: int) -> None:
    for release in ("1.5.1", "1.12.1", "2.15.0"):
        assert resolve("aten::__lshift__", Release(release))(a, count) == left
        assert resolve("aten::__rshift__", Release(release))(a, count) == right


@pytest.mark.parametrize("name", ["ljust", "rjust", "center"])
def test_strings_are_padded_with_one_character(name: str) -> None:
    assert answer(name, "abc", 5, "xy") == "raises"
    assert answer(name, "abc", 2, "") == "raises"
    assert answer(name, "abc", 0, "x") == "abc"
