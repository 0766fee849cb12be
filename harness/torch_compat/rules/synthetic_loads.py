"""Releases load what no release can write, exactly as far as the policy says.

What: a synthetic fixture stands for versions of formats that no release of the calendar writes. A reader that takes all of
them, by the policy, loads it and gives the golden. Every other reader refuses it. Where one does not, nobody was promised
anything as long as the values are the golden's; other values fail, unless the policy says for what such readers take it.

Why: what nobody can write any more is what people have only one copy of. And a reader that refuses nothing, though it
does not know a format, gives wrong numbers to whoever brings an archive from another machine.

Example: a big-endian machine saved an archive; torch 2.0.1 does not know the byteorder record and gives every number wrong.

Reference: this project; the formats are those of policies/torch/formats.toml.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch_compat.corpus.manifest import Synthetic
from torch_compat.releases.release import Release
from torch_compat.rules.cells import judge_cell, kind_of
from torch_compat.rules.judgement import Cause, Judgement, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.policy import Format, RuleEntry
    from torch_compat.rules.evidence import Cell, Evidence

__all__ = ["judge"]

TAKEN = {Outcome.SAME: Verdict.PASS, Outcome.CLOSE: Verdict.PASS, Outcome.RELAXED: Verdict.NO_PROMISE}
NOT_TAKEN = {
    Outcome.REFUSED: Verdict.PASS,
    Outcome.RAISED: Verdict.NO_PROMISE,
    Outcome.SAME: Verdict.NO_PROMISE,
    Outcome.CLOSE: Verdict.NO_PROMISE,
    Outcome.RELAXED: Verdict.NO_PROMISE,
}


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every synthetic fixture by what it stands for, and every cell of it."""
    known = {entry.label: entry for entry in evidence.policy.formats}
    for fixture in evidence.corpus.synthetic:
        wrong = [label for label in fixture.formats if label not in known]
        text = f"{fixture.id} stands for {', '.join(wrong or ['nothing'])}, which the policy does not know"
        if wrong or not fixture.formats:
            yield Judgement(rule.id, Verdict.FAIL, fixture.id, Cause("unknown format", fixture.id, text))
    for cell in evidence.cells:
        if isinstance(cell.fixture, Synthetic):
            formats = [known[label] for label in cell.fixture.formats if label in known]
            foreign = [entry for entry in formats if not _takes(cell, entry)]
            yield _judge(rule, cell, foreign)


def _judge(rule: RuleEntry, cell: Cell, foreign: list[Format]) -> Judgement:
    """A judgement of one cell; ``foreign`` are the formats of its fixture that the reader does not take."""
    if not foreign:
        expected = cell.refusal_expected
        return judge_cell(rule, cell, Verdict.EXPECTED if expected else TAKEN.get(cell.outcome, Verdict.FAIL))
    mistaken = next((entry for entry in foreign if entry.mistaken), None)
    if mistaken is not None and cell.outcome is Outcome.DIFFERENT:
        text = f"{mistaken.label}: {mistaken.mistaken}"
        return replace(judge_cell(rule, cell, Verdict.EXPECTED), cause=Cause(*kind_of(cell), text))
    return judge_cell(rule, cell, NOT_TAKEN.get(cell.outcome, Verdict.FAIL))


def _takes(cell: Cell, entry: Format) -> bool:
    """Whether the cell's reader takes this version of a format."""
    return Release(cell.release) in entry.readers
