"""A small recorded tree of miniature releases, made once and copied for each test."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.miniatures.tree import Tree, recorded_tree

if TYPE_CHECKING:
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
