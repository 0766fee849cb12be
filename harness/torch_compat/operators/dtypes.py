"""Operators that a release refuses to compute with tensors of a dtype, as observed: ``fixtures/operators/dtypes.txt``.

The queries are those of :mod:`torch_compat.operators.halves`, each run with tensors of ones of every non-float dtype and again with
empty tensors, and some additional ones, which also ran with floats; calls without tensors ran with the dtype named. An answer is
stored once for all dtypes for which a release gives it, with ``{}`` in place of the dtype name. Only calls that work with float32 were
run, so every error is about the dtype, unless it is about the numbers in the query, which the dtype may not be able to represent.

A call of a program is matched with queries as described in :func:`torch_compat.operators.halves.nearest`. Only the arguments that are
data in a query count: arguments that are masks or indices there may have any dtype.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from torch_compat.operators.halves import COMPUTES, EMPTY, Question, as_asked, nearest, question
from torch_compat.operators.history import FactHistory
from torch_compat.releases.data import packaged
from torch_compat.values.dtypes import DTYPES

if TYPE_CHECKING:
    from torch_compat.releases.release import Release

__all__ = ["CALLED", "FILE", "NUMBERS", "TYPE", "Taken", "taken"]

FILE = "dtypes.txt"
TYPE: Final = "{}"
CALLED: Final = {row.name: row.word for row in DTYPES.values() if row.word and (row.numpy or row.ml_dtypes)}
"""The names of dtypes in error messages."""
NUMBERS: Final = "without overflow"
"""Appears in messages about a number in the query, not about the dtype."""


class Taken(NamedTuple):
    """The answers of one release for one operator.

    Attributes:
        refused: the dtypes that it refuses in some call.
        places: positions of the arguments that are data.
    """

    name: str
    refused: frozenset[str]
    places: frozenset[int]
    questions: tuple[tuple[Question, dict[str, str]], ...]
    horizon: Release

    def said(
        self, dtype: str, ranks: tuple[int, ...], count: int, words: frozenset[str], texts: frozenset[str] = frozenset()
    ) -> str | None:
        """What the release raises in such a call; None if it computes, or if this is unknown.

        Parameters:
            dtype: of all its data, with ``-empty`` if some of them have no elements.
            ranks: the numbers of dimensions of its data.
            count: the number of its positional arguments.
            words: the names of its keyword arguments that are strings.
            texts: its string arguments. If there are queries with the same strings, only those count.
        """
        asked = [(item, message[dtype]) for item, message in self.questions if dtype in message and item.words == words]
        alike = [(item, told) for item, told in asked if item.texts == texts]
        asked = alike or [(item, told) for item, told in asked if not item.texts or not texts]
        told = nearest(asked, as_asked(self.name, ranks, self.horizon), count, tensors=True)
        if told is None or told == COMPUTES or told.startswith("died: ") or NUMBERS in told:
            return None
        return told.replace(TYPE, CALLED[dtype.removesuffix(EMPTY)])


@cache
def _history() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", FILE))


@cache
def taken(name: str, horizon: Release) -> Taken | None:
    """The answers of the horizon's release for an operator; None if it refuses none of the tested dtypes.

    An in-place operator that was not tested is treated like its out-of-place form.
    """
    result = _at(name, horizon) or (_at(name[:-1], horizon) if name.endswith("_") else ())
    refused = frozenset(
        dtype.removesuffix(EMPTY)
        for _, message in result
        for dtype, told in message.items()
        if told != COMPUTES and not told.startswith("died: ")
    )
    if not refused:
        return None
    return Taken(name, refused, frozenset().union(*(asked.places for asked, _ in result)), result, horizon)


def _at(name: str, horizon: Release) -> tuple[tuple[Question, dict[str, str]], ...]:
    """The queries of an operator, with the answers of the horizon's release for each dtype."""
    history = _history()
    place = history.known.newest(horizon) or 0  # the oldest release stands for all earlier ones
    start = f"{name.removeprefix('aten::')}("
    results: dict[str, dict[str, str]] = {}
    for line in history.lines[bisect_left(history.lines, start) :]:
        if not line.startswith(start):
            break
        key, kinds, spans = line.split("\t")
        if history.bits(spans) >> place & 1:
            spelled, _, told = key.partition(" > ")
            results.setdefault(spelled, {}).update(dict.fromkeys(json.loads(kinds).split(), told))
    return tuple((question(spelled), message) for spelled, message in results.items())
