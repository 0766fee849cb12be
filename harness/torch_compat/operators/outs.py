"""The dtypes of tensors into which an operator can write its result, as observed: ``fixtures/operators/outs.txt``.

The queries are those of :mod:`torch_compat.operators.dtypes`, each with ``out=``. For each output tensor and each dtype of
the arguments, the file lists the dtypes that the release accepts for the output; for a call without tensors, it has a single list.

Out variants that torch generates from the operator (``autogen`` in ``native_functions.txt``) accept only the dtype of the result since 2.0.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from functools import cache
from typing import Final, NamedTuple

from torch_compat.operators.halves import COMPUTES, Question, as_asked, nearest, question
from torch_compat.operators.history import FactHistory, History, SetHistory
from torch_compat.releases.data import packaged
from torch_compat.releases.release import Release

__all__ = ["COMPARED_SINCE", "FILE", "NO_DATA", "AcceptedOuts", "is_generated", "lacks_kernel", "written"]

FILE = "outs.txt"
NO_DATA: Final = "no data"
"""The dtype for a call without tensors."""
ANY: Final = "any"
NONE: Final = "none"
WHOLE: Final = ("bool", "int", "uint")
REAL: Final = re.compile(r"\(.*\d\.\d")
"""A query with a non-integer number, which determines the result dtype for integers."""
GENERATED_SINCE: Final = Release("1.12.0")
COMPARED_SINCE: Final = Release("2.0.0")
"""Up to 1.13, generated out variants copy the result into a tensor of any dtype."""
WITH_OUT: Final = re.compile(r"\*, .*Tensor\(\w!\)(\[\])? \w+[,)]")
WITH_OPTIONS: Final = re.compile(r"Layout\? layout")


class AcceptedOuts(NamedTuple):
    """The ``out=`` tensors that one release accepts for one operator.

    Attributes:
        questions: queries with the accepted dtypes, by the name of the tensor and the dtype of the arguments; None means every dtype.
    """

    name: str
    horizon: Release
    questions: tuple[tuple[Question, dict[str, dict[str, frozenset[str] | None]]], ...]

    @property
    def places(self) -> frozenset[int]:
        """The positions of the arguments that are data."""
        return frozenset().union(*(item.places for item, _ in self.questions))

    def accepts(
        self, word: str, dtype: str, given: str, ranks: tuple[int, ...], count: int, words: frozenset[str], *, empty: bool
    ) -> bool | None:
        """Whether a tensor is accepted; None if unknown.

        Parameters:
            word: the name of the output tensor.
            dtype: the dtype of the arguments.
            given: the dtype of the output tensor.
            ranks: the numbers of dimensions of the data.
            count: the number of positional arguments.
            words: the names of keyword arguments that are strings.
            empty: whether some of the data is empty; releases compute empty tensors even where they have no kernel.
        """
        asked = [
            (item, known[word][dtype]) for item, known in self.questions if dtype in known.get(word, ()) and item.words == words
        ]
        if empty:
            asked = [(item, taken) for item, taken in asked if taken is None or taken]
        told = nearest(
            [(item, COMPUTES if taken is None or given in taken else "") for item, taken in asked],
            as_asked(self.name, ranks, self.horizon), count, tensors=True,
        )  # fmt: skip
        return None if told is None else told == COMPUTES


@cache
def _history() -> FactHistory:
    return FactHistory(packaged("fixtures", "operators", FILE))


@cache
def written(name: str, horizon: Release) -> AcceptedOuts | None:
    """The ``out=`` tensors that the horizon's release accepts for an operator; None if it was not tested."""
    history = _history()
    place = history.known.newest(horizon) or 0  # the oldest release stands for all earlier ones
    start = f"{name.removeprefix('aten::')}("
    results: dict[str, dict[str, dict[str, frozenset[str] | None]]] = {}
    for line in history.lines[bisect_left(history.lines, start) :]:
        if not line.startswith(start):
            break
        key, kinds, spans = line.split("\t")
        if history.bits(spans) >> place & 1:
            spelled, word, taken = key.split(" > ")
            accepted = None if taken == ANY else frozenset(taken.split()) - {NONE}
            told = [NO_DATA] if json.loads(kinds) == NO_DATA else json.loads(kinds).split()
            for dtype in told:
                if not dtype.startswith(WHOLE) or not REAL.search(spelled):
                    results.setdefault(spelled, {}).setdefault(word, {})[dtype] = accepted
    return AcceptedOuts(name, horizon, tuple((question(item), known) for item, known in results.items())) if results else None


@cache
def is_generated(name: str, horizon: Release) -> bool:
    """Whether torch generated all out variants of an operator that takes no dtype, and the release compares dtypes there."""
    if horizon < COMPARED_SINCE:
        return False
    stated, generated = _forms(name, horizon)
    return bool(stated) and stated == generated and not any(WITH_OPTIONS.search(text) for text in _schemas(name, horizon))


@cache
def lacks_kernel(name: str, horizon: Release, *, by_number: bool) -> bool:
    """Whether the out variant that a call reaches has no kernel on any device; 1.12 has none for its generated variants.

    Parameters:
        by_number: whether the second argument is a number.
    """
    stated, generated = _forms(name, horizon)
    if not generated:
        return False
    reached = stated if stated == generated else {item for item in stated if by_number and ".Scalar" in item}
    kernels = _sets("kernels.txt")
    release = kernels.releases[kernels.known.newest(horizon) or 0]
    keys = [kernels.values(item, release) for item in reached]
    return bool(keys) and all(item and not any("CPU" in key or "Composite" in key for key in item) for item in keys)


def _schemas(name: str, horizon: Release) -> tuple[str, ...]:
    history = History.load()
    return history.schemas(name, history.releases[history.known.newest(horizon) or 0])


def _forms(name: str, horizon: Release) -> tuple[frozenset[str], frozenset[str]]:
    """The out variants of an operator, and those that torch generated."""
    if horizon < GENERATED_SINCE:
        return frozenset(), frozenset()
    stated = frozenset(text.partition("(")[0] for text in _schemas(name, horizon) if WITH_OUT.search(text))
    return stated, stated & _generated(horizon)


@cache
def _sets(file: str) -> SetHistory:
    return SetHistory(packaged("fixtures", "operators", file))


@cache
def _generated(horizon: Release) -> frozenset[str]:
    functions = _sets("native_functions.txt")
    release = functions.releases[functions.known.newest(horizon) or 0]
    words = (word for key in functions.keys(release) for word in functions.values(key, release))
    return frozenset(word.removeprefix("autogen:") for word in words if word.startswith("autogen:"))
