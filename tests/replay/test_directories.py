"""A distributed checkpoint in the corpus: produced as one fixture, pinned file by file, and failing if any file has changed."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.formats.checkpoints import Maker, recipe_of
from tests.miniatures import miniature
from tests.miniatures.tree import write_recipe
from torch_compat.archive_files import joined_digest, measure
from torch_compat.cli import main
from torch_compat.corpus.corpus import FROZEN, load_corpus, read_frozen
from torch_compat.corpus.manifest import DirectoryFixture, Fixture, read_manifest, write_manifest
from torch_compat.errors import CorpusError, UsageError
from torch_compat.inspection import inspect
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.produce import produce
from torch_compat.replay.recording import refuse_damage
from torch_compat.replay.trust import frozen_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.miniatures.tree import Tree
    from torch_compat.replay.produce import Produced

ID = "torch-1.6.0/parts"
FOLDER = "fixtures/torch-1.6.0/parts.dcp"
MANIFEST = "fixtures/torch-1.6.0/manifest.jsonl"
FILES = {".metadata", "__0_0.distcp", "__1_0.distcp"}


def made(folder: Path) -> Path:
    import numpy as np  # noqa: PLC0415

    maker = Maker(folder)
    maker.tensor("w", np.arange(24, dtype=np.float32).reshape(4, 6), [((0, 0), (2, 6)), ((2, 0), (2, 6))], files=2)
    maker.object("epoch", b"K\x07")
    return maker.write()


def run(tree: Tree) -> Produced:
    corpus = load_corpus(tree.root / "fixtures")
    with TorchRelease(miniature(tree.cache, "1.6.0")) as writer:
        return produce(corpus, writer, [recipe for recipe in corpus.recipes if recipe.name == "parts"], dt.date(2026, 8, 2))


@pytest.fixture
def produced(tree: Tree, tmp_path: Path) -> Tree:
    """A tree with a distributed checkpoint."""
    write_recipe(tree.root, "parts", recipe_of(made(tmp_path / "made")))
    assert [entry.id for entry in run(tree).added] == [ID]
    return tree


def test_a_directory_is_one_fixture_that_pins_its_files(produced: Tree) -> None:
    corpus = load_corpus(produced.root / "fixtures")
    assert corpus.damage == ()
    fixture = corpus.fixtures[ID]
    assert isinstance(fixture, DirectoryFixture)
    assert (fixture.file, fixture.family, fixture.container, fixture.versions) == ("parts.dcp", "distributed", "directory", {})
    path = corpus.path(fixture)
    assert path.is_dir()
    assert (fixture.sha256, fixture.size, fixture.files) == measure(path)
    assert fixture.files.keys() == FILES
    assert read_frozen(produced.root / "fixtures" / FROZEN)[ID] == fixture.pin
    assert [item for item in corpus.fixtures if item.startswith("torch-1.6.0/") and "parts" in item] == [ID]


def test_inspect_gives_the_digest_and_size_of_the_manifest(produced: Tree) -> None:
    fixture = load_corpus(produced.root / "fixtures").fixtures[ID]
    result = inspect(produced.root / FOLDER)
    assert (result["sha256"], result["size"], result["error"]) == (fixture.sha256, fixture.size, None)


def test_it_is_reproduced_and_nothing_is_written(produced: Tree) -> None:
    before = produced.everything()
    again = run(produced)
    assert (again.added, again.reproduced, again.differing) == ((), (ID,), ())
    assert produced.everything() == before


def test_another_content_differs_and_the_recorded_one_stays(produced: Tree, tmp_path: Path) -> None:
    before = produced.everything()
    maker = Maker(tmp_path / "other")
    maker.object("epoch", b"K\x08")
    write_recipe(produced.root, "parts", recipe_of(maker.write()))
    assert run(produced).differing == ((ID, ("recipe_sha256", "content")),)
    recipe = "fixtures/recipes/parts.py"
    assert {**produced.everything(), recipe: b""} == {**before, recipe: b""}


def byte_changed(root: Path) -> str:
    path = root / FOLDER / "__1_0.distcp"
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    return "torch-1.6.0/parts.dcp/__1_0.distcp: has SHA-256"


def metadata_changed(root: Path) -> str:
    path = root / FOLDER / ".metadata"
    path.write_bytes(path.read_bytes().replace(b"epoch", b"epocH"))
    return "torch-1.6.0/parts.dcp/.metadata: has SHA-256"


def shard_missing(root: Path) -> str:
    (root / FOLDER / "__1_0.distcp").unlink()
    return "torch-1.6.0/parts.dcp/__1_0.distcp: is listed in the manifest, but does not exist"


def bytes_moved(root: Path) -> str:
    """Both files have other sizes, and together the same."""
    first, second = (root / FOLDER / name for name in ("__0_0.distcp", "__1_0.distcp"))
    data = first.read_bytes()
    first.write_bytes(data[:-1])
    second.write_bytes(second.read_bytes() + data[-1:])
    return "torch-1.6.0/parts.dcp/__0_0.distcp: has SHA-256"


def cut_off(root: Path) -> str:
    path = root / FOLDER / "__0_0.distcp"
    path.write_bytes(path.read_bytes()[:-1])
    return "torch-1.6.0/parts.dcp: has "


def file_added(root: Path) -> str:
    (root / FOLDER / "__2_0.distcp").write_bytes(b"")
    return "torch-1.6.0/parts.dcp/__2_0.distcp: is not listed in the manifest"


def hidden_file_added(root: Path) -> str:
    (root / FOLDER / ".metadata.tmp").write_bytes(b"")
    return "torch-1.6.0/parts.dcp/.metadata.tmp: is not listed in the manifest"


def shard_linked(root: Path) -> str:
    path = root / FOLDER / "__1_0.distcp"
    path.rename(root / "elsewhere")
    path.symlink_to(root / "elsewhere")
    return "torch-1.6.0/parts.dcp/__1_0.distcp: is listed in the manifest, but is not a regular file"


def directory_missing(root: Path) -> str:
    shutil.rmtree(root / FOLDER)
    return "torch-1.6.0/parts.dcp: is listed in the manifest, but does not exist"


def file_instead(root: Path) -> str:
    shutil.rmtree(root / FOLDER)
    (root / FOLDER).write_bytes(b"")
    return "torch-1.6.0/parts.dcp: is listed in the manifest, but is not a directory"


def other_digest_pinned(root: Path) -> str:
    """All that a manifest says fits together, and is not what FROZEN pins."""
    path = root / MANIFEST
    manifest = read_manifest(path)
    fixtures: list[Fixture] = []
    for fixture in manifest.fixtures:
        if isinstance(fixture, DirectoryFixture):
            files = {**fixture.files, "__1_0.distcp": "0" * 64}
            fixtures.append(replace(fixture, files=files, sha256=joined_digest(files.items())))
        else:
            fixtures.append(fixture)
    write_manifest(path, replace(manifest, fixtures=tuple(fixtures)))
    return f"{ID}: its manifest entry does not match the one pinned in {FROZEN}"


def only_the_whole_pinned(root: Path) -> str:
    path = root / MANIFEST
    manifest = read_manifest(path)
    fixtures = [replace(fixture, sha256="0" * 64) if fixture.recipe == "parts" else fixture for fixture in manifest.fixtures]
    write_manifest(path, replace(manifest, fixtures=tuple(fixtures)))
    return "'parts': sha256 does not match the digest of files"


DEFECTS = [
    byte_changed, metadata_changed, shard_missing, bytes_moved, cut_off, file_added, hidden_file_added, shard_linked, directory_missing, file_instead,
    other_digest_pinned, only_the_whole_pinned,
]  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_in_a_directory_is_red(
    produced: Tree, defect: Callable[[Path], str], capsys: pytest.CaptureFixture[str]
) -> None:
    message = defect(produced.root)
    corpus = load_corpus(produced.root / "fixtures")
    assert any(message in f"{item.subject}: {item.detail}" for item in corpus.damage), corpus.damage
    with pytest.raises(SystemExit) as ended:
        main(["judge", "--root", str(produced.root), "--format", "json"])
    assert ended.value.code == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any(finding["rule"] == "fixtures-frozen" and finding["verdict"] == "fail" for finding in findings)


@pytest.mark.parametrize("defect", [byte_changed, shard_missing, file_added, cut_off])
def test_a_directory_that_is_not_what_it_was_is_neither_observed_nor_trusted(
    produced: Tree, defect: Callable[[Path], str]
) -> None:
    assert frozen_in(produced.root / "fixtures")(produced.root / FOLDER)
    defect(produced.root)
    corpus = load_corpus(produced.root / "fixtures")
    with pytest.raises(CorpusError):
        refuse_damage(corpus, [corpus.fixtures[ID]], record=False)
    assert not frozen_in(produced.root / "fixtures")(produced.root / FOLDER)


def test_a_directory_with_a_link_is_not_taken_from_a_release(tree: Tree, tmp_path: Path) -> None:
    text = recipe_of(made(tmp_path / "made")) + '    os.symlink("/etc/hostname", os.path.join(path, "__9_0.distcp"))\n'
    write_recipe(tree.root, "parts", text)
    before = tree.everything()
    with pytest.raises(UsageError):
        run(tree)
    assert tree.everything() == before


@pytest.mark.parametrize("defect", ["files", "family", "name", "digest"])
def test_an_entry_of_a_directory_is_checked(produced: Tree, defect: str) -> None:
    path = produced.root / MANIFEST
    manifest = read_manifest(path)
    (item,) = (fixture for fixture in manifest.fixtures if isinstance(fixture, DirectoryFixture))
    changed = {
        "files": replace(item, files={**item.files, "../x": "0" * 64}),
        "family": replace(item, family="torch-save"),
        "name": replace(item, files={**item.files, ".hidden": "0" * 64}),
        "digest": replace(item, files={**item.files, "__1_0.distcp": "x"}),
    }[defect]
    others = [fixture for fixture in manifest.fixtures if fixture is not item]
    write_manifest(path, replace(manifest, fixtures=(*others, changed)))
    with pytest.raises(CorpusError, match="parts"):
        read_manifest(path)
