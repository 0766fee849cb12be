"""Waivers are exact.

What: every waiver names a cause that exists, covers exactly as many cells as it counts, has one with each reader that it
names, and has not expired.

Why: an exception that grows unseen hides the next defect, and one that covers nothing hides that something was mended.

Example: a waiver for 12 cells meets 13: the new one is a new break with the same message.

Reference: this project.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.rules.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.policy import RuleEntry
    from harness.rules.evidence import Evidence

__all__ = ["judge_waivers"]


def judge_waivers(evidence: Evidence, rule: RuleEntry, covered: Mapping[str, Counter[str]]) -> Iterator[Judgement]:
    """Judge every waiver by how many cells it covered.

    Parameters:
        covered: cells by waiver id and reader, as counted when the other rules' failures were matched with waivers.
    """
    for waiver in evidence.policy.waivers:
        cells = covered.get(waiver.id, Counter())
        found = cells.total()
        idle = [reader for reader in waiver.readers if not cells[reader]]
        if waiver.expired(evidence.as_of):
            what, text = "expired", f"waiver {waiver.id} expired on {waiver.expires}"
        elif found == 0:
            what, text = "unused", f"waiver {waiver.id} covers nothing: no finding has the cause {waiver.cause!r}"
        elif found != waiver.count:
            what, text = "inexact", f"waiver {waiver.id} counts {waiver.count} cells, but {found} have its cause"
        elif idle:
            what, text = "too wide", f"waiver {waiver.id} names {', '.join(idle)}, but no cell of theirs has its cause"
        else:
            yield Judgement(rule.id, Verdict.PASS, waiver.id)
            continue
        yield Judgement(rule.id, Verdict.FAIL, waiver.id, Cause(what, waiver.id, text))
