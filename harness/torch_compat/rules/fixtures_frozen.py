"""No fixture changed.

What: every archive has the bytes that its manifest entry states, every entry is the one that was frozen, every file in the
directory of a release has an entry, and no entry is missing.

Why: an edited archive proves nothing about the release that wrote it.

Example: a merge tool rewrites line endings in a stacked-pickle archive.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.corpus.manifest import release_folder
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING

UNFINISHED: Final = "unfinished-recipe"
"""A recipe with placeholders. It promises nothing yet, so nothing about it is checked."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every manifest entry and everything damaged."""
    for damage in evidence.corpus.damage:
        text = f"{damage.subject}: {damage.detail}"
        verdict = Verdict.NOT_CHECKED if damage.kind == UNFINISHED else Verdict.FAIL
        yield Judgement(rule.id, verdict, damage.subject, Cause(damage.kind, damage.subject, text))
    damaged = {damage.subject for damage in evidence.corpus.damage}
    for entry in evidence.corpus.entries:
        if entry.id not in damaged and f"{release_folder(entry.release)}/{getattr(entry, 'file', '')}" not in damaged:
            yield Judgement(rule.id, Verdict.PASS, entry.id)
