"""A small recorded tree of miniature releases, made once and copied for each test; and the command, run in it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli import main
from tests.miniatures.tree import Tree, recorded_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def pristine_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return recorded_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def tree(pristine_tree: Tree, tmp_path: Path) -> Tree:
    """A tree in which every promise holds; the test's own."""
    for folder in (pristine_tree.root, pristine_tree.cache):
        shutil.copytree(folder, tmp_path / folder.name)
    return Tree(tmp_path / "root", tmp_path / "cache")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said where."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def command(tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs ``torch-compat`` in the tree, with the miniature releases as those that are built here."""
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tree.cache))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tree.root)

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return run
