"""Defects in the record of operators and its waivers."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.counted import relock
from tests.planted.defects.policies import tables
from tests.planted.defects.table import defect, waiver_line
from torch_compat.corpus.proofs import Example, read_proof, write_proof
from torch_compat.policy import load_policy
from torch_compat.policy.counts import key_of, read_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Tree
    from torch_compat.corpus.proofs import RecordedProof


def operator_waivers(tree: Tree) -> list[Path]:
    return sorted((tree.policy / "operator_waivers").glob("*.toml"))


def operator_waiver(tree: Tree, random: Random) -> Path:
    """A waiver for operators that broke backward."""
    return random.choice([path for path in operator_waivers(tree) if 'side = "backward"' in path.read_text()])


def named(path: Path) -> list[str]:
    """The lines of a waiver that name operators."""
    return [line for line in path.read_text().splitlines(True) if line.startswith('    "')]


def name_of(line: str) -> str:
    return line.split('"')[1]


@defect(2)
def operator_waiver_with_a_pattern(tree: Tree, random: Random) -> str:
    path = operator_waiver(tree, random)
    line = random.choice(named(path))
    pattern = f"{name_of(line).partition('::')[0]}::{random.choice(['*', '.*', '[a-z]+'])}"
    tree.edit(path, line, line.replace(name_of(line), pattern))
    return "must be an operator with its overload, such as 'aten::div.Tensor'"


@defect()
def operator_waiver_of_another_release(tree: Tree, random: Random) -> tuple[str, ...]:
    path = operator_waiver(tree, random)
    tree.edit(path, waiver_line(path, "since"), 'since = "2.10.0"')  # nothing broke then
    return (
        f"waiver {path.stem} covers nothing: no operator that it lists changed in this way with 2.10.0",
        "schema-breaks-upgraded:",
    )


@defect(seeds=4)
def operator_waiver_lost_a_name(tree: Tree, random: Random) -> str:
    path = random.choice([item for item in operator_waivers(tree) if len(named(item)) > 1 == item.read_text().count("change = ")])
    line = random.choice(named(path))
    tree.edit(path, line, "")
    relock(tree.policy)
    return name_of(line)


@defect(seeds=4)
def operator_waiver_names_one_more(tree: Tree, random: Random) -> str:
    path = operator_waiver(tree, random)
    *_, line, _ = path.read_text().splitlines(True)  # the last, so that they stay sorted
    more = f"{name_of(line)}_too"
    tree.edit(path, line, f'{line}    "{more}",\n')
    relock(tree.policy, {key_of(path.stem, more): "0123456789abcdef"})
    return f"waiver {path.stem} lists operators that did not change in this way"


@defect(seeds=4)
def operator_waiver_for_another_change(tree: Tree, random: Random) -> tuple[str, ...]:
    path = operator_waiver(tree, random)
    change = random.choice([line for line in path.read_text().splitlines(True) if line.startswith("change = ")])
    other = "varargs-changed"
    path.write_text(path.read_text().replace(change, change.replace("]", f', "{other}"]'), 1))
    return f"waiver {path.stem} is for a different change: ", "schema-breaks-upgraded:"


@defect()
def operator_waiver_pins_something_else(tree: Tree, random: Random) -> str:
    path = operator_waiver(tree, random)
    name = name_of(random.choice(named(path)))
    relock(tree.policy, {key_of(path.stem, name): random.choice(["waits", "0123456789abcdef"])})
    return f"waiver {path.stem} covers changes that are not in counts.lock: {name} became "


@defect()
def operator_waiver_overlapping(tree: Tree, random: Random) -> tuple[str, ...]:
    path = operator_waiver(tree, random)
    path.with_name("again.toml").write_text(path.read_text().replace(f'id = "{path.stem}"', 'id = "again"'))
    became = {name: value for (_, name), value in read_lock(tree.policy).values.items() if name.startswith(f"{path.stem} ")}
    relock(tree.policy, {key_of("again", name.partition(" ")[2]): item for name, item in became.items()})
    return (
        f"waiver {path.stem} covers operators that are also covered by again",
        f"waiver again covers operators that are also covered by {path.stem}",
    )


@defect(arguments=("--as-of", "2031-01-01"))
def operator_waiver_expired(tree: Tree, random: Random) -> tuple[str, ...]:
    path = operator_waiver(tree, random)
    tree.edit(path, waiver_line(path, "owner"), f"{waiver_line(path, 'owner')}\nexpires = 2031-01-01")
    return f"waiver {path.stem} expired on 2031-01-01", "schema-breaks-upgraded:"


@defect()
def operator_waiver_removed(tree: Tree, random: Random) -> str:
    linked = "".join(path.read_text() for path in (tree.policy / "deprecations").glob("*.toml"))
    random.choice([path for path in operator_waivers(tree) if f'"{path.stem}"' not in linked]).unlink()
    relock(tree.policy)
    return "@"  # the findings that it covered


@defect()
def operator_gap_grown(tree: Tree, random: Random) -> str:
    relock(tree.policy, {("operator_gap", "2.13.0"): random.randrange(139, 200)})
    return "operator_gap of 2.13.0 declares"


@defect(4, seeds=1)
def operator_gap_removed(tree: Tree, random: Random) -> str:
    path = tree.policy / "behaviors.toml"
    (gap,) = (table for table in tables(path.read_text(), "behavior") if 'outcome = "unlisted"' in table)
    tree.edit(path, gap, "")
    relock(tree.policy)
    return "2.13.0: unknown whether it has everything that the previous release has"


def schemas(tree: Tree) -> Path:
    return tree.fixtures / "operators" / "schemas.txt"


@defect(seeds=1)
def covered_operator_removed_for_good(tree: Tree, random: Random) -> tuple[str, ...]:
    """It was to say that it writes to a list, and is gone from 1.13.1 on instead."""
    path = schemas(tree)
    tree.edit(path, "aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()\t1.13.1..\n", "")
    return (
        "schema-breaks-upgraded:removed:aten::_foreach_add_@1.13.1",
        "waiver op-lists-written-to is for a different change: aten::_foreach_add_.Scalar has the change removed, not alias-annotation",
    )


@defect(seeds=1)
def covered_operators_changed_otherwise(tree: Tree, random: Random) -> tuple[str, ...]:
    """40 operators that write to lists get another name for the first argument, and a new argument without a default."""
    path = schemas(tree)
    waiver = next(item for item in load_policy(tree.policy).operator_waivers if item.id == "op-lists-written-to")
    lines = path.read_text().splitlines(True)
    fitting = [
        at
        for at, line in enumerate(lines)
        if line.startswith("aten::_foreach_") and line.endswith("\t1.13.1..\n") and line.partition("(")[0] in waiver.operators
    ]
    for at in random.sample(fitting, 40):
        lines[at] = re.sub(r"\((Tensor\S*) \w+", r"(\1 tensorlist, int planted", lines[at], count=1)
    path.write_text("".join(lines))
    return (
        "schema-breaks-upgraded:renamed:aten::_foreach_",
        "waiver op-lists-written-to is for a different change: ",
        "has the change required-argument-added, argument-renamed, alias-annotation, not alias-annotation",
    )


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
    return "there are no records of operators"


@defect(4, seeds=1)
def release_not_recorded(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", 'readers = ["1.2.0",', 'readers = ["2.14.0", "1.2.0",')
    return "2.14.0: its operators are not recorded"


# ------------------------------------------------------------------------------------------------------ upgraders proven


def proofs(tree: Tree) -> list[Path]:
    """Recorded proofs of upgraders that replace a call that an old release had."""
    return [path for path in sorted((tree.path / "reports" / "proofs").glob("*.jsonl")) if '"old":["' in path.read_text()]


def change_proof(tree: Tree, random: Random, change: Callable[[RecordedProof], RecordedProof]) -> str:
    """Change a recorded proof, and close the file as if it had been recorded so."""
    path = random.choice(
        [item for item in proofs(tree) if read_proof(item).examples == () and len(read_proof(item).of("saved")) > 0]
    )
    write_proof(path.parent, change(read_proof(path)))
    return path.stem


def altered(what: str, text: str) -> Callable[[RecordedProof], RecordedProof]:
    """With something else found of one obligation."""
    return lambda proof: replace(
        proof, obligations=tuple(replace(each, found=text) if each.what == what else each for each in proof.obligations)
    )


@defect(4)
def proof_removed(tree: Tree, random: Random) -> str:
    path = random.choice(proofs(tree))
    path.unlink()
    return f"{path.stem}: no proof is recorded"


@defect(4)
def proof_edited(tree: Tree, random: Random) -> str:
    path = random.choice([item for item in proofs(tree) if not read_proof(item).examples])
    path.write_text(path.read_text().replace('"same":', '"close":', 1))
    return f"{path.stem}: its recorded proof cannot be read"


@defect(4)
def proof_confirmed_by_nobody(tree: Tree, random: Random) -> str:
    return f"{change_proof(tree, random, lambda item: replace(item, confirmed=0))}: no call was run by releases on both sides of the change"


@defect(4)
def proof_by_other_tolerances(tree: Tree, random: Random) -> str:
    name = change_proof(tree, random, lambda item: replace(item, tolerances={key: [9.0, 9.0] for key in item.tolerances}))
    return f"{name}: its recorded proof uses different tolerances"


@defect()
def proof_with_a_counterexample(tree: Tree, random: Random) -> tuple[str, ...]:
    example = Example("dtype", "torch.f(a_self)", [1], "1", "tensor(1)", "tensor(1.0)", "dtype: int64 became float32", 1)
    name = change_proof(tree, random, lambda item: replace(item, calls={**item.calls, "changed": 1}, examples=(example,)))
    return "upgraders-proven:dtype:", f"{name}: dtype: int64 became float32"


@defect()
def upgraded_program_saved_too_low(tree: Tree, random: Random) -> tuple[str, ...]:
    return "upgraders-proven:saved:", f"{change_proof(tree, random, altered('saved', '3'))}: "


@defect()
def upgraded_program_upgraded_again(tree: Tree, random: Random) -> tuple[str, ...]:
    return "upgraders-proven:again:", f"{change_proof(tree, random, altered('again', 'another program'))}: "


@defect()
def body_that_does_not_compile(tree: Tree, random: Random) -> tuple[str, ...]:
    return "upgraders-proven:compiles:", f"{change_proof(tree, random, altered('compiles', 'Unknown builtin op'))}: "


@defect(seeds=1)
def branch_that_no_call_reaches(tree: Tree, random: Random) -> str:
    path = tree.path / "reports" / "proofs" / "div_Tensor_0_3.jsonl"
    write_proof(path.parent, altered("branch", "0")(read_proof(path)))
    return "div_Tensor_0_3: no generated call reaches the branch at "


@defect(4, 1)
def upgrader_with_another_body(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "upgraders.toml", "return torch.gelu(self, approximate='none')", "return torch.relu(self)")
    return "gelu_0_9: its recorded proof is for a different operator, range, schema, body or old release"


@defect(1, 4, seeds=1)
def upgrader_that_calls_what_is_gone(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "upgraders.toml", "torch.gelu(self, approximate='none')", "torch._gelu_of_old(self)")
    return "gelu_0_9: its body calls aten::_gelu_of_old, which "


@defect(1, 4, seeds=1)
def upgrader_range_with_a_gap(tree: Tree, random: Random) -> str:
    path = tree.policy / "upgraders.toml"
    tree.edit(
        path,
        'id = "linspace_0_7"\noperator = "aten::linspace"\nbump = 8',
        'id = "linspace_2_7"\noperator = "aten::linspace"\nfirst = 2\nbump = 8',
    )
    return "aten::linspace: no upgrader covers versions 0 to 1"


@defect(1, 4, seeds=1)
def upgrader_said_to_have_no_old_release(tree: Tree, random: Random) -> str:
    path = tree.policy / "upgraders.toml"
    text = path.read_text()
    at = text.index('id = "gelu_0_9"')
    path.write_text(text[:at] + text[at:].replace('old = "1.11.0"\n', "", 1))
    return "gelu_0_9: does not name a release with the old behavior, but "
