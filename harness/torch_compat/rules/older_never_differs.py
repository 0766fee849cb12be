"""An older reader never silently computes different results.

What: a reader older than the writer, outside the forward window, may refuse an archive or raise. It must not load the archive and
return different values, and it must not crash, hang, or give varying results.

Why: this is the purpose of file format versions: a file states the lowest version that its operators need, and a reader that does
not know this version refuses the file.

Example: torch 2.13.0 writes a program with floor division; torch 1.12.1 loads it and rounds in the other direction.

Reference: dynamic versioning, pytorch/pytorch#40279.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, verdicts
from torch_compat.judging.judgement import Asks, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judgement import Judgement
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.VALUES

VERDICTS = {
    Outcome.SAME: Verdict.PASS,
    Outcome.CLOSE: Verdict.PASS,
    Outcome.REFUSED: Verdict.PASS,
    Outcome.RAISED: Verdict.NO_PROMISE,
}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every forward cell outside the window."""
    for cells in evidence.toward["forward"]:
        for part, verdict in verdicts(evidence, cells, VERDICTS):
            yield judge_cells(rule, part, verdict)
