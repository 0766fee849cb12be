"""Suggestions and counts are worded in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torch_compat.words import count_of, did_you_mean, similar_names, suggest

PACKAGE = Path(__file__).parents[1] / "harness" / "torch_compat"


@pytest.mark.parametrize(("count", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")])
def test_a_count_agrees_with_its_noun(count: int, text: str) -> None:
    assert count_of(count, "cell") == text
    assert count_of(count, "entry", "entries") == text.replace("cells", "entries").replace("cell", "entry")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "did you mean a?"),
        (["a", "b"], "did you mean a or b?"),
        (["a", "b", "c", "d"], "did you mean a, b or c?"),
    ],
)
def test_names_are_suggested_as_a_question(names: list[str], text: str) -> None:
    assert did_you_mean(names) == text


def test_similar_names_come_before_those_that_contain_the_name() -> None:
    assert similar_names("div", ["add", "floor_divide", "div", "dim"]) == ["div", "dim", "floor_divide"]
    assert similar_names("zz", ["buzzer"]) == []  # too short to be a part of a name
    assert similar_names("", ["a"]) == []


def test_without_a_similar_name_the_hint_is_another() -> None:
    assert suggest("dvi", ["div"], "otherwise") == "did you mean div?"
    assert suggest("zzz", ["div"], "otherwise") == "otherwise"
    assert suggest("zzz", ["div", "add"]) == "known: div, add"
    assert suggest("zzz", map(str, range(1000))) == ""


def test_no_other_code_words_a_suggestion() -> None:
    worded = re.compile(r"get_close_matches\(|nearest: |\(perhaps |did you mean [{']", re.IGNORECASE)
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = {name for name, text in texts.items() if worded.search(text) and not name.startswith("runtime/operators/")}
    assert found == {"words.py", "releases/known.py"}  # the releases near a version are those of its minor version first


def test_no_message_puts_a_fixed_plural_after_a_count() -> None:
    fixed = re.compile(r"\{(?:len\([^{}]*\)|[a-z_.]*count|total|sum\([^{}]*\))\} (?:[a-z-]+ )?[a-z]+s\b")
    alone = ("inside/", "runtime/", "extension.py", "arrays.py", "words.py")  # arrays.py shortens long numbers to text
    found = [
        (path.relative_to(PACKAGE).as_posix(), match[0])
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(alone)
        for match in fixed.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == [
        ("cli/produce.py", "{len(produced.reproduced)} as"), ("corpus/recorded/reading.py", "{lacks.count} of its"),
    ]  # fmt: skip
