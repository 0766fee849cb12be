"""An upgrader declares the schema that the operator really had.

What: the old schema in a release's table of upgraders is the one that the last recorded release before the version bump had. This
is checked for releases since the policy; two texts are the same schema if PyTorch's own equality says so.

Why: an old program is compiled with the old schema before its calls are rewritten. If the schema is wrong, it matches calls that
no program ever made, and misses those that programs made.

Example: the old schema of aten::gelu.out ends in `-> Tensor`; the operator of 1.11.0 ends in `-> Tensor(a!)`.

Reference: torch/csrc/jit/operator_upgraders/README.md: the entry contains the old schema of the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.operator_changes import judged, misstated_by, not_recorded, operator_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.operator_changes import Misstated
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every upgrader that some release has."""
    yield from not_recorded(evidence, rule.id)
    changes = evidence.derived(operator_changes)
    for upgrader in changes.upgraders if changes is not None else ():
        yield _judgement(evidence, rule, upgrader)


def _judgement(evidence: Evidence, rule: RuleEntry, misstated: Misstated) -> Judgement:
    entry = misstated.entry
    subject = f"{entry.upgrader} of {entry.operator}, file format {entry.bump}"
    reproduce = f"torch-compat operators history {entry.operator}"
    if misstated.same:
        return Judgement(rule.id, Verdict.PASS, subject, reader=misstated.first)
    if not misstated.before:
        text = f"{subject}: the policy does not say which release introduced file format {entry.bump}, or no older release is recorded"
        return Judgement(
            rule.id, Verdict.NOT_CHECKED, subject, Cause("no release before", entry.operator, text), reader=misstated.first
        )
    if not misstated.known:
        text = f"{subject}: the operator records for {misstated.before}, the last release before the change, are incomplete"
        return Judgement(
            rule.id, Verdict.NOT_CHECKED, subject, Cause("not recorded", entry.operator, text), reader=misstated.first
        )
    verdict, waiver = judged(evidence, misstated_by(misstated))
    real = f"had {misstated.real}" if misstated.real is not None else "had no such operator"
    what = "another schema" if misstated.real is not None else "no such operator"
    cause = Cause(what, entry.operator, f"{subject} declares {entry.old}, but {misstated.before} {real}")
    return Judgement(
        rule.id, verdict, subject, cause, reader=misstated.first, reproduce=reproduce, at=misstated.first, waiver=waiver
    )
