"""Defects in the statements of manifests and pins about fixtures."""

from __future__ import annotations

import base64
import copy
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.planted.defects.table import defect, subject
from torch_compat.corpus.goldens import GOLDENS, short_form, value_id
from torch_compat.corpus.json_lines import write_lines
from torch_compat.corpus.manifest import MANIFEST, read_manifest, write_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.planted.conftest import Tree
    from torch_compat.corpus.manifest import Fixture


def any_fixture(tree: Tree, random: Random, *, computes: bool = False) -> tuple[Path, str]:
    """The folder of a release and a recipe that it has a fixture of; with ``computes`` one whose golden has values."""
    folder = random.choice(tree.releases())
    fixtures = read_manifest(folder / MANIFEST).fixtures
    return folder, random.choice([fixture.recipe for fixture in fixtures if not computes or tensors(fixture.golden)])


def tensors(value: Any) -> list[dict[str, Any]]:
    """Every tensor with elements in a neutral value."""
    if isinstance(value, dict):
        own = [value["tensor"]] if value.get("tensor", {}).get("bytes") else []
        return own + [tensor for item in value.values() for tensor in tensors(item)]
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, list) else []


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
    return (
        f"{folder.name}/{recipe}: is pinned in FROZEN, but not listed in any manifest",
        f"{folder.name}/{recipe}.",
        "is not listed",
    )


@defect()
def manifest_entry_and_pin_removed(tree: Tree, random: Random) -> str:
    folder, recipe = any_fixture(tree, random)
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    return f"{folder.name}/{recipe}."


@defect()
def fixture_removed_with_its_entry_and_pin(tree: Tree, random: Random) -> str:
    folder, recipe = any_fixture(tree, random)
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    (archive,) = folder.glob(f"{recipe}.*")
    shutil.rmtree(archive) if archive.is_dir() else archive.unlink()
    return f"{folder.name}/{recipe}: the manifest lists neither an archive nor a reason for its absence"


@defect()
def inability_removed_with_its_pin(tree: Tree, random: Random) -> str:
    folder = random.choice([release for release in tree.releases() if read_manifest(release / MANIFEST).not_writable])
    recipe = random.choice(read_manifest(folder / MANIFEST).not_writable).recipe
    tree.entries(folder / MANIFEST, lambda entries: without_recipe(entries, recipe))
    tree.unpin(f"{folder.name}/{recipe}")
    return f"{folder.name}/{recipe}: the manifest lists neither"


def change_golden(tree: Tree, random: Random) -> tuple[Path, str]:
    """Another golden of one fixture, told beside the others of its release."""
    folder, recipe = any_fixture(tree, random, computes=True)
    golden = next(
        copy.deepcopy(fixture.golden) for fixture in read_manifest(folder / MANIFEST).fixtures if fixture.recipe == recipe
    )
    tensor = random.choice(tensors(golden))
    data = bytearray(base64.b64decode(tensor["bytes"]))
    data[random.randrange(len(data))] ^= 1
    tensor["bytes"] = base64.b64encode(data).decode()
    value = short_form(golden)

    def tell(entries: list[dict[str, Any]]) -> None:
        entries.append({"kind": "value", "id": value_id(value), "value": value})

    def name(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry.get("recipe") == recipe)["golden"] = value_id(value)

    path = folder / GOLDENS
    if path.is_file():
        tree.entries(path, tell)
    else:
        write_lines(path, {"kind": "goldens"}, [{"kind": "value", "id": value_id(value), "value": value}])
    tree.entries(folder / MANIFEST, name)
    return folder, recipe


@defect()
def golden_edited_where_it_stands(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(sorted(tree.fixtures.glob(f"torch-*/{GOLDENS}")))

    def edit(entries: list[dict[str, Any]]) -> None:
        entry = random.choice(entries)
        entry["value"] = [*entry["value"], 1] if isinstance(entry["value"], list) else {**entry["value"], "value": 1}

    tree.entries(path, edit)
    return subject(path), "was edited: its id does not match the digest of its contents"


@defect()
def goldens_cut_off(tree: Tree, random: Random) -> str:
    path = random.choice(sorted(tree.fixtures.glob(f"torch-*/{GOLDENS}")))
    lines = path.read_text().splitlines(True)
    path.write_text("".join(lines[: random.randrange(1, len(lines))]))
    return "does not end with a line of kind 'end'"


@defect()
def goldens_removed(tree: Tree, random: Random) -> str:
    random.choice(sorted(tree.fixtures.glob(f"torch-*/{GOLDENS}"))).unlink()
    return f"which is not in any readable {GOLDENS}"


@defect()
def golden_edited(tree: Tree, random: Random) -> str:
    folder, recipe = change_golden(tree, random)
    return f"{folder.name}/{recipe}: its manifest entry does not match the one pinned in FROZEN"


@defect(4, 1)  # 1 where a waiver counted the cells that are stale now
def golden_edited_and_frozen_again(tree: Tree, random: Random) -> str:
    folder, _ = change_golden(tree, random)
    tree.freeze(folder)
    return "observed before the fixture, its golden or the options changed"


@defect()
def manifest_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST
    path.unlink()
    return f"{subject(path)}: file not found"


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
    return "does not end with a line of kind 'end'"


@defect()
def manifest_of_another_release(tree: Tree, random: Random) -> str:
    item, other = random.sample(tree.releases(), 2)
    shutil.copyfile(item / MANIFEST, other / MANIFEST)
    return f"but is in '{other.name}'"


@defect()
def manifest_with_an_inconsistent_writer(tree: Tree, random: Random) -> str:
    path = random.choice(tree.releases()) / MANIFEST

    def lie(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["kind"] == "writer")["identity"]["python"] = "3.99.0"

    tree.entries(path, lie)
    return "does not match the identity of the writer"


@defect()
def manifest_of_a_lying_writer(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    manifest = read_manifest(folder / MANIFEST)
    (identity,) = manifest.writers.values()
    identity = {**identity, "torch": "9.9.9"}
    name = tree.identity_digest(identity)
    fixtures = tuple(replace(fixture, writer=name) for fixture in manifest.fixtures)
    not_writable = tuple(replace(refusal, writer=name) for refusal in manifest.not_writable)
    lying = replace(manifest, writers={name: identity}, fixtures=fixtures, not_writable=not_writable)
    write_manifest(folder / MANIFEST, lying)
    return f"does not match the identity of the writer {name}"


@defect()
def release_removed(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    name = random.choice(read_manifest(folder / MANIFEST).fixtures).id
    shutil.rmtree(folder)
    return f"{name}: is pinned in FROZEN, but not listed in any manifest"


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
    return "FROZEN: file not found"


@defect()
def pin_changed(tree: Tree, random: Random) -> str:
    lines = tree.frozen.read_text().splitlines()
    index = random.randrange(len(lines))
    pin, name = lines[index].split()
    at = random.randrange(64)
    lines[index] = f"{pin[:at]}{'0' if pin[at] != '0' else '1'}{pin[at + 1 :]}  {name}"
    tree.frozen.write_text("\n".join(lines) + "\n")
    return f"{name}: its manifest entry does not match the one pinned in FROZEN"


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


def restate(tree: Tree, folder: Path, version: int, chosen: Callable[[Fixture], bool]) -> list[str]:
    """Let archives of a release state another file format version, as if it had written them so; those whose version changed."""
    manifest = read_manifest(folder / MANIFEST)
    changed = [
        fixture.id
        for fixture in manifest.fixtures
        if fixture.versions.get("file-format") not in {None, version} and chosen(fixture)
    ]
    fixtures = tuple(
        replace(fixture, versions={**fixture.versions, "file-format": version}) if fixture.id in changed else fixture
        for fixture in manifest.fixtures
    )
    write_manifest(folder / MANIFEST, replace(manifest, fixtures=fixtures))
    tree.freeze(folder)
    return changed


@defect()
def archive_states_a_version_that_it_does_not_need(tree: Tree, random: Random) -> str:
    folder = random.choice(tree.releases())
    fixtures = read_manifest(folder / MANIFEST).fixtures
    fixture = random.choice([item for item in fixtures if item.versions.get("file-format", 99) < 9])
    restate(tree, folder, 9, lambda other: other.recipe == fixture.recipe)
    return f"versions-lowest:bumped:{fixture.family}:9:{fixture.versions['file-format']}@{fixture.release} × 1"


@defect()
def archive_states_a_version_below_that_of_its_operators(tree: Tree, random: Random) -> tuple[str, ...]:
    folder = tree.fixtures / f"torch-{random.choice(['1.12.1', '2.13.0'])}"
    recipe = random.choice(["div", "div_inplace", "div_scalar", "full", "gelu", "linspace", "logspace"])
    restate(tree, folder, 3, lambda item: item.recipe == recipe)
    return "versions-lowest:too-low:torchscript:3:", "older readers do not refuse them"


@defect(seeds=1)
def every_archive_of_a_writer_states_the_newest_version(tree: Tree, random: Random) -> str:
    changed = restate(tree, tree.fixtures / "torch-2.13.0", 10, lambda item: item.family == "torch-save")
    return f"versions-lowest:bumped:torch-save:10:3@2.13.0 × {len(changed)}"
