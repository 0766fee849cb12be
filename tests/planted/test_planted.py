"""Planted defects turn the run red: each is named in the report, at whatever place it was planted.

Not everything can be noticed without asking a release again. A recorded observation whose result and everything beside it were
changed together so that they still fit each other reads like a true one, once digests and footer are fixed, unless a waiver
counts it; only observing afresh contradicts it, and the footer makes sure that it was no accident. So do a later day in a
file's header, and a rule that is taken out of the policy and has no waiver: that is what tests/repository/test_rules.py is for.
An operator that is taken out of the record of every release is missed only where a fixture states it (test_histories.py there).
"""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli._output import exit_status
from harness.corpus.manifest import MANIFEST, read_manifest, write_manifest
from harness.corpus.observations import Observation
from harness.policy import load_policy
from tests.planted.conftest import Tree, copy_evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.planted.conftest import Cells, Judged

    Plant = Callable[[Tree, Random], str | tuple[str, ...]]

SEEDS = 2  # places that each kind of defect is planted at


@dataclass(frozen=True)
class Defect:
    """One kind of defect.

    Attributes:
        plant: spoils a tree at a random place; gives what the report must name.
        status: exit statuses that fit, where nothing else is wrong.
        arguments: more for the command line.
        seeds: at how many places it is planted.
    """

    name: str
    plant: Plant
    status: tuple[int, ...] = (1,)
    arguments: tuple[str, ...] = ()
    seeds: int = SEEDS


DEFECTS: list[Defect] = []


def defect(*status: int, arguments: tuple[str, ...] = (), seeds: int = SEEDS) -> Callable[[Plant], Plant]:
    """Add a kind of defect to the table."""

    def add(plant: Plant) -> Plant:
        DEFECTS.append(Defect(plant.__name__, plant, status or (1,), arguments, seeds))
        return plant

    return add


def subject(path: Path) -> str:
    """A file of a release as findings name it."""
    return f"{path.parent.name}/{path.name}"


# ------------------------------------------------------------------------------------------------------------- archives


@defect()
def fixture_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    path.unlink()
    return f"{subject(path)}: is listed in the manifest, but there is no such file"


@defect()
def fixture_emptied(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    path.write_bytes(b"")
    return f"{subject(path)}: has 0 bytes, expected"


@defect()
def fixture_truncated(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(1, len(data))])
    return f"{subject(path)}: has {path.stat().st_size} bytes, expected {len(data)}"


@defect()
def fixture_grown(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    with path.open("ab") as stream:
        stream.write(b"\0")
    return f"{subject(path)}: has {path.stat().st_size} bytes"


@defect(seeds=4)
def byte_changed(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= random.randrange(1, 256)
    path.write_bytes(data)
    return f"{subject(path)}: has SHA-256"


@defect(seeds=4)
def bit_flipped(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return f"{subject(path)}: has SHA-256"


@defect()
def fixture_renamed(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.archives())
    other = path.rename(path.with_name("renamed" + path.suffix))
    return f"{subject(path)}: is listed in the manifest, but there is no such file", f"{subject(other)}: is not listed"


@defect()
def fixture_moved_to_another_release(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.archives())
    other = path.rename(random.choice([folder for folder in tree.releases() if folder != path.parent]) / f"moved-{path.name}")
    return f"{subject(path)}: is listed in the manifest, but there is no such file", f"{subject(other)}: is not listed"


@defect()
def two_fixtures_swapped(tree: Tree, random: Random) -> tuple[str, ...]:
    one = random.choice(tree.archives())
    other = random.choice([path for path in tree.archives() if path.read_bytes() != one.read_bytes()])
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{subject(one)}: has", f"{subject(other)}: has"


@defect()
def fixture_replaced_by_a_folder(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.archives())
    path.unlink()
    path.mkdir()
    (path / "inner.pt").write_bytes(b"x")
    return f"{subject(path)}: is listed in the manifest", f"{subject(path)}/inner.pt: is not listed"


@defect()
def orphan_added(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / f"stray_{random.randrange(100)}.pt"
    path.write_bytes(random.randbytes(50))
    return f"{subject(path)}: is not listed in the manifest"


@defect()
def folder_of_an_unknown_release_added(tree: Tree, random: Random) -> str:
    path = tree.fixtures / "torch-9.9.9" / "div.pt"
    path.parent.mkdir()
    path.write_bytes(random.randbytes(50))
    return f"torch-9.9.9/{MANIFEST}"


# ------------------------------------------------------------------------------------------------------------ manifests


def any_fixture(tree: Tree, random: Random, *, computes: bool = False) -> tuple[Path, str]:
    """The folder of a release and a recipe that it has a fixture of; with ``computes`` one whose golden has values."""
    folder = random.choice(tree.releases())
    fixtures = read_manifest(folder / MANIFEST).fixtures
    return folder, random.choice([one.recipe for one in fixtures if not computes or tensors(one.golden)])


def tensors(value: Any) -> list[dict[str, Any]]:
    """Every tensor with elements in a neutral value."""
    if isinstance(value, dict):
        own = [value["tensor"]] if value.get("tensor", {}).get("bytes") else []
        return own + [found for item in value.values() for found in tensors(item)]
    return [found for item in value for found in tensors(item)] if isinstance(value, list) else []


def without_recipe(entries: list[dict[str, Any]], recipe: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry.get("recipe") != recipe]


@defect()
def manifest_entry_removed(tree: Tree, random: Random) -> str:
    folder, recipe = any_fixture(tree, random)
    path = folder / MANIFEST
    path.write_text("".join(line for line in path.read_text().splitlines(True) if f'"recipe":"{recipe}"' not in line))
    return "was changed after it was recorded"


@defect()
def manifest_entry_removed_and_footer_fixed(tree: Tree, random: Random) -> tuple[str, ...]:
    folder, recipe = any_fixture(tree, random)
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    return f"{folder.name}/{recipe}: is pinned in FROZEN, but no manifest has it", f"{folder.name}/{recipe}.", "is not listed"


@defect()
def manifest_entry_and_pin_removed(tree: Tree, random: Random) -> str:
    folder, recipe = any_fixture(tree, random)
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    return f"{folder.name}/{recipe}.pt"


@defect()
def fixture_removed_with_its_entry_and_pin(tree: Tree, random: Random) -> str:
    folder, recipe = any_fixture(tree, random)
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    next(folder.glob(f"{recipe}.pt*")).unlink()
    return f"{folder.name}/{recipe}: the manifest says neither what was written nor why not"


@defect()
def inability_removed_with_its_pin(tree: Tree, random: Random) -> str:
    folder = random.choice([one for one in tree.releases() if read_manifest(one / MANIFEST).not_writable])
    recipe = random.choice(read_manifest(folder / MANIFEST).not_writable).recipe
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    return f"{folder.name}/{recipe}: the manifest says neither"


def change_golden(tree: Tree, random: Random) -> tuple[Path, str]:
    folder, recipe = any_fixture(tree, random, computes=True)

    def change(entries: list[dict[str, Any]]) -> None:
        golden = next(entry["golden"] for entry in entries if entry.get("recipe") == recipe)
        tensor = random.choice(tensors(golden))
        data = bytearray(base64.b64decode(tensor["bytes"]))
        data[random.randrange(len(data))] ^= 1
        tensor["bytes"] = base64.b64encode(data).decode()

    tree.entries(folder / MANIFEST, change)
    return folder, recipe


@defect()
def golden_edited(tree: Tree, random: Random) -> str:
    folder, recipe = change_golden(tree, random)
    return f"{folder.name}/{recipe}: its manifest entry is not the one that FROZEN pins"


@defect(4, 1)  # 1 where a waiver counted the cells that are stale now
def golden_edited_and_frozen_again(tree: Tree, random: Random) -> str:
    folder, _ = change_golden(tree, random)
    tree.freeze(folder)
    return "observed before the fixture, its golden or the options changed"


@defect()
def manifest_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST
    path.unlink()
    return f"{subject(path)}: there is no such file"


@defect()
def manifest_emptied(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST
    path.write_bytes(b"")
    return f"{subject(path)}:1: does not begin with a line of kind 'manifest'"


@defect()
def manifest_cut_off(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST
    lines = path.read_text().splitlines(True)
    path.write_text("".join(lines[: random.randrange(1, len(lines))]))
    return "has no last line of kind 'end'"


@defect()
def manifest_of_another_release(tree: Tree, random: Random) -> str:
    one, other = random.sample(tree.releases(), 2)
    shutil.copyfile(one / MANIFEST, other / MANIFEST)
    return f"but lies in '{other.name}'"


@defect()
def manifest_with_an_inconsistent_writer(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST

    def lie(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["kind"] == "writer")["identity"]["python"] = "3.99.0"

    tree.entries(path, lie)
    return "is not the identity of the writer"


@defect()
def manifest_of_a_lying_writer(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    manifest = read_manifest(folder / MANIFEST)
    (identity,) = manifest.writers.values()
    identity = {**identity, "torch": "9.9.9"}
    name = tree.identity_digest(identity)
    fixtures = tuple(replace(one, writer=name) for one in manifest.fixtures)
    not_writable = tuple(replace(one, writer=name) for one in manifest.not_writable)
    lying = replace(manifest, writers={name: identity}, fixtures=fixtures, not_writable=not_writable)
    write_manifest(folder / MANIFEST, lying)
    return f"is not the identity of the writer {name}"


@defect()
def release_removed(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    name = random.choice(read_manifest(folder / MANIFEST).fixtures).id
    shutil.rmtree(folder)
    return f"{name}: is pinned in FROZEN, but no manifest has it"


@defect()
def release_removed_with_its_pins(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    for entry in read_manifest(folder / MANIFEST).entries:
        tree.unpin(entry.id)
    shutil.rmtree(folder)
    return f"{folder.name}/"


@defect(seeds=1)
def pins_removed(tree: Tree, random: Random) -> str:
    tree.frozen.unlink()
    return "FROZEN: pins"


@defect()
def pin_changed(tree: Tree, random: Random) -> str:
    lines = tree.frozen.read_text().splitlines()
    index = random.randrange(len(lines))
    pin, name = lines[index].split()
    at = random.randrange(64)
    lines[index] = f"{pin[:at]}{'0' if pin[at] != '0' else '1'}{pin[at + 1 :]}  {name}"
    tree.frozen.write_text("\n".join(lines) + "\n")
    return f"{name}: its manifest entry is not the one that FROZEN pins"


@defect()
def pin_removed(tree: Tree, random: Random) -> str:
    name = random.choice(tree.frozen.read_text().split()[1::2])
    tree.unpin(name)
    return f"{name}: is in the manifest, but not in FROZEN"


@defect()
def pins_damaged(tree: Tree, random: Random) -> str:
    data = bytearray(tree.frozen.read_bytes())
    data[random.randrange(len(data))] = 0xFF
    tree.frozen.write_bytes(data)
    return "FROZEN: cannot be read"


@defect()
def pins_cut_off(tree: Tree, random: Random) -> str:
    data = tree.frozen.read_bytes()
    cut = random.randrange(len(data) // 2, len(data) - 1)
    tree.frozen.write_bytes(data[:cut].rstrip(b"\n"))
    return "FROZEN: does not end with a newline"


# --------------------------------------------------------------------------------------------------------- observations


def with_result(cells: Cells, *results: str) -> list[Observation]:
    """Cells with one of these results, or all of them, in a fixed order."""
    return [cell for _, cell in sorted(cells.items()) if not results or cell.result in results]


def any_reader(tree: Tree, random: Random, *results: str) -> Path:
    """A file of observations, one with the given results where some are given."""
    return random.choice([path for path in tree.readers() if not results or with_result(tree.cells(path), *results)])


def version_of(path: Path) -> str:
    """The release whose observations a file holds."""
    return path.stem.removeprefix("torch-").partition("+")[0]


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


# --------------------------------------------------------------------------------------------------- recipes and probes


@defect(seeds=1)
def corpus_emptied(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures)
    tree.fixtures.mkdir()
    return "the corpus has no fixture"


@defect(4, seeds=1)
def no_fixtures_folder(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures)
    return "has no fixtures/"


@defect(seeds=1)
def no_recipes(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures / "recipes")
    return "its recipe is no longer there"


@defect()
def recipe_edited(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    path.write_text(path.read_text() + "# one more line\n")
    return f"{path.stem}: the recipe is not the one that was run"


@defect()
def recipe_removed(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    path.unlink()
    return f"{path.stem}: its recipe is no longer there"


@defect()
def recipe_that_nobody_ran(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    shutil.copyfile(path, path.with_name("brand_new.py"))
    return "brand_new: the manifest says neither what was written nor why not"


@defect()
def recipe_is_no_python(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.recipes())
    path.write_text("def (:\n")
    return f"recipes/{path.name}:1: is not Python 3.6", f"{path.stem}: its recipe is no longer there"


@defect()
def recipe_damaged(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] = 0
    path.write_bytes(data)
    return f"recipes/{path.name}"


@defect(4)
def probe_edited(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    path.write_text(path.read_text() + "# one more line\n")
    return f"{path.stem} in torch-1.5.1: the probe changed since it was observed"


@defect(1, seeds=1)
def probes_removed(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures / "probes")
    return "is recorded, but there is no such probe any more"


@defect(4)
def probe_that_nobody_asked(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    shutil.copyfile(path, path.with_name("brand_new.py"))
    return "brand_new in torch-2.13.0: not observed"


@defect()
def probe_is_no_python(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    path.write_text("def (:\n")
    return f"probes/{path.name}:1: is not Python 3.6"


# -------------------------------------------------------------------------------------------------------------- policies


@defect(4, seeds=1)
def no_policies(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.path / "policies")
    return "has no policies/torch"


@defect(2, seeds=1)
def policies_emptied(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.policy)
    tree.policy.mkdir()
    return "holds no policy"


def tables(text: str, kind: str) -> Iterator[str]:
    """Every [[table]] of a kind, as it is written."""
    for part in text.split(f"[[{kind}]]\n")[1:]:
        table, _, _ = part.partition("\n[")
        yield f"[[{kind}]]\n{table}"


@defect(2, seeds=1)
def policy_without_rules(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    for table in list(tables(text, "rule")):
        text = text.replace(table, "")
    path.write_text(text)
    return "no [[rule]]: nothing would be checked"


@defect(2)
def rule_that_does_not_exist(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    name = random.choice([table.split('"')[1] for table in tables(path.read_text(), "rule")])
    tree.edit(path, f'id = "{name}"', f'id = "{name}-indeed"')
    return f"the policy names the rule '{name}-indeed', which does not exist"


@defect(4, seeds=1)
def rule_that_selects_nothing(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    path.write_text("".join(line for line in text.splitlines(True) if not line.startswith("expect_empty")))
    return "forward-window × 1: the rule selects nothing"


@defect()
def rule_removed_that_has_waivers(tree: Tree, random: Random) -> str:
    waiver = random.choice(tree.waivers())
    rule = waiver_cause(waiver).partition(":")[0]
    path = tree.policy / "promises.toml"
    tree.edit(path, next(table for table in tables(path.read_text(), "rule") if f'id = "{rule}"' in table), "")
    return f"waiver {waiver.stem} covers nothing"


@defect(4, seeds=1)
def rule_removed_that_counts_waivers(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    tree.edit(path, next(table for table in tables(path.read_text(), "rule") if 'id = "waivers-exact"' in table), "")
    return "waivers-exact × 1: the policy has waivers, but not the rule that counts what they cover"


@defect(2)
def policy_file_cut_off(tree: Tree, random: Random) -> str:
    path = random.choice(sorted(tree.policy.glob("*.toml")))
    text = path.read_text()
    path.write_text(text[: text.rindex('"')])
    return path.name


@defect(2)
def policy_key_misspelt(tree: Tree, random: Random) -> str:
    path = tree.policy / "formats.toml"
    lines = path.read_text().splitlines(True)
    index = random.choice([index for index, line in enumerate(lines) if line.startswith("meaning")])
    lines[index] = lines[index].replace("meaning", "meanin")
    path.write_text("".join(lines))
    return f"formats.toml:{index + 1}"


@defect(2)
def reader_removed_from_the_calendar(tree: Tree, random: Random) -> str:
    path = tree.policy / "releases.toml"
    version = random.choice([version_of(path) for path in tree.readers()])
    tree.edit(path, next(table for table in tables(path.read_text(), "release") if f'version = "{version}"' in table), "")
    return f"release '{version}' is not in the calendar"


@defect(4)
def reader_added_that_nobody_observed(tree: Tree, random: Random) -> str:
    version = random.choice(["1.7.1", "1.8.0", "2.0.0"])
    tree.edit(tree.policy / "promises.toml", 'readers = ["1.2.0"', f'readers = ["{version}", "1.2.0"')
    return f"torch-{version}: no observations of this reader"


@defect()
def writer_added_that_wrote_nothing(tree: Tree, random: Random) -> str:
    version = random.choice(["1.7.1", "1.8.0", "2.0.0"])
    tree.edit(tree.policy / "promises.toml", 'writers = ["1.2.0"', f'writers = ["{version}", "1.2.0"')
    recipes = len(tree.recipes())
    return f"torch-{version}: {recipes} of {recipes} recipes were not run"


@defect()
def format_version_without_fixture(tree: Tree, random: Random) -> str:
    number = random.randrange(20, 99)
    with (tree.policy / "formats.toml").open("a") as stream:
        stream.write(
            f'\n[[format]]\nkind = "file-format"\nversion = {number}\nmeaning = "more"\n'
            'read_from = { release = "2.13.0" }\nwritten_from = { release = "2.13.0" }\n'
        )
    return f"file-format {number} has no fixture in the corpus"


@defect()
def format_version_forgotten(tree: Tree, random: Random) -> tuple[str, ...]:
    path = tree.policy / "formats.toml"
    written = {
        version
        for folder in tree.releases()
        for one in read_manifest(folder / MANIFEST).fixtures
        for version in one.versions.items()
    }
    kind, version = random.choice(sorted(pair for pair in written if pair[0] in {"file-format", "bytecode"}))
    head = f'kind = "{kind}"\nversion = {version}\n'
    tree.edit(path, next(table for table in tables(path.read_text(), "format") if head in table), "")
    return f"has {kind} {version}, which the policy does not know", f"{kind}-{version}"


@defect()
def fixture_said_to_be_missing(tree: Tree, random: Random) -> str:
    path = tree.policy / "formats.toml"
    version = random.choice([1, 3, 4])
    tree.edit(
        path, f'kind = "file-format"\nversion = {version}\n', f'kind = "file-format"\nversion = {version}\npending = "soon"\n'
    )
    return f"file-format {version} is said to have no fixture, but"


@defect(4)
def options_added_that_nobody_observed(tree: Tree, random: Random) -> str:
    load = random.choice(["mmap = false", "crc32 = false", 'endianness = "big"'])
    text = f'[[options]]\nid = "brand-new"\nfamilies = ["torch-save"]\nsince = "2.7.0"\nload = {{ {load} }}\n'
    with (tree.policy / "promises.toml").open("a") as stream:
        stream.write("\n" + text)
    return "torch-2.13.0: not observed"


@defect(4, 1)
def options_changed_since_they_were_observed(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", "load = { weights_only = true }", "load = { weights_only = true, crc32 = false }")
    return "torch-2.13.0: observed before the fixture, its golden or the options changed"


@defect(seeds=1)
def tolerances_tightened_to_nothing(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    lines = [
        f"{line.split('=')[0]}= {'0' if line.startswith('max_ulp') else '0.0'}\n" if line.startswith("max_") else line
        for line in path.read_text().splitlines(True)
    ]
    path.write_text("".join(lines))
    return "newer-computes:different:"


@defect(seeds=1)
def strides_held_against_readers(tree: Tree, random: Random) -> str:
    path = tree.policy / "promises.toml"
    text = path.read_text()
    for table in list(tables(text, "disregard")):
        text = text.replace(table, "")
    path.write_text(text)
    return "newer-computes:different:"


@defect()
def forward_window_widened(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "promises.toml", "forward_window_days = 14", f"forward_window_days = {random.randrange(3000, 9999)}")
    return "forward-window:refused:"


# --------------------------------------------------------------------------------------------------------------- waivers


def waiver_line(path: Path, key: str) -> str:
    return next(line for line in path.read_text().splitlines() if line.startswith(f"{key} ="))


def waiver_cause(path: Path) -> str:
    return waiver_line(path, "causes").split('"')[1]


def span(first: str, last: str) -> str:
    return f'readers = {{ first = "{first}", last = "{last}" }}'


def waived_span(path: Path) -> tuple[str, str]:
    """The oldest and the newest reader that a waiver covers."""
    first, last = waiver_line(path, "readers").split('"')[1::2]
    return first, last


def miscounted(by: int) -> Plant:
    def plant(tree: Tree, random: Random) -> str:
        fitting = [path for path in tree.waivers() if int(waiver_line(path, "count").split()[-1]) + by > 0]
        path = random.choice(fitting)
        line = waiver_line(path, "count")
        count = int(line.split()[-1])
        tree.edit(path, line, f"count = {count + by}")
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
    return f"{cause} × "


@defect(2)
def waiver_in_a_file_of_another_name(tree: Tree, random: Random) -> str:
    path = random.choice(tree.waivers())
    path.rename(path.with_name("other-name.toml"))
    return "the file must have the waiver's name"


# ------------------------------------------------------------------------------------------------------------- operators


def operator_waivers(tree: Tree) -> list[Path]:
    return sorted((tree.policy / "operator_waivers").glob("*.toml"))


def operator_waiver(tree: Tree, random: Random, least: int = 1) -> tuple[Path, int]:
    """A waiver for operators that broke backward, and how many it counts."""
    counted = [(path, int(waiver_line(path, "count").split()[-1])) for path in operator_waivers(tree)]
    return random.choice([one for one in counted if one[1] >= least and 'side = "backward"' in one[0].read_text()])


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
    tree.edit(path, f"count = {count}", f"count = {count - 1}")
    return f"waiver {path.stem} counts {count - 1} operators, but hides {count}: 1 more than it says"


@defect()
def operator_waiver_counts_one_more(tree: Tree, random: Random) -> str:
    path, count = operator_waiver(tree, random)
    tree.edit(path, f"count = {count}", f"count = {count + 1}")
    return f"waiver {path.stem} counts {count + 1} operators, but only {count} changed so"


@defect()
def operator_waiver_overlapping(tree: Tree, random: Random) -> tuple[str, ...]:
    path, _ = operator_waiver(tree, random)
    path.with_name("again.toml").write_text(path.read_text().replace(f'id = "{path.stem}"', 'id = "again"'))
    return f"waiver {path.stem} covers operators that again covers", f"waiver again covers operators that {path.stem} covers"


@defect(arguments=("--as-of", "2031-01-01"))
def operator_waiver_expired(tree: Tree, random: Random) -> tuple[str, ...]:
    path, _ = operator_waiver(tree, random)
    path.write_text(path.read_text() + "expires = 2031-01-01\n")
    return f"waiver {path.stem} expired on 2031-01-01", "schema-breaks-upgraded:"


@defect()
def operator_waiver_removed(tree: Tree, random: Random) -> str:
    random.choice(operator_waivers(tree)).unlink()
    return "@"  # the findings that it covered


@defect()
def operator_gap_grown(tree: Tree, random: Random) -> str:
    tree.edit(tree.policy / "operators.toml", "count = 138", f"count = {random.randrange(139, 200)}")
    return "operator_gap of 2.13.0 counts"


@defect(4, seeds=1)
def operator_gap_removed(tree: Tree, random: Random) -> str:
    (tree.policy / "operators.toml").unlink()
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


# ----------------------------------------------------------------------------------------------------------------- tests

CASES = [pytest.param(one, seed, id=f"{one.name}-{seed}") for one in DEFECTS for seed in range(one.seeds)]


def test_enough_is_planted() -> None:
    assert len(CASES) >= 40
    assert len({one.name for one in DEFECTS}) == len(DEFECTS) >= 20


@pytest.mark.parametrize(("planted", "seed"), CASES)
def test_a_planted_defect_turns_the_run_red(planted: Defect, seed: int, tree: Tree, baseline: Judged) -> None:
    named = planted.plant(tree, Random(f"{planted.name} {seed}"))
    judged = tree.judge(*planted.arguments)

    worst = {exit_status([baseline.status, status]) for status in planted.status}  # where the original is not green either
    assert judged.status in {*planted.status, *worst}, judged.stderr or judged.bad
    assert judged.status in {1, 2, 4}
    assert "Traceback" not in judged.stderr
    new = "\n".join(sorted(judged.bad - baseline.bad))
    for text in [named] if isinstance(named, str) else named:
        assert text in new
    assert str(tree.path) not in judged.stdout  # a report is the same wherever the tree lies


def test_an_untouched_copy_is_judged_like_the_original(pristine: Tree, baseline: Judged, tmp_path: Path) -> None:
    copy_evidence(pristine.path, tmp_path)
    assert Tree(tmp_path).judge() == baseline
