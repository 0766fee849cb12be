"""A release reads back what it wrote itself.

What: the writer of an archive loads it and gets what it had in memory.

Why: everything else compares with what the writer had; where the writer itself gets something else, nobody can be blamed
for agreeing with either.

Example: torch 1.5.1 writes archives for the lite interpreter, but has no way to load them from Python.

Reference: the documentation of torch.save and torch.load, torch.jit.save and torch.jit.load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.rules.cells import judge_cell
from torch_compat.rules.judgement import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Evidence
    from torch_compat.rules.judgement import Judgement

__all__ = ["judge"]

VERDICTS = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS, Outcome.RELAXED: Verdict.NO_PROMISE}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every cell whose reader is its writer."""
    for cell in evidence.cells:
        if cell.direction == "own":
            expected = cell.refusal_expected
            yield judge_cell(rule, cell, Verdict.EXPECTED if expected else VERDICTS.get(cell.outcome, Verdict.FAIL))
