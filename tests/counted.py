"""Counts for tests: policy tables with the counts in the lock, and changes of a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.policy.accepted import WAIVERS_LOCK, read_accepted
from torch_compat.policy.behaviors import BehaviorEntry
from torch_compat.policy.counts import LOCK, counted_tables, lock_text, read_lock
from torch_compat.policy.source import read_folder
from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from torch_compat.policy.counts import Key, Value
    from torch_compat.policy.table_base import Table

__all__ = ["CountedGap", "counted_gap", "counts_of", "relock"]


class CountedGap(BehaviorEntry):
    """A gap in the operators of a release, and how many of them the lock says are not known."""

    count: int = 1


def counted_gap(release: str, count: int) -> CountedGap:
    """The gap of a release."""
    return CountedGap(
        id=f"operators-of-{release}",
        readers=ReleaseSet.parse(release),
        outcome="unlisted",
        because="nobody can ask it again",
        count=count,
    )


def counts_of(tables: Iterable[Table]) -> dict[Key, int]:
    """What the lock states of these tables."""
    counts: dict[Key, int] = {}
    for table in tables:
        if isinstance(table, CountedGap):
            counts["operator_gap", str(table.readers)] = table.count
    return counts


def relock(policy: Path, counts: Mapping[Key, Value] | None = None) -> None:
    """Write the locks of a policy folder anew: these entries, else what was stated; nothing of what the policy does not have."""
    wanted = counted_tables(read_folder(policy).entries)
    stated = {**read_lock(policy).values, **(counts or {})}
    (policy / LOCK).write_text(lock_text({key: count for key, count in stated.items() if key in wanted}), encoding="utf-8")
    accepted = read_accepted(policy)
    if accepted is not None:
        left = accepted.of(accepted.known, {path.stem for path in policy.glob("waivers/*.toml")})
        (policy / WAIVERS_LOCK).write_text(left.text, encoding="utf-8")
