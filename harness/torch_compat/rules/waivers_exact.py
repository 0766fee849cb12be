"""Waivers are exact.

What: every waiver covers exactly the cells and differences that waivers.lock states. Its sets of writers and readers begin and
end with these cells, it shares no cell with another waiver, and it has not expired. In a release that is not in the lock yet,
what was waived in the previous release continues, or the waiver must say that it ended.

Why: an exception that grows unnoticed hides the next defect, and an exception that covers nothing hides that something was fixed.

Example: a waiver for refusals by 1.9.0 and newer, although 2.16.0 loads the archive again.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.waiving import Covered
from torch_compat.policy.counts import ACCEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.waiving import Waiving
    from torch_compat.policy import RuleEntry
    from torch_compat.policy.model import Waiver

__all__ = ["judge_waivers"]

_SHOWN: Final = 3
Cell = tuple[str, str, str, str]
"""Options, recipe, writer and reader."""

ASKS: Final = Asks.BOOKKEEPING


def judge_waivers(evidence: Evidence, rule: RuleEntry, waiving: Waiving) -> Iterator[Judgement]:
    """Judge what every waiver covered when the failures of the other rules were matched with waivers."""
    gone: dict[str, list[Cell]] = {}
    for name, *cell in waiving.gone():
        gone.setdefault(name, []).append((cell[0], cell[1], cell[2], cell[3]))
    for waiver in evidence.policy.waivers:
        what, text = _wrong(evidence, waiver, waiving, gone.get(waiver.id, []))
        cause = Cause(what, waiver.id, f"waiver {waiver.id} {text}") if what else None
        verdict = Verdict.NO_PROMISE if what == _LATER else Verdict.FAIL if what else Verdict.PASS
        yield Judgement(rule.id, verdict, waiver.id, cause)


_LATER: Final = "later"


def _wrong(evidence: Evidence, waiver: Waiver, waiving: Waiving, gone: list[Cell]) -> tuple[str, str]:
    """Return the kind and description of a waiver's problem; two empty strings if there is none."""
    covered = waiving.covered.get(waiver.id, Covered())
    corners = list(waiving.corners(waiver))
    if waiver.expired(evidence.as_of):
        return "expired", f"expired on {waiver.expires}"
    if covered.shared:
        return "overlapping", f"covers cells that {', '.join(sorted(covered.shared))} covers as well"
    if (gone or corners) and waiving.later:
        return _LATER, "is for a failure that had not happened by that day"
    if not (covered.count or covered.failing or covered.seen):
        return "unused", "covers nothing: it does not match any failure"
    if gone:
        return "ended", f"is for {_cells(gone)}, which do not fail, or fail differently: narrow the waiver, then {ACCEPT}"
    missing = [] if evidence.policy.accepted is None else _missing(waiving, waiver.id, evidence)
    if missing:
        return "ended", f"is for {', '.join(missing)}, which do not fail: {ACCEPT}"
    if corners:
        return "too wide", "; ".join(_few(corners))
    return "", ""


def _missing(waiving: Waiving, waiver: str, evidence: Evidence) -> list[str]:
    """Return the findings in the lock that did not occur."""
    assert evidence.policy.accepted is not None  # noqa: S101 - checked by the caller
    covered = waiving.covered.get(waiver, Covered())
    return [name for (of, name) in evidence.policy.accepted.findings if of == waiver and name not in covered.seen]


def _cells(cells: list[Cell]) -> str:
    shown = _few([
        f"{recipe} of {writer} in {reader}{'' if options == 'default' else f' with {options}'}"
        for options, recipe, writer, reader in cells
    ])  # fmt: skip
    return f"{len(cells)} {'cells' if len(cells) > 1 else 'cell'} ({', '.join(shown)})"


def _few(texts: Iterable[str]) -> list[str]:
    every = list(texts)
    return every if len(every) <= _SHOWN else [*every[:_SHOWN], f"and {len(every) - _SHOWN} more"]
