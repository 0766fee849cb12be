"""`tools/release.py` lists everything that prevents a release, and creates a tag only if nothing does."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.tooling import program

if TYPE_CHECKING:
    from pathlib import Path

release = program("release")


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout


def commit(root: Path, version: str = "0.2.0", changelog: str = "## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- New.\n") -> None:
    (root / "harness/torch_compat").mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n', encoding="utf-8")
    (root / "harness/torch_compat/version.py").write_text('__version__ = "0.2.0"\n', encoding="utf-8")
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}", encoding="utf-8")
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "A")
    git(root, "config", "user.email", "a@example.org")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")


def test_a_clean_tree_with_a_section_is_tagged_once(tmp_path: Path) -> None:
    commit(tmp_path)
    assert release.problems(tmp_path, "0.2.0") == []
    assert release.main(["check", "0.2.0", "--root", str(tmp_path)]) == 0
    assert git(tmp_path, "tag") == ""
    assert release.main(["tag", "0.2.0", "--root", str(tmp_path)]) == 0
    assert git(tmp_path, "tag") == "v0.2.0\n"
    assert release.problems(tmp_path, "0.2.0") == ["the tag v0.2.0 already exists"]
    assert release.main(["tag", "0.2.0", "--root", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        ("## Unreleased\n\n- New.\n", ["no section '## 0.2.0'", "1 entries under '## Unreleased'"]),
        ("## 0.2.0\n\n## 0.1.0\n\n- Old.\n", ["no entry under '## 0.2.0'"]),
        ("", ["it has none"]),
    ],
)
def test_the_changelog_needs_the_section_with_all_entries(tmp_path: Path, changelog: str, words: list[str]) -> None:
    commit(tmp_path, changelog=changelog)
    result = release.problems(tmp_path, "0.2.0")
    assert len(result) == len(words)
    for line, word in zip(result, words, strict=True):
        assert word in line


def test_a_changed_file_and_another_version_stop_it(tmp_path: Path) -> None:
    commit(tmp_path, version="0.1.0")
    (tmp_path / "left.txt").touch()
    assert release.problems(tmp_path, "0.2.0") == [
        "the tree is not clean: ?? left.txt",
        "pyproject.toml states version 0.1.0; expected 0.2.0",
    ]
    assert release.main(["tag", "0.2.0", "--root", str(tmp_path)]) == 1
    assert git(tmp_path, "tag") == ""


@pytest.mark.parametrize("version", ["v0.2.0", "0.2", "--tag", "0.2.0; ls", ""])
def test_what_is_no_version_is_refused(tmp_path: Path, version: str) -> None:
    assert "is not a version" in release.problems(tmp_path, version)[0]


def test_outside_of_a_repository_it_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert release.main(["check", "0.2.0", "--root", str(tmp_path)]) == 1


# --------------------------------------------------------------------------------------------------- fragments of the changelog


def with_fragments(root: Path, *names: str) -> Path:
    (root / "changes").mkdir()
    (root / "pyproject.toml").write_text((release.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("README.md", *names):
        (root / "changes" / name).write_text("A change.\n", encoding="utf-8")
    return root


def test_the_fragments_of_the_repository_have_known_kinds() -> None:
    assert release.bad_fragments(release.REPOSITORY) == []


@pytest.mark.parametrize("name", ["+nested.fixed.md", "12.added.md", "two-words.security.1.md"])
def test_a_fragment_with_a_known_kind_is_taken(tmp_path: Path, name: str) -> None:
    assert release.bad_fragments(with_fragments(tmp_path, name)) == []


@pytest.mark.parametrize("name", ["+nested.bugfix.md", "nested.md", "+nested.fixed.txt", "fixed.md"])
def test_a_fragment_with_another_kind_is_named_with_the_kinds(tmp_path: Path, name: str) -> None:
    kinds = "added, changed, deprecated, removed, fixed, security"
    assert release.bad_fragments(with_fragments(tmp_path, name)) == [
        f"changes/{name}: expected NAME.KIND.md, where KIND is {kinds}"
    ]


def test_a_fragment_that_is_left_stops_a_release(tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "+nested.fixed.md").write_text("A change.\n", encoding="utf-8")
    commit(tmp_path)
    assert release.problems(tmp_path, "0.2.0") == [
        "changes/+nested.fixed.md is not in CHANGELOG.md: nox -s release -- VERSION --changelog"
    ]
