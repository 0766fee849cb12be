"""Classification of changes: all differences between two schemas, in a closed vocabulary."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from torch_compat.operators.breaks import breaks, change_of, operator_of, same_schema
from torch_compat.operators.differences import DIFFERENCES, in_words
from torch_compat.operators.history import History

if TYPE_CHECKING:
    from torch_compat.operators.differences import Difference

OLD = "aten::f(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)"
WHOLE: set[Difference] = {"removed", "overload-moved", "never-there", "upgrader-dropped"}  # not between two schemas
PAIRS: list[tuple[str, str, tuple[Difference, ...]]] = [
    ("int n", "int n", ()),
    ("int n", "SymInt n", ()),  # one type to PyTorch's check
    ("int n", "int[] n", ("type-changed",)),
    ("int n", "int? n", ("type-widened",)),
    ("int n", "int k", ("argument-renamed",)),
    ("int n", "int? k", ("argument-renamed", "type-widened")),
    ("int n", "str k", ("argument-removed", "required-argument-added")),
    ("int n", "str s, int k", ("required-argument-added", "argument-renamed")),
    ("int n, *", "*, int k", ("argument-removed", "required-argument-added")),  # given otherwise
    ("int n", "int n, int m=1", ("argument-added",)),
    ("int n", "int n, int m", ("required-argument-added",)),
    ("Tensor self, int n", "int n, Tensor self", ("argument-moved",)),
    ("Tensor self, int n", "int n, Tensor? self", ("argument-moved", "type-widened")),
    ("Tensor self, int n", "Tensor self", ("argument-removed",)),
    ("int n", "int n=1", ("default-added",)),
    ("int n=1", "int n", ("default-removed",)),
    ("int n=1", "int n=2", ("default-changed",)),
    ("int n=1", "int n=<default>", ()),  # what a release does not print is not said to differ
    ("int[2] n", "int[3] n", ("list-size-changed",)),
    ("int n, *", "*, int n", ("keyword-only-changed",)),
    ("Tensor self", "Tensor(b!) self", ("alias-annotation",)),
    ("-> Tensor(a!)", "-> Tensor", ("alias-annotation",)),
    ("-> Tensor(a!)", "-> Tensor(a!)?", ("return-type-changed",)),
    ("-> Tensor(a!)", "-> Tensor(a!) result", ("return-renamed",)),
    ("-> Tensor(a!)", "-> (Tensor(a!), Tensor)", ("return-count-changed",)),
    ("-> Tensor(a!)", "-> ...", ("varargs-changed", "return-count-changed")),
    ("Tensor(a!) out", "Tensor(a!) result", ("argument-renamed",)),
    ("int n", "int?! n", ("unreadable",)),
    ("Tensor self, int n", "Tensor input, int n, int m", ("required-argument-added", "argument-renamed")),  # the first hides the second
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), PAIRS)
def test_what_differs_is_named(old: str, new: str, expected: tuple[Difference, ...]) -> None:
    before = next(text for text in (OLD, OLD.replace("int n", old), OLD.replace("Tensor self, int n", old)) if old in text)
    assert change_of(before, before.replace(old, new)) == expected


def test_every_word_of_the_vocabulary_is_met() -> None:
    assert {item for _, _, change in PAIRS for item in change} == DIFFERENCES.keys() - WHOLE


def test_nothing_differs_exactly_where_they_are_one_schema() -> None:
    """Over all schemas that ever stood under one name: the vocabulary has a word for whatever PyTorch's equality sees."""
    texts: dict[str, list[str]] = {}
    for text, _, _ in History.load().facts():
        texts.setdefault(operator_of(text), []).append(text)
    pairs = [pair for group in texts.values() for pair in permutations(group[:4], 2)]
    assert len(pairs) > 5000
    assert [pair for pair in pairs if (change_of(*pair) == ()) is not same_schema(*pair)] == []


def test_a_break_has_a_change() -> None:
    gone, moved, other = (
        "aten::g.x(Tensor self) -> Tensor",
        "aten::h.x(Tensor self) -> Tensor",
        "aten::h.y(Tensor self) -> Tensor",
    )
    result = breaks([OLD, gone, moved], [OLD.replace("int n", "int k"), other])
    assert [(item.operator, item.change, item.became) for item in result] == [
        ("aten::f", ("argument-renamed",), OLD.replace("int n", "int k")),
        ("aten::g.x", ("removed",), None),
        ("aten::h.x", ("overload-moved",), other),
    ]
    assert breaks([gone], [], incomplete="half of it")[0].change == ()


def test_a_change_is_said_in_words() -> None:
    assert in_words(("removed", "argument-added")).endswith("an argument with a default was added (removed, argument-added)")
