"""What a reader said in calls, in errors and warnings, was compared with what the writer said.

What: in every cell whose program was called, or did not load in its writer either, errors were compared with errors and the warnings of
calls with those of the golden. Observations that predate this comparison hold neither: they are counted in a note, for the releases
that the policy names (``predating``), and for no others. A cell of any other reader or writer without the comparison is not checked.

Why: "the writer raised, the reader raised" is no agreement if one says that a tensor has no elements and the other that it has no memory.

Example: torch 2.16.0 raises an internal assertion where the writer says which argument is wrong.

Reference: this project. Whether the errors agree, the rules about what is computed say: class and text, without what varies in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet
from torch_compat.rules.cells import judge_cells, told_apart
from torch_compat.rules.judgement import Asks, Cause, Judgement, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Cells, Evidence

__all__ = ["PARAMETERS", "judge", "notes"]

ASKS: Final = Asks.BOOKKEEPING

PARAMETERS = frozenset({"predating"})
"""``predating``: the releases whose recorded cells with each other may lack the comparison."""
ENDED = frozenset({Outcome.REFUSED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.UNSTABLE, Outcome.UNSUPPORTED})
"""Outcomes after which there is nothing left to compare."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell in which something was called, but for those that predate the comparison."""
    predating = _Predating(evidence, rule)
    for cells in evidence.cells:
        if not _called(cells):
            continue
        if cells.observation.heard:
            yield judge_cells(rule, cells, Verdict.PASS)
            continue
        for part, predates in told_apart(cells, predating.readers(cells)):
            if not predates:
                text = "errors and warnings of calls were not compared: observe again"
                yield Judgement(rule.id, Verdict.NOT_CHECKED, part.subject, Cause("not heard", "calls", text), part)


def notes(evidence: Evidence, rule: RuleEntry) -> Iterator[str]:
    """How many cells were not asked, since they predate the comparison."""
    silent = raising = 0
    predating = _Predating(evidence, rule)
    for cells in evidence.cells:
        if _called(cells) and not cells.observation.heard:
            count = (cells.readers & predating.readers(cells)).bit_count()
            silent += count
            raising += count if _raises(cells) else 0
    if silent:
        yield (
            f"{rule.id} was not asked of {silent:,} cells that were recorded before errors and warnings of calls were compared: of these, "
            f"in {raising:,} the writer raised, and what the reader raised instead is not compared with it"
        )


def _called(cells: Cells) -> bool:
    golden = cells.fixture.golden
    return cells.outcome not in ENDED and ("error" in golden or bool(golden.get("calls")))


def _raises(cells: Cells) -> bool:
    golden = cells.fixture.golden
    return "error" in golden or any("error" in call[turn] for call in golden["calls"] for turn in ("first", "second"))


class _Predating:
    """The releases whose recorded cells with each other may lack the comparison."""

    def __init__(self, evidence: Evidence, rule: RuleEntry) -> None:
        self._named = ReleaseSet.parse(str(rule.parameters.get("predating", "none")))
        self._readers = evidence.readers.where(lambda reader: reader.recorded and Release(reader.release) in self._named)

    def readers(self, cells: Cells) -> int:
        """The readers of which a writer's cells may lack it."""
        writer = cells.fixture.release
        return self._readers if writer == SYNTHETIC or Release(writer) in self._named else 0
