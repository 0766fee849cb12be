"""Operators of a program that compute something else in some of the releases that load it, by ``changes.toml``.

A program loads there and nobody is told. Changes that a file format version announces are left out: newer releases compute what the
archive's version meant, and older ones refuse it. So are changes that only arguments outside of their range show. Which arguments reach an operator is not known before the program runs, so each change is
one that the program may meet.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from torch_compat.loadability.release_facts import packaged_rules
from torch_compat.operators.call_signature import bare
from torch_compat.operators.changes_of_meaning import changes_by_operator
from torch_compat.releases.release import Release
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from torch_compat.formats.model import Facts, Producer
    from torch_compat.loadability.loading_releases import Needs

__all__ = ["ChangeOfMeaning", "alike", "changes_of"]


class ChangeOfMeaning(NamedTuple):
    """An operator of a program that computes something else from a release on.

    Attributes:
        id: of the change.
        operator: qualified, without overload.
        since: the first release that computes it in the new way.
        kind: ``value``, ``type``, ``shape``, ``refused`` (raises since) or ``accepted`` (raised before).
        before, after: what it did, and what it does.
        written: ``before`` or ``after`` the change, as far as the archive tells its writer; None where it does not.
    """

    id: str
    operator: str
    since: str
    kind: str
    before: str
    after: str
    written: str | None


def changes_of(facts: Facts, needs: Needs) -> tuple[ChangeOfMeaning, ...]:
    """The changes that lie between releases which load a program: those since it was written first, then by release."""
    if not needs.loads:
        return ()
    names = (
        (name.partition(".")[0] for name in facts.operators) if facts.family == "export" else (call.name for call in facts.calls)
    )
    operators = frozenset(map(bare, names))
    met = operators.intersection(changes_by_operator())
    return _between(met, needs.loads, facts.producer) if met else ()


def alike(needs: Needs, changes: tuple[ChangeOfMeaning, ...]) -> tuple[tuple[str, str], ...]:
    """The releases that load a program and compute what its writer computed, as spans: no change of it lies between them and the writer.

    Where the archive does not tell its writer, they are the releases before the first change.
    """
    known, bits = packaged_rules().known, needs.loads
    for change in changes:
        newer = known.bits_of(ReleaseSet.between(Release(change.since), None))
        bits &= newer if change.written == "after" else ~newer
    return tuple(known.spans(bits))


@lru_cache(maxsize=1024)
def _between(operators: frozenset[str], loads: int, producer: Producer | None) -> tuple[ChangeOfMeaning, ...]:
    known = packaged_rules().known
    found = []
    for operator in sorted(operators):
        for change in changes_by_operator()[operator]:
            if change.file_format is not None or change.out_of_range:
                continue
            newer = known.bits_of(ReleaseSet.between(Release(change.since), None))
            if loads & newer and loads & ~newer:
                written = _written(Release(change.since), producer)
                found.append(
                    ChangeOfMeaning(change.id, operator, change.since, change.kind, change.before, change.after, written)
                )
    order = {"before": 0, None: 1, "after": 2}
    return tuple(sorted(found, key=lambda one: (order[one.written], Release(one.since).key, one.id, one.operator)))


def _written(since: Release, producer: Producer | None) -> str | None:
    """Whether a program was written before or after a change, by the minor lines that may have written it."""
    if producer is None:
        return None
    if producer.torch is not None:
        exact = packaged_rules().known.find(producer.torch)
        if exact is not None:
            return "before" if Release(exact) < since else "after"
    if producer.first is not None and Release(f"{producer.first}.0") >= since:
        return "after"
    if producer.last is not None and Release(f"{producer.last}.0") < since and producer.last != since.line:
        return "before"
    return None
