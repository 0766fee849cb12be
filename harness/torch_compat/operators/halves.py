"""Operators that a release refuses to compute with 16-bit floats, as observed: ``fixtures/operators/halves.txt``.

Each query in that file is a call as written in a program, ``layer_norm(m, [3])``, run with tensors of float16 and of bfloat16, and
again with empty tensors; for each release, it records ``computes`` or the error. Only calls that work with float32 were run, so every
error is about the dtype.

A call of a program is matched with the query of the same operator whose tensors have the same numbers of dimensions and that has the
same number of arguments; failing that, with those that have the same numbers of dimensions, then with those that have as many tensors
(max of two tensors is another kernel than max of one), and then with all queries of the operator; for matmul, with the product that it
computes for tensors with such numbers. If the matching queries disagree, no result is claimed. An in-place operator without queries is
treated like its out-of-place form.
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
    """A call that was tested.

    Attributes:
        ranks: the numbers of dimensions of its float tensors.
        given: the number of positional arguments.
        places: the positions of the arguments that are floats, or lists of floats.
        words: the names of its keyword arguments that are strings, such as ``rounding_mode``.
        texts: its string arguments, by name or by position.
    """

    ranks: tuple[int, ...]
    given: int
    places: frozenset[int]
    words: frozenset[str]
    texts: frozenset[str]


class _Asked(NamedTuple):
    """One query for one dtype, with or without elements.

    Attributes:
        question: the query.
        said: the answers, with the releases as bits.
    """

    question: Question
    said: tuple[tuple[str, int], ...]


@cache
def _history() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", FILE))


@cache
def _asked(name: str) -> dict[str, list[_Asked]]:
    """The queries of an operator by dtype; ``float16-empty`` for empty tensors."""
    history = _history()
    start = f"{name.removeprefix('aten::')}("
    by_key: dict[str, list[tuple[str, int]]] = {}
    for line in history.lines[bisect_left(history.lines, start) :]:
        if not line.startswith(start):
            break
        key, value, spans = line.split("\t")
        by_key.setdefault(key, []).append((json.loads(value), history.bits(spans)))
    results: dict[str, list[_Asked]] = {}
    for key, told in by_key.items():
        spelled, _, dtype = key.rpartition(" > ")
        results.setdefault(dtype, []).append(_Asked(question(spelled), tuple(told)))
    return results


def question(spelled: str) -> Question:
    """Parse a call as spelled in the file."""
    call = parse_expression(spelled)
    assert isinstance(call, ast.Call)  # noqa: S101 - our own file
    named = [
        (place, node.id)
        for place, arg in enumerate(call.args)
        for node in ast.walk(arg)
        if isinstance(node, ast.Name) and node.id in RANKS
    ]
    words = frozenset(
        keyword.arg
        for keyword in call.keywords
        if keyword.arg is not None and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    )
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    texts = frozenset(arg.value for arg in given if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    return Question(tuple(RANKS[name] for _, name in named), len(call.args), frozenset(place for place, _ in named), words, texts)


def _of(name: str, dtype: str) -> list[_Asked]:
    asked = _asked(name) or (_asked(name[:-1]) if name.endswith("_") else {})
    return asked.get(dtype, [])


@cache
def refuses(name: str, horizon: Release) -> bool:
    """Whether the horizon's release refuses any call of an operator because of its dtype."""
    place = _place(horizon)
    return any(
        bits >> place & 1 and told != COMPUTES
        for dtype in (*DTYPES, *(dtype + EMPTY for dtype in DTYPES))
        for asked in _of(name, dtype)
        for told, bits in asked.said
    )


def _place(horizon: Release) -> int:
    """The index of the horizon's release among the recorded ones; the oldest stands for all earlier releases."""
    return _history().known.newest(horizon) or 0


@cache
def said(name: str, dtype: str, ranks: tuple[int, ...], count: int, horizon: Release) -> str | None:
    """The answer of the release to such a call; None if unknown."""
    place = _place(horizon)
    asked = [(item.question, told) for item in _of(name, dtype) for told, bits in item.said if bits >> place & 1]
    return nearest(asked, as_asked(name, ranks, horizon), count)


def nearest(asked: list[tuple[Question, str]], ranks: tuple[int, ...], count: int, *, tensors: bool = False) -> str | None:
    """The answer to the queries nearest to a call; None if some of them compute and some raise, or if there are none.

    Parameters:
        tensors: whether queries with another number of tensors never match.
        asked: the queries of an operator, each with its answer.
        ranks: the numbers of dimensions of the tensors of the call.
        count: the number of its arguments.
    """
    for near in (
        [told for item, told in asked if item.ranks == ranks and item.given == count],
        [told for item, told in asked if item.ranks == ranks],
        [told for item, told in asked if len(item.ranks) == len(ranks) and item.ranks[:1] == ranks[:1]],
        [told for item, told in asked if len(item.ranks) == len(ranks) and item.given == count],
        [told for item, told in asked if len(item.ranks) == len(ranks)],
        [told for item, told in asked if item.ranks[:1] == ranks[:1] and not tensors],
        [told for _, told in asked if not tensors],
    ):
        if near:
            agreed = len(set(near)) == 1 or COMPUTES not in near
            return near[0] if agreed else None
    return None


def as_asked(name: str, ranks: tuple[int, ...], horizon: Release) -> tuple[int, ...]:
    """The numbers of dimensions used to look up the queries of an operator: for matmul, those of the product that it computes."""
    return _as_one_product(ranks, horizon) if name in MATMUL else ranks


def _as_one_product(ranks: tuple[int, ...], horizon: Release) -> tuple[int, ...]:
    """The product that matmul computes for tensors with these numbers of dimensions.

    A batch times a matrix is one product of two matrices, with all rows of the batch; so is a batch times a vector up to 1.11, and
    since then it is a matrix times a vector.
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
    """The releases that compute every tested call of an operator with nonempty tensors of a dtype, as bits.

    Releases without the operator or the dtype are not included. None if no recorded release refuses it for the dtype.
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
    """The releases that compute a call with a dtype (empty tensors included) which the previous recorded release refuses, or vice versa."""
    known = _history().known
    result = 0
    for asked in (*_of(name, dtype), *_of(name, dtype + EMPTY)):
        computes = raises = 0
        for told, bits in asked.said:
            if told == COMPUTES:
                computes |= bits
            else:
                raises |= bits
        result |= (computes << 1) & raises | (raises << 1) & computes
    return frozenset(release for release in known.releases if result & known.bit(release))
