"""A minor schema version of exported programs is compatible with the previous one.

What: the schema of each release was read from its own dataclasses. From one release to the next with the same major version, no field
or member that an exported program can contain is removed or changes type, and no required field is added. Two releases with the same
version have the same schema. The latter always fails; the former is a failure only under a profile that requires it.

Why: loaders compare only the major version. An archive whose fields have a different meaning under the same major version is misread,
or refused with an error that does not mention versions.

Example: version 5.3 in torch 2.4 stores an optional tensor as an object; version 5.1 in 2.3 stored its name as a string.

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
    """Judge every release against the previous one."""
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
