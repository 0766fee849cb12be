"""A reader that is only slightly older than the writer loads and runs its archives.

What: inside the policy's forward window (the reader is at most so many days older than the writer), an archive loads and gives
the results that the writer computed. If the writer fails in the same way with its own archive, or the reader with its own
archive of the same recipe, the failure says nothing about the pair, and nothing was promised.

Why: training and serving systems are not updated on the same day.

Example: a release that writes a new file format version on the day on which readers start to support it breaks every reader of the
previous day.

Reference: the same policy, on forward compatibility. Its bullet and its explanation disagree on the direction; the policy file
says which one is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, told_apart, verdicts
from torch_compat.judging.differences import Differences
from torch_compat.judging.judgement import Asks, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judgement import Judgement
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.VALUES

VERDICTS = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every forward cell inside the window."""
    alone = _Alone(evidence)
    for cells in evidence.toward["forward-in-window"]:
        for part, expected in told_apart(cells, evidence.refusals_expected(cells)):
            for item, verdict in verdicts(evidence, part, VERDICTS):
                if expected or verdict is not Verdict.FAIL:
                    yield judge_cells(rule, item, Verdict.EXPECTED if expected else verdict)
                    continue
                for rest, excused in told_apart(item, alone.readers(item)):
                    yield judge_cells(rule, rest, Verdict.NO_PROMISE if excused else Verdict.FAIL)


class _Alone:
    """The failures of releases with their own archives, by recipe, release and load options."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._digests = evidence, Differences(evidence)
        self._own: dict[tuple[str, str, str], list[Cells]] = {}
        for cells in evidence.toward["own"]:
            if cells.outcome not in VERDICTS:
                self._own.setdefault((cells.fixture.recipe, cells.fixture.release, cells.options.id), []).append(cells)

    def readers(self, failed: Cells) -> int:
        """Return the readers that a failure says nothing about: all if the writer fails the same way alone, else those that do."""
        fixture = failed.fixture
        if self._has(failed, fixture.release):
            return failed.readers
        return self._evidence.readers.where(lambda reader: self._has(failed, reader.release)) & failed.readers

    def _has(self, failed: Cells, release: str) -> bool:
        own = self._own.get((failed.fixture.recipe, release, failed.options.id), ())
        return any(self._digests.digest(cells) == self._digests.digest(failed) for cells in own)
