"""A loader does not silently drop unknown parts of an exported program.

What: each loader was tested with archives of releases that it supports, each with one alteration that it does not know: a field, a
member of a union, a number of an enum, an operator set version. It must refuse the archive, warn, apply the alteration, or preserve it
when it saves the program again. If it loads the archive as if nothing had been altered, that is a failure under a profile that requires
it, and not promised otherwise. The rule's parameter ``unknown`` lists the alterations that can change what a program means.

Why: every minor version adds fields, and loaders compare only the major version. If a guard, a mutation or a dtype is dropped, the
program silently computes different results, or accepts inputs that it was not exported for.

Example: 8.14 added ``guards_code``. 2.8 and older refuse the field; since 2.9, a field that the release does not know is dropped, and
so is the operator set version since 2.4.

Reference: this project; `_dict_to_dataclass` of torch/_export/serde/serialize.py ignores unknown keys for forward compatibility.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch_compat.errors import PolicyError, Problem
from torch_compat.judging.exports import asked, not_recorded, unasked
from torch_compat.judging.judgement import Asks, Cause, Judgement, Verdict
from torch_compat.operators.export_schema import Alteration, Reaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.policy import RuleEntry

__all__ = ["judge"]

ASKS: Final = Asks.OTHER
PARAMETERS: Final = frozenset({"unknown"})
SILENT: Final = frozenset({Reaction.DROPPED, Reaction.IGNORED})


def judge(evidence: Evidence, rule: RuleEntry) -> Iterator[Judgement]:
    """Judge every answer to an alteration that the parameter lists."""
    exports = evidence.exported
    if exports is None:
        yield from not_recorded(evidence, rule)
        return
    wanted = _unknown(rule)
    yield from unasked(evidence, rule, exports)
    given = set()
    for answer in exports.witnesses.answers():
        if answer.alteration not in wanted:
            continue
        given.add(answer.alteration)
        subject = f"{answer.name} in torch-{answer.release}"
        if answer.reaction not in SILENT:
            yield Judgement(rule.id, Verdict.PASS, subject, reader=answer.release)
            continue
        text = f"loaded as if it were not there: {answer.alteration.said}"
        cause = Cause(answer.reaction, answer.alteration, text)
        verdict = asked(evidence)
        yield Judgement(rule.id, verdict, subject, cause if verdict is Verdict.FAIL else None, reader=answer.release)
    newest = max((exports.schemas.version(release)[0] for release in exports.schemas.releases), default=0)
    for alteration in sorted(item for item in wanted - given if item.major <= newest):
        cause = Cause("no witness", alteration, f"no release was tested with the alteration {alteration}")
        yield Judgement(rule.id, Verdict.NOT_CHECKED, alteration, cause)


def _unknown(rule: RuleEntry) -> frozenset[Alteration]:
    """Return the alterations in the parameter ``unknown``.

    Raises:
        PolicyError: the parameter contains an unknown alteration.
    """
    names = rule.parameters.get("unknown", ())
    odd = sorted(set(names) - set(Alteration))
    if odd:
        raise PolicyError(
            [Problem(rule.id, 0, "", f"unknown: {', '.join(odd)} is not an alteration in operators/export_schema.py")]
        )
    return frozenset(map(Alteration, names))
