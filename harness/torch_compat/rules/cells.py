"""What the rules that judge cells share: how a cell's verdict becomes a judgement with a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.rules.judgement import Cause, Judgement, Outcome, Verdict
from torch_compat.values.normalise import alike

if TYPE_CHECKING:
    from torch_compat.policy import RuleEntry
    from torch_compat.rules.evidence import Cell

__all__ = ["judge_cell", "kind_of"]

_WITHOUT_CAUSE = frozenset({Verdict.PASS, Verdict.NO_PROMISE})
_BY_RECIPE = frozenset({Outcome.DIFFERENT, Outcome.UNSTABLE})


def judge_cell(rule: RuleEntry, cell: Cell, verdict: Verdict) -> Judgement:
    """A judgement of a cell. Values that differ have their recipe as cause, errors their message."""
    cause = None if verdict in _WITHOUT_CAUSE else _cause(cell)
    return Judgement(rule.id, verdict, cell.subject, cause, cell, cell.release)


def kind_of(cell: Cell) -> tuple[str, str]:
    """By what causes of cells are told apart: the outcome, and the recipe or the message without what varies in it."""
    if cell.outcome in _BY_RECIPE or not cell.message:
        return cell.outcome, cell.fixture.recipe
    return cell.outcome, alike(cell.message)


def _cause(cell: Cell) -> Cause:
    what, subject = kind_of(cell)
    if cell.outcome in _BY_RECIPE:
        return Cause(what, subject, _difference(cell))
    return Cause(what, subject, cell.message or f"{cell.fixture.recipe}: {cell.outcome}")


def _difference(cell: Cell) -> str:
    """The first difference in words: what was expected, what was got, where."""
    both = cell.observation.both
    if both:
        return f"{cell.fixture.recipe}: one observation says {both[0].result}, the other {both[1].result}"
    grave = [difference for difference in cell.observation.differences if difference.kind not in {"raised", "relaxed", "strides"}]
    if not grave:
        return f"{cell.fixture.recipe}: {cell.observation.count} differences"
    first = grave[0]
    expected, got = first.facts.get("expected"), first.facts.get("got")
    if first.kind == "keys" and isinstance(expected, list) and isinstance(got, list):
        lost, new = [key for key in expected if key not in got], [key for key in got if key not in expected]
        changes = [f"lost {', '.join(map(str, lost))}" if lost else "", f"gained {', '.join(map(str, new))}" if new else ""]
        return f"{cell.fixture.recipe}: {first.where} {' and '.join(change for change in changes if change) or 'is in another order'}"
    dtype = f" ({first.dtype})" if first.dtype and first.kind == "value" else ""
    return f"{cell.fixture.recipe}: {first.kind} {got} instead of {expected}{dtype} in {first.where}"
