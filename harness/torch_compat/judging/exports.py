"""What the rules about exported programs share: what they say where something is not recorded, and what a profile asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.judging.judgement import Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.exported import RecordedExports
    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["asked", "not_recorded", "unasked"]

RECORD = "torch-compat observe --reader torch-{} --record --survey"


def asked(evidence: Evidence) -> Verdict:
    """What a release is told that falls short of what users would want: no promise, or a failure where a profile asks for it."""
    return Verdict.FAIL if evidence.policy.exported else Verdict.NO_PROMISE


def not_recorded(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """That nothing is recorded, where the corpus has exported programs."""
    if any(fixture.family == "export" for fixture in evidence.corpus.fixtures.values()):
        command = RECORD.format(evidence.policy.corpus.readers[-1])
        cause = Cause("not recorded", "exported programs", f"there are no records of the loaders of exported programs: {command}")
        yield Judgement(rule.id, Verdict.NOT_CHECKED, "exported programs", cause)


def unasked(evidence: Evidence, rule: RuleEntry, exports: RecordedExports) -> Iterator[Judgement]:
    """The readers of the policy whose survey does not say what their loader does, though they write exported programs."""
    known = set(exports.witnesses.releases)
    writing = {fixture.release for fixture in evidence.corpus.fixtures.values() if fixture.family == "export"}
    for release in evidence.policy.corpus.readers:
        if release in writing and release not in known:
            text = f"torch {release} writes exported programs, but its loader was not surveyed: {RECORD.format(release)}"
            cause = Cause("not asked", release, text)
            yield Judgement(rule.id, Verdict.NOT_CHECKED, f"torch-{release}", cause, reader=release)
