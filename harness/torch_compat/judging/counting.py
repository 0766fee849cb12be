"""Recount what exceptions cover and compare it with the locks, for ``torch-compat accept`` and for generating files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch_compat.errors import PolicyError
from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import measure
from torch_compat.operators.differences import in_words
from torch_compat.policy.accepted import WAIVERS_LOCK, Accepted, read_accepted
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
from torch_compat.writes import changing, put

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from torch_compat.judging.evidence import Evidence
    from torch_compat.judging.judge import Measured
    from torch_compat.judging.waiving import Waiving
    from torch_compat.policy.accepted import Block
    from torch_compat.policy.counts import Counts, Key, Value
    from torch_compat.policy.operator_waivers import Changed
    from torch_compat.workspace import Root

__all__ = [
    "ACCEPTED_FILE",
    "LOCK_FILE",
    "CellDifference",
    "Counted",
    "LockChange",
    "count",
    "few",
    "locked",
    "words_of",
    "write_lock",
]

LOCK_FILE = f"policies/torch/{LOCK}"
ACCEPTED_FILE = f"policies/torch/{WAIVERS_LOCK}"


@dataclass(frozen=True)
class LockChange:
    """A changed entry of the lock. None stands for no entry: ``old`` of a new one, ``new`` of a removed one.

    Attributes:
        became: for an operator of an operator_waiver, the changes that it shows, which ``new`` pins.
    """

    key: Key
    old: Value | None
    new: Value | None
    became: tuple[Changed, ...] = ()

    def __str__(self) -> str:
        name = " ".join(self.key)
        if self.became:
            what = "new" if self.old in {None, WAITS} else "differs from the accepted change"
            return "\n".join([f"{name}: {what}", *(f"    {line}" for item in self.became for line in _in_words(item))])
        if self.old is None:
            return f"{name}: new, {self.new}"
        return f"{name}: gone, was {self.old}" if self.new is None else f"{name}: {self.old} -> {self.new}"


@dataclass(frozen=True)
class CellDifference:
    """A difference missing from waivers.lock, or one in the lock that no longer exists.

    Attributes:
        waiver: id of the waiver.
        new: whether the lock lacks it.
        line: the line of the lock.
        told: descriptions of what differs; empty if it no longer exists.
        show: the command that reproduces it; "" if it no longer exists.
    """

    waiver: str
    new: bool
    line: str
    told: tuple[str, ...] = ()
    show: str = ""

    def __str__(self) -> str:
        text = f"{self.waiver}: {'new' if self.new else 'gone'}: {self.line.partition(' ')[2]}"
        return "\n".join((text, *(f"  {item}" for item in few(self.told)), *([f"  reproduce: {self.show}"] if self.show else [])))


@dataclass(frozen=True)
class Counted:
    """The counts of judging, compared with the locks.

    Attributes:
        evidence: the evidence that was counted; its policy has no counts.
        entries: the new entries of ``counts.lock``. Entries that judging cannot count, or that cover nothing, keep their values.
        changes: the differences from the lock, sorted.
        waiving: what waivers cover.
        accepted: the new contents of ``waivers.lock``.
        differences: how these differ from the lock, by waiver.
        unread: why ``waivers.lock`` cannot be read, if so.
        unused: waivers and gaps that cover nothing, and why.
        not_checked: what could not be checked or counted, and why.
        stale: whether a file is outdated.
        final: whether everything was checked; otherwise the counts are not final, and never written.
    """

    evidence: Evidence
    entries: Counts
    changes: tuple[LockChange, ...]
    waiving: Waiving
    accepted: Accepted
    differences: tuple[CellDifference, ...]
    unread: tuple[str, ...]
    unused: dict[Key, str]
    not_checked: tuple[str, ...]
    stale: bool
    final: bool


def _in_words(changed: Changed) -> Iterator[str]:
    """Describe a change of an operator: what it is, both schemas, and the command that shows it."""
    yield f"{changed.side}, since {changed.since}: {in_words(changed.change)}"
    yield f"old  {changed.old or 'none'}"
    yield f"new  {changed.new or 'none'}"
    yield f"see  {changed.show}"


def count(place: Root, *, accepting: bool) -> Counted:
    """Measure what every waiver and gap covers in the recorded evidence. Writes nothing.

    Parameters:
        accepting: whether to include every difference within the scope of a waiver. Otherwise only those that continue: a difference
            missing from the lock where the lock could have it must be reviewed by a person.

    Raises:
        NothingSelected: the tree has no policies, or no corpus.
        PolicyError: the policy is invalid, or a lock that must be kept cannot be read.
    """
    folder = place.inside("policies/torch")
    policy = place.policy(counted=False)
    lock = read_lock(folder)
    unread: list[str] = []
    try:
        stated = read_accepted(folder)
    except PolicyError as error:
        if not accepting:
            raise
        stated = None  # it is generated: the newly accepted contents replace it, and are all shown
        unread = [f"{problem}; everything counts as new" for problem in error.problems]
    wanted = counted_tables(read_folder(folder).entries)
    with uncollected():
        evidence = gather(place, policy if accepting else replace(policy, accepted=stated), as_of=None)
        measured = measure(evidence)
    unused = dict(_unused(evidence, measured))
    old = lock.values
    counted = {key: count for key, count in measured.counts.items() if count is not None and key not in unused}
    counted |= {key: WAITS for key, count in counted.items() if key[0] == "operator_waiver" and count == 0}
    if not accepting:  # what an operator became must be reviewed, too
        pinned = {key for key in counted if key[0] == "operator_waiver"}
        counted = {key: old[key] if key in pinned else count for key, count in counted.items() if key not in pinned or key in old}
    uncounted = {key for key, count in measured.counts.items() if count is None}
    kept = {key: old[key] for key in (*unused, *uncounted) if key in old}  # judging keeps reporting the unused ones
    new = rewritten(lock, BY_JUDGING, {**counted, **kept}, wanted)
    missing = [f"{' '.join(key)}: not counted here: {PREDICT}" for key in sorted(wanted - new.keys()) if key[0] in BY_PREDICTING]
    accepted = measured.waiving.accepted()
    differences = tuple(_differences(measured.waiving, accepted, stated))
    return Counted(
        evidence=evidence,
        entries=new,
        changes=tuple(
            LockChange(key, old.get(key), new.get(key), measured.became.get(key, ()))
            for key in sorted({*old, *new})
            if old.get(key) != new.get(key)
        ),
        waiving=measured.waiving,
        accepted=accepted,
        differences=differences,
        unread=tuple(unread),
        unused=unused,
        not_checked=(*measured.not_checked, *missing),
        stale=lock.text != (lock_text(new) if new or lock.text is not None else None)
        or (None if stated is None else stated.text) != (accepted.text if accepting or stated is not None else None),
        final=not measured.not_checked,
    )


def _differences(waiving: Waiving, accepted: Accepted, stated: Accepted | None) -> Iterator[CellDifference]:
    """Yield the differences between what waivers cover and the lock."""
    before = {} if stated is None else {line: line.partition(" ")[0] for line in stated.lines}
    now = {line: block for block in accepted.blocks for line in Accepted(accepted.known, accepted.recipes, (block,)).lines}
    for line, block in now.items():
        if line not in before:
            texts, show = words_of(waiving, block)
            yield CellDifference(block.waiver, new=True, line=line, told=texts, show=show)
    findings = {f"{waiver} finding {digest} {name}": (waiver, name) for (waiver, name), digest in accepted.findings.items()}
    for line, (waiver, name) in findings.items():
        if line not in before:
            yield CellDifference(waiver, new=True, line=line, told=(name,), show="torch-compat judge --full")
    for line, waiver in before.items():
        if line not in now and line not in findings:
            yield CellDifference(waiver, new=False, line=line)


def words_of(waiving: Waiving, block: Block) -> tuple[tuple[str, ...], str]:
    """Descriptions of what differs in the cells of a block, and the command that shows it; empty if none of them was recorded."""
    told = (waiving.words(block.waiver, block.outcome, block.options, recipe, block.digest) for recipe in block.recipes)
    return next((item for item in told if item is not None), ((), ""))


def few(texts: Collection[str], most: int = 4) -> list[str]:
    """The first of some texts, and the number of the others."""
    kept = list(texts)[:most]
    return kept if len(texts) <= most else [*kept, f"and {len(texts) - most} more"]


def write_lock(place: Root, counted: Counted) -> bool:
    """Write the locks if they are outdated and everything was checked; return whether they were written."""
    written = counted.stale and counted.final
    if written:
        with changing(place.path):
            put(place.inside(LOCK_FILE), lock_text(counted.entries), encoding="utf-8")
            if counted.evidence.policy.waivers or place.inside(ACCEPTED_FILE).exists():
                put(place.inside(ACCEPTED_FILE), counted.accepted.text, encoding="utf-8")
    return written


def locked(place: Root, counts: Counts) -> str:
    """The text of the lock with these counts of behaviors; counts of judging are kept.

    Raises:
        PolicyError: the lock cannot be read.
    """
    folder = place.inside("policies/torch")
    return lock_text(rewritten(read_lock(folder), BY_PREDICTING, counts, counted_tables(read_folder(folder).entries)))


def _unused(evidence: Evidence, measured: Measured) -> Iterator[tuple[Key, str]]:
    """Waivers and gaps that cover nothing, and why. A waiver for operators may wait for a release that is not yet recorded."""
    recorded = evidence.operators.schemas.releases if evidence.operators is not None else ()
    later = [item for item in evidence.policy.operator_waivers if item.since not in recorded]
    waiting = {key_of(item.id, operator) for item in later for operator in item.operators}
    for waiver in evidence.policy.waivers:
        key = ("waiver", waiver.id)
        covered = measured.waiving.covered.get(waiver.id)
        if key not in measured.expired and (covered is None or not covered.count):
            yield key, "covers nothing: remove it from the policy, or correct it"
        elif key not in measured.expired and covered is not None and covered.shared:
            yield key, f"covers cells that {', '.join(sorted(covered.shared))} also covers"
    for key in sorted(measured.expired - measured.counts.keys()):
        yield key, "has expired: remove it from the policy, or give it a later date"
    for key, result in measured.counts.items():
        if key in measured.expired:
            yield key, "has expired: remove it from the policy, or give it a later date"
        elif result == 0 and key not in waiting:
            what = "did not change in this way" if key[0] == "operator_waiver" else "covers nothing"
            yield key, f"{what}: remove it from the policy, or correct it"
