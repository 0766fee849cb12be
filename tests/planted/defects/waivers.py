"""Defects in waivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.counted import relock
from tests.planted.defects.table import counted, defect, waiver_cause, waiver_line
from torch_compat.policy.counts import LOCK

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Tree
    from tests.planted.defects.table import Plant


def span(first: str, last: str) -> str:
    return f'readers = {{ first = "{first}", last = "{last}" }}'


def waived_span(path: Path) -> tuple[str, str]:
    """The oldest and the newest reader that a waiver covers."""
    first, last = waiver_line(path, "readers").split('"')[1::2]
    return first, last


def miscounted(by: int) -> Plant:
    def plant(tree: Tree, random: Random) -> str:
        path = random.choice([path for path in tree.waivers() if counted(tree, "waiver", path.stem) + by > 0])
        count = counted(tree, "waiver", path.stem)
        tree.edit(tree.policy / LOCK, f"waiver {path.stem} = {count}\n", f"waiver {path.stem} = {count + by}\n")
        return f"waiver {path.stem} counts {count + by} cells, but {count} have its cause"

    plant.__name__ = f"waiver_counts_{'one_more' if by > 0 else 'one_less'}"
    return plant


defect()(miscounted(+1))
defect()(miscounted(-1))


@defect()
def waiver_unused(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.waivers())
    cause = waiver_cause(path)
    tree.edit(path, f'"{cause}"', f'"{cause}-or-so"')
    return f"waiver {path.stem} covers nothing", f"{cause} × "


@defect(arguments=("--as-of", "2031-01-01"))
def waiver_expired(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.waivers())
    text = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("expires"))
    path.write_text(text.rstrip("\n") + "\nexpires = 2031-01-01\n")
    return f"waiver {path.stem} expired on 2031-01-01", f"{waiver_cause(path)} × "


@defect()
def waiver_for_a_reader_without_the_cause(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    first, last = waived_span(path)
    reader = random.choice(["1.0.0", "1.0.1", "1.1.0"])
    tree.edit(path, span(first, last), span(reader, last))
    return f"waiver {path.stem} reaches to {reader}, but no cell of that reader has its causes"


@defect()
def waiver_that_lost_a_reader(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice([path for path in tree.waivers() if len(set(waived_span(path))) > 1])
    kept = random.choice(waived_span(path))
    tree.edit(path, span(*waived_span(path)), span(kept, kept))
    return f"waiver {path.stem} counts", f"{waiver_cause(path)} × "


@defect()
def waiver_removed(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    cause = waiver_cause(path)
    path.unlink()
    relock(tree.policy)
    return f"{cause} × "


@defect(2)
def waiver_in_a_file_of_another_name(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.rename(path.with_name("other-name.toml"))
    return "the file must have the waiver's name"
