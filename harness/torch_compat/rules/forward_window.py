"""A reader that is only slightly older than the writer loads and runs its archives.

What: inside the policy's forward window (the reader is at most so many days older than the writer), an archive loads and gives
the results that the writer computed.

Why: training and serving systems are not updated on the same day.

Example: a release that writes a new file format version on the day on which readers learn to read it breaks every reader of the
day before.

Reference: the same policy, on forward compatibility. Its bullet and its explanation disagree on the direction; the policy file
says which one is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.rules.cells import judge_cells, told_apart, verdicts
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
    """Judge every forward cell inside the window."""
    for cells in evidence.toward["forward-in-window"]:
        for part, expected in told_apart(cells, evidence.refusals_expected(cells)):
            for one, verdict in verdicts(evidence, part, VERDICTS):
                yield judge_cells(rule, one, Verdict.EXPECTED if expected else verdict)
