"""``judge --page``: the files it writes and removes, and that a page always shows a single run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torch_compat.cli import main
from torch_compat.cli.judge import _write_page

if TYPE_CHECKING:
    from pathlib import Path


def judge(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["judge", *arguments])
    return int(ended.value.code or 0)


def test_a_page_replaces_the_details_of_an_older_one_and_nothing_else(small_tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    old, other = folder / "d-00000000/w1.html", folder / "d-mine/notes.html"
    for path in (old, other):
        path.parent.mkdir(parents=True)
        path.write_text("x")
    assert judge("--root", str(small_tree), "--page", str(folder)) == 0
    (details,) = [path for path in folder.iterdir() if path.is_dir() and path != other.parent and any(path.iterdir())]
    assert f'href="{details.name}/' in (folder / "index.html").read_text(encoding="utf-8")
    assert not old.exists()
    assert other.read_text() == "x"


def test_the_main_file_is_written_last_and_older_details_go_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr("torch_compat.cli.judge.put", lambda path, _, encoding: done.append(path.name))
    monkeypatch.setattr("torch_compat.cli.judge.remove", lambda path: done.append(f"removed {path.name}"))
    old = tmp_path / "page/d-00000000/old.html"
    old.parent.mkdir(parents=True)
    old.write_text("x")
    _write_page(tmp_path / "page", {"d-11111111/w1.html": "a", "d-11111111/w2.html": "b", "index.html": "c"})
    assert done == ["w1.html", "w2.html", "index.html", "removed old.html"]


def test_a_mistyped_directory_is_refused(small_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge("--root", str(small_tree), "--page", str(tmp_path / "nowhere/page")) == 2
    assert "there is no directory" in capsys.readouterr().err
