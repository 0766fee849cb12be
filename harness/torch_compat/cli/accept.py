"""``torch-compat accept``: compare what judging counts with the lock that states it, and write the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from torch_compat.cli._counting import LOCK_FILE, count, write_lock
from torch_compat.cli._output import exit_status, format_option, print_json, stdout
from torch_compat.cli._root import find_root, root_option
from torch_compat.operators.differences import in_words
from torch_compat.policy.counts import ACCEPT

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.cli._counting import Change

__all__ = ["accept"]


@click.command()
@click.option("--write", is_flag=True, help=f"Write {LOCK_FILE}. Review it as a diff.")
@root_option
@format_option
def accept(root: Path | None, format_: str, *, write: bool) -> int:
    """Count what every waiver and gap covers in the recorded evidence, and show each difference from the lock.

    Of an operator it shows what changed, both schemas, and the command that shows them again.

    Without --write nothing is written, and a difference ends with 1. A waiver that covers nothing is never accepted. Nothing is
    written while something could not be checked, because the counts are not final then.
    """
    place = find_root(root)
    counted = count(place)
    written = write and write_lock(place, counted)
    status = exit_status([4 if counted.not_checked else 0, 1 if counted.unused or (counted.stale and not written) else 0])
    if format_ == "json":
        print_json({
            "exit_status": status, "lock": LOCK_FILE, "written": written, "entries": len(counted.entries),
            "changes": [
                {"kind": one.key[0], "id": one.key[1], "old": one.old, "new": one.new, **_became(one)} for one in counted.changes
            ],
            "unused": [{"kind": kind, "id": name, "why": why} for (kind, name), why in sorted(counted.unused.items())],
            "not_checked": list(counted.not_checked),
        })  # fmt: skip
        return status
    console = stdout()
    unused = [f"{' '.join(key)}: {why}" for key, why in sorted(counted.unused.items())]
    for line in (*map(str, counted.changes), *unused, *counted.not_checked):
        console.print(Text(line), soft_wrap=True)
    said = f"{len(counted.entries)} entries, {len(counted.changes) or 'none'} changed"
    done = "written" if written else "nothing is written"
    if counted.stale and not written:
        done += ": something could not be checked, so the counts are not final" if write else f": {ACCEPT}"
    console.print(Text(f"{LOCK_FILE}: {said}; {done}"), soft_wrap=True)
    return status


def _became(change: Change) -> dict[str, object]:
    """What an operator became, where the entry is of one."""
    shown = [
        {
            "operator": one.operator, "side": one.side, "since": one.since, "change": list(one.change),
            "words": in_words(one.change), "old": one.old, "new": one.new, "show": one.show,
        }
        for one in change.became
    ]  # fmt: skip
    return {"became": shown} if shown else {}
