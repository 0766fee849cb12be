"""Errors and warnings of calls were compared with those of the writer.

What: in every cell whose program was called, or whose writer could not load it either, errors were compared with those of the
writer, and warnings of calls with those of the golden. A cell without this comparison is not checked.

Why: "the writer raised, the reader raised" is not agreement if one error is about an empty tensor and the other about memory.

Example: torch 2.16.0 raises an internal assertion where the writer says which argument is wrong.

Reference: this project. The rules about computed results decide whether two errors agree: by class and by text, without its
variable parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING

ENDED = frozenset({Outcome.REFUSED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.UNSTABLE, Outcome.UNSUPPORTED})
"""Outcomes that leave nothing to compare."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell with calls."""
    for cells in evidence.cells:
        if not _called(cells):
            continue
        if cells.observation.heard:
            yield judge_cells(rule, cells, Verdict.PASS)
        else:
            text = "errors and warnings from calls were not compared: observe again"
            yield Judgement(rule.id, Verdict.NOT_CHECKED, cells.subject, Cause("not heard", "calls", text), cells)


def _called(cells: Cells) -> bool:
    golden = cells.fixture.golden
    return cells.outcome not in ENDED and ("error" in golden or bool(golden.get("calls")))
