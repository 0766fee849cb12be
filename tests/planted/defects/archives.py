"""Defects in the files of fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.planted.defects.table import defect, subject
from torch_compat.corpus.manifest import MANIFEST

if TYPE_CHECKING:
    from random import Random

    from tests.planted.conftest import Tree


@defect()
def fixture_deleted(tree: Tree, random: Random) -> str:
    path = random.choice(tree.archives())
    path.unlink()
    return f"{subject(path)}: is listed in the manifest, but does not exist"


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
    return f"{subject(path)}: is listed in the manifest, but does not exist", f"{subject(other)}: is not listed"


@defect()
def fixture_moved_to_another_release(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.archives())
    other = path.rename(random.choice([folder for folder in tree.releases() if folder != path.parent]) / f"moved-{path.name}")
    return f"{subject(path)}: is listed in the manifest, but does not exist", f"{subject(other)}: is not listed"


@defect()
def two_fixtures_swapped(tree: Tree, random: Random) -> tuple[str, ...]:
    item = random.choice(tree.archives())
    other = random.choice([path for path in tree.archives() if path.read_bytes() != item.read_bytes()])
    first, second = item.read_bytes(), other.read_bytes()
    item.write_bytes(second)
    other.write_bytes(first)
    return f"{subject(item)}: has", f"{subject(other)}: has"


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
