"""The corpus of a root: intact data is read without remarks, and every damage results in one remark."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from torch_compat.corpus.corpus import FROZEN, Corpus, load_corpus, read_frozen, write_frozen
from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.manifest import SYNTHETIC, Fixture, Manifest, NotWritable, Synthetic, write_manifest
from torch_compat.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECIPE = '"""An idea."""\nFAMILY = "torch-save"\nOPERATORS = []\nSINCE = "1.0.0"\n'
NAMES = ("add", "div")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small corpus: two releases, two recipes, a fixture and an inability in each release."""
    root = tmp_path / "fixtures"
    for place in ("recipes", "probes"):
        (root / place).mkdir(parents=True)
        for name in NAMES:
            (root / place / f"{name}.py").write_text(RECIPE)
    pins = {}
    for release in ("1.5.1", "1.10.0"):
        identity = {"torch": f"{release}+cpu"}
        writer = digest(identity)[:12]
        data = f"archive of {release}".encode()
        sha256 = hashlib.sha256(RECIPE.encode()).hexdigest()
        fixture = Fixture(
            release, "add", sha256, "add.pt", hashlib.sha256(data).hexdigest(), len(data), "0" * 64, writer, "2026-11-20",
            "torch-save", "zip", {"file-format": 3}, [], [], {"value": 1}, "same",
        )  # fmt: skip
        inability = NotWritable(release, "div", sha256, writer, "2026-11-20", "ImportError", "no")
        manifest = Manifest(release, {writer: identity}, (fixture,), (inability,))
        write_manifest(root / f"torch-{release}" / "manifest.jsonl", manifest)
        (root / f"torch-{release}" / "add.pt").write_bytes(data)
        pins.update({entry.id: entry.pin for entry in manifest.entries})
    write_frozen(root / FROZEN, pins)
    return root


def damage(folder: Path) -> list[tuple[str, str]]:
    return [(item.kind, item.subject) for item in load_corpus(folder).damage]


def test_a_whole_corpus(folder: Path) -> None:
    corpus = load_corpus(folder)
    assert corpus.damage == ()
    assert [recipe.name for recipe in corpus.recipes] == list(NAMES)
    assert [probe.name for probe in corpus.probes] == list(NAMES)
    assert set(corpus.fixtures) == {"torch-1.5.1/add", "torch-1.10.0/add"}
    assert set(corpus.not_writable) == {"torch-1.5.1/div", "torch-1.10.0/div"}
    assert len(corpus.entries) == 4
    assert all(corpus.path(fixture).is_file() for fixture in corpus.fixtures.values())


@pytest.fixture
def more(folder: Path) -> Path:
    """The same corpus with a synthetic fixture."""
    identity = {"torch": SYNTHETIC}
    writer = digest(identity)[:12]
    data = b"made by rules"
    result = Synthetic(
        SYNTHETIC, "old", "", "old.pt", hashlib.sha256(data).hexdigest(), len(data), "0" * 64, writer, "2026-11-20",
        "torch-save", "tar", {}, [], [], {"value": 1}, "", ["container tar"], "",
    )  # fmt: skip
    write_manifest(folder / "synthetic" / "manifest.jsonl", Manifest(SYNTHETIC, {writer: identity}, (result,), ()))
    (folder / "synthetic" / "old.pt").write_bytes(data)
    for name in ("make.py", "README.md"):
        (folder / "synthetic" / name).write_text("how it was made")
    write_frozen(folder / FROZEN, {**read_frozen(folder / FROZEN), result.id: result.pin})
    return folder


def test_a_corpus_is_shown_in_a_line(folder: Path) -> None:
    assert repr(load_corpus(folder)) == f"<corpus of {len(load_corpus(folder).fixtures)} fixtures in {folder}>"


def test_what_is_synthetic_is_part_of_the_corpus(more: Path) -> None:
    corpus = load_corpus(more)
    assert corpus.damage == ()
    assert [item.id for item in corpus.synthetic] == ["synthetic/old"]
    assert corpus.fixtures["synthetic/old"] is corpus.synthetic[0]
    assert corpus.path(corpus.synthetic[0]) == more / "synthetic" / "old.pt"


def test_what_is_synthetic_is_frozen_too(more: Path) -> None:
    (more / "synthetic" / "old.pt").write_bytes(b"made by hand!")
    (more / "synthetic" / "x.pt").write_bytes(b"x")
    assert damage(more) == [("wrong-hash", "synthetic/old.pt"), ("orphan-file", "synthetic/x.pt")]


def test_a_release_has_no_generator(folder: Path) -> None:
    (folder / "torch-1.5.1" / "make.py").write_text("x = 1")
    assert damage(folder) == [("orphan-file", "torch-1.5.1/make.py")]


def forget_pin(folder: Path) -> None:
    pins = read_frozen(folder / FROZEN)
    del pins["torch-1.5.1/add"]
    write_frozen(folder / FROZEN, pins)


def lie_in_pin(folder: Path) -> None:
    write_frozen(folder / FROZEN, read_frozen(folder / FROZEN) | {"torch-1.5.1/div": "0" * 64})


def add_pin(folder: Path) -> None:
    write_frozen(folder / FROZEN, read_frozen(folder / FROZEN) | {"torch-1.5.1/mul": "0" * 64})


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda at: (at / "torch-1.5.1/add.pt").unlink(), [("missing-file", "torch-1.5.1/add.pt")]),
        (lambda at: (at / "torch-1.5.1/add.pt").write_bytes(b""), [("wrong-size", "torch-1.5.1/add.pt")]),
        (lambda at: (at / "torch-1.5.1/add.pt").write_bytes(b"archive of 1.5.2"), [("wrong-hash", "torch-1.5.1/add.pt")]),
        (lambda at: (at / "torch-1.5.1/x.pt").write_bytes(b"x"), [("orphan-file", "torch-1.5.1/x.pt")]),
        (lambda at: (at / "torch-1.5.1/.hidden").write_bytes(b"x"), [("orphan-file", "torch-1.5.1/.hidden")]),
        (lambda at: (at / "torch-9.9.9").mkdir(), [("unreadable-manifest", "torch-9.9.9/manifest.jsonl")]),
        (
            lambda at: (at / "torch-1.5.1/manifest.jsonl").unlink(),
            [
                ("unreadable-manifest", "torch-1.5.1/manifest.jsonl"),
                ("missing-entry", "torch-1.5.1/add"),
                ("missing-entry", "torch-1.5.1/div"),
            ],
        ),
        (lambda at: (at / "recipes/add.py").write_text("def"), [("unreadable-recipe", "recipes/add.py")]),
        (lambda at: (at / "probes/add.py").write_bytes(b"\0"), [("unreadable-probe", "probes/add.py")]),
        (lambda at: (at / FROZEN).unlink(), [("missing-file", FROZEN)]),
        (lambda at: (at / FROZEN).write_bytes(b"\xff\n"), [("unreadable-pins", FROZEN)]),
        (lambda at: (at / FROZEN).write_text("short  torch-1.5.1/add\n"), [("unreadable-pins", FROZEN)]),
        (lambda at: (at / FROZEN).write_bytes((at / FROZEN).read_bytes()[:-1]), [("unreadable-pins", FROZEN)]),
        (lambda at: (at / FROZEN).write_text((at / FROZEN).read_text() * 2), [("unreadable-pins", FROZEN)]),
        (forget_pin, [("not-frozen", "torch-1.5.1/add")]),
        (lie_in_pin, [("changed-entry", "torch-1.5.1/div")]),
        (add_pin, [("missing-entry", "torch-1.5.1/mul")]),
    ],
)
def test_damage_is_told_once_and_costs_nothing_else(
    folder: Path, spoil: Callable[[Path], object], found: list[tuple[str, str]]
) -> None:
    spoil(folder)
    assert damage(folder) == found


def test_damage_names_no_place_of_this_machine(folder: Path) -> None:
    (folder / "recipes/add.py").write_text("def")
    (folder / "probes/add.py").write_text("def")
    (folder / "torch-1.5.1/manifest.jsonl").write_text("")
    (folder / FROZEN).write_text("x\n")
    result = load_corpus(folder).damage
    assert len(result) == 4
    assert all(str(folder) not in item.detail + item.subject for item in result)


def test_one_broken_recipe_leaves_the_others(folder: Path) -> None:
    (folder / "recipes/add.py").write_text("def")
    corpus = load_corpus(folder)
    assert [recipe.name for recipe in corpus.recipes] == ["div"]
    assert [probe.name for probe in corpus.probes] == list(NAMES)


def test_an_empty_folder_is_an_empty_corpus(tmp_path: Path) -> None:
    assert load_corpus(tmp_path) == Corpus(tmp_path, (), (), (), ())


def test_pins_round_trip(tmp_path: Path) -> None:
    pins = {"torch-1.5.1/b": "b" * 64, "torch-1.10.0/a": "a" * 64}
    write_frozen(tmp_path / FROZEN, pins)
    assert read_frozen(tmp_path / FROZEN) == pins
    assert (tmp_path / FROZEN).read_text().splitlines() == [f"{'a' * 64}  torch-1.10.0/a", f"{'b' * 64}  torch-1.5.1/b"]
    with pytest.raises(CorpusError, match="file not found"):
        read_frozen(tmp_path / "nowhere")


def test_corpora_with_the_same_content_in_other_folders_have_the_same_manifests(folder: Path) -> None:
    before = load_corpus(folder)
    after = load_corpus(folder.rename(folder.with_name("elsewhere")))
    assert [manifest.digest for manifest in before.manifests] == [manifest.digest for manifest in after.manifests]
    assert replace(before, folder=after.folder).manifests == after.manifests
