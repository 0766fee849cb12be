"""Refusals of programs that call every operator of their writer: the verdict is that of the operator that the refusal names.

A recipe whose ``OPERATORS`` are ``["*"]`` calls all operators of a release. A single changed operator is enough for a newer reader to
refuse the whole program, and every release adds more. What became of each is recorded (``fixtures/operators/schemas.txt``) and judged
by the rule ``schema-breaks-upgraded``, operator by operator, under waivers for operators. So it is not stated by hand which readers refuse
such a program: a refusal has the verdict of the operator that it names, and a refusal that names none, or one that is unchanged according
to the records, is a failure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torch_compat.corpus.recipes import EVERY
from torch_compat.judging.judgement import Verdict
from torch_compat.judging.operator_changes import changed_by, judged, operator_changes
from torch_compat.judging.readers import places
from torch_compat.operators.breaks import same_schema

if TYPE_CHECKING:
    from torch_compat.corpus.manifest import Fixture
    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence

__all__ = ["OperatorRefusals", "walks_through_operators"]

_NAMED = re.compile(r"\b([A-Za-z_]\w*::[A-Za-z_]\w*)")


def walks_through_operators(fixture: Fixture) -> bool:
    """Whether a program calls every operator of its writer."""
    return EVERY in fixture.operators


class OperatorRefusals:
    """What became of the operators that refusals name. :meth:`Evidence.derived` caches it."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._schemas = None if evidence.operators is None else evidence.operators.schemas
        self._breaks: dict[str, list[tuple[int, bool]]] = {}
        self._promised = 0
        changes = evidence.derived(operator_changes)
        if changes is None:
            return
        for _, newer, _ in changes.early:
            self._promised = max(self._promised, evidence.rank[newer])
        for pair in changes.pairs:
            for item in pair.broken:
                if item.known and item.upgrader is None:
                    verdict, _ = judged(evidence, changed_by(item, pair.newer))
                    name = item.operator.partition(".")[0]
                    self._breaks.setdefault(name, []).append((evidence.rank[pair.newer], verdict is Verdict.WAIVED))

    def verdicts(self, cells: Cells) -> dict[Verdict, int]:
        """The readers of refused cells by their verdict.

        ``expected`` if every break of the operator between the writer and the reader has a waiver for operators,
        ``no-promise`` if the operator changed before the policy was in force, and not after, else ``fail``.
        """
        results: dict[Verdict, int] = {}
        name = self._named(cells)
        for at in places(cells.readers):
            verdict = (
                Verdict.FAIL
                if name is None
                else self._verdict(name, cells.fixture.release, self._evidence.readers.first(1 << at).release)
            )
            results[verdict] = results.get(verdict, 0) | 1 << at
        return results

    def _named(self, cells: Cells) -> str | None:
        """The operator that a refusal names first."""
        for error in reversed(cells.observation.errors):
            named = _NAMED.search(error["message"])
            if named is not None:
                return named[1]
        return None

    def _verdict(self, name: str, writer: str, reader: str) -> Verdict:
        rank = self._evidence.rank
        between = [waived for newer, waived in self._breaks.get(name, ()) if rank[writer] < newer <= rank[reader]]
        if between:
            return Verdict.EXPECTED if all(between) else Verdict.FAIL
        early = max(
            (item for item in self._recorded() if rank[item] <= min(self._promised, rank[reader])),
            key=rank.__getitem__,
            default="",
        )
        return Verdict.NO_PROMISE if early and rank[writer] < rank[early] and self._lost(name, writer, early) else Verdict.FAIL

    def _recorded(self) -> tuple[str, ...]:
        return () if self._schemas is None else self._schemas.releases

    def _lost(self, name: str, older: str, newer: str) -> bool:
        """Whether a release lacks a schema of an operator that an older one has."""
        if self._schemas is None or older not in self._schemas.releases:
            return False
        had, has = self._schemas.schemas(name, older), self._schemas.schemas(name, newer)
        return any(not any(same_schema(item, other) for other in has) for item in had)
