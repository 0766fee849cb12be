"""Every format version that the policy lists has fixtures.

What: for each file format, bytecode, export schema and container version that some release writes, the corpus has an archive. For
a version that no release can write, the policy says so, and a synthetic fixture stands for it; if a release does write it, that
statement is wrong and fails. A version is required from the date of the first release that writes it or, if none does, of a
release that reads it.

Why: a version without a fixture is an unchecked promise, and such gaps stay open for years.

Example: file format 6 is only written by torch.package and torch.export; a corpus without either misses it.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.format_fixtures import due, witnesses
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import Format, RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.BOOKKEEPING


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every version of every format."""
    written, synthetic = witnesses(evidence.corpus)
    for entry in evidence.policy.formats:
        if entry.label not in written and due(evidence.policy, entry) > evidence.as_of:
            yield Judgement(rule.id, Verdict.NO_PROMISE, entry.label)
            continue
        verdict, what, text = _verdict(entry, written.get(entry.label), synthetic.get(entry.label))
        cause = Cause(what, entry.label, f"{entry.label}{text}") if what else None
        yield Judgement(rule.id, verdict, entry.label, cause)
    kinds = {entry.kind for entry in evidence.policy.formats}
    known = {entry.label for entry in evidence.policy.formats}
    for label, witness in sorted(written.items()):
        if label not in known and label.partition(" ")[0] in kinds:
            text = f"{witness} has {label}, which is not in the policy"
            yield Judgement(rule.id, Verdict.FAIL, label, Cause("unknown version", label, text))


def _verdict(entry: Format, witness: str | None, substitute: str | None) -> tuple[Verdict, str, str]:
    """Return the verdict on one version, the kind of its cause, and a description of the problem."""
    if witness is not None and (entry.no_writer or entry.pending):
        return Verdict.FAIL, "excuse outdated", f" is marked as having no fixture, but {witness} is one"
    if witness is not None:
        return Verdict.PASS, "", ""
    if entry.no_writer and substitute is None:
        return Verdict.FAIL, "no fixture", f" has no synthetic fixture, and no release can write one: {entry.no_writer}"
    if entry.no_writer:
        return Verdict.PASS, "", ""
    if entry.pending:
        return Verdict.NOT_CHECKED, "pending", f": {entry.pending}"
    return Verdict.FAIL, "no fixture", " has no fixture in the corpus"
