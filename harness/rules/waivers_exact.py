"""Waivers are exact.

What: every waiver names a cause that exists, covers exactly as many cells as it counts, and has not expired.

Why: an exception that grows unseen hides the next defect, and one that covers nothing hides that something was mended.

Example: a waiver for 12 cells meets 13: the new one is a new break with the same message.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.rules.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.policy import RuleEntry
    from harness.rules.evidence import Evidence

__all__ = ["judge_waivers"]


def judge_waivers(evidence: Evidence, rule: RuleEntry, covered: Mapping[str, int]) -> Iterator[Judgement]:
    """Judge every waiver by how many cells it covered.

    Parameters:
        covered: cells by waiver id, as counted when the other rules' failures were matched with waivers.
    """
    for waiver in evidence.policy.waivers:
        found = covered.get(waiver.id, 0)
        if waiver.expired(evidence.as_of):
            what, text = "expired", f"waiver {waiver.id} expired on {waiver.expires}"
        elif found == 0:
            what, text = "unused", f"waiver {waiver.id} covers nothing: no finding has the cause {waiver.cause!r}"
        elif found != waiver.count:
            what, text = "inexact", f"waiver {waiver.id} counts {waiver.count} cells, but {found} have its cause"
        else:
            yield Judgement(rule.id, Verdict.PASS, waiver.id)
            continue
        yield Judgement(rule.id, Verdict.FAIL, waiver.id, Cause(what, waiver.id, text))
