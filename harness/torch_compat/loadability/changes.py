"""Operators of a program with different results in some of the releases that load it, according to ``changes.toml``.

Such a program loads without a warning. Changes with a new file format version are omitted: newer releases compute the results of the
archive's version, and older ones refuse it. Changes that only affect out-of-range arguments are omitted, too. The arguments of an operator
are not known before the program runs, so these are changes that may affect the program.
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
    """An operator of a program whose results change in a release.

    Attributes:
        id: the id of the change.
        operator: the qualified name, without overload.
        since: the first release with the new behavior.
        kind: ``value``, ``type``, ``shape``, ``refused`` (raises since) or ``accepted`` (raised before).
        before, after: the behavior before and after the change.
        written: whether the archive was written ``before`` or ``after`` the change; None if its writer is not known.
    """

    id: str
    operator: str
    since: str
    kind: str
    before: str
    after: str
    written: str | None


def changes_of(facts: Facts, needs: Needs) -> tuple[ChangeOfMeaning, ...]:
    """Return the changes between the releases that load a program: first those since it was written, then by release."""
    if not needs.loads:
        return ()
    names = (
        (name.partition(".")[0] for name in facts.operators) if facts.family == "export" else (call.name for call in facts.calls)
    )
    operators = frozenset(map(bare, names))
    met = operators.intersection(changes_by_operator())
    return _between(met, needs.loads, facts.producer) if met else ()


def alike(needs: Needs, changes: tuple[ChangeOfMeaning, ...]) -> tuple[tuple[str, str], ...]:
    """Return the releases that load a program and compute the results of its writer, as spans: no change separates them.

    If the writer is not known, these are the releases before the first change.
    """
    known, bits = packaged_rules().known, needs.loads
    for change in changes:
        newer = known.bits_of(ReleaseSet.between(Release(change.since), None))
        bits &= newer if change.written == "after" else ~newer
    return tuple(known.spans(bits))


@lru_cache(maxsize=1024)
def _between(operators: frozenset[str], loads: int, producer: Producer | None) -> tuple[ChangeOfMeaning, ...]:
    known = packaged_rules().known
    results = []
    for operator in sorted(operators):
        for change in changes_by_operator()[operator]:
            if change.file_format is not None or change.out_of_range:
                continue
            newer = known.bits_of(ReleaseSet.between(Release(change.since), None))
            if loads & newer and loads & ~newer:
                written = _written(Release(change.since), producer)
                results.append(
                    ChangeOfMeaning(change.id, operator, change.since, change.kind, change.before, change.after, written)
                )
    order = {"before": 0, None: 1, "after": 2}
    return tuple(
        sorted(results, key=lambda meaning: (order[meaning.written], Release(meaning.since).key, meaning.id, meaning.operator))
    )


def _written(since: Release, producer: Producer | None) -> str | None:
    """Return whether a program was written before or after a change, by the minor versions that may have written it."""
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
