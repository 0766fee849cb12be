"""A newer reader loads the archives of an older writer.

What: the load call of a newer release returns for every archive that an older release wrote.

Why: people keep archives for years and cannot write them again.

Example: torch 1.5.1 writes a program; torch 2.13.0 refuses it with an error. That is a failure, whatever the error says. The error
matters only for a program that calls every operator of its writer (a recipe with ``OPERATORS = ["*"]``): if it names an operator, the
verdict is that of the change to this operator, which ``schema-breaks-upgraded`` judges. A refusal that names no operator, or an
operator that did not change, is a failure there, too.

Reference: PyTorch's Python Frontend Backward and Forward Compatibility Policy, on backward compatibility.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, told_apart
from torch_compat.judging.judgement import Asks, Verdict
from torch_compat.judging.operator_refusals import OperatorRefusals, walks_through_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judgement import Judgement
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.LOADING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge whether every backward cell loaded."""
    for cells in evidence.toward["backward"]:
        if cells.outcome is Outcome.REFUSED and walks_through_operators(cells.fixture):
            for verdict, readers in evidence.derived(OperatorRefusals).verdicts(cells).items():
                yield judge_cells(rule, replace(cells, readers=readers), verdict)
            continue
        for part, expected in told_apart(cells, evidence.refusals_expected(cells)):
            bad = Verdict.EXPECTED if expected else Verdict.FAIL
            yield judge_cells(rule, part, Verdict.PASS if cells.loaded else bad)
