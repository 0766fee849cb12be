"""Shared by the rules that judge cells: turn a verdict on equivalent cells into a judgement with a cause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.corpus.observations import OTHER_ERROR
from torch_compat.judging.cell import Outcome
from torch_compat.judging.judgement import Cause, Judgement, Verdict
from torch_compat.judging.relaxed import Relaxations
from torch_compat.values.normalise import alike, headline
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry
    from torch_compat.values.compare import Difference

__all__ = ["in_words", "judge_cells", "kind_of", "told_apart", "verdicts"]

_WITHOUT_CAUSE = frozenset({Verdict.PASS, Verdict.NO_PROMISE})
_BY_RECIPE = frozenset({Outcome.DIFFERENT, Outcome.UNSTABLE})


def judge_cells(rule: RuleEntry, cells: Cells, verdict: Verdict) -> Judgement:
    """Judge equivalent cells. The cause of differing values is their recipe, that of errors their message."""
    cause = None if verdict in _WITHOUT_CAUSE else _cause(cells)
    return Judgement(rule.id, verdict, cells.subject, cause, cells)


def told_apart(cells: Cells, some: int) -> Iterator[tuple[Cells, bool]]:
    """Split equivalent cells into those of some readers, with True, and the others; empty parts are omitted."""
    for bits, among in ((cells.readers & some, True), (cells.readers & ~some, False)):
        if bits:
            yield (cells if bits == cells.readers else replace(cells, readers=bits)), among


def verdicts(evidence: Evidence, cells: Cells, table: Mapping[Outcome, Verdict]) -> Iterator[tuple[Cells, Verdict]]:
    """Yield the verdicts on equivalent cells: by their outcome, a failure if the table has none.

    A value where the writer raised is no promise if a stated change causes it, and a failure otherwise.
    """
    if cells.outcome is not Outcome.RELAXED:
        yield cells, table.get(cells.outcome, Verdict.FAIL)
        return
    for part, named in told_apart(cells, evidence.derived(Relaxations).named(cells)):
        yield part, Verdict.NO_PROMISE if named else Verdict.FAIL


def kind_of(cells: Cells) -> tuple[str, str]:
    """The key that distinguishes causes of cells: the outcome, and the recipe or the message without what varies."""
    if cells.outcome in _BY_RECIPE or not cells.message:
        return cells.outcome, cells.fixture.recipe
    return cells.outcome, alike(cells.message)


def _cause(cells: Cells) -> Cause:
    what, subject = kind_of(cells)
    if cells.outcome in _BY_RECIPE:
        return Cause(what, subject, _difference(cells))
    if cells.outcome is Outcome.RELAXED:
        return Cause(
            what, subject, f"{cells.fixture.recipe}: returns a value, but the writer raised, and no [[change]] explains this"
        )
    return Cause(what, subject, cells.message or f"{cells.fixture.recipe}: {cells.outcome}")


def in_words(kind: str, message: str) -> str:
    """An error in one line."""
    return f"{kind.removeprefix('builtins.')}: {headline(message)}"


def _other(cells: Cells, difference: Difference) -> bool:
    """Whether a recorded difference between errors is not explained by any wording."""
    expected, got = difference.facts.get("expected"), difference.facts.get("got")
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return False
    return (expected["type"], expected["message"], got["type"], got["message"]) in cells.others


def _difference(cells: Cells) -> str:
    """A description of the first difference: what was expected, what was found, and where."""
    both = cells.observation.both
    if both:
        return f"{cells.fixture.recipe}: one observation has the result {both[0].result}, the other has {both[1].result}"
    grave = [
        difference
        for difference in cells.observation.differences
        if difference.kind not in {"raised", "relaxed", "strides"}
        and (difference.kind != OTHER_ERROR or _other(cells, difference))
    ]
    if not grave and cells.others:  # only the first few differences are kept
        kind, message, other_kind, other_message = cells.others[0]
        return f"{cells.fixture.recipe}: {in_words(other_kind, other_message)} instead of {in_words(kind, message)}"
    if not grave:
        return f"{cells.fixture.recipe}: {count_of(cells.observation.count, 'difference')}"
    first = grave[0]
    expected, got = first.facts.get("expected"), first.facts.get("got")
    if first.kind == OTHER_ERROR and isinstance(expected, dict) and isinstance(got, dict):
        texts = [in_words(item["type"], item["message"]) for item in (got, expected)]
        return f"{cells.fixture.recipe}: {texts[0]} instead of {texts[1]} in {first.where}"
    if first.kind == "keys" and isinstance(expected, list) and isinstance(got, list):
        lost, new = [key for key in expected if key not in got], [key for key in got if key not in expected]
        changes = [f"lost {', '.join(map(str, lost))}" if lost else "", f"gained {', '.join(map(str, new))}" if new else ""]
        return f"{cells.fixture.recipe}: {first.where} {' and '.join(change for change in changes if change) or 'is in a different order'}"
    dtype = f" ({first.dtype})" if first.dtype and first.kind == "value" else ""
    return f"{cells.fixture.recipe}: {first.kind} {got} instead of {expected}{dtype} in {first.where}"
