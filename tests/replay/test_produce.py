from __future__ import annotations

import datetime as dt
import errno
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.miniatures.tree import Tree, write_recipe
from torch_compat.corpus.corpus import FROZEN, load_corpus
from torch_compat.corpus.manifest import read_manifest, write_manifest
from torch_compat.errors import CorpusError, ReaderError, WriteError
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import TorchRelease
from torch_compat.replay.produce import Produced, produce
from torch_compat.values.normalise import brief_result

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus
    from torch_compat.readers.environments import Environment

LATER = dt.date(2026, 8, 2)
RECIPE = '''\
"""One idea."""
import os
import signal
import time
import torch

FAMILY = "{family}"
OPERATORS = ["aten::mul"]
SINCE = "1.5.1"


def build():
    {build}


def calls():
    return [("forward", {args})]
'''
PROGRAM = 'return torch.Program(forward="lambda a: a * 2")'


def recipe(tree: Tree, name: str, build: str = PROGRAM, args: str = "(3,)", family: str = "torchscript", more: str = "") -> None:
    write_recipe(tree.root, name, RECIPE.format(build=build, args=args, family=family) + more)


def run(tree: Tree, environment: Environment, *names: str) -> Produced:
    corpus = load_corpus(tree.root / "fixtures")
    chosen = [entry for entry in corpus.recipes if not names or entry.name in names]
    with TorchRelease(environment) as writer:
        return produce(corpus, writer, chosen, LATER)


def test_what_is_new_is_added_and_frozen(tree: Tree) -> None:
    recipe(tree, "double")
    before = tree.everything()
    produced = run(tree, miniature(tree.cache, "1.6.0"), "double")
    assert ([entry.id for entry in produced.added], produced.reproduced, produced.differing) == (["torch-1.6.0/double"], (), ())
    corpus = tree.corpus
    assert corpus.damage == ()
    fixture = corpus.fixtures["torch-1.6.0/double"]
    assert (fixture.release, fixture.recipe, fixture.file, fixture.written) == ("1.6.0", "double", "double.pt", "2026-08-02")
    assert (fixture.family, fixture.container, fixture.versions) == ("torchscript", "zip", {"file-format": 3})
    assert (fixture.operators, fixture.calls) == (["aten::mul"], [{"method": "forward", "args": [3]}])
    assert fixture.golden["calls"][0]["first"] == {"value": 6, "inputs": [3]}
    assert fixture.readback == "same"
    assert fixture.recipe_sha256 == next(entry.sha256 for entry in corpus.recipes if entry.name == "double")
    writers = read_manifest(tree.root / "fixtures/torch-1.6.0/manifest.jsonl").writers
    assert writers[fixture.writer]["torch"] == "1.6.0"
    after = tree.everything()
    changed = {name for name in after if after[name] != before.get(name)}
    folder = "fixtures/torch-1.6.0"
    assert changed == {f"fixtures/{FROZEN}", *(f"{folder}/{name}" for name in ("double.pt", "manifest.jsonl", "goldens.jsonl"))}
    assert set(before[f"fixtures/{FROZEN}"].splitlines()) < set(after[f"fixtures/{FROZEN}"].splitlines())


def test_what_a_recipe_draws_at_random_is_drawn_from_a_fixed_seed(tree: Tree) -> None:
    recipe(tree, "seeded", build="return {'seed': torch.initial_seed()}", family="torch-save")
    run(tree, miniature(tree.cache, "1.6.0"), "seeded")
    assert tree.corpus.fixtures["torch-1.6.0/seeded"].golden == {"value": {"dict": [["seed", 0]]}}


def test_a_release_that_wrote_nothing_yet_gets_its_folder(tree: Tree) -> None:
    produced = run(tree, miniature(tree.cache, "2.13.0"))
    assert len(produced.added) == 3
    assert tree.corpus.damage == ()
    assert {name for name in tree.corpus.fixtures if name.startswith("torch-2.13.0/")} == {
        f"torch-2.13.0/{name}" for name in ("add", "later", "state")
    }


@pytest.mark.parametrize("version", ["1.5.1", "1.6.0"])
def test_what_is_there_is_reproduced_and_nothing_is_written(tree: Tree, version: str) -> None:
    before = tree.everything()
    produced = run(tree, miniature(tree.cache, version))
    assert (produced.added, produced.differing) == ((), ())
    assert produced.reproduced == tuple(f"torch-{version}/{name}" for name in ("add", "later", "state"))
    assert tree.everything() == before


def test_another_digest_of_the_same_content_is_no_difference(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_compat.replay.produce.content_digest", lambda _: "0" * 64)
    assert run(tree, miniature(tree.cache, "1.5.1"), "add").reproduced == ("torch-1.5.1/add",)
    shutil.copyfile(tree.root / "fixtures/torch-1.5.1/state.pt", tree.root / "fixtures/torch-1.5.1/add.pt")
    assert run(tree, miniature(tree.cache, "1.5.1"), "add").differing == (("torch-1.5.1/add", ("content",)),)


@pytest.mark.parametrize(
    ("hooks", "fields"),
    [
        ({"at_call": "value = 12 if value == 5 else value"}, {"golden"}),
        ({"at_load": "raise ValueError('cannot read what I wrote')"}, {"readback"}),
        ({"at_import": "Tensor.storage_offset = lambda self: 1"}, {"golden"}),
    ],
)
def test_what_comes_out_otherwise_is_said_and_the_recorded_one_stays(tree: Tree, hooks: dict[str, str], fields: set[str]) -> None:
    before = tree.everything()
    produced = run(tree, miniature(tree.cache, "1.5.1", **hooks), "add")
    ((name, differing),) = produced.differing
    assert name == "torch-1.5.1/add"
    assert set(differing) == fields
    assert tree.everything() == before


def test_a_changed_recipe_and_a_lost_ability_are_differences(tree: Tree) -> None:
    recipe(tree, "add", build="raise RuntimeError('forgotten')")
    recipe(tree, "later")
    before = tree.everything()
    produced = run(tree, miniature(tree.cache, "1.5.1"), "add", "later")
    assert produced.differing == (("torch-1.5.1/add", ("no longer writable",)), ("torch-1.5.1/later", ("writable",)))
    assert tree.everything() == before
    recipe(tree, "later", build='return torch.Program(forward="lambda: 1")', args="()")
    ((_, fields),) = run(tree, miniature(tree.cache, "1.6.0"), "later").differing
    assert {"recipe_sha256", "content", "golden", "operators"} <= set(fields)


@pytest.mark.parametrize("loss", ["entry", "manifest", "folder"])
def test_what_was_frozen_and_has_gone_is_not_new(tree: Tree, loss: str) -> None:
    """Producing it again would hide that it had gone, with another archive in its place."""
    folder = tree.root / "fixtures" / "torch-1.5.1"
    if loss == "entry":
        forget(folder / "manifest.jsonl", "add")
    elif loss == "manifest":
        (folder / "manifest.jsonl").unlink()
    else:
        shutil.rmtree(folder)
    before = tree.everything()
    with pytest.raises(CorpusError, match="is pinned in FROZEN") as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "add")
    assert caught.value.code == "missing-entry"
    assert tree.everything() == before
    assert "missing-entry" in {damage.kind for damage in tree.corpus.damage}


def forget(path: Path, name: str) -> None:
    """Remove an entry from a manifest, and make it whole again."""
    manifest = read_manifest(path)
    write_manifest(path, replace(manifest, fixtures=tuple(entry for entry in manifest.fixtures if entry.recipe != name)))


def test_a_file_in_the_way_is_not_overwritten(tree: Tree) -> None:
    recipe(tree, "double")
    orphan = tree.root / "fixtures" / "torch-1.5.1" / "double.pt"
    orphan.write_bytes(b"somebody's only copy")
    before = tree.everything()
    with pytest.raises(CorpusError, match="exists where 'double' would be written") as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "double")
    assert caught.value.code == "orphan-file"
    assert tree.everything() == before


# --------------------------------------------------------------------------------------------- releases that cannot write


def test_not_writable_is_evidence_without_a_path(tree: Tree) -> None:
    recipe(tree, "double", build="raise RuntimeError('no such operator at 0x7f00deadbeef in ' + torch.__file__)")
    produced = run(tree, miniature(tree.cache, "1.5.1"), "double")
    (entry,) = produced.added
    assert type(entry).__name__ == "NotWritable"
    stored: Any = tree.corpus.not_writable["torch-1.5.1/double"]
    assert stored.type == "builtins.RuntimeError"
    assert "0x7f" not in stored.message
    assert str(tree.root.parent) not in stored.message
    assert tree.corpus.damage == ()
    assert not (tree.root / "fixtures/torch-1.5.1/double.pt").exists()
    assert run(tree, miniature(tree.cache, "1.5.1"), "double").reproduced == ("torch-1.5.1/double",)


def test_an_error_while_writing_is_not_writable_too(tree: Tree) -> None:
    recipe(
        tree, "double", more="\n\ndef write(made, path):\n    open(path, 'w').write('half')\n    raise OSError('full: ' + path)\n"
    )
    (entry,) = run(tree, miniature(tree.cache, "1.5.1"), "double").added
    stored: Any = entry
    assert stored.message == "full: <archive>"


@pytest.mark.parametrize(
    ("build", "code", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "not-written", "SIGSEGV"),
        ("os._exit(0)", "not-written", "crashed"),
        ("raise SystemExit(3)", "request-failed", "SystemExit"),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)", "worker-died", "died"),
    ],
)
def test_a_recipe_that_does_not_end_well_records_nothing_at_all(tree: Tree, build: str, code: str, words: str) -> None:
    recipe(tree, "a_good_one")
    recipe(tree, "double", build=build)
    before = tree.everything()
    with pytest.raises(ReaderError) as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "a_good_one", "double")
    assert caught.value.code == code
    assert words in caught.value.message
    assert tree.everything() == before


def test_a_recipe_that_crashes_while_writing_records_nothing(tree: Tree) -> None:
    recipe(tree, "double", more="\n\ndef write(made, path):\n    open(path, 'w').write('half')\n    os.abort()\n")
    before = tree.everything()
    with pytest.raises(ReaderError, match="SIGABRT"):
        run(tree, miniature(tree.cache, "1.5.1"), "double")
    assert tree.everything() == before


def test_a_recipe_that_writes_another_family_than_it_says_records_nothing(tree: Tree) -> None:
    recipe(tree, "double", more="\n\ndef write(made, path):\n    torch.save(1, path)\n")
    before = tree.everything()
    with pytest.raises(ReaderError, match="declares family 'torchscript', but wrote 'torch-save'") as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "double")
    assert caught.value.code == "wrong-family"
    assert tree.everything() == before


@pytest.mark.parametrize(
    ("depth", "words"),
    [
        (150, r"golden.* is nested deeper than 100"),
        (400, "a value is nested too deeply"),
    ],  # at 400 the worker reaches Python's limit
)
def test_a_value_that_no_manifest_can_hold_is_not_recorded(tree: Tree, depth: int, words: str) -> None:
    build = f"value = 1\n    for _ in range({depth}):\n        value = [value]\n    return value"
    recipe(tree, "nested", build=build, family="torch-save", more="\n\ndef write(made, path):\n    torch.save(made, path)\n")
    before = tree.everything()
    with pytest.raises(ReaderError, match=f"torch-1.5.1/nested cannot be recorded: {words}") as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "nested")
    assert caught.value.code == "not-recordable"
    assert tree.everything() == before


@pytest.mark.parametrize(("name", "recorded"), [("model/object.pkl", True), ("wines/model.pkl", False)])
def test_a_package_without_the_pickle_that_readers_load_is_not_recorded(tree: Tree, name: str, recorded: bool) -> None:
    packs = (
        "\n\ndef write(made, path):\n"
        "    import pickle, zipfile\n"
        "    with zipfile.ZipFile(path, 'w') as archive:\n"
        "        archive.writestr('a/.data/version', '6')\n"
        "        archive.writestr('a/.data/extern_modules', '')\n"
        f"        archive.writestr('a/{name}', pickle.dumps(1, 2))\n"
    )
    recipe(tree, "packed", build="return 1", family="package", more=packs)
    if recorded:
        run(tree, miniature(tree.cache, "1.8.1"), "packed")
        return
    with pytest.raises(ReaderError, match=r"packed cannot be recorded: it has no pickle model/object.pkl") as caught:
        run(tree, miniature(tree.cache, "1.8.1"), "packed")
    assert caught.value.code == "not-recordable"


def test_a_value_that_raises_when_it_is_encoded_is_not_recorded(tree: Tree) -> None:
    build = (
        "class Odd:\n        @property\n        def __dict__(self):\n            raise LookupError('no state')\n    return Odd()"
    )
    recipe(tree, "odd", build=build, family="torch-save", more="\n\ndef write(made, path):\n    torch.save(1, path)\n")
    before = tree.everything()
    with pytest.raises(
        ReaderError, match=r"odd cannot be recorded: encoding its values failed with .*LookupError: no state"
    ) as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "odd")
    assert caught.value.code == "not-recordable"
    assert "Traceback" not in caught.value.message
    assert tree.everything() == before


@pytest.mark.parametrize("argument", ["object()", "[object()]", "torch.Program(forward='lambda a: a')"])
def test_a_call_with_an_object_is_not_recorded(tree: Tree, argument: str) -> None:
    recipe(tree, "double", args=f"({argument},)")
    before = tree.everything()
    with pytest.raises(ReaderError, match=r"an argument of forward: cannot give a value of kind 'object' to a program") as caught:
        run(tree, miniature(tree.cache, "1.5.1"), "double")
    assert caught.value.code == "not-recordable"
    assert tree.everything() == before


@pytest.mark.parametrize(
    ("source", "golden"),
    [
        ("lambda a: os.abort()", {"crashed"}),
        ("lambda a: 1 // 0", {"state", "calls", "state_after"}),
    ],
)
def test_a_writer_that_cannot_run_its_own_program_still_writes_it(tree: Tree, source: str, golden: set[str]) -> None:
    recipe(tree, "double", build=f"return torch.Program(forward={source!r})")
    run(tree, miniature(tree.cache, "1.5.1"), "double")
    fixture = tree.corpus.fixtures["torch-1.5.1/double"]
    assert set(fixture.golden) == golden
    assert fixture.readback == "same"


def test_what_the_writer_itself_reads_back_is_kept_where_it_is_not_the_golden(tree: Tree) -> None:
    recipe(tree, "double")
    run(tree, miniature(tree.cache, "1.5.1", at_load="value.methods['forward'] = 'lambda a: a * 3'"), "double")
    fixture = tree.corpus.fixtures["torch-1.5.1/double"]
    readback: Any = fixture.readback
    assert fixture.golden["calls"][0]["first"]["value"] == 6
    assert readback["calls"][0]["first"]["value"] == 9


def test_a_full_disk_changes_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe(tree, "double")
    before = tree.everything()

    with TorchRelease(miniature(tree.cache, "1.5.1")) as writer:
        corpus = tree.corpus
        chosen = [entry for entry in corpus.recipes if entry.name == "double"]
        fsync, calls = os.fsync, []

        def filled(descriptor: int) -> None:  # the journal and the first file still reach the disk
            calls.append(descriptor)
            if len(calls) > 2:
                raise OSError(errno.ENOSPC, "no space left on device")
            fsync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", filled)
            with pytest.raises(WriteError, match="the disk is full"):
                produce(corpus, writer, chosen, LATER)
    assert tree.everything() == before
    assert not list((tree.root / "reports").glob("latest/*"))


# ------------------------------------------------------------------------------------------------------ real releases

RECIPES = ("div", "state_dict", "module_with_buffers")


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.real_torch(version)) for version in ("2.13.0", "1.5.1")]
)
def test_real_releases_write_again_what_was_recorded(tmp_path: Path, small_tree: Path, version: str) -> None:
    environment = Environments().get(version)
    assert environment is not None
    shutil.copytree(small_tree / "fixtures", tmp_path / "fixtures")
    corpus = load_corpus(tmp_path / "fixtures")
    chosen = [entry for entry in corpus.recipes if entry.name in RECIPES]
    with TorchRelease(environment) as writer:
        produced = produce(corpus, writer, chosen, LATER)
    assert (produced.added, produced.differing) == ((), ())
    assert produced.reproduced == tuple(f"torch-{version}/{name}" for name in sorted(RECIPES))


@pytest.mark.real_torch("2.13.0")
def test_a_real_release_gives_the_same_content_without_a_manifest_to_compare_with(
    tmp_path: Path, small_tree: Path, small_corpus: Corpus
) -> None:
    environment = Environments().get("2.13.0")
    assert environment is not None
    shutil.copytree(small_tree / "fixtures" / "recipes", tmp_path / "fixtures" / "recipes")
    corpus = load_corpus(tmp_path / "fixtures")
    with TorchRelease(environment) as writer:
        produced = produce(corpus, writer, [entry for entry in corpus.recipes if entry.name in RECIPES], LATER)
    results = {entry.id: entry for entry in produced.added}
    for name in RECIPES:
        entry: Any = results[f"torch-2.13.0/{name}"]
        before = small_corpus.fixtures[entry.id]
        assert (entry.content, entry.golden, entry.readback) == (before.content, brief_result(before.golden), before.readback)
