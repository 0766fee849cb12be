"""``torch-compat accept``: compare what judging counts with the lock that states it, and write the lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.text import Text

from torch_compat.cli._output import exit_status, format_option, print_json, stdout
from torch_compat.cli._root import find_root, root_option
from torch_compat.cli.judge import gather, uncollected
from torch_compat.corpus.lines import write_whole
from torch_compat.policy.counts import (
    ACCEPT,
    BY_JUDGING,
    BY_PREDICTING,
    LOCK,
    PREDICT,
    counted_tables,
    lock_text,
    read_lock,
    rewritten,
)
from torch_compat.policy.source import read_folder
from torch_compat.rules.judge import measure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch_compat.policy.counts import Key
    from torch_compat.rules.evidence import Evidence
    from torch_compat.rules.judge import Measured

__all__ = ["accept"]


@dataclass(frozen=True)
class _Change:
    """An entry of the lock whose count changed. None stands for no entry: ``old`` of a new one, ``new`` of one that is gone."""

    key: Key
    old: int | None
    new: int | None

    def __str__(self) -> str:
        name = " ".join(self.key)
        if self.old is None:
            return f"{name}: new, {self.new}"
        return f"{name}: gone, was {self.old}" if self.new is None else f"{name}: {self.old} -> {self.new}"


@click.command()
@click.option("--write", is_flag=True, help=f"Write policies/torch/{LOCK}. Review it as a diff.")
@root_option
@format_option
def accept(root: Path | None, format_: str, *, write: bool) -> int:
    """Count what every waiver and gap covers in the recorded evidence, and show each difference from the lock.

    Without --write nothing is written, and a difference ends with 1. A waiver that covers nothing is never accepted. Nothing is
    written while something could not be checked, because the counts are not final then.
    """
    place = find_root(root)
    policy = place.policy(counted=False)
    lock = read_lock(place.inside("policies/torch"))
    wanted = counted_tables(read_folder(place.inside("policies/torch")).entries)
    with uncollected():
        evidence = gather(place, policy, as_of=None)
        measured = measure(evidence)
    unused = dict(_unused(evidence, measured))
    old = lock.counts
    counted = {key: count for key, count in measured.counts.items() if count is not None and key not in unused}
    uncounted = {key for key, count in measured.counts.items() if count is None}
    kept = {key: old[key] for key in (*unused, *uncounted) if key in old}  # judging goes on reporting the unused ones
    new = rewritten(lock, BY_JUDGING, {**counted, **kept}, wanted)
    changes = [_Change(key, old.get(key), new.get(key)) for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    stale = lock.text != (lock_text(new) if new or lock.text is not None else None)
    missing = [f"{' '.join(key)}: not counted here: {PREDICT}" for key in sorted(wanted - new.keys()) if key[0] in BY_PREDICTING]
    not_checked = [*measured.not_checked, *missing]
    written = write and stale and not measured.not_checked
    if written:
        write_whole(place.inside(f"policies/torch/{LOCK}"), lock_text(new), encoding="utf-8")
    status = exit_status([4 if not_checked else 0, 1 if unused or (stale and not written) else 0])
    if format_ == "json":
        print_json({
            "exit_status": status, "lock": f"policies/torch/{LOCK}", "written": written, "entries": len(new),
            "changes": [{"kind": one.key[0], "id": one.key[1], "old": one.old, "new": one.new} for one in changes],
            "unused": [{"kind": kind, "id": name, "why": why} for (kind, name), why in sorted(unused.items())],
            "not_checked": not_checked,
        })  # fmt: skip
        return status
    console = stdout()
    for line in (*map(str, changes), *(f"{' '.join(key)}: {why}" for key, why in sorted(unused.items())), *not_checked):
        console.print(Text(line), soft_wrap=True)
    said = f"{len(new)} entries, {len(changes) or 'none'} changed"
    done = "written" if written else "nothing is written"
    if stale and not written:
        done += ": something could not be checked, so the counts are not final" if write else f": {ACCEPT}"
    console.print(Text(f"policies/torch/{LOCK}: {said}; {done}"), soft_wrap=True)
    return status


def _unused(evidence: Evidence, measured: Measured) -> Iterator[tuple[Key, str]]:
    """Waivers and gaps that cover nothing, and why. A waiver for operators may wait for a release that is not recorded yet."""
    recorded = evidence.operators.schemas.releases if evidence.operators is not None else ()
    waiting = {("operator_waiver", one.id) for one in evidence.policy.operator_waivers if one.since not in recorded}
    for key, count in measured.counts.items():
        if key in measured.expired:
            yield key, "has expired: take it out of the policy, or give it another day"
        elif count == 0 and key not in waiting:
            yield key, "covers nothing: take it out of the policy, or mend it"
