"""Releases load synthetic archives exactly as far as the policy says.

What: a synthetic fixture stands for format versions that no release of the calendar writes. A reader that supports all of these
versions, according to the policy, loads the fixture and gets the golden. Every other reader refuses it. If such a reader loads it anyway,
nothing was promised as long as the values are those of the golden. Other values fail, unless the policy states which format such readers
mistake it for, and the values are bitwise those of that format.

Why: people may have the only copy of an archive that no release can write anymore. And a reader that loads a format that it does not know
gives wrong numbers for archives from another machine.

Example: a big-endian machine saved an archive; torch 2.0.1 does not know the byteorder record and gives wrong numbers.

Reference: this project; the formats are those of policies/torch/formats.toml.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import Synthetic
from torch_compat.judging.cell import Outcome
from torch_compat.judging.cells import judge_cells, kind_of, told_apart, verdicts
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.releases.release import Release
from torch_compat.values.compare import compare, swapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.cell import Cells
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Format, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.VALUES

TAKEN = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS}
NOT_TAKEN = {
    Outcome.REFUSED: Verdict.PASS,
    Outcome.RAISED: Verdict.NO_PROMISE,
    Outcome.SAME: Verdict.NO_PROMISE,
    Outcome.CLOSE: Verdict.NO_PROMISE,
}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge the formats of every synthetic fixture, and its cells."""
    known = {entry.label: entry for entry in evidence.policy.formats}
    for fixture in evidence.corpus.synthetic:
        wrong = [label for label in fixture.formats if label not in known]
        text = f"{fixture.id} represents {', '.join(wrong or ['nothing'])}, which is not in the policy"
        if wrong or not fixture.formats:
            yield Judgement(rule.id, Verdict.FAIL, fixture.id, Cause("unknown format", fixture.id, text))
    takers = {label: _takers(evidence, entry) for label, entry in known.items()}
    for cells in evidence.cells:
        if isinstance(cells.fixture, Synthetic):
            formats = [known[label] for label in cells.fixture.formats if label in known]
            for readers, foreign in _told_apart(cells.readers, formats, takers):
                yield from _judge(evidence, rule, replace(cells, readers=readers), foreign)


def _judge(evidence: Evidence, rule: RuleEntry, cells: Cells, foreign: list[Format]) -> Iterator[Judgement]:
    """Judge cells that are alike; ``foreign`` are the formats of their fixture that none of the readers supports."""
    if not foreign:
        for part, expected in told_apart(cells, evidence.refusals_expected(cells)):
            for item, verdict in verdicts(evidence, part, TAKEN):
                yield judge_cells(rule, item, Verdict.EXPECTED if expected else verdict)
        return
    mistaken = next((entry for entry in foreign if entry.mistaken), None)
    if mistaken is not None and cells.outcome is Outcome.DIFFERENT and _as_stated(mistaken, cells):
        text = f"{mistaken.label}: {mistaken.mistaken}"
        yield replace(judge_cells(rule, cells, Verdict.EXPECTED), cause=Cause(*kind_of(cells), text))
        return
    for item, verdict in verdicts(evidence, cells, NOT_TAKEN):
        yield judge_cells(rule, item, verdict)


def _as_stated(mistaken: Format, cells: Cells) -> bool:
    """Whether readers that mistake a format for another one return exactly the values that result from this."""
    golden = cells.fixture.golden
    return mistaken.mistaken_as == "swapped" and compare(swapped(golden), cells.observation.own_result(golden)).result == "same"


def _takers(evidence: Evidence, entry: Format) -> int:
    """Return the readers that support this version of a format."""
    return evidence.readers.where(lambda reader: Release(reader.release) in entry.readers)


def _told_apart(readers: int, formats: list[Format], takers: dict[str, int]) -> list[tuple[int, list[Format]]]:
    """Split readers by which of these formats they do not support."""
    parts: list[tuple[int, list[Format]]] = [(readers, [])]
    for entry in formats:
        taken = takers[entry.label]
        parts = [
            part for bits, foreign in parts for part in ((bits & taken, foreign), (bits & ~taken, [*foreign, entry])) if part[0]
        ]
    return parts
