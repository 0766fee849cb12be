"""Every version of a format that the policy lists has fixtures.

What: for each file format and bytecode version that some release writes, the corpus holds an archive with that number.
A version that no release ever wrote says so in the policy; the moment one turns up, that statement is wrong and fails.

Why: a version without a fixture is a promise that nobody checks, and such holes stay open for years.

Example: file format 6 is only written by torch.package and torch.export; a corpus without either misses it.

Reference: this project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.rules.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.policy import RuleEntry
    from harness.rules.evidence import Evidence

__all__ = ["judge"]


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every version of every format."""
    written: dict[tuple[str, int], str] = {}
    for fixture in evidence.corpus.fixtures.values():
        for kind, version in fixture.versions.items():
            written.setdefault((kind, version), fixture.id)
    for entry in evidence.policy.formats:
        subject = f"{entry.kind} {entry.version}"
        witness = written.pop((entry.kind, entry.version), None)
        excuse = entry.no_writer or entry.pending
        if witness is None:
            if entry.no_writer:
                yield Judgement(rule.id, Verdict.EXPECTED, subject, Cause("no writer", subject, f"{subject}: {entry.no_writer}"))
            elif entry.pending:
                yield Judgement(rule.id, Verdict.NOT_CHECKED, subject, Cause("pending", subject, f"{subject}: {entry.pending}"))
            else:
                yield Judgement(
                    rule.id, Verdict.FAIL, subject, Cause("no fixture", subject, f"{subject} has no fixture in the corpus")
                )
        elif excuse:
            text = f"{subject} is said to have no fixture, but {witness} is one"
            yield Judgement(rule.id, Verdict.FAIL, subject, Cause("excuse outdated", subject, text))
        else:
            yield Judgement(rule.id, Verdict.PASS, subject)
    numbered = {entry.kind for entry in evidence.policy.formats}
    for (kind, version), witness in sorted(written.items()):
        if kind in numbered:
            text = f"{witness} has {kind} {version}, which the policy does not know"
            yield Judgement(rule.id, Verdict.FAIL, f"{kind} {version}", Cause("unknown version", f"{kind} {version}", text))
