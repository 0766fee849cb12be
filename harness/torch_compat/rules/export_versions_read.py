"""Releases read the schema versions of exported programs that the policy states.

What: each loader was given archives of every major version, and archives of its own with another number in ``schema_version``. It loads
what has a major number that ``formats.toml`` states for it, whatever the minor number, and refuses all others. An archive of a newer
release whose major number it knows may be refused for another reason; then nothing was promised. Under a profile that asks for it, a
release also reads every archive that an older one wrote.

Why: the major number is all that a loader compares. One that took another number would misread the fields, and one that compared
the minor number would refuse what was declared compatible.

Example: torch 2.6.0 writes schema 8.2. Every later release loads it, and 8.0 and 8.102 as well, and none loads 9.2.

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
"""How far the major number of an altered archive is from that of its writer."""


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
            f"{answer.name}, of schema {major}, is loaded by a release that no [[format]] lists for this schema",
        )
        return Judgement(rule.id, Verdict.FAIL, subject, cause, reader=answer.release)
    if loads or (older and not stated):
        return Judgement(rule.id, Verdict.PASS, subject, reader=answer.release)
    if older:
        return Judgement(rule.id, Verdict.NO_PROMISE, subject, reader=answer.release)
    real = answer.alteration is BASE  # no release wrote the others
    if not stated and not (real and evidence.policy.exported):
        return Judgement(rule.id, Verdict.PASS, subject, reader=answer.release)
    cause = Cause("refused", answer.name, f"{answer.name}, of schema {major}, is not loaded by a newer release")
    return Judgement(rule.id, Verdict.FAIL, subject, cause, reader=answer.release)
