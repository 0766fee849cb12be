"""Shared by the rules about exported programs: judgements for missing records, and what a profile requires."""

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
    """The verdict on a release that falls short of what users would want: no promise, or a failure if a profile requires it."""
    return Verdict.FAIL if evidence.policy.exported else Verdict.NO_PROMISE


def not_recorded(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Yield a judgement that nothing is recorded, if the corpus has exported programs."""
    if any(fixture.family == "export" for fixture in evidence.corpus.fixtures.values()):
        command = RECORD.format(evidence.policy.corpus.readers[-1])
        cause = Cause("not recorded", "exported programs", f"there are no records of the loaders of exported programs: {command}")
        yield Judgement(rule.id, Verdict.NOT_CHECKED, "exported programs", cause)


def unasked(evidence: Evidence, rule: RuleEntry, exports: RecordedExports) -> Iterator[Judgement]:
    """Yield a judgement for each reader of the policy that writes exported programs, but whose loader was not surveyed."""
    known = set(exports.witnesses.releases)
    writing = {fixture.release for fixture in evidence.corpus.fixtures.values() if fixture.family == "export"}
    for release in evidence.policy.corpus.readers:
        if release in writing and release not in known:
            text = f"torch {release} writes exported programs, but its loader was not surveyed: {RECORD.format(release)}"
            cause = Cause("not asked", release, text)
            yield Judgement(rule.id, Verdict.NOT_CHECKED, f"torch-{release}", cause, reader=release)
