"""Untrusted archives, and the commands that let a release read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import torch_compat
from tests.miniatures import miniature
from tests.miniatures.tree import write_recipe
from torch_compat.corpus.corpus import FROZEN
from torch_compat.readers import isolation as module
from torch_compat.readers.isolation import Isolation, isolation
from torch_compat.replay.trust import frozen_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ended
    from tests.miniatures.tree import Tree

    Command = Callable[..., Ended]

FIXTURE = "fixtures/torch-1.5.1/add.pt"
READ = ("--reader", "torch-1.5.1", "--format", "json")
NONE = Isolation(network=False, home=False, reasons={"network": "no seccomp", "home": "no Landlock"})


@pytest.fixture
def not_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot isolate anything."""
    monkeypatch.setattr(module, "_probe", lambda _: NONE)


@pytest.fixture
def arguments(tree: Tree) -> str:
    path = tree.root / "arguments.json"
    path.write_text("[3, 4]", encoding="utf-8")
    return str(path)


def checked(ended: Ended, schema: str) -> dict[str, Any]:
    rules = json.loads((Path(torch_compat.__file__).parent / "schemas" / f"{schema}.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(ended.json, rules)
    return ended.json


def stranger(tree: Tree) -> Path:
    """The same bytes, at a place for which nobody vouches."""
    return Path(shutil.copy(tree.root / FIXTURE, tree.root / "stranger.pt"))


@pytest.mark.skipif(not isolation().whole, reason=f"this machine cannot isolate a process: {isolation()}")
def test_a_strangers_archive_runs_inside_the_fence(command: Command, tree: Tree, arguments: str) -> None:
    ended = command("run", str(stranger(tree)), "--args", arguments, *READ)
    document = checked(ended, "run")
    assert (ended.status, document["outcome"], document["value"]) == (0, "loaded", 7)
    assert document["isolation"] == {"network": True, "home": True}
    assert document["notes"] == []


@pytest.mark.usefixtures("not_isolated")
def test_without_a_fence_run_refuses_it(command: Command, tree: Tree, arguments: str) -> None:
    marker = tree.root / "marker"
    miniature(tree.cache, "1.5.1", at_import=f"open({str(marker)!r}, 'w')")
    ended = command("run", str(stranger(tree)), "--args", arguments, *READ)
    document = checked(ended, "run")
    assert (ended.status, document["outcome"], document["error"]["code"]) == (4, "refused", "untrusted")
    assert "--trust" in document["error"]["message"]
    assert "no Landlock" in document["error"]["message"]
    assert document["isolation"] == {"network": False, "home": False}
    assert not marker.exists()  # nothing was started
    text = command("run", str(stranger(tree)), "--reader", "torch-1.5.1")
    assert text.status == 4
    assert "untrusted" in text.out


@pytest.mark.usefixtures("not_isolated")
def test_without_a_fence_trust_runs_it_and_says_so(command: Command, tree: Tree, arguments: str) -> None:
    ended = command("run", str(stranger(tree)), "--args", arguments, "--trust", *READ)
    document = checked(ended, "run")
    assert (ended.status, document["value"]) == (0, 7)
    (note,) = document["notes"]
    assert note.startswith("the release is not isolated: the network can be accessed")


@pytest.mark.parametrize("fenced", [False, True])
def test_a_frozen_fixture_runs_either_way(
    command: Command, arguments: str, fenced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fenced:
        monkeypatch.setattr(module, "_probe", lambda _: NONE)
    ended = command("run", FIXTURE, "--args", arguments, *READ)
    assert (ended.status, ended.json["value"]) == (0, 7)
    observed = command("observe", *READ, "--again")
    assert observed.status == 0
    assert checked(observed, "observe")["isolation"] == (isolation().as_json())
    assert ("not isolated" in observed.err) is not isolation().whole
    assert command("replay", "--reader", "torch-1.5.1", "--again").status == 0


@pytest.mark.parametrize("change", ["bytes", "entry", "pin", "no pins", "elsewhere"])
def test_only_what_is_frozen_is_trusted(tree: Tree, change: str) -> None:
    path, pins = tree.root / FIXTURE, tree.root / "fixtures" / FROZEN
    assert frozen_in(tree.root / "fixtures")(path)
    if change == "bytes":
        path.write_bytes(path.read_bytes() + b"\0")
    elif change == "entry":
        manifest = path.with_name("manifest.jsonl")
        manifest.write_text(manifest.read_text().replace('"written":"2026-07-01"', '"written":"2026-07-02"'))
    elif change == "pin":
        pins.write_text("".join(line for line in pins.read_text().splitlines(True) if not line.endswith("torch-1.5.1/add\n")))
    elif change == "no pins":
        pins.unlink()
    else:
        path = stranger(tree)
    assert not frozen_in(tree.root / "fixtures")(path)


@pytest.mark.usefixtures("not_isolated")
@pytest.mark.parametrize("asked", [("observe", "--again"), ("replay", "--again")])
def test_without_a_fence_no_unpinned_fixture_is_observed(command: Command, tree: Tree, asked: tuple[str, ...]) -> None:
    pins = tree.root / "fixtures" / FROZEN
    pins.write_text("".join(line for line in pins.read_text().splitlines(True) if not line.endswith("torch-1.5.1/add\n")))
    before = tree.everything()
    ended = command(*asked, "--reader", "torch-1.5.1")
    assert (ended.status, ended.out) == (4, "")
    assert "add.pt" in ended.err
    assert "--trust" in ended.err
    assert tree.everything() == before
    assert command(*asked, "--reader", "torch-1.5.1", "--trust").status in {0, 1}  # which judges the missing pin


@pytest.mark.usefixtures("not_isolated")
def test_without_a_fence_produce_runs_ones_own_recipe_and_says_so(command: Command, tree: Tree) -> None:
    source = (tree.root / "fixtures/recipes/add.py").read_text(encoding="utf-8")
    write_recipe(tree.root, "mine", source)
    ended = command("produce", "torch-1.5.1", "--recipe", "mine")
    assert ended.status == 0
    assert "releases are not isolated on this machine: the network can be accessed (no seccomp)" in ended.err
    assert frozen_in(tree.root / "fixtures")(tree.root / "fixtures/torch-1.5.1/mine.pt")


@pytest.mark.parametrize("name", ["run", "observe", "replay"])
def test_help_says_what_trust_is(command: Command, name: str) -> None:
    ended = command(name, "--help")
    text = " ".join(ended.out.split())
    assert "--trust" in text
    assert "can execute code from" in text


@pytest.mark.parametrize("name", [("produce",), ("extension", "record")])
def test_help_says_what_is_executed(command: Command, name: tuple[str, ...]) -> None:
    text = " ".join(command(*name, "--help").out.split())
    assert "is a program that runs" in text or "executes the extension's code" in text
    assert "If this machine cannot isolate the" in text
