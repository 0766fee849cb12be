"""A release reads back its own archives.

What: the writer of an archive loads it and gets the values that it had in memory.

Why: all other rules compare with what the writer had in memory. If the writer itself reads back something different, a reader cannot
be blamed for agreeing with either.

Example: torch 1.5.1 writes archives for the lite interpreter, but has no way to load them from Python.

Reference: the documentation of torch.save and torch.load, torch.jit.save and torch.jit.load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, told_apart, verdicts
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
    """Judge every cell whose reader is its writer."""
    for cells in evidence.toward["own"]:
        for part, expected in told_apart(cells, evidence.refusals_expected(cells)):
            for item, verdict in verdicts(evidence, part, VERDICTS):
                yield judge_cells(rule, item, Verdict.EXPECTED if expected else verdict)
