"""A minor schema version of exported programs is compatible with the one before.

What: the schema of each release was read from its own dataclasses. From one release to the next, under one major number, no field or
member that an exported program can hold goes or gets another type, and no field comes that an archive must have. Two releases that
state one version have one schema. The latter fails always; the former is a failure under a profile that asks for it.

Why: loaders compare the major number alone. An archive whose fields have another meaning under the same major number is misread, or
refused with an error that says nothing about versions.

Example: 5.3 of torch 2.4 states an optional tensor as an object, where 5.1 of 2.3 stated its name as a text.

Reference: torch/_export/serde/schema.py: comments of SchemaVersion, and the invariant above it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from torch_compat.judging.exports import asked, not_recorded, unasked
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every release against the one before."""
    exports = evidence.exported
    if exports is None:
        yield from not_recorded(evidence, rule)
        return
    yield from unasked(evidence, rule, exports)
    schemas = exports.schemas
    for old, new in pairwise(schemas.releases):
        before, after = schemas.version(old), schemas.version(new)
        changes = schemas.changes(old, new)
        subject = f"schema of torch-{new}"
        if before == after and changes:
            text = f"torch {new} has the same schema version as {old}, but a different schema: {changes[0].text}"
            cause = Cause("same version", subject, text)
            yield Judgement(rule.id, Verdict.FAIL, subject, cause, reader=new, at=new)
            continue
        breaking = [change for change in changes if change.breaks] if before[0] == after[0] else []
        if not breaking:
            yield Judgement(rule.id, Verdict.PASS, subject, reader=new)
        for change in breaking:
            text = f"torch {new} changes the schema without bumping the major version {after[0]}: {change.text}"
            verdict = asked(evidence)
            cause = Cause("breaks", change.text, text)
            yield Judgement(
                rule.id, verdict, f"{subject}: {change.text}", cause if verdict is Verdict.FAIL else None, reader=new, at=new
            )
