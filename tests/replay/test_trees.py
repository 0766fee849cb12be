"""Trees of builds: one for each build, for some days."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from torch_compat.errors import BuildError, CorpusError
from torch_compat.readers.builds import BUILD, Build
from torch_compat.readers.environments import Environment
from torch_compat.releases.release import Release
from torch_compat.replay.trees import STATE, expire, open_tree, trees_in

TODAY = dt.date(2026, 11, 23)


def build(version: str = "2.16.0.dev20261120+cpu", digest: str = "a" * 64) -> Build:
    release = Release(version)
    environment = Environment(release.public, Path(), Path(), {BUILD: digest})
    return Build("python:x", release, release.day or TODAY, "version", "cpu", environment.prefix, digest, environment, "")


def test_builds_of_one_version_have_trees_of_their_own(tmp_path: Path) -> None:
    item, other = (open_tree(tmp_path, build(digest=letter * 64), TODAY) for letter in "ab")
    assert item.path != other.path
    assert [tree.digest for tree in trees_in(tmp_path)] == ["a" * 64, "b" * 64]
    assert item.name == "torch-2.16.0.dev20261120+cpu"
    assert open_tree(tmp_path, build(), TODAY).path == item.path


def test_a_tree_of_another_build_is_never_written_to(tmp_path: Path) -> None:
    open_tree(tmp_path, build(), TODAY)
    with pytest.raises(BuildError, match="contains results from another build"):
        open_tree(tmp_path, build(digest="a" * 8 + "c" * 56), TODAY)


def test_what_is_older_than_some_days_goes(tmp_path: Path) -> None:
    open_tree(tmp_path, build("2.16.0.dev20261101+cpu"), TODAY - dt.timedelta(days=15))
    open_tree(tmp_path, build(), TODAY - dt.timedelta(days=14))
    assert [tree.name for tree in expire(tmp_path, TODAY)] == ["torch-2.16.0.dev20261101+cpu"]
    assert [tree.name for tree in trees_in(tmp_path)] == ["torch-2.16.0.dev20261120+cpu"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema_version": 1, "torch": "x", "day": "2026-11-20", "made": "2026-11-20", "digest": ""}']
)
def test_a_tree_that_does_not_say_what_it_is_is_an_error(tmp_path: Path, text: str) -> None:
    (open_tree(tmp_path, build(), TODAY).path / STATE).write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="does not record which build this is"):
        trees_in(tmp_path)


def test_a_report_that_is_none_is_an_error(tmp_path: Path) -> None:
    tree = open_tree(tmp_path, build(), TODAY)
    assert tree.report() is None
    (tree.path / "candidate.json").write_text("{", encoding="utf-8")
    with pytest.raises(CorpusError, match="cannot be read"):
        tree.report()
