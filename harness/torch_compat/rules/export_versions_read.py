"""Releases read the schema versions of exported programs that the policy lists for them.

What: each loader was tested with archives of every major version, and with archives of its own with a different number in
``schema_version``. It loads archives with a major version that ``formats.toml`` lists for it, whatever the minor version, and refuses
all others. It may refuse an archive of a newer release with a known major version for a different reason; then nothing was promised.
Under a profile that requires it, a release also reads every archive that an older release wrote.

Why: a loader compares only the major version. A loader that accepted a different major version would misread the fields, and one that
compared the minor version would refuse archives that were declared compatible.

Example: torch 2.6.0 writes schema 8.2. Every later release loads it, and also 8.0 and 8.102; none loads 9.2.

Reference: torch/_export/serde/schema.py, comments of SchemaVersion; policies/torch/formats.toml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.exports import not_recorded, unasked
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.operators.export_schema import BASE, Alteration, Reaction
from torch_compat.releases.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.corpus.exported import RecordedExports
    from torch_compat.judging.evidence import Evidence
    from torch_compat.operators.export_schema import Answer
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
STEPS: Final = {
    BASE: 0,
    Alteration.MINOR_NEWER: 0,
    Alteration.MINOR_ZERO: 0,
    Alteration.MAJOR_NEWER: 1,
    Alteration.MAJOR_OLDER: -1,
}
"""The difference between the major version of an altered archive and that of its writer."""


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every answer about a version number."""
    exports = evidence.exported
    if exports is None:
        yield from not_recorded(evidence, rule)
        return
    yield from unasked(evidence, rule, exports)
    for answer in exports.witnesses.answers():
        if answer.alteration in STEPS:
            yield _judge(evidence, rule, exports, answer)


def _judge(evidence: Evidence, rule: RuleEntry, exports: RecordedExports, answer: Answer) -> Judgement:
    reader = Release(answer.release)
    major = exports.schemas.version(answer.writer)[0] + STEPS[answer.alteration]
    stated = any(
        entry.kind == "export-schema" and entry.version == major and reader in entry.readers for entry in evidence.policy.formats
    )
    loads = answer.reaction is not Reaction.REFUSED
    subject = f"{answer.name} in torch-{answer.release}"
    older = reader < Release(answer.writer)
    if loads and not stated:
        cause = Cause(
            "loads",
            answer.name,
            f"{answer.name}, with schema {major}, is loaded by a release that no [[format]] lists for this schema",
        )
        return Judgement(rule.id, Verdict.FAIL, subject, cause, reader=answer.release)
    if loads or (older and not stated):
        return Judgement(rule.id, Verdict.PASS, subject, reader=answer.release)
    if older:
        return Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=answer.release)
    real = answer.alteration is BASE  # no release wrote the altered ones
    if not stated and not (real and evidence.policy.exported):
        return Judgement(rule.id, Verdict.PASS, subject, reader=answer.release)
    cause = Cause("refused", answer.name, f"{answer.name}, with schema {major}, is not loaded by a newer release")
    return Judgement(rule.id, Verdict.FAIL, subject, cause, reader=answer.release)
