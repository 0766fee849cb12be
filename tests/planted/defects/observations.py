"""Defects in recorded observations."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.planted.defects.table import defect, version_of
from torch_compat.corpus.manifest import MANIFEST
from torch_compat.corpus.observations import Observation
from torch_compat.policy import load_policy

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Cells, Tree
    from tests.planted.defects.table import Plant


def with_result(cells: Cells, *results: str) -> list[Observation]:
    """Cells with one of these results, or all of them, in a fixed order."""
    return [cell for _, cell in sorted(cells.items()) if not results or cell.result in results]


def any_reader(tree: Tree, random: Random, *results: str) -> Path:
    """A file of observations, one with the given results where some are given."""
    return random.choice([path for path in tree.readers() if not results or with_result(tree.cells(path), *results)])


@defect(4, 1)
def observation_removed(tree: Tree, random: Random) -> str:
    path = any_reader(tree, random)

    def remove(cells: Cells) -> None:
        del cells[random.choice(with_result(cells)).cell]

    tree.observe(path, remove)
    return f"torch-{version_of(path)}: not observed"


@defect()
def observation_edited(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random, "refused")
    lines = path.read_text().splitlines(True)
    index = random.choice([index for index, line in enumerate(lines) if '"result":"refused"' in line])
    lines[index] = lines[index].replace('"result":"refused"', '"result":"same"')
    path.write_text("".join(lines))
    return f"reports/observations/{path.name}", "was changed after it was recorded"


@defect()
def observation_line_removed(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    lines = path.read_text().splitlines(True)
    index = random.choice([index for index, line in enumerate(lines) if '"kind":"cells"' in line])
    path.write_text("".join(lines[:index] + lines[index + 1 :]))
    return path.name, "was changed after it was recorded"


def flipped(old: str, new: str) -> Plant:
    """Gives a cell another result, and the file digests and a footer that fit."""

    def plant(tree: Tree, random: Random) -> tuple[str, ...]:
        path = any_reader(tree, random, old)

        def flip(cells: Cells) -> None:
            cell = random.choice(with_result(cells, old))
            cells[cell.cell] = replace(cell, result=new)

        tree.observe(path, flip)
        return path.name, f"is {new!r}, but"

    plant.__name__ = f"outcome_flipped_from_{old}_to_{new}"
    return plant


for _old, _new in (
    ("refused", "same"), ("differs", "same"), ("raised", "same"), ("same", "differs"), ("same", "refused"), ("same", "unstable"),
    ("refused", "crashed"), ("differs", "refused"), ("raised", "refused"), ("crashed", "refused"),
):  # fmt: skip
    defect(seeds=1)(flipped(_old, _new))


@defect()
def refusal_rewritten_as_same(tree: Tree, random: Random) -> str:
    """All of it, so that nothing contradicts it but the waiver that counts it."""
    calendar = load_policy(tree.policy).calendar

    def waived(path: Path) -> list[Observation]:
        """Refusals by a reader that is not older, of what it was not told to refuse."""
        return [
            cell
            for cell in with_result(tree.cells(path), "refused")
            if cell.options == "default"
            and cell.fixture.startswith("torch-")
            and not calendar.is_newer(cell.fixture.removeprefix("torch-").partition("/")[0], version_of(path))
        ]

    path = random.choice([path for path in tree.readers() if waived(path)])
    cell = random.choice(waived(path))
    tree.observe(path, lambda cells: cells.update({cell.cell: replace(cell, result="same", errors=())}))
    return "waivers-exact:"


@defect()
def crash_rewritten_as_same(tree: Tree, random: Random) -> str:
    def flip(cells: Cells) -> None:
        cell = random.choice(with_result(cells, "crashed"))
        cells[cell.cell] = replace(cell, result="same", errors=())

    tree.observe(any_reader(tree, random, "crashed"), flip)
    return "is said to be the same as the golden, but did not end as it did"


@defect()
def differences_shrunk(tree: Tree, random: Random) -> str:
    def mixed(path: Path) -> list[Observation]:
        return [cell for cell in with_result(tree.cells(path), "differs") if len(cell.extent) > 1]

    path = random.choice([path for path in tree.readers() if mixed(path)])
    cell = random.choice(mixed(path))
    tree.observe(path, lambda cells: cells.update({cell.cell: replace(cell, extent=cell.extent[:1])}))
    return "differences, but their extent says otherwise"


@defect()
def values_edited(tree: Tree, random: Random) -> str:
    def edit(entries: list[dict[str, Any]]) -> None:
        departure = random.choice([one for entry in entries for one in entry.get("departures", ())])
        departure[1] = {"float": "0.5"} if departure[1] != {"float": "0.5"} else {"float": "0.25"}

    tree.entries(any_reader(tree, random, "differs"), edit)
    return "was edited: its id is not the digest of the rest"


@defect(1)
def recorded_result_varies(tree: Tree, random: Random) -> str:
    def vary(cells: Cells) -> None:
        cell = random.choice(with_result(cells, "same"))
        both = (Observation(*cell.cell, cell.key, "same"), Observation(*cell.cell, cell.key, "timed-out", stage="load"))
        cells[cell.cell] = Observation(*cell.cell, cell.key, "unstable", both=both)

    tree.observe(any_reader(tree, random, "same"), vary)
    return "two observations of one cell disagree"


@defect(4, 1)
def observation_under_another_key(tree: Tree, random: Random) -> str:
    def change(cells: Cells) -> None:
        cell = random.choice(with_result(cells))
        subject, load = cell.key.split("-")
        cells[cell.cell] = replace(cell, key=f"{'0' * len(subject)}-{load}")

    tree.observe(any_reader(tree, random), change)
    return "observed before the fixture, its golden or the options changed"


def lines_of_cells(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["kind"] == "cells"]


@defect()
def observation_made_twice(tree: Tree, random: Random) -> str:
    def double(entries: list[dict[str, Any]]) -> None:
        entries.append(dict(random.choice(lines_of_cells(entries))))

    tree.entries(any_reader(tree, random), double)
    return "again"


@defect()
def observation_incomplete(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)

    def lose(entries: list[dict[str, Any]]) -> None:
        del random.choice(lines_of_cells(entries))[random.choice(["fixture", "subject", "cells"])]

    tree.entries(path, lose)
    return path.name, "is not a complete entry"


@defect(4, 1)
def observations_removed(tree: Tree, random: Random) -> str:
    path = any_reader(tree, random)
    path.unlink()
    return f"torch-{version_of(path)}: no observations of this reader"


@defect(4, 1, seeds=1)
def all_observations_removed(tree: Tree, random: Random) -> tuple[str, ...]:
    names = [path.stem.partition("+")[0] for path in tree.readers()]
    shutil.rmtree(tree.recorded)
    return tuple(f"{name}: no observations of this reader" for name in names)


@defect()
def observations_emptied(tree: Tree, random: Random) -> str:
    path = any_reader(tree, random)
    path.write_bytes(b"")
    return f"{path.name}:1: does not begin with a line of kind 'observations'"


@defect()
def observations_cut_off(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    lines = path.read_text().splitlines(True)
    path.write_text("".join(lines[: random.randrange(1, len(lines))]))
    return path.name, "has no last line of kind 'end'"


@defect()
def observations_half_written(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(1, len(data) - 1)])
    return (f"reports/observations/{path.name}",)


@defect()
def observations_of_another_kind(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    shutil.copyfile(random.choice(tree.releases()) / MANIFEST, path)
    return path.name, "does not begin with a line of kind 'observations'"


@defect()
def observations_of_a_newer_schema(tree: Tree, random: Random) -> str:
    path = any_reader(tree, random)
    text = path.read_text()
    head, rest = text.split("\n", 1)
    path.write_text(json.dumps({**json.loads(head), "schema_version": 2}) + "\n" + rest)
    return "has schema version 2; this harness reads 1"


@defect()
def observations_renamed_to_another_reader(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    path.rename(path.with_name("torch-1.7.1.jsonl"))
    return "torch-1.7.1.jsonl", f"holds the observations of {path.stem!r}", "no observations of this reader"


@defect()
def observations_of_a_reader_that_lies(tree: Tree, random: Random) -> tuple[str, ...]:
    """Name and header say one version, torch itself said another."""
    path = any_reader(tree, random)
    tree.entries(path, lambda entries: entries, reader="torch-1.7.1")
    path.rename(path.with_name("torch-1.7.1.jsonl"))
    return "is said to be of torch-1.7.1, but what answered was", "no observations of this reader"


@defect(4, 1)
def identity_of_a_reader_changed(tree: Tree, random: Random) -> str:
    path = any_reader(tree, random)
    identity = json.loads(path.read_text().partition("\n")[0])["identity"]
    tree.entries(path, lambda entries: entries, identity={**identity, "python": "3.99.0"})
    return f"load_options in torch-{version_of(path)}: the probe changed since it was observed"


@defect()
def day_of_observations_is_nonsense(tree: Tree, random: Random) -> str:
    tree.entries(any_reader(tree, random), lambda entries: entries, observed="yesterday")
    return "was observed on 'yesterday', which is no day"


@defect(4)
def probe_not_observed(tree: Tree, random: Random) -> tuple[str, ...]:
    path = any_reader(tree, random)
    tree.entries(path, lambda entries: [entry for entry in entries if entry["kind"] != "probe"])
    return f"in {path.stem.partition('+')[0]}", "not observed"


@defect()
def probe_check_does_not_hold(tree: Tree, random: Random) -> str:
    named = []

    def break_one(entries: list[dict[str, Any]]) -> None:
        check = random.choice([check for entry in entries if entry["kind"] == "probe" for check in entry["checks"]])
        check[1], check[2] = False, "it is so"
        named.append(check[0])

    tree.entries(any_reader(tree, random), break_one)
    return f"{named[0]}: it is so"


@defect()
def probe_failed(tree: Tree, random: Random) -> str:
    def fail(entries: list[dict[str, Any]]) -> None:
        probe = next(entry for entry in entries if entry["kind"] == "probe")
        probe["checks"], probe["error"] = [], {"type": "builtins.ImportError", "message": "no such thing"}

    tree.entries(any_reader(tree, random), fail)
    return "builtins.ImportError: no such thing"
