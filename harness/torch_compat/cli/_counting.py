"""Counting anew what judging counts, beside what the lock states: ``torch-compat accept`` and whoever generates files do it here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_compat.cli.judge import gather, uncollected
from torch_compat.corpus.lines import write_whole
from torch_compat.operators.differences import in_words
from torch_compat.policy.counts import (
    BY_JUDGING,
    BY_PREDICTING,
    LOCK,
    PREDICT,
    WAITS,
    counted_tables,
    key_of,
    lock_text,
    read_lock,
    rewritten,
)
from torch_compat.policy.source import read_folder
from torch_compat.rules.judge import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.cli._root import Root
    from torch_compat.policy.counts import Counts, Key, Value
    from torch_compat.policy.operator_waivers import Changed
    from torch_compat.rules.evidence import Evidence
    from torch_compat.rules.judge import Measured

__all__ = ["LOCK_FILE", "Change", "Counted", "count", "locked", "write_lock"]

LOCK_FILE = f"policies/torch/{LOCK}"


@dataclass(frozen=True)
class Change:
    """An entry of the lock that changed. None stands for no entry: ``old`` of a new one, ``new`` of one that is gone.

    Attributes:
        became: of an operator of an operator_waiver the change that it shows, which ``new`` pins.
    """

    key: Key
    old: Value | None
    new: Value | None
    became: tuple[Changed, ...] = ()

    def __str__(self) -> str:
        name = " ".join(self.key)
        if self.became:
            what = "new" if self.old in {None, WAITS} else "another change than before"
            return "\n".join([f"{name}: {what}", *(f"    {line}" for one in self.became for line in _in_words(one))])
        if self.old is None:
            return f"{name}: new, {self.new}"
        return f"{name}: gone, was {self.old}" if self.new is None else f"{name}: {self.old} -> {self.new}"


@dataclass(frozen=True)
class Counted:
    """What judging counts, beside what the lock states.

    Attributes:
        evidence: what was counted; its policy has no counts.
        entries: the entries that the lock is to have. Those that judging cannot count, or that cover nothing, keep what is stated.
        changes: where they differ from what the lock states, sorted.
        unused: waivers and gaps that cover nothing, and why.
        not_checked: what could not be checked or counted, and why.
        stale: whether the file is not what it is to be.
        final: whether everything was checked; the counts are not final otherwise, and never written.
    """

    evidence: Evidence
    entries: Counts
    changes: tuple[Change, ...]
    unused: dict[Key, str]
    not_checked: tuple[str, ...]
    stale: bool
    final: bool


def _in_words(one: Changed) -> Iterator[str]:
    """A change of an operator: what it is, both schemas, and the command that shows it."""
    yield f"{one.side}, since {one.since}: {in_words(one.change)}"
    yield f"old  {one.old or 'none'}"
    yield f"new  {one.new or 'none'}"
    yield f"see  {one.show}"


def count(place: Root) -> Counted:
    """Count what every waiver and gap covers in the recorded evidence. Writes nothing.

    Raises:
        NothingSelected: the tree has no policies, or no corpus.
        PolicyError: the policy is invalid, or its lock cannot be read.
    """
    folder = place.inside("policies/torch")
    policy = place.policy(counted=False)
    lock = read_lock(folder)
    wanted = counted_tables(read_folder(folder).entries)
    with uncollected():
        evidence = gather(place, policy, as_of=None)
        measured = measure(evidence)
    unused = dict(_unused(evidence, measured))
    old = lock.values
    counted = {key: count for key, count in measured.counts.items() if count is not None and key not in unused}
    counted |= {key: WAITS for key, count in counted.items() if key[0] == "operator_waiver" and count == 0}
    uncounted = {key for key, count in measured.counts.items() if count is None}
    kept = {key: old[key] for key in (*unused, *uncounted) if key in old}  # judging goes on reporting the unused ones
    new = rewritten(lock, BY_JUDGING, {**counted, **kept}, wanted)
    missing = [f"{' '.join(key)}: not counted here: {PREDICT}" for key in sorted(wanted - new.keys()) if key[0] in BY_PREDICTING]
    return Counted(
        evidence=evidence,
        entries=new,
        changes=tuple(
            Change(key, old.get(key), new.get(key), measured.became.get(key, ()))
            for key in sorted({*old, *new})
            if old.get(key) != new.get(key)
        ),
        unused=unused,
        not_checked=(*measured.not_checked, *missing),
        stale=lock.text != (lock_text(new) if new or lock.text is not None else None),
        final=not measured.not_checked,
    )


def write_lock(place: Root, counted: Counted) -> bool:
    """Write the lock where it says something else, and the counts are final; whether it was written."""
    written = counted.stale and counted.final
    if written:
        write_whole(place.inside(LOCK_FILE), lock_text(counted.entries), encoding="utf-8")
    return written


def locked(place: Root, counts: Counts) -> str:
    """The text of the lock with these counts of quirks and slips; what judging counts stays as it is stated.

    Raises:
        PolicyError: the lock cannot be read.
    """
    folder = place.inside("policies/torch")
    return lock_text(rewritten(read_lock(folder), BY_PREDICTING, counts, counted_tables(read_folder(folder).entries)))


def _unused(evidence: Evidence, measured: Measured) -> Iterator[tuple[Key, str]]:
    """Waivers and gaps that cover nothing, and why. A waiver for operators may wait for a release that is not recorded yet."""
    recorded = evidence.operators.schemas.releases if evidence.operators is not None else ()
    later = [one for one in evidence.policy.operator_waivers if one.since not in recorded]
    waiting = {key_of(one.id, operator) for one in later for operator in one.operators}
    for key, found in measured.counts.items():
        if key in measured.expired:
            yield key, "has expired: take it out of the policy, or give it another day"
        elif found == 0 and key not in waiting:
            what = "did not change so" if key[0] == "operator_waiver" else "covers nothing"
            yield key, f"{what}: take it out of the policy, or mend it"
