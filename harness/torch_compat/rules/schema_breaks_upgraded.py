"""A schema change that breaks old programs has an upgrader.

What: every schema of a release that no longer works with the next recorded release, because the operator was removed or accepts different
arguments, has an upgrader in that release. Every operator counts, whatever its name: TorchScript compiles and saves calls of every
registered operator, and traced programs contain internal operators. Schemas that an incomplete set lacks are compared with the next set
again; what cannot be known is expected only if the policy gives the reason. Removing an upgrader is also a break. Releases from before the
policy promised nothing.

Why: a saved program names operators, and passes arguments by position, by name or by default. If an operator changed and its
calls are not rewritten, the program does not load, or an extension that registers a kernel for the operator cannot be imported.

Example: aten::qr is removed in 2.14.1; programs that call torch.qr no longer load, and no upgrader calls torch.linalg.qr instead.

Reference: PyTorch's Python Frontend Backward and Forward Compatibility Policy, section 'Upgraders'; the comparison is that of
test/forward_backward_compatibility/check_forward_backward_compatibility.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.judging.operator_changes import changed_by, dropped_by, judged, not_recorded, operator_changes
from torch_compat.operators.breaks import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.operator_changes import Pair
    from torch_compat.operators.breaks import Break
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every two consecutive recorded releases by what the newer one no longer has."""
    yield from not_recorded(evidence, rule.id)
    changes = evidence.derived(operator_changes)
    if changes is None:
        return
    for older, newer, _ in changes.early:
        yield Judgement(rule.id, Verdict.NO_PROMISE, f"operators of {older} in {newer}", reader=newer)
    for pair in changes.pairs:
        yield Judgement(rule.id, Verdict.PASS, f"operators of {pair.older} that are unchanged in {pair.newer}", reader=pair.newer)
        for _ in range(pair.lost - sum(not element.carried for element in pair.broken)):
            yield Judgement(rule.id, Verdict.PASS, f"an operator of {pair.older} that changed and still works", reader=pair.newer)
        for item in pair.broken:
            yield _judgement(evidence, rule, pair, item)
    for newer, entry in changes.dropped:
        verdict, waiver = judged(evidence, dropped_by(newer, entry))
        text = f"{entry.operator}: the upgrader {entry.upgrader} for file format {entry.bump} was removed"
        cause = Cause("upgrader dropped", entry.operator, text)
        yield Judgement(rule.id, verdict, text, cause, reader=newer, reproduce=_show(entry.operator), at=newer, waiver=waiver)


def _judgement(evidence: Evidence, rule: RuleEntry, pair: Pair, item: Break) -> Judgement:
    subject = f"{item.operator} of {pair.older} in {pair.newer}"
    name = item.operator.partition(".")[0]
    if item.what == UNKNOWN:
        gap = evidence.policy.operator_gaps.get(pair.newer)
        text = f"{pair.newer}: unknown whether it has everything that the previous release has: {gap.because if gap else item.reason}"
        verdict = Verdict.EXPECTED if gap else Verdict.NOT_CHECKED
        return Judgement(rule.id, verdict, subject, Cause(item.what, "operators", text), reader=pair.newer, at=pair.newer)
    if not item.known:
        return Judgement(
            rule.id, Verdict.NOT_CHECKED, subject, Cause(item.what, item.operator, f"{subject}: {item.reason}"), reader=pair.newer
        )
    if item.upgrader is not None:
        return Judgement(rule.id, Verdict.PASS, subject, reader=pair.newer)
    verdict, waiver = judged(evidence, changed_by(item, pair.newer))
    cause = Cause(item.what, name, f"{item.operator}: {item.reason}")
    return Judgement(rule.id, verdict, subject, cause, reader=pair.newer, reproduce=_show(name), at=pair.newer, waiver=waiver)


def _show(operator: str) -> str:
    return f"torch-compat operators history {operator}"
