from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.miniatures import miniature
from tests.miniatures.tree import write_recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.miniatures.tree import Tree

DOUBLE = '''\
"""Twice."""
import torch

FAMILY = "torchscript"
OPERATORS = []
SINCE = "1.6.0"
WHY = "1.5.1 cannot"


def build():
    if torch.__version__ == "1.5.1":
        raise RuntimeError("[red]cannot[/red]\\nsecond line")
    return torch.Program(forward="lambda a: a * 2")


def calls():
    return [("forward", (3,))]
'''


def test_what_is_there_is_reproduced(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.everything()
    ended = command("produce", "torch-1.5.1")
    assert (ended.status, ended.out) == (0, "reproduced    3 as recorded\n")
    assert ended.err.splitlines() == [f"producing torch-1.5.1/{name}" for name in ("add", "later", "state")]
    assert tree.everything() == before


def test_a_release_outside_a_reduced_grid_writes_a_recipe_only_if_it_is_named(command: Callable[..., Any], tree: Tree) -> None:
    write_recipe(tree.root, "double", DOUBLE.replace("\n\n\ndef build", '\nWRITERS = "reduced"\nUNTIL = "1.6.0"\n\n\ndef build'))
    assert command("produce", "torch-1.6.0").out == "added         torch-1.6.0/double\nreproduced    3 as recorded\n"
    assert command("produce", "torch-1.5.1").out == "reproduced    3 as recorded\n"
    assert "torch-1.5.1/double" in command("produce", "torch-1.5.1", "--recipe", "double").out


def test_what_is_new_is_added(command: Callable[..., Any], tree: Tree) -> None:
    write_recipe(tree.root, "double", DOUBLE)
    ended = command("produce", "torch-1.6.0", "--recipe", "double")
    assert (ended.status, ended.out) == (0, "added         torch-1.6.0/double\n")
    assert (tree.root / "fixtures/torch-1.6.0/double.pt").is_file()
    again = command("produce", "torch-1.6.0", "--recipe", "double", "--recipe", "add", "--format", "json")
    assert again.json == {
        "schema_version": 1,
        "added": [],
        "not_writable": [],
        "reproduced": ["torch-1.6.0/double", "torch-1.6.0/add"],
        "rounded": [],
        "differing": [],
    }


def test_what_cannot_be_written_is_said_with_its_reason(command: Callable[..., Any], tree: Tree) -> None:
    write_recipe(tree.root, "double", DOUBLE)
    ended = command("produce", "torch-1.5.1", "--recipe", "double", "--format", "json")
    assert ended.status == 0
    assert ended.json["not_writable"] == [{"id": "torch-1.5.1/double", "reason": "[red]cannot[/red]"}]


def test_what_cannot_be_written_is_said_in_words(command: Callable[..., Any], tree: Tree) -> None:
    write_recipe(tree.root, "double", DOUBLE)
    out = command("produce", "torch-1.5.1", "--recipe", "double").out
    assert out == "not writable  torch-1.5.1/double: [red]cannot[/red]\n"


def test_what_comes_out_otherwise_ends_with_1(command: Callable[..., Any], tree: Tree) -> None:
    before = tree.everything()
    miniature(tree.cache, "1.5.1", at_call="value = 12 if value == 5 else value")
    ended = command("produce", "torch-1.5.1")
    assert ended.status == 1
    assert "DIFFERENT     torch-1.5.1/add: differs from the record in golden" in ended.out
    assert command("produce", "torch-1.5.1", "--format", "json").json["differing"] == [
        {"id": "torch-1.5.1/add", "fields": ["golden"]}
    ]
    assert tree.everything() == before


def test_numbers_rounded_on_another_processor_are_told_and_end_with_0(
    command: Callable[..., Any], tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch_compat.replay.produce.is_rounded", lambda recorded, _: recorded.recipe == "add")
    miniature(tree.cache, "1.5.1", at_call="value = 12 if value == 5 else value")
    ended = command("produce", "torch-1.5.1", "--recipe", "add")
    text = "ROUNDED       torch-1.5.1/add: differs only in the last bits of numbers, as on another processor"
    assert (ended.status, " ".join(ended.out.split())) == (0, " ".join(text.split()))
    assert command("produce", "torch-1.5.1", "--recipe", "add", "--format", "json").json["rounded"] == ["torch-1.5.1/add"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("torch-2.13.0",), 4, "torch-2.13.0 is not built here"),
        (("torch-1.4",), 2, "1.4"),
        (("torch-1.5.1", "--recipe", "ad"), 2, "there is no recipe 'ad'"),
        ((), 2, "Missing argument"),
    ],
)
def test_what_cannot_be_done(
    command: Callable[..., Any], tree: Tree, arguments: tuple[str, ...], status: int, words: str
) -> None:
    before = tree.everything()
    ended = command("produce", *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert words in ended.err
    assert tree.everything() == before


def test_no_recipes_is_nothing_selected(command: Callable[..., Any], tree: Tree) -> None:
    for path in (tree.root / "fixtures" / "recipes").glob("*.py"):
        path.unlink()
    ended = command("produce", "torch-1.5.1")
    assert (ended.status, ended.out) == (4, "")
    assert "there are no recipes" in ended.err


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"says": "1.6.0"}, "expected torch 1.5.1, got 1.6.0"),
        ({"says": "1.5.1+cu92"}, "expected torch 1.5.1, which was installed, got 1.5.1+cu92"),
        ({"at_import": "raise ImportError('gone')"}, "ImportError: gone"),
    ],
)
def test_a_writer_that_cannot_be_trusted_ends_with_3_and_writes_nothing(
    command: Callable[..., Any], tree: Tree, hooks: dict[str, str], words: str
) -> None:
    write_recipe(tree.root, "double", DOUBLE)
    miniature(tree.cache, "1.5.1", **hooks)
    before = tree.everything()
    ended = command("produce", "torch-1.5.1")
    assert (ended.status, ended.out) == (3, "")
    assert words in ended.err
    assert tree.everything() == before


def test_a_recipe_that_crashes_ends_with_3(command: Callable[..., Any], tree: Tree) -> None:
    write_recipe(
        tree.root, "double", DOUBLE.replace('"1.6.0"', '"1.5.1"').replace("    if ", "    import os; os.abort()\n    if ")
    )
    before = tree.everything()
    ended = command("produce", "torch-1.5.1")
    assert ended.status == 3
    assert "torch-1.5.1/double was not written" in ended.err
    assert "SIGABRT" in ended.err
    assert "fix the recipe" in ended.err
    assert tree.everything() == before


def test_a_manifest_that_cannot_be_read_is_not_written_over(command: Callable[..., Any], tree: Tree) -> None:
    manifest = tree.root / "fixtures" / "torch-1.5.1" / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes()[:-40])
    before = tree.everything()
    ended = command("produce", "torch-1.5.1")
    assert (ended.status, ended.out) == (2, "")
    assert "manifest.jsonl" in ended.err
    assert tree.everything() == before


def test_an_entry_that_was_removed_is_not_new(command: Callable[..., Any], tree: Tree) -> None:
    manifest = tree.root / "fixtures" / "torch-1.6.0" / "manifest.jsonl"
    shutil.rmtree(manifest.parent)
    before = tree.everything()
    ended = command("produce", "torch-1.6.0")
    assert (ended.status, ended.out) == (2, "")
    assert "is pinned in FROZEN" in ended.err
    assert "restore torch-1.6.0 from version control" in ended.err
    assert tree.everything() == before
