"""A newer reader computes the same results as the older writer.

What: an archive that a newer release loads gives the values, dtypes, shapes, sharing and state of the golden, within the policy's
tolerances. An error of the writer is an error in the reader, too. If the reader returns a value instead, the cause must be a
listed change of an operator (a ``refusal`` of ``policies/torch/changes.toml``); then neither result was promised.

Why: an archive that loads and gives different results is worse than an archive that is refused, because nobody notices.

Example: division of integer tensors truncated in 1.5.1. A program of that release must also truncate in 2.13.0.

Reference: the same policy, section "Upgraders".
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

VERDICTS = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge the results of every backward cell that loaded."""
    for cells in evidence.toward["backward"]:
        if cells.loaded:
            for part, verdict in verdicts(evidence, cells, VERDICTS):
                yield judge_cells(rule, part, verdict)
