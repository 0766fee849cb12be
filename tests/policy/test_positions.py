from __future__ import annotations

import itertools
import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.policy.positions import Positions, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy.positions import Path

DOCUMENT = '''\
title = "x"  # 1
[policy]
name = "[[fake]]"
text = """
[not.a.table]
key = 1 \\"""
"""
after = 1  # 8

[[release]]
version = "1"
pythons = [  # 12
  "3.6",
  # "3.7", ]
  "3.8",
]
"quoted.key" = { a = 1, b.c = [ { d = 1 }, 2 ] }  # 17
[release.extra]  # 18
'literal # key' = \'\'\'a\'\'\'\'\'
[[release.part]]
x = 1979-05-27 07:32:00  # 21
[[release.part]]

[[release]]  # 24
part.y."z" = +inf
[ a . "b" . c ]
d = false
[a]
e = \'\'\'
\'\'\'
'''

EXPECTED: dict[Path, int] = {
    ("title",): 1,
    ("policy",): 2,
    ("policy", "name"): 3,
    ("policy", "text"): 4,
    ("policy", "after"): 8,
    ("release",): 10,
    ("release", 0): 10,
    ("release", 0, "version"): 11,
    ("release", 0, "pythons"): 12,
    ("release", 0, "pythons", 0): 13,
    ("release", 0, "pythons", 1): 15,
    ("release", 0, "quoted.key"): 17,
    ("release", 0, "quoted.key", "a"): 17,
    ("release", 0, "quoted.key", "b"): 17,
    ("release", 0, "quoted.key", "b", "c"): 17,
    ("release", 0, "quoted.key", "b", "c", 0): 17,
    ("release", 0, "quoted.key", "b", "c", 0, "d"): 17,
    ("release", 0, "quoted.key", "b", "c", 1): 17,
    ("release", 0, "extra"): 18,
    ("release", 0, "extra", "literal # key"): 19,
    ("release", 0, "part"): 20,
    ("release", 0, "part", 0): 20,
    ("release", 0, "part", 0, "x"): 21,
    ("release", 0, "part", 1): 22,
    ("release", 1): 24,
    ("release", 1, "part"): 25,
    ("release", 1, "part", "y"): 25,
    ("release", 1, "part", "y", "z"): 25,
    ("a",): 28,
    ("a", "b"): 26,
    ("a", "b", "c"): 26,
    ("a", "b", "c", "d"): 27,
    ("a", "e"): 29,
}


def test_every_construct_has_its_line() -> None:
    assert scan(DOCUMENT) == EXPECTED
    assert set(EXPECTED) == set(paths(tomllib.loads(DOCUMENT)))


def test_windows_line_ends_count_once() -> None:
    assert scan(DOCUMENT.replace("\n", "\r\n")) == EXPECTED


def test_an_empty_document_has_no_positions() -> None:
    assert scan("") == scan("# only a comment") == {}


def test_a_missing_key_is_where_its_table_is() -> None:
    positions = Positions(DOCUMENT)
    assert positions.line_of(("release", 1, "version")) == 24
    assert positions.line_of(("release", 0, "pythons", 7)) == 12
    assert positions.line_of(("nothing",)) == 1


@pytest.mark.parametrize("text", ["[", "= 1", "a = ", "a = [", "a = {", 'a = "'])
def test_text_that_is_no_toml_is_not_misread(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        scan(text)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every path of a parsed document."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(child, (*path, key))


class Writer:
    """Writes random TOML in which every scalar holds a number of its own, so that it can be found again in the text."""

    KEYS = ("a", "b-1", "1979", "true", "a.b", "", "#", "]", '"', "'", "=", "\\", "[[x]]", "ключ", "\t", "\n")
    TAILS = ("", " # no comment", " ]", " }", " = 1", " [x]", " ,")
    GAPS = ("", " ", "\t ")
    FILLERS = ("", "\n", '# a [table] = "open\n', "  # '''\n\n")

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.numbers = itertools.count(100_000)
        self.text = ""

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def keys(self) -> list[str]:
        return self.draw(st.lists(st.sampled_from(self.KEYS), unique=True, max_size=4))

    def key(self, key: str) -> str:
        forms = [json.dumps(key)]
        if key.isascii() and key.replace("-", "").isalnum():
            forms.append(key)
        if not set(key) & {"'", "\n"}:
            forms.append(f"'{key}'")
        return str(self.pick(forms))

    def dotted(self, keys: list[str]) -> str:
        return ".".join(f"{self.pick(self.GAPS)}{self.key(key)}{self.pick(self.GAPS)}" for key in keys)

    def scalar(self) -> str:
        number, tail = next(self.numbers), self.pick(self.TAILS)
        forms = [
            f"{number}",
            f"-{number}.5e3",
            json.dumps(f'{number}{tail} \\ "'),
            f"'{number}{tail}'",
            f'"""{number}{tail}\n[no.table]\nkey = "" \\""""',
            f'"""{number}"""""',
            f"'''{number}\n# '' [x]\n'''''",
            f"1979-05-27 07:32:00.{number}",
        ]
        return str(self.pick(forms))

    def value(self, depth: int) -> str:
        kind = self.pick(["scalar", "array", "inline"]) if depth else "scalar"
        if kind == "array":
            items = [self.value(depth - 1) for _ in range(self.pick([0, 1, 3]))]
            gap = self.pick(["", " ", "\n", ' # ] "\n'])
            return f"[{gap}" + f"{gap},{gap}".join(items) + (f"{gap},{gap}]" if items and self.pick([True, False]) else f"{gap}]")
        if kind == "inline":
            pairs = [f"{self.dotted([key])}= {self.value(depth - 1)}" for key in self.keys()]
            return "{ " + " , ".join(pairs) + " }"
        return self.scalar()

    def table(self, path: list[str], depth: int) -> None:
        """The pairs of a table, then its tables."""
        below = []
        for key in self.keys():
            kind = self.pick(["pair", "dotted", "table", "array"]) if depth else "pair"
            if kind == "pair":
                self.text += f"{self.dotted([key])}={self.value(2)}{self.pick(['', ' # x'])}\n{self.pick(self.FILLERS)}"
            elif kind == "dotted":
                for inner in self.keys():
                    self.text += f"{self.dotted([key, inner])}= {self.value(1)}\n"
            else:
                below.append((key, kind))
        for key, kind in below:
            for _ in range(self.pick([1, 2]) if kind == "array" else 1):
                header = self.dotted([*path, key])
                self.text += f"{self.pick(self.FILLERS)}" + (f"[[{header}]]\n" if kind == "array" else f"[{header}]\n")
                self.table([*path, key], depth - 1)


@st.composite
def documents(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    writer.table([], depth=2)
    return writer.text.replace("\n", "\r\n") if draw(st.booleans()) else writer.text


@given(documents())
def test_scanning_finds_the_paths_that_tomllib_finds_each_on_its_line(text: str) -> None:
    document = tomllib.loads(text)
    lines = scan(text)
    assert set(lines) == set(paths(document))
    written = text.split("\n")
    for path, value in leaves(document):
        number = value.strftime("%f") if hasattr(value, "strftime") else str(value).lstrip("-")[:6]
        assert number in written[lines[path] - 1]
    for path, line in lines.items():
        assert lines.get(path[:-1], 1) <= line
