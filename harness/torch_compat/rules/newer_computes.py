"""A newer reader computes what the older writer computed.

What: what a newer release loads has the values, dtypes, shapes, sharing and state of the golden, within the policy's
tolerances; an error in the writer's memory is an error in the reader. Where it is not, a stated change of an operator has to be the
cause (a ``refusal`` of ``policies/torch/changes.toml``); then nobody was promised either.

Why: an archive that loads and computes something else is worse than one that is refused: nobody notices.

Example: division of integer tensors truncated in 1.5.1. A program of that day must truncate in 2.13.0 too.

Reference: the same policy, section "Upgraders".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.rules.cells import judge_cells, verdicts
from torch_compat.rules.judgement import Asks, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Evidence
    from torch_compat.rules.judgement import Judgement

__all__ = ["judge"]

ASKS: Final = Asks.VALUES

VERDICTS = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every backward cell that loaded by what it computed."""
    for cells in evidence.toward["backward"]:
        if cells.loaded:
            for part, verdict in verdicts(evidence, cells, VERDICTS):
                yield judge_cells(rule, part, verdict)
