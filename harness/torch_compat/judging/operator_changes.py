"""Shared by the rules about operators: what broke between recorded releases, and which waivers cover it."""

from __future__ import annotations

from dataclasses import dataclass
from json import loads
from typing import TYPE_CHECKING, Final

from torch_compat.judging.judgement import Cause, Judgement, Verdict
from torch_compat.operators.breaks import (
    UNKNOWN,
    Break,
    UpgraderEntry,
    change_of,
    consecutive,
    dropped_upgraders,
    lost_counts,
    operator_of,
    same_schema,
)
from torch_compat.policy.counts import key_of
from torch_compat.policy.operator_waivers import Applied, Changed, apply_waivers

if TYPE_CHECKING:
    from torch_compat.judging.evidence import Evidence
    from torch_compat.operators.differences import Difference
    from torch_compat.policy.counts import Key

__all__ = [
    "NOT_RECORDED",
    "Misstated",
    "OperatorChanges",
    "Pair",
    "PairCounts",
    "changed_by",
    "dropped_by",
    "judged",
    "misstated_by",
    "not_recorded",
    "operator_changes",
    "operators_became",
    "pair_counts",
    "unknown_operators",
]

NOT_RECORDED: Final = "there are no records of operators: fixtures/operators/schemas.txt and operator_versions.txt are missing"


@dataclass(frozen=True)
class Pair:
    """Two consecutive recorded releases, the newer of which is bound by the policy's promise.

    Attributes:
        lost: the number of schemas of the older release that the newer one lacks.
        broken: those that do not work with the newer one.
    """

    older: str
    newer: str
    lost: int
    broken: tuple[Break, ...]


@dataclass(frozen=True)
class Misstated:
    """An upgrader, and whether the old schema that it states is that of the release before its bump.

    Attributes:
        first: the first recorded release that states it.
        before: the last recorded release before the file format version of the bump; "" if none is that old.
        real: the schema of the operator there; None if it did not exist.
        same: whether they are the same.
        known: whether the release before is recorded completely, or has the operator at all.
    """

    entry: UpgraderEntry
    first: str
    before: str
    real: str | None
    same: bool
    known: bool


@dataclass(frozen=True)
class OperatorChanges:
    """What the recorded operators show under a policy.

    Attributes:
        early: ``(older, newer, lost)`` for pairs before the policy, with the number of schemas of the older one that the newer one lacks.
        pairs: the others, in order.
        upgraders: every upgrader that some release under the policy states.
        dropped: ``(newer release, entry)`` of upgraders that the release before still had.
        applied: what became of the waivers for operators.
    """

    early: tuple[tuple[str, str, int], ...]
    pairs: tuple[Pair, ...]
    upgraders: tuple[Misstated, ...]
    dropped: tuple[tuple[str, UpgraderEntry], ...]
    applied: Applied


@dataclass(frozen=True)
class PairCounts:
    """Two consecutive recorded releases, in numbers.

    Attributes:
        lost: the number of schemas of the older one that the newer one does not have in the same form.
        broken: how many of these, and of those that an incomplete set before hid, do not work; None if nothing was promised.
        upgraded, waived, unknown: how many have an upgrader, have a waiver, cannot be determined.
        carried: how many of the broken ones an incomplete set before hid; they are not among the lost.
    """

    older: str
    newer: str
    lost: int
    broken: int | None = None
    upgraded: int = 0
    waived: int = 0
    unknown: int = 0
    carried: int = 0


def pair_counts(evidence: Evidence) -> tuple[PairCounts, ...]:
    """Every two consecutive recorded releases, oldest first; empty if nothing is recorded."""
    changes = evidence.derived(operator_changes)
    if changes is None:
        return ()
    results = [PairCounts(*early) for early in changes.early]
    for pair in changes.pairs:
        known = [item for item in pair.broken if item.known]
        upgraded = sum(item.upgrader is not None for item in known)
        waived = sum(item.upgrader is None and changed_by(item, pair.newer) in changes.applied.by for item in known)
        unknown = len(pair.broken) - len(known)
        carried = sum(item.carried for item in known)
        results.append(PairCounts(pair.older, pair.newer, pair.lost, len(known), upgraded, waived, unknown, carried))
    return tuple(results)


def not_recorded(evidence: Evidence, rule: str) -> list[Judgement]:
    """A judgement for each release whose operators should be recorded, but are not."""
    if evidence.operators is None:
        return [Judgement(rule, Verdict.NOT_CHECKED, "operators", Cause("not recorded", "operators", NOT_RECORDED))]
    results = []
    for release in sorted({*evidence.policy.corpus.readers} - {*evidence.operators.schemas.releases}):
        text = f"its operators are not recorded: torch-compat observe --reader torch-{release} --record --survey"
        results.append(
            Judgement(rule, Verdict.NOT_CHECKED, release, Cause("not recorded", release, f"{release}: {text}"), reader=release)
        )
    return results


def operator_changes(evidence: Evidence) -> OperatorChanges | None:
    """Everything that the rules about operators use; None if nothing is recorded. :meth:`Evidence.derived` caches it."""
    if evidence.operators is None:
        return None
    schemas, versions = evidence.operators.schemas, evidence.operators.versions
    policy = evidence.policy
    releases = schemas.releases
    held = [release in policy.calendar and policy.calendar[release].date >= policy.in_force_from for release in releases]
    since = max(1, held.index(True)) if True in held else len(releases)
    pairs = tuple(
        Pair(older, newer, lost, tuple(broken)) for older, newer, lost, broken in consecutive(schemas, versions, since=since)
    )
    upgraders = tuple(_misstated(evidence, held))
    dropped = tuple(_dropped(evidence, since))
    changed: list[Changed] = [
        *(changed_by(item, pair.newer) for pair in pairs for item in pair.broken if item.known and item.upgrader is None),
        *(dropped_by(newer, entry) for newer, entry in dropped),
        *(misstated_by(upgrader) for upgrader in upgraders if upgrader.known and not upgrader.same),
    ]
    if any(waiver.side == "forward" for waiver in policy.operator_waivers):
        changed += [
            changed_by(item, newer)
            for _, newer, _, broken in consecutive(schemas, versions, since=since, side="forward")
            for item in broken
            if item.known
        ]
    applied = apply_waivers(policy.operator_waivers, dict.fromkeys(changed), as_of=evidence.as_of)
    lost = lost_counts(schemas)
    early = tuple((releases[at - 1], releases[at], lost[releases[at]]) for at in range(1, min(since, len(releases))))
    return OperatorChanges(early, pairs, upgraders, dropped, applied)


def _misstated(evidence: Evidence, held: list[bool]) -> list[Misstated]:
    """Every upgrader that some release under the policy states, with the schema of the release before its bump."""
    assert evidence.operators is not None  # noqa: S101 - checked by the caller
    schemas, versions = evidence.operators.schemas, evidence.operators.versions
    bumps = {entry.version: entry.read_from.release for entry in evidence.policy.formats if entry.kind == "file-format"}
    results = []
    for operator, value, bits in versions.facts():
        stating = versions.of(bits)
        if not any(holds and release in stating for release, holds in zip(schemas.releases, held, strict=True)):
            continue
        for bump, upgrader, old in loads(value):
            entry = UpgraderEntry(operator, bump, upgrader, old)
            bumped = bumps.get(bump)
            older = [
                release
                for release in schemas.releases
                if bumped in evidence.rank and evidence.rank[release] < evidence.rank[bumped]
            ]
            before = older[-1] if older else ""
            texts = [text for text in schemas.schemas(operator, before) if operator_of(text) == operator] if before else []
            same = any(same_schema(old, text) for text in texts)
            known = bool(texts) or (bool(before) and schemas.complete(before))
            results.append(Misstated(entry, stating[0], before, texts[0] if texts else None, same, known))
    return results


def _dropped(evidence: Evidence, since: int) -> list[tuple[str, UpgraderEntry]]:
    """Upgraders that a release lacks although the previous recorded one had them."""
    assert evidence.operators is not None  # noqa: S101 - checked by the caller
    versions = evidence.operators.versions
    pairs = zip(versions.releases[since - 1 :], versions.releases[since:], strict=False)
    return [(newer, entry) for older, newer in pairs for entry in dropped_upgraders(versions, older, newer)]


def changed_by(item: Break, release: str) -> Changed:
    """The change that waivers must cover for a break that came with a release."""
    return Changed(item.side, release, item.operator, item.change, item.old, item.became)


def dropped_by(release: str, entry: UpgraderEntry) -> Changed:
    """The change that waivers must cover for an upgrader that a release dropped."""
    return Changed("backward", release, entry.operator, ("upgrader-dropped",), entry.old, None)


def misstated_by(misstated: Misstated) -> Changed:
    """The change that waivers must cover for an upgrader that states a schema other than the real one."""
    change: tuple[Difference, ...] = (
        ("never-there",) if misstated.real is None else change_of(misstated.real, misstated.entry.old)
    )
    return Changed("upgrader", misstated.first, misstated.entry.operator, change, misstated.real, misstated.entry.old)


def judged(evidence: Evidence, changed: Changed) -> tuple[Verdict, str]:
    """The verdict on a change, and the id of the waiver that covers it."""
    changes = evidence.derived(operator_changes)
    assert changes is not None  # noqa: S101 - without records there are no breaks
    fitting = changes.applied.by.get(changed, ())
    return (Verdict.WAIVED, fitting[0].id) if fitting else (Verdict.FAIL, "")


def operators_became(evidence: Evidence) -> dict[Key, tuple[Changed, ...]]:
    """The changes that each operator of a waiver shows, by the keys of ``counts.lock``; empty without records or such a change."""
    changes = evidence.derived(operator_changes)
    return {
        key_of(waiver.id, operator): changes.applied.covered.get((waiver.id, operator), ()) if changes is not None else ()
        for waiver in evidence.policy.operator_waivers
        for operator in waiver.operators
    }


def unknown_operators(changes: OperatorChanges, release: str) -> int:
    """The number of operators of the previous release that the incomplete record of a release leaves undecided."""
    return sum(item.what == UNKNOWN for pair in changes.pairs if pair.newer == release for item in pair.broken)
