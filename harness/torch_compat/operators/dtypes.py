"""Which operators a release refuses to compute with tensors of a dtype, as the releases said it: ``fixtures/operators/dtypes.txt``.

The questions are those of :mod:`torch_compat.operators.halves`, each asked with tensors of ones of every dtype but the floats and again with
tensors without elements, and some besides, which were asked with floats as well; calls without tensors were asked with the dtype named. An answer stands
once for all dtypes to which a release gives it, and ``{}`` in it for their name. Only what computes with float32 was asked, so whatever was
raised is about the dtype; but for the numbers of a question, which may be none of the dtype.

A call of a program is taken for questions as :func:`torch_compat.operators.halves.nearest` says. Only the arguments that are data in a question
count: what is a mask or an index there may have any dtype.
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
    """What one release says of one operator.

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
        """What the release raises in such a call; None where it computes, or where that is not known.

        Parameters:
            dtype: of all its data, with ``-empty`` where some of them have no elements.
            ranks: the numbers of dimensions of its data.
            count: how many arguments it gives by position.
            words: the names of its arguments that are texts and given by name.
            texts: its arguments that are texts. Questions with the same texts count alone where there are any.
        """
        asked = [(one, said[dtype]) for one, said in self.questions if dtype in said and one.words == words]
        alike = [(one, told) for one, told in asked if one.texts == texts]
        asked = alike or [(one, told) for one, told in asked if not one.texts or not texts]
        told = nearest(asked, as_asked(self.name, ranks, self.horizon), count, tensors=True)
        if told is None or told == COMPUTES or told.startswith("died: ") or NUMBERS in told:
            return None
        return told.replace(TYPE, CALLED[dtype.removesuffix(EMPTY)])


@cache
def _history() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", FILE))


@cache
def taken(name: str, horizon: Release) -> Taken | None:
    """What the release of a horizon says of an operator; None where it refuses no dtype that was asked.

    An operator in place that was not asked is taken for the one that is not.
    """
    found = _at(name, horizon) or (_at(name[:-1], horizon) if name.endswith("_") else ())
    refused = frozenset(
        dtype.removesuffix(EMPTY)
        for _, said in found
        for dtype, told in said.items()
        if told != COMPUTES and not told.startswith("died: ")
    )
    if not refused:
        return None
    return Taken(name, refused, frozenset().union(*(asked.places for asked, _ in found)), found, horizon)


def _at(name: str, horizon: Release) -> tuple[tuple[Question, dict[str, str]], ...]:
    """The questions of an operator, with what the release that a horizon stands for says to each dtype."""
    history = _history()
    place = history.known.newest(horizon) or 0  # the oldest stands for what was before
    start = f"{name.removeprefix('aten::')}("
    found: dict[str, dict[str, str]] = {}
    for line in history.lines[bisect_left(history.lines, start) :]:
        if not line.startswith(start):
            break
        key, kinds, spans = line.split("\t")
        if history.bits(spans) >> place & 1:
            spelled, _, told = key.partition(" > ")
            found.setdefault(spelled, {}).update(dict.fromkeys(json.loads(kinds).split(), told))
    return tuple((question(spelled), said) for spelled, said in found.items())
