"""Which operators a release refuses to compute with floats of 16 bits, as the releases said it: ``fixtures/operators/halves.txt``.

Each question of that file is a call as it stands in a program, ``layer_norm(m, [3])``, asked with tensors of float16 and of bfloat16, and
again with tensors without elements; of each release it says ``computes``, or what the release raised. Only what computes with
float32 was asked, so whatever was raised is about the dtype.

A call of a program is taken for the question of the same operator whose tensors have the same numbers of dimensions and that has as many
arguments; failing that, for those with the same numbers of dimensions, then for those with as many tensors, since max of two tensors is
another kernel than max of one, and then for all of the operator; of matmul, for the product that it makes of tensors with such numbers.
Where these disagree, nothing is claimed. An operator in place that was not asked is taken for the one that is not.
"""

from __future__ import annotations

import ast
import json
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.history import FactHistory
from torch_compat.releases.data import packaged
from torch_compat.releases.release import Release
from torch_compat.torchscript.parser import parse_expression

if TYPE_CHECKING:
    from torch_compat.releases.known import Known

__all__ = [
    "COMPUTES",
    "DTYPES",
    "EMPTY",
    "FILE",
    "RANKS",
    "Question",
    "as_asked",
    "changed",
    "computed_by",
    "nearest",
    "question",
    "refuses",
    "said",
]

FILE = "halves.txt"
COMPUTES = "computes"
DTYPES: Final = ("float16", "bfloat16")
EMPTY: Final = "-empty"
"""Suffix of the dtype name for empty tensors."""

RANKS = {
    "a": 0, "b": 3, "b3": 3, "c": 3, "d": 3, "d4": 3, "e8": 3, "f": 4, "f1": 4, "g": 3, "i": 4, "i4": 4, "l": 3, "m": 2, "n": 2, "o": 5, "p": 2,
    "p2": 2, "p3": 2, "q": 3, "r6": 1, "r8": 1, "s": 2, "s2": 2, "u": 1, "v": 1, "w": 1, "w23": 2, "w3": 3, "w4": 1, "w6": 2, "w62": 2,
    "w82": 2, "w83": 2, "v1": 1, "y": 4, "y2": 3, "y3": 3, "z": 5,
}  # fmt: skip
"""The numbers of dimensions of the floats in queries; a test compares them with the survey."""


MATMUL = frozenset({"aten::matmul", "aten::__matmul__", "aten::linalg_matmul"})
MATRIX, BATCH = 2, 3
BY_VECTOR: Final = Release("1.12.0")


class Question(NamedTuple):
    """A call that was asked.

    Attributes:
        ranks: the numbers of dimensions of the tensors of floats that it gives.
        given: how many arguments it gives by position.
        places: the positions of the arguments that are floats, or lists of them.
        words: the names of arguments that are texts and given by name, as ``rounding_mode``.
        texts: the arguments that are texts, by name or by position.
    """

    ranks: tuple[int, ...]
    given: int
    places: frozenset[int]
    words: frozenset[str]
    texts: frozenset[str]


class _Asked(NamedTuple):
    """One question, of one dtype, with or without elements.

    Attributes:
        question: what was asked.
        said: what was said, with the releases as bits.
    """

    question: Question
    said: tuple[tuple[str, int], ...]


@cache
def _history() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", FILE))


@cache
def _asked(name: str) -> dict[str, list[_Asked]]:
    """What was asked of an operator, by dtype, ``float16-empty`` of tensors without elements."""
    history = _history()
    start = f"{name.removeprefix('aten::')}("
    by_key: dict[str, list[tuple[str, int]]] = {}
    for line in history.lines[bisect_left(history.lines, start) :]:
        if not line.startswith(start):
            break
        key, value, spans = line.split("\t")
        by_key.setdefault(key, []).append((json.loads(value), history.bits(spans)))
    found: dict[str, list[_Asked]] = {}
    for key, told in by_key.items():
        spelled, _, dtype = key.rpartition(" > ")
        found.setdefault(dtype, []).append(_Asked(question(spelled), tuple(told)))
    return found


def question(spelled: str) -> Question:
    """What a call as it is spelled in the file asks."""
    call = parse_expression(spelled)
    assert isinstance(call, ast.Call)  # noqa: S101 - our own file
    named = [
        (place, node.id)
        for place, one in enumerate(call.args)
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and node.id in RANKS
    ]
    words = frozenset(
        one.arg
        for one in call.keywords
        if one.arg is not None and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    )
    given = [*call.args, *(one.value for one in call.keywords)]
    texts = frozenset(one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return Question(tuple(RANKS[name] for _, name in named), len(call.args), frozenset(place for place, _ in named), words, texts)


def _of(name: str, dtype: str) -> list[_Asked]:
    asked = _asked(name) or (_asked(name[:-1]) if name.endswith("_") else {})
    return asked.get(dtype, [])


@cache
def refuses(name: str, horizon: Release) -> bool:
    """Whether the release of this horizon refuses any call of an operator for its dtype."""
    place = _place(horizon)
    return any(
        bits >> place & 1 and told != COMPUTES
        for dtype in (*DTYPES, *(dtype + EMPTY for dtype in DTYPES))
        for asked in _of(name, dtype)
        for told, bits in asked.said
    )


def _place(horizon: Release) -> int:
    """Where the release that a horizon stands for is among those that were asked; the oldest stands for what was before."""
    return _history().known.newest(horizon) or 0


@cache
def said(name: str, dtype: str, ranks: tuple[int, ...], count: int, horizon: Release) -> str | None:
    """What the release says to such a call; None where that is not known."""
    place = _place(horizon)
    asked = [(one.question, told) for one in _of(name, dtype) for told, bits in one.said if bits >> place & 1]
    return nearest(asked, as_asked(name, ranks, horizon), count)


def nearest(asked: list[tuple[Question, str]], ranks: tuple[int, ...], count: int, *, tensors: bool = False) -> str | None:
    """What was said to the questions that are nearest to a call; None where some compute and some raise, or there are none.

    Parameters:
        tensors: whether none is near that has another number of tensors.
        asked: the questions of an operator, each with what was said.
        ranks: the numbers of dimensions of the tensors of the call.
        count: how many arguments it has.
    """
    for near in (
        [told for one, told in asked if one.ranks == ranks and one.given == count],
        [told for one, told in asked if one.ranks == ranks],
        [told for one, told in asked if len(one.ranks) == len(ranks) and one.ranks[:1] == ranks[:1]],
        [told for one, told in asked if len(one.ranks) == len(ranks) and one.given == count],
        [told for one, told in asked if len(one.ranks) == len(ranks)],
        [told for one, told in asked if one.ranks[:1] == ranks[:1] and not tensors],
        [told for _, told in asked if not tensors],
    ):
        if near:
            agreed = len(set(near)) == 1 or COMPUTES not in near
            return near[0] if agreed else None
    return None


def as_asked(name: str, ranks: tuple[int, ...], horizon: Release) -> tuple[int, ...]:
    """The numbers of dimensions by which the questions of an operator are looked up: of matmul, those of the product that it makes."""
    return _as_one_product(ranks, horizon) if name in MATMUL else ranks


def _as_one_product(ranks: tuple[int, ...], horizon: Release) -> tuple[int, ...]:
    """What matmul makes of tensors with so many dimensions: a batch times a matrix is one product of two matrices, with all rows of the
    batch; times a vector it is so up to 1.11, and a matrix times a vector since.
    """
    if len(ranks) != 2:
        return ranks
    first, second = ranks
    if second == MATRIX and first > MATRIX:
        return MATRIX, MATRIX
    if second == 1 and first > MATRIX:
        return (MATRIX, 1) if horizon >= BY_VECTOR else (MATRIX, MATRIX)
    return (BATCH, BATCH) if min(ranks) > MATRIX else ranks


def computed_by(name: str, dtype: str) -> tuple[Known, int] | None:
    """The releases that compute every call that was asked of an operator with tensors of a dtype that have elements, as bits.

    Those that lack the operator, or the dtype, are none of them. None where no release that was asked refuses it for the dtype.
    """
    computes = raises = 0
    for asked in _of(name, dtype):
        for told, bits in asked.said:
            if told == COMPUTES:
                computes |= bits
            else:
                raises |= bits
    return (_history().known, computes & ~raises) if raises else None


@cache
def changed(name: str, dtype: str) -> frozenset[str]:
    """The releases that compute a call of an operator with tensors of a dtype which the release asked before refuses, or the other way round."""
    known = _history().known
    found = 0
    for asked in (*_of(name, dtype), *_of(name, dtype + EMPTY)):
        computes = raises = 0
        for told, bits in asked.said:
            if told == COMPUTES:
                computes |= bits
            else:
                raises |= bits
        found |= (computes << 1) & raises | (raises << 1) & computes
    return frozenset(release for release in known.releases if found & known.bit(release))
