"""Defects in the record of operators and its waivers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.counted import relock
from tests.planted.defects.table import counted, defect, waiver_line

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Tree


def operator_waivers(tree: Tree) -> list[Path]:
    return sorted((tree.policy / "operator_waivers").glob("*.toml"))


def operator_waiver(tree: Tree, random: Random, least: int = 1) -> tuple[Path, int]:
    """A waiver for operators that broke backward, and how many it counts."""
    known = [(path, counted(tree, "operator_waiver", path.stem)) for path in operator_waivers(tree)]
    return random.choice([one for one in known if one[1] >= least and 'side = "backward"' in one[0].read_text()])


@defect(2)
def operator_waiver_unanchored(tree: Tree, random: Random) -> str:
    path, _ = operator_waiver(tree, random)
    pattern = next(line for line in path.read_text().splitlines() if line.startswith("    '^"))
    tree.edit(path, pattern, pattern.replace("'^", "'") if random.random() < 0.5 else pattern.replace("$'", "'"))
    return f"{path.name}:6: operator_waiver.patterns[0]: must be anchored"


@defect()
def operator_waiver_unused(tree: Tree, random: Random) -> tuple[str, ...]:
    path, _ = operator_waiver(tree, random)
    tree.edit(path, waiver_line(path, "since"), 'since = "2.10.0"')  # nothing broke then
    return f"waiver {path.stem} covers nothing: no operator that changed with 2.10.0 fits", "schema-breaks-upgraded:"


@defect()
def operator_waiver_hides_more_than_it_says(tree: Tree, random: Random) -> str:
    path, count = operator_waiver(tree, random, least=2)
    relock(tree.policy, {("operator_waiver", path.stem): count - 1})
    return f"waiver {path.stem} counts {count - 1} operators, but hides {count}: 1 more than it says"


@defect()
def operator_waiver_counts_one_more(tree: Tree, random: Random) -> str:
    path, count = operator_waiver(tree, random)
    relock(tree.policy, {("operator_waiver", path.stem): count + 1})
    return f"waiver {path.stem} counts {count + 1} operators, but only {count} changed so"


@defect()
def operator_waiver_overlapping(tree: Tree, random: Random) -> tuple[str, ...]:
    path, count = operator_waiver(tree, random)
    path.with_name("again.toml").write_text(path.read_text().replace(f'id = "{path.stem}"', 'id = "again"'))
    relock(tree.policy, {("operator_waiver", "again"): count})
    return f"waiver {path.stem} covers operators that again covers", f"waiver again covers operators that {path.stem} covers"


@defect(arguments=("--as-of", "2031-01-01"))
def operator_waiver_expired(tree: Tree, random: Random) -> tuple[str, ...]:
    path, _ = operator_waiver(tree, random)
    path.write_text(path.read_text() + "expires = 2031-01-01\n")
    return f"waiver {path.stem} expired on 2031-01-01", "schema-breaks-upgraded:"


@defect()
def operator_waiver_removed(tree: Tree, random: Random) -> str:
    random.choice(operator_waivers(tree)).unlink()
    relock(tree.policy)
    return "@"  # the findings that it covered


@defect()
def operator_gap_grown(tree: Tree, random: Random) -> str:
    relock(tree.policy, {("operator_gap", "2.13.0"): random.randrange(139, 200)})
    return "operator_gap of 2.13.0 counts"


@defect(4, seeds=1)
def operator_gap_removed(tree: Tree, random: Random) -> str:
    (tree.policy / "operators.toml").unlink()
    relock(tree.policy)
    return "2.13.0: not known whether it has what the release before has"


@defect()
def upgraders_old_schema_altered(tree: Tree, random: Random) -> str:
    path = tree.fixtures / "operators" / "operator_versions.txt"
    old, operator = random.choice(
        [
            ("(Scalar start, Scalar end, int? steps=None, *, Tensor(a!) out)", "linspace.out"),
            ("div.Tensor(Tensor self", "div.Tensor"),
        ]
    )
    tree.edit(path, old, old.replace("Scalar end", "Tensor end").replace("Tensor self", "Scalar self"))
    return f"of aten::{operator}, file format "


@defect()
def schema_gone_from_newer_releases(tree: Tree, random: Random) -> str:
    path = tree.fixtures / "operators" / "schemas.txt"
    lines = path.read_text().splitlines(True)
    fitting = [
        at for at, line in enumerate(lines) if line.startswith("aten::") and line.endswith(("\t1.3.1..\n", "\t1.12.1..\n"))
    ]
    at = random.choice(fitting)
    lines[at] = lines[at].removesuffix("\n") + "2.9.1\n"
    path.write_text("".join(lines))
    return "schema-breaks-upgraded:removed:aten"


@defect(seeds=1)
def newer_schema_removed(tree: Tree, random: Random) -> str:
    path = tree.fixtures / "operators" / "schemas.txt"
    lines = path.read_text().splitlines(True)
    left = [line for line in lines if not line.startswith("aten::view(Tensor(a) self, SymInt[] size)")]
    assert len(left) == len(lines) - 1
    path.write_text("".join(left))
    return "schema-breaks-upgraded:removed:aten::view@1.13.1"


@defect(4, 2, seeds=1)
def operators_not_recorded(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures / "operators")
    return "nothing is recorded of operators"


@defect(4, seeds=1)
def release_not_recorded(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", 'readers = ["1.2.0",', 'readers = ["2.14.0", "1.2.0",')
    return "2.14.0: its operators are not recorded"
