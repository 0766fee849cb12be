"""Names become paths inside a folder or are rejected; files are read completely, but with a size limit."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import torch_compat
from torch_compat.errors import CorpusError
from torch_compat.places import LONGEST, inside, is_plain, read_whole

HARNESS = Path(torch_compat.__file__).parent
# Who reads or writes a file of a tree by other means, and why that is sound. Anything new belongs into torch_compat.places.
BY_OTHER_MEANS = {
    "judging/operator_check.py": "a list that the user names",
    "cli/_terminal.py": "opens /dev/null",
    "runtime/json_values.py": "arguments that the user names",
    "report/explained.py": "rules of the package itself",
    "cli/extension.py": "a list that the user names",
}
READS = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}


@pytest.mark.parametrize("name", ["div.pt", "torch-1.5.1", "a/b/c.pt", "x+cu130_1.jsonl", "0", "a" * LONGEST])
def test_plain_names(name: str, tmp_path: Path) -> None:
    assert inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../x", "a/../../b", "/etc/passwd", "//x", "a//b", "a/", "./a", "a\\b", "..\\b", "C:x", "a\0b", "a\nb", "a b",
        "a\x1b[31m", "\x9b1m", "a\u202eb", "\u200b", "é", "\ud800", ".hidden", "-rf", "~root", "~", "a" * (LONGEST + 1), "$HOME", "*",
        "/dev/zero", "/proc/self/environ",
    ],
)  # fmt: skip
def test_any_other_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"refers to the file .*, expected a plain relative name") as caught:
        inside(tmp_path, name, where="manifest.jsonl:7, div")
    assert caught.value.code == "outside"
    assert str(caught.value).startswith("manifest.jsonl:7, div: ")
    assert str(caught.value).isprintable()
    assert not is_plain(name)


@pytest.mark.parametrize("name", [5, None, ["a"], b"a"])
def test_what_is_no_text_is_no_name(name: object) -> None:
    assert not is_plain(name)


def test_links(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "root-beside"  # whose name begins alike
    for folder in (root / "real", other):
        folder.mkdir(parents=True)
        (folder / "x").write_text("")
    (root / "good").symlink_to("real")
    (root / "up").symlink_to("real/../../root-beside")
    (root / "absolute").symlink_to(other)
    (root / "real" / "y").symlink_to(other / "x")
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to(tmp_path / "nothing")
    (root / "twice").symlink_to("absolute")
    assert inside(root, "good/x").read_text() == ""
    for name in ("up", "up/x", "absolute/x", "real/y", "dangling", "twice", "twice/x"):
        with pytest.raises(CorpusError, match="is a link that points outside the tree"):
            inside(root, name)
    (tmp_path / "linked").symlink_to(root)
    assert inside(tmp_path / "linked", "good/x").is_file()  # whoever names a root may name a link


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_whole(tmp_path / "file") == b"12345"
    assert read_whole(tmp_path / "file", 5) == b"12345"
    with pytest.raises(CorpusError, match="has 5 bytes, expected at most 4"):
        read_whole(tmp_path / "file", 4)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorpusError, match="has 1,099,511,627,776 bytes, expected at most"):
        read_whole(tmp_path / "sparse")
    os.mkfifo(tmp_path / "pipe")  # opening one waits for whoever writes
    for odd in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(CorpusError, match="is not a regular file"):
            read_whole(odd)
    with pytest.raises(IsADirectoryError):
        read_whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "missing")


def of_trees() -> list[Path]:
    """The files of the package that read trees."""
    layers = ("cli", "corpus", "judging", "policy", "report", "rules", "scaffolding")
    alone = (
        "build_trees",
        "generating",
        "admission",
        "backtest",
        "candidate",
        "candidate_items",
        "everywhere",
        "recording",
        "reproduced",
        "signing",
    )
    files = ("runtime/json_values.py", *(f"replay/{name}.py" for name in alone))
    return [*(path for layer in layers for path in sorted((HARNESS / layer).glob("*.py"))), *(HARNESS / name for name in files)]


def test_files_of_a_tree_are_read_by_one_function() -> None:
    results = set()
    for path in of_trees():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in READS:
                results.add(path.relative_to(HARNESS).as_posix())
    assert results - {"cli/__init__.py"} == set(BY_OTHER_MEANS)  # which opens /dev/null


def test_names_in_data_become_paths_by_one_function() -> None:
    """No f-string is joined to a path: ``folder / f"{name}.pt"`` follows a name wherever it leads."""
    joined = [
        f"{path.relative_to(HARNESS).as_posix()}:{node.lineno}: {ast.unparse(node)}"
        for path in of_trees()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.JoinedStr)
    ]
    assert joined == []
