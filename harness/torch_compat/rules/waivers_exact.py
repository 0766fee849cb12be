"""Waivers are exact.

What: every waiver names causes that exist, covers exactly as many cells as counts.lock states, begins and ends with a reader that has
one, shares none with another waiver, and has not expired.

Why: an exception that grows unseen hides the next defect, and one that covers nothing hides that something was mended.

Example: a waiver for 12 cells meets 13: the new one is a new break with the same message.

Reference: this project.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from torch_compat.rules.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch_compat.policy import RuleEntry
    from torch_compat.policy.model import Waiver
    from torch_compat.rules.evidence import Evidence

__all__ = ["Covered", "judge_waivers"]

ASKS: Final = Asks.BOOKKEEPING


@dataclass
class Covered:
    """What a waiver covered when the other rules' failures were matched with waivers.

    Attributes:
        cells: how many recorded cells, by cause.
        readers: the releases that have one.
        shared: other waivers that cover some of the same cells.
    """

    cells: Counter[str] = field(default_factory=Counter)
    readers: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)


def judge_waivers(evidence: Evidence, rule: RuleEntry, covered: Mapping[str, Covered]) -> Iterator[Judgement]:
    """Judge every waiver by the cells that it covered.

    Parameters:
        covered: by waiver id.
    """
    calendar = evidence.policy.calendar
    for waiver in evidence.policy.waivers:
        cells, stated = covered.get(waiver.id, Covered()), evidence.policy.counts["waiver", waiver.id]
        if calendar[waiver.readers.last].date > evidence.as_of and cells.cells.total() < stated:
            yield Judgement(rule.id, Verdict.NO_PROMISE, waiver.id)  # not all that it is for has happened by then
            continue
        what, text = _wrong(evidence, waiver, cells, stated)
        cause = Cause(what, waiver.id, f"waiver {waiver.id} {text}") if what else None
        yield Judgement(rule.id, Verdict.FAIL if what else Verdict.PASS, waiver.id, cause)


def _wrong(evidence: Evidence, waiver: Waiver, covered: Covered, stated: int) -> tuple[str, str]:
    """The kind of what is wrong with a waiver, and in words; two empty texts where nothing is."""
    found = covered.cells.total()
    idle = [cause for cause in waiver.causes if cause not in covered.cells]
    ends = [end for end in dict.fromkeys((waiver.readers.first, waiver.readers.last)) if end not in covered.readers]
    if waiver.expired(evidence.as_of):
        return "expired", f"expired on {waiver.expires}"
    if covered.shared:
        return "overlapping", f"covers cells that {', '.join(sorted(covered.shared))} covers as well"
    if found == 0:
        return "unused", f"covers nothing: no finding of these readers has the cause {' or '.join(map(repr, waiver.causes))}"
    if found != stated:
        return "inexact", f"counts {stated} cells, but {found} have its causes"
    if idle:
        return "idle cause", f"names {', '.join(map(repr, idle))}, but no finding of these readers has this cause"
    if ends:
        return "too wide", f"reaches to {' and '.join(ends)}, but no cell of that reader has its causes"
    return "", ""
