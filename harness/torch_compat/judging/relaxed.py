"""Decide whether a stated operator change explains that a reader returns a value where the writer raised.

An error that disappeared breaks no promise if that was intended, and is a silent change of meaning otherwise. So each
relaxed call is matched with the policy's ``[[change]]`` tables: the change must be of an operator that the program exercises
(or that the error quotes), lie between the last release that still raised and the first that did not, and state the error. Which
releases compute an operator with 16-bit floats is not in any change, but derived from what each of them reported: see
:mod:`torch_compat.operators.halves`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torch_compat.judging.cell import Outcome
from torch_compat.judging.readers import highest, lowest
from torch_compat.judging.readers import places as readers_in
from torch_compat.operators import halves
from torch_compat.operators.call_signature import bare

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence

__all__ = ["UNTOLD", "Relaxations", "raised"]

_QUOTED = re.compile(r"\btorch\.(\w+)\(")
UNTOLD = frozenset({Outcome.REFUSED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.UNSTABLE, Outcome.UNSUPPORTED})
"""Outcomes that do not say anything about individual calls."""
_DTYPES = {"BFloat16": "bfloat16", "Half": "float16"}
"""How errors name the dtypes that some operators do not support. The first match counts."""
WHOLE = ""
"""The location of a failure before any call: loading, or the process."""


class Relaxations:
    """The relaxed calls of some evidence, and which of them stated changes explain. Results are cached."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._known: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        self._changes: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._recorded = {reader.release for reader in evidence.recorded.values()} & evidence.rank.keys()
        """The releases whose own answers count here: evidence as of a day does not include answers from later releases."""

    def named(self, cells: Cells) -> int:
        """The readers of relaxed cells for which every relaxed call has a stated cause."""
        if cells.fixture.release not in self._evidence.policy.calendar:
            return 0
        errors, places = _errors(cells.fixture.golden), self._places(cells)
        relaxed = _relaxed(cells.fixture, cells)
        if not relaxed:
            return 0  # the records do not say where
        left = cells.readers
        wrote = self._evidence.rank[cells.fixture.release]
        for place in relaxed:
            changed = self._changed(cells.fixture, errors[place])
            for at in readers_in(left):
                rank = self._evidence.readers.first(1 << at).rank
                if not _between(changed, rank, wrote, *places[place]):
                    left &= ~(1 << at)
        return left

    def _changed(self, fixture: Fixture, error: str) -> tuple[int, ...]:
        """The releases, by rank, that changed an operator which a fixture exercises, or the error quotes, so that the error disappeared."""
        key = (*fixture.operators, error)
        if key not in self._changes:
            operators = {bare(operator.partition(".")[0]) for operator in fixture.operators}
            operators |= {f"aten::{name}" for name in _QUOTED.findall(error)}
            stated = [
                change.since
                for change in self._evidence.policy.changes
                if change.refusal and any(text in error for text in change.refusal) and operators.intersection(change.operators)
            ]
            dtype = next((dtype for name, dtype in _DTYPES.items() if name in error), None)
            message = {
                since for operator in operators for since in (halves.changed(operator, dtype) if dtype else ())
            } & self._recorded
            self._changes[key] = tuple(self._evidence.rank[since] for since in (*stated, *sorted(message)))
        return self._changes[key]

    def _places(self, cells: Cells) -> dict[str, tuple[int, int]]:
        """The releases that raise and those that return a value, by place. Refusals and crashes say nothing."""
        key = (cells.fixture.id, cells.options.id)
        if key not in self._known:
            wrote = 1 << self._evidence.rank[cells.fixture.release]
            result = dict.fromkeys(_errors(cells.fixture.golden), (wrote, 0))
            for item in self._evidence.by_line.get(key, ()):
                ranks = self._evidence.readers.ranks(item.readers)
                if item.outcome in UNTOLD:
                    continue
                gives = set(_relaxed(item.fixture, item))
                for place, (raised, gave) in result.items():
                    result[place] = (raised, gave | ranks) if place in gives else (raised | ranks, gave)
            self._known[key] = result
        return self._known[key]


def _between(changed: tuple[int, ...], rank: int, wrote: int, raised: int, gave: int) -> bool:
    """Whether a change lies between a release that raises and the next one that does not, or vice versa.

    Parameters:
        changed: the releases that changed something.
        rank, wrote: the positions of the reader and of the writer in the calendar.
        raised, gave: the releases that raise in this call, including the writer, and those that return a value.
    """
    if rank > wrote:  # the error disappeared
        before = highest(raised & ((1 << rank) - 1))
        after = lowest(gave & (-1 << before))
    else:  # the error came after the reader
        after = lowest(raised & (-1 << rank))
        before = highest(gave & ((1 << after) - 1))
    return any(before < since <= after for since in changed)


def raised(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The errors of a result, by class and message: of its load, or of its calls; empty if the process ended."""
    if "error" in result:
        return [(result["error"]["type"], result["error"]["message"])]
    turns = [call[turn] for call in result.get("calls", ()) for turn in ("first", "second")]
    return [(turn["error"]["type"], turn["error"]["message"]) for turn in turns if "error" in turn]


def _errors(result: dict[str, Any]) -> dict[str, str]:
    """The errors raised in a result, by place."""
    for ending in ("crashed", "timed-out"):
        if ending in result:
            return {WHOLE: result[ending].get("signal") or ending}
    if "error" in result:
        return {WHOLE: result["error"]["message"]}
    return {
        f"{index}/{turn}": call[turn]["error"]["message"]
        for index, call in enumerate(result.get("calls", ()))
        for turn in ("first", "second")
        if "error" in call[turn]
    }


def _relaxed(fixture: Fixture, cells: Cells) -> list[str]:
    """The places where a reader returns a value and the writer none."""
    wanted = _errors(fixture.golden)
    if not wanted or cells.observation.result == "same":
        return []
    given = _errors(cells.observation.own_result(fixture.golden))
    return [place for place in wanted if place not in given]
